//! Replaces pods whose template is outdated, one at a time, so that every slot is served all the while.
//!
//! This is the last step: it only begins when everything else is settled, and after each pod it waits until everything is
//! settled again. So a new pod that does not start ends the update where it is, with all other pods as they were.
//!
//! With replicas, a shard's replicas come first; then one of them takes over, and the former primary is a replica like the
//! others. Without replicas, pods on volumes restart in place. In memory that would lose their keys: an additional pod
//! replicates the first primary and takes over; the pod of that primary, once replaced, does the same for the next one; and the
//! last one takes over from the additional pod, which is then removed.

use std::cmp::Reverse;

use super::{Action, Found, Member, Pod, Step, Topology, Wait, wait};

/// The next step of the update.
pub(super) fn update(topology: &Topology<'_>) -> Found {
    let outdated = topology.observed.pods.iter().any(|pod| pod.outdated);
    if !outdated && topology.surge == 0 {
        return None;
    }
    if topology.goal.update.refused {
        return wait(Wait::Downgrade);
    }
    // An outdated pod whose other containers fail is to be replaced; a new one ends the update.
    let fails = |pod: &Pod| pod.other_container_fails && !pod.outdated;
    let well = |Member { pod, .. }: &Member<'_>| pod.containers_ready && !pod.terminating && !fails(pod);
    let members = topology.core.iter().filter(|member| well(member)).count();
    if members < topology.nodes() as usize || members < topology.observed.pods.len() {
        return wait(Wait::Pods);
    }
    if topology.surge > 0 { surged(topology) } else { in_turn(topology) }
}

fn restart(topology: &Topology<'_>, member: &Member<'_>) -> Found {
    if !topology.may_end(member.pod) {
        return wait(Wait::Claims);
    }
    let Pod { name, uid, claim_ends, .. } = member.pod;
    let restart = Action::Restart { pod: name.clone(), uid: uid.clone(), claim_ends: *claim_ends };
    Some((Step::Update, vec![restart]))
}

/// The shards one after the other, and the one first that was begun.
fn in_turn(topology: &Topology<'_>) -> Found {
    let update = topology.goal.update;
    let mut shards: Vec<(Member<'_>, Vec<Member<'_>>)> = topology
        .owners()
        .map(|primary| (primary, topology.replicas_of(primary.node.id).collect::<Vec<_>>()))
        .filter(|(primary, replicas)| primary.pod.outdated || replicas.iter().any(|one| one.pod.outdated))
        .collect();
    let begun = |(primary, replicas): &(Member<'_>, Vec<Member<'_>>)| {
        replicas.iter().chain([primary]).any(|member| !member.pod.outdated)
    };
    shards.sort_by_key(|shard| (!begun(shard), shard.0.pod.ordinal));
    for (primary, replicas) in &shards {
        let outdated = replicas.iter().filter(|replica| replica.pod.outdated);
        if let Some(replica) = outdated.max_by_key(|replica| replica.pod.ordinal) {
            return restart(topology, replica);
        }
        if update.supervised {
            continue;
        }
        return match replicas[..] {
            [] => restart(topology, primary),
            _ => fail_over(topology, *primary, replicas),
        };
    }
    if shards.is_empty() { None } else { wait(Wait::Approval) }
}

/// The best replica takes over.
fn fail_over(topology: &Topology<'_>, primary: Member<'_>, replicas: &[Member<'_>]) -> Found {
    let ready: Vec<&Member<'_>> =
        replicas.iter().filter(|replica| topology.may_take_over(**replica, primary)).collect();
    if ready.is_empty() {
        return wait(Wait::Sync);
    }
    let rested = ready.iter().filter(|replica| !topology.observed.promoted.contains(&replica.node.id));
    let best = rested.max_by_key(|replica| (replica.node.offset, Reverse(replica.pod.ordinal)));
    match best.and_then(|replica| replica.address()) {
        Some(node) => Some((Step::Update, vec![Action::Failover { node }])),
        None => wait(Wait::Cooldown),
    }
}

/// One node has no slots: it is replaced, or takes over from the next primary.
fn surged(topology: &Topology<'_>) -> Found {
    let Some(spare) = topology.core.iter().find(|member| !topology.owned.contains_key(&member.node.id))
    else {
        return wait(Wait::Gossip);
    };
    if spare.pod.outdated {
        return restart(topology, spare);
    }
    let Some(primary) = topology.next_primary().and_then(|id| topology.member(id)) else {
        return wait(Wait::Gossip);
    };
    match spare.node.primary() {
        Some(id) if id == primary.node.id && topology.goal.update.supervised => wait(Wait::Approval),
        Some(id) if id == primary.node.id => fail_over(topology, primary, &[*spare]),
        // With the keys of another shard it could be elected before it has those of this one.
        Some(_) => Some((Step::Update, vec![Action::Reset { node: spare.address()? }])),
        // `roles` makes it a replica.
        None => wait(Wait::Gossip),
    }
}
