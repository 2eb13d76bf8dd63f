//! Users of `spec.auth.users` on a real API server: their Secrets come and go, and the status says so.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use redis::cmd;
use redis_operator::crd::RedisCluster;
use serde_json::{Value, json};

use crate::{
    access_of, create, eventually, namespace,
    node::{Node, RealRedis},
    replica::Replica,
    settled,
};

pub(crate) async fn declared(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "users").await;
    let flags = ["--no-leader-election", "--namespace", "users", "--watch-namespace", "users"];
    let _operator = Replica::start(&kubeconfig, &flags, &[]);
    let mut node = Node::new(&client, "users", Box::new(RealRedis(tempfile::tempdir().unwrap())));
    create(&client, "users", "rc", json!({"size": 1})).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "users");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "users");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "users");
    settled(&clusters, &mut node, 1).await;
    let pod = async || pods.list(&ListParams::default()).await.unwrap().items.pop().unwrap();
    let (before, access) = (pod().await.uid(), access_of(&client, "users").await);
    let ip = pod().await.status.unwrap().pod_ip.unwrap().parse().unwrap();
    let accepts = async |name: &str, password: &str| {
        let mut connection = access.connect(ip).await.unwrap();
        connection.send::<()>("AUTH", cmd("AUTH").arg(name).arg(password)).await.is_ok()
    };
    let declare = async |users: Value| {
        let patch = Patch::Merge(json!({"spec": {"auth": {"secretName": "rc-auth", "users": users}}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    let status = async || clusters.get("rc").await.unwrap().status.unwrap();
    let degraded = async |user: &str| {
        let mut found = status().await.conditions.into_iter();
        let found = found.find(|one| one.type_ == "Degraded" && one.status == "True")?;
        found.message.contains(user).then_some(found.reason)
    };

    let user = |name: &str, rules: &str| json!({"name": name, "secretName": "app", "rules": rules});
    declare(json!([user("app", "+@read ~app:*"), user("wrong", "+@nothing")])).await;
    let reason = eventually("the Secret is missed", async || degraded("user `app`").await).await;
    assert_eq!(reason, "SecretMissing");
    let secret = json!({"metadata": {"name": "app"}, "stringData": {"password": "the first word"}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let reason = eventually("rules are refused", async || degraded("user `wrong`").await).await;
    assert_eq!(reason, "UserRefused");
    assert!(accepts("app", "the first word").await, "the other user is not held up");
    assert_eq!(status().await.users, ["app", "wrong"]);
    // Nor is anything else.
    settled(&clusters, &mut node, 1).await;

    declare(json!([])).await;
    eventually("the users are gone", async || status().await.users.is_empty().then_some(())).await;
    assert!(!accepts("app", "the first word").await);
    assert_eq!(pod().await.uid(), before, "no pod was replaced");
}
