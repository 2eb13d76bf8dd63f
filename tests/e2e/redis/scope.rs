//! What OLM tells the operator: the namespaces of its OperatorGroup, in an annotation of its pods.

use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::operator::Operator;
use super::rediscluster::Redis;
use crate::cluster::Namespace;

pub(super) fn told(operator: &Operator, namespace: &Namespace) -> Result<(), Failed> {
    let other = Namespace { cluster: namespace.cluster, name: format!("{}-other", namespace.name) };
    namespace.cluster.kubectl(&["create", "namespace", &other.name])?;
    let outcome = one_then_all(operator, namespace, &other);
    watch(operator, &Value::Null)?;
    namespace.cluster.kubectl(&["delete", "namespace", &other.name, "--timeout=120s"])?;
    outcome
}

fn one_then_all(operator: &Operator, namespace: &Namespace, other: &Namespace) -> Result<(), Failed> {
    watch(operator, &json!(namespace.name))?;
    let (mine, theirs) = (Redis { namespace, name: "rc" }, Redis { namespace: other, name: "rc" });
    theirs.create("size: 1")?;
    mine.create("size: 1")?;
    mine.ready()?;
    let left = other.json("rediscluster/rc")?;
    assert!(left["metadata"].get("finalizers").is_none() && left.get("status").is_none(), "{left:#}");
    // As OLM writes an OperatorGroup without targets.
    watch(operator, &json!(""))?;
    theirs.ready()?;
    Ok(())
}

fn watch(operator: &Operator, namespaces: &Value) -> Result<(), Failed> {
    let patch =
        json!({"spec": {"template": {"metadata": {"annotations": {"olm.targetNamespaces": namespaces}}}}});
    let patch = patch.to_string();
    operator.kubectl(&["patch", "deployment/redis-operator", "--type=merge", "--patch", &patch])?;
    operator.kubectl(&["rollout", "status", "deployment/redis-operator", "--timeout=120s"])?;
    Ok(())
}
