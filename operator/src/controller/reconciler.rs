//! One reconcile of one cluster: observe everything, plan, act, and update the status.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        core::v1::{ConfigMap, Pod, PodSpec, Secret},
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{controller::Action, reflector::Store},
};
use operator_lease::Leadership;
use operator_process::backoff::jittered;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tracing::{info, warn};

use super::{
    HostState, Memory, Scope,
    cache::{Caches, Key, Queue},
    children::{self, IN_SYNC, Live},
    downgrade::downgrade,
    error::{ReconcileError, call},
    finalize::{FINALIZER, finalize},
    hibernate, known, lasts,
    live::{self, Record},
    memory,
    names::Names,
    notices::{self, Notice},
    outdated::{self, has_password_files, is_outdated},
    packed::Packed,
    passwords::{Credentials, Rotation},
    preconditions::exactly,
    problem::{self, Problem},
    promotions::Promotions,
    scripts::own_directives,
    status::{self, View},
    tls::{self, Certificate, Loaded},
    trouble::{other_container_fails, redis_has_ended, redis_is_ready, trouble},
    upgradeable::Work,
    users::{Users, Wanted},
};
use crate::{
    crd::{
        RedisCluster,
        check::wrong_values,
        v1::{LostSlots, QuorumLoss, RedisClusterStatus, UpdateStrategy},
    },
    plan::{self, Goal, Observed, Plan, SLOTS, Step, Topology, Wait},
    server::{
        Access,
        act::{ActError, Done, HOLD, Permit, act},
        configure::{Refusal, configure},
        observe::observe,
        passwords::{self, Allowed},
    },
    telemetry::chain,
};

/// Annotation on a RedisCluster: the namespace of the operator that manages it.
const OPERATED_BY: &str = "cache.example.com/operated-by";
/// How long a drained node redirects clients before it is removed.
const LEAVE_DELAY: Duration = Duration::from_secs(2);
/// How long a node that responds may take to join.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);
/// How long clients may write before they are kept from it again, if pods could not be stopped meanwhile.
const NEXT_HOLD: Duration = Duration::from_secs(300);
/// Field manager for server-side apply.
const MANAGER: &str = "redis-operator";
/// How often a settled cluster is reconciled.
const STEADY: Duration = Duration::from_secs(30);
/// A pod should respond within this time.
const OVERDUE: Duration = Duration::from_secs(300);
/// How often the status is updated while slots migrate.
const STATUS_PACE: Duration = Duration::from_secs(2);

/// Permits actions as long as the lease is held. Slot migration is interrupted as soon as something about the cluster changed.
struct Leading<'a> {
    leadership: &'a Leadership,
    queue: &'a Queue,
    key: &'a Key,
}

impl Permit for Leading<'_> {
    fn holds_for(&self, time: Duration) -> bool {
        self.leadership.holds_for(time)
    }

    fn should_yield(&self) -> bool {
        self.queue.contains(self.key)
    }
}

/// What became of the directives that Redis takes while it runs.
#[derive(Default)]
struct LiveConfig {
    /// Nodes that responded and have not taken them.
    pending: usize,
    /// Why not, if Redis said so.
    refusal: Option<Refusal>,
}

/// One reconcile of one cluster.
pub(super) struct Reconciler<'a> {
    pub(super) scope: &'a Scope,
    pub(super) cluster: &'a RedisCluster,
    pub(super) key: &'a Key,
}

impl Reconciler<'_> {
    pub(super) async fn reconcile(&self, memory: &mut Memory) -> Result<Action, ReconcileError> {
        if let Some(other) = self.other_installation() {
            if !std::mem::replace(&mut memory.told_of_other, true) {
                self.scope.publish(self.cluster, other).await;
            }
            return Ok(Action::await_change());
        }
        memory.told_of_other = false;
        if self.cluster.metadata.deletion_timestamp.is_some() {
            return finalize(self.scope, self.cluster, self.key).await;
        }
        let claimed = self.cluster.annotations().contains_key(OPERATED_BY)
            && self.cluster.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        if !claimed {
            // The watch brings the claimed object back; from then on only this installation acts.
            self.claim().await?;
            return Ok(Action::await_change());
        }

        let mut problem = self.invalid();
        match self.credentials().await? {
            Ok(credentials) => memory.credentials = Some(credentials),
            Err(missing) => problem = problem.or(Some(missing)),
        }
        let credentials = memory.credentials.clone();
        let set = self.stateful_set().await?;
        let found = self.config_map().await?;
        let adopted = outdated::annotated(set.as_ref(), found.as_ref());
        let (own_set, own_config) =
            (set.as_ref().filter(|set| self.owns(*set)), found.as_ref().filter(|found| self.owns(*found)));
        let (secret, changed) = tls::secret_of(self.cluster, own_set, own_config);
        problem = problem.or(changed);
        let certificate = self.certificate(memory, secret).await?;
        let removals = Record::next(self.cluster, found.as_ref()).removals;
        let mut pods = self.pods(set.as_ref(), adopted, removals);
        if self.cluster.spec.replicas_per_shard > 0 {
            for pod in &mut pods {
                pod.zone = self.scope.zone(pod.host.as_deref()).await;
            }
        }
        let access = Access {
            port: self.scope.context.port,
            host: Some(format!(".{}.{}.", Names::of(self.cluster).headless, self.key.0)),
            trust: certificate.as_ref().map(|_| memory.trust.clone().unwrap_or_default()),
            password: credentials.as_ref().map(|found| found.password.clone()),
            previous: credentials.as_ref().and_then(|found| found.previous.clone()),
            metrics: self.scope.context.metrics.clone(),
        };
        // Only what is observed while it lasts.
        let holds = memory.held.is_some_and(|since| since.elapsed() < HOLD / 2);
        let leadership = &self.scope.context.leadership;
        let permit = Leading { leadership, queue: &self.scope.caches.queue, key: self.key };
        let open_keys = observe(&access, &permit, &mut pods).await;
        // An operator that lost the lease meanwhile stopped asking, so what it observed is incomplete.
        if !leadership.leads() {
            return Err(ActError::NotLeading.into());
        }
        let replicas = set.as_ref().and_then(|set| u32::try_from(set.spec.as_ref()?.replicas?).ok());
        let asleep = self.cluster.spec.hibernated && replicas == Some(0);
        // All pods that were stopped come back first.
        let before = set.as_ref().filter(|_| !asleep).and_then(hibernate::pods_before);
        let replicas = replicas.max(before);
        let all_known = replicas.is_some_and(|replicas| pods.len() >= replicas as usize);
        // Before anything else: keys migrate only to a node that accepts the password.
        let stopped = problem.is_some() || self.cluster.spec.paused || asleep;
        if let Some(credentials) = credentials.as_ref().filter(|found| !stopped && found.problem.is_none()) {
            let with_files = pods.iter().all(|pod| pod.has_password_files);
            let allowed =
                Allowed { all_known, removal: with_files && credentials.has_reached_files(Timestamp::now()) };
            passwords::change(&access, &permit, &mut pods, allowed).await;
        }
        let old = memory.status.clone().or_else(|| self.cluster.status.clone()).unwrap_or_default();
        let users = std::mem::take(&mut memory.users);
        let users = self.users(users, &access, (!stopped).then_some(&permit), &pods, (&old, all_known)).await;
        let mut loaded = None;
        if let Some(certificate) = &certificate {
            loaded = Some(tls::load(&access, &permit, certificate, &mut memory.loads, &pods, !stopped).await);
        }
        let rotation = Rotation::of(&access, &pods);
        if rotation != Rotation::None {
            // Their probes would go on with the old password.
            for pod in &mut pods {
                pod.outdated |= !pod.has_password_files;
            }
        }
        // The phase may have been another one meanwhile.
        let woken = before.is_some() || hibernate::was_hibernated(&old);
        let left_open = std::mem::take(&mut memory.left_open);
        let mut observed = Observed { pods, replicas, open_keys, left_open, holds, ..known::observed(&old) };
        let spec = &self.cluster.spec;
        let uncertified = certificate.as_ref().and_then(|certificate| certificate.problem.clone());
        // The API server is asked before clients are held: its answer must not differ from what watches have only then.
        observed.keeps_volumes = match set.as_ref().filter(|_| spec.hibernated && !asleep) {
            Some(set) if self.seems_to_keep_volumes(set) => self.keeps_volumes(set).await.unwrap_or(false),
            _ => false,
        };
        if memory.holding.is_some_and(|since| since.elapsed() >= HOLD) {
            (memory.holding, memory.let_go) = (None, Some(Instant::now()));
        }
        observed.let_go = memory.let_go.is_some_and(|since| since.elapsed() < NEXT_HOLD);
        let goal = Goal {
            initialized: old.initialized == Some(true),
            // Pods are not stopped while none could start again.
            hibernated: spec.hibernated && (asleep || uncertified.is_none()),
            ..self.goal(&observed)
        };
        // The planner needs it; it changes nothing of the topology.
        let promotions = memory.promotions.get_or_insert_with(|| Promotions::new(Instant::now()));
        observed.promoted =
            promotions.see(&Topology::of(goal, &observed), self.promotion_pause(), Instant::now());
        let first = memory.copies.is_none();
        let before = memory.copies.take().unwrap_or_else(|| known::from_status(&old));
        observed.copies = before.next(&Topology::of(goal, &observed), first);
        memory.copies = Some(observed.copies.clone());
        let topology = Topology::of(goal, &observed);
        // While no node responds, nothing is known about the quorum, so that time does not count.
        let quorum_lost = goal.initialized && !topology.core.is_empty() && !topology.has_quorum();
        let (electing, outside) = (topology.awaits_election(), !topology.outsiders.is_empty());
        let outside_lately = memory.outsiders.see(&topology, Instant::now());
        observed.takeover_due = lasts(&mut memory.quorum_lost, quorum_lost) >= self.takeover_delay();
        observed.election_due = lasts(&mut memory.electing, electing) >= self.takeover_delay();
        observed.leave_due = memory.moved.get_or_insert_with(Instant::now).elapsed() >= LEAVE_DELAY;
        observed.join_overdue = lasts(&mut memory.outside, outside) >= JOIN_PATIENCE;
        observed.outside_lately = outside_lately;
        observed.unrest = memory.unrest.lasts(&observed.pods, Instant::now());
        if observed.takeover_due || observed.election_due {
            let ordinals = Topology::of(goal, &observed).missing_ordinals();
            observed.without_claim = self.without_claim(&ordinals).await;
            self.confirm_ended(&mut observed.pods, &ordinals).await;
        }
        let topology = Topology::of(goal, &observed);
        let mut plan = plan::plan(&topology);
        let asleep = plan.step == Step::Hibernated;

        let knows_password = credentials.is_some();
        let unusable = credentials.and_then(|found| found.problem);
        // At the address of a pod that is not ready there may be a node of another cluster.
        let rejects =
            |pod: &&plan::Pod| pod.password_rejected && (pod.containers_ready || topology.core.is_empty());
        let pods = observed.pods.iter().filter(rejects).count();
        let name = Names::of(self.cluster).auth.0;
        let both = access.previous.is_some();
        let rejected = (pods > 0).then_some(Problem::PasswordRejected { pods, name, both });
        // The same of its certificate.
        let untrusted = certificate.as_ref().and_then(|certificate| {
            let ready = |pod: &&plan::Pod| pod.containers_ready || topology.core.is_empty();
            tls::untrusted(&certificate.secret, observed.pods.iter().filter(ready))
        });
        if rejected.is_some() && topology.core.is_empty() {
            problem = problem.or(unusable.clone()).or(rejected.clone());
        }
        if untrusted.is_some() && topology.core.is_empty() {
            problem = problem.or(uncertified.clone()).or(untrusted.clone());
        }
        if spec.paused {
            problem = problem.or(Some(Problem::Paused));
        }
        // A repair waits for no other object, whatever the API server says of those.
        let mut done = Ok(Done::default());
        let mut config = LiveConfig::default();
        let sizes = set.as_ref().filter(|_| !asleep).map(|set| self.volumes(set)).unwrap_or_default();
        let (mut cannot_grow, mut failed) = (None, None);
        let repairs = plan.step.is_repair();
        if problem.is_some() {
            memory.holding = None;
            self.release(&access, &permit, &topology).await;
        }
        // Without the Secret, no pod could start again; those that run are repaired with the password that it had.
        let secret_is_missing = knows_password && problem.as_ref().is_some_and(Problem::is_missing_secret);
        let needs_no_secret = repairs && !matches!(plan.step, Step::Hold | Step::Hibernate);
        if secret_is_missing && needs_no_secret && !spec.paused {
            done = self.carry_out(&access, &permit, &plan).await;
        }
        if problem.is_none() {
            if repairs {
                done = self.carry_out(&access, &permit, &plan).await;
            }
            let holding = matches!(plan.step, Step::Hold | Step::Hibernate);
            memory.holding = memory.holding.filter(|_| holding).or_else(|| holding.then(Instant::now));
            let held = holding && done.is_ok();
            memory.held = held.then(Instant::now);
            if plan.step == Step::Hibernate {
                let kept = self.may_stop(set.as_ref(), held).await;
                if !matches!(kept, Ok(true)) {
                    plan.replicas = topology.nodes();
                }
                failed = kept.err();
            }
            if !asleep {
                config = self.configure(memory, &access, &permit, found.as_ref(), &observed).await;
                self.limit_memory(&access, &permit, &observed).await;
                self.set_own_directives(&access, &permit, &observed).await;
            }
            // No node has seen directives that came while all were stopped. If one refuses them, the others start without.
            let unseen = asleep || woken && observed.pods.iter().all(|pod| pod.redis.is_none());
            let ended =
                observed.pods.iter().any(|pod| pod.trouble.as_ref().is_some_and(|trouble| trouble.has_run));
            let live = match unseen {
                true if ended && !asleep => Live::Common,
                false if config.pending == 0 => Live::Spec,
                _ => Live::Before,
            };
            let stopped = plan.replicas == 0 || unseen;
            let record = stopped.then(|| hibernate::record(set.as_ref(), replicas, &old));
            problem = uncertified;
            // New pods would not start, or no node would connect to them.
            if problem.is_none() {
                // Whatever keeps objects from being made, the status says how the cluster is.
                match self.make_children(set.as_ref(), found.as_ref(), &topology, &plan, live, record).await {
                    Ok(found) => problem = found,
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(set) = set.as_ref().filter(|_| problem.is_none() && failed.is_none() && !asleep) {
                match self.grow(set, &plan, &sizes).await {
                    Ok(found) => cannot_grow = found,
                    Err(error) => failed = Some(error),
                }
            }
        } else if self.lacks_configuration(found.as_ref()) {
            config.pending = observed.pods.iter().filter(|pod| pod.redis.is_some()).count();
        }
        let update_revision = set.as_ref().and_then(|set| set.status.as_ref()?.update_revision.as_deref());
        // Also while a problem stops other changes: pods come and go anyway.
        if let Err(error) = self.set_readiness(&topology).await {
            failed = failed.or(Some(error));
        }
        if problem.is_none() && failed.is_none() {
            if !repairs {
                done = self.carry_out(&access, &permit, &plan).await;
            }
            failed = self.restart_stuck(&topology, update_revision).await.err();
        }
        let work = Work::of(&plan, done.as_ref().ok(), problem.is_some());
        self.scope.context.upgradeable.see(self.key, work);
        // An interrupted migration did not come to every slot.
        if plan.step == Step::Move {
            memory.moved = Some(Instant::now());
        }
        let whole = done.as_ref().is_ok_and(|done| !done.interrupted);
        let skipped = memory.skipped.take().filter(|_| plan.step == Step::Move && !whole);
        if let Ok(done) = &mut done {
            memory.left_open = std::mem::take(&mut done.left_open);
            memory.skipped = done.skipped.as_ref().map(ToString::to_string).or(skipped);
        }
        // Neither keeps anything else from being done.
        let waits = if problem.is_some() {
            problem.clone()
        } else {
            memory.skipped.clone().map(Problem::KeyTooLarge)
        };
        let access = unusable.or(rejected).or(untrusted).or(loaded.as_ref().and_then(Loaded::problem));
        problem = problem::reported(waits.clone(), access, config.refusal.clone(), cannot_grow);
        let above_limit = self.above_limit(&observed);
        let not_created = self.not_created(memory, set.as_ref(), &observed.pods).await;
        let now = Time(Timestamp::now());
        let view = View {
            cluster: self.cluster,
            topology: &topology,
            plan: &plan,
            problem: problem.as_ref(),
            volumes: &sizes,
            unconfigured: config.pending,
            above_limit: &above_limit,
            rotation: &rotation,
            loaded: loaded.as_ref(),
            users: &users,
            not_created: not_created.as_ref(),
            woken,
            now,
        };
        self.update_status(memory, &old, &view).await?;
        let pending = users.is_pending();
        memory.users = users;
        // The other slots continue to migrate.
        let done = done?;
        if let Some(error) = failed {
            return Err(error);
        }
        let repaired = repairs && done.actions > 0;
        let waits = if done.slots > 0 || done.interrupted || repaired { None } else { waits.as_ref() };
        let next = self.next(&plan, waits);
        let pending = pending
            || config.pending > 0 && config.refusal.is_none()
            || (rotation.is_pending() || loaded.is_some_and(|loaded| !loaded.pending.is_empty()))
                && problem.is_none();
        let again = pending && plan.step == Step::Settled;
        Ok(if again { Action::requeue(Duration::from_secs(1)) } else { next })
    }

    /// An Event if another installation of the operator manages this cluster.
    fn other_installation(&self) -> Option<Notice> {
        let installation = &self.scope.context.installation;
        let other = self.cluster.annotations().get(OPERATED_BY).filter(|other| *other != installation)?;
        let name = &self.key.1;
        Some(Notice::warning(
            "OperatedByOther",
            format!(
                "the operator in namespace `{other}` manages this RedisCluster, so the one in `{installation}` ignores it; once the other is uninstalled, run `kubectl annotate rediscluster {name} {OPERATED_BY}-`"
            ),
        ))
    }

    /// Claims a cluster that no installation manages. If two try, the second write fails on its resourceVersion.
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

    /// Within four node timeouts, no node is promoted twice on purpose.
    fn promotion_pause(&self) -> Duration {
        Duration::from_millis(self.scope.context.defaults.node_timeout_ms.into()) * 4
    }

    /// What the spec wants of a cluster that is awake.
    fn goal(&self, observed: &Observed) -> Goal {
        let spec = &self.cluster.spec;
        let recovery = spec.recovery.clone().unwrap_or_default();
        Goal {
            size: u32::try_from(spec.size).unwrap_or(1).max(1),
            replicas_per_shard: u32::try_from(spec.replicas_per_shard).unwrap_or(0),
            slots: SLOTS,
            update: self.update(observed),
            take_over: recovery.quorum_loss == QuorumLoss::Automatic,
            accept_data_loss: recovery.lost_slots == LostSlots::AcceptDataLoss || self.may_lose_memory(),
            ..Goal::default()
        }
    }

    fn update(&self, observed: &Observed) -> plan::Update {
        let spec = &self.cluster.spec;
        let update = spec.update.unwrap_or_default();
        plan::Update {
            in_memory: spec.storage.is_none(),
            supervised: update.strategy == UpdateStrategy::Supervised,
            allow_data_loss: update.allow_data_loss,
            refused: !update.allow_downgrade && downgrade(&spec.image, observed).is_some(),
        }
    }

    /// Whether what a pod in memory had may be lost with it: nothing else has it, and waiting brings nothing back.
    fn may_lose_memory(&self) -> bool {
        let spec = &self.cluster.spec;
        let allowed = spec.update.is_some_and(|update| update.allow_data_loss);
        allowed && spec.storage.is_none() && spec.replicas_per_shard == 0
    }

    /// Which of the pods that are waited for have certainly ended. What their kubelets reported last counts only while these respond:
    /// a pod on a Kubernetes node that is cut off goes on serving the clients there.
    async fn confirm_ended(&self, pods: &mut [plan::Pod], ordinals: &BTreeSet<u32>) {
        let confirmed = self.cluster.spec.recovery.as_ref().map(|recovery| &recovery.stopped_pods);
        for pod in pods.iter_mut().filter(|pod| ordinals.contains(&pod.ordinal)) {
            let by_user = confirmed.is_some_and(|uids| uids.contains(&pod.uid));
            pod.ended = by_user
                || match self.scope.host_state(pod.host.as_deref()).await {
                    HostState::Gone => true,
                    HostState::Responds => pod.ended,
                    HostState::Unknown => false,
                };
        }
    }

    /// Three node timeouts: by then, a majority that recovers by itself has recovered.
    fn takeover_delay(&self) -> Duration {
        Duration::from_millis(self.scope.context.defaults.node_timeout_ms.into()) * 3
    }

    /// The StatefulSet, from the cache or else the API server, since the cache may be stale.
    async fn stateful_set(&self) -> Result<Option<StatefulSet>, ReconcileError> {
        if let Some(set) = Caches::child(&self.scope.caches.stateful_sets, self.key, &self.key.1) {
            return Ok(Some(set));
        }
        let api: Api<StatefulSet> = self.scope.api(self.key);
        let leadership = &self.scope.context.leadership;
        call("get", "StatefulSet", api.get_opt(&self.key.1), leadership).await
    }

    /// The ConfigMap, from the cache or else the API server: without it, what was given to running nodes would not be known.
    async fn config_map(&self) -> Result<Option<ConfigMap>, ReconcileError> {
        let name = Names::of(self.cluster).config;
        if let Some(found) = Caches::child(&self.scope.caches.config_maps, self.key, &name) {
            return Ok(Some(found));
        }
        let api: Api<ConfigMap> = self.scope.api(self.key);
        call("get", "ConfigMap", api.get_opt(&name), &self.scope.context.leadership).await
    }

    /// A spec that breaks today's rules may have been stored under older ones.
    fn invalid(&self) -> Option<Problem> {
        let spec = &self.cluster.spec;
        let wrong = if !(1..=500).contains(&spec.size) {
            "spec.size must be between 1 and 500".into()
        } else if !(0..=5).contains(&spec.replicas_per_shard) {
            "spec.replicasPerShard must be between 0 and 5".into()
        } else if spec.size % (1 + spec.replicas_per_shard) != 0 {
            "spec.size must be a multiple of 1 + spec.replicasPerShard".into()
        } else if self.key.1.len() > 52 {
            "metadata.name must have at most 52 characters".into()
        } else {
            wrong_values(spec).into_iter().next()?
        };
        Some(Problem::InvalidSpec(wrong))
    }

    /// The passwords, or the problem with the Secret.
    async fn credentials(&self) -> Result<Result<Credentials, Problem>, ReconcileError> {
        let (name, secret_key) = Names::of(self.cluster).auth;
        let own = self.cluster.spec.auth.is_none();
        let api: Api<Secret> = self.scope.api(self.key);
        // Secrets of users are not watched: there may be any number of them.
        let cached = if own { Caches::child(&self.scope.caches.secrets, self.key, &name) } else { None };
        let secret = match cached {
            Some(_) => cached,
            None => call("get", "Secret", api.get_opt(&name), &self.scope.context.leadership).await?,
        };
        let secret = match secret {
            Some(secret) if own && self.is_leftover(&secret) => {
                return Ok(Err(Problem::Leftover { kind: "Secret", name }));
            }
            Some(secret) if own && !self.owns(&secret) => {
                return Ok(Err(Problem::SecretTaken { name }));
            }
            Some(secret) => secret,
            // Running pods were started with another password than a new one.
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
            None if own => {
                let set = self.stateful_set().await?;
                let stopped = self.pods(set.as_ref(), None, 0).is_empty();
                return Ok(Err(Problem::OwnSecretMissing { name, key: secret_key, stopped }));
            }
            None => return Ok(Err(Problem::SecretMissing { name, key: secret_key })),
        };
        Ok(Credentials::of(&secret, &secret_key))
    }

    /// The certificate in the Secret, for nodes that have TLS. A Secret without CAs leaves those that it had before.
    async fn certificate(
        &self,
        memory: &mut Memory,
        secret: Option<String>,
    ) -> Result<Option<Certificate>, ReconcileError> {
        let Some(name) = secret else { return Ok(None) };
        let api: Api<Secret> = self.scope.api(self.key);
        let found = call("get", "Secret", api.get_opt(&name), &self.scope.context.leadership).await?;
        let certificate = found
            .map_or_else(|| Certificate::missing(name), |secret| Certificate::of(&secret, Timestamp::now()));
        memory.trust = certificate.trust.clone().or(memory.trust.take());
        Ok(Some(certificate))
    }

    /// Gives nodes their users, with a permit and once the API server has said what their Secrets have.
    async fn users(
        &self,
        mut users: Users,
        access: &Access,
        permit: Option<&Leading<'_>>,
        pods: &[plan::Pod],
        (old, all_known): (&RedisClusterStatus, bool),
    ) -> Users {
        match permit {
            Some(permit) if self.read_users(&mut users).await => {
                users.give(access, permit, pods, &old.users, all_known).await;
            }
            _ => users.keep(&old.users),
        }
        users
    }

    /// Reads the Secrets of users, if that is due. Whether the API server has told all of them.
    async fn read_users(&self, users: &mut Users) -> bool {
        let declared = self.cluster.spec.auth.as_ref().map(|auth| &auth.users[..]).unwrap_or_default();
        if !users.is_due(declared) {
            return true;
        }
        let api: Api<Secret> = self.scope.api(self.key);
        let mut wanted = vec![];
        for user in declared {
            let leadership = &self.scope.context.leadership;
            match call("get", "Secret", api.get_opt(&user.secret_name), leadership).await {
                Ok(secret) => wanted.push(Wanted::of(user, secret.as_ref())),
                Err(error) => {
                    warn!(error = chain(&error), "cannot read the Secret of a user");
                    return false;
                }
            }
        }
        users.want(wanted);
        true
    }

    async fn has_pods(&self) -> Result<bool, ReconcileError> {
        let has_set = self.stateful_set().await?.is_some_and(|set| self.owns(&set));
        Ok(has_set || !self.pods(None, None, 0).is_empty())
    }

    /// Whether the object is a child of this very cluster, not of an earlier one of its name.
    fn owns(&self, object: &impl ResourceExt) -> bool {
        let uid = self.cluster.uid();
        object
            .owner_references()
            .iter()
            .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
    }

    /// Whether the object is a child of an earlier cluster with this name, which therefore is gone.
    fn is_leftover(&self, object: &impl ResourceExt) -> bool {
        let group = RedisCluster::group(&());
        object.owner_references().iter().any(|owner| {
            owner.controller == Some(true)
                && owner.kind == RedisCluster::kind(&())
                && owner.api_version.split_once('/').is_some_and(|(of, _)| of == group)
                && owner.name == self.key.1
                && Some(&owner.uid) != self.cluster.uid().as_ref()
        })
    }

    /// The pods of the StatefulSet. While that is made anew, they have no owner: the new one adopts those with its labels.
    fn pods(&self, set: Option<&StatefulSet>, adopted: Option<&String>, removals: u64) -> Vec<plan::Pod> {
        let (uid, prefix) =
            (set.filter(|set| self.owns(*set)).and_then(ResourceExt::uid), format!("{}-", self.key.1));
        let labels = children::labels(&self.key.1);
        let is_orphan = |pod: &Packed<Pod>| {
            !pod.owner_references().iter().any(|owner| owner.controller == Some(true))
                && labels.iter().all(|(key, value)| pod.labels().get(key) == Some(value))
        };
        let ending = self.ending_claims();
        let mut pods: Vec<plan::Pod> = self
            .scope
            .caches
            .pods
            .state()
            .iter()
            .filter(|pod| pod.namespace().as_deref() == Some(&self.key.0))
            // Never treat a pod of another owner as one of this cluster.
            .filter(|pod| {
                let owned = |uid: &String| pod.owner_references().iter().any(|owner| owner.uid == *uid);
                uid.as_ref().is_some_and(owned) || is_orphan(pod)
            })
            .filter_map(|pod| {
                let pod = pod.unpack()?;
                let outdated = is_outdated(self.cluster, removals, adopted, &pod);
                let seen = seen_pod(&pod, &prefix)?;
                Some(plan::Pod { outdated, claim_ends: ending.contains(&seen.ordinal), ..seen })
            })
            .collect();
        pods.sort_by_key(|pod| pod.ordinal);
        pods
    }

    /// Gives the directives of the spec that Redis takes while it runs to all nodes that do not have them. A new leader does not
    /// know who has them, and gives them to all.
    async fn configure(
        &self,
        memory: &mut Memory,
        access: &Access,
        permit: &Leading<'_>,
        found: Option<&ConfigMap>,
        observed: &Observed,
    ) -> LiveConfig {
        let wanted = live::wanted(self.cluster);
        let hash = live::hash(&wanted);
        let (known, runs) = &mut memory.configured;
        if *known != hash {
            (*known, *runs) = (hash, Default::default());
        }
        let nodes = || observed.pods.iter().filter_map(|pod| Some((pod, &pod.redis.as_ref()?.run_id)));
        runs.retain(|run| nodes().any(|(_, node)| node == run));
        let lacking: Vec<_> = nodes().filter(|(_, run)| !runs.contains(*run)).map(|(pod, _)| pod).collect();
        if wanted.is_empty() || lacking.is_empty() {
            return LiveConfig::default();
        }
        // What is not recorded could not be taken back later.
        if !found.and_then(Record::of).is_some_and(|record| record.covers(&wanted)) {
            return LiveConfig { pending: lacking.len(), refusal: None };
        }
        let pending = lacking.len();
        let configured = configure(access, permit, lacking, &wanted).await;
        info!(nodes = configured.runs.len(), refused = ?configured.refusal, "configured");
        let pending = pending - configured.runs.len();
        runs.extend(configured.runs);
        LiveConfig { pending, refusal: configured.refusal }
    }

    /// Gives the `maxmemory` that follows from the memory limit to nodes that have room for it.
    async fn limit_memory(&self, access: &Access, permit: &Leading<'_>, observed: &Observed) {
        let Some(maxmemory) = memory::maxmemory(self.cluster) else { return };
        let ready = memory::lacking(maxmemory, observed).ready;
        if !ready.is_empty() {
            let given = configure(access, permit, ready, &memory::directives(maxmemory)).await;
            info!(nodes = given.runs.len(), maxmemory, refused = ?given.refusal, "limited memory");
        }
    }

    /// Gives directives that are not the user's to nodes that have them otherwise.
    async fn set_own_directives(&self, access: &Access, permit: &Leading<'_>, observed: &Observed) {
        let wanted = own_directives(self.cluster, &self.scope.context.defaults);
        let differs = |pod: &&plan::Pod| {
            let found = pod.redis.as_ref().map(|node| &node.settings);
            found.is_some_and(|found| {
                wanted.iter().any(|(key, value)| found.get(key).is_some_and(|is| is != value))
            })
        };
        let lacking: Vec<_> = observed.pods.iter().filter(differs).collect();
        if !lacking.is_empty() {
            let given = configure(access, permit, lacking, &wanted).await;
            info!(nodes = given.runs.len(), refused = ?given.refusal, "set the operator's own directives");
        }
    }

    /// The pods whose nodes use more than that.
    fn above_limit(&self, observed: &Observed) -> Vec<String> {
        let maxmemory = memory::maxmemory(self.cluster);
        let above = maxmemory.map(|maxmemory| memory::lacking(maxmemory, observed).above).unwrap_or_default();
        above.into_iter().map(|pod| pod.name.clone()).collect()
    }

    /// Whether nodes have not taken the directives of the spec: redis.conf gets them afterwards.
    fn lacks_configuration(&self, found: Option<&ConfigMap>) -> bool {
        let wanted =
            children::config_map(self.cluster, &self.scope.context.defaults, found, Live::Spec, true);
        let lines = |map: &ConfigMap| {
            let live = live::wanted(self.cluster);
            let conf = map.data.as_ref().and_then(|data| data.get("redis.conf")).map_or("", String::as_str);
            live::kept_lines(conf, &live).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        found.is_some_and(|found| lines(found) != lines(&wanted))
    }

    async fn make_children(
        &self,
        found: Option<&StatefulSet>,
        found_config: Option<&ConfigMap>,
        topology: &Topology<'_>,
        plan: &Plan,
        live: Live,
        record: Option<u32>,
    ) -> Result<Option<Problem>, ReconcileError> {
        let (cluster, defaults, caches) = (self.cluster, &self.scope.context.defaults, &self.scope.caches);
        let removals = Record::next(cluster, found_config).removals;
        let mut set = children::stateful_set(cluster, defaults, plan.replicas, removals);
        if let Some(found) = found {
            if let (Some(wanted), Some(found)) = (&mut set.spec, &found.spec) {
                // They are immutable.
                wanted.volume_claim_templates.clone_from(&found.volume_claim_templates);
                if topology.goal.update.refused {
                    // A pod that is replaced for another reason could not read its data.
                    wanted.template.clone_from(&found.template);
                }
            }
            if topology.observed.replicas.is_some_and(|replicas| plan.replicas < replicas) {
                // The observation is only valid for this version of the StatefulSet.
                set.metadata.resource_version = found.resource_version();
            }
        }
        let [headless, client] = children::services(cluster);
        // Where all nodes refuse or cannot be asked, they keep what they have, and so does the file.
        let limited = memory::goes_to_file(cluster, found_config, topology.observed);
        let mut config_map = children::config_map(cluster, defaults, found_config, live, limited);
        let before = outdated::annotated(found, found_config).cloned();
        let adopted = before.or_else(|| outdated::adopted(cluster, removals, found?));
        if let Some(adopted) = adopted {
            // The ConfigMap keeps it when the StatefulSet is made anew.
            config_map.annotations_mut().insert(outdated::ADOPTED.to_owned(), adopted.clone());
            set.annotations_mut().insert(outdated::ADOPTED.to_owned(), adopted);
        }
        if let Some(record) = record {
            set.annotations_mut().insert(hibernate::PODS_BEFORE.to_owned(), record.to_string());
        }
        let problem = match self.ensure("ConfigMap", &caches.config_maps, &config_map).await? {
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
        if found.is_some_and(|found| found.metadata.deletion_timestamp.is_some()) {
            // It is made anew once it is gone.
            return Ok(None);
        }
        if plan.replicas == 0 {
            // No node is drained.
            return self.ensure("StatefulSet", &caches.stateful_sets, &set).await;
        }
        self.mark_drained(topology, plan).await?;
        let problem = self.ensure("StatefulSet", &caches.stateful_sets, &set).await?;
        if problem.is_none() {
            self.delete_drained(topology, plan).await?;
        }
        Ok(problem)
    }

    /// Whether all pods may be stopped now.
    async fn may_stop(&self, set: Option<&StatefulSet>, held: bool) -> Result<bool, ReconcileError> {
        let Some(set) = set.filter(|_| held) else { return Ok(false) };
        self.keeps_volumes(set).await
    }

    /// Applies an object unless it is up to date. An object that this RedisCluster does not control is not changed.
    async fn ensure<K>(
        &self,
        kind: &'static str,
        store: &Store<Packed<K>>,
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
            found @ Some(_) => found,
            // Those without our label are not watched.
            None => call("get", kind, api.get_opt(&name), &self.scope.context.leadership).await?,
        };
        let encode = |object: &K| {
            serde_json::to_value(object).map_err(|source| ReconcileError::Encode { kind, source })
        };
        let there = found.is_some();
        if let Some(found) = found {
            if self.is_leftover(&found) {
                return Ok(Some(Problem::Leftover { kind, name }));
            }
            if !self.owns(&found) {
                return Ok(Some(Problem::NameTaken { kind, name }));
            }
            // An annotation that is not wanted any more is a change too: server-side apply removes it.
            let has = |object: &K| object.annotations().contains_key(hibernate::PODS_BEFORE);
            let is_over = has(&found) && !has(wanted);
            if !is_over && children::contains(&encode(wanted)?, &encode(&found)?) {
                return Ok(None);
            }
        }
        info!(kind, object = name, "apply");
        self.scope.context.metrics.api_write(kind);
        let (parameters, leadership) = (PatchParams::apply(MANAGER).force(), &self.scope.context.leadership);
        let applied =
            call("patch", kind, api.patch(&name, &parameters, &Patch::Apply(wanted)), leadership).await;
        let refused = |error: &ReconcileError| {
            let is_refused = |(code, said): &(u16, &str)| {
                // Of a list with an entry twice, server-side apply says that the server is at fault.
                [400, 403, 422].contains(code) || *code == 500 && said.contains("duplicate entries")
            };
            error.answer().filter(is_refused).map(|(_, said)| said.to_owned())
        };
        let beside = match &applied {
            Ok(made) => !children::contains(&encode(wanted)?, &encode(made)?),
            Err(error) => refused(error).is_some(),
        };
        let result = if there && beside {
            // Server-side apply keeps list items of other managers, such as a second port. A merge patch replaces the list.
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

    /// Deletes pods that cannot start and run an outdated template, so that they get the current one: they serve no
    /// clients. All other pods keep their template until they are replaced.
    async fn restart_stuck(
        &self,
        topology: &Topology<'_>,
        revision: Option<&str>,
    ) -> Result<(), ReconcileError> {
        let stuck = topology.observed.pods.iter().filter(|pod| {
            let outdated = pod.outdated || (revision.is_some() && pod.revision.as_deref() != revision);
            let is_stuck = pod.trouble.is_some() && pod.redis.is_none() && !pod.terminating;
            outdated && is_stuck && topology.may_end(pod)
        });
        for pod in stuck {
            info!(pod = pod.name, "restarting a pod that cannot start");
            self.delete_pod(&pod.name, &pod.uid, pod.claim_ends).await?;
        }
        Ok(())
    }

    /// Deletes a pod as it was seen: one that was replaced or changed meanwhile is left alone, and so is one whose claim would go with it
    /// unless that was known.
    async fn delete_pod(&self, name: &str, uid: &str, claim_ends: bool) -> Result<(), ReconcileError> {
        let seen = Caches::child(&self.scope.caches.pods, self.key, name);
        let Some(seen) = seen.filter(|seen| seen.uid().as_deref() == Some(uid)) else { return Ok(()) };
        if !claim_ends {
            self.claim_stays(name).await?;
        }
        let api: Api<Pod> = self.scope.api(self.key);
        self.scope.context.metrics.api_write("Pod");
        let (parameters, leadership) = (exactly(&seen), &self.scope.context.leadership);
        match call("delete", "Pod", api.delete(name, &parameters), leadership).await {
            // Replaced or gone in the meantime.
            Err(error) if matches!(error.answer(), Some((404 | 409, _))) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Sets the readiness gate of each pod that has it: whether its node is in sync with its shard. If a node does not
    /// respond, its condition stays as it is unless the kubelet reports its containers as not ready.
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
                // Replaced or gone in the meantime.
                Err(error) if matches!(error.answer(), Some((404 | 409, _))) => {}
                result => drop(result?),
            }
        }
        Ok(())
    }

    /// Lets clients write and replicas be promoted while a problem keeps the operator from stopping all pods.
    async fn release(&self, access: &Access, permit: &Leading<'_>, topology: &Topology<'_>) {
        let actions = plan::release(topology);
        if !actions.is_empty()
            && let Err(error) = act(access, permit, &actions).await
        {
            warn!(error = chain(&error), "could not let clients write again");
        }
    }

    /// Executes the plan.
    async fn carry_out(
        &self,
        access: &Access,
        permit: &Leading<'_>,
        plan: &Plan,
    ) -> Result<Done, ReconcileError> {
        if plan.actions.is_empty() {
            return Ok(Done::default());
        }
        if let [plan::Action::Restart { pod, uid, claim_ends }] = &plan.actions[..] {
            info!(pod, "replacing a pod whose template is outdated");
            self.delete_pod(pod, uid, *claim_ends).await?;
            return Ok(Done { actions: 1, ..Done::default() });
        }
        let result = act(access, permit, &plan.actions).await;
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
        let notice = match plan.step {
            Step::HealAddresses => {
                metrics.repaired("addresses");
                Notice::normal("AddressesHealed", "updated node addresses after pods were recreated")
            }
            Step::Relink => {
                metrics.repaired("replication");
                Notice::normal(
                    "ReplicationRepaired",
                    format!("reconnected {count} replicas to their primaries"),
                )
            }
            Step::CloseSlots => {
                metrics.repaired("open_slots");
                Notice::warning("OpenSlotRepaired", "finished interrupted slot migrations")
            }
            Step::Forget => {
                metrics.repaired("ghosts");
                Notice::normal("MemberForgotten", "forgot removed nodes (CLUSTER FORGET)")
            }
            Step::TakeOver => {
                metrics.failover(&self.key.0, &self.key.1, "takeover");
                Notice::warning(
                    "TakeoverPerformed",
                    "promoted a replica without a vote because the majority of primaries is down",
                )
            }
            Step::Elect => {
                metrics.failover(&self.key.0, &self.key.1, "forced");
                Notice::warning("ElectionForced", "forced an election that Redis did not start by itself")
            }
            Step::Spread => Notice::normal(
                "ReplicaMoved",
                "moving a replica to another shard because two copies of its shard are on one Kubernetes node",
            ),
            Step::Balance => {
                metrics.failover(&self.key.0, &self.key.1, "planned");
                Notice::normal(
                    "FailoverStarted",
                    "failing over because too many primaries are on one Kubernetes node or in one zone",
                )
            }
            Step::Reclaim => Notice::normal(
                "SlotsReclaimed",
                "slots are given back to the node that the others name as their owner",
            ),
            Step::AcceptLoss => Notice::warning(
                "LostSlotsAssigned",
                "spec.recovery.lostSlots is AcceptDataLoss: assigning lost slots to other nodes, without their keys",
            ),
            Step::Roles
                if plan.actions.iter().any(|action| matches!(action, plan::Action::Failover { .. })) =>
            {
                metrics.failover(&self.key.0, &self.key.1, "planned");
                Notice::normal("FailoverStarted", "failing over before removal of a primary")
            }
            Step::Update
                if plan.actions.iter().any(|action| matches!(action, plan::Action::Failover { .. })) =>
            {
                metrics.failover(&self.key.0, &self.key.1, "planned");
                Notice::normal("FailoverStarted", "failing over before the pod of a primary is replaced")
            }
            _ => return,
        };
        self.scope.publish(self.cluster, notice).await;
    }

    /// Writes the status if it changed, and publishes Events for the changes.
    async fn update_status(
        &self,
        memory: &mut Memory,
        old: &RedisClusterStatus,
        view: &View<'_>,
    ) -> Result<(), ReconcileError> {
        let context = &self.scope.context;
        let new = status::status(old, view);
        memory.remember_resets(old, view.plan);
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
        let applied = call(
            "patch",
            "RedisCluster/status",
            api.patch_status(&self.key.1, &parameters, &Patch::Apply(patch)),
            &context.leadership,
        )
        .await;
        if let Err(error) = applied {
            return self.say_rejected(error, old, &new, view).await;
        }
        for pod in notices::failed_over(old, &new) {
            info!(pod, "a replica took over");
            context.metrics.failover(&self.key.0, &self.key.1, "observed");
        }
        for notice in notices::notices(old, &new, self.cluster.spec.size, &memory.reset) {
            if notice.reason == "MemberReplaced" {
                context.metrics.member_replaced();
            }
            info!(reason = notice.reason, note = notice.note, "event");
            self.scope.publish(self.cluster, notice).await;
        }
        memory.status = Some(new);
        memory.written = Some(Instant::now());
        self.count_phases();
        Ok(())
    }

    /// If the CRD is of an earlier release, says so where that has a place for it. All else goes on without a status.
    async fn say_rejected(
        &self,
        error: ReconcileError,
        old: &RedisClusterStatus,
        new: &RedisClusterStatus,
        view: &View<'_>,
    ) -> Result<(), ReconcileError> {
        let answer = error.answer().filter(|(code, said)| status::is_unknown_to_schema(*code, said));
        let Some((_, said)) = answer else { return Err(error) };
        warn!(said, "the CustomResourceDefinition rejects the status; apply the one of this release");
        let conditions = status::rejected(old, new, view, said);
        if conditions == old.conditions {
            return Ok(());
        }
        let api: Api<RedisCluster> = self.scope.api(self.key);
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let (parameters, context) = (PatchParams::default(), &self.scope.context);
        context.metrics.api_write("RedisCluster/status");
        call(
            "patch",
            "RedisCluster/status",
            api.patch_status(&self.key.1, &parameters, &patch),
            &context.leadership,
        )
        .await
        .map(drop)
    }

    fn count_phases(&self) {
        const PHASES: [&str; 11] = [
            "Creating",
            "Ready",
            "Scaling",
            "Updating",
            "Healing",
            "Degraded",
            "Failed",
            "Deleting",
            "Hibernating",
            "Hibernated",
            "Waking",
        ];
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

    /// When to reconcile again if nothing changes before.
    fn next(&self, plan: &Plan, problem: Option<&Problem>) -> Action {
        let wait = match (problem, plan.step) {
            (Some(Problem::Leftover { .. }), _) => jittered(Duration::from_secs(3)),
            (Some(_), _) => jittered(STEADY),
            (None, Step::Settled | Step::Hibernated) => jittered(STEADY),
            (
                None,
                Step::Wait(
                    Wait::DataLost
                    | Wait::SlotsLost
                    | Wait::StaleReplicas
                    | Wait::ForeignNode
                    | Wait::Memory
                    | Wait::Downgrade
                    | Wait::Claims
                    | Wait::Approval,
                ),
            ) => jittered(STEADY),
            (
                None,
                Step::Wait(Wait::Quorum | Wait::Bans | Wait::Volumes | Wait::Writers) | Step::Hibernate,
            ) => Duration::from_secs(1),
            (None, Step::Wait(Wait::Pods)) => jittered(Duration::from_secs(3)),
            (None, Step::Wait(_)) => Duration::from_millis(300),
            (None, _) => Duration::from_millis(20),
        };
        Action::requeue(wait)
    }
}

/// 32 letters and digits: 160 bits.
fn new_password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 32];
    let random = rustls::crypto::ring::default_provider().secure_random;
    // The system's random numbers do not fail; a password of zeros would be fatal.
    assert!(random.fill(&mut bytes).is_ok(), "no random numbers");
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// The image of Redis: others may have added containers.
fn image_of(spec: &PodSpec) -> Option<String> {
    spec.containers.iter().find(|container| container.name == children::CONTAINER)?.image.clone()
}

/// How long ago a pod was created.
fn age(pod: &Pod) -> Option<Duration> {
    let created = pod.metadata.creation_timestamp.as_ref()?.0;
    Duration::try_from(Timestamp::now().duration_since(created)).ok()
}

fn seen_pod(pod: &Pod, prefix: &str) -> Option<plan::Pod> {
    let name = pod.name_any();
    let status = pod.status.as_ref();
    let conditions = || status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let is_true =
        |kind: &str| conditions().any(|condition| condition.type_ == kind && condition.status == "True");
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_ref());
    let waits_for_gate = gates.into_iter().flatten().any(|gate| !is_true(&gate.condition_type));
    let other_container_fails = other_container_fails(pod);
    // When a Kubernetes node is lost, only `Ready` of its pods becomes false, not `ContainersReady`.
    let containers_ready = is_true("ContainersReady") && (is_true("Ready") || waits_for_gate);
    Some(plan::Pod {
        ordinal: name.strip_prefix(prefix)?.parse().ok()?,
        uid: pod.uid().unwrap_or_default(),
        ip: status.and_then(|status| status.pod_ip.as_ref()).and_then(|ip| ip.parse().ok()),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        claim_ends: false,
        ended: redis_has_ended(pod),
        // While another container fails, neither condition says anything about Redis.
        containers_ready: if other_container_fails { redis_is_ready(pod) } else { containers_ready },
        password_rejected: false,
        has_password_files: has_password_files(pod),
        passwords: None,
        certificate: None,
        certificate_rejected: None,
        host: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        zone: None,
        trouble: trouble(pod),
        other_container_fails,
        revision: pod.labels().get("controller-revision-hash").cloned(),
        image: pod.spec.as_ref().and_then(image_of),
        outdated: false,
        overdue: age(pod).is_some_and(|age| age >= OVERDUE),
        redis: None,
        name,
    })
}
