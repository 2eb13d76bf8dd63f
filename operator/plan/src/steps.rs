//! The steps of a plan, in order. The first that has something to do, or to wait for, is the plan.
//!
//! Why this order: addresses come before forgetting, because Redis bans a forgotten id for a minute; open slots are
//! closed before other data is moved; and nodes join, leave and migrate slots only once the existing members agree.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Absence, Action, Found, Link, Member, Move, NodeAddress, NodeId, Pod, Slots, Step, Topology, Wait,
    hibernate,
    placement::{self, Shard, Shards},
    rollout, wait,
};

/// A replica whose link is down for longer gets its primary again: Redis does not retry with a new address.
const LINK_PATIENCE_SECONDS: u64 = 10;

/// Slots in one plan. The rest is planned again from a new observation.
const BATCH: usize = 256;

pub(super) fn first(topology: &Topology<'_>) -> (Step, Vec<Action>) {
    let mut found = next(topology);
    if found.0 == Step::Settled && topology.goal.hibernated {
        found = hibernate::stop(topology).unwrap_or(found);
    }
    match found.0 {
        Step::Hold | Step::Hibernate => found,
        _ => hibernate::release(topology).unwrap_or(found),
    }
}

/// The first step of a cluster whose pods run.
fn next(topology: &Topology<'_>) -> (Step, Vec<Action>) {
    if let Some(found) = form(topology) {
        return found;
    }
    let steps: [fn(&Topology<'_>) -> Found; 20] = [
        nothing_left,
        heal_addresses,
        relink,
        take_over,
        elect,
        close_slots,
        forget,
        reclaim,
        reintroduce,
        join,
        functions,
        accept_loss,
        wait_for_owners,
        roles,
        moves,
        shrink,
        wait_for_the_rest,
        rollout::update,
        spread,
        balance,
    ];
    steps.iter().find_map(|step| step(topology)).unwrap_or((Step::Settled, vec![]))
}

/// Replicas of the StatefulSet: the desired size, and every higher pod that this observation does not prove to be
/// removable. A node that did not respond proves nothing.
pub(super) fn replicas(topology: &Topology<'_>) -> u32 {
    let observed = topology.observed;
    let existing = observed.pods.iter().map(|pod| pod.ordinal);
    // If somebody scaled the StatefulSet down while these owned slots, their volumes still exist.
    let last = observed.last_owners.iter().copied().filter(|_| !all_slots_answer(topology));
    let owners = topology.absent.keys().filter(|id| topology.owned.contains_key(id));
    let owners = owners.filter_map(|id| topology.ordinal(*id));
    let known = existing.chain(last).chain(owners).map(|ordinal| ordinal + 1);
    let all = known.chain(observed.replicas).max().unwrap_or(0);
    let needed = (topology.nodes()..all).rev().find(|ordinal| !may_be_removed(topology, *ordinal));
    needed.map_or(topology.nodes(), |ordinal| ordinal + 1)
}

/// Whether the pod of this ordinal can be removed: its node responded, owns nothing and was reset; or it provably never ran,
/// and nothing is missing that it could have.
fn may_be_removed(topology: &Topology<'_>, ordinal: u32) -> bool {
    let pod = topology.observed.pods.iter().find(|pod| pod.ordinal == ordinal);
    match pod {
        Some(Pod { redis: Some(node), .. }) => node.blank(),
        // A pod without an address has no process.
        Some(Pod { ip: None, .. }) => nothing_is_missing(topology),
        Some(pod) if !pod.terminating && topology.observed.replicas.is_none_or(|now| ordinal < now) => false,
        // It is gone or terminating: a node that was removed is in no table any more.
        Some(_) | None => {
            let named = topology.core.iter().flat_map(|member| &member.node.table).any(|peer| {
                let name = peer.pod.as_deref().and_then(|name| name.rsplit_once('-'));
                name.is_some_and(|(_, number)| number.parse() == Ok(ordinal))
            });
            nothing_is_missing(topology) && !named
        }
    }
}

/// Whether every slot has a responding owner.
fn all_slots_answer(topology: &Topology<'_>) -> bool {
    topology.covered() == usize::from(topology.goal.slots)
}

/// Whether nodes that did not respond cannot have any data that the others lack.
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

fn act(step: Step, actions: Vec<Action>) -> Found {
    (!actions.is_empty()).then_some((step, actions))
}

/// Forms the cluster, or continues to: only if it was never formed, every pod responds and none has a key.
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
        // Possibly volumes of an earlier cluster: never overwrite them.
        return wait(Wait::SlotsLost);
    }
    let (wanted, surplus): (Vec<Member<'_>>, Vec<Member<'_>>) =
        nodes.iter().partition(|member| member.pod.ordinal < goal.size);
    let names: BTreeSet<&str> = nodes.iter().map(|member| member.pod.name.as_str()).collect();
    let ids: BTreeSet<NodeId> = wanted.iter().map(|member| member.node.id).collect();
    let peers = || nodes.iter().flat_map(|member| &member.node.table).filter(|peer| !peer.handshake);
    if peers().any(|peer| !peer.pod.as_deref().is_none_or(|name| names.contains(name))) {
        return wait(Wait::ForeignNode);
    }

    let mut shares = Shares::new(goal.slots, goal.shards());
    let fits = wanted.iter().all(|member| {
        let own = member.node.slots();
        own.is_empty() || (member.is_primary() && shares.keep(member.node.id, &own))
    });
    let foreign =
        peers().any(|peer| !ids.contains(&peer.id)) || surplus.iter().any(|member| !member.node.alone());
    if !fits || foreign {
        // Forming began with another size, or a node was replaced meanwhile. Starting over loses nothing.
        let resets = nodes.iter().filter(|member| !member.node.alone() || !member.node.slots().is_empty());
        let resets = resets.filter_map(Member::address).map(|node| Action::Reset { node }).collect();
        return act(Step::Form, resets);
    }
    // Spread primaries over as many hosts as possible.
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
            actions.extend(member.address().map(|node| Action::SetEpoch { node, epoch }));
        }
    }
    let (first, rest) = wanted.split_first()?;
    for member in rest {
        if first.node.peer(member.node.id).is_none()
            && let (Some(viewer), Some(node)) = (first.address(), member.address())
        {
            actions.push(Action::Meet { viewer, node });
        }
    }
    for member in &wanted {
        let share = shares.of(member.node.id);
        let missing = share.minus(&member.node.slots());
        if !missing.is_empty()
            && let Some(node) = member.address()
        {
            actions.push(Action::AddSlots { node, slots: missing });
        }
    }
    if actions.is_empty() { wait(Wait::Gossip) } else { act(Step::Form, actions) }
}

/// Whether all data is lost and the user accepts that: no node has a key or knows a slot.
fn starts_over(topology: &Topology<'_>) -> bool {
    let nodes = || topology.observed.pods.iter().map(|pod| pod.redis.as_ref());
    topology.goal.accept_data_loss
        && nodes().all(|node| node.is_some_and(|node| node.keys == 0))
        && nodes().flatten().flat_map(|node| &node.table).all(|peer| peer.slots.is_empty())
}

/// The slots divided by the number of shards, each part with its owner.
struct Shares(Vec<(Slots, Option<NodeId>)>);

impl Shares {
    fn new(slots: u16, shards: u32) -> Self {
        let bound = |part: u32| {
            u16::try_from(u64::from(slots) * u64::from(part) / u64::from(shards.max(1))).unwrap_or(slots)
        };
        let parts = (0..shards).filter(|&part| bound(part) < bound(part + 1));
        Self(parts.map(|part| (Slots::range(bound(part), bound(part + 1) - 1), None)).collect())
    }

    /// Assigns a node the part that contains its slots; false if there is no such part or it has another owner.
    fn keep(&mut self, id: NodeId, own: &Slots) -> bool {
        match self.0.iter_mut().find(|(share, _)| own.minus(share).is_empty()) {
            Some((_, owner @ None)) => {
                *owner = Some(id);
                true
            }
            _ => false,
        }
    }

    /// Assigns the remaining parts to nodes that have none.
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

/// A formed cluster without any owner has lost its data; forming it again would hide that.
fn nothing_left(topology: &Topology<'_>) -> Found {
    if topology.core.is_empty() {
        return wait(Wait::Pods);
    }
    if !topology.owned.is_empty() {
        return None;
    }
    // A node that did not respond may still own slots.
    wait(if topology.observed.pods.iter().all(|pod| pod.redis.is_some()) {
        Wait::DataLost
    } else {
        Wait::Pods
    })
}

/// Updates the addresses in the first stale table. Gossip does the rest.
fn heal_addresses(topology: &Topology<'_>) -> Found {
    let stale = |viewer: &Member<'_>| -> Vec<Action> {
        let wrong = topology.core.iter().filter(|member| {
            member.node.id != viewer.node.id
                && viewer.node.peer(member.node.id).is_some_and(|peer| peer.ip != member.pod.ip)
        });
        wrong
            .filter_map(|member| Some(Action::Meet { viewer: viewer.address()?, node: member.address()? }))
            .collect()
    };
    act(
        Step::HealAddresses,
        topology.core.iter().map(stale).find(|meets| !meets.is_empty()).unwrap_or_default(),
    )
}

/// After its primary got a new address, a replica can use the old one for ever although all tables are right.
fn relink(topology: &Topology<'_>) -> Found {
    let again = topology.core.iter().filter_map(|member| {
        // If its primary was demoted, `roles` gives it another.
        let primary = topology.member(member.node.primary()?).filter(Member::is_primary)?;
        let elsewhere = member.node.bound.is_some() && member.node.bound != primary.pod.ip;
        let broken = match member.node.link {
            Link::Down(seconds) => elsewhere || seconds >= LINK_PATIENCE_SECONDS,
            Link::Never => elsewhere,
            Link::None | Link::Up | Link::Syncing => false,
        };
        broken.then_some(Action::Replicate { node: member.address()?, primary: primary.node.id })
    });
    act(Step::Relink, again.collect())
}

/// Finishes interrupted slot migrations, forward if possible. In Redis only two primaries know an open slot, and a failover of
/// either loses that state, so this does not wait for anything. Replicas of Valkey 8 and later know the open slots of their
/// primary, which passes on to them what it is told; they refuse to be told by anybody else.
fn close_slots(topology: &Topology<'_>) -> Found {
    let mut open: BTreeSet<u16> = BTreeSet::new();
    for member in topology.core.iter().filter(|member| member.is_primary()) {
        open.extend(member.node.migrating.keys().chain(member.node.importing.keys()));
    }
    // If nobody but this operator interrupted the migration, it simply continues.
    let step = if open.is_subset(&topology.observed.left_open) { Step::Move } else { Step::CloseSlots };
    let (mut actions, mut moves) = (vec![], vec![]);
    for slot in open {
        close_slot(topology, slot, &mut actions, &mut moves);
    }
    actions.extend(moves.into_iter().map(Action::Move));
    act(step, actions)
}

/// What one slot needs. Slots of one source and destination share a move.
fn close_slot(topology: &Topology<'_>, slot: u16, actions: &mut Vec<Action>, moves: &mut Vec<Move>) {
    // If its owner comes back or a successor is elected, this continues.
    let Some(owner) = topology.owner(slot).and_then(|id| topology.member(id)) else { return };
    let stable = |member: &Member<'_>| member.address().map(|node| Action::Stable { node, slot });
    let primaries = || topology.core.iter().filter(|member| member.is_primary());
    let others = || primaries().filter(|member| member.node.id != owner.node.id);

    actions.extend(others().filter(|member| member.node.migrating.contains_key(&slot)).filter_map(stable));
    if owner.node.importing.contains_key(&slot) {
        actions.extend(stable(&owner));
    }
    let keys = topology.observed.open_keys.get(&slot);
    let holds =
        |member: &Member<'_>| keys.and_then(|keys| keys.get(&member.node.id)).is_some_and(|count| *count > 0);
    let target = owner.node.migrating.get(&slot);
    // A former owner that was away still claims the slot: gossip will make it a replica, and its keys are copies.
    let receivers = || others().filter(|member| !member.node.slots().contains(slot));
    let imports = |member: &&Member<'_>| member.node.importing.contains_key(&slot);
    // Where keys are already; otherwise the intended destination.
    let to = receivers()
        .find(|member| imports(member) && holds(member))
        .or_else(|| receivers().find(|member| holds(member)))
        .or_else(|| receivers().find(|member| Some(&member.node.id) == target))
        .or_else(|| receivers().find(imports));
    match (to, target) {
        (Some(to), _) => {
            let rest = others().filter(|member| imports(member) && member.node.id != to.node.id);
            actions.extend(rest.filter_map(stable));
            let (Some(from), Some(address)) = (owner.address(), to.address()) else { return };
            // After a failover of the source, the destination still has the old owner.
            if to.node.peer(owner.node.id).is_none_or(|peer| !peer.slots.contains(slot)) {
                let (nodes, slots) = (vec![address.clone()], Slots::range(slot, slot));
                actions.push(Action::AssignSlots { nodes, slots, owner: owner.node.id });
            }
            match moves.iter_mut().find(|other| (other.from.id, other.to.id) == (from.id, address.id)) {
                Some(shared) => shared.slots.insert(slot, slot),
                None => {
                    let finish = moving(topology, from, address, Slots::range(slot, slot));
                    moves.push(Move { open: true, ..finish });
                }
            }
        }
        // The other end is gone, perhaps with keys: they come back with it or with one of its replicas.
        (None, Some(&target)) if !comes_back(topology, target) => {
            let copy = topology.replicas_of(target).find(|copy| holds(copy) && was_in_step(topology, copy));
            let action = match copy.and_then(|copy| copy.address()) {
                Some(node) => Some(Action::TakeOver { node }),
                None => stable(&owner),
            };
            // One replica may have the keys of several slots.
            actions.extend(action.filter(|action| !actions.contains(action)));
        }
        _ => {}
    }
}

/// Whether the other end of an open slot comes back by itself. Redis elects no successor for a primary without slots.
fn comes_back(topology: &Topology<'_>, id: NodeId) -> bool {
    topology.absent.get(&id) == Some(&Absence::MayReturn)
        || topology.owned.contains_key(&id) && topology.replicas_of(id).next().is_some()
}

/// Whether a replica of a primary without slots has exactly the keys that were migrated there.
fn was_in_step(topology: &Topology<'_>, replica: &Member<'_>) -> bool {
    let counts = topology.observed.open_keys.values().filter_map(|keys| keys.get(&replica.node.id));
    counts.sum::<u64>() == replica.node.keys
}

fn moving(topology: &Topology<'_>, from: NodeAddress, to: NodeAddress, slots: Slots) -> Move {
    let others = topology
        .owners()
        .filter(|member| ![from.id, to.id].contains(&member.node.id))
        .filter_map(|member| member.address())
        .collect();
    let in_sync = topology.replicas_of(to.id).filter(|replica| topology.in_sync(*replica));
    let copies = in_sync.count();
    Move { from, to, slots, others, copies, open: false }
}

/// Forgets ids whose pod is gone for good, once they own nothing and have no replicas.
fn forget(topology: &Topology<'_>) -> Found {
    let gone = topology.absent.iter().filter(|(id, absence)| {
        **absence == Absence::Gone
            && !topology.owned.contains_key(id)
            && topology.replicas_of(**id).next().is_none()
    });
    let mut actions = vec![];
    for (&id, _) in gone {
        let knows = topology.core.iter().filter(|member| member.node.peer(id).is_some());
        actions.extend(knows.filter_map(|member| Some(Action::Forget { node: member.address()?, id })));
    }
    act(Step::Forget, actions)
}

/// Introduces nodes again that the others were told to forget. Every member meets them itself: gossip does not for a minute, in which
/// Redis 7.2 and later, and Valkey, also tell one another to forget them. Nodes that were told to forget members are introduced after
/// that minute, so that all of these do not forget each other.
fn reintroduce(topology: &Topology<'_>) -> Found {
    let (banning, harmless): (Vec<_>, Vec<_>) =
        topology.forgotten().partition(|member| topology.spreads_bans(member));
    let pairs = harmless.into_iter().flat_map(|member| topology.core.iter().map(move |core| (core, member)));
    let meet = |(core, member): (&Member<'_>, Member<'_>)| {
        Some(Action::Meet { viewer: core.address()?, node: member.address()? })
    };
    act(Step::Reintroduce, pairs.filter_map(meet).collect())
        .or_else(|| if banning.is_empty() { None } else { wait(Wait::Bans) })
}

/// Adds desired, empty nodes. With an epoch above all others, a replacement can claim slots of the node that it
/// replaces; at epoch 0 it would become its replica.
fn join(topology: &Topology<'_>) -> Found {
    let viewer = topology.core.first()?.address()?;
    let mut epoch = topology.current_epoch();
    let (mut joins, mut resets, mut foreign) = (vec![], vec![], false);
    let (mut gossip, mut banned) = (false, false);
    for member in &topology.outsiders {
        let Some(node) = member.address() else { continue };
        let wanted = stays(topology, member);
        let names_us = topology.core.iter().any(|core| member.node.peer(core.node.id).is_some());
        let we_name_it = topology.core.iter().any(|core| core.node.peer(member.node.id).is_some());
        let reaches = |core: &Member<'_>| core.node.peer(member.node.id).is_some_and(|peer| peer.connected);
        let introduced = member.node.table.iter().any(|peer| peer.handshake);
        let names_absent = member.node.table.iter().any(|peer| topology.absent.contains_key(&peer.id));
        if member.node.blank() || member.node.isolated() && !names_us {
            if wanted && !member.pod.terminating {
                epoch += 1;
                if member.node.epoch() == 0 {
                    joins.push(Action::SetEpoch { node: node.clone(), epoch });
                }
                joins.push(Action::Meet { viewer: viewer.clone(), node });
            }
        } else if we_name_it || (introduced && !names_us) {
            gossip = wanted;
            // Told to forget us, or with an address that is new to us, it hears nothing from us until it is introduced.
            let reached = names_us && topology.core.iter().any(reaches);
            if we_name_it && !reached && !introduced {
                if topology.spreads_bans(member) {
                    banned = true;
                } else {
                    joins.push(Action::Meet { viewer: viewer.clone(), node });
                }
            }
        } else if (names_us && (member.node.keys == 0 || !member.is_primary())
            || names_absent && member.node.keys == 0 && member.is_primary())
            && covers(topology, &member.node.slots())
        {
            // Forgotten while it was down, or introduced to a node that hangs since; other nodes own its slots.
            if resets.is_empty() {
                resets.push(Action::Reset { node });
            }
        } else {
            foreign = true;
        }
    }
    if resets.is_empty() { act(Step::Join, joins) } else { act(Step::Join, resets) }
        .or_else(|| if foreign { wait(Wait::ForeignNode) } else { None })
        .or_else(|| if banned { wait(Wait::Bans) } else { None })
        .or_else(|| if gossip { wait(Wait::Gossip) } else { None })
}

/// Copies the function libraries to primaries that have no slots yet: they are in no slot, so no migration brings them. Replicas get
/// them from their primaries, and a primary that has slots is left to its user.
fn functions(topology: &Topology<'_>) -> Found {
    let from = topology.owners().find(|owner| owner.node.libraries > 0)?.address()?;
    let lacks = |member: &&Member<'_>| {
        let new = member.is_primary() && !topology.owned.contains_key(&member.node.id);
        new && stays(topology, member) && member.node.libraries == 0
    };
    let lacking = topology.core.iter().filter(lacks).filter_map(Member::address);
    act(Step::Functions, lacking.map(|to| Action::CopyFunctions { from: from.clone(), to }).collect())
}

fn covers(topology: &Topology<'_>, slots: &Slots) -> bool {
    slots.iter().all(|slot| topology.owner(slot).is_some_and(|id| topology.member(id).is_some()))
}

/// No slots are migrated while an owner is missing.
fn wait_for_owners(topology: &Topology<'_>) -> Found {
    let missing = topology.missing_owners();
    let copied: Vec<NodeId> =
        missing.iter().copied().filter(|id| topology.replicas_of(*id).next().is_some()).collect();
    if !copied.is_empty() {
        let observed = topology.observed;
        let late = if topology.has_quorum() { observed.election_due } else { observed.takeover_due };
        let stale = |id: &NodeId| !topology.replicas_of(*id).any(|copy| topology.may_succeed(copy, *id));
        return wait(match topology.has_quorum() {
            _ if late && copied.iter().all(stale) => Wait::StaleReplicas,
            true => Wait::Election,
            false => Wait::Quorum,
        });
    }
    if missing.iter().any(|id| topology.absent.get(id) == Some(&Absence::MayReturn)) {
        return wait(Wait::Pods);
    }
    if topology.lost().is_empty() { None } else { wait(Wait::SlotsLost) }
}

/// Without a majority of primaries Redis cannot elect. Once their processes are confirmed to be stopped, their best replicas
/// are promoted without a vote, one at a time: a primary that still runs would acknowledge writes that are lost later.
/// If the user accepts data loss, an empty replica of a primary that is gone for good is promoted as well.
fn take_over(topology: &Topology<'_>) -> Found {
    let goal = topology.goal;
    // While nodes are in no table, this says nothing of a majority, and the primary may not know the replica: they would not hear of
    // each other.
    let due = goal.take_over
        && topology.observed.takeover_due
        && !topology.has_quorum()
        && !forgotten_return(topology);
    let missing = topology.missing_owners();
    let ready = |id: &NodeId| {
        let gone = topology.absent.get(id) == Some(&Absence::Gone);
        let emptied = || topology.replicas_of(*id).all(|replica| replica.node.keys == 0);
        (due && is_stopped(topology, *id)) || (goal.accept_data_loss && gone && emptied())
    };
    let gives_up = |id: &NodeId| goal.accept_data_loss && topology.absent.get(id) == Some(&Absence::Gone);
    let best = missing.iter().filter(|id| ready(id)).find_map(|id| successor(topology, *id, gives_up(id)))?;
    act(Step::TakeOver, vec![Action::TakeOver { node: best.address()? }])
}

/// The replica with most of a missing primary's data that may be promoted: one that was in sync first, then by replication offset. A
/// replica that never synced may have been a primary itself, with no data and a greater offset.
fn successor<'a>(topology: &Topology<'a>, lost: NodeId, emptied: bool) -> Option<Member<'a>> {
    let synced = |replica: &Member<'_>| matches!(replica.node.link, Link::Up | Link::Down(_));
    topology
        .replicas_of(lost)
        .filter(|replica| !replica.pod.terminating && topology.may_succeed(*replica, lost))
        .filter(|replica| synced(replica) || replica.node.keys > 0 || emptied)
        .max_by_key(|replica| {
            let node = replica.node;
            let was_in_sync = topology.observed.copies.were_in_sync(node.id, lost);
            (
                was_in_sync,
                synced(replica),
                node.keys > 0,
                node.offset,
                node.keys,
                Reverse(replica.pod.ordinal),
            )
        })
}

/// Redis does not let a replica that started while its primary was down run for election, since it may have no data. If none
/// is elected, the replica with keys is made to.
fn elect(topology: &Topology<'_>) -> Found {
    if !topology.observed.election_due || !topology.has_quorum() {
        return None;
    }
    let missing = topology.missing_owners();
    let best = missing
        .iter()
        .filter(|id| is_missed(topology, **id))
        .find_map(|id| successor(topology, *id, false).filter(|replica| replica.node.keys > 0))?;
    act(Step::Elect, vec![Action::Elect { node: best.address()? }])
}

/// Whether every responding node has missed this one for the node timeout, or has no address for it.
fn is_missed(topology: &Topology<'_>, id: NodeId) -> bool {
    let mut seen = topology.core.iter().filter_map(|member| member.node.peer(id));
    seen.all(|peer| peer.failed || peer.suspected || peer.ip.is_none())
}

/// Whether the process of a missing node is confirmed to be stopped: its pod is gone, runs another node or has ended, and every
/// responding node has missed it for the node timeout. A pod that is not ready proves nothing: those of a Kubernetes node that is cut
/// off are made not ready on purpose, and a majority of primaries there keeps its clients.
fn is_stopped(topology: &Topology<'_>, id: NodeId) -> bool {
    let pod = topology.ordinal(id).map(|ordinal| {
        let pods = &topology.observed.pods;
        pods.iter().find(|pod| pod.ordinal == ordinal)
    });
    let stopped = match pod {
        // Its pod is unknown.
        None => topology.absent.get(&id) == Some(&Absence::Gone),
        Some(None) => true,
        Some(Some(pod)) => match &pod.redis {
            Some(node) => node.id != id,
            None => pod.ip.is_none() || pod.ended,
        },
    };
    is_missed(topology, id) && stopped
}

/// Gives slots back to the primary that most others name as their owner, if it names nobody and they name nobody else. Redis was seen to drop a slot of its own
/// when the primary that it had succeeded was thawed: the others asked it for that slot, and it refused.
fn reclaim(topology: &Topology<'_>) -> Found {
    let lost = topology.lost();
    let names = |viewer: &Member<'_>, id: NodeId, slot: u16| {
        viewer.node.peer(id).is_some_and(|peer| peer.slots.contains(slot))
    };
    let mut actions = vec![];
    for member in topology.core.iter().filter(|member| member.is_primary()) {
        let id = member.node.id;
        let others = || topology.core.iter().filter(|other| other.node.id != id);
        let primaries = others().filter(|other| topology.owned.contains_key(&other.node.id)).count();
        let is_its = |slot: &u16| {
            let named = others().filter(|other| topology.owned.contains_key(&other.node.id));
            let named = named.filter(|other| names(other, id, *slot)).count();
            let elsewhere = |viewer: &Member<'_>| {
                viewer.node.table.iter().any(|peer| peer.id != id && peer.slots.contains(*slot))
            };
            named * 2 > primaries && !names(member, id, *slot) && !topology.core.iter().any(elsewhere)
        };
        let slots: Slots = lost.iter().filter(is_its).collect();
        if let Some(node) = member.address().filter(|_| !slots.is_empty()) {
            actions.push(Action::AddSlots { node, slots });
        }
    }
    act(Step::Reclaim, actions)
}

/// Whether nodes come back that others were told to forget. They are in no table while their pods are restarted.
fn forgotten_return(topology: &Topology<'_>) -> bool {
    topology.forgotten().next().is_some() || topology.unlisted().next().is_some()
}

/// Assigns slots that were lost with their only owner to the remaining primaries, if the user accepts that: the nodes forget
/// the owner, and the slots go to the primary with the fewest.
fn accept_loss(topology: &Topology<'_>) -> Found {
    let lost = topology.lost();
    let may_return = |id: &NodeId| topology.absent.get(id) == Some(&Absence::MayReturn);
    // A replica of a missing owner has its data: it has to be elected first.
    let has_replicas = |id: &NodeId| topology.replicas_of(*id).next().is_some();
    if !topology.goal.accept_data_loss
        || lost.is_empty()
        || topology.absent.keys().any(may_return)
        || forgotten_return(topology)
        || topology.missing_owners().iter().any(has_replicas)
    {
        return None;
    }
    let mut actions = vec![];
    for id in topology.missing_owners() {
        let knows = topology.core.iter().filter(|member| member.node.peer(id).is_some());
        actions.extend(knows.filter_map(|member| Some(Action::Forget { node: member.address()?, id })));
    }
    if !actions.is_empty() {
        return act(Step::AcceptLoss, actions);
    }
    // A node whose table still has an owner would refuse.
    let unassigned = |viewer: &Member<'_>| {
        viewer.node.table.iter().all(|peer| peer.slots.iter().all(|slot| !lost.contains(slot)))
    };
    if !topology.core.iter().all(unassigned) {
        return wait(Wait::Gossip);
    }
    let count = |member: &Member<'_>| topology.owned.get(&member.node.id).map_or(0, Slots::len);
    let primaries = topology.core.iter().filter(|member| member.is_primary() && stays(topology, member));
    let node = primaries.min_by_key(|member| (count(member), member.pod.ordinal))?.address()?;
    act(Step::AcceptLoss, vec![Action::AddSlots { node, slots: lost }])
}

/// The desired primaries.
struct Shape<'a> {
    /// Primaries that keep or get slots, lowest ordinal first.
    primaries: Vec<Member<'a>>,
}

impl<'a> Shape<'a> {
    fn of(topology: &Topology<'a>) -> Self {
        let wanted = topology.goal.shards() as usize;
        let stays = |member: &Member<'a>| stays(topology, member) && member.is_primary();
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
    member.pod.ordinal < topology.nodes()
}

/// Assigns a role to every member that stays: primaries first, then replicas to the shards with the fewest.
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
    let mut shards: Shards<'_> = shape
        .primaries
        .iter()
        .map(|primary| (primary.node.id, Shard { primary: *primary, replicas: vec![] }))
        .collect();
    let mut idle = vec![];
    for member in topology.core.iter().filter(|member| stays(topology, member)) {
        match member.node.primary() {
            None if shape.has(member.node.id) => {}
            // Its slots are still being migrated away.
            None if topology.owned.contains_key(&member.node.id) => {}
            None => idle.push(*member),
            Some(primary) => match shards.get_mut(&primary) {
                Some(shard) => shard.replicas.push(*member),
                // Its primary still owns slots, and until these are migrated it needs the replica.
                None if topology.owned.contains_key(&primary) => {}
                None => idle.push(*member),
            },
        }
    }
    // Surplus replicas of one shard go to another that lacks them, one at a time.
    let lacking: usize = shards.values().map(|shard| per_shard.saturating_sub(shard.replicas.len())).sum();
    if lacking > idle.len() {
        idle.extend(placement::surplus(&shards, per_shard));
    }
    // With data of another shard it could be elected before its first sync with the new primary.
    let starts_afresh = idle.iter().find(|member| member.node.primary().is_some());
    if let Some(node) = starts_afresh.and_then(Member::address) {
        if !topology.observed.leave_due {
            return wait(Wait::Gossip);
        }
        return act(Step::Roles, vec![Action::Reset { node }]);
    }
    let mut with_keys = idle.iter().filter(|member| member.node.keys > 0);
    if let Some(emptied) = with_keys.find_map(|member| empty(topology, Step::Roles, member)) {
        return Some(emptied);
    }
    let next = topology.next_primary();
    let mut actions = vec![];
    let given = match next {
        Some(next) => idle.into_iter().map(|member| (member, next)).collect(),
        None => placement::assign(&mut shards, idle, per_shard),
    };
    for (member, primary) in given {
        let Some(node) = member.address() else { continue };
        // Until it knows the primary, it would answer "Unknown node".
        if member.node.peer(primary).is_none_or(|peer| peer.primary.is_some()) {
            return wait(Wait::Gossip);
        }
        actions.push(Action::Replicate { node, primary });
    }
    act(Step::Roles, actions)
}

/// Once everything is in sync: if two copies of a shard are on one Kubernetes node, one of them changes places with a replica of
/// another shard, if that helps. It is reset, and [`roles`] gives it the other shard. Only then does that shard's replica follow,
/// so that no shard has copies on fewer Kubernetes nodes than before.
fn spread(topology: &Topology<'_>) -> Found {
    let pods = &topology.observed.pods;
    // While pods are being replaced, they change their Kubernetes nodes anyway. A copy is worth more than its place while another may go.
    if pods.iter().any(|pod| pod.terminating || pod.outdated || pod.claim_ends) {
        return None;
    }
    let node = placement::misplaced(&shards(topology))?.address()?;
    act(Step::Spread, vec![Action::Reset { node }])
}

/// Once the copies are where they belong: the primaries move to more Kubernetes nodes and zones, one at a time. A node that was
/// promoted a moment ago is left alone, and so is everything while pods come and go: those of a drained Kubernetes node leave one by one, and
/// each failover makes a node not ready for a moment.
fn balance(topology: &Topology<'_>) -> Found {
    let observed = topology.observed;
    if topology.goal.hibernated || observed.unrest || observed.pods.iter().any(|pod| pod.outdated) {
        return None;
    }
    let may_take_over = |replica: &Member<'_>, primary: &Member<'_>| {
        !observed.promoted.contains(&replica.node.id) && topology.may_take_over(*replica, *primary)
    };
    let node = placement::better_primary(&shards(topology), may_take_over)?.address()?;
    act(Step::Balance, vec![Action::Failover { node }])
}

fn shards<'a>(topology: &Topology<'a>) -> Shards<'a> {
    let shards = topology.owners().map(|primary| {
        let replicas = topology.replicas_of(primary.node.id).collect();
        (primary.node.id, Shard { primary, replicas })
    });
    shards.collect()
}

/// Desired members are missing: waits for gossip if all their nodes respond, and for pods otherwise.
fn wait_unless_absent(topology: &Topology<'_>) -> Found {
    let answer = (0..topology.goal.size).all(|ordinal| {
        topology.observed.pods.iter().any(|pod| pod.ordinal == ordinal && pod.redis.is_some())
    });
    wait(if answer { Wait::Gossip } else { Wait::Pods })
}

/// Too few primaries stay for the desired shards: one that is to be removed fails over to its replica, or a surplus replica
/// is reset. One at a time.
fn more_primaries(topology: &Topology<'_>, shape: &Shape<'_>) -> Found {
    let leaving = topology.owners().filter(|member| !stays(topology, member));
    let mut candidates = false;
    for primary in leaving {
        let copies = topology.replicas_of(primary.node.id);
        for replica in copies.filter(|replica| stays(topology, replica)) {
            if topology.may_take_over(replica, primary)
                && let Some(node) = replica.address()
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
            // Replicas of a primary without slots are not needed there.
            let idle = topology.core.iter().filter(|member| stays(topology, member));
            idle.filter(|member| member.node.primary().is_some_and(|id| !topology.owned.contains_key(&id)))
                .max_by_key(|member| member.pod.ordinal)
                .copied()
        });
    match surplus.and_then(|member| member.address()) {
        // It may have been drained a moment ago.
        Some(node) if topology.observed.leave_due => act(Step::Roles, vec![Action::Reset { node }]),
        Some(_) | None => wait(Wait::Gossip),
    }
}

/// Migrates slots from primaries with too many to primaries with too few, as few as possible.
fn moves(topology: &Topology<'_>) -> Found {
    let shape = Shape::of(topology);
    let count = |member: &Member<'_>| topology.owned.get(&member.node.id).map_or(0, Slots::len);
    let shards = shape.primaries.len();
    if shards == 0 {
        return wait(Wait::Pods);
    }
    // The primary with most slots keeps the odd one, so that fewer are migrated.
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
    let agree = topology.slots_agree() && topology.core.iter().all(|member| member.node.ok);
    if !agree || !takers.iter().all(|taker| topology.is_known_to_all(taker.node.id)) {
        return wait(Wait::Gossip);
    }
    // A syncing replica would get every key twice. A disconnected one may be elected: with keys that were migrated away, and
    // without those that were migrated in.
    let disconnected = |member: Member<'_>| !topology.in_sync(member);
    if topology.core.iter().any(|member| member.node.link == Link::Syncing) {
        return wait(Wait::Sync);
    }
    // Each node is in one pair at most, so that the pairs do not slow each other down.
    let mut moves = vec![];
    let mut reason = Wait::Gossip;
    for (giver, taker) in givers.into_iter().zip(takers) {
        let pair = [giver, taker];
        if pair.iter().flat_map(|primary| topology.replicas_of(primary.node.id)).any(disconnected) {
            reason = Wait::Sync;
            continue;
        }
        let all = count(&giver);
        let moved = (all - target(&giver)).min(target(&taker) - count(&taker));
        let (used, limit) = taker.node.memory;
        let (giver_used, _) = giver.node.memory;
        let share = u128::from(giver_used) * moved as u128 / all.max(1) as u128;
        // An empty Redis uses memory too, which is not migrated.
        if limit > 0 && giver.node.keys > 0 && u128::from(used) + share > u128::from(limit) {
            reason = Wait::Memory;
            continue;
        }
        let (from, to) = (giver.address()?, taker.address()?);
        let slots = topology.owned.get(&giver.node.id)?.highest(moved.min(BATCH));
        moves.push(Action::Move(moving(topology, from, to, slots)));
    }
    if moves.is_empty() { wait(reason) } else { act(Step::Move, moves) }
}

/// Empties a primary without slots. A replica that is elected before it hears of its primary's last slots has their keys, and Redis
/// neither resets a primary with keys nor makes it a replica. The owner of the slots has the keys: nobody else has served them since.
fn empty(topology: &Topology<'_>, step: Step, member: &Member<'_>) -> Found {
    let node = member.address().filter(|_| topology.serves())?;
    Some((step, vec![Action::Empty { node }]))
}

/// Removes one drained member: the others forget it first, then it is reset, so that it cannot rejoin by itself.
fn shrink(topology: &Topology<'_>) -> Found {
    let mut leavers = topology.core.iter().rev().filter(|member| !stays(topology, member)).peekable();
    leavers.peek()?;
    // A replica cannot forget its primary, so replicas go first. And a node that forgets one which its table still has as an
    // owner would refuse its clients until gossip brings the new owner.
    let free = |member: &&Member<'_>| {
        let id = member.node.id;
        let named = |viewer: &Member<'_>| viewer.node.peer(id).is_some_and(|peer| !peer.slots.is_empty());
        !topology.owned.contains_key(&id)
            && topology.replicas_of(id).next().is_none()
            && !topology.core.iter().any(named)
    };
    let Some(leaver) = leavers.find(free) else { return wait(Wait::Gossip) };
    if leaver.is_primary() && leaver.node.keys > 0 {
        return empty(topology, Step::Shrink, leaver).or_else(|| wait(Wait::ForeignNode));
    }
    if !topology.observed.leave_due {
        // It still redirects clients to the new owners of its slots, also if it has become a replica meanwhile.
        return wait(Wait::Gossip);
    }
    let mut actions = vec![];
    for member in topology.core.iter().filter(|member| member.node.id != leaver.node.id) {
        if member.node.peer(leaver.node.id).is_some() {
            actions.extend(member.address().map(|node| Action::Forget { node, id: leaver.node.id }));
        }
    }
    actions.extend(leaver.address().map(|node| Action::Reset { node }));
    act(Step::Shrink, actions)
}

/// Nothing is left to do but wait.
fn wait_for_the_rest(topology: &Topology<'_>) -> Found {
    // Pods of removed nodes exist until the StatefulSet is scaled down.
    let is_over = |pod: &Pod| !pod.terminating && pod.ordinal >= topology.nodes();
    if !topology.absent.is_empty() || topology.observed.pods.iter().any(is_over) {
        return wait(Wait::Pods);
    }
    // A replica that cannot store what it gets connects again and again: one state, not several.
    if topology.core.iter().any(|member| member.node.link != Link::None && !topology.in_sync(*member)) {
        return wait(Wait::Sync);
    }
    if !topology.tables_agree() || !topology.core.iter().all(|member| member.node.ok) {
        return wait(Wait::Gossip);
    }
    None
}
