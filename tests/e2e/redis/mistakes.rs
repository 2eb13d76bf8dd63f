//! What is said when only the user can go on, and that it goes on when they did; and what the webhooks say.

use libtest_mimic::Failed;
use serde_json::Value;

use super::rediscluster::Redis;
use crate::cluster::{Namespace, PATIENCE, message, within};

/// The password of a cluster whose user chose it.
pub(super) const PASSWORD: &str = "correct-horse";

/// Refused by the schema, with the field in the message.
pub(super) fn refused(namespace: &Namespace) -> Result<(), Failed> {
    for (name, spec, said) in [
        ("bad", "size: 0", "spec.size"),
        ("bad", "size: -1", "spec.size"),
        ("bad", "size: 10000", "spec.size"),
        ("bad", "size: 5, replicasPerShard: 1", "multiple of"),
        ("bad", "size: 3, config: {requirepass: hunter2}", "the operator sets this directive itself"),
        ("3bad", "size: 3", "metadata.name must start with a letter"),
    ] {
        let refused = Redis { namespace, name }.create(spec).expect_err("the API refuses it");
        let text = message(&refused);
        assert!(text.contains(said), "{spec}: {text}");
    }
    Ok(())
}

/// An image that is not there, a name that is taken, a Secret that is missing and one that vanishes, a pod that Kubernetes does not
/// create: a condition and an Event, each of which says what to do.
pub(super) fn mended(namespace: &Namespace) -> Result<(), Failed> {
    let image = Redis { namespace, name: "image" };
    namespace.apply(
        "{apiVersion: cache.example.com/v1, kind: RedisCluster, metadata: {name: image}, \
         spec: {size: 1, image: '{registry}/redis-with-shell:no-such-tag'}}",
    )?;
    namespace.apply(
        "{apiVersion: v1, kind: Service, metadata: {name: taken-headless}, spec: {ports: [{port: 1}]}}",
    )?;
    let taken = Redis { namespace, name: "taken" };
    taken.create("size: 1")?;
    let secret = Redis { namespace, name: "secret" };
    secret.create("size: 1, auth: {secretName: mine}")?;
    let unclassed = Redis { namespace, name: "unclassed" };
    unclassed.create("size: 1, pods: {priorityClassName: no-such-class}")?;
    // A StatefulSet that comes between the admission of the RedisCluster and the operator's turn.
    let late = Redis { namespace, name: "late" };
    late.create("size: 1, paused: true")?;
    foreign_set(namespace, "late")?;
    late.patch("{\"paused\":false}")?;

    for (redis, reason, said) in [
        (&image, "PodTrouble", "correct spec.image"),
        (
            &taken,
            "NameTaken",
            "Service `taken-headless` exists and is not controlled by this RedisCluster: delete or rename it",
        ),
        (&secret, "SecretMissing", "Secret `mine` not found: create it with the password"),
        (&unclassed, "FailedCreate", "no PriorityClass with name no-such-class was found; correct spec.pods"),
        (
            &late,
            "NameTaken",
            "StatefulSet `late` exists and is not controlled by this RedisCluster: delete or rename it",
        ),
    ] {
        let message = redis.wait_condition("Degraded", reason)?;
        assert!(message.contains(said), "{message}");
        redis.wait_event(reason)?;
    }
    assert_eq!(namespace.json("service/taken-headless")?["spec"]["ports"][0]["port"], 1, "left alone");
    assert_eq!(namespace.json("statefulset/late")?["spec"]["replicas"], 0, "left alone");

    unclassed.patch(r#"{"pods":null}"#)?;
    image.patch(&format!("{{\"image\":\"{}/redis-with-shell:e2e\"}}", namespace.cluster.registry))?;
    namespace.kubectl(&["delete", "service/taken-headless", "statefulset/late"])?;
    let password = format!("--from-literal=password={PASSWORD}");
    namespace.kubectl(&["create", "secret", "generic", "mine", &password])?;
    for redis in [&image, &taken, &secret, &unclassed, &late] {
        redis.ready()?;
    }

    namespace.kubectl(&["delete", "secret/mine"])?;
    // The user's Secrets are not watched: any change of the object makes it look again at once.
    namespace.kubectl(&["annotate", &secret.object(), "example.com/touched=yes"])?;
    secret.wait_condition("Degraded", "SecretMissing")?;
    assert_eq!(secret.ask(0, &["-a", PASSWORD, "ping"])?.trim(), "PONG", "Redis goes on");
    namespace.kubectl(&["create", "secret", "generic", "mine", &password])?;
    namespace.kubectl(&["annotate", &secret.object(), "example.com/touched=again", "--overwrite"])?;
    secret.ready()?;
    Ok(())
}

fn foreign_set(namespace: &Namespace, name: &str) -> Result<(), Failed> {
    namespace.apply(&format!(
        "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: {name}}}, spec: {{replicas: 0, serviceName: x, \
         selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, \
         spec: {{containers: [{{name: main, image: nothing}}]}}}}}}}}"
    ))
}

/// What users change in the operator's objects is changed back, and what they delete is made again.
pub(super) fn edited(namespace: &Namespace) -> Result<(), Failed> {
    let redis = Redis { namespace, name: "rc" };
    redis.create("size: 1")?;
    redis.ready()?;
    let merge =
        |object: &str, patch: &str| namespace.kubectl(&["patch", object, "--type=merge", "--patch", patch]);
    merge("statefulset/rc", r#"{"spec":{"replicas":0}}"#)?;
    merge("service/rc", r#"{"spec":{"ports":[{"name":"redis","port":6380,"targetPort":6379}]}}"#)?;
    merge("configmap/rc-config", r#"{"data":{"redis.conf":"port 1"}}"#)?;
    merge("poddisruptionbudget/rc", r#"{"spec":{"maxUnavailable":5}}"#)?;
    namespace.kubectl(&["delete", "service/rc-headless"])?;
    let port = |value: &Value| value["spec"]["ports"][0]["port"].clone();
    let back = within(PATIENCE, || {
        let same = namespace.json("statefulset/rc")?["spec"]["replicas"] == 1
            && port(&namespace.json("service/rc")?) == 6379
            && namespace.json("configmap/rc-config")?["data"]["redis.conf"].to_string().contains("port 6379")
            // Closed as soon as the only pod is gone, with its data.
            && matches!(namespace.json("poddisruptionbudget/rc")?["spec"]["maxUnavailable"].as_i64(), Some(0 | 1))
            && namespace.json("service/rc-headless").is_ok();
        Ok(same.then_some(()))
    })?;
    assert!(back.is_some(), "what was changed stays changed");
    // Its only pod had to go; a cluster of one that keeps nothing on disk is then empty, and says so.
    Ok(())
}

/// The API server asks the operator: to convert between the versions, and for its advice.
pub(super) fn webhooks(namespace: &Namespace) -> Result<(), Failed> {
    // An object of the old version is stored as the new one; what that has no word for is kept, and comes back.
    namespace.apply(
        "{apiVersion: cache.example.com/v1alpha1, kind: RedisCluster, metadata: {name: old}, \
         spec: {size: 1, image: '{registry}/redis-with-shell:e2e', maxMemory: 64mb, description: sessions}}",
    )?;
    let old = Redis { namespace, name: "old" };
    let stored = namespace.json("redisclusters.v1.cache.example.com/old")?;
    assert_eq!(stored["spec"]["config"]["maxmemory"], "64mb");
    assert_eq!(stored["spec"].get("description"), None);
    assert_eq!(
        stored["metadata"]["annotations"]["cache.example.com/v1alpha1-spec"],
        r#"{"description":"sessions"}"#
    );
    let v1alpha1 = || namespace.json("redisclusters.v1alpha1.cache.example.com/old");
    let again = v1alpha1()?;
    assert_eq!(again["apiVersion"], "cache.example.com/v1alpha1");
    assert_eq!(
        (&again["spec"]["description"], &again["spec"]["maxMemory"]),
        (&"sessions".into(), &"64mb".into())
    );
    // A change of the new version is seen in the old one, and costs it nothing.
    old.patch("{\"config\":{\"maxmemory\":\"96mb\"}}")?;
    let changed = v1alpha1()?;
    assert_eq!(
        (&changed["spec"]["description"], &changed["spec"]["maxMemory"]),
        (&"sessions".into(), &"96mb".into())
    );
    old.ready()?;

    // Allowed, with advice.
    let advised = |name: &str, spec: &str| -> Result<String, Failed> {
        let manifest = format!(
            "{{apiVersion: cache.example.com/v1, kind: RedisCluster, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
        );
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(&file, manifest)?;
        let path = file.path().to_str().ok_or("an odd path")?;
        let words = ["--namespace", &namespace.name, "create", "--dry-run=server", "--filename", path];
        let output = namespace.cluster.command(&words).output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let said = advised("two", "size: 4, replicasPerShard: 1")?;
    assert!(said.contains("Warning: with 2 shards Redis cannot fail over by itself"), "{said}");
    let said = advised("latest", "size: 3, image: 'redis:latest'")?;
    assert!(said.contains("Warning: the tag `:latest` in spec.image can change between pods"), "{said}");
    // Refused: the name is taken.
    foreign_set(namespace, "mine")?;
    let said = advised("mine", "size: 3")?;
    assert!(
        said.contains(
            "denied the request: StatefulSet `mine` exists and is not controlled by this RedisCluster"
        ),
        "{said}"
    );
    Ok(())
}
