//! The Echo operator: an Echo becomes a Job that prints `spec.message`, once.
//!
//! It shows an informer with an index, a queue that never gives one Echo to two workers, and replicas of which one leads. The parts, in
//! this order: the API, the command line, the informers and the queue, one reconcile, the Job, the status. The index is in `index.rs`.

mod index;

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use futures_util::{StreamExt, future::join_all};
use k8s_openapi::{
    NamespaceResourceScope, api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, CustomResource, KubeSchema, Resource, ResourceExt,
    api::PostParams,
    runtime::{
        Controller, WatchStreamExt,
        controller::{Action, Config},
        events::EventType,
        watcher,
    },
};
use operator_process::{
    Operator,
    backoff::{Backoffs, jittered},
    error::{ApiError, during},
    objects::{claim, is_controlled_by},
    status::{self, Claim, conditions, publish},
    telemetry::log_queue,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::{debug, info};

use self::index::JobIndex;

/// Name of the operator: of its Lease, and the label of what it creates.
const NAME: &str = "echo-operator";
/// The annotation of an Echo that names the installation of the operator which manages it.
const OPERATED_BY: &str = "echo.example.com/operated-by";

// ---- The API. A doc comment is the description that `kubectl explain` shows. ----

/// The message that the user wants printed.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "echo.example.com",
    version = "v1",
    kind = "Echo",
    plural = "echoes",
    namespaced,
    doc = "A message that a Job prints once.",
    derive = "PartialEq",
    status = "EchoStatus",
    printcolumn(name = "Message", type_ = "string", json_path = ".spec.message"),
    printcolumn(name = "Job", type_ = "string", json_path = ".status.job"),
    printcolumn(
        name = "Complete",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Complete")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // It becomes the name of a Job, and that the value of a label.
    validation = Rule::new("size(self.metadata.name) <= 63").message("metadata.name must have at most 63 characters")
)]
struct EchoSpec {
    /// What the Job prints.
    #[schemars(length(min = 1, max = 4096))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("message cannot be changed: create another Echo"))]
    message: String,
}

/// What the operator last saw of the Echo.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct EchoStatus {
    /// Name of the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Conditions of the Echo: Complete, Degraded.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    conditions: Vec<Condition>,
}

// ---- The command line: `echo-operator crd` and `echo-operator run`. ----

/// The flags of `run` that are not every operator's.
#[derive(Args)]
struct Options {
    /// Image with the program `printf`
    #[arg(
        long,
        env = "RELATED_IMAGE_ECHO",
        default_value = "docker.io/library/busybox:1.37.0",
        value_name = "IMAGE"
    )]
    image: String,
    /// Echoes that are worked on at once
    #[arg(long, env = "WORKERS", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
}

fn main() -> ExitCode {
    operator_process::main::<Echo, Options, _>(NAME, env!("CARGO_PKG_VERSION"), control)
}

// ---- The informers and the queue. ----

/// What every reconcile needs.
struct Context {
    operator: Operator,
    image: String,
    jobs: JobIndex,
    backoffs: Backoffs,
}

/// One controller for all namespaces, or one for each that is to be watched.
async fn control(operator: Operator, Options { image, workers }: Options) {
    let mut scopes: Vec<Option<&str>> =
        operator.watched.iter().map(|namespace| Some(namespace.as_str())).collect();
    if scopes.is_empty() {
        scopes.push(None);
    }
    let scopes = scopes.into_iter().map(|namespace| {
        let (operator, image) = (operator.clone(), image.clone());
        let context = Context { operator, image, jobs: JobIndex::default(), backoffs: Backoffs::default() };
        control_scope(Arc::new(context), namespace, workers)
    });
    join_all(scopes).await;
}

async fn control_scope(context: Arc<Context>, namespace: Option<&str>, workers: u16) {
    let managed = watcher::Config::default().labels(&format!("app.kubernetes.io/managed-by={NAME}"));
    let (operator, indexed) = (context.operator.clone(), context.clone());
    // Each change of a Job is in the index before the Echo that owns it comes into the queue.
    let jobs = watcher(api::<Job>(&operator, namespace), managed)
        .default_backoff()
        .inspect(move |event| {
            if let Ok(event) = event {
                indexed.jobs.apply(event);
            }
        })
        .touched_objects();
    // The queue holds an Echo once, however often it changes, and an Echo that is worked on waits in it: no two workers ever have the
    // same one. Changes that come together are one reconcile; failures come back later and later.
    Controller::new(api::<Echo>(&operator, namespace), watcher::Config::default())
        .owns_stream(jobs)
        .with_config(Config::default().concurrency(workers).debounce(Duration::from_millis(50)))
        .graceful_shutdown_on(operator.stopped())
        .run(reconcile, retry, context)
        .for_each(log_queue)
        .await;
}

fn api<K>(operator: &Operator, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    namespace.map_or_else(|| Api::all(operator.client.clone()), |namespace| operator.api(namespace))
}

// ---- One reconcile: look, act, tell. It is called again and again, and begins with looking each time. ----

async fn reconcile(echo: Arc<Echo>, context: Arc<Context>) -> Result<Action, ApiError> {
    debug!(uid = echo.uid(), "reconcile begins");
    let result = look_act_tell(&echo, &context).await;
    debug!(uid = echo.uid(), "reconcile ends");
    let again = result?;
    context.backoffs.clear(&*echo);
    Ok(Action::requeue(jittered(again)))
}

/// Returns when to look again, if nothing changes before.
async fn look_act_tell(echo: &Echo, context: &Context) -> Result<Duration, ApiError> {
    const LATER: Duration = Duration::from_secs(600);
    // The Job goes with its Echo: Kubernetes follows the owner reference. And what has been printed is not printed again, also
    // when its Job is gone.
    if echo.metadata.deletion_timestamp.is_some() || is_complete(echo) {
        return Ok(LATER);
    }
    // After a restart the Jobs of earlier processes have to be known before any is created.
    context.jobs.filled().await;
    if !context.operator.leadership.leads() || !claim(echo, OPERATED_BY, &context.operator).await? {
        return Ok(LATER);
    }
    let (job, problem) = match context.jobs.of(echo) {
        Some(job) => (Some(job), None),
        None => create_job(echo, context).await?,
    };
    // The problem may be repaired in an object that is not watched.
    let again = if problem.is_some() { Duration::from_secs(15) } else { LATER };
    update_status(echo, &context.operator, job.as_deref(), problem).await?;
    Ok(again)
}

/// After errors: later and later, for each Echo by itself.
fn retry(echo: Arc<Echo>, error: &ApiError, context: Arc<Context>) -> Action {
    context.backoffs.retry(&*echo, error)
}

fn is_complete(echo: &Echo) -> bool {
    let conditions = echo.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == "Complete" && one.status == "True")
}

// ---- The Job. ----

/// Creates the Job. Its name is the Echo's, so that the API server refuses a second one, whatever the index says.
async fn create_job(echo: &Echo, context: &Context) -> Result<(Option<Arc<Job>>, Option<String>), ApiError> {
    let operator = &context.operator;
    let api: Api<Job> = operator.api(&echo.namespace().unwrap_or_default());
    let name = echo.name_any();
    match api.create(&PostParams::default(), &job(echo, &context.image)).await {
        Ok(job) => {
            info!(echo = name, "created the Job");
            publish(&operator.recorder, echo, EventType::Normal, "Created", &format!("created Job {name}"))
                .await;
            Ok((Some(Arc::new(job)), None))
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let found = api.get_opt(&name).await.map_err(during("get the Job"))?;
            let ours = found.as_ref().is_none_or(|found| is_controlled_by(found, echo));
            let problem =
                format!("Job {name} exists and is not controlled by this Echo: rename or delete it");
            Ok((found.filter(|_| ours).map(Arc::new), (!ours).then_some(problem)))
        }
        Err(error) => Err(during("create the Job")(error)),
    }
}

fn job(echo: &Echo, image: &str) -> Job {
    let labels = json!({
        "app.kubernetes.io/name": "echo",
        "app.kubernetes.io/instance": echo.name_any(),
        "app.kubernetes.io/managed-by": NAME,
    });
    // No shell reads the message. Kubernetes itself would replace `$(NAME)`, were each `$` not doubled.
    let command = ["printf", "%s\\n", &echo.spec.message.replace('$', "$$")];
    let job = json!({
        "metadata": {
            "name": echo.name_any(),
            "labels": labels,
            "ownerReferences": [echo.controller_owner_ref(&())],
        },
        "spec": {
            "backoffLimit": 3,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "echo",
                        "image": image,
                        "command": command,
                        "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "16Mi"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                            "readOnlyRootFilesystem": true,
                        },
                    }],
                },
            },
        },
    });
    serde_json::from_value(job).expect("every field above is one of a Job")
}

// ---- The status. ----

async fn update_status(
    echo: &Echo,
    operator: &Operator,
    job: Option<&Job>,
    problem: Option<String>,
) -> Result<(), ApiError> {
    let before = echo.status.clone().unwrap_or_default();
    let status = status_of(echo, &before, job, problem);
    status::update(echo, operator, &before, &status, |status| &status.conditions).await
}

/// The status that follows from what was seen: equal when nothing has changed, and then it is not written.
fn status_of(echo: &Echo, before: &EchoStatus, job: Option<&Job>, problem: Option<String>) -> EchoStatus {
    let finished = |kind: &str| {
        let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref()).into_iter().flatten();
        conditions.into_iter().find(|one| one.type_ == kind && one.status == "True")
    };
    let complete = finished("Complete").is_some();
    let (degraded, message) = match (problem, finished("Failed")) {
        (Some(problem), _) => ("NameTaken", problem),
        (None, Some(failed)) => {
            ("JobFailed", format!("the Job failed: {}", failed.message.as_deref().unwrap_or_default()))
        }
        (None, None) => ("AsExpected", String::new()),
    };
    let claims = [
        Claim {
            kind: "Complete",
            holds: complete,
            reason: if complete { "Printed" } else { "NotPrinted" },
            message: if complete { "the message was printed" } else { "the message was not printed yet" }
                .into(),
        },
        Claim { kind: "Degraded", holds: degraded != "AsExpected", reason: degraded, message },
    ];
    EchoStatus {
        job: job.map(ResourceExt::name_any),
        conditions: conditions(&before.conditions, echo.metadata.generation, &claims),
    }
}

#[cfg(test)]
mod tests;
