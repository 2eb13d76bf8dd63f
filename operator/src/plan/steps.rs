//! The steps of a plan, in their order. The first that has something to do, or to wait for, ends the search.
//!
//! Why this order: addresses come before forgetting, because a forgotten id is banned for a minute; open
//! slots are closed before anything else moves data; and nobody joins, leaves or moves before the members that
//! are there understand one another.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{Absence, Action, Link, Member, Move, NodeId, Place, Pod, Slots, Step, Topology, Wait};

/// A replica whose link is down for longer is told again whom to copy: Redis forgets to try a new address.
const LINK_PATIENCE_SECONDS: u64 = 10;

/// Slots in one plan: what follows is planned anew, with fresh eyes.
const BATCH: usize = 256;

type Found = Option<(Step, Vec<Action>)>;

pub(super) fn first(topology: &Topology<'_>) -> (Step, Vec<Action>) {
    if let Some(found) = form(topology) {
        return found;
    }
    let steps: [fn(&Topology<'_>) -> Found; 14] = [
        nothing_left,
        heal_addresses,
        relink,
        take_over,
        elect,
        close_slots,
        forget,
        join,
        accept_loss,
        wait_for_owners,
        roles,
        moves,
        shrink,
        wait_for_the_rest,
    ];
    steps.iter().find_map(|step| step(topology)).unwrap_or((Step::Settled, vec![]))
}

/// Pods that the StatefulSet has to have: as many as wanted, and every one above that whose node did not prove in this
/// look that it can go. Whoever does not answer proves nothing.
pub(super) fn replicas(topology: &Topology<'_>) -> u32 {
    let observed = topology.observed;
    let existing = observed.pods.iter().map(|pod| pod.ordinal);
    // Somebody may have scaled the StatefulSet down while these owned slots: their volumes are still there.
    let last = observed.last_owners.iter().copied().filter(|_| !all_slots_answer(topology));
    let owners = topology.absent.keys().filter(|id| topology.owned.contains_key(id));
    let owners = owners.filter_map(|id| topology.ordinal(*id));
    let known = existing.chain(last).chain(owners).map(|ordinal| ordinal + 1);
    let all = known.chain(observed.replicas).max().unwrap_or(0);
    let needed = (topology.goal.size..all).rev().find(|ordinal| !may_be_removed(topology, *ordinal));
    needed.map_or(topology.goal.size, |ordinal| ordinal + 1)
}

/// Whether the pod of this ordinal can go: its node answered, owns nothing and is reset; or it provably never ran, and nothing
/// is missing that it could have.
fn may_be_removed(topology: &Topology<'_>, ordinal: u32) -> bool {
    let pod = topology.observed.pods.iter().find(|pod| pod.ordinal == ordinal);
    match pod {
        Some(Pod { redis: Some(node), .. }) => node.blank(),
        // A pod without an address has no process.
        Some(Pod { ip: None, .. }) => nothing_is_missing(topology),
        Some(pod) if !pod.terminating && topology.observed.replicas.is_none_or(|now| ordinal < now) => false,
        // It is gone, or about to go: a node that was made to leave is known to nobody any more.
        Some(_) | None => {
            let named = topology.core.iter().flat_map(|member| &member.node.table).any(|peer| {
                let name = peer.pod.as_deref().and_then(|name| name.rsplit_once('-'));
                name.is_some_and(|(_, number)| number.parse() == Ok(ordinal))
            });
            nothing_is_missing(topology) && !named
        }
    }
}

/// Whether each slot has an owner that answers.
fn all_slots_answer(topology: &Topology<'_>) -> bool {
    topology.covered() == usize::from(topology.goal.slots)
}

/// Whether nobody who does not answer can have anything that others lack.
fn nothing_is_missing(topology: &Topology<'_>) -> bool {
    let goal = topology.goal;
    let nodes = || topology.observed.pods.iter().filter_map(|pod| Some((pod.ordinal, pod.redis.as_ref()?)));
    let never_formed = || {
        !goal.initialized
            && (0..goal.size).all(|ordinal| nodes().any(|(answered, _)| answered == ordinal))
            && nodes().all(|(_, node)| node.keys == 0)
    };
    all_slots_answer(topology) || never_formed()
}

fn wait(wait: Wait) -> Found {
    Some((Step::Wait(wait), vec![]))
}

fn act(step: Step, actions: Vec<Action>) -> Found {
    (!actions.is_empty()).then_some((step, actions))
}

/// Forms the cluster, or goes on forming it: only while it was never formed, every pod answers and none of them
/// holds a single key.
fn form(topology: &Topology<'_>) -> Found {
    let goal = topology.goal;
    if all_slots_answer(topology) || (goal.initialized && !starts_over(topology)) {
        return None;
    }
    let nodes: Vec<Member<'_>> = topology
        .observed
        .pods
        .iter()
        .filter_map(|pod| Some(Member { pod, node: pod.redis.as_ref()? }))
        .collect();
    let present: BTreeSet<u32> = nodes.iter().map(|member| member.pod.ordinal).collect();
    if !(0..goal.size).all(|ordinal| present.contains(&ordinal))
        || nodes.len() < topology.observed.pods.len()
        || nodes.iter().any(|member| member.pod.terminating)
    {
        return wait(Wait::Pods);
    }
    if nodes.iter().any(|member| member.node.keys > 0) {
        // Volumes of an earlier cluster, perhaps: not for us to overwrite.
        return wait(Wait::SlotsLost);
    }
    let (wanted, surplus): (Vec<Member<'_>>, Vec<Member<'_>>) =
        nodes.iter().partition(|member| member.pod.ordinal < goal.size);
    let names: BTreeSet<&str> = nodes.iter().map(|member| member.pod.name.as_str()).collect();
    let ids: BTreeSet<NodeId> = wanted.iter().map(|member| member.node.id).collect();
    let peers = || nodes.iter().flat_map(|member| &member.node.table).filter(|peer| !peer.handshake);
    if peers().any(|peer| !peer.pod.as_deref().is_none_or(|name| names.contains(name))) {
        return wait(Wait::Stranger);
    }

    let mut shares = Shares::new(goal.slots, goal.shards());
    let fits = wanted.iter().all(|member| {
        let own = member.node.slots();
        own.is_empty() || (member.is_primary() && shares.keep(member.node.id, &own))
    });
    let strange =
        peers().any(|peer| !ids.contains(&peer.id)) || surplus.iter().any(|member| !member.node.alone());
    if !fits || strange {
        // Begun for another size, or a node was replaced half-way. Nothing is lost by beginning anew.
        let resets = nodes.iter().filter(|member| !member.node.alone() || !member.node.slots().is_empty());
        let resets = resets.filter_map(Member::place).map(|node| Action::Reset { node }).collect();
        return act(Step::Form, resets);
    }
    // Primaries on as many hosts as there are.
    let mut per_host: BTreeMap<&Option<String>, u32> = BTreeMap::new();
    let mut order: Vec<(u32, u32, NodeId)> = vec![];
    for member in &wanted {
        let rank = per_host.entry(&member.pod.host).or_default();
        order.push((*rank, member.pod.ordinal, member.node.id));
        *rank += 1;
    }
    order.sort_unstable();
    shares.give(order.into_iter().map(|(_, _, id)| id));

    let mut actions = vec![];
    for (epoch, member) in (1..).zip(&wanted) {
        if member.node.alone() && member.node.epoch() == 0 {
            actions.extend(member.place().map(|node| Action::SetEpoch { node, epoch }));
        }
    }
    let (first, rest) = wanted.split_first()?;
    for member in rest {
        if first.node.peer(member.node.id).is_none()
            && let (Some(viewer), Some(node)) = (first.place(), member.place())
        {
            actions.push(Action::Meet { viewer, node });
        }
    }
    for member in &wanted {
        let share = shares.of(member.node.id);
        let missing = share.minus(&member.node.slots());
        if !missing.is_empty()
            && let Some(node) = member.place()
        {
            actions.push(Action::AddSlots { node, slots: missing });
        }
    }
    if actions.is_empty() { wait(Wait::Gossip) } else { act(Step::Form, actions) }
}

/// Whether the cluster has lost everything, and its user accepts that: no node holds a key or knows of a slot.
fn starts_over(topology: &Topology<'_>) -> bool {
    let nodes = || topology.observed.pods.iter().map(|pod| pod.redis.as_ref());
    topology.goal.accept_data_loss
        && nodes().all(|node| node.is_some_and(|node| node.keys == 0))
        && nodes().flatten().flat_map(|node| &node.table).all(|peer| peer.slots.is_empty())
}

/// The slots in as many parts as there are shards, and who gets which.
struct Shares(Vec<(Slots, Option<NodeId>)>);

impl Shares {
    fn new(slots: u16, shards: u32) -> Self {
        let bound = |part: u32| {
            u16::try_from(u64::from(slots) * u64::from(part) / u64::from(shards.max(1))).unwrap_or(slots)
        };
        let parts = (0..shards).filter(|&part| bound(part) < bound(part + 1));
        Self(parts.map(|part| (Slots::range(bound(part), bound(part + 1) - 1), None)).collect())
    }

    /// Leaves a node the part that it has slots of; false when there is none such, or it has another owner.
    fn keep(&mut self, id: NodeId, own: &Slots) -> bool {
        match self.0.iter_mut().find(|(share, _)| own.minus(share).is_empty()) {
            Some((_, owner @ None)) => {
                *owner = Some(id);
                true
            }
            _ => false,
        }
    }

    /// Gives the parts that are left to the first that have none.
    fn give(&mut self, ids: impl Iterator<Item = NodeId>) {
        let taken: BTreeSet<_> = self.0.iter().filter_map(|(_, owner)| *owner).collect();
        let free = ids.filter(|id| !taken.contains(id));
        for ((_, owner), id) in self.0.iter_mut().filter(|(_, owner)| owner.is_none()).zip(free) {
            *owner = Some(id);
        }
    }

    fn of(&self, id: NodeId) -> Slots {
        self.0
            .iter()
            .find(|(_, owner)| *owner == Some(id))
            .map(|(share, _)| share.clone())
            .unwrap_or_default()
    }
}

/// A cluster that was formed and owns nothing any more has lost its data; forming it anew would hide that.
fn nothing_left(topology: &Topology<'_>) -> Found {
    if topology.core.is_empty() {
        return wait(Wait::Pods);
    }
    if !topology.owned.is_empty() {
        return None;
    }
    // Somebody who did not answer may still know better.
    wait(if topology.observed.pods.iter().all(|pod| pod.redis.is_some()) {
        Wait::DataLost
    } else {
        Wait::Pods
    })
}

/// Tells one member, the first whose table is out of date, where the others are. Gossip does the rest.
fn heal_addresses(topology: &Topology<'_>) -> Found {
    let stale = |viewer: &Member<'_>| -> Vec<Action> {
        let wrong = topology.core.iter().filter(|member| {
            member.node.id != viewer.node.id
                && viewer.node.peer(member.node.id).is_some_and(|peer| peer.ip != member.pod.ip)
        });
        wrong
            .filter_map(|member| Some(Action::Meet { viewer: viewer.place()?, node: member.place()? }))
            .collect()
    };
    act(
        Step::HealAddresses,
        topology.core.iter().map(stale).find(|meets| !meets.is_empty()).unwrap_or_default(),
    )
}

/// After its primary moved, a replica can stay bound to the old address for good, while every table is right.
fn relink(topology: &Topology<'_>) -> Found {
    let again = topology.core.iter().filter_map(|member| {
        // One that was demoted itself has nothing to copy: its replicas are given another in `roles`.
        let primary = topology.member(member.node.primary()?).filter(Member::is_primary)?;
        let elsewhere = member.node.bound.is_some() && member.node.bound != primary.pod.ip;
        let broken = match member.node.link {
            Link::Down(seconds) => elsewhere || seconds >= LINK_PATIENCE_SECONDS,
            Link::Never => elsewhere,
            Link::None | Link::Up | Link::Syncing => false,
        };
        broken.then_some(Action::Replicate { node: member.place()?, primary: primary.node.id })
    });
    act(Step::Relink, again.collect())
}

/// Finishes each slot that was left half-way, forward where that is possible. An open slot is known to two
/// primaries only and does not survive a failover of either, so this cannot wait for anything.
fn close_slots(topology: &Topology<'_>) -> Found {
    let mut open: BTreeSet<u16> = BTreeSet::new();
    for member in &topology.core {
        open.extend(member.node.migrating.keys().chain(member.node.importing.keys()));
    }
    let mut actions = vec![];
    for slot in open {
        close_slot(topology, slot, &mut actions);
    }
    act(Step::CloseSlots, actions)
}

fn close_slot(topology: &Topology<'_>, slot: u16, actions: &mut Vec<Action>) {
    // Whoever owned it may come back, or have a successor elected, and then it goes on.
    let Some(owner) = topology.owner(slot).and_then(|id| topology.member(id)) else { return };
    let stable = |member: &Member<'_>| member.place().map(|node| Action::Stable { node, slot });
    let others = || topology.core.iter().filter(|member| member.node.id != owner.node.id);

    actions.extend(others().filter(|member| member.node.migrating.contains_key(&slot)).filter_map(stable));
    if owner.node.importing.contains_key(&slot) {
        actions.extend(stable(&owner));
    }
    let importers: Vec<_> = others().filter(|member| member.node.importing.contains_key(&slot)).collect();
    let keys = topology.observed.open_keys.get(&slot);
    let holds =
        |member: &Member<'_>| keys.and_then(|keys| keys.get(&member.node.id)).is_some_and(|count| *count > 0);
    let target = owner.node.migrating.get(&slot);
    // Keys must not be left behind; then where it was meant to go.
    let to = others()
        .find(|member| member.is_primary() && holds(member))
        .or_else(|| others().find(|member| member.is_primary() && Some(&member.node.id) == target))
        .or_else(|| importers.iter().copied().find(|member| member.is_primary()));
    match (to, target) {
        (Some(to), _) => {
            let rest = importers.iter().filter(|member| member.node.id != to.node.id);
            actions.extend(rest.filter_map(|member| stable(member)));
            let (Some(from), Some(place)) = (owner.place(), to.place()) else { return };
            // After a failover of the source, the destination still believes in the old one.
            if to.node.peer(owner.node.id).is_none_or(|peer| !peer.slots.contains(slot)) {
                actions.push(Action::Own { node: place.clone(), slot, owner: owner.node.id });
            }
            let finish = moving(topology, from, place, Slots::range(slot, slot));
            actions.push(Action::Move(Move { open: true, ..finish }));
        }
        // The other end is gone, perhaps with keys: they come back with it, or with a replica of it.
        (None, Some(&target)) if !comes_back(topology, target) => {
            let copy = topology.replicas_of(target).find(|copy| holds(copy) && was_in_step(topology, copy));
            let action = match copy.and_then(|copy| copy.place()) {
                Some(node) => Some(Action::TakeOver { node }),
                None => stable(&owner),
            };
            // One replica may have the keys of several slots.
            actions.extend(action.filter(|action| !actions.contains(action)));
        }
        _ => {}
    }
}

/// Whether the other end of an open slot returns by itself. Of one that owned no slots Redis elects no successor.
fn comes_back(topology: &Topology<'_>, id: NodeId) -> bool {
    topology.absent.get(&id) == Some(&Absence::MayReturn)
        || topology.owned.contains_key(&id) && topology.replicas_of(id).next().is_some()
}

/// Whether a replica of a primary that owned nothing has nothing but what had been moved there.
fn was_in_step(topology: &Topology<'_>, replica: &Member<'_>) -> bool {
    let counts = topology.observed.open_keys.values().filter_map(|keys| keys.get(&replica.node.id));
    counts.sum::<u64>() == replica.node.keys
}

fn moving(topology: &Topology<'_>, from: Place, to: Place, slots: Slots) -> Move {
    let others = topology
        .owners()
        .filter(|member| ![from.id, to.id].contains(&member.node.id))
        .filter_map(|member| member.place())
        .collect();
    let in_sync = topology.replicas_of(to.id).filter(|replica| replica.node.link == Link::Up);
    let copies = in_sync.count();
    Move { from, to, slots, others, copies, open: false }
}

/// Strikes ids whose pod is gone for good, once they own nothing and nobody copies them.
fn forget(topology: &Topology<'_>) -> Found {
    let gone = topology.absent.iter().filter(|(id, absence)| {
        **absence == Absence::Gone
            && !topology.owned.contains_key(id)
            && topology.replicas_of(**id).next().is_none()
    });
    let mut actions = vec![];
    for (&id, _) in gone {
        let knows = topology.core.iter().filter(|member| member.node.peer(id).is_some());
        actions.extend(knows.filter_map(|member| Some(Action::Forget { node: member.place()?, id })));
    }
    act(Step::Forget, actions)
}

/// Takes in pods that are wanted and empty. Joining with an epoch above all others lets a replacement claim slots that
/// a ghost still holds; at epoch 0 it would become the ghost's replica.
fn join(topology: &Topology<'_>) -> Found {
    let viewer = topology.core.first()?.place()?;
    let mut epoch = topology.current_epoch();
    let (mut joins, mut resets, mut strangers) = (vec![], vec![], false);
    let mut gossip = false;
    for member in &topology.outsiders {
        let Some(node) = member.place() else { continue };
        let wanted = member.pod.ordinal < topology.goal.size;
        let names_us = topology.core.iter().any(|core| member.node.peer(core.node.id).is_some());
        let we_name_it = topology.core.iter().any(|core| core.node.peer(member.node.id).is_some());
        let introduced = member.node.table.iter().any(|peer| peer.handshake);
        if member.node.blank() {
            if wanted && !member.pod.terminating {
                epoch += 1;
                if member.node.epoch() == 0 {
                    joins.push(Action::SetEpoch { node: node.clone(), epoch });
                }
                joins.push(Action::Meet { viewer: viewer.clone(), node });
            }
        } else if we_name_it || (introduced && !names_us) {
            gossip = wanted;
        } else if names_us
            && (member.node.keys == 0 || !member.is_primary())
            && covers(topology, &member.node.slots())
        {
            // Forgotten while it was away; what it holds is held by others.
            if resets.is_empty() {
                resets.push(Action::Reset { node });
            }
        } else {
            strangers = true;
        }
    }
    if resets.is_empty() { act(Step::Join, joins) } else { act(Step::Join, resets) }
        .or_else(|| if strangers { wait(Wait::Stranger) } else { None })
        .or_else(|| if gossip { wait(Wait::Gossip) } else { None })
}

fn covers(topology: &Topology<'_>, slots: &Slots) -> bool {
    slots.iter().all(|slot| topology.owner(slot).is_some_and(|id| topology.member(id).is_some()))
}

/// Nothing moves while an owner of slots is missing.
fn wait_for_owners(topology: &Topology<'_>) -> Found {
    let missing = topology.missing_owners();
    if missing.iter().any(|id| topology.replicas_of(*id).next().is_some()) {
        return wait(if topology.has_quorum() { Wait::Election } else { Wait::Quorum });
    }
    if missing.iter().any(|id| topology.absent.get(id) == Some(&Absence::MayReturn)) {
        return wait(Wait::Pods);
    }
    if topology.lost().is_empty() { None } else { wait(Wait::SlotsLost) }
}

/// Without a majority of the primaries Redis elects nobody. Once their processes are known to be stopped, their best replicas
/// take over without a vote, one at a time: a primary that still runs would go on acknowledging writes that are lost later.
/// Where slots are given up, the replica of a primary that is gone for good takes over as well, whatever it has.
fn take_over(topology: &Topology<'_>) -> Found {
    let goal = topology.goal;
    let due = goal.take_over && topology.observed.takeover_due && !topology.has_quorum();
    let missing = topology.missing_owners();
    let ready = |id: &NodeId| {
        let gone = topology.absent.get(id) == Some(&Absence::Gone);
        let emptied = || topology.replicas_of(*id).all(|replica| replica.node.keys == 0);
        (due && is_stopped(topology, *id)) || (goal.accept_data_loss && gone && emptied())
    };
    let gives_up = |id: &NodeId| goal.accept_data_loss && topology.absent.get(id) == Some(&Absence::Gone);
    let best = missing.iter().filter(|id| ready(id)).find_map(|id| successor(topology, *id, gives_up(id)))?;
    act(Step::TakeOver, vec![Action::TakeOver { node: best.place()? }])
}

/// The replica that has most of what a missing primary had: by what it read of it. One that never heard from it may
/// have been a primary itself, with nothing and a greater offset.
fn successor<'a>(topology: &Topology<'a>, lost: NodeId, emptied: bool) -> Option<Member<'a>> {
    let synced = |replica: &Member<'_>| matches!(replica.node.link, Link::Up | Link::Down(_));
    topology
        .replicas_of(lost)
        .filter(|replica| !replica.pod.terminating)
        .filter(|replica| synced(replica) || replica.node.keys > 0 || emptied)
        .max_by_key(|replica| {
            let node = replica.node;
            (synced(replica), node.keys > 0, node.offset, node.keys, Reverse(replica.pod.ordinal))
        })
}

/// A replica that started while its primary was down does not stand for election: Redis cannot tell it from one that has
/// nothing. The one with keys asks for votes, once the others miss the primary and none was elected.
fn elect(topology: &Topology<'_>) -> Found {
    if !topology.observed.election_due || !topology.has_quorum() {
        return None;
    }
    let missing = topology.missing_owners();
    let best = missing
        .iter()
        .filter(|id| is_missed(topology, **id))
        .find_map(|id| successor(topology, *id, false).filter(|replica| replica.node.keys > 0))?;
    act(Step::Elect, vec![Action::Elect { node: best.place()? }])
}

/// Whether every node that answers has missed another for the node timeout, or has no address of it.
fn is_missed(topology: &Topology<'_>, id: NodeId) -> bool {
    let mut seen = topology.core.iter().filter_map(|member| member.node.peer(id));
    seen.all(|peer| peer.failed || peer.suspected || peer.ip.is_none())
}

/// Whether the process of a node that does not answer is known not to serve: its pod is gone or runs another node, or the
/// kubelet finds it not ready; and every node that answers has missed it for the node timeout.
fn is_stopped(topology: &Topology<'_>, id: NodeId) -> bool {
    let pod = topology.ordinal(id).map(|ordinal| {
        let pods = &topology.observed.pods;
        pods.iter().find(|pod| pod.ordinal == ordinal)
    });
    let stopped = match pod {
        // Nobody knows which pod it was.
        None => topology.absent.get(&id) == Some(&Absence::Gone),
        Some(None) => true,
        Some(Some(pod)) => pod.redis.is_some() || pod.ip.is_none() || !pod.containers_ready,
    };
    is_missed(topology, id) && stopped
}

/// Assigns slots that are lost with their only owner to the primaries that are left, where the user accepts that: the
/// nodes forget the owner, and the slots go to whoever has fewest.
fn accept_loss(topology: &Topology<'_>) -> Found {
    let lost = topology.lost();
    let may_return = |id: &NodeId| topology.absent.get(id) == Some(&Absence::MayReturn);
    // A replica of a missing owner has what that had: it has to be elected first.
    let has_replicas = |id: &NodeId| topology.replicas_of(*id).next().is_some();
    if !topology.goal.accept_data_loss
        || lost.is_empty()
        || topology.absent.keys().any(may_return)
        || topology.missing_owners().iter().any(has_replicas)
    {
        return None;
    }
    let mut actions = vec![];
    for id in topology.missing_owners() {
        let knows = topology.core.iter().filter(|member| member.node.peer(id).is_some());
        actions.extend(knows.filter_map(|member| Some(Action::Forget { node: member.place()?, id })));
    }
    if !actions.is_empty() {
        return act(Step::AcceptLoss, actions);
    }
    // A node that still takes somebody for the owner would refuse.
    let unassigned = |viewer: &Member<'_>| {
        viewer.node.table.iter().all(|peer| peer.slots.iter().all(|slot| !lost.contains(slot)))
    };
    if !topology.core.iter().all(unassigned) {
        return wait(Wait::Gossip);
    }
    let count = |member: &Member<'_>| topology.owned.get(&member.node.id).map_or(0, Slots::len);
    let primaries = topology.core.iter().filter(|member| member.is_primary() && stays(topology, member));
    let node = primaries.min_by_key(|member| (count(member), member.pod.ordinal))?.place()?;
    act(Step::AcceptLoss, vec![Action::AddSlots { node, slots: lost }])
}

/// Who is to own slots in the end, and who is to copy whom.
struct Shape<'a> {
    /// Primaries that stay or become owners, lowest ordinal first.
    primaries: Vec<Member<'a>>,
}

impl<'a> Shape<'a> {
    fn of(topology: &Topology<'a>) -> Self {
        let wanted = topology.goal.shards() as usize;
        let stays = |member: &Member<'a>| member.pod.ordinal < topology.goal.size && member.is_primary();
        let (owners, free): (Vec<Member<'a>>, Vec<Member<'a>>) = topology
            .core
            .iter()
            .copied()
            .filter(stays)
            .partition(|member| topology.owned.contains_key(&member.node.id));
        let mut primaries: Vec<Member<'a>> = owners.into_iter().chain(free).take(wanted).collect();
        primaries.sort_by_key(|member| member.pod.ordinal);
        Self { primaries }
    }

    fn has(&self, id: NodeId) -> bool {
        self.primaries.iter().any(|member| member.node.id == id)
    }
}

fn stays(topology: &Topology<'_>, member: &Member<'_>) -> bool {
    member.pod.ordinal < topology.goal.size
}

/// Gives every member that stays its place: primaries first, then replicas where the fewest are.
fn roles(topology: &Topology<'_>) -> Found {
    let goal = topology.goal;
    let staying = topology.core.iter().filter(|member| stays(topology, member)).count();
    if staying < goal.size as usize {
        return wait_unless_absent(topology);
    }
    // A pod that is being deleted gets no new role.
    if topology.core.iter().any(|member| stays(topology, member) && member.pod.terminating) {
        return wait(Wait::Pods);
    }
    let shape = Shape::of(topology);
    let wanted = goal.shards() as usize;
    if shape.primaries.len() < wanted {
        return more_primaries(topology, &shape);
    }

    let per_shard = goal.replicas_per_shard as usize;
    let mut replicas: BTreeMap<NodeId, Vec<Member<'_>>> =
        shape.primaries.iter().map(|primary| (primary.node.id, vec![])).collect();
    let mut idle = vec![];
    for member in topology.core.iter().filter(|member| stays(topology, member)) {
        match member.node.primary() {
            None if shape.has(member.node.id) => {}
            // It still gives its slots away.
            None if topology.owned.contains_key(&member.node.id) => {}
            None => idle.push(*member),
            Some(primary) => match replicas.get_mut(&primary) {
                Some(list) => list.push(*member),
                // Its primary still gives its slots away, and until then a copy is worth having.
                None if topology.owned.contains_key(&primary) => {}
                None => idle.push(*member),
            },
        }
    }
    // Those that one shard has too many of, where another has too few.
    let lacking: usize = replicas.values().map(|list| per_shard.saturating_sub(list.len())).sum();
    let mut spare = lacking.saturating_sub(idle.len());
    for list in replicas.values_mut() {
        while spare > 0 && list.len() > per_shard {
            idle.extend(list.pop());
            spare -= 1;
        }
    }
    // With what it copied from another it could be elected before it has copied anything of its new primary.
    let starts_afresh = idle.iter().find(|member| member.node.primary().is_some());
    if let Some(node) = starts_afresh.and_then(Member::place) {
        return act(Step::Roles, vec![Action::Reset { node }]);
    }
    let mut actions = vec![];
    for member in idle {
        let best = shape.primaries.iter().min_by_key(|primary| {
            let copies = replicas.get(&primary.node.id);
            let together = primary.pod.host.is_some() && primary.pod.host == member.pod.host;
            (copies.map_or(0, Vec::len), together, primary.pod.ordinal)
        });
        let (Some(primary), Some(node)) = (best, member.place()) else { continue };
        // Until it has heard of the primary it would answer "Unknown node".
        if member.node.peer(primary.node.id).is_none_or(|peer| peer.primary.is_some()) {
            return wait(Wait::Gossip);
        }
        replicas.entry(primary.node.id).or_default().push(member);
        actions.push(Action::Replicate { node, primary: primary.node.id });
    }
    act(Step::Roles, actions)
}

/// Members that should be there are not: that is nobody's fault but the pods', unless Redis is at work on it.
fn wait_unless_absent(topology: &Topology<'_>) -> Found {
    let answer = (0..topology.goal.size).all(|ordinal| {
        topology.observed.pods.iter().any(|pod| pod.ordinal == ordinal && pod.redis.is_some())
    });
    wait(if answer { Wait::Gossip } else { Wait::Pods })
}

/// Fewer primaries stay than shards are wanted: one that leaves hands over to its replica, or a replica too many starts
/// afresh. One at a time.
fn more_primaries(topology: &Topology<'_>, shape: &Shape<'_>) -> Found {
    let leaving = topology.owners().filter(|member| !stays(topology, member));
    let mut candidates = false;
    for primary in leaving {
        let copies = topology.replicas_of(primary.node.id);
        for replica in copies.filter(|replica| stays(topology, replica)) {
            if topology.may_take_over(replica, primary)
                && let Some(node) = replica.place()
            {
                return act(Step::Roles, vec![Action::Failover { node }]);
            }
            candidates = true;
        }
    }
    if candidates {
        return wait(Wait::Sync);
    }
    let per_shard = topology.goal.replicas_per_shard as usize;
    let surplus = shape
        .primaries
        .iter()
        .filter_map(|primary| {
            let mut copies: Vec<_> =
                topology.replicas_of(primary.node.id).filter(|replica| stays(topology, replica)).collect();
            let too_many = copies.len() > per_shard;
            copies.pop().filter(|_| too_many)
        })
        .max_by_key(|member| member.pod.ordinal)
        .or_else(|| {
            // Replicas of a primary that owns nothing copy nothing.
            let idle = topology.core.iter().filter(|member| stays(topology, member));
            idle.filter(|member| member.node.primary().is_some_and(|id| !topology.owned.contains_key(&id)))
                .max_by_key(|member| member.pod.ordinal)
                .copied()
        });
    match surplus.and_then(|member| member.place()) {
        Some(node) => act(Step::Roles, vec![Action::Reset { node }]),
        None => wait(Wait::Gossip),
    }
}

/// Moves slots from those that have too many, or should have none, to those that have too few: no more than it takes.
fn moves(topology: &Topology<'_>) -> Found {
    let shape = Shape::of(topology);
    let count = |member: &Member<'_>| topology.owned.get(&member.node.id).map_or(0, Slots::len);
    let shards = shape.primaries.len();
    if shards == 0 {
        return wait(Wait::Pods);
    }
    // Whoever has most keeps the odd slot, so that as few as possible move.
    let (base, odd) = (usize::from(topology.goal.slots) / shards, usize::from(topology.goal.slots) % shards);
    let mut by_count = shape.primaries.clone();
    by_count.sort_by_key(|member| (Reverse(count(member)), member.pod.ordinal));
    let target: BTreeMap<NodeId, usize> = by_count
        .iter()
        .enumerate()
        .map(|(rank, member)| (member.node.id, base + usize::from(rank < odd)))
        .collect();
    let target = |member: &Member<'_>| target.get(&member.node.id).copied().unwrap_or(0);

    let mut givers: Vec<_> = topology.owners().filter(|member| count(member) > target(member)).collect();
    givers.sort_by_key(|member| (shape.has(member.node.id), member.pod.ordinal));
    let mut takers: Vec<_> =
        shape.primaries.iter().copied().filter(|member| count(member) < target(member)).collect();
    takers.sort_by_key(|member| (count(member), member.pod.ordinal));
    if givers.is_empty() || takers.is_empty() {
        return None;
    }
    if !topology.slots_agree() || !topology.core.iter().all(|member| member.node.ok) {
        return wait(Wait::Gossip);
    }
    // A replica that is being filled would get every key twice. One that hears nothing may be elected: with keys that the giver
    // had, without those that the taker got.
    let deaf = |member: Member<'_>| matches!(member.node.link, Link::Down(_) | Link::Never);
    if topology.core.iter().any(|member| member.node.link == Link::Syncing) {
        return wait(Wait::Sync);
    }
    // Each node is in one pair at most, so that the pairs do not slow each other down.
    let mut moves = vec![];
    let mut reason = Wait::Gossip;
    for (giver, taker) in givers.into_iter().zip(takers) {
        let pair = [giver, taker];
        if pair.iter().flat_map(|primary| topology.replicas_of(primary.node.id)).any(deaf) {
            reason = Wait::Sync;
            continue;
        }
        let all = count(&giver);
        let moved = (all - target(&giver)).min(target(&taker) - count(&taker));
        let (used, limit) = taker.node.memory;
        let (giver_used, _) = giver.node.memory;
        let share = u128::from(giver_used) * moved as u128 / all.max(1) as u128;
        // An empty Redis uses memory too, which does not move; a giver with few keys is no reason to stop.
        if limit > 0 && giver.node.keys > 0 && u128::from(used) + share > u128::from(limit) {
            reason = Wait::Memory;
            continue;
        }
        let (from, to) = (giver.place()?, taker.place()?);
        let slots = topology.owned.get(&giver.node.id)?.highest(moved.min(BATCH));
        moves.push(Action::Move(moving(topology, from, to, slots)));
    }
    if moves.is_empty() { wait(reason) } else { act(Step::Move, moves) }
}

/// Lets go of one member that is not wanted any more and owns nothing: forgotten by the others first, then reset, so that
/// it cannot come back on its own.
fn shrink(topology: &Topology<'_>) -> Found {
    let mut leavers = topology.core.iter().rev().filter(|member| !stays(topology, member)).peekable();
    leavers.peek()?;
    // Nobody can forget the primary that it copies, so replicas go first. And whoever forgets one that it still takes for an
    // owner has slots without any: it would refuse its clients until it hears who has them.
    let free = |member: &&Member<'_>| {
        let id = member.node.id;
        let named = |viewer: &Member<'_>| viewer.node.peer(id).is_some_and(|peer| !peer.slots.is_empty());
        !topology.owned.contains_key(&id)
            && topology.replicas_of(id).next().is_none()
            && !topology.core.iter().any(named)
    };
    let Some(leaver) = leavers.find(free) else { return wait(Wait::Gossip) };
    if leaver.is_primary() && leaver.node.keys > 0 {
        // Elected before it had heard what its primary gave away. Redis would refuse to reset it, and whose keys are right
        // is not for us to say.
        return wait(Wait::Stranger);
    }
    if leaver.is_primary() && !topology.observed.leave_due {
        // It still sends clients on that do not know who has its slots now.
        return wait(Wait::Gossip);
    }
    let mut actions = vec![];
    for member in topology.core.iter().filter(|member| member.node.id != leaver.node.id) {
        if member.node.peer(leaver.node.id).is_some() {
            actions.extend(member.place().map(|node| Action::Forget { node, id: leaver.node.id }));
        }
    }
    actions.extend(leaver.place().map(|node| Action::Reset { node }));
    act(Step::Shrink, actions)
}

/// Nothing is left to do but for others.
fn wait_for_the_rest(topology: &Topology<'_>) -> Found {
    // Those that have left are there until the StatefulSet has heard that it is smaller.
    let is_over = |pod: &Pod| !pod.terminating && pod.ordinal >= topology.goal.size;
    if !topology.absent.is_empty() || topology.observed.pods.iter().any(is_over) {
        return wait(Wait::Pods);
    }
    if topology.core.iter().any(|member| member.node.link == Link::Syncing) {
        return wait(Wait::Sync);
    }
    let down = topology.core.iter().any(|member| matches!(member.node.link, Link::Down(_) | Link::Never));
    if down || !topology.tables_agree() || !topology.core.iter().all(|member| member.node.ok) {
        return wait(Wait::Gossip);
    }
    None
}
