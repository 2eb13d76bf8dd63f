//! Which replica copies which shard: the copies of a shard belong on different Kubernetes nodes, and in different zones.

use std::{cmp::Reverse, collections::BTreeMap, iter};

use super::{Link, Member, NodeId, Pod};

/// Pairs of copies of one shard on one Kubernetes node, and in one zone. The order is that of importance.
type Crowding = (isize, isize);

/// A primary and its replicas.
#[derive(Clone, Debug)]
pub(super) struct Shard<'a> {
    pub(super) primary: Member<'a>,
    pub(super) replicas: Vec<Member<'a>>,
}

/// The shards by their primaries.
pub(super) type Shards<'a> = BTreeMap<NodeId, Shard<'a>>;

impl<'a> Shard<'a> {
    fn copies(&self) -> impl Iterator<Item = &Member<'a>> {
        iter::once(&self.primary).chain(&self.replicas)
    }

    /// With how many copies this member shares, or would share, its Kubernetes node and its zone, once `without` has left.
    fn crowding(&self, member: &Member<'_>, without: Option<NodeId>) -> Crowding {
        let ids = [Some(member.node.id), without];
        let others = || self.copies().filter(|other| !ids.contains(&Some(other.node.id)));
        let same = |place: fn(&Pod) -> Option<&String>| {
            let here = place(member.pod);
            let count = others().filter(|other| here.is_some() && place(other.pod) == here).count();
            isize::try_from(count).unwrap_or(isize::MAX)
        };
        (same(|pod| pod.host.as_ref()), same(|pod| pod.zone.as_ref()))
    }

    fn in_sync(&self, without: NodeId) -> usize {
        let others = self.replicas.iter().filter(|replica| replica.node.id != without);
        others.filter(|replica| replica.node.link == Link::Up).count()
    }
}

fn sum(a: Crowding, b: Crowding) -> Crowding {
    (a.0 + b.0, a.1 + b.1)
}

fn minus(a: Crowding, b: Crowding) -> Crowding {
    (a.0 - b.0, a.1 - b.1)
}

/// What it changes when `a` in `here` and `b` in `there` swap their shards.
fn swapped(here: &Shard<'_>, a: &Member<'_>, there: &Shard<'_>, b: &Member<'_>) -> Crowding {
    let before = sum(here.crowding(a, None), there.crowding(b, None));
    let after = sum(there.crowding(a, Some(b.node.id)), here.crowding(b, Some(a.node.id)));
    minus(after, before)
}

/// Assigns idle members to shards: to those with the fewest replicas, and so that the fewest copies of a shard share a Kubernetes
/// node. If one would share it, and could change places with a replica of another shard, it joins that shard, and the replica
/// follows in its place once this one is in sync: see [`surplus`].
pub(super) fn assign<'a>(
    shards: &mut Shards<'a>,
    idle: Vec<Member<'a>>,
    per_shard: usize,
) -> Vec<(Member<'a>, NodeId)> {
    let settled = shards.clone();
    let mut given: Vec<(Member<'a>, NodeId)> = vec![];
    for member in idle {
        let best = shards.iter_mut().min_by_key(|(_, shard)| {
            (shard.replicas.len(), shard.crowding(&member, None), shard.primary.pod.ordinal)
        });
        if let Some((id, shard)) = best {
            shard.replicas.push(member);
            given.push((member, *id));
        }
    }
    // The best for each is not the best for all. Every swap lowers the sum, so this ends.
    while let Some((i, j)) = better_swap(shards, &given) {
        let ((a, here), (b, there)) = (given[i], given[j]);
        replace(shards, here, a, b);
        replace(shards, there, b, a);
        (given[i].1, given[j].1) = (there, here);
    }
    for (member, id) in &mut given {
        let Some(here) = shards.get(id) else { continue };
        if here.crowding(member, None).0 == 0 || here.replicas.len() > per_shard {
            continue;
        }
        let full = settled.iter().filter(|(other, shard)| {
            *other != id && shard.replicas.len() == per_shard && shards[*other].replicas.len() == per_shard
        });
        let elsewhere = full
            .flat_map(|(other, shard)| shard.replicas.iter().map(move |replica| (other, shard, replica)))
            .filter(|(_, _, replica)| replica.node.link == Link::Up)
            .map(|(other, shard, replica)| (swapped(here, member, shard, replica), *other))
            .filter(|(change, _)| change.0 < 0)
            .min();
        if let Some((_, other)) = elsewhere {
            if let Some(here) = shards.get_mut(id) {
                here.replicas.retain(|replica| replica.node.id != member.node.id);
            }
            if let Some(there) = shards.get_mut(&other) {
                there.replicas.push(*member);
            }
            *id = other;
        }
    }
    given
}

fn better_swap(shards: &Shards<'_>, given: &[(Member<'_>, NodeId)]) -> Option<(usize, usize)> {
    for (i, (a, here)) in given.iter().enumerate() {
        for (j, (b, there)) in given.iter().enumerate().skip(i + 1) {
            if here != there && swapped(&shards[here], a, &shards[there], b) < (0, 0) {
                return Some((i, j));
            }
        }
    }
    None
}

fn replace<'a>(shards: &mut Shards<'a>, id: NodeId, old: Member<'a>, new: Member<'a>) {
    let replicas = shards.get_mut(&id).into_iter().flat_map(|shard| &mut shard.replicas);
    for replica in replicas.filter(|replica| replica.node.id == old.node.id) {
        *replica = new;
    }
}

/// The replica of a shard with too many that fits best into one with too few. It stays until the others of its shard are in
/// sync.
pub(super) fn surplus<'a>(shards: &Shards<'a>, per_shard: usize) -> Option<Member<'a>> {
    let lacking = || shards.values().filter(|shard| shard.replicas.len() < per_shard);
    let best = shards
        .values()
        .filter(|shard| shard.replicas.len() > per_shard)
        .flat_map(|from| from.replicas.iter().map(move |replica| (from, replica)))
        .flat_map(|(from, replica)| lacking().map(move |to| (from, replica, to)))
        .min_by_key(|(from, replica, to)| {
            let change = minus(to.crowding(replica, None), from.crowding(replica, None));
            (change, Reverse(replica.pod.ordinal))
        });
    best.filter(|(from, replica, _)| from.in_sync(replica.node.id) >= per_shard)
        .map(|(_, replica, _)| *replica)
}

/// A replica on the Kubernetes node of another copy of its shard that can change places with a replica of another shard, so that
/// fewer copies share one. Its shard loses no Kubernetes node that has a copy.
pub(super) fn misplaced<'a>(shards: &Shards<'a>) -> Option<Member<'a>> {
    let crowded = shards.iter().flat_map(|(id, shard)| {
        let shares = |replica: &&Member<'a>| shard.crowding(replica, None).0 > 0;
        shard.replicas.iter().filter(shares).map(move |replica| (id, shard, replica))
    });
    let swaps = crowded.flat_map(|(id, here, a)| {
        let others = shards.iter().filter(move |(other, _)| *other != id);
        others.flat_map(move |(_, there)| {
            there.replicas.iter().map(move |b| (swapped(here, a, there, b), a.pod.ordinal, a))
        })
    });
    let gains = swaps.filter(|(change, ..)| change.0 < 0);
    gains.min_by_key(|(change, ordinal, _)| (*change, *ordinal)).map(|(.., replica)| *replica)
}

/// The replica that should take over from its primary, so that fewer pairs of primaries share a zone, or a Kubernetes node: losing the
/// place of most primaries leaves nobody to elect their successors. Each takeover lowers the number of such pairs, so this ends.
pub(super) fn better_primary<'a>(
    shards: &Shards<'a>,
    may_take_over: impl Fn(&Member<'a>, &Member<'a>) -> bool,
) -> Option<Member<'a>> {
    if shards.values().flat_map(Shard::copies).any(|member| member.pod.host.is_none()) {
        return None;
    }
    let zone = pairs(shards, |pod| pod.zone.as_ref());
    let host = pairs(shards, |pod| pod.host.as_ref());
    let candidates =
        shards.values().flat_map(|shard| shard.replicas.iter().map(|replica| (&shard.primary, replica)));
    let better = candidates
        .map(|(from, to)| ((zone(from.pod, to.pod), host(from.pod, to.pod)), from, to))
        .filter(|(change, from, to)| *change < (0, 0) && may_take_over(to, from));
    better.min_by_key(|(change, _, to)| (*change, to.pod.ordinal)).map(|(.., to)| *to)
}

/// How many more pairs of primaries share a place when one of them moves from one pod to another.
fn pairs<'a>(
    shards: &Shards<'a>,
    place: fn(&Pod) -> Option<&String>,
) -> impl Fn(&'a Pod, &'a Pod) -> isize + use<'a> {
    let mut primaries: BTreeMap<Option<&String>, isize> = BTreeMap::new();
    for shard in shards.values() {
        *primaries.entry(place(shard.primary.pod)).or_default() += 1;
    }
    move |from, to| {
        let count = |pod| primaries.get(&place(pod)).copied().unwrap_or(0);
        if place(from) == place(to) { 0 } else { count(to) - (count(from) - 1) }
    }
}
