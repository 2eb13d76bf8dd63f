//! A cluster with TLS on a real API server, with real redis-servers: what its Secret lacks is said, and a renewed certificate
//! replaces no pod.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::StatefulSet,
        core::v1::{Pod, Secret},
    },
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use redis_operator::{
    controller::{children, tls::Certificate},
    crd::RedisCluster,
    metrics::Metrics,
    server::{Access, Password},
};
use serde_json::{Value, json};

use crate::{
    authority::Authority,
    bench::metrics,
    create, eventually, namespace,
    node::{Node, RealRedis, write_files},
    replica::Replica,
    secret_of, settled, within, writer,
};

fn data(ca: &str, [certificate, key]: &[String; 2]) -> Value {
    let bytes = |text: &str| ByteString(text.into());
    json!({"ca.crt": bytes(ca), "tls.crt": bytes(certificate), "tls.key": bytes(key)})
}

pub(crate) async fn certificate(client: Client, kubeconfig: std::path::PathBuf) {
    namespace(&client, "tls").await;
    let flags = ["--no-leader-election", "--namespace", "tls", "--watch-namespace", "tls"];
    let mut operator = Replica::start(&kubeconfig, &flags, &[]);
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_owned();
    let mut node = Node::new(&client, "tls", Box::new(RealRedis(place)));
    let spec = json!({"size": 6, "replicasPerShard": 1, "tls": {"secretName": "certs"}});
    create(&client, "tls", "rc", spec).await;
    let clusters: Api<RedisCluster> = Api::namespaced(client.clone(), "tls");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "tls");
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "tls");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "tls");
    let condition = async |kind: &str| {
        let status = clusters.get("rc").await.unwrap().status?;
        let found = status.conditions.into_iter().find(|one| one.type_ == kind)?;
        Some((found.status == "True", found.reason, found.message))
    };
    let message = async |kind: &str, reason: &str| {
        eventually(&format!("{kind} has the reason {reason}"), async || {
            condition(kind).await.filter(|(_, found, _)| found == reason).map(|(_, _, message)| message)
        })
        .await
    };
    let write = async |value: Value| {
        let patch = Patch::Merge(json!({"data": value}));
        secrets.patch("certs", &PatchParams::default(), &patch).await.unwrap();
    };

    // Nothing is made before its Secret is right.
    let text = message("Degraded", "SecretMissing").await;
    let keys = "create it with the keys `tls.crt`, `tls.key` and `ca.crt`";
    assert!(text.starts_with(&format!("Secret `certs` not found: {keys}")), "{text}");
    let authority = Authority::new("ca");
    let [certificate, key] = authority.sign("first");
    let wrong = data(&authority.pem, &[certificate.clone(), authority.sign("other")[1].clone()]);
    let made = json!({"metadata": {"name": "certs"}, "data": wrong});
    secrets.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    let text = message("Degraded", "CertificateUnusable").await;
    assert!(text.contains("`tls.key` does not belong to the certificate in `tls.crt`"), "{text}");
    assert!(sets.get_opt("rc").await.unwrap().is_none(), "its pods would not start");
    write(data(&authority.pem, &[certificate, key])).await;
    settled(&clusters, &mut node, 3).await;
    let all = async || pods.list(&ListParams::default()).await.unwrap().items;
    let uids = async || all().await.iter().map(|pod| pod.uid().unwrap()).collect::<BTreeSet<_>>();
    let before = uids().await;

    // The schema cannot refuse it, and nobody else is there to do so.
    let set_tls = async |tls: Value| {
        let patch = Patch::Merge(json!({"spec": {"tls": tls}}));
        clusters.patch("rc", &PatchParams::default(), &patch).await.unwrap();
    };
    set_tls(Value::Null).await;
    let text = message("Degraded", "InvalidSpec").await;
    assert!(text.contains("spec.tls can be neither added to a cluster nor taken away"), "{text}");
    assert!(condition("Available").await.unwrap().0);
    set_tls(json!({"secretName": "certs"})).await;
    settled(&clusters, &mut node, 3).await;

    let first = all().await[0].status.clone().unwrap().pod_ip.unwrap().parse().unwrap();
    let access = async || Access {
        host: None,
        port: children::PORT,
        trust: Certificate::of(&secrets.get("certs").await.unwrap(), k8s_openapi::jiff::Timestamp::now())
            .trust,
        password: Some(Password::new(secret_of(&client, "tls").await)),
        previous: None,
        metrics: Arc::new(Metrics::default()),
    };
    let writer = writer::Writer::start(access().await, first, 100);
    write(data(&authority.pem, &authority.sign("second"))).await;
    let text = message("UpdatePending", "CertificatePending").await;
    assert!(text.contains("rc-0, rc-1, rc-2, rc-3, rc-4 and 1 more"), "{text}");
    let secret = secrets.get("certs").await.unwrap().data.unwrap();
    for pod in all().await {
        write_files(&dir.join(pod.status.unwrap().pod_ip.unwrap()), &secret);
    }
    // Every node, when the files are certainly there.
    within(Duration::from_secs(400), "all have read it", async || {
        node.turn().await;
        condition("UpdatePending").await.filter(|(_, reason, _)| reason == "UpToDate")
    })
    .await;
    let written = writer.stop().await;
    let access = access().await;
    let lost = written.lost(&access, first).await;
    assert_eq!((lost, written.errors), (vec![], Default::default()));
    assert_eq!(before, uids().await, "no pod was replaced");

    // A new leader has nodes read it again, and writes nothing.
    operator.signal("TERM");
    operator.ended(Duration::from_secs(25));
    let version = async || clusters.get("rc").await.unwrap().resource_version();
    let before = version().await;
    let operator = Replica::start(&kubeconfig, &flags, &[]);
    let count = |name: &str| {
        let text = metrics(operator.metrics);
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum::<f64>()
    };
    eventually("it serves its metrics", async || {
        std::net::TcpStream::connect(("127.0.0.1", operator.metrics)).ok()
    })
    .await;
    eventually("it has reconciled the cluster", async || {
        (count("redis_operator_reconcile_total") >= 1.0).then_some(())
    })
    .await;
    assert_eq!((count("redis_operator_api_writes_total"), version().await), (0.0, before));
}
