//! The operator without OLM and without its own manifests: installed from what `bundle manifests` prints of its bundle.

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;

use super::operator::{self, NODE_TIMEOUT_MS, OPERATOR};
use super::rediscluster::Redis;
use crate::cluster::Namespace;
use crate::images::olmkit;

/// The release whose manifests are those of the program as it was built.
const RELEASE: &str = "0.6.0";

/// A RedisCluster forms, and everything that was installed goes again.
pub(super) fn runs(namespace: &Namespace) -> Result<(), Failed> {
    operator::images(namespace.cluster)?;
    let dir = tempfile::tempdir()?;
    let objects = rendered(namespace, dir.path())?;
    let timeout = format!("--from-literal=REDIS_OPERATOR_NODE_TIMEOUT={NODE_TIMEOUT_MS}");
    namespace.kubectl(&["create", "configmap", "redis-operator-config", &timeout])?;
    let outcome = formed(namespace, &objects);
    // Others of this cluster would trip over the CRD and the webhooks.
    namespace.cluster.kubectl(&["delete", "--filename", &objects, "--ignore-not-found", "--timeout=60s"])?;
    outcome
}

/// The file with the objects of the bundle.
fn rendered(namespace: &Namespace, dir: &Path) -> Result<String, Failed> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("operator");
    let file = |path: &str| top.join(path).display().to_string();
    let image = format!(
        "registry.example.com/redis-operator:{RELEASE}={}/{}",
        namespace.cluster.registry,
        operator::image()
    );
    let (package, manifests) = (file("olmkit.yaml"), file(&format!("deploy/{RELEASE}")));
    let words = ["bundle", "generate", &manifests, "--package-file", &package, "--version", RELEASE];
    olmkit(dir, &[&words[..], &["--image", &image, "--output-dir", "bundle"]].concat())?;
    let words =
        ["bundle", "manifests", "bundle", "--namespace", &namespace.name, "--webhook-certs", "self-signed"];
    let objects = dir.join("objects.yaml");
    fs::write(&objects, olmkit(dir, &words)?)?;
    Ok(objects.display().to_string())
}

fn formed(namespace: &Namespace, objects: &str) -> Result<(), Failed> {
    namespace.kubectl(&["apply", "--server-side", "--filename", objects])?;
    namespace.wait("crd/redisclusters.cache.example.com", "condition=Established")?;
    let deployment = format!("deployment/{OPERATOR}");
    namespace.kubectl(&["rollout", "status", &deployment, "--timeout=60s"])?;
    let redis = Redis { namespace, name: "rendered" };
    redis.create("size: 1")?;
    redis.ready()?;
    assert_eq!(redis.ask(0, &["ping"])?.trim(), "PONG");
    namespace.kubectl(&["delete", &redis.object(), "--timeout=60s"])?;
    Ok(())
}
