//! Status and conditions of a RedisCluster, computed from what was observed. Pure functions.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

use super::{
    children,
    creation::NotCreated,
    downgrade::{Downgrade, downgrade},
    known,
    memory::SHARE,
    names::Names,
    passwords::Rotation,
    problem::{CONFIG_REFUSED, NOT_RESIZED, Problem, names},
    tls::Loaded,
    users::Users,
    volumes::Volumes,
};
use crate::{
    crd::{
        RedisCluster,
        v1::{Member, Phase, RedisClusterStatus, Role},
    },
    metrics::ClusterGauges,
    plan::{Link, Node, NodeId, Observed, Plan, Pod, Slots, Step, Topology, Wait},
    quantity::bytes,
    server::observe::{APPEND_ONLY, MIN_REPLICAS},
};

/// The conditions, in the order of the status.
pub const CONDITIONS: [&str; 8] = [
    "Ready",
    "Available",
    "Progressing",
    "Degraded",
    "Redundant",
    "SlotsCovered",
    "UpdatePending",
    "Initialized",
];

/// Everything a status is computed from.
#[derive(Debug)]
pub struct View<'a> {
    /// The cluster.
    pub cluster: &'a RedisCluster,
    /// The observed cluster.
    pub topology: &'a Topology<'a>,
    /// What the operator does next.
    pub plan: &'a Plan,
    /// What prevents that.
    pub problem: Option<&'a Problem>,
    /// How the volumes compare with the spec.
    pub volumes: &'a Volumes,
    /// Nodes that have not taken the directives of `spec.config` that Redis takes while it runs.
    pub unconfigured: usize,
    /// Pods whose nodes use too much memory for the `maxmemory` that follows from the memory limit.
    pub above_limit: &'a [String],
    /// How far nodes are with a change of the password.
    pub rotation: &'a Rotation,
    /// How far nodes are with the certificate, if they have TLS.
    pub loaded: Option<&'a Loaded>,
    /// The users of `spec.auth.users`.
    pub users: &'a Users,
    /// A pod that Kubernetes does not create.
    pub not_created: Option<&'a NotCreated>,
    /// Whether all pods were stopped, and not all nodes are known to be back.
    pub woken: bool,
    /// The time.
    pub now: Time,
}

/// The status that follows `old`. Conditions keep their transition time unless their status changed.
pub fn status(old: &RedisClusterStatus, view: &View<'_>) -> RedisClusterStatus {
    let (cluster, topology) = (view.cluster, view.topology);
    let observed = topology.observed;
    // Those that come back.
    let asleep = view.plan.step == Step::Hibernated;
    let mut members = if asleep { old.members.clone() } else { members(old, topology) };
    if !asleep {
        known::add(&mut members, topology);
    }
    let serves = topology.serves();
    let initialized = old.initialized == Some(true) || serves;
    let known = |found: usize, last: Option<i32>| if is_hidden(topology) { last } else { Some(count(found)) };
    let ready = topology.core.iter().filter(|member| !member.node.alone() || serves);
    RedisClusterStatus {
        nodes: observed.pods.iter().filter(|pod| !pod.terminating).map(|pod| pod.name.clone()).collect(),
        ready_nodes: known(ready.count(), old.ready_nodes),
        shards: known(topology.owners().count(), old.shards),
        slots_covered: known(topology.covered(), old.slots_covered),
        selector: Some(children::selector(&cluster.name_any())),
        phase: Some(phase(old, view, initialized)),
        users: view.users.names().to_vec(),
        initialized: Some(initialized),
        observed_generation: cluster.metadata.generation,
        conditions: conditions(old, view, initialized),
        members,
    }
}

/// Whether the schema of the CRD does not have what the status says: then the CRD is of an earlier release.
pub fn is_unknown_to_schema(code: u16, said: &str) -> bool {
    [400, 422].contains(&code) || code == 500 && said.contains("field not declared in schema")
}

/// The conditions of a status that the CRD rejects. Every release takes those.
pub fn rejected(
    old: &RedisClusterStatus,
    new: &RedisClusterStatus,
    view: &View<'_>,
    said: &str,
) -> Vec<Condition> {
    let note = format!(
        "the CustomResourceDefinition does not take the status of this release, which is missing but for the conditions: apply the one of this release; the API server said: {said}"
    );
    let degraded = |one: &Condition| match one.type_.as_str() {
        "Degraded" => condition(old, view, "Degraded", "True", "StatusRejected", note.clone()),
        _ => one.clone(),
    };
    new.conditions.iter().map(degraded).collect()
}

/// Whether a node tells the operator nothing, because it rejects the password, or is not trusted: it may well serve its clients.
fn hides_some(topology: &Topology<'_>) -> bool {
    let hides = |pod: &Pod| pod.password_rejected || pod.certificate_rejected.is_some();
    topology.observed.pods.iter().any(hides)
}

/// Whether that is so of all nodes that could be asked.
fn is_hidden(topology: &Topology<'_>) -> bool {
    topology.core.is_empty() && hides_some(topology)
}

pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The members, one for each pod. A node that does not answer or has not joined keeps its last known id, so that a
/// replacement is recognized once it answers, and one that the others were told to forget keeps all that was known.
fn members(old: &RedisClusterStatus, topology: &Topology<'_>) -> Vec<Member> {
    let shard_of = |id| topology.owners().position(|owner| owner.node.id == id).map(count);
    let last = |pod: &str| old.members.iter().find(|member| member.pod == pod);
    let is_forgotten = |pod: &Pod| topology.forgotten().any(|member| member.pod.uid == pod.uid);
    let pods = topology.observed.pods.iter().filter(|pod| !pod.terminating);
    let mut members: Vec<Member> = pods
        .map(|pod| {
            if let Some(last) = last(&pod.name).filter(|_| is_forgotten(pod)) {
                return Member { revision: pod.revision.clone(), ..last.clone() };
            }
            let member = topology.core.iter().find(|member| member.pod.uid == pod.uid);
            let node =
                member.map(|member| member.node).filter(|node| !node.alone() || topology.goal.size == 1);
            let primary = node.and_then(|node| node.primary());
            Member {
                pod: pod.name.clone(),
                node_id: match node {
                    Some(node) => Some(node.id.to_string()),
                    None => last(&pod.name).and_then(|last| last.node_id.clone()),
                },
                role: node.map(|_| if primary.is_some() { Role::Replica } else { Role::Primary }),
                shard: node.and_then(|node| shard_of(primary.unwrap_or(node.id))),
                slots: node
                    .and_then(|node| topology.owned.get(&node.id))
                    .map(|slots| slots.to_string().split(' ').map(str::to_owned).collect())
                    .unwrap_or_default(),
                link_up: node.filter(|_| primary.is_some()).map(|node| node.link == Link::Up),
                revision: pod.revision.clone(),
                ..Member::default()
            }
        })
        .collect();
    // While a pod is being recreated, it does not exist. A StatefulSet that was deleted is created again with all pods.
    let replicas = topology.observed.replicas.unwrap_or(u32::MAX);
    let ordinal = |pod: &str| pod.rsplit_once('-')?.1.parse::<u32>().ok();
    for away in &old.members {
        let wanted = ordinal(&away.pod).is_some_and(|ordinal| ordinal < replicas);
        if wanted && !members.iter().any(|member| member.pod == away.pod) {
            members.push(Member {
                pod: away.pod.clone(),
                node_id: away.node_id.clone(),
                ..Member::default()
            });
        }
    }
    members.sort_by_key(|member| ordinal(&member.pod));
    members
}

fn phase(old: &RedisClusterStatus, view: &View<'_>, initialized: bool) -> Phase {
    match view.problem {
        None | Some(Problem::Paused) if view.plan.step == Step::Hibernated => {
            let stopped = view.topology.observed.pods.is_empty();
            return if stopped { Phase::Hibernated } else { Phase::Hibernating };
        }
        Some(Problem::Paused) if is_ready(view) => return Phase::Ready,
        Some(Problem::Paused) => return Phase::Degraded,
        Some(Problem::Leftover { .. }) if !initialized => return Phase::Creating,
        Some(_) => return Phase::Failed,
        None => {}
    }
    match view.plan.step {
        Step::Wait(Wait::DataLost | Wait::SlotsLost | Wait::Memory | Wait::Downgrade) => Phase::Failed,
        _ if !initialized => Phase::Creating,
        Step::Settled => Phase::Ready,
        Step::Hold | Step::Hibernate | Step::Wait(Wait::Volumes | Wait::Writers) => Phase::Hibernating,
        _ if is_waking(view) => Phase::Waking,
        Step::Wait(Wait::StaleReplicas) => Phase::Degraded,
        Step::Wait(Wait::Election | Wait::Quorum | Wait::ForeignNode | Wait::Bans)
        | Step::TakeOver
        | Step::Elect => Phase::Healing,
        Step::Move => Phase::Scaling,
        _ if failing_update(old, view).is_some() => Phase::Degraded,
        _ if is_updating(old, view) && !is_slow(view.topology) => Phase::Updating,
        Step::Spread | Step::Balance => Phase::Healing,
        step if step.is_repair() => Phase::Healing,
        Step::Wait(_) if scaling(view.topology) => Phase::Scaling,
        Step::Wait(Wait::Pods) => Phase::Degraded,
        Step::Wait(_) => Phase::Healing,
        _ => Phase::Scaling,
    }
}

/// Whether the cluster matches its spec, also while it is paused.
fn is_ready(view: &View<'_>) -> bool {
    matches!(view.problem, None | Some(Problem::Paused))
        && view.plan.step == Step::Settled
        && view.topology.serves()
        && late(view).is_none()
        && unwritable(view).is_none()
}

/// Whether only the user can resolve what this step waits for.
fn failed(step: Step) -> bool {
    matches!(
        step,
        Step::Wait(
            Wait::DataLost
                | Wait::SlotsLost
                | Wait::StaleReplicas
                | Wait::Quorum
                | Wait::Memory
                | Wait::ForeignNode
                | Wait::Downgrade
                | Wait::Claims
        )
    )
}

/// Whether the pods of a hibernated cluster start, and none takes too long.
fn is_waking(view: &View<'_>) -> bool {
    let topology = view.topology;
    let missing = !topology.serves() || topology.core.len() < topology.goal.size as usize;
    let late = topology.observed.pods.iter().any(|pod| pod.redis.is_none() && pod.overdue);
    view.woken && !topology.goal.hibernated && missing && !late
}

/// Number of pods with an older template.
fn outdated(topology: &Topology<'_>) -> usize {
    topology.observed.pods.iter().filter(|pod| pod.outdated).count()
}

/// Whether pods are being replaced because of their template. The last one has the current template before it is back.
fn is_updating(old: &RedisClusterStatus, view: &View<'_>) -> bool {
    let begun = old.phase == Some(Phase::Updating) || degraded_reason(old) == Some(ROLLOUT_FAILED);
    let topology = view.topology;
    outdated(topology) > 0 || topology.surge > 0 || (begun && view.plan.step != Step::Settled)
}

/// A pod with the current template that cannot start, while others still have an older one. Between two attempts nothing is
/// wrong with it, so it counts until it responds.
fn failing_update<'a>(old: &RedisClusterStatus, view: &View<'a>) -> Option<&'a Pod> {
    let failed = degraded_reason(old) == Some(ROLLOUT_FAILED);
    let fails = |pod: &&Pod| {
        let tries = failed && pod.redis.is_none();
        !pod.outdated
            && (pod.trouble.is_some() || tries)
            && (pod.redis.is_none() || pod.other_container_fails)
    };
    let mut pods = view.topology.observed.pods.iter();
    pods.find(fails).filter(|_| old.initialized == Some(true) && is_updating(old, view))
}

/// Why it cannot start; between two attempts, what was said of the last one.
fn rollout_failed(old: &RedisClusterStatus, topology: &Topology<'_>, pod: &Pod) -> String {
    let Some(trouble) = &pod.trouble else {
        let degraded = old.conditions.iter().find(|condition| condition.type_ == "Degraded");
        return degraded.map(|condition| condition.message.clone()).unwrap_or_default();
    };
    format!(
        "pod {}, which has the new template, cannot start: {}; {} pods keep the older one; correct or revert {}",
        pod.name,
        trouble.what,
        outdated(topology),
        trouble.fields.unwrap_or("the spec")
    )
}

/// Whether more is missing than the pod that is being replaced, or that one for too long.
fn is_slow(topology: &Topology<'_>) -> bool {
    let members = topology.core.len();
    let overdue = topology.observed.pods.iter().any(|pod| pod.redis.is_none() && pod.overdue);
    members + 1 < topology.goal.size as usize || overdue
}

/// Reason of UpdatePending: running nodes have not taken new directives.
pub(super) const CONFIG_PENDING: &str = "ConfigPending";

/// Reason of UpdatePending: nodes do not have the new password.
pub(super) const PASSWORD_PENDING: &str = "PasswordPending";

/// Reason of UpdatePending: nodes accept the new and the previous password, as the Secret wants.
pub(super) const BOTH_PASSWORDS: &str = "PreviousPasswordAccepted";

/// Reason of UpdatePending: nodes accept a password that is not in the Secret.
pub(super) const OLD_PASSWORD: &str = "OldPasswordAccepted";

/// Reason of UpdatePending: nodes do not present the certificate in the Secret.
pub(super) const CERTIFICATE_PENDING: &str = "CertificatePending";

/// Reason of UpdatePending: nodes read the files of the Secret once more.
pub(super) const CERTIFICATE_UNREAD: &str = "CertificateUnread";

/// Reason of Degraded: the certificate is to be renewed.
pub(super) const CERTIFICATE_EXPIRES: &str = "CertificateExpires";

/// Reason of UpdatePending: nodes use more memory than they should.
pub(super) const MEMORY_ABOVE_LIMIT: &str = "MemoryAboveLimit";

/// Reason of UpdatePending: volumes grow.
pub(super) const GROWING: &str = "VolumesGrowing";

/// Reason of the condition Degraded, and of its Event.
pub(super) const ROLLOUT_FAILED: &str = "RolloutFailed";

fn degraded_reason(status: &RedisClusterStatus) -> Option<&str> {
    let degraded = status.conditions.iter().find(|condition| condition.type_ == "Degraded")?;
    (degraded.status == "True").then_some(degraded.reason.as_str())
}

fn scaling(topology: &Topology<'_>) -> bool {
    topology.observed.pods.len() != topology.nodes() as usize
        || topology.owners().count() != topology.goal.shards() as usize
}

/// Whether every slot has an owner that answers, with all its replicas in sync, and no pod would take the only copy of anything with
/// it: then a pod may be evicted.
pub fn all_in_sync(topology: &Topology<'_>) -> bool {
    let per_shard = topology.goal.replicas_per_shard as usize;
    let in_sync = |owner: NodeId| {
        topology.replicas_of(owner).filter(|replica| topology.in_sync(*replica)).count() >= per_shard
    };
    topology.covered() == usize::from(topology.goal.slots)
        && topology.owners().all(|owner| in_sync(owner.node.id))
        && topology.observed.pods.iter().all(|pod| topology.may_end(pod))
}

/// What the condition [`children::IN_SYNC`] of a pod should be; nothing where it stays as it is, or is no readiness gate of the pod.
pub fn readiness(
    topology: &Topology<'_>,
    pod: &Pod,
    object: &k8s_openapi::api::core::v1::Pod,
) -> Option<bool> {
    let gates = object.spec.as_ref()?.readiness_gates.as_ref()?;
    if !gates.iter().any(|gate| gate.condition_type == children::IN_SYNC) {
        return None;
    }
    let conditions = object.status.as_ref().and_then(|status| status.conditions.as_ref());
    let condition =
        |kind: &str| conditions?.iter().find(|one| one.type_ == kind).map(|one| one.status.as_str());
    let stopped = || (condition("ContainersReady") == Some("False")).then_some(false);
    let wanted = in_sync(topology, pod).or_else(stopped)?;
    // To the kubelet, one that is not there is as good as False.
    let found = condition(children::IN_SYNC).unwrap_or("False") == "True";
    (found != wanted).then_some(wanted)
}

/// Whether the node of a pod is part of the cluster, and a primary or a replica in sync; nothing when it does not answer.
fn in_sync(topology: &Topology<'_>, pod: &Pod) -> Option<bool> {
    let node = pod.redis.as_ref()?;
    let Some(member) = topology.core.iter().find(|member| member.pod.uid == pod.uid) else {
        return Some(false);
    };
    let joined = !node.alone() || !node.slots().is_empty();
    Some(joined && (node.link == Link::None || topology.in_sync(*member)))
}

/// Ordinals of the pods that owned slots when the status was written.
pub fn last_owners(status: &RedisClusterStatus) -> BTreeSet<u32> {
    let owners = status.members.iter().filter(|member| !member.slots.is_empty());
    owners.filter_map(|member| member.pod.rsplit_once('-')?.1.parse().ok()).collect()
}

/// What keeps the first pod from running, and what to do.
fn trouble(observed: &Observed) -> Option<String> {
    let (pod, trouble) = observed.pods.iter().find_map(|pod| Some((pod, pod.trouble.as_ref()?)))?;
    let correct = trouble.fields.map(|fields| format!("correct {fields}, or ")).unwrap_or_default();
    Some(format!("pod {}: {}; {correct}resolve what the message says", pod.name, trouble.what))
}

/// The shards of which all copies in sync are in one place, which could take them with it: how many, the pods of the first, and
/// the place.
fn copies_together(
    topology: &Topology<'_>,
    place: fn(&Pod) -> Option<&String>,
) -> Option<(usize, String, String)> {
    let together: Vec<(String, String)> = topology
        .owners()
        .filter_map(|owner| {
            let here = place(owner.pod)?;
            let replicas = topology.replicas_of(owner.node.id);
            let copies: Vec<_> =
                std::iter::once(owner).chain(replicas.filter(|copy| topology.in_sync(*copy))).collect();
            let names: Vec<_> = copies.iter().map(|copy| copy.pod.name.as_str()).collect();
            let is_here = |copy: &crate::plan::Member<'_>| place(copy.pod) == Some(here);
            copies.iter().all(is_here).then(|| (names.join(" and "), here.clone()))
        })
        .collect();
    let (pods, place) = together.first()?.clone();
    Some((together.len(), pods, place))
}

/// The shards that one Kubernetes node could take with it, in a sentence.
fn copies_on_one_node(topology: &Topology<'_>) -> Option<String> {
    let (shards, pods, host) = copies_together(topology, |pod| pod.host.as_ref())?;
    Some(format!(
        "{shards} shards have all copies on one Kubernetes node, for example {pods} on `{host}`: add Kubernetes nodes and delete one of the pods, or accept that this node can take both copies with it"
    ))
}

/// The same of a zone, in a cluster that has pods in several.
fn copies_in_one_zone(topology: &Topology<'_>) -> Option<String> {
    let zones: BTreeSet<_> = topology.observed.pods.iter().filter_map(|pod| pod.zone.as_ref()).collect();
    let (shards, pods, zone) =
        copies_together(topology, |pod| pod.zone.as_ref()).filter(|_| zones.len() > 1)?;
    Some(format!(
        "{shards} shards have all copies in one zone, for example {pods} in `{zone}`: add Kubernetes nodes in other zones and delete one of the pods, or accept that this zone can take both copies with it"
    ))
}

/// The reason of `Degraded` while nothing is wrong.
pub(super) const ALL_WELL: &str = "AllMembersWell";

/// The reason of all conditions while pods are stopped.
pub(super) const HIBERNATED: &str = "Hibernated";

/// The same as a sentence.
const HIBERNATED_NOTE: &str =
    "spec.hibernated is true: all pods are stopped and their volumes kept; set it to false to start the pods";

/// The conditions of a cluster without pods, in the order of [`CONDITIONS`].
fn asleep(view: &View<'_>) -> [(bool, &'static str, String); 8] {
    let no = || (false, HIBERNATED, HIBERNATED_NOTE.to_owned());
    let pods = view.topology.observed.pods.len();
    let progressing = if pods > 0 {
        (true, "Hibernating", format!("{pods} pods are stopping; their volumes are kept"))
    } else {
        no()
    };
    let problem = view.problem.map(|problem| (problem.reason(), problem.to_string()));
    let (ready, progressing) = match problem.clone() {
        Some((reason, note)) => ((false, reason, note.clone()), (false, reason, note)),
        None => (no(), progressing),
    };
    let wrong = problem.filter(|_| view.problem != Some(&Problem::Paused));
    let degraded = wrong.map_or_else(no, |(reason, note)| (true, reason, note));
    [ready, no(), progressing, degraded, no(), no(), no(), formed()]
}

fn conditions(old: &RedisClusterStatus, view: &View<'_>, initialized: bool) -> Vec<Condition> {
    let made = if view.plan.step == Step::Hibernated { asleep(view) } else { awake(old, view, initialized) };
    let made = CONDITIONS.into_iter().zip(made);
    let hidden = initialized && hides_some(view.topology) && !view.topology.serves();
    made.map(|(kind, (is_true, reason, message))| {
        if hidden && ["Available", "Redundant", "SlotsCovered"].contains(&kind) {
            let (reason, message) = if view.topology.observed.pods.iter().any(|pod| pod.password_rejected) {
                ("PasswordRejected", "nodes reject the operator's password, so it cannot see what they serve")
            } else {
                ("CertificateUntrusted", "nodes present a certificate that is not trusted, so the operator cannot see what they serve")
            };
            return condition(old, view, kind, "Unknown", reason, message.into());
        }
        condition(old, view, kind, if is_true { "True" } else { "False" }, reason, message)
    })
    .collect()
}

/// The conditions of a cluster whose pods run, in the order of [`CONDITIONS`].
fn awake(old: &RedisClusterStatus, view: &View<'_>, initialized: bool) -> [(bool, &'static str, String); 8] {
    let topology = view.topology;
    let waking = is_waking(view);
    let goal = topology.goal;
    let (covered, all) = (topology.covered(), usize::from(goal.slots));
    let wanted = |pod: &&Pod| pod.redis.is_some() && pod.ordinal < goal.size;
    let responding = topology.observed.pods.iter().filter(wanted).count();
    // A node that was reset to join again responds, and joins within seconds.
    let excluded = responding.saturating_sub(topology.core.len());
    let excused = if topology.observed.join_overdue { 0 } else { excluded };
    let missing = (goal.size as usize).saturating_sub(topology.core.len() + excused);
    // Primaries that start are no majority that is down, unless all pods respond and it lasts.
    let respond = topology.observed.pods.iter().filter(|pod| pod.redis.is_some()).count();
    let all_respond = topology.observed.replicas.is_some_and(|replicas| respond >= replicas as usize);
    let starting = waking
        && view.plan.step == Step::Wait(Wait::Quorum)
        && !(all_respond && topology.observed.takeover_due);
    let (waits, why) = match starting {
        true => ("WaitingForPods", "nodes are starting after the hibernation".to_owned()),
        false => (waiting(view.plan.step).0, explanation(view)),
    };
    let per_shard = goal.replicas_per_shard as usize;
    let short = topology
        .owners()
        .filter(|owner| {
            topology.replicas_of(owner.node.id).filter(|replica| topology.in_sync(*replica)).count()
                < per_shard
        })
        .count();
    let failing = failing_update(old, view);

    let available = if topology.serves() {
        (true, "AllSlotsServed", format!("{covered} slots on {} primaries", topology.owners().count()))
    } else if !initialized {
        (false, "Forming", NOT_FORMED.into())
    } else if let Some(problem) = view.problem.filter(|_| topology.observed.pods.is_empty()) {
        (false, waits, format!("{covered} of {all} slots are served, and no pod runs: {problem}"))
    } else if covered == all {
        (
            false,
            waits,
            format!("every slot has an owner that responds, but not every owner accepts clients; {why}"),
        )
    } else {
        (false, waits, format!("{covered} of {all} slots are served; {why}"))
    };
    let progressing = match (view.problem, view.plan.step) {
        (Some(problem), _) => (false, problem.reason(), problem.to_string()),
        (None, Step::Settled) => match late(view) {
            Some((reason, note)) => (true, reason, note),
            None => (false, "Settled", "up to date".into()),
        },
        (None, step) if failed(step) && !starting => (false, waits, why.clone()),
        (None, _) => (true, waits, why.clone()),
    };
    let degraded = if let Some(problem) = view.problem.filter(|problem| **problem != Problem::Paused) {
        (true, problem.reason(), problem.to_string())
    } else if let Some((reason, note)) = damage(old, view, failing) {
        (true, reason, note)
    } else if initialized
        && (missing > 0 || !topology.absent.is_empty() && !all_respond)
        && !failed(view.plan.step)
        && !waking
        && (is_slow(topology) || !is_updating(old, view))
    {
        let note = if topology.observed.join_overdue && missing > 0 && missing == excluded {
            format!(
                "{missing} of {} nodes respond and cannot join: check that pods reach each other at port 16379",
                goal.size
            )
        } else if missing > 0 {
            format!("{missing} of {} nodes do not respond", goal.size)
        } else {
            format!("the nodes know {} members that no longer respond", topology.absent.len())
        };
        (true, "MembersMissing", note)
    } else if failed(view.plan.step) && !starting {
        (true, waits, why.clone())
    } else if let Some((reason, note)) = flaw(view) {
        (true, reason, note)
    } else if waking && missing > 0 {
        (
            false,
            "WaitingForPods",
            format!("{missing} of {} nodes have not started yet since the hibernation ended", goal.size),
        )
    } else if !initialized {
        (false, "Forming", NOT_FORMED.into())
    } else {
        (false, ALL_WELL, "all members respond".into())
    };
    let redundant = if per_shard == 0 {
        (false, "NoReplicas", "replicasPerShard is 0: if a node is lost, so are its slots".into())
    } else if covered < all {
        (false, "SlotsNotServed", format!("{} of {all} slots have no responding owner", all - covered))
    } else if short > 0 {
        (false, "ReplicasMissing", format!("{short} shards have fewer replicas in sync than configured"))
    } else if let Some(together) = copies_on_one_node(topology) {
        (false, "CopiesOnOneNode", together)
    } else if let Some(together) = copies_in_one_zone(topology) {
        (false, "CopiesInOneZone", together)
    } else if goal.shards() < 3 {
        (false, "NoFailoverQuorum", "with fewer than three shards Redis cannot fail over by itself; the operator promotes replicas instead".into())
    } else {
        (true, "AllShardsReplicated", format!("every shard has {per_shard} replicas in sync"))
    };
    let slots = if covered == all {
        (true, "AllSlotsCovered", format!("all {covered} slots have a responding owner"))
    } else if !initialized {
        (false, "Forming", "slots have not been assigned yet".into())
    } else {
        let lost = topology.lost();
        let note = if lost.is_empty() {
            format!("{covered} of {all} slots have a responding owner")
        } else {
            format!("slots lost with their only owner: {lost}")
        };
        (false, waits, note)
    };
    let update = if let Some(Problem::CannotGrow(why)) = view.problem {
        (true, NOT_RESIZED, why.to_string())
    } else if let Volumes::Larger { found } = view.volumes {
        (true, NOT_RESIZED, format!("volumes have {found} and cannot shrink; set spec.storage.size to that"))
    } else if let Some(Problem::ConfigRefused(refusal)) = view.problem {
        (true, CONFIG_REFUSED, refusal.to_string())
    } else if let Some((reason, note)) = late(view).filter(|_| !is_updating(old, view)) {
        (true, reason, note)
    } else if !is_updating(old, view) && !view.above_limit.is_empty() {
        let note = format!(
            "nodes use more than {SHARE} % of spec.resources.limits.memory, and keep the maxmemory that they have: {}; raise the limit, delete keys, or set spec.config.maxmemory",
            names(view.above_limit)
        );
        (true, MEMORY_ABOVE_LIMIT, note)
    } else if !is_updating(old, view) && *view.rotation == Rotation::Both {
        let name = Names::of(view.cluster).auth.0;
        let note = format!(
            "all nodes accept both passwords in Secret `{name}`: move clients to the new one, then remove the key `previousPassword`"
        );
        (false, BOTH_PASSWORDS, note)
    } else if let Some(loaded) =
        view.loaded.filter(|loaded| !loaded.unread.is_empty() && !is_updating(old, view))
    {
        let note = format!(
            "two minutes after Secret `{}` was written, when it has reached all pods, these nodes read it once more: {}",
            loaded.secret,
            names(&loaded.unread)
        );
        (false, CERTIFICATE_UNREAD, note)
    } else if !is_updating(old, view) {
        (false, "UpToDate", "all pods have what the spec wants".into())
    } else {
        let number = outdated(topology);
        let count = format!("{number} of {} pods have an older image, configuration or resources", goal.size);
        match view.plan.step {
            _ if goal.update.refused => (true, "DowngradeRefused", refusal(view)),
            _ if failing.is_some() => (true, ROLLOUT_FAILED, format!("{count}; see the condition Degraded")),
            Step::Wait(Wait::Approval) => (true, "WaitingForApproval", format!("{count}; {APPROVAL}")),
            _ if number == 0 => (true, "PodsOutdated", "waiting for the last pod that was replaced".into()),
            _ => (true, "PodsOutdated", count),
        }
    };
    let formed = if initialized { formed() } else { (false, "NotFormed", NOT_FORMED.into()) };
    let settled = view.problem.is_none() && view.plan.step == Step::Settled;
    let ready = if is_ready(view) {
        (true, "Settled", "the cluster matches its spec".into())
    } else if let Some(problem) = view.problem {
        (false, problem.reason(), problem.to_string())
    } else if let Some((reason, note)) = late(view).or_else(|| unwritable(view)).filter(|_| settled) {
        (false, reason, note)
    } else {
        (false, waits, why.clone())
    };
    [ready, available, progressing, degraded, redundant, slots, update, formed]
}

/// Reason of Degraded, and of Ready: nodes cannot write their files, and refuse the writes of clients.
const WRITES_REFUSED: &str = "WritesRefused";

/// The append-only file takes more than this part of its volume, in percent: the next one is written beside it.
const FILE_SHARE: u64 = 80;

/// What to do about files that cannot be written.
const LARGER: &str = "check the log of Redis, and enlarge spec.storage.size if the volume is full";

/// Reason of Degraded, and of what an update waits for: claims are being deleted, and go with their pods.
const CLAIM_TERMINATING: &str = "ClaimTerminating";

/// What is wrong with pods, the gravest first: what keeps clients from writing, what would be lost for good, and then what hurts a single
/// pod. Reason and sentence.
fn damage(
    old: &RedisClusterStatus,
    view: &View<'_>,
    failing: Option<&Pod>,
) -> Option<(&'static str, String)> {
    let not_created = |NotCreated { pod, why }: &NotCreated| {
        let note = format!(
            "Kubernetes does not create pod {pod}: {why}; correct spec.pods, spec.resources or spec.storage, or resolve what the message says"
        );
        ("FailedCreate", note)
    };
    unwritable(view)
        .or_else(|| ending_claims(view))
        .or_else(|| Some((ROLLOUT_FAILED, rollout_failed(old, view.topology, failing?))))
        .or_else(|| Some(("PodTrouble", trouble(view.topology.observed)?)))
        .or_else(|| view.not_created.map(not_created))
}

/// Pods whose claims are being deleted: reason and sentence.
fn ending_claims(view: &View<'_>) -> Option<(&'static str, String)> {
    let name = view.cluster.name_any();
    let pods = view.topology.observed.pods.iter().filter(|pod| pod.claim_ends && !pod.terminating);
    let claims: Vec<String> =
        pods.map(|pod| format!("{} of pod {}", children::claim_name(&name, pod.ordinal), pod.name)).collect();
    let note = || {
        format!(
            "PersistentVolumeClaims are being deleted, and Kubernetes deletes the data with them when their pods end: {}; clients can write until then, and the operator ends no pod that has the only copy of its keys; raise spec.size and spec.replicasPerShard to copy the keys to other nodes, then delete these pods one after another",
            names(&claims)
        )
    };
    (!claims.is_empty()).then(|| (CLAIM_TERMINATING, note()))
}

/// What is wrong without keeping the operator from anything: reason and sentence.
fn flaw(view: &View<'_>) -> Option<(&'static str, String)> {
    let flaw = persistence(view).or_else(|| functions(view.topology)).or_else(|| expiry(view));
    flaw.or_else(|| view.users.problem())
}

/// A certificate that expires soon: reason and sentence.
fn expiry(view: &View<'_>) -> Option<(&'static str, String)> {
    let loaded = view.loaded?;
    let (secret, at) = (&loaded.secret, loaded.expires?);
    let note = format!(
        "the certificate in Secret `{secret}`, or the CA that signed it, expires at {at}: renew it, and nodes load it while they run"
    );
    Some((CERTIFICATE_EXPIRES, note))
}

/// Primaries that do not have as many function libraries as the others: reason and sentence.
fn functions(topology: &Topology<'_>) -> Option<(&'static str, String)> {
    let most = topology.owners().map(|owner| owner.node.libraries).max()?;
    let lacking: Vec<String> = topology
        .owners()
        .filter(|owner| owner.node.libraries < most)
        .map(|owner| owner.pod.name.clone())
        .collect();
    let note = || {
        format!(
            "primaries have fewer than {most} function libraries, so FCALL fails for keys there: {}; run `FUNCTION LOAD` on each of them, or `FUNCTION DELETE` on the others",
            names(&lacking)
        )
    };
    (!lacking.is_empty()).then(|| ("FunctionsDiffer", note()))
}

/// What keeps clients from writing: reason and sentence.
fn unwritable(view: &View<'_>) -> Option<(&'static str, String)> {
    persistence(view).filter(|(reason, _)| *reason == WRITES_REFUSED).or_else(|| without_replicas(view))
}

/// Primaries that take no writes because they have fewer replicas than they want: reason and sentence.
fn without_replicas(view: &View<'_>) -> Option<(&'static str, String)> {
    let owners = view.topology.owners();
    let lacking = owners.filter_map(|owner| {
        let wanted: u64 = owner.node.settings.get(MIN_REPLICAS)?.parse().ok()?;
        let found = owner.node.good_replicas.filter(|found| *found < wanted)?;
        Some(format!("{} ({found} of {wanted})", owner.pod.name))
    });
    let lacking: Vec<String> = lacking.collect();
    let note = || {
        let remedy = match view.cluster.spec.config.get(MIN_REPLICAS) {
            Some(_) => "it ends when their replicas are in sync, or when spec.config is changed",
            None => {
                "spec.config does not have it, so somebody set it by hand: run `redis-cli CONFIG SET min-replicas-to-write 0` there"
            }
        };
        format!(
            "Redis refuses writes (NOREPLICAS) because primaries have fewer replicas than their {MIN_REPLICAS} wants: {}; {remedy}",
            names(&lacking)
        )
    };
    (!lacking.is_empty()).then(|| (WRITES_REFUSED, note()))
}

/// What is wrong with the files of nodes: reason, and sentence with the cause.
fn persistence(view: &View<'_>) -> Option<(&'static str, String)> {
    let storage = view.cluster.spec.storage.as_ref()?;
    let limit = bytes(&storage.size.0).map_or(u64::MAX, |bytes| bytes / 100 * FILE_SHARE);
    let affected = |is: &dyn Fn(&Node) -> bool| {
        let pods = view.topology.observed.pods.iter();
        let found = pods.filter(|pod| pod.redis.as_ref().is_some_and(is));
        let found: Vec<String> = found.map(|pod| pod.name.clone()).collect();
        (!found.is_empty()).then(|| names(&found))
    };
    if let Some(pods) = affected(&|node| node.persistence.write_failed) {
        let note = format!(
            "Redis refuses writes because it cannot write its append-only file (aof_last_write_status) in {pods}; {LARGER}"
        );
        return Some((WRITES_REFUSED, note));
    }
    if let Some(pods) = affected(&|node| node.settings.get(APPEND_ONLY).is_some_and(|is| is == "no")) {
        let note = format!(
            "somebody turned off the append-only file (appendonly) in {pods}, and keys written there are lost with the process: the operator turns it on again; if that does not last, {LARGER}"
        );
        return Some(("PersistenceFailing", note));
    }
    if let Some(pods) = affected(&|node| node.persistence.rewrite_failed || node.persistence.snapshot_failed)
    {
        let note = format!(
            "Redis could not write a file in the background (aof_last_bgrewrite_status, rdb_last_bgsave_status) in {pods}; {LARGER}"
        );
        return Some(("PersistenceFailing", note));
    }
    let pods = affected(&|node| node.persistence.file_bytes > limit)?;
    let note = format!(
        "the append-only file takes more than {FILE_SHARE} % of the volume in {pods}, and the next one is written beside it: enlarge spec.storage.size, or delete keys"
    );
    Some(("VolumeNearlyFull", note))
}

const NOT_FORMED: &str = "the cluster has not been formed yet";

fn formed() -> (bool, &'static str, String) {
    (true, "Formed", "the cluster was formed; from now on it is repaired, never formed again".into())
}

/// What running pods get without being replaced, and do not have yet: reason and sentence.
fn late(view: &View<'_>) -> Option<(&'static str, String)> {
    let growing = match view.volumes {
        Volumes::Sized | Volumes::Larger { .. } => None,
        Volumes::Grow(claims) => Some(format!("{} volumes are smaller than spec.storage.size", claims.len())),
        Volumes::Recreate => Some("making the StatefulSet anew for larger volumes; its pods stay".into()),
        Volumes::Resizing { done, all, says } => {
            let says = says.as_ref().map(|says| format!(" ({says})")).unwrap_or_default();
            Some(format!(
                "{done} of {all} volumes have the new size; Kubernetes is resizing the others{says}"
            ))
        }
    };
    let config = || format!("{} running nodes have not taken spec.config yet", view.unconfigured);
    let config = (view.unconfigured > 0).then(|| (CONFIG_PENDING, config()));
    let password = match view.rotation {
        Rotation::None | Rotation::Both => None,
        Rotation::Adding(pods) => Some((
            PASSWORD_PENDING,
            format!(
                "nodes do not have the passwords in the Secret yet: {}; clients must keep the old one",
                names(pods)
            ),
        )),
        Rotation::Removing(pods) => Some((
            OLD_PASSWORD,
            format!(
                "nodes still accept an old password: {}; it is removed two minutes after the Secret was written, once all nodes respond",
                names(pods)
            ),
        )),
    };
    let certificate = view.loaded.filter(|loaded| !loaded.pending.is_empty()).map(|loaded| {
        let refused = loaded.refused.as_ref();
        let refused = refused.map(|(pod, answer)| format!("; Redis in {pod} said: {answer}"));
        format!(
            "nodes do not present the certificate in Secret `{}` yet: {}; they load it two minutes after the Secret was written, when it has reached their pods{}",
            loaded.secret,
            names(&loaded.pending),
            refused.unwrap_or_default()
        )
    });
    let wrong = view.problem.filter(|problem| {
        matches!(
            problem,
            Problem::CertificateMissing { .. }
                | Problem::CertificateKeyMissing { .. }
                | Problem::CertificateUnusable { .. }
        )
    });
    let certificate = certificate.map(|note| (CERTIFICATE_PENDING, wrong.map_or(note, Problem::to_string)));
    growing.map(|note| (GROWING, note)).or(password).or(certificate).or(config)
}

fn condition(
    old: &RedisClusterStatus,
    view: &View<'_>,
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
) -> Condition {
    let before = old.conditions.iter().find(|condition| condition.type_ == kind);
    Condition {
        last_transition_time: match before {
            Some(before) if before.status == status => before.last_transition_time.clone(),
            _ => view.now.clone(),
        },
        type_: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        observed_generation: view.cluster.metadata.generation,
    }
}

/// A step as a sentence, with the pods where the user has to know which.
fn explanation(view: &View<'_>) -> String {
    let (topology, sentence) = (view.topology, waiting(view.plan.step).1);
    match view.plan.step {
        Step::Wait(Wait::ForeignNode) => {}
        Step::Reintroduce => {
            let names: Vec<_> = topology.forgotten().map(|member| member.pod.name.as_str()).collect();
            return format!("{}: {sentence}", names.join(", "));
        }
        Step::Wait(Wait::Bans) => {
            let banning = topology.outsiders.iter().filter(|member| topology.spreads_bans(member));
            let names: Vec<_> = banning.map(|member| member.pod.name.as_str()).collect();
            return format!("{}: {sentence}", names.join(", "));
        }
        Step::Wait(Wait::StaleReplicas) => return stale_replicas(topology),
        Step::Wait(Wait::Quorum) => {
            return format!("{sentence}{}{}", unconfirmed(topology), unlisted(topology));
        }
        Step::Wait(Wait::SlotsLost) => return format!("{sentence}{}", unlisted(topology)),
        Step::Wait(Wait::Downgrade) => return refusal(view),
        _ => return sentence.into(),
    }
    let leaving = topology.core.iter().filter(|member| {
        member.pod.ordinal >= topology.goal.size
            && member.node.keys > 0
            && !topology.owned.contains_key(&member.node.id)
    });
    let foreign = topology.outsiders.iter().filter(|member| !member.node.blank()).chain(leaving);
    let names: Vec<_> = foreign.map(|member| member.pod.name.as_str()).collect();
    format!("{}: {sentence}", names.join(", "))
}

/// The pods of lost primaries whose processes may run, and how the user confirms that they do not.
fn unconfirmed(topology: &Topology<'_>) -> String {
    let missing = topology.missing_ordinals();
    let pods: Vec<&Pod> = topology
        .observed
        .pods
        .iter()
        .filter(|pod| missing.contains(&pod.ordinal) && pod.redis.is_none() && pod.ip.is_some() && !pod.ended)
        .collect();
    if pods.is_empty() || !topology.goal.take_over || !topology.observed.takeover_due {
        return String::new();
    }
    let of = |text: fn(&Pod) -> &String| pods.iter().map(|pod| text(pod).clone()).collect::<Vec<_>>();
    format!(
        "; not confirmed to be stopped: {}; if you know that these are, delete their Kubernetes nodes, taint these with `node.kubernetes.io/out-of-service`, or set spec.recovery.stoppedPods to [{}]",
        names(&of(|pod| &pod.name)),
        of(|pod| &pod.uid).join(", ")
    )
}

/// The pods that are waited for before data is given up or replicas are promoted without a vote, and how the user ends the wait.
fn unlisted(topology: &Topology<'_>) -> String {
    let pods: Vec<String> = topology.unlisted().map(|pod| pod.name.clone()).collect();
    let goal = topology.goal;
    let waits = goal.accept_data_loss || goal.take_over && topology.observed.takeover_due;
    if pods.is_empty() || !waits {
        return String::new();
    }
    let claims = if goal.update.in_memory { "" } else { "their PersistentVolumeClaims and then " };
    format!(
        "; waiting first for pods to start with nodes that the others were told to forget: {}; if what they had is gone for good, delete {claims}these pods",
        names(&pods)
    )
}

/// Which primaries are waited for, why none of their replicas is promoted, and what ends the wait.
fn stale_replicas(topology: &Topology<'_>) -> String {
    let missing = topology.missing_owners();
    let pods: Vec<String> = missing.iter().filter_map(|id| topology.pod_name(*id)).collect();
    let replicas =
        missing.iter().flat_map(|id| topology.replicas_of(*id)).map(|replica| replica.pod.name.clone());
    let replicas: Vec<String> = replicas.collect();
    format!(
        "waiting for the primaries in {} to start with their data: their replicas ({}) are not known to have been in sync, and promoting one would lose the writes that it lacks; to promote the best one nevertheless, set spec.recovery.lostSlots to AcceptDataLoss",
        names(&pods),
        names(&replicas)
    )
}

/// Why the new image is not used, with both versions.
fn refusal(view: &View<'_>) -> String {
    let found = downgrade(&view.cluster.spec.image, view.topology.observed);
    found.map_or_else(
        || DOWNGRADE.into(),
        |Downgrade { from, to }| {
            format!("{to} in spec.image cannot read the data of {from}; {DOWNGRADE_WAY_OUT}")
        },
    )
}

const APPROVAL: &str = "spec.update.strategy is Supervised: set it to Auto to replace the pods of primaries, or run `redis-cli CLUSTER FAILOVER` on an updated replica of each";
const DOWNGRADE: &str = "the server in spec.image cannot read the data of the one that runs";
const DOWNGRADE_WAY_OUT: &str =
    "revert spec.image, or set spec.update.allowDowngrade to replace pods all the same";

const ONLY_COPY: &str = "a pod that is to be replaced has the only copy of its keys, and its PersistentVolumeClaim is being deleted; see the condition Degraded";

const REINTRODUCING: &str = "ReintroducingMembers";
const FORGOTTEN: &str = "introducing a node again (CLUSTER MEET) that others were told to forget, or that was told to forget them: it still has its keys";
const BANS: &str = "the node was told to forget others (CLUSTER FORGET), and tells all nodes to forget them for a minute; it is introduced again (CLUSTER MEET) after that";

/// A step as the reason of a condition, and as a sentence.
fn waiting(step: Step) -> (&'static str, &'static str) {
    match step {
        Step::Settled => ("Settled", "up to date"),
        Step::Form => ("Forming", "forming the cluster"),
        Step::HealAddresses => ("HealingAddresses", "updating node addresses after pods were recreated"),
        Step::Relink => ("RepairingReplication", "reconnecting replicas to their primaries"),
        Step::CloseSlots => ("ClosingSlots", "finishing interrupted slot migrations"),
        Step::Forget => ("ForgettingMembers", "forgetting removed nodes (CLUSTER FORGET)"),
        Step::Reintroduce => (REINTRODUCING, FORGOTTEN),
        Step::Wait(Wait::Bans) => (REINTRODUCING, BANS),
        Step::Join => ("JoiningMembers", "adding new nodes (CLUSTER MEET)"),
        Step::Functions => ("CopyingFunctions", "copying function libraries to new primaries"),
        Step::Roles => ("AssigningRoles", "assigning primaries and replicas"),
        Step::Move => ("MovingSlots", "migrating slots"),
        Step::Shrink => ("RemovingMembers", "removing drained nodes"),
        Step::Spread => (
            "SpreadingReplicas",
            "moving a replica to another shard because two copies of its shard are on one Kubernetes node",
        ),
        Step::Balance => (
            "BalancingPrimaries",
            "promoting a replica because too many primaries are on one Kubernetes node or in one zone",
        ),
        Step::TakeOver => {
            ("TakingOver", "promoting replicas without a vote because the majority of primaries is down")
        }
        Step::Elect => ("ForcingElection", "forcing an election for a failed primary"),
        Step::Reclaim => (
            "ReclaimingSlots",
            "giving slots back to the node that the others name as their owner and that has lost track of them",
        ),
        Step::AcceptLoss => ("AssigningLostSlots", "assigning lost slots to other nodes, without their keys"),
        Step::Wait(Wait::Pods) => ("WaitingForPods", "waiting for pods to start and Redis to respond"),
        Step::Wait(Wait::Gossip) => ("WaitingForGossip", "waiting for gossip to converge"),
        Step::Wait(Wait::Election) => ("WaitingForElection", "waiting for Redis to elect a new primary"),
        Step::Wait(Wait::Quorum) => (
            "QuorumLost",
            "the majority of primaries is down, so automatic failover is impossible; the operator promotes their replicas once it has confirmed that their processes are stopped, unless spec.recovery.quorumLoss is Manual: then restore the pods, or run `redis-cli CLUSTER FAILOVER TAKEOVER` on one replica of each",
        ),
        Step::Wait(Wait::Sync) => {
            ("WaitingForReplicas", "waiting for replicas to be in sync with their primaries")
        }
        Step::Wait(Wait::DataLost) => (
            "DataLost",
            "no node owns any slots although the cluster was formed: its data is lost; restore its volumes, or set spec.recovery.lostSlots to AcceptDataLoss to start over without the data",
        ),
        Step::Wait(Wait::SlotsLost) => (
            "SlotsLost",
            "slots were lost with their only owner; restore that node, or set spec.recovery.lostSlots to AcceptDataLoss to serve these slots again without their keys",
        ),
        Step::Wait(Wait::StaleReplicas) => (
            "ReplicasStale",
            "waiting for primaries to start with their data, because their replicas lack writes",
        ),
        Step::Wait(Wait::ForeignNode) => (
            "ForeignNode",
            "the node has keys or a nodes.conf that are not known to belong to this cluster; compare `redis-cli CLUSTER NODES` in it with that of the others and with status.members, and look at its keys: if it belongs here and the others do not list it, run `redis-cli CLUSTER MEET` with its address in another pod; deleting its volume and pod, or `redis-cli FLUSHALL` and `redis-cli CLUSTER RESET` in it, destroys what it holds",
        ),
        Step::Update => {
            ("UpdatingPods", "replacing pods that have an older image, configuration or resources")
        }
        Step::Hold => ("StoppingWrites", "stopping writes before all pods are stopped"),
        Step::Release => ("AllowingWrites", "letting clients write again"),
        Step::Hibernate => ("Hibernating", "stopping all pods; their volumes are kept"),
        Step::Hibernated => (HIBERNATED, HIBERNATED_NOTE),
        Step::Wait(Wait::Volumes) => (
            "KeepingVolumes",
            "pods are not stopped while Kubernetes would delete their volumes: waiting until its StatefulSet controller has seen `persistentVolumeClaimRetentionPolicy: Retain`, and no PersistentVolumeClaim is owned by a Pod or StatefulSet or is being deleted",
        ),
        Step::Wait(Wait::Writers) => (
            "CannotStopWrites",
            "replicas did not catch up within a minute without writes, so clients may write again, and the operator tries again after five minutes; set spec.hibernated to false to give up",
        ),
        Step::Wait(Wait::Approval) => ("WaitingForApproval", APPROVAL),
        Step::Wait(Wait::Claims) => (CLAIM_TERMINATING, ONLY_COPY),
        Step::Wait(Wait::Downgrade) => ("DowngradeRefused", DOWNGRADE),
        Step::Wait(Wait::Cooldown) => (
            "WaitingForFailover",
            "waiting until four node timeouts have passed since the last failover to the same node",
        ),
        Step::Wait(Wait::Memory) => (
            "InsufficientMemory",
            "the remaining nodes do not have enough memory for the data; increase maxmemory or spec.size",
        ),
    }
}

/// The metrics of a cluster.
pub fn gauges(view: &View<'_>, status: &RedisClusterStatus) -> ClusterGauges {
    let topology = view.topology;
    let mut open = Slots::default();
    for member in &topology.core {
        for slot in member.node.migrating.keys().chain(member.node.importing.keys()) {
            open.insert(*slot, *slot);
        }
    }
    let lost = if status.initialized == Some(true) { topology.lost().len() } else { 0 };
    let asleep = view.plan.step == Step::Hibernated;
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    ClusterGauges {
        desired: if asleep { 0 } else { topology.goal.size.into() },
        ready: status.ready_nodes.unwrap_or(0).into(),
        members: number(topology.core.len() + topology.absent.len()),
        covered: status.slots_covered.unwrap_or(0).into(),
        open: number(open.len()),
        lost: number(lost),
        // What is unknown stays as it was.
        conditions: status
            .conditions
            .iter()
            .filter(|condition| condition.status != "Unknown")
            .map(|condition| (condition.type_.clone(), condition.status == "True"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controller::{hibernate::was_hibernated, notices::tests::formed},
        plan::{Goal, Trouble},
    };

    /// One shard of two copies, on these Kubernetes nodes.
    fn two_copies(hosts: [&str; 2]) -> Vec<Pod> {
        let id = |digit: &str| digit.repeat(40);
        let table = |own: &str| {
            ["a", "b"]
                .map(|node| {
                    let flags = if node == own { "myself," } else { "" };
                    let role = if node == "a" { "master -".into() } else { format!("slave {}", id("a")) };
                    let slots = if node == "a" { "0-16383" } else { "" };
                    let address = format!("10.0.0.{}:6379@16379,rc-{node}", u32::from(node == "b"));
                    format!("{} {address} {flags}{role} 0 0 1 connected {slots}\n", id(node))
                })
                .concat()
        };
        let pod = |ordinal: u32, own: &str, info: &str| Pod {
            ordinal,
            name: format!("rc-{ordinal}"),
            uid: ordinal.to_string(),
            ip: format!("10.0.0.{ordinal}").parse().ok(),
            host: Some(hosts[ordinal as usize].into()),
            redis: Some(crate::server::parse::node(&table(own), "cluster_state:ok", info, 1).unwrap()),
            ..Pod::default()
        };
        vec![
            pod(0, "a", "role:master"),
            pod(1, "b", "role:slave\nmaster_link_status:up\nmaster_host:10.0.0.0"),
        ]
    }

    /// What the status says of these pods of such a shard.
    #[track_caller]
    fn check_condition(
        pods: Vec<Pod>,
        loaded: Option<&Loaded>,
        kind: &str,
        not_created: Option<&NotCreated>,
        expected: &str,
    ) {
        check_after(&formed(""), pods, loaded, kind, not_created, expected);
    }

    /// The same after an older status.
    #[track_caller]
    fn check_after(
        old: &RedisClusterStatus,
        pods: Vec<Pod>,
        loaded: Option<&Loaded>,
        kind: &str,
        not_created: Option<&NotCreated>,
        expected: &str,
    ) {
        let made = viewed(old, pods, loaded, not_created, |view| status(old, &view).conditions);
        let found = made.iter().find(|condition| condition.type_ == kind).unwrap();
        let text = format!("{} {}: {}", found.status, found.reason, found.message);
        assert!(text.starts_with(expected), "{text}");
    }

    /// What `take` makes of such a shard, as a reconcile sees it.
    fn viewed<T>(
        old: &RedisClusterStatus,
        pods: Vec<Pod>,
        loaded: Option<&Loaded>,
        not_created: Option<&NotCreated>,
        take: impl FnOnce(View<'_>) -> T,
    ) -> T {
        let goal =
            Goal { size: 2, replicas_per_shard: 1, slots: 16384, initialized: true, ..Goal::default() };
        let observed = Observed { pods, replicas: Some(2), ..Observed::default() };
        let topology = Topology::of(goal, &observed);
        let object = serde_json::json!({
            "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": {"name": "rc"},
            "spec": {"size": 2, "replicasPerShard": 1, "storage": {"size": "1G"}},
        });
        let cluster: RedisCluster = serde_json::from_value(object).unwrap();
        let plan = crate::plan::plan(&topology);
        take(View {
            cluster: &cluster,
            topology: &topology,
            plan: &plan,
            problem: None,
            volumes: &Volumes::Sized,
            unconfigured: 0,
            above_limit: &[],
            rotation: &Rotation::None,
            loaded,
            users: &Users::default(),
            not_created,
            woken: was_hibernated(old),
            now: Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH),
        })
    }

    #[track_caller]
    fn check_hosts(hosts: [&str; 2], expected: &str) {
        check_condition(two_copies(hosts), None, "Redundant", None, expected);
    }

    #[test]
    fn how_far_nodes_are_with_a_certificate() {
        let pods = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let check = |loaded: Loaded, kind: &str, expected: &str| {
            let loaded = Loaded { secret: "certs".into(), ..loaded };
            check_condition(two_copies(["a", "b"]), Some(&loaded), kind, None, expected);
        };
        check(Loaded::default(), "UpdatePending", "False UpToDate: ");
        check(Loaded::default(), "Degraded", "False AllMembersWell: ");
        let expires = Some("2027-01-01T00:00:00Z".parse().unwrap());
        let soon = || Loaded { expires, ..Loaded::default() };
        let text = "True CertificateExpires: the certificate in Secret `certs`, or the CA that signed it, expires at 2027-01-01T00:00:00Z: renew it";
        check(soon(), "Degraded", text);
        check(soon(), "Ready", "True Settled: ");
        let unread = || Loaded { unread: pods(&["rc-0"]), ..Loaded::default() };
        check(
            unread(),
            "UpdatePending",
            "False CertificateUnread: two minutes after Secret `certs` was written",
        );
        check(unread(), "Ready", "True Settled: ");
        let refused = Some(("rc-0".into(), "no".into()));
        let pending = || Loaded { pending: pods(&["rc-0", "rc-1"]), refused: refused.clone(), ..unread() };
        let text = "True CertificatePending: nodes do not present the certificate in Secret `certs` yet: rc-0, rc-1; ";
        check(pending(), "UpdatePending", text);
        check(pending(), "Ready", "False CertificatePending: ");
        assert_eq!(pending().problem(), None, "its files may be old");
        let problem = Loaded { unread: vec![], ..pending() }.problem().unwrap();
        assert_eq!(problem.reason(), "CertificateUnusable");
    }

    #[test]
    fn nodes_that_do_not_respond_are_counted() {
        let pods = |change: fn(&mut Pod)| {
            let mut pods = two_copies(["a", "b"]);
            change(&mut pods[1]);
            pods
        };
        let check = |change, expected| check_condition(pods(change), None, "Degraded", None, expected);
        check(|_| {}, "False AllMembersWell: all members respond");
        check(|pod| pod.redis = None, "True MembersMissing: 1 of 2 nodes do not respond");
        // It was reset, and joins again.
        check(
            |pod| {
                let table = format!("{} :6379@16379 myself,master - 0 0 0 connected\n", "c".repeat(40));
                pod.redis = crate::server::parse::node(&table, "cluster_state:fail", "role:master", 1).ok();
            },
            "False AllMembersWell: all members respond",
        );
        check(
            |pod| {
                pod.trouble =
                    Some(Trouble { what: "container `x`: CrashLoop".into(), fields: None, has_run: false })
            },
            "True PodTrouble: pod rc-1: container `x`: CrashLoop; resolve what the message says",
        );
    }

    /// They keep replicas from being promoted without a vote.
    #[test]
    fn pods_with_forgotten_nodes_are_named_where_they_are_waited_for() {
        let mut pods = two_copies(["a", "b"]);
        let node = pods[1].redis.as_ref().unwrap();
        let missed = |peer: &crate::plan::Peer| crate::plan::Peer { failed: true, ..peer.clone() };
        let table: Vec<_> = node.table.iter().map(missed).collect();
        pods[1].redis = Some(crate::plan::Node { table: table.into(), ..node.clone() });
        (pods[0].redis, pods[0].ended) = (None, true);
        pods.push(Pod { ordinal: 2, name: "rc-2".into(), ..Pod::default() });
        let goal = Goal {
            size: 3,
            replicas_per_shard: 2,
            slots: 16384,
            initialized: true,
            take_over: true,
            accept_data_loss: true,
            ..Goal::default()
        };
        let check = |known: &str, expected: Step, named: &str| {
            let known = known::observed(&formed(known)).known;
            let pods = pods.clone();
            let observed = Observed { pods, known, takeover_due: true, ..Observed::default() };
            let topology = Topology::of(goal, &observed);
            assert_eq!(crate::plan::plan(&topology).step, expected);
            assert!(unlisted(&topology).contains(named), "{}", unlisted(&topology));
        };
        let listed = format!("rc-0 {} primary, rc-1 {} replica", "a".repeat(40), "b".repeat(40));
        check(&listed, Step::TakeOver, "");
        let with_another = format!("{listed}, rc-2 {} replica", "c".repeat(40));
        let named = "told to forget: rc-2; if what they had is gone for good, delete their PersistentVolumeClaims and then these pods";
        check(&with_another, Step::Wait(Wait::Quorum), named);
    }

    #[test]
    fn nodes_of_a_hibernated_cluster_that_have_not_started_are_counted() {
        let mut pods = two_copies(["a", "b"]);
        pods[1].redis = None;
        let old = RedisClusterStatus { phase: Some(Phase::Waking), ..formed("") };
        let expected = "False WaitingForPods: 1 of 2 nodes have not started yet";
        check_after(&old, pods, None, "Degraded", None, expected);
    }

    #[test]
    fn a_pod_that_kubernetes_does_not_create_is_named() {
        let refused = NotCreated { pod: "rc-1".into(), why: "no quota".into() };
        let pods = two_copies(["a", "b"]).drain(..1).collect();
        check_condition(
            pods,
            None,
            "Degraded",
            Some(&refused),
            "True FailedCreate: Kubernetes does not create pod rc-1: no quota; ",
        );
    }

    /// They may serve their clients.
    #[test]
    fn while_all_nodes_reject_the_password_availability_is_unknown() {
        let mut pods = two_copies(["a", "b"]);
        for pod in &mut pods {
            (pod.redis, pod.password_rejected) = (None, true);
        }
        for kind in ["Available", "Redundant", "SlotsCovered"] {
            check_condition(pods.clone(), None, kind, None, "Unknown PasswordRejected: nodes reject");
        }
        pods[1].password_rejected = false;
        check_condition(pods.clone(), None, "Available", None, "Unknown PasswordRejected: nodes reject");
        pods[0].password_rejected = false;
        check_condition(
            pods.clone(),
            None,
            "Available",
            None,
            "False WaitingForPods: 0 of 16384 slots are served",
        );
        pods[0].certificate_rejected = Some("invalid peer certificate: UnknownIssuer".into());
        check_condition(pods, None, "Available", None, "Unknown CertificateUntrusted: nodes present");
    }

    #[test]
    fn both_copies_of_a_shard_on_one_kubernetes_node() {
        check_hosts(["a", "b"], "False NoFailoverQuorum: ");
        check_hosts(
            ["a", "a"],
            "False CopiesOnOneNode: 1 shards have all copies on one Kubernetes node, for example rc-0 and rc-1 on `a`: ",
        );
    }

    #[test]
    fn a_volume_that_is_full_is_reported() {
        let pods = |info: &str| {
            let mut pods = two_copies(["a", "b"]);
            let table =
                format!("{} 10.0.0.0:6379@16379,rc-a myself,master - 0 0 1 connected", "a".repeat(40));
            let node = crate::server::parse::node(&table, "", info, 1).unwrap();
            pods[0].redis.as_mut().unwrap().persistence = node.persistence;
            pods
        };
        let check = |info: &str, kind: &str, expected: &str| {
            check_condition(pods(info), None, kind, None, expected);
        };
        check("aof_last_write_status:err", "Degraded", "True WritesRefused: Redis refuses writes because");
        check("aof_last_write_status:err", "Ready", "False WritesRefused: ");
        // A replica whose process ended does not take its place.
        let mut crashed = pods("aof_last_write_status:err");
        let what = "container `redis`: CrashLoopBackOff".into();
        (crashed[1].redis, crashed[1].trouble) = (None, Some(Trouble { what, fields: None, has_run: true }));
        check_condition(crashed, None, "Degraded", None, "True WritesRefused: ");
        check("rdb_last_bgsave_status:err", "Degraded", "True PersistenceFailing: ");
        check("rdb_last_bgsave_status:err", "Ready", "True Settled: ");
        check("aof_current_size:900000000", "Degraded", "True VolumeNearlyFull: ");
        check("aof_last_write_status:ok\naof_current_size:1000", "Degraded", "False AllMembersWell: ");
    }

    #[test]
    fn what_was_set_by_hand_and_keeps_clients_from_writing_is_reported() {
        let pods = |directive: &str, value: &str, replicas| {
            let mut pods = two_copies(["a", "b"]);
            let node = pods[0].redis.as_mut().unwrap();
            node.settings.insert(directive.into(), value.into());
            node.good_replicas = replicas;
            pods
        };
        let few = pods(MIN_REPLICAS, "3", Some(1));
        check_condition(few.clone(), None, "Ready", None, "False WritesRefused: ");
        let expected = "True WritesRefused: Redis refuses writes (NOREPLICAS) because primaries have fewer replicas than their min-replicas-to-write wants: rc-0 (1 of 3); spec.config does not have it, ";
        check_condition(few, None, "Degraded", None, expected);
        for enough in [pods(MIN_REPLICAS, "1", Some(1)), pods(MIN_REPLICAS, "3", None)] {
            check_condition(enough, None, "Degraded", None, "False AllMembersWell: ");
        }
        let off = pods(APPEND_ONLY, "no", None);
        check_condition(off, None, "Degraded", None, "True PersistenceFailing: somebody turned off the ");
    }

    #[test]
    fn a_claim_that_is_being_deleted_is_reported() {
        let mut pods = two_copies(["a", "b"]);
        pods[1].claim_ends = true;
        let expected = "True ClaimTerminating: PersistentVolumeClaims are being deleted, and Kubernetes deletes the data with them when their pods end: data-rc-1 of pod rc-1; ";
        check_condition(pods.clone(), None, "Degraded", None, expected);
        check_condition(pods.clone(), None, "Ready", None, "True Settled: ");
        let may_be_evicted =
            |pods: &[Pod]| viewed(&formed(""), pods.to_vec(), None, None, |view| all_in_sync(view.topology));
        assert!(may_be_evicted(&pods), "the primary has all of it");
        pods[0].claim_ends = true;
        assert!(may_be_evicted(&pods), "each has all of it");
        pods[1].redis = None;
        assert!(!may_be_evicted(&pods));
    }

    /// The third pod shows that there is another zone.
    #[test]
    fn both_copies_of_a_shard_in_one_zone() {
        let mut pods = two_copies(["a", "b"]);
        for pod in &mut pods {
            pod.zone = Some("west".into());
        }
        check_condition(pods.clone(), None, "Redundant", None, "False NoFailoverQuorum: ");
        pods.push(Pod { ordinal: 2, name: "rc-2".into(), zone: Some("east".into()), ..Pod::default() });
        let expected = "False CopiesInOneZone: 1 shards have all copies in one zone, for example rc-0 and rc-1 in `west`: ";
        check_condition(pods, None, "Redundant", None, expected);
    }

    /// Between two attempts its container waits for nothing, and has not failed yet.
    #[test]
    fn an_update_that_failed_is_failed_until_the_pod_responds() {
        let mut pods = two_copies(["a", "b"]);
        pods[0].outdated = true;
        pods[1].redis = None;
        let what = "container `redis`: CrashLoopBackOff".to_owned();
        pods[1].trouble = Some(Trouble { what, fields: Some("spec.image"), has_run: true });
        let expected = "True RolloutFailed: pod rc-1, which has the new template, cannot start: container `redis`: CrashLoopBackOff; 1 pods keep";
        let failed = viewed(&formed(""), pods.clone(), None, None, |view| status(&formed(""), &view));
        check_after(&formed(""), pods.clone(), None, "Degraded", None, expected);
        pods[1].trouble = None;
        check_after(&failed, pods.clone(), None, "Degraded", None, expected);
        // The spec was corrected: the pod is replaced.
        pods[1].outdated = true;
        check_after(&failed, pods, None, "Degraded", None, "False AllMembersWell: ");
    }

    #[test]
    fn a_paused_cluster_is_ready_in_both_places_or_in_none() {
        let check = |pods: Vec<Pod>, expected: (Phase, &str)| {
            let old = formed("");
            let made = viewed(&old, pods, None, None, |view| {
                status(&old, &View { problem: Some(&Problem::Paused), ..view })
            });
            let ready = made.conditions.iter().find(|one| one.type_ == "Ready").unwrap();
            assert_eq!((made.phase.unwrap(), ready.status.as_str()), expected);
        };
        check(two_copies(["a", "b"]), (Phase::Ready, "True"));
        let mut pods = two_copies(["a", "b"]);
        pods[1].outdated = true;
        check(pods, (Phase::Degraded, "False"));
    }

    #[test]
    fn a_status_that_the_crd_rejects_is_reported_in_its_conditions() {
        assert!(is_unknown_to_schema(422, "status.phase: Unsupported value"));
        assert!(is_unknown_to_schema(
            500,
            "failed to create typed patch object: .status.x: field not declared in schema"
        ));
        assert!(!is_unknown_to_schema(500, "etcdserver: request timed out"));
        let old = formed("");
        let made = viewed(&old, two_copies(["a", "b"]), None, None, |view| {
            rejected(&old, &status(&old, &view), &view, "Unsupported value: \"Waking\"")
        });
        assert_eq!(made.len(), CONDITIONS.len());
        let degraded = made.iter().find(|one| one.type_ == "Degraded").unwrap();
        assert_eq!((degraded.status.as_str(), degraded.reason.as_str()), ("True", "StatusRejected"));
        assert!(
            degraded.message.ends_with("the API server said: Unsupported value: \"Waking\""),
            "{}",
            degraded.message
        );
    }

    /// While its pod is deleted, gone, or recreated without responding yet, a member keeps its id.
    #[test]
    fn a_member_without_an_answer_keeps_its_id() {
        let pod = |ordinal: u32, terminating: bool| Pod {
            ordinal,
            name: format!("rc-{ordinal}"),
            uid: ordinal.to_string(),
            terminating,
            ..Pod::default()
        };
        let goal = Goal { size: 2, slots: 16384, initialized: true, ..Goal::default() };
        let old = formed("rc-0 a primary, rc-1 b primary, rc-2 c primary");
        let known = |pods: Vec<Pod>, replicas: Option<u32>| -> Vec<String> {
            let observed = Observed { pods, replicas, ..Observed::default() };
            let members = members(&old, &Topology::of(goal, &observed));
            members.into_iter().map(|member| format!("{} {}", member.pod, member.node_id.unwrap())).collect()
        };
        for pods in
            [vec![pod(0, false), pod(1, true)], vec![pod(0, false)], vec![pod(0, false), pod(1, false)]]
        {
            // The third was scaled away.
            assert_eq!(known(pods, Some(2)), ["rc-0 a", "rc-1 b"]);
        }
        // Somebody deleted the StatefulSet, also of a hibernated cluster.
        for pods in [vec![], vec![pod(0, true), pod(1, true), pod(2, true)]] {
            assert_eq!(known(pods, None), ["rc-0 a", "rc-1 b", "rc-2 c"]);
        }
    }

    #[test]
    fn a_member_that_the_others_were_told_to_forget_keeps_all_that_was_known() {
        let id = |digit: &str| digit.repeat(40);
        let line = |node: &str, flags: &str, slots: &str| {
            format!("{} 10.0.0.1:6379@16379 {flags}master - 0 0 1 connected {slots}\n", id(node))
        };
        let pod = |ordinal: u32, table: &str| Pod {
            ordinal,
            name: format!("rc-{ordinal}"),
            uid: ordinal.to_string(),
            redis: crate::server::parse::node(table, "cluster_state:ok", "role:master", 1).ok(),
            ..Pod::default()
        };
        let others = line("b", "", "8191-16383");
        let pods = vec![
            pod(0, &(line("a", "myself,", "0-8190") + &others)),
            pod(1, &others.replace("master", "myself,master")),
        ];
        let old = formed(&format!("rc-0 {} primary, rc-1 {} primary", id("a"), id("b")));
        let observed = Observed { pods, replicas: Some(2), ..known::observed(&old) };
        let goal = Goal { size: 2, slots: 16384, initialized: true, ..Goal::default() };
        let topology = Topology::of(goal, &observed);
        assert_eq!(members(&old, &topology)[0], old.members[0]);
        assert!(topology.lost().is_empty(), "they come back with it");
    }

    #[test]
    fn of_many_pods_five_are_named() {
        let pods: Vec<_> = (0..7).map(|ordinal| format!("rc-{ordinal}")).collect();
        assert_eq!(names(&pods[..2]), "rc-0, rc-1");
        assert_eq!(names(&pods), "rc-0, rc-1, rc-2, rc-3, rc-4 and 2 more");
    }
}
