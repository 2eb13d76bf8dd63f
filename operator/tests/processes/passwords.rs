//! A change of the password on real nodes: no client and no replica is refused meanwhile.

use std::time::Duration;

use redis::cmd;
use redis_operator::{
    controller::passwords::Rotation,
    plan::{Link, Step},
    server::{Access, CommandError, Password, act::Always},
};

use crate::{
    A_WHILE, fill, formed,
    servers::{PASSWORD, Servers},
    writer::{Writer, Written},
};

/// The password after [`PASSWORD`].
pub(crate) const NEXT: &str = "the %s next one";

/// How a client logs in.
fn client(servers: &Servers, password: &str) -> Access {
    Access { password: Some(Password::new(password.into())), previous: None, ..servers.access.clone() }
}

/// Whether each node accepts a client with this password.
async fn accept(servers: &Servers, password: &str) -> Vec<bool> {
    let mut accepted = vec![];
    for ordinal in servers.ordinals() {
        let connected = client(servers, password).connect(servers.ip(ordinal)).await;
        let rejected = connected.as_ref().is_err_and(CommandError::is_password_rejected);
        assert!(connected.is_ok() || rejected, "{connected:?}");
        accepted.push(connected.is_ok());
    }
    accepted
}

/// No replica lost its primary.
async fn links_are_up(servers: &Servers) {
    for pod in servers.observe().await.pods {
        let node = pod.redis.unwrap();
        assert!(matches!(node.link, Link::None | Link::Up), "{}: {:?}", pod.name, node.link);
    }
}

async fn unharmed(servers: &Servers, written: Written) {
    assert_eq!(written.lost(&servers.access, servers.ip(0)).await, [""; 0]);
    assert_eq!(written.errors, Default::default());
    assert!(!written.acknowledged.is_empty(), "it wrote nothing");
}

pub(crate) async fn changes_while_clients_write() {
    let mut servers = formed(6, 1, false).await;
    fill(&servers, 500).await;
    let processes = servers.processes();
    let old = Writer::start(client(&servers, PASSWORD), servers.ip(0), 100);
    let mut open = client(&servers, PASSWORD).connect(servers.ip(0)).await.unwrap();

    servers.write_secret(NEXT, Some(PASSWORD));
    while servers.rotation().await != Rotation::Both {
        assert_eq!(accept(&servers, PASSWORD).await, [true; 6]);
        let _ = servers.turn(&Always).await;
        links_are_up(&servers).await;
    }
    assert_eq!(
        (accept(&servers, PASSWORD).await, accept(&servers, NEXT).await),
        (vec![true; 6], vec![true; 6])
    );
    let new = Writer::start(client(&servers, NEXT), servers.ip(0), 100);
    tokio::time::sleep(Duration::from_millis(300)).await;
    unharmed(&servers, old.stop().await).await;

    servers.write_secret(NEXT, None);
    servers.removal = Some(false);
    let _ = servers.turn(&Always).await;
    assert_eq!(accept(&servers, PASSWORD).await, [true; 6], "files of pods may still have only that");
    servers.removal = Some(true);
    servers.rotate_until(&Rotation::None).await;
    assert_eq!(
        (accept(&servers, PASSWORD).await, accept(&servers, NEXT).await),
        (vec![false; 6], vec![true; 6])
    );
    open.send::<String>("PING", &cmd("PING")).await.unwrap();
    // Nodes replicate anew with the new password.
    for pod in servers.observe().await.pods {
        let mut server = servers.access.connect(pod.ip.unwrap()).await.unwrap();
        let kill = cmd("CLIENT").arg("KILL").arg("TYPE").arg("replica").take();
        server.send::<u64>("CLIENT KILL", &kill).await.unwrap();
    }
    servers.settle(A_WHILE).await;
    servers.in_step().await;
    links_are_up(&servers).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    unharmed(&servers, new.stop().await).await;
    assert_eq!(servers.processes(), processes);

    // Back at once, before the old one is removed, and to a third one in the middle.
    servers.write_secret(PASSWORD, Some(NEXT));
    servers.removal = Some(false);
    servers.rotate_until(&Rotation::Both).await;
    servers.write_secret("a third password", Some(PASSWORD));
    let _ = servers.turn(&Always).await;
    servers.write_secret(NEXT, None);
    let _ = servers.turn(&Always).await;
    servers.removal = Some(true);
    servers.rotate_until(&Rotation::None).await;
    assert_eq!(
        (accept(&servers, PASSWORD).await, accept(&servers, NEXT).await),
        (vec![false; 6], vec![true; 6])
    );
    links_are_up(&servers).await;
}

/// New nodes join with both passwords, and keys migrate with the one that the destination accepts.
pub(crate) async fn changes_while_slots_move() {
    let mut servers = formed(3, 0, false).await;
    fill(&servers, 2000).await;
    let old = Writer::start(client(&servers, PASSWORD), servers.ip(0), 200);
    servers.goal.size = 5;
    let mut moves = 0;
    while moves < 3 {
        moves += u32::from(servers.reconcile(&Always).await.0.step == Step::Move);
    }
    servers.write_secret(NEXT, Some(PASSWORD));
    servers.rotate_until(&Rotation::Both).await;
    let new = Writer::start(client(&servers, NEXT), servers.ip(0), 200);
    for _ in 0..3 {
        let _ = servers.reconcile(&Always).await;
    }
    assert!(servers.slots().await.len() < 5 || servers.slots().await[0] < 3276, "it was over before");
    unharmed(&servers, old.stop().await).await;
    servers.write_secret(NEXT, None);
    servers.settle(A_WHILE).await;
    assert_eq!(servers.rotation().await, Rotation::None);
    assert_eq!(servers.slots().await, [3276, 3277, 3277, 3277, 3277]);
    unharmed(&servers, new.stop().await).await;
    assert_eq!(accept(&servers, PASSWORD).await, [false; 5]);
}

/// One restarts when the password changes, and one hangs when the old one is to be removed.
pub(crate) async fn waits_for_every_node() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 300).await;
    let observed = servers.observe().await;
    let replica = |pod: &&redis_operator::plan::Pod| pod.redis.as_ref().unwrap().primary().is_some();
    let replica = observed.pods.iter().find(replica).unwrap().ordinal;
    let writer = Writer::start(client(&servers, PASSWORD), servers.ip(0), 100);
    servers.kill_container(replica);
    servers.write_secret(NEXT, Some(PASSWORD));
    for _ in 0..3 {
        let _ = servers.turn(&Always).await;
    }
    assert_eq!(servers.rotation().await, {
        let all = servers.ordinals().into_iter().map(|ordinal| format!("rc-{ordinal}")).collect();
        Rotation::Adding(all)
    });
    for ordinal in servers.ordinals().into_iter().filter(|ordinal| *ordinal != replica) {
        let mut server = servers.access.connect(servers.ip(ordinal)).await.unwrap();
        let get = cmd("CONFIG").arg("GET").arg("masterauth").take();
        let with: Vec<String> = server.send("CONFIG GET", &get).await.unwrap();
        assert_eq!(with[1], PASSWORD, "its primary may not accept another yet");
    }
    servers.start_container(replica);
    servers.rotate_until(&Rotation::Both).await;
    servers.settle(A_WHILE).await;
    unharmed(&servers, writer.stop().await).await;

    let writer = Writer::start(client(&servers, NEXT), servers.ip(0), 100);
    servers.signal(replica, "STOP");
    servers.write_secret(NEXT, None);
    let _ = servers.turn(&Always).await;
    servers.signal(replica, "CONT");
    assert_eq!(accept(&servers, PASSWORD).await, [true; 6]);
    servers.settle(A_WHILE).await;
    servers.rotate_until(&Rotation::None).await;
    assert_eq!(accept(&servers, PASSWORD).await, [false; 6]);
    unharmed(&servers, writer.stop().await).await;
}

/// Nodes refuse the operator, and one that restarts has only the new password. With the previous one all have both.
pub(crate) async fn changed_without_the_previous_one() {
    let mut servers = formed(6, 1, true).await;
    fill(&servers, 300).await;
    let writer = Writer::start(client(&servers, PASSWORD), servers.ip(0), 100);
    let observed = servers.observe().await;
    let replica = |pod: &&redis_operator::plan::Pod| pod.redis.as_ref().unwrap().primary().is_some();
    let replica = observed.pods.iter().find(replica).unwrap().ordinal;
    servers.write_secret(NEXT, None);
    let (plan, _) = servers.turn(&Always).await;
    assert_eq!(plan.actions, []);
    let observed = servers.observe().await;
    assert!(observed.pods.iter().all(|pod| pod.password_rejected && pod.passwords.is_none()), "{observed:?}");
    servers.kill_container(replica);
    servers.start_container(replica);
    let _ = servers.turn(&Always).await;
    assert_eq!(accept(&servers, PASSWORD).await.iter().filter(|accepted| **accepted).count(), 5);

    servers.write_secret(NEXT, Some(PASSWORD));
    servers.rotate_until(&Rotation::Both).await;
    servers.settle(A_WHILE).await;
    links_are_up(&servers).await;
    unharmed(&servers, writer.stop().await).await;
    servers.write_secret(NEXT, None);
    servers.rotate_until(&Rotation::None).await;
    assert_eq!(accept(&servers, PASSWORD).await, [false; 6]);
    assert_eq!(servers.keys().await, 400);
}

/// The environment is as old as the container.
pub(crate) async fn scripts_use_files() {
    let servers = formed(6, 1, false).await;
    let run = async |name, ordinal, files: &[(&str, &str)], password: &str| {
        servers.run_script(name, ordinal, files, password).await
    };
    assert!(run("ready.sh", 0, &[], PASSWORD).await, "as in a pod of release 0.5");
    assert!(run("ready.sh", 0, &[("password", PASSWORD)], "an old one").await);
    assert!(run("ready.sh", 0, &[("password", NEXT), ("previousPassword", PASSWORD)], "an old one").await);
    // It serves the clients that have its password.
    assert!(run("ready.sh", 0, &[("password", NEXT)], "an old one").await);
    assert!(run("live.sh", 0, &[("password", NEXT)], "an old one").await, "it responds");
    // The exporter gets the password that Redis accepts, whatever it had before.
    let told = |password: &str| format!("{{\"redis://localhost:6379\":\"{password}\"}}\n");
    assert_eq!(servers.told_exporter(0), "");
    assert!(run("ready.sh", 0, &[("password", NEXT)], "an old one").await);
    assert_eq!(servers.told_exporter(0), "", "Redis accepts none");
    assert!(run("ready.sh", 0, &[("password", NEXT), ("previousPassword", PASSWORD)], "an old one").await);
    assert_eq!(servers.told_exporter(0), told(PASSWORD));
    assert!(run("ready.sh", 0, &[("password", NEXT)], "an old one").await);
    assert_eq!(servers.told_exporter(0), told(PASSWORD));
    let owners = async || {
        let observed = servers.observe().await;
        let owns = |pod: &&redis_operator::plan::Pod| !pod.redis.as_ref().unwrap().slots().is_empty();
        observed.pods.iter().filter(owns).map(|pod| pod.ordinal).collect::<Vec<_>>()
    };
    let primary = owners().await[0];
    let files = [("password", NEXT), ("previousPassword", PASSWORD)];
    assert!(run("stop.sh", primary, &files, "an old one").await);
    assert!(!owners().await.contains(&primary), "a replica took over");
}
