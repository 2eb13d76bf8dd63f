//! What was seen, put in order: who belongs to the cluster, who owns which slot, and where the tables disagree.
//!
//! Every node has a table of its own, and after a fault no two need be alike. The rules that make one picture
//! of them are here; what to do about it is in the steps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Goal, Link, Node, NodeId, Observed, Peer, Place, Pod, Slots};

/// A pod whose Redis answered.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its Redis.
    pub node: &'a Node,
}

impl Member<'_> {
    /// Where commands for it go, and whom they have to find there.
    pub fn place(&self) -> Option<Place> {
        Some(Place { pod: self.pod.name.clone(), ip: self.pod.ip?, id: self.node.id })
    }

    /// Whether it is a primary.
    pub fn is_primary(&self) -> bool {
        self.node.primary().is_none()
    }
}

/// What becomes of a node that is in the tables and did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Its pod is there, or will be made again: it may come back with its data.
    MayReturn,
    /// Its pod is gone for good, or runs another node now.
    Gone,
}

/// One picture of the cluster.
#[derive(Debug)]
pub struct Topology<'a> {
    /// What to bring about.
    pub goal: Goal,
    /// The nodes that make up the cluster and answered, lowest ordinal first.
    pub core: Vec<Member<'a>>,
    /// The nodes that answered and are not part of it, lowest ordinal first.
    pub outsiders: Vec<Member<'a>>,
    /// The nodes that are in the core's tables and did not answer.
    pub absent: BTreeMap<NodeId, Absence>,
    /// The slots of each node that owns any: the claim with the highest epoch counts, and of a node that
    /// answered only its own word.
    pub owned: BTreeMap<NodeId, Slots>,
    /// Everything that was seen.
    pub observed: &'a Observed,
}

impl<'a> Topology<'a> {
    /// Makes one picture of what was seen.
    pub fn of(goal: Goal, observed: &'a Observed) -> Self {
        let answered: Vec<Member<'a>> = observed
            .pods
            .iter()
            .filter_map(|pod| pod.redis.as_ref().map(|node| Member { pod, node }))
            .collect();
        let core_ids = core(&answered);
        let (core, outsiders): (Vec<_>, Vec<_>) =
            answered.into_iter().partition(|member| core_ids.contains(&member.node.id));
        let owned = owned(goal, &core);
        let absent = absent(goal, observed, &core, &outsiders, &owned);
        Self { goal, core, outsiders, absent, owned, observed }
    }

    /// The member with this id, when it answered.
    pub fn member(&self, id: NodeId) -> Option<Member<'a>> {
        self.core.iter().copied().find(|member| member.node.id == id)
    }

    /// The ordinal of the pod that a node said it is, as any member knows it.
    pub fn ordinal(&self, id: NodeId) -> Option<u32> {
        let name = self.core.iter().find_map(|member| member.node.peer(id)?.pod.as_deref())?;
        name.rsplit_once('-')?.1.parse().ok()
    }

    /// The members that own slots and answered, lowest ordinal first.
    pub fn owners(&self) -> impl Iterator<Item = Member<'a>> + '_ {
        self.core.iter().copied().filter(|member| self.owned.contains_key(&member.node.id))
    }

    /// The members that copy this primary.
    pub fn replicas_of(&self, id: NodeId) -> impl Iterator<Item = Member<'a>> + '_ {
        self.core.iter().copied().filter(move |member| member.node.primary() == Some(id))
    }

    /// Who owns a slot.
    pub fn owner(&self, slot: u16) -> Option<NodeId> {
        self.owned.iter().find(|(_, slots)| slots.contains(slot)).map(|(&id, _)| id)
    }

    /// How many slots have an owner that answers.
    pub fn covered(&self) -> usize {
        self.owned.iter().filter(|(id, _)| self.member(**id).is_some()).map(|(_, slots)| slots.len()).sum()
    }

    /// Whether every slot has an owner that answers and serves.
    pub fn serves(&self) -> bool {
        self.covered() == usize::from(self.goal.slots)
            && self.owners().all(|member| member.node.ok && member.is_primary())
    }

    /// Slots whose owner is gone for good, with nobody who could take its place.
    pub fn lost(&self) -> Slots {
        let owned: Slots = self.owned.values().flat_map(Slots::iter).collect();
        let mut lost = Slots::range(0, self.goal.slots - 1).minus(&owned).iter().collect::<BTreeSet<_>>();
        for (id, slots) in &self.owned {
            if self.absent.get(id) == Some(&Absence::Gone) && self.replicas_of(*id).next().is_none() {
                lost.extend(slots.iter());
            }
        }
        lost.into_iter().collect()
    }

    /// Whether a majority of the primaries that own slots is left, without which Redis elects nobody.
    pub fn has_quorum(&self) -> bool {
        let all = self.owned.len();
        all > 0 && self.owners().count() * 2 > all
    }

    /// Owners that do not answer.
    pub fn missing_owners(&self) -> Vec<NodeId> {
        self.owned.keys().copied().filter(|id| self.member(*id).is_none()).collect()
    }

    /// Whether Redis has to elect a replica of an owner that does not answer, and can.
    pub fn awaits_election(&self) -> bool {
        self.has_quorum() && self.missing_owners().iter().any(|id| self.replicas_of(*id).next().is_some())
    }

    /// Whether members own slots that they have to give away before they leave.
    pub fn drains(&self) -> bool {
        self.owners().any(|member| member.pod.ordinal >= self.goal.size)
    }

    /// Whether all members have the same members, roles and addresses in their tables, and nobody is being
    /// introduced.
    pub fn tables_agree(&self) -> bool {
        self.core.iter().all(|viewer| {
            viewer.node.table.iter().all(|peer| !peer.handshake)
                && self.core.iter().all(|member| match viewer.node.peer(member.node.id) {
                    Some(peer) => peer.primary == member.node.primary() && peer.ip == member.pod.ip,
                    None => false,
                })
        })
    }

    /// Whether all members agree on the owner of every slot. A replica that does not know what its primary gave away would
    /// claim it when it is elected.
    pub fn slots_agree(&self) -> bool {
        self.core.iter().all(|viewer| {
            viewer.node.table.iter().filter(|peer| !peer.handshake).all(|peer| {
                let none = Slots::default();
                &peer.slots == self.owned.get(&peer.id).unwrap_or(&none)
            })
        })
    }

    /// Whether `replica` could take over from `primary` now: a majority of primaries, and `primary` itself,
    /// know it as the replica, and it is in step. Redis refuses, or worse accepts and then times out with
    /// writes paused, when they do not.
    pub fn may_take_over(&self, replica: Member<'a>, primary: Member<'a>) -> bool {
        let knows = |viewer: &Member<'a>| {
            viewer
                .node
                .peer(replica.node.id)
                .is_some_and(|peer| peer.primary == Some(primary.node.id) && peer.connected && !peer.failed)
        };
        replica.node.link == Link::Up
            && knows(&primary)
            && self.owners().filter(knows).count() * 2 > self.owned.len()
    }

    /// The highest epoch that any member has heard of.
    pub fn current_epoch(&self) -> u64 {
        self.core.iter().map(|member| member.node.current_epoch).max().unwrap_or(0)
    }
}

/// The ids of the nodes that know one another and own the most slots. A node that names members which do not
/// name it is not one of them: it was forgotten, or is being introduced.
fn core(answered: &[Member<'_>]) -> BTreeSet<NodeId> {
    let mut group: Vec<usize> = (0..answered.len()).collect();
    for (i, a) in answered.iter().enumerate() {
        for (j, b) in answered.iter().enumerate().take(i) {
            if a.node.peer(b.node.id).is_some() && b.node.peer(a.node.id).is_some() && group[i] != group[j] {
                let (keep, drop) = (group[j].min(group[i]), group[j].max(group[i]));
                group.iter_mut().filter(|root| **root == drop).for_each(|root| *root = keep);
            }
        }
    }
    // Most slots of their own, then most slots that they know an owner of, as the last replica of a lost primary does and a node
    // that was just made does not; then most nodes, then the lowest ordinal.
    let weight = |root: usize| {
        let members = || answered.iter().zip(&group).filter(move |(_, of)| **of == root);
        let slots: usize = members().map(|(member, _)| member.node.slots().len()).sum();
        let known =
            |member: &Member<'_>| member.node.table.iter().map(|peer| peer.slots.len()).sum::<usize>();
        let known = members().map(|(member, _)| known(member)).max();
        (slots, known, members().count(), std::cmp::Reverse(root))
    };
    let Some(best) = group.iter().copied().max_by_key(|&root| weight(root)) else { return BTreeSet::new() };
    answered.iter().zip(&group).filter(|(_, root)| **root == best).map(|(member, _)| member.node.id).collect()
}

fn absent(
    goal: Goal,
    observed: &Observed,
    core: &[Member<'_>],
    outsiders: &[Member<'_>],
    owned: &BTreeMap<NodeId, Slots>,
) -> BTreeMap<NodeId, Absence> {
    let answered: BTreeSet<NodeId> = core.iter().chain(outsiders).map(|member| member.node.id).collect();
    let replicas = observed.replicas.unwrap_or(goal.size);
    let all_answer = (0..replicas)
        .all(|ordinal| observed.pods.iter().any(|pod| pod.ordinal == ordinal && pod.redis.is_some()));
    let mut absent = BTreeMap::new();
    for peer in core.iter().flat_map(|member| &member.node.table) {
        if peer.handshake || answered.contains(&peer.id) {
            continue;
        }
        let absence = match &peer.pod {
            Some(name) => match observed.pods.iter().find(|pod| &pod.name == name) {
                Some(pod) if pod.redis.is_some() => Absence::Gone,
                Some(_) => Absence::MayReturn,
                None => match name.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<u32>().ok()) {
                    // An owner whose pod others scaled away comes back with its volume.
                    Some(ordinal) if ordinal < replicas || owned.contains_key(&peer.id) => Absence::MayReturn,
                    _ => Absence::Gone,
                },
            },
            None if all_answer => Absence::Gone,
            None => Absence::MayReturn,
        };
        // One table may know the pod's name where another does not: the word of the one that knows counts.
        let known = absent.entry(peer.id).or_insert(absence);
        if peer.pod.is_some() {
            *known = absence;
        }
    }
    absent
}

fn owned(goal: Goal, core: &[Member<'_>]) -> BTreeMap<NodeId, Slots> {
    let answered: BTreeSet<NodeId> = core.iter().map(|member| member.node.id).collect();
    // Of a node that did not answer, the freshest line.
    let mut lines: BTreeMap<NodeId, &Peer> = BTreeMap::new();
    for member in core {
        for peer in &member.node.table {
            let own = peer.id == member.node.id;
            if peer.handshake || (!own && answered.contains(&peer.id)) {
                continue;
            }
            let line = lines.entry(peer.id).or_insert(peer);
            if peer.epoch > line.epoch {
                *line = peer;
            }
        }
    }
    // Epoch first, then who answered.
    let mut owner: Vec<Option<(u64, bool, NodeId)>> = vec![None; usize::from(goal.slots)];
    for (id, line) in lines {
        if line.primary.is_some() {
            continue;
        }
        let claim = (line.epoch, answered.contains(&id), id);
        for slot in line.slots.iter() {
            if let Some(owner) = owner.get_mut(usize::from(slot))
                && owner.is_none_or(|other| other < claim)
            {
                *owner = Some(claim);
            }
        }
    }
    let mut owned: BTreeMap<NodeId, Slots> = BTreeMap::new();
    for (slot, owner) in (0..goal.slots).zip(owner) {
        if let Some((_, _, id)) = owner {
            owned.entry(id).or_default().insert(slot, slot);
        }
    }
    owned
}
