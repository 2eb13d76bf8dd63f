//! The cluster as derived from an observation: its members, the owner of each slot, and disagreements between tables.
//!
//! Every node has its own table, and after a fault they can all differ. This module has the rules that merge them;
//! what to do about differences is in the steps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Goal, Link, Node, NodeAddress, NodeId, Observed, Peer, Pod, Slots};

/// A replica received something from its primary within this many seconds: Redis sends a ping every 10 seconds.
pub const SYNC_SECONDS: u64 = 15;

/// A replica lacks at most this many bytes of what its primary wrote: Redis itself gives up on one that lacks as much for a minute.
pub const SYNC_BYTES: i64 = 64 << 20;

/// A pod with a responding Redis.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its Redis.
    pub node: &'a Node,
}

impl Member<'_> {
    /// Its address and id.
    pub fn address(&self) -> Option<NodeAddress> {
        let (primary, epoch) = (self.node.primary(), self.node.epoch());
        Some(NodeAddress { pod: self.pod.name.clone(), ip: self.pod.ip?, id: self.node.id, primary, epoch })
    }

    /// Whether it is a primary.
    pub fn is_primary(&self) -> bool {
        self.node.primary().is_none()
    }
}

/// Whether a node that is in the tables and did not respond can come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Its pod exists or will be recreated: it may come back with its data.
    MayReturn,
    /// Its pod is gone for good, or now runs another node.
    Gone,
}

/// The cluster as derived from an [`Observed`].
#[derive(Debug)]
pub struct Topology<'a> {
    /// The desired cluster.
    pub goal: Goal,
    /// The responding members of the cluster, lowest ordinal first.
    pub core: Vec<Member<'a>>,
    /// Responding nodes that are not members, lowest ordinal first.
    pub outsiders: Vec<Member<'a>>,
    /// Nodes in the tables of the core that did not respond.
    pub absent: BTreeMap<NodeId, Absence>,
    /// The slots of each owner: the claim with the highest epoch wins; for a node that responded, only its own claim
    /// counts.
    pub owned: BTreeMap<NodeId, Slots>,
    /// Nodes beyond [`Goal::size`] that an update needs.
    pub surge: u32,
    /// The observation.
    pub observed: &'a Observed,
    /// Where each member is in `core`.
    places: BTreeMap<NodeId, usize>,
}

impl<'a> Topology<'a> {
    /// Derives the topology from an observation.
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
        let owners: Vec<NodeId> = owned.keys().copied().collect();
        let surge = surge(goal, observed, &core, &owners);
        let places = core.iter().enumerate().map(|(place, member)| (member.node.id, place)).collect();
        Self { goal, core, outsiders, absent, owned, surge, observed, places }
    }

    /// Number of nodes that there should be now.
    pub fn nodes(&self) -> u32 {
        self.goal.size + self.surge
    }

    /// The responding member with this id.
    pub fn member(&self, id: NodeId) -> Option<Member<'a>> {
        self.places.get(&id).map(|place| self.core[*place])
    }

    /// The ordinal of a node's pod, as known to any member.
    pub fn ordinal(&self, id: NodeId) -> Option<u32> {
        self.pod_name(id)?.rsplit_once('-')?.1.parse().ok()
    }

    /// The name of a node's pod, as known to any member.
    pub fn pod_name(&self, id: NodeId) -> Option<String> {
        self.core.iter().find_map(|member| member.node.peer(id)?.pod.clone())
    }

    /// The responding members that own slots, lowest ordinal first.
    pub fn owners(&self) -> impl Iterator<Item = Member<'a>> + '_ {
        self.core.iter().copied().filter(|member| self.owned.contains_key(&member.node.id))
    }

    /// The replicas of this primary.
    pub fn replicas_of(&self, id: NodeId) -> impl Iterator<Item = Member<'a>> + '_ {
        self.core.iter().copied().filter(move |member| member.node.primary() == Some(id))
    }

    /// The primary that the node without slots is to replicate and to take over from, while an update needs such a node.
    pub(super) fn next_primary(&self) -> Option<NodeId> {
        if self.surge == 0 {
            return None;
        }
        let outdated = |member: &Member<'_>| member.pod.outdated;
        let additional = |member: &Member<'_>| member.pod.ordinal >= self.goal.size;
        let next = self.owners().find(outdated).or_else(|| self.owners().find(additional));
        next.map(|member| member.node.id)
    }

    /// The owner of a slot.
    pub fn owner(&self, slot: u16) -> Option<NodeId> {
        self.owned.iter().find(|(_, slots)| slots.contains(slot)).map(|(&id, _)| id)
    }

    /// Number of slots with a responding owner.
    pub fn covered(&self) -> usize {
        self.owned.iter().filter(|(id, _)| self.member(**id).is_some()).map(|(_, slots)| slots.len()).sum()
    }

    /// Whether every slot has a responding owner that serves it.
    pub fn serves(&self) -> bool {
        self.covered() == usize::from(self.goal.slots)
            && self.owners().all(|member| member.node.ok && member.is_primary())
    }

    /// Nodes of a shard that somebody told the others to forget, or that were told to forget the others: nodes of their pods, as last
    /// known, that list members or are listed by them. The slots of their shard have no other owner, so they come back with them; or a
    /// replica of it succeeded to them meanwhile, which they hear of then, as after any failover.
    pub fn forgotten(&self) -> impl Iterator<Item = Member<'a>> + '_ {
        self.outsiders.iter().copied().filter(|member| {
            let node = member.node;
            let shard = node.primary().unwrap_or(node.id);
            let slots = node.peer(shard).map(|peer| peer.slots.clone()).unwrap_or_default();
            let knows =
                |core: &Member<'_>| node.peer(core.node.id).is_some() || core.node.peer(node.id).is_some();
            let epoch = node.peer(shard).map(|peer| peer.epoch);
            let succeeds = |id: NodeId| {
                node.peer(id).is_some_and(|peer| peer.primary == Some(shard))
                    && self.member(id).map(|member| member.node.epoch()) > epoch
            };
            let mut others = self.owned.iter().filter(|(id, _)| **id != shard && !succeeds(**id));
            self.observed.known.get(&member.pod.name) == Some(&node.id)
                && !slots.is_empty()
                && self.core.iter().any(knows)
                && others.all(|(_, owned)| slots.minus(owned) == slots)
        })
    }

    /// Whether a node that is not a member would make members forget each other if it was introduced now: it was told to forget some, and
    /// passes that on.
    pub fn spreads_bans(&self, outsider: &Member<'_>) -> bool {
        let node = outsider.node;
        node.version.spreads_bans()
            && self.observed.outside_lately.contains(&node.id)
            && self.core.iter().any(|core| node.peer(core.node.id).is_none())
    }

    /// Pods that do not respond and whose last known node is in no table: others may have been told to forget it, and it comes back
    /// with its volume. In memory, a pod that is not running has nothing to come back with.
    pub fn unlisted(&self) -> impl Iterator<Item = &'a Pod> + '_ {
        self.observed.pods.iter().filter(|pod| {
            let known = self.observed.known.get(&pod.name).filter(|_| pod.redis.is_none());
            let has_data = !self.goal.update.in_memory || pod.ip.is_some();
            has_data && known.is_some_and(|id| self.core.iter().all(|member| member.node.peer(*id).is_none()))
        })
    }

    /// Slots of owners that are gone for good and have no replica. Nothing is known of any while no node responds.
    pub fn lost(&self) -> Slots {
        if self.core.is_empty() {
            return Slots::default();
        }
        let owned: Slots = self.owned.values().flat_map(Slots::iter).collect();
        let mut lost = Slots::range(0, self.goal.slots - 1).minus(&owned).iter().collect::<BTreeSet<_>>();
        for (id, slots) in &self.owned {
            if self.absent.get(id) == Some(&Absence::Gone) && self.replicas_of(*id).next().is_none() {
                lost.extend(slots.iter());
            }
        }
        let lost = lost.into_iter().collect();
        self.forgotten().fold(lost, |lost: Slots, member| lost.minus(&member.node.slots()))
    }

    /// Whether the majority of primaries that own slots responded, which Redis needs for an election.
    pub fn has_quorum(&self) -> bool {
        let all = self.owned.len();
        all > 0 && self.owners().count() * 2 > all
    }

    /// Owners that did not respond.
    pub fn missing_owners(&self) -> Vec<NodeId> {
        self.owned.keys().copied().filter(|id| self.member(*id).is_none()).collect()
    }

    /// Ordinals of the pods of owners that did not respond, as far as they are known.
    pub fn missing_ordinals(&self) -> BTreeSet<u32> {
        self.missing_owners().into_iter().filter_map(|id| self.ordinal(id)).collect()
    }

    /// Whether Redis has to elect a replica of an owner that did not respond, and can.
    pub fn awaits_election(&self) -> bool {
        self.has_quorum() && self.missing_owners().iter().any(|id| self.replicas_of(*id).next().is_some())
    }

    /// Whether members that are to be removed still own slots.
    pub fn drains(&self) -> bool {
        self.owners().any(|member| member.pod.ordinal >= self.nodes())
    }

    /// Whether the tables of all members agree on members, roles and addresses, and none has a node in handshake.
    pub fn tables_agree(&self) -> bool {
        self.core.iter().all(|viewer| {
            viewer.node.table.iter().all(|peer| !peer.handshake)
                && self.core.iter().all(|member| match viewer.node.peer(member.node.id) {
                    Some(peer) => peer.primary == member.node.primary() && peer.ip == member.pod.ip,
                    None => false,
                })
        })
    }

    /// Whether every member knows this node. One that does not refuses to be told about slots of it.
    pub fn is_known_to_all(&self, id: NodeId) -> bool {
        self.core.iter().all(|viewer| viewer.node.peer(id).is_some())
    }

    /// Whether all members agree on the owner of every slot. A replica with a stale table would claim migrated slots when it
    /// is elected.
    pub fn slots_agree(&self) -> bool {
        self.core.iter().all(|viewer| {
            viewer.node.table.iter().filter(|peer| !peer.handshake).all(|peer| {
                let none = Slots::default();
                &peer.slots == self.owned.get(&peer.id).unwrap_or(&none)
            })
        })
    }

    /// Whether a replica has nearly everything that its primary wrote. A connection that is up says little: it breaks a minute after
    /// the last packet.
    pub fn in_sync(&self, replica: Member<'_>) -> bool {
        let node = replica.node;
        if node.link != Link::Up {
            return false;
        }
        let primary = node.primary().and_then(|id| self.member(id));
        let lacks = primary.map_or(0, |primary| primary.node.offset.saturating_sub(node.offset));
        let silent = node.silence.is_some_and(|seconds| seconds > SYNC_SECONDS);
        lacks <= SYNC_BYTES && (!silent || primary.is_some() && lacks <= 0)
    }

    /// Whether what a node had is gone for good: its pod runs another node, has no volume any more, or was in memory and has ended.
    pub fn data_is_gone(&self, id: NodeId) -> bool {
        if self.absent.get(&id) == Some(&Absence::Gone) {
            return true;
        }
        let Some(ordinal) = self.ordinal(id) else { return false };
        if !self.goal.update.in_memory {
            return self.observed.without_claim.contains(&ordinal);
        }
        let pod = self.observed.pods.iter().find(|pod| pod.ordinal == ordinal);
        pod.is_none_or(|pod| pod.ip.is_none() || pod.ended)
    }

    /// Whether a pod may be made to end: what it has stays on its volume, or other nodes have it. Once every slot has an owner
    /// that responds and none is open, a node that owns no slots has no key that another node lacks.
    pub fn may_end(&self, pod: &Pod) -> bool {
        let owner = self.owners().find(|owner| owner.pod.uid == pod.uid);
        let is_open =
            |member: &Member<'_>| !member.node.migrating.is_empty() || !member.node.importing.is_empty();
        !pod.claim_ends
            || match owner {
                Some(owner) => self.replicas_of(owner.node.id).any(|replica| self.in_sync(replica)),
                None => self.covered() == usize::from(self.goal.slots) && !self.core.iter().any(is_open),
            }
    }

    /// Whether a replica of a primary that does not respond may be promoted by the operator: it had all writes when the primary was
    /// last observed, or nobody else has more, or the user accepts that writes are lost.
    pub fn may_succeed(&self, replica: Member<'_>, lost: NodeId) -> bool {
        self.goal.accept_data_loss
            || self.observed.copies.were_in_sync(replica.node.id, lost)
            || self.data_is_gone(lost)
    }

    /// Whether `replica` can take over from `primary` now: it is in sync, and the majority of primaries and `primary` itself
    /// know it as the replica. Otherwise Redis refuses, or accepts and then times out with writes paused. And it knows all slots
    /// of `primary`: it takes over no others, so a slot that was migrated a moment ago would stay behind.
    pub fn may_take_over(&self, replica: Member<'a>, primary: Member<'a>) -> bool {
        let knows = |viewer: &Member<'a>| {
            viewer
                .node
                .peer(replica.node.id)
                .is_some_and(|peer| peer.primary == Some(primary.node.id) && peer.connected && !peer.failed)
        };
        let slots = replica.node.peer(primary.node.id).map(|peer| &peer.slots);
        self.in_sync(replica)
            && slots == self.owned.get(&primary.node.id)
            && knows(&primary)
            && self.owners().filter(knows).count() * 2 > self.owned.len()
    }

    /// The highest epoch that any member knows.
    pub fn current_epoch(&self) -> u64 {
        self.core.iter().map(|member| member.node.current_epoch).max().unwrap_or(0)
    }
}

/// The ids of the group of nodes that know each other and own the most slots. A node that only knows members which do
/// not know it is not one of them: it was forgotten, or is in handshake.
fn core(answered: &[Member<'_>]) -> BTreeSet<NodeId> {
    let mut group: Vec<usize> = (0..answered.len()).collect();
    for (i, a) in answered.iter().enumerate() {
        for (j, b) in answered.iter().enumerate().take(i) {
            if group[i] != group[j] && a.node.peer(b.node.id).is_some() && b.node.peer(a.node.id).is_some() {
                let (keep, drop) = (group[j].min(group[i]), group[j].max(group[i]));
                group.iter_mut().filter(|root| **root == drop).for_each(|root| *root = keep);
            }
        }
    }
    // Most slots owned; then most slots with a known owner, which the last replica of a lost primary has and a new node does
    // not; then most nodes; then the lowest ordinal.
    let weight = |root: usize| {
        let members = || answered.iter().zip(&group).filter(move |(_, of)| **of == root);
        let slots: usize = members().map(|(member, _)| member.node.slots().len()).sum();
        let known =
            |member: &Member<'_>| member.node.table.iter().map(|peer| peer.slots.len()).sum::<usize>();
        let known = members().map(|(member, _)| known(member)).max();
        (slots, known, members().count(), std::cmp::Reverse(root))
    };
    let roots: BTreeSet<usize> = group.iter().copied().collect();
    let Some(best) = roots.into_iter().max_by_key(|&root| weight(root)) else { return BTreeSet::new() };
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
    let pods: BTreeMap<&str, &Pod> = observed.pods.iter().map(|pod| (pod.name.as_str(), pod)).collect();
    let mut absent = BTreeMap::new();
    for peer in core.iter().flat_map(|member| &member.node.table) {
        if peer.handshake || answered.contains(&peer.id) {
            continue;
        }
        let absence = match &peer.pod {
            Some(name) => match pods.get(name.as_str()) {
                Some(pod) if pod.redis.is_some() => Absence::Gone,
                Some(_) => Absence::MayReturn,
                None => match name.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<u32>().ok()) {
                    // A pod that somebody else scaled away comes back with its volume, and its node may have been elected
                    // without the others knowing it yet.
                    Some(ordinal) if ordinal < replicas.max(goal.size) || owned.contains_key(&peer.id) => {
                        Absence::MayReturn
                    }
                    _ => Absence::Gone,
                },
            },
            None if all_answer => Absence::Gone,
            None => Absence::MayReturn,
        };
        // A table that has the pod's name wins over one that does not.
        let known = absent.entry(peer.id).or_insert(absence);
        if peer.pod.is_some() {
            *known = absence;
        }
    }
    absent
}

/// Additional nodes: 1 while primaries in memory without replicas are updated.
fn surge(goal: Goal, observed: &Observed, core: &[Member<'_>], owners: &[NodeId]) -> u32 {
    let additional = |ordinal: u32| ordinal == goal.size;
    let outdated = observed.pods.iter().any(|pod| pod.ordinal < goal.size && pod.outdated);
    let begun = observed.pods.iter().any(|pod| additional(pod.ordinal) && !pod.terminating);
    let update = goal.update;
    let begins = outdated && !update.refused && !update.allow_data_loss && (begun || !update.supervised);
    // Until one of the others has taken over from it.
    let owns = || {
        owners.len() <= goal.size as usize
            && core.iter().any(|member| additional(member.pod.ordinal) && owners.contains(&member.node.id))
    };
    let without_copies = goal.initialized && goal.replicas_per_shard == 0 && update.in_memory;
    u32::from(without_copies && (begins || owns()))
}

fn owned(goal: Goal, core: &[Member<'_>]) -> BTreeMap<NodeId, Slots> {
    let answered: BTreeSet<NodeId> = core.iter().map(|member| member.node.id).collect();
    // For a node that did not respond: the entry with the highest epoch.
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
    // Highest epoch first, then nodes that responded.
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
