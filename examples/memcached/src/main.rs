//! The Memcached operator: one file that reads from top to bottom, to copy and change.
//!
//! A Memcached becomes a Deployment with `spec.size` pods, and its status names them. The parts, in this order: the API, the
//! command line, the controllers, one reconcile, the Deployment, the status. `CHANGE ME` marks what is different in another
//! operator; the README lists these places. What every operator needs is in `process/`.

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use futures_util::{StreamExt, future::join_all};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    CustomResource, KubeSchema, Resource, ResourceExt,
    api::ListParams,
    runtime::{
        Controller,
        controller::{Action, Config},
        events::EventType,
        reflector::ObjectRef,
        watcher,
    },
};
use operator_process::{
    Operator,
    backoff::{Backoffs, jittered},
    error::{ApiError, during},
    objects::{Applied, apply, claim},
    status::{self, Claim, Problem, conditions, publish},
    telemetry::log_queue,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::info;

/// Name of the operator: of its Lease, and as the one who manages what it applies. CHANGE ME
const NAME: &str = "memcached-operator";
/// The annotation of a Memcached that names the installation of the operator which manages it. CHANGE ME
const OPERATED_BY: &str = "cache.example.com/operated-by";

// ---- The API. CHANGE ME: group, kind, fields. A doc comment is the description that `kubectl explain` shows. ----

/// The Memcached that the user wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    namespaced,
    doc = "A Memcached: `spec.size` pods of memcached that know nothing of one another.",
    derive = "PartialEq",
    status = "MemcachedStatus",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.readyNodes",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyNodes"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // It becomes the value of a label.
    validation = Rule::new("size(self.metadata.name) <= 63").message("metadata.name must have at most 63 characters")
)]
struct MemcachedSpec {
    /// Number of memcached pods.
    #[schemars(range(min = 1, max = 5))]
    size: i32,
}

/// What the operator last saw of the Memcached.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemcachedStatus {
    /// Names of the pods, without those that are being deleted.
    #[serde(default)]
    nodes: Vec<String>,
    /// Number of pods that are ready.
    #[serde(default)]
    ready_nodes: i32,
    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    selector: Option<String>,
    /// Conditions of the Memcached: Available, Degraded.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    conditions: Vec<Condition>,
}

// ---- The command line: `memcached-operator crd` and `memcached-operator run`. ----

/// The flags of `run` that are not every operator's.
#[derive(Args)]
struct Options {
    // OLM, and mirrors of registries, look for variables of this form. CHANGE ME
    /// Image that runs memcached
    #[arg(
        long,
        env = "RELATED_IMAGE_MEMCACHED",
        default_value = "docker.io/library/memcached:1.6.39",
        value_name = "IMAGE"
    )]
    image: String,
}

fn main() -> ExitCode {
    operator_process::main::<Memcached, Options, _>(NAME, env!("CARGO_PKG_VERSION"), control)
}

// ---- The controllers: what makes the operator look at a Memcached. ----

/// What every reconcile needs.
struct Context {
    operator: Operator,
    image: String,
    backoffs: Backoffs,
}

/// One controller for each namespace, as OLM's install modes OwnNamespace, SingleNamespace and MultiNamespace have it.
async fn control(operator: Operator, Options { image }: Options) {
    let mut namespaces = operator.watched.clone();
    if namespaces.is_empty() {
        namespaces.push(operator.namespace.clone());
    }
    let context = Arc::new(Context { operator, image, backoffs: Backoffs::default() });
    join_all(namespaces.iter().map(|namespace| control_namespace(context.clone(), namespace))).await;
}

async fn control_namespace(context: Arc<Context>, namespace: &str) {
    let managed = watcher::Config::default().labels(&format!("app.kubernetes.io/managed-by={NAME}"));
    // A pod is owned by its ReplicaSet; its label names the Memcached.
    let memcached_of = |pod: Pod| {
        let name = pod.labels().get("app.kubernetes.io/instance")?;
        Some(ObjectRef::new(name).within(&pod.namespace()?))
    };
    let operator = &context.operator;
    Controller::new(operator.api::<Memcached>(namespace), watcher::Config::default())
        .owns(operator.api::<Deployment>(namespace), managed.clone())
        .watches(operator.api::<Pod>(namespace), managed, memcached_of)
        // Changes that come together are one reconcile, which then sees all of them.
        .with_config(Config::default().concurrency(8).debounce(Duration::from_millis(100)))
        .graceful_shutdown_on(operator.stopped())
        .run(reconcile, retry, context.clone())
        .for_each(log_queue)
        .await;
}

// ---- One reconcile: look, act, tell. It is called again and again, and begins with looking each time. ----

async fn reconcile(memcached: Arc<Memcached>, context: Arc<Context>) -> Result<Action, ApiError> {
    // What a Memcached owns goes with it: Kubernetes follows the owner references.
    if memcached.metadata.deletion_timestamp.is_some() || !context.operator.leadership.leads() {
        context.backoffs.clear(&*memcached);
        return Ok(Action::await_change());
    }
    if !claim(&*memcached, OPERATED_BY, &context.operator).await? {
        return Ok(Action::await_change());
    }
    let problem = apply_deployment(&memcached, &context).await?;
    // What users repair is not always watched. All the rest is: then this is a safeguard.
    let again = Duration::from_secs(if problem.is_some() { 15 } else { 600 });
    update_status(&memcached, &context.operator, problem).await?;
    context.backoffs.clear(&*memcached);
    Ok(Action::requeue(jittered(again)))
}

/// After errors: later and later, for each Memcached by itself.
fn retry(memcached: Arc<Memcached>, error: &ApiError, context: Arc<Context>) -> Action {
    context.backoffs.retry(&*memcached, error)
}

/// Creates the Deployment or changes it back. Returns what keeps it from being as wanted, if only a user can change that.
async fn apply_deployment(memcached: &Memcached, context: &Context) -> Result<Option<Problem>, ApiError> {
    let (name, operator) = (memcached.name_any(), &context.operator);
    let wanted = deployment(memcached, &context.image);
    let (reason, note) = match apply::<Deployment>(memcached, operator, NAME, &wanted).await? {
        Applied::NameTaken(problem) => return Ok(Some(problem)),
        Applied::Unchanged(found) => return Ok(deployment_problem(&found)),
        Applied::Created => {
            ("Created", format!("created Deployment {name} with {} pods", memcached.spec.size))
        }
        Applied::Changed(before) => {
            let before = before.spec.and_then(|spec| spec.replicas).unwrap_or_default();
            let note = if before == memcached.spec.size {
                format!("changed Deployment {name} back to what the Memcached says")
            } else {
                format!("scaled Deployment {name} from {before} to {} pods", memcached.spec.size)
            };
            ("Updated", note)
        }
    };
    info!(memcached = name, "{note}");
    publish(&operator.recorder, memcached, EventType::Normal, reason, &note).await;
    Ok(None)
}

/// What Kubernetes says about a Deployment that does not go on, such as a quota that is used up or an image that cannot be pulled.
fn deployment_problem(deployment: &Deployment) -> Option<Problem> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let stuck = conditions.iter().find(|one| {
        (one.type_ == "ReplicaFailure" && one.status == "True")
            || (one.type_ == "Progressing" && one.status == "False")
    })?;
    let message = stuck.message.clone().unwrap_or_default();
    Some(Problem {
        reason: "DeploymentStuck",
        message: format!("the Deployment does not progress: {message}"),
    })
}

// ---- The Deployment: CHANGE ME. All that is said here is held; what is not said is left to Kubernetes and to users. ----

fn labels(memcached: &Memcached) -> [(&'static str, String); 3] {
    [
        ("app.kubernetes.io/name", "memcached".to_owned()),
        ("app.kubernetes.io/instance", memcached.name_any()),
        ("app.kubernetes.io/managed-by", NAME.to_owned()),
    ]
}

fn deployment(memcached: &Memcached, image: &str) -> Value {
    let labels: Value =
        labels(memcached).into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": memcached.name_any(),
            "labels": labels,
            // Kubernetes deletes the Deployment with its owner.
            "ownerReferences": [memcached.controller_owner_ref(&())],
        },
        "spec": {
            "replicas": memcached.spec.size,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "automountServiceAccountToken": false,
                    // The user of the memcached image: Kubernetes cannot check a user that the image only names.
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 11211,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "memcached",
                        "image": image,
                        "args": ["--memory-limit=64", "--listen=0.0.0.0"],
                        "ports": [{"name": "memcached", "containerPort": 11211}],
                        "readinessProbe": {"tcpSocket": {"port": "memcached"}},
                        "resources": {"requests": {"cpu": "10m", "memory": "80Mi"}, "limits": {"memory": "128Mi"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                            "readOnlyRootFilesystem": true,
                        },
                    }],
                },
            },
        },
    })
}

// ---- The status: the pods, and the conditions. ----

async fn update_status(
    memcached: &Memcached,
    operator: &Operator,
    problem: Option<Problem>,
) -> Result<(), ApiError> {
    let namespace = memcached.namespace().unwrap_or_default();
    let selector = labels(memcached).map(|(key, value)| format!("{key}={value}")).join(",");
    let pods = operator
        .api::<Pod>(&namespace)
        .list(&ListParams::default().labels(&selector))
        .await
        .map_err(during("list the pods"))?;
    let before = memcached.status.clone().unwrap_or_default();
    let status = status_of(memcached, &before, selector, &pods.items, problem);
    status::update(memcached, operator, &before, &status, |status| &status.conditions).await
}

/// The status that follows from what was seen: equal when nothing has changed, and then it is not written.
fn status_of(
    memcached: &Memcached,
    before: &MemcachedStatus,
    selector: String,
    pods: &[Pod],
    problem: Option<Problem>,
) -> MemcachedStatus {
    let ready = |pod: &Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
    };
    let staying: Vec<&Pod> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
    let mut nodes: Vec<String> = staying.iter().map(|pod| pod.name_any()).collect();
    nodes.sort();
    let (count, size) = (staying.iter().filter(|pod| ready(pod)).count(), memcached.spec.size);
    let ready_nodes = i32::try_from(count).unwrap_or(i32::MAX);
    let all = ready_nodes == size && nodes.len() == count;
    let claims = [
        Claim {
            kind: "Available",
            holds: all,
            reason: if all { "PodsReady" } else { "WaitingForPods" },
            message: format!("{ready_nodes} of {size} pods are ready"),
        },
        Claim::degraded(problem),
    ];
    MemcachedStatus {
        nodes,
        ready_nodes,
        selector: Some(selector),
        conditions: conditions(&before.conditions, memcached.metadata.generation, &claims),
    }
}

#[cfg(test)]
mod tests;
