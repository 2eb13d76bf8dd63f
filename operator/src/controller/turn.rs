//! One turn of one cluster: look at everything, plan, do what is this controller's to do, and tell how it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        core::v1::{PersistentVolumeClaim, Pod, Secret},
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::{controller::Action, reflector::Store},
};
use operator_lease::Leadership;
use operator_process::backoff::{Backoff, jittered};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tracing::info;

use super::{
    Memory, Object, Scope,
    cache::{Caches, Key},
    children::{self, DRAINED_ANNOTATION, IN_SYNC, Names},
    error::{ReconcileError, call},
    finalize::{FINALIZER, finalize},
    lasts,
    problem::Problem,
    status::{self, News, View},
};
use crate::{
    crd::{
        RedisCluster,
        v1::{LostSlots, QuorumLoss, RedisClusterStatus},
    },
    plan::{self, Goal, Lane, Observed, Plan, SLOTS, Step, Topology, Wait},
    server::{
        Access, Password,
        act::{ActError, Done, Permit, act},
        observe::observe,
    },
};

/// On a RedisCluster: the namespace of the operator that looks after it.
const OPERATED_BY: &str = "cache.example.com/operated-by";
/// A node that gave its slots away sends clients on for so long before it is removed.
const LEAVE_DELAY: Duration = Duration::from_secs(2);
/// Who writes, for server-side apply.
const MANAGER: &str = "redis-operator";
/// A settled cluster is looked at this often.
const STEADY: Duration = Duration::from_secs(30);
/// While slots move, the status follows this often.
const STATUS_PACE: Duration = Duration::from_secs(2);

/// Permits as long as the lease is held; a repair that waits stops a slot move.
struct Leading<'a> {
    leadership: &'a Leadership,
    repair_waits: Option<&'a AtomicBool>,
}

impl Permit for Leading<'_> {
    fn holds_for(&self, time: Duration) -> bool {
        self.leadership.holds_for(time)
    }

    fn should_yield(&self) -> bool {
        self.repair_waits.is_some_and(|waits| waits.load(Ordering::Relaxed))
    }
}

/// One reconcile of one cluster by one controller.
pub(super) struct Turn<'a> {
    pub(super) scope: &'a Scope,
    pub(super) lane: Lane,
    pub(super) cluster: &'a RedisCluster,
    pub(super) key: &'a Key,
    pub(super) object: &'a Object,
}

impl Turn<'_> {
    pub(super) fn backoff(&self) -> &Backoff {
        if self.lane == Lane::Health { &self.object.health } else { &self.object.topology }
    }

    pub(super) async fn take(&self, memory: &mut Memory) -> Result<Action, ReconcileError> {
        if let Some(other) = self.other_installation() {
            if !std::mem::replace(&mut memory.told_of_other, true) {
                self.scope.publish(self.cluster, other).await;
            }
            return Ok(Action::await_change());
        }
        memory.told_of_other = false;
        if self.cluster.metadata.deletion_timestamp.is_some() {
            return match self.lane {
                Lane::Health => Ok(Action::await_change()),
                Lane::Topology => finalize(self.scope, self.cluster, self.key).await,
            };
        }
        let claimed = self.cluster.annotations().contains_key(OPERATED_BY)
            && self.cluster.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        if !claimed {
            // The watch tells of it, and then this is the only installation that acts.
            if self.lane == Lane::Topology {
                self.claim().await?;
            }
            return Ok(Action::await_change());
        }

        let mut problem = self.invalid();
        match self.password().await? {
            Ok(password) => memory.password = Some(password),
            Err(missing) => problem = problem.or(Some(missing)),
        }
        let set = self.stateful_set().await?;
        let mut pods = self.pods(set.as_ref());
        let access = Access {
            port: self.scope.context.port,
            password: memory.password.clone(),
            metrics: self.scope.context.metrics.clone(),
        };
        let leadership = &self.scope.context.leadership;
        let open_keys = observe(&access, &Leading { leadership, repair_waits: None }, &mut pods).await;
        // Whoever lost the lease meanwhile has not seen everybody, and must not write what it makes of that.
        if !leadership.leads() {
            return Err(ActError::NotLeading.into());
        }
        let old = memory.status.clone().or_else(|| self.cluster.status.clone()).unwrap_or_default();
        let replicas = set.as_ref().and_then(|set| u32::try_from(set.spec.as_ref()?.replicas?).ok());
        let last_owners = status::last_owners(&old);
        let mut observed = Observed { pods, replicas, open_keys, last_owners, ..Observed::default() };
        let spec = &self.cluster.spec;
        let recovery = spec.recovery.unwrap_or_default();
        let goal = Goal {
            size: u32::try_from(spec.size).unwrap_or(1).max(1),
            replicas_per_shard: u32::try_from(spec.replicas_per_shard).unwrap_or(0),
            slots: SLOTS,
            initialized: old.initialized == Some(true),
            take_over: recovery.quorum_loss == QuorumLoss::Automatic,
            accept_data_loss: recovery.lost_slots == LostSlots::AcceptDataLoss,
        };
        let topology = Topology::of(goal, &observed);
        // While nobody answers nobody knows of a quorum, and those that come back first must not count that time.
        let quorum_lost = goal.initialized && !topology.core.is_empty() && !topology.has_quorum();
        let (drained, electing) = (!topology.drains(), topology.awaits_election());
        observed.takeover_due = lasts(&mut memory.quorum_lost, quorum_lost) >= self.takeover_delay();
        observed.election_due = lasts(&mut memory.electing, electing) >= self.takeover_delay();
        observed.leave_due = lasts(&mut memory.drained, drained) >= LEAVE_DELAY;
        let topology = Topology::of(goal, &observed);
        let plan = plan::plan(&topology);

        let mut done = Ok(Done::default());
        let rejecting = observed.pods.iter().filter(|pod| pod.password_rejected).count();
        if rejecting > 0 && topology.core.is_empty() {
            let name = Names::of(self.cluster).auth.0;
            problem = problem.or(Some(Problem::PasswordRejected { pods: rejecting, name }));
        }
        if spec.paused {
            problem = problem.or(Some(Problem::Paused));
        }
        if problem.is_none() && self.lane == Lane::Topology {
            problem = self.make_children(set.as_ref(), &topology, &plan).await?;
        }
        let update_revision = set.as_ref().and_then(|set| set.status.as_ref()?.update_revision.as_deref());
        // Also while something keeps the cluster from being changed: its pods come and go all the same.
        self.set_readiness(&topology).await?;
        if problem.is_none() {
            done = self.carry_out(&access, &plan).await;
            if self.lane == Lane::Topology {
                self.restart_stuck(&observed, update_revision).await?;
            }
        }
        let acted = done.as_ref().ok().filter(|done| done.actions > 0);
        memory.skipped = match acted {
            _ if plan.step != Step::Move => None,
            Some(done) => done.skipped.as_ref().map(ToString::to_string),
            // The other controller moves them.
            None => memory.skipped.take(),
        };
        problem = problem.or(memory.skipped.clone().map(Problem::KeyTooLarge));
        let now = Time(Timestamp::now());
        let view = View {
            cluster: self.cluster,
            topology: &topology,
            plan: &plan,
            problem: problem.as_ref(),
            update_revision,
            volume_size: set.as_ref().and_then(|set| self.other_volume_size(set)),
            now,
        };
        self.tell(memory, &old, &view).await?;
        // The other slots go on moving.
        let waits = if done?.slots > 0 { None } else { problem.as_ref() };
        Ok(self.next(&plan, waits))
    }

    /// Tells of another installation of the operator that looks after this cluster.
    fn other_installation(&self) -> Option<News> {
        let installation = &self.scope.context.installation;
        let other = self.cluster.annotations().get(OPERATED_BY).filter(|other| *other != installation)?;
        let name = &self.key.1;
        Some(News::warning(
            "OperatedByOther",
            format!(
                "the operator in namespace `{other}` manages this RedisCluster, so the one in `{installation}` ignores it; once the other is uninstalled, run `kubectl annotate rediscluster {name} {OPERATED_BY}-`"
            ),
        ))
    }

    /// Takes a cluster that no installation looks after. Of two that try, the one whose write comes second is refused.
    async fn claim(&self) -> Result<(), ReconcileError> {
        let mut finalizers = self.cluster.finalizers().to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        let patch = json!({"metadata": {
            "annotations": {OPERATED_BY: self.scope.context.installation},
            "finalizers": finalizers,
            "resourceVersion": self.cluster.resource_version(),
        }});
        let api: Api<RedisCluster> = self.scope.api(self.key);
        self.scope.context.metrics.api_write("RedisCluster");
        let leadership = &self.scope.context.leadership;
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        call("patch", "RedisCluster", api.patch(&self.key.1, &parameters, &patch), leadership).await?;
        Ok(())
    }

    /// The size of the volumes, where it is not what the spec says: Kubernetes lets nobody change a StatefulSet's claims.
    fn other_volume_size<'s>(&self, set: &'s StatefulSet) -> Option<&'s str> {
        let wanted = &self.cluster.spec.storage.as_ref()?.size.0;
        let claims = set.spec.as_ref()?.volume_claim_templates.as_ref()?;
        let requests = claims.first()?.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
        let found = &requests.get("storage")?.0;
        (!children::holds(&json!(wanted), &json!(found))).then_some(found.as_str())
    }

    /// Three node timeouts: a majority that comes back by itself is back by then.
    fn takeover_delay(&self) -> Duration {
        Duration::from_millis(self.scope.context.defaults.node_timeout_ms.into()) * 3
    }

    /// The StatefulSet. The cache may lack one that is there.
    async fn stateful_set(&self) -> Result<Option<StatefulSet>, ReconcileError> {
        if let Some(set) = Caches::child(&self.scope.caches.stateful_sets, self.key, &self.key.1) {
            return Ok(Some((*set).clone()));
        }
        let api: Api<StatefulSet> = self.scope.api(self.key);
        let leadership = &self.scope.context.leadership;
        call("get", "StatefulSet", api.get_opt(&self.key.1), leadership).await
    }

    /// What the API refuses today may have been stored before, or come from an older version of it.
    fn invalid(&self) -> Option<Problem> {
        let spec = &self.cluster.spec;
        if !(1..=500).contains(&spec.size) {
            Some(Problem::InvalidSpec("spec.size must be between 1 and 500"))
        } else if !(0..=5).contains(&spec.replicas_per_shard) {
            Some(Problem::InvalidSpec("spec.replicasPerShard must be between 0 and 5"))
        } else if spec.size % (1 + spec.replicas_per_shard) != 0 {
            Some(Problem::InvalidSpec("spec.size must be a multiple of 1 + spec.replicasPerShard"))
        } else if self.key.1.len() > 52 {
            Some(Problem::InvalidSpec("metadata.name must have at most 52 characters"))
        } else {
            None
        }
    }

    /// The password, or what is missing for it.
    async fn password(&self) -> Result<Result<Password, Problem>, ReconcileError> {
        let (name, secret_key) = Names::of(self.cluster).auth;
        let own = self.cluster.spec.auth.is_none();
        let api: Api<Secret> = self.scope.api(self.key);
        // The user's Secrets are not watched: there may be any number of them.
        let cached = if own { Caches::child(&self.scope.caches.secrets, self.key, &name) } else { None };
        let secret = match cached {
            Some(secret) => Some((*secret).clone()),
            None => call("get", "Secret", api.get_opt(&name), &self.scope.context.leadership).await?,
        };
        let secret = match secret {
            Some(secret) if own && !self.owns(&secret) => {
                return Ok(Err(Problem::NameTaken { kind: "Secret", name }));
            }
            Some(secret) => secret,
            // A new password would not be the one that the pods have.
            None if own && !self.has_pods().await? => {
                let secret = children::auth_secret(self.cluster, &new_password());
                self.scope.context.metrics.api_write("Secret");
                call(
                    "create",
                    "Secret",
                    api.create(&PostParams::default(), &secret),
                    &self.scope.context.leadership,
                )
                .await?
            }
            None => return Ok(Err(Problem::SecretMissing { name, key: secret_key })),
        };
        let Some(value) = secret.data.as_ref().and_then(|data| data.get(&secret_key)) else {
            return Ok(Err(Problem::KeyMissing { name, key: secret_key }));
        };
        let text = std::str::from_utf8(&value.0).unwrap_or_default().trim_end_matches('\n');
        let usable = (8..=512).contains(&text.len())
            && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\');
        Ok(if usable { Ok(Password::new(text.into())) } else { Err(Problem::PasswordUnusable { name }) })
    }

    async fn has_pods(&self) -> Result<bool, ReconcileError> {
        Ok(self.stateful_set().await?.is_some())
    }

    /// Whether the object is a child of this very cluster, not of an earlier one of its name.
    fn owns(&self, object: &impl ResourceExt) -> bool {
        let uid = self.cluster.uid();
        object
            .owner_references()
            .iter()
            .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
    }

    fn pods(&self, set: Option<&StatefulSet>) -> Vec<plan::Pod> {
        let Some(set) = set.filter(|set| self.owns(*set)) else { return vec![] };
        let (uid, prefix) = (set.uid(), format!("{}-", self.key.1));
        let mut pods: Vec<plan::Pod> = self
            .scope
            .caches
            .pods
            .state()
            .iter()
            .filter(|pod| pod.namespace().as_deref() == Some(&self.key.0))
            // A pod of another's at an address of ours must never be spoken with as one of ours.
            .filter(|pod| pod.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref()))
            .filter_map(|pod| seen_pod(pod, &prefix))
            .collect();
        pods.sort_by_key(|pod| pod.ordinal);
        pods
    }

    async fn make_children(
        &self,
        found: Option<&StatefulSet>,
        topology: &Topology<'_>,
        plan: &Plan,
    ) -> Result<Option<Problem>, ReconcileError> {
        let (cluster, defaults, caches) = (self.cluster, &self.scope.context.defaults, &self.scope.caches);
        let mut set = children::stateful_set(cluster, defaults, plan.replicas);
        if let Some(found) = found {
            if let (Some(wanted), Some(found)) = (&mut set.spec, &found.spec) {
                // Kubernetes lets nobody change them.
                wanted.volume_claim_templates.clone_from(&found.volume_claim_templates);
            }
            if topology.observed.replicas.is_some_and(|replicas| plan.replicas < replicas) {
                // What was seen of the pods is about this version of it.
                set.metadata.resource_version = found.resource_version();
            }
        }
        let [headless, client] = children::services(cluster);
        let problem = match self
            .ensure("ConfigMap", &caches.config_maps, &children::config_map(cluster, defaults))
            .await?
        {
            None => self.ensure("Service", &caches.services, &headless).await?,
            problem => problem,
        };
        let problem = match problem {
            None => self.ensure("Service", &caches.services, &client).await?,
            problem => problem,
        };
        let problem = match problem {
            None => {
                let budget = children::disruption_budget(cluster, status::all_in_sync(topology));
                self.ensure("PodDisruptionBudget", &caches.budgets, &budget).await?
            }
            problem => problem,
        };
        let problem = match problem {
            None => {
                self.ensure("NetworkPolicy", &caches.policies, &children::network_policy(cluster)).await?
            }
            problem => problem,
        };
        if problem.is_some() {
            return Ok(problem);
        }
        self.mark_drained(topology, plan).await?;
        let problem = self.ensure("StatefulSet", &caches.stateful_sets, &set).await?;
        if problem.is_none() {
            self.delete_drained(topology, plan).await?;
        }
        Ok(problem)
    }

    /// The claims of this cluster's volumes, with the ordinals of their pods.
    fn claims(&self) -> impl Iterator<Item = (u32, Arc<PersistentVolumeClaim>)> {
        let prefix = children::claim_name(&self.key.1, 0);
        let prefix = prefix.trim_end_matches('0').to_owned();
        let claims = self.scope.caches.claims.state().into_iter();
        let namespace = self.key.0.clone();
        claims
            .filter(move |claim| claim.namespace().as_deref() == Some(&*namespace))
            .filter_map(move |claim| Some((claim.name_any().strip_prefix(&prefix)?.parse().ok()?, claim)))
    }

    /// Before pods go: marks the claims of those whose nodes answered and were reset, and of no others. Before pods come: takes
    /// the mark from claims that are used again.
    async fn mark_drained(&self, topology: &Topology<'_>, plan: &Plan) -> Result<(), ReconcileError> {
        let observed = topology.observed;
        let drained = |ordinal: u32| {
            ordinal >= plan.replicas
                && observed
                    .pods
                    .iter()
                    .any(|pod| pod.ordinal == ordinal && pod.redis.as_ref().is_some_and(|node| node.blank()))
        };
        for (ordinal, claim) in self.claims() {
            let marked = claim.annotations().contains_key(DRAINED_ANNOTATION);
            let mark = match (marked, ordinal) {
                (false, ordinal) if drained(ordinal) => json!("true"),
                (true, ordinal) if ordinal < plan.replicas => serde_json::Value::Null,
                _ => continue,
            };
            let patch = json!({"metadata": {
                "annotations": {DRAINED_ANNOTATION: mark},
                "resourceVersion": claim.resource_version(),
                "uid": claim.uid(),
            }});
            let api: Api<PersistentVolumeClaim> = self.scope.api(self.key);
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
            self.scope.context.metrics.api_write("PersistentVolumeClaim");
            let (name, leadership) = (claim.name_any(), &self.scope.context.leadership);
            call("patch", "PersistentVolumeClaim", api.patch(&name, &parameters, &patch), leadership).await?;
        }
        Ok(())
    }

    /// Deletes the claims of nodes that were drained, once the StatefulSet has no such pod any more.
    async fn delete_drained(&self, topology: &Topology<'_>, plan: &Plan) -> Result<(), ReconcileError> {
        let observed = topology.observed;
        let Some(replicas) = observed.replicas else { return Ok(()) };
        for (ordinal, claim) in self.claims() {
            let used = ordinal < plan.replicas.max(replicas)
                || observed.pods.iter().any(|pod| pod.ordinal == ordinal);
            let marked = claim.annotations().contains_key(DRAINED_ANNOTATION);
            if used || !marked || claim.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let (api, name): (Api<PersistentVolumeClaim>, _) = (self.scope.api(self.key), claim.name_any());
            info!(claim = name, "deleting the volume of a drained node");
            self.scope.context.metrics.api_write("PersistentVolumeClaim");
            let (parameters, leadership) = (exactly(&*claim), &self.scope.context.leadership);
            let deleted =
                call("delete", "PersistentVolumeClaim", api.delete(&name, &parameters), leadership).await;
            match deleted {
                Err(error) if matches!(error.answer(), Some((404, _))) => {}
                result => drop(result?),
            }
        }
        Ok(())
    }

    /// Applies an object unless it is there as wanted. One that belongs to somebody else stays as it is.
    async fn ensure<K>(
        &self,
        kind: &'static str,
        store: &Store<K>,
        wanted: &K,
    ) -> Result<Option<Problem>, ReconcileError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned
            + 'static,
    {
        let (api, name): (Api<K>, String) = (self.scope.api(self.key), wanted.name_any());
        let found = match Caches::child(store, self.key, &name) {
            Some(found) => Some((*found).clone()),
            // Those without our label are not watched.
            None => call("get", kind, api.get_opt(&name), &self.scope.context.leadership).await?,
        };
        let encode = |object: &K| {
            serde_json::to_value(object).map_err(|source| ReconcileError::Encode { kind, source })
        };
        let there = found.is_some();
        if let Some(found) = found {
            if !self.owns(&found) {
                return Ok(Some(Problem::NameTaken { kind, name }));
            }
            if children::holds(&encode(wanted)?, &encode(&found)?) {
                return Ok(None);
            }
        }
        info!(kind, object = name, "apply");
        self.scope.context.metrics.api_write(kind);
        let (parameters, leadership) = (PatchParams::apply(MANAGER).force(), &self.scope.context.leadership);
        let applied =
            call("patch", kind, api.patch(&name, &parameters, &Patch::Apply(wanted)), leadership).await;
        let refused = |error: &ReconcileError| {
            error.answer().filter(|(code, _)| [400, 403, 422].contains(code)).map(|(_, said)| said.to_owned())
        };
        let beside = match &applied {
            Ok(made) => !children::holds(&encode(wanted)?, &encode(made)?),
            Err(error) => refused(error).is_some(),
        };
        let result = if there && beside {
            // What others put into a list, a second port for one, stays beside ours. This replaces the list.
            self.scope.context.metrics.api_write(kind);
            let parameters = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
            call("patch", kind, api.patch(&name, &parameters, &Patch::Merge(wanted)), leadership).await
        } else {
            applied
        };
        match result {
            Ok(_) => Ok(None),
            Err(error) => match refused(&error) {
                Some(message) => Ok(Some(Problem::Refused { kind, name, message })),
                None => Err(error),
            },
        }
    }

    /// A pod that cannot start gets the template that was corrected since: it serves nobody, so nothing is lost. All others
    /// wait for whoever rolls them one by one.
    async fn restart_stuck(&self, observed: &Observed, revision: Option<&str>) -> Result<(), ReconcileError> {
        let stuck = observed.pods.iter().filter(|pod| {
            let outdated = revision.is_some() && pod.revision.as_deref() != revision;
            outdated && pod.trouble.is_some() && pod.redis.is_none() && !pod.terminating
        });
        for pod in stuck {
            let api: Api<Pod> = self.scope.api(self.key);
            info!(pod = pod.name, "restarting a pod that cannot start");
            self.scope.context.metrics.api_write("Pod");
            let Some(seen) = Caches::child(&self.scope.caches.pods, self.key, &pod.name)
                .filter(|seen| seen.uid().as_deref() == Some(&pod.uid))
            else {
                continue;
            };
            let (parameters, leadership) = (exactly(&*seen), &self.scope.context.leadership);
            match call("delete", "Pod", api.delete(&pod.name, &parameters), leadership).await {
                // Replaced or gone meanwhile, which is what was wanted.
                Err(error) if matches!(error.answer(), Some((404 | 409, _))) => {}
                result => drop(result?),
            }
        }
        Ok(())
    }

    /// Sets the condition of each pod that says whether its node is in sync with its shard, where that is a readiness gate of
    /// the pod. A node that does not answer keeps its condition, unless the kubelet finds its containers not ready: whatever
    /// runs there next has to prove itself again.
    async fn set_readiness(&self, topology: &Topology<'_>) -> Result<(), ReconcileError> {
        for pod in &topology.observed.pods {
            let seen = Caches::child(&self.scope.caches.pods, self.key, &pod.name);
            let Some(seen) = seen.filter(|seen| seen.uid().as_deref() == Some(&pod.uid)) else { continue };
            let Some(in_sync) = status::readiness(topology, pod, &seen) else { continue };
            let status = if in_sync { "True" } else { "False" };
            let patch = json!({
                "metadata": {"uid": pod.uid},
                "status": {"conditions": [{
                    "type": IN_SYNC, "status": status, "lastTransitionTime": Time(Timestamp::now()),
                }]},
            });
            let api: Api<Pod> = self.scope.api(self.key);
            self.scope.context.metrics.api_write("Pod/status");
            let (parameters, patch) = (PatchParams::default(), Patch::Strategic(patch));
            let leadership = &self.scope.context.leadership;
            let patched =
                call("patch", "Pod/status", api.patch_status(&pod.name, &parameters, &patch), leadership);
            match patched.await {
                // Replaced or gone meanwhile.
                Err(error) if matches!(error.answer(), Some((404 | 409, _))) => {}
                result => drop(result?),
            }
        }
        Ok(())
    }

    /// Acts when the plan is this controller's business, and wakes the other when it is not.
    async fn carry_out(&self, access: &Access, plan: &Plan) -> Result<Done, ReconcileError> {
        let moving = matches!(plan.step, Step::Move | Step::Shrink | Step::Roles | Step::CloseSlots);
        self.scope.context.upgradeable.set(self.key, moving);
        if plan.actions.is_empty() {
            return Ok(Done::default());
        }
        if plan.step.lane() != self.lane {
            self.scope.caches.queue(plan.step.lane()).add(self.key);
            return Ok(Done::default());
        }
        let repair_waits = (self.lane == Lane::Topology).then_some(&self.object.repair_waits);
        let permit = Leading { leadership: &self.scope.context.leadership, repair_waits };
        let result = act(access, &permit, &plan.actions).await;
        let carried_out = result.as_ref().map_or(0, |done| done.actions);
        info!(step = ?plan.step, actions = plan.actions.len(), carried_out, "acted");
        if result.is_ok() {
            self.repaired(plan).await;
        }
        Ok(result?)
    }

    async fn repaired(&self, plan: &Plan) {
        let metrics = &self.scope.context.metrics;
        let count = plan.actions.len();
        let news = match plan.step {
            Step::HealAddresses => {
                metrics.repaired("addresses");
                News::normal("AddressesHealed", "told nodes the new addresses of others")
            }
            Step::Relink => {
                metrics.repaired("replication");
                News::normal(
                    "ReplicationRepaired",
                    format!("connected {count} replicas to their primaries again"),
                )
            }
            Step::CloseSlots => {
                metrics.repaired("open_slots");
                News::warning("OpenSlotRepaired", "finished slots that were left half-way")
            }
            Step::Forget => {
                metrics.repaired("ghosts");
                News::normal("MemberForgotten", "struck nodes that are gone from the tables")
            }
            Step::TakeOver => {
                metrics.failover(&self.key.0, &self.key.1, "takeover");
                News::warning(
                    "TakeoverPerformed",
                    "a replica took over without a vote because the majority of the primaries is down",
                )
            }
            Step::Elect => {
                metrics.failover(&self.key.0, &self.key.1, "forced");
                News::warning(
                    "ElectionForced",
                    "a replica that Redis did not elect by itself asked for votes",
                )
            }
            Step::AcceptLoss => News::warning(
                "LostSlotsAssigned",
                "spec.recovery.lostSlots is AcceptDataLoss: assigning lost slots to other nodes, without their keys",
            ),
            Step::Roles
                if plan.actions.iter().any(|action| matches!(action, plan::Action::Failover { .. })) =>
            {
                metrics.failover(&self.key.0, &self.key.1, "planned");
                News::normal("FailoverStarted", "a primary that leaves hands over to its replica")
            }
            _ => return,
        };
        self.scope.publish(self.cluster, news).await;
    }

    /// Writes the status if it changed, and says what is new in it.
    async fn tell(
        &self,
        memory: &mut Memory,
        old: &RedisClusterStatus,
        view: &View<'_>,
    ) -> Result<(), ReconcileError> {
        let context = &self.scope.context;
        let new = status::status(old, view);
        context.metrics.cluster(&self.key.0, &self.key.1, &status::gauges(view, &new));
        if new == *old {
            memory.status = Some(new);
            return Ok(());
        }
        let recent = memory.written.is_some_and(|written| written.elapsed() < STATUS_PACE);
        if view.plan.step == Step::Move && recent && new.phase == old.phase {
            return Ok(());
        }
        let api: Api<RedisCluster> = self.scope.api(self.key);
        let patch = json!({
            "apiVersion": RedisCluster::api_version(&()), "kind": RedisCluster::kind(&()), "status": new,
        });
        let parameters = PatchParams::apply("redis-operator-status").force();
        context.metrics.api_write("RedisCluster/status");
        call(
            "patch",
            "RedisCluster/status",
            api.patch_status(&self.key.1, &parameters, &Patch::Apply(patch)),
            &context.leadership,
        )
        .await?;
        for pod in status::failed_over(old, &new) {
            info!(pod, "a replica took over");
            context.metrics.failover(&self.key.0, &self.key.1, "observed");
        }
        for news in status::news(old, &new, self.cluster.spec.size) {
            if news.reason == "MemberReplaced" {
                context.metrics.member_replaced();
            }
            info!(reason = news.reason, note = news.note, "event");
            self.scope.publish(self.cluster, news).await;
        }
        memory.status = Some(new);
        memory.written = Some(Instant::now());
        self.count_phases();
        Ok(())
    }

    fn count_phases(&self) {
        const PHASES: [&str; 8] =
            ["Creating", "Ready", "Scaling", "Updating", "Healing", "Degraded", "Failed", "Deleting"];
        let mut counts = PHASES.map(|phase| (phase, 0));
        for cluster in self.scope.caches.clusters.state() {
            let phase =
                cluster.status.as_ref().and_then(|status| status.phase).map(|phase| format!("{phase:?}"));
            for (name, count) in &mut counts {
                *count += i64::from(phase.as_deref() == Some(*name));
            }
        }
        self.scope.context.metrics.phases(counts);
    }

    /// When to look again, if nothing changes before.
    fn next(&self, plan: &Plan, problem: Option<&Problem>) -> Action {
        let other = plan.step.lane() != self.lane;
        let wait = match (problem, plan.step) {
            (Some(_), _) => jittered(STEADY),
            (None, Step::Settled) => jittered(STEADY),
            (None, Step::Wait(Wait::DataLost | Wait::SlotsLost | Wait::Stranger | Wait::Memory)) => {
                jittered(STEADY)
            }
            (None, Step::Wait(Wait::Quorum)) => Duration::from_secs(1),
            // The other controller was woken.
            (None, _) if other => jittered(Duration::from_secs(5)),
            (None, Step::Wait(Wait::Pods)) => jittered(Duration::from_secs(3)),
            (None, Step::Wait(_)) => Duration::from_millis(300),
            (None, _) => Duration::from_millis(20),
        };
        Action::requeue(wait)
    }
}

/// Deletes this very object, as it was seen.
pub(super) fn exactly(object: &impl ResourceExt) -> DeleteParams {
    let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

/// 32 letters and digits: 160 bits.
fn new_password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 32];
    let random = rustls::crypto::ring::default_provider().secure_random;
    // The system's random numbers do not end. A password of zeros must never be.
    assert!(random.fill(&mut bytes).is_ok(), "no random numbers");
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

fn seen_pod(pod: &Pod, prefix: &str) -> Option<plan::Pod> {
    let name = pod.name_any();
    let status = pod.status.as_ref();
    let waiting = status
        .and_then(|status| status.container_statuses.as_ref())
        .into_iter()
        .flatten()
        .find_map(|container| container.state.as_ref()?.waiting.as_ref());
    // These two are every pod's beginning.
    let waiting = waiting.filter(|waiting| {
        !matches!(waiting.reason.as_deref(), Some("ContainerCreating" | "PodInitializing") | None)
    });
    let unscheduled = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let trouble = match (waiting, unscheduled) {
        (Some(waiting), _) => Some((waiting.reason.as_deref(), waiting.message.as_deref())),
        (None, Some(condition)) => Some((condition.reason.as_deref(), condition.message.as_deref())),
        (None, None) => None,
    };
    let conditions = || status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let is_true =
        |kind: &str| conditions().any(|condition| condition.type_ == kind && condition.status == "True");
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_ref());
    let waits_for_gate = gates.into_iter().flatten().any(|gate| !is_true(&gate.condition_type));
    Some(plan::Pod {
        ordinal: name.strip_prefix(prefix)?.parse().ok()?,
        uid: pod.uid().unwrap_or_default(),
        ip: status.and_then(|status| status.pod_ip.as_ref()).and_then(|ip| ip.parse().ok()),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        // Of a node that is lost, Kubernetes takes back `Ready` alone.
        containers_ready: is_true("ContainersReady") && (is_true("Ready") || waits_for_gate),
        password_rejected: false,
        host: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        trouble: trouble.map(|(reason, message)| {
            format!(
                "{}: {}",
                reason.unwrap_or_default(),
                message.unwrap_or_default().chars().take(300).collect::<String>()
            )
        }),
        revision: pod.labels().get("controller-revision-hash").cloned(),
        redis: None,
        name,
    })
}
