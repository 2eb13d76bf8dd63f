//! Stops all pods of a cluster on volumes and keeps the volumes, while its user wants it to be hibernated.
//!
//! Only a cluster that is settled is stopped. Pods stop in any order, and each of them could be the one that comes back last. So
//! all nodes are held first: clients cannot write, and no replica is promoted. Once every replica has what its primary has, the
//! StatefulSet is scaled to 0. A process that starts again is not held.

use super::{Action, Found, Member, Plan, Step, Topology, Wait, wait};

/// The plan for a cluster without pods: nothing happens until its user wakes it.
pub(super) fn asleep(topology: &Topology<'_>) -> Option<Plan> {
    let (goal, observed) = (topology.goal, topology.observed);
    // If somebody deleted its StatefulSet, it is made again without pods.
    let no_set = || observed.replicas.is_none() && observed.pods.is_empty() && goal.initialized;
    let stopped = goal.hibernated && (observed.replicas == Some(0) || no_set());
    stopped.then(|| Plan { replicas: 0, step: Step::Hibernated, actions: vec![] })
}

/// The next step towards it, once everything else is settled.
pub(super) fn stop(topology: &Topology<'_>) -> Found {
    if !topology.observed.keeps_volumes {
        return wait(Wait::Volumes);
    }
    if topology.observed.let_go {
        return wait(Wait::Writers);
    }
    let all_held = topology.core.iter().all(|member| member.node.held);
    let ready = all_held && topology.observed.holds && topology.core.iter().all(|one| in_step(topology, one));
    let hold = topology.core.iter().filter_map(|member| Some(Action::Hold { node: member.address()? }));
    Some((if ready { Step::Hibernate } else { Step::Hold }, hold.collect()))
}

/// Whether a replica has everything that its primary has. Their offsets are not read at the same moment, and a primary that takes
/// no writes still counts its pings.
fn in_step(topology: &Topology<'_>, member: &Member<'_>) -> bool {
    let Some(id) = member.node.primary() else { return true };
    let primary = topology.member(id);
    primary.is_some_and(|primary| topology.in_sync(*member) && member.node.offset >= primary.node.offset)
}

/// Ends the hold, if pods are not to stop after all or something else comes first.
pub(super) fn release(topology: &Topology<'_>) -> Found {
    let pods = &topology.observed.pods;
    // The StatefulSet was scaled to 0, and this is an older one.
    if topology.goal.hibernated && pods.iter().any(|pod| pod.terminating) {
        return None;
    }
    let nodes = pods.iter().filter_map(|pod| Some(Member { pod, node: pod.redis.as_ref()? }));
    let held = nodes.filter(|member| member.node.held);
    let actions: Vec<_> = held.filter_map(|one| Some(Action::Release { node: one.address()? })).collect();
    (!actions.is_empty()).then_some((Step::Release, actions))
}
