//! The etcd operator: an EtcdCluster becomes pods that are members of one etcd cluster.
//!
//! It shows an operator that asks what it runs, and acts on the answer. The parts, in this order: the command line, the
//! controller, one reconcile, acting, the status. The API is in `api.rs`; `observe.rs` looks, `plan.rs` decides what to do,
//! the objects are in `objects.rs`, and `etcd.rs` talks to the members.

mod api;
mod etcd;
mod objects;
mod observe;
mod plan;

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use futures_util::{StreamExt, future::join_all};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        batch::v1::CronJob,
        core::v1::{Pod, Service},
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        controller::{Action as Requeue, Config},
        events::EventType,
        watcher,
    },
};
use operator_process::{
    Operator,
    backoff::{Backoffs, jittered},
    error::{ApiError, during},
    objects::{Applied, apply, claim, is_controlled_by},
    status::{self, Claim, Problem, conditions, publish},
    telemetry::log_queue,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tracing::info;

use self::{
    api::{EtcdCluster, EtcdClusterStatus, Version},
    etcd::{Etcd, EtcdError},
    objects::{CONTAINER, REPLACES, Start},
    observe::{Seen, observe},
    plan::{Action, Goal, Step, Wait, plan, quorum},
};

/// Name of the operator: of its Lease, and as the one who manages what it applies.
const NAME: &str = "etcd-operator";
/// The annotation of an EtcdCluster that names the installation of the operator which manages it.
const OPERATED_BY: &str = "etcd.example.com/operated-by";

// ---- The command line: `etcd-operator crd` and `etcd-operator run`. ----

/// The flags of `run` that are not every operator's.
#[derive(Args)]
struct Options {
    /// Image that runs etcd 3.5, with etcdctl and etcdutl
    #[arg(
        long,
        env = "RELATED_IMAGE_ETCD_3_5",
        default_value = "gcr.io/etcd-development/etcd:v3.5.34",
        value_name = "IMAGE"
    )]
    image_3_5: String,
    /// Image that runs etcd 3.6, with etcdctl and etcdutl
    #[arg(
        long,
        env = "RELATED_IMAGE_ETCD_3_6",
        default_value = "gcr.io/etcd-development/etcd:v3.6.16",
        value_name = "IMAGE"
    )]
    image_3_6: String,
}

fn main() -> ExitCode {
    operator_process::main::<EtcdCluster, Options, _>(NAME, env!("CARGO_PKG_VERSION"), control)
}

// ---- The controller: one for each namespace that is watched. ----

/// What every reconcile needs.
struct Context {
    operator: Operator,
    options: Options,
    etcd: Etcd,
    backoffs: Backoffs,
}

async fn control(operator: Operator, options: Options) {
    let mut namespaces = operator.watched.clone();
    if namespaces.is_empty() {
        namespaces.push(operator.namespace.clone());
    }
    let context = Context { operator, options, etcd: Etcd::default(), backoffs: Backoffs::default() };
    let context = Arc::new(context);
    join_all(namespaces.iter().map(|namespace| control_namespace(context.clone(), namespace))).await;
}

async fn control_namespace(context: Arc<Context>, namespace: &str) {
    let managed = watcher::Config::default().labels(&format!("app.kubernetes.io/managed-by={NAME}"));
    let operator = &context.operator;
    Controller::new(operator.api::<EtcdCluster>(namespace), watcher::Config::default())
        .owns(operator.api::<Pod>(namespace), managed)
        // Changes that come together are one reconcile, which then sees all of them.
        .with_config(Config::default().concurrency(8).debounce(Duration::from_millis(100)))
        .graceful_shutdown_on(operator.stopped())
        .run(reconcile, retry, context.clone())
        .for_each(log_queue)
        .await;
}

// ---- One reconcile: look, decide, act once, tell. It is called again and again, and begins with looking each time. ----

async fn reconcile(cluster: Arc<EtcdCluster>, context: Arc<Context>) -> Result<Requeue, ApiError> {
    // What an EtcdCluster owns goes with it: Kubernetes follows the owner references.
    if cluster.metadata.deletion_timestamp.is_some() || !context.operator.leadership.leads() {
        context.backoffs.clear(&*cluster);
        return Ok(Requeue::await_change());
    }
    if !claim(&*cluster, OPERATED_BY, &context.operator).await? {
        return Ok(Requeue::await_change());
    }
    // Without this Service the members do not find one another; without the rest they do.
    let blocked = held::<Service>(&cluster, &context.operator, &objects::peer_service(&cluster)).await?;
    let problem = apply_others(&cluster, &context).await?;
    let seen = observe(&cluster, &context).await?;
    let goal = Goal {
        size: usize::try_from(cluster.spec.size).unwrap_or(1),
        image: image(&cluster, &context).to_owned(),
    };
    let mut step = match blocked {
        Some(Problem { reason, message }) => Step::Wait(Wait { reason, message, degraded: true }),
        None => plan(&cluster.name_any(), &goal, &seen.observed),
    };
    if let Step::Act(action) = &step
        && context.operator.leadership.leads()
    {
        match act(action, &cluster, &context, &seen).await? {
            Ok(()) => {
                info!(cluster = cluster.name_any(), "{action}");
                let recorder = &context.operator.recorder;
                publish(recorder, &*cluster, EventType::Normal, action.reason(), &action.to_string()).await;
            }
            Err(wait) => step = Step::Wait(wait),
        }
    }
    let problem = match &step {
        Step::Wait(wait) if wait.degraded => {
            Some(Problem { reason: wait.reason, message: wait.message.clone() })
        }
        _ => problem,
    };
    // Pods are watched; etcd itself is not.
    let again = if step == Step::Settled && problem.is_none() { 60 } else { 2 };
    let before = cluster.status.clone().unwrap_or_default();
    let status = status_of(&cluster, &before, &seen, &step, problem);
    status::update(&*cluster, &context.operator, &before, &status, |status| &status.conditions).await?;
    context.backoffs.clear(&*cluster);
    Ok(Requeue::requeue(jittered(Duration::from_secs(again))))
}

/// After errors: later and later, for each EtcdCluster by itself.
fn retry(cluster: Arc<EtcdCluster>, error: &ApiError, context: Arc<Context>) -> Requeue {
    context.backoffs.retry(&*cluster, error)
}

/// The image of the version that is wanted.
fn image<'a>(cluster: &EtcdCluster, context: &'a Context) -> &'a str {
    match cluster.spec.version {
        Version::V35 => &context.options.image_3_5,
        Version::V36 => &context.options.image_3_6,
    }
}

/// What is neither a pod nor the Service between them. Returns what only a user can change.
async fn apply_others(cluster: &EtcdCluster, context: &Context) -> Result<Option<Problem>, ApiError> {
    let operator = &context.operator;
    let mut problems = vec![
        held::<Service>(cluster, operator, &objects::client_service(cluster)).await?,
        held::<PodDisruptionBudget>(cluster, operator, &objects::disruption_budget(cluster)).await?,
    ];
    if let Some(backup) = &cluster.spec.backup {
        let wanted = objects::backup(cluster, backup, image(cluster, context));
        problems.push(held::<CronJob>(cluster, operator, &wanted).await?);
    } else {
        let api: Api<CronJob> = operator.api(&cluster.namespace().unwrap_or_default());
        let name = objects::backup_name(cluster);
        let found = api.get_opt(&name).await.map_err(during("get the CronJob"))?;
        if found.is_some_and(|found| is_controlled_by(&found, cluster)) {
            let background = DeleteParams::background();
            gone(api.delete(&name, &background).await).map_err(during("delete the CronJob"))?;
        }
    }
    Ok(problems.into_iter().flatten().next())
}

async fn held<K>(
    cluster: &EtcdCluster,
    operator: &Operator,
    wanted: &Value,
) -> Result<Option<Problem>, ApiError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    match apply::<K>(cluster, operator, NAME, wanted).await {
        Ok(Applied::NameTaken(problem)) => Ok(Some(problem)),
        Ok(_) => Ok(None),
        Err(error) => match error.invalid() {
            Some(message) => Ok(Some(Problem { reason: "Refused", message: message.to_owned() })),
            None => Err(error),
        },
    }
}

// ---- Acting: one step. ----

/// Does one thing. etcd's own refusal is a reason to wait: it knows more of its members than anybody else.
async fn act(
    action: &Action,
    cluster: &EtcdCluster,
    context: &Context,
    seen: &Seen,
) -> Result<Result<(), Wait>, ApiError> {
    let pods: Api<Pod> = context.operator.api(&cluster.namespace().unwrap_or_default());
    let image = image(cluster, context);
    let create = async |name: &str, start: Start<'_>| {
        let pod = serde_json::from_value(objects::pod(cluster, name, image, &start))
            .expect("every field is one of a Pod");
        match pods.create(&PostParams::default(), &pod).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let message = format!("pod {name} exists and is not a member of this cluster: delete it");
                Ok(Err(Wait { reason: "NameTaken", message, degraded: true }))
            }
            created => created.map(|_| Ok(())).map_err(during(format!("create pod {name}"))),
        }
    };
    let (etcd, host) = (&context.etcd, seen.host());
    let told = match action {
        Action::Bootstrap { name } => return create(name, Start::New).await,
        Action::StartMember { name } => {
            let members = seen.members.iter().map(|one| format!("{}={}", one.pod(), one.peer_url()));
            return create(name, Start::Join(&members.collect::<Vec<_>>().join(","))).await;
        }
        Action::DeletePod { name } => {
            let deleted = pods.delete(name, &DeleteParams::default()).await;
            return gone(deleted).map(Ok).map_err(during(format!("delete pod {name}")));
        }
        Action::ChangeImage { name } => {
            // Without its id nobody could tell the next container from this one.
            let Some(container) = seen.container(name) else {
                let message = format!("the state of the container of {name} is not known yet");
                return Ok(Err(Wait { reason: "Restarting", message, degraded: false }));
            };
            let patch = json!({
                "metadata": {"annotations": {REPLACES: container}},
                "spec": {"containers": [{"name": CONTAINER, "image": image}]},
            });
            let patched = pods.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await;
            return patched.map(|_| Ok(())).map_err(during(format!("change the image of pod {name}")));
        }
        Action::AddLearner { name } => etcd.add_learner(host, &objects::peer_url(cluster, name)).await,
        Action::Promote { id, .. } => etcd.promote(host, *id).await,
        Action::Remove { id, .. } => etcd.remove(host, *id).await,
    };
    Ok(told.map_err(|error: EtcdError| Wait {
        reason: "EtcdRefuses",
        message: format!("etcd has not yet {action}: {error}"),
        degraded: false,
    }))
}

/// What is gone already need not be deleted.
fn gone<T>(deleted: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
    }
}

// ---- The status: the members, and the conditions. ----

/// The status that follows from what was seen: equal when nothing has changed, and then it is not written.
fn status_of(
    cluster: &EtcdCluster,
    before: &EtcdClusterStatus,
    seen: &Seen,
    step: &Step,
    problem: Option<Problem>,
) -> EtcdClusterStatus {
    let (members, ready) = seen.voters();
    let size = usize::try_from(cluster.spec.size).unwrap_or_default();
    let quorate = !members.is_empty() && ready >= quorum(members.len());
    let (reason, doing) = match step {
        Step::Act(action) => (action.reason(), action.to_string()),
        Step::Wait(wait) => (wait.reason, wait.message.clone()),
        Step::Settled => ("AsWanted", format!("all {size} members are as wanted")),
    };
    let claims = [
        Claim {
            kind: "Available",
            holds: quorate,
            reason: if quorate { "QuorumAnswers" } else { "NoQuorum" },
            message: format!("{ready} of {} members answer", members.len()),
        },
        Claim { kind: "Progressing", holds: *step != Step::Settled, reason, message: doing },
        Claim::degraded(problem),
    ];
    EtcdClusterStatus {
        cluster_id: before.cluster_id.clone().or_else(|| seen.cluster_id.clone()),
        members,
        ready_members: i32::try_from(ready).unwrap_or(i32::MAX),
        version: seen.version().or_else(|| before.version.clone()),
        selector: Some(objects::selector(cluster)),
        conditions: conditions(&before.conditions, cluster.metadata.generation, &claims),
    }
}

#[cfg(test)]
mod tests;
