use kube::CustomResourceExt;

use super::*;
use crate::api::{Backup, EtcdClusterSpec, Restore};

fn cluster() -> EtcdCluster {
    let spec = EtcdClusterSpec { size: 3, version: Version::V35, backup: None, restore: None };
    let mut cluster = EtcdCluster::new("example", spec);
    cluster.metadata.uid = Some("uid".into());
    cluster.metadata.namespace = Some("ns".into());
    cluster
}

fn command(pod: &Value, kind: &str) -> String {
    let words = pod["spec"][kind][0]["command"].as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_pod_makes_the_cluster_and_the_others_join_it() {
    let cluster = cluster();
    let first = objects::pod(&cluster, "example-0", "etcd", &Start::New);
    let said = command(&first, "containers");
    assert!(said.contains("--initial-cluster=example-0=http://example-0.example.ns.svc:2380 "), "{said}");
    assert!(said.contains("--initial-cluster-state=new"), "{said}");
    assert!(said.contains("--advertise-client-urls=http://example-0.example.ns.svc:2379"), "{said}");
    let next = objects::pod(&cluster, "example-1", "etcd", &Start::Join("example-0=a,example-1=b"));
    let said = command(&next, "containers");
    assert!(said.contains("--initial-cluster=example-0=a,example-1=b "), "{said}");
    assert!(said.contains("--initial-cluster-state=existing"), "{said}");
}

#[test]
fn only_the_first_pod_restores() {
    let mut cluster = cluster();
    cluster.spec.restore = Some(Restore { claim_name: "snapshots".into(), snapshot: "first.db".into() });
    let first = objects::pod(&cluster, "example-0", "etcd", &Start::New);
    let said = command(&first, "initContainers");
    assert!(said.starts_with("/usr/local/bin/etcdutl snapshot restore /snapshots/first.db "), "{said}");
    // The data are made for the very identity with which etcd starts.
    for word in command(&first, "containers").split(' ').filter(|word| word.starts_with("--initial-")) {
        assert!(word == "--initial-cluster-state=new" || said.contains(word), "{word}: {said}");
    }
    let claimed = &first["spec"]["volumes"][1]["persistentVolumeClaim"]["claimName"];
    assert_eq!(claimed, "snapshots");
    let next = objects::pod(&cluster, "example-1", "etcd", &Start::Join("a=b"));
    assert_eq!(next["spec"]["initContainers"], Value::Null);
}

#[test]
fn a_snapshot_is_named_for_its_job() {
    let backup = Backup { claim_name: "snapshots".into(), schedule: "0 3 * * *".into() };
    let wanted = objects::backup(&cluster(), &backup, "etcd");
    let template = &wanted["spec"]["jobTemplate"]["spec"]["template"];
    let said = command(template, "containers");
    assert_eq!(
        said,
        "/usr/local/bin/etcdctl --endpoints=http://example-client.ns.svc:2379 snapshot save /snapshots/$(JOB).db"
    );
    // It is no member: no Service leads to it.
    assert_eq!(template["metadata"]["labels"]["app.kubernetes.io/component"], Value::Null);
}

/// The program prints the CRD that is checked in; `make manifests` renews it.
#[test]
fn the_crd_of_this_release_is_fresh() {
    let path =
        format!("{}/deploy/{}/install/crd.yaml", env!("CARGO_MANIFEST_DIR"), env!("CARGO_PKG_VERSION"));
    let kept: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(kept, serde_json::to_value(EtcdCluster::crd()).unwrap(), "run `make manifests`");
}
