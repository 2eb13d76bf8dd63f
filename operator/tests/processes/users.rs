//! Users of `spec.auth.users` on real nodes: they come back after a restart, and the operator removes none but its own.

use k8s_openapi::{ByteString, api::core::v1::Secret};
use redis::cmd;
use redis_operator::{
    controller::users::{Users, Wanted},
    crd::user::User,
    server::{Connection, act::Always},
};
use serde_json::json;

use crate::{formed, servers::Servers};

fn wanted(name: &str, rules: &str, password: &str) -> Wanted {
    let object = json!({"name": name, "secretName": "words", "rules": rules});
    let user: User = serde_json::from_value(object).unwrap();
    let data = [("password".to_owned(), ByteString(password.into()))];
    Wanted::of(&user, Some(&Secret { data: Some(data.into()), ..Secret::default() }))
}

/// A look of the operator, with what the status names.
async fn look(servers: &Servers, users: &mut Users) {
    let (pods, recorded) = (servers.observe().await.pods, users.names().to_vec());
    users.give(&servers.access, &Always, &pods, &recorded, true).await;
}

/// A connection to each node, where the user can log in.
async fn log_in(servers: &Servers, name: &str, password: &str) -> Vec<Option<Connection>> {
    let mut connections = vec![];
    for ordinal in servers.ordinals() {
        let mut connection = servers.access.connect(servers.ip(ordinal)).await.unwrap();
        let auth = cmd("AUTH").arg(name).arg(password).take();
        let logged_in = connection.send::<()>("AUTH", &auth).await;
        connections.push(logged_in.is_ok().then_some(connection));
    }
    connections
}

async fn accept(servers: &Servers, name: &str, password: &str) -> Vec<bool> {
    log_in(servers, name, password).await.iter().map(Option::is_some).collect()
}

/// What a node says to a command; nothing if it may be carried out, there or elsewhere.
async fn refusal(connection: &mut Option<Connection>, words: [&'static str; 2]) -> String {
    let command = cmd(words[0]).arg(words[1]).take();
    let answer = connection.as_mut().unwrap().send::<Option<String>>(words[0], &command).await;
    let said = answer.map_or_else(|error| error.message().to_lowercase(), |_| String::new());
    if said.contains("moved") || said.contains("clusterdown") { String::new() } else { said }
}

pub(crate) async fn on_every_node() {
    let mut servers = formed(3, 0, true).await;
    for ordinal in servers.ordinals() {
        let mut connection = servers.access.connect(servers.ip(ordinal)).await.unwrap();
        let by_hand = cmd("ACL").arg("SETUSER").arg(&["hand", "on", ">a word", "+@all"]).take();
        connection.send::<()>("ACL SETUSER", &by_hand).await.unwrap();
    }
    let app = |password| wanted("app", "+@read ~app:* ~{app}*", password);
    let mut users = Users::default();
    users.want(vec![app("the first word"), wanted("bad", "+@nothing", "the first word")]);
    look(&servers, &mut users).await;
    assert_eq!((users.names(), users.is_pending()), (&["app".into(), "bad".into()][..], true));
    assert_eq!(accept(&servers, "app", "the first word").await, [false; 3], "the status names it first");
    look(&servers, &mut users).await;
    let mut open = log_in(&servers, "app", "the first word").await;
    for connection in &mut open {
        assert_eq!(refusal(connection, ["GET", "app:1"]).await, "");
        assert!(refusal(connection, ["GET", "other:1"]).await.contains("noperm"));
        assert!(refusal(connection, ["INCR", "app:1"]).await.contains("noperm"));
    }
    let (reason, said) = users.problem().unwrap();
    assert!(reason == "UserRefused" && said.contains("user `bad`") && said.contains("@nothing"), "{said}");

    servers.kill_container(1);
    servers.start_container(1);
    assert_eq!(accept(&servers, "app", "the first word").await, [true, false, true]);
    look(&servers, &mut users).await;
    assert_eq!(accept(&servers, "app", "the first word").await, [true; 3]);

    let names = users.names().to_vec();
    users.want(vec![app("another word")]);
    users.give(&servers.access, &Always, &servers.observe().await.pods, &names, true).await;
    assert_eq!(accept(&servers, "app", "another word").await, [true; 3]);
    assert_eq!(accept(&servers, "app", "the first word").await, [false; 3]);
    assert_eq!(refusal(&mut open[0], ["GET", "app:1"]).await, "", "connections stay");

    // A node that hangs may have a user that is removed.
    servers.signal(2, "STOP");
    let names = users.names().to_vec();
    users.want(vec![]);
    users.give(&servers.access, &Always, &servers.observe().await.pods, &names, true).await;
    servers.signal(2, "CONT");
    assert_eq!(users.names(), ["app"]);
    look(&servers, &mut users).await;
    assert_eq!((users.names(), users.problem()), (&[][..], None));
    assert_eq!(accept(&servers, "app", "another word").await, [false; 3]);
    // Restarted since.
    assert_eq!(
        accept(&servers, "hand", "a word").await,
        [true, false, true],
        "it is nobody's but the user's"
    );
}
