//! A Redis Cluster in memory: tables, gossip, epochs, elections, half-moved slots, and pods that come and go.
//!
//! It follows redis-server 7.0 where that decides whether data survives: the claim with the higher epoch wins, a primary
//! that loses its last slots to one node becomes its replica and drops its keys, what a node says of itself as a
//! replica ends its claims, what an owner claims no more anybody may claim, an open slot is known to two nodes alone,
//! whoever hears of a node introduces itself to it, a forgotten id is banned for a while, and a replica may stay bound to an
//! old address.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
};

use redis_operator::plan::{
    Action, Goal, Link, Node, NodeAddress, NodeId, Observed, Peer, Plan, Pod, Slots, Topology, Update, plan,
};

/// How long a forgotten id stays banned, in rounds.
const BAN: u64 = 30;
/// How long a shard's voters vote for nobody else, in rounds.
const VOTE_ROUNDS: u64 = 2;
/// Rounds until a pod runs that never does.
const NEVER: u32 = u32::MAX;
/// A node is not promoted on purpose twice within so many rounds.
const COOLDOWN: u64 = 4;
/// Seconds that a round stands for.
const ROUND_SECONDS: u64 = 5;

#[derive(Clone, Debug)]
struct Entry {
    ip: IpAddr,
    pod: String,
    primary: Option<NodeId>,
    epoch: u64,
}

#[derive(Clone, Debug)]
struct Redis {
    id: NodeId,
    table: BTreeMap<NodeId, Entry>,
    owner: Vec<Option<NodeId>>,
    /// Slots that their owner claims no more: anybody may claim them.
    unclaimed: BTreeSet<u16>,
    keys: BTreeSet<(u16, u8)>,
    primary: Option<NodeId>,
    bound: Option<IpAddr>,
    down: u64,
    /// Not connected to its primary since it started or became a replica.
    fresh: bool,
    epoch: u64,
    current: u64,
    migrating: BTreeMap<u16, NodeId>,
    importing: BTreeMap<u16, NodeId>,
    banned: BTreeMap<NodeId, u64>,
    meets: BTreeSet<IpAddr>,
}

#[derive(Clone, Debug)]
struct Slot {
    uid: u32,
    ip: IpAddr,
    /// Rounds until it runs.
    starts_in: u32,
    /// Rounds until it is deleted, once it is being deleted.
    ends_in: Option<u32>,
    /// The template that it was made from.
    template: u32,
    redis: Redis,
}

/// The whole of it.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) goal: Goal,
    /// Whether a pod keeps its data when it is replaced.
    pub(crate) persistent: bool,
    pub(crate) replicas: u32,
    pods: BTreeMap<u32, Slot>,
    /// Ordinals that nobody reaches, the operator neither.
    pub(crate) cut_off: BTreeSet<u32>,
    /// Whether no node answers the operator: all hang, or they refuse the password.
    pub(crate) silent: bool,
    /// Ordinals of replicas that are being filled, and have nothing yet.
    pub(crate) syncing: BTreeSet<u32>,
    /// The Kubernetes node of each pod, and its zone; three nodes without zones for those that are not listed.
    pub(crate) hosts: Vec<(u32, Option<u32>)>,
    /// The most memory that each node may use; 0 without a limit.
    pub(crate) memory_limit: u64,
    /// The volumes of pods that were scaled away, by ordinal.
    volumes: BTreeMap<u32, Redis>,
    /// The template that pods should have, and are made from.
    pub(crate) template: u32,
    /// Templates whose pods never start.
    pub(crate) broken: BTreeSet<u32>,
    /// When replicas became primaries.
    promoted: BTreeMap<NodeId, u64>,
    /// Rounds that a majority of the primaries has been missing.
    without_quorum: u32,
    /// Rounds that a replica should have been elected.
    electing: u32,
    /// Bits that decide which gossip is lost this round.
    pub(crate) lost_gossip: u64,
    /// When the voters last gave a primary a successor: another does not get their votes for two node timeouts.
    voted: BTreeMap<NodeId, u64>,
    round: u64,
    made: u32,
}

/// A command that Redis refused.
#[derive(Debug)]
pub(crate) struct Refused(
    #[expect(dead_code, reason = "read by whoever debugs a failing case")] &'static str,
);

fn name(ordinal: u32) -> String {
    format!("rc-{ordinal}")
}

fn id(number: u32) -> NodeId {
    // Spread, so that the order of ids is not that of creation.
    format!("{:08x}{number:032x}", number.wrapping_mul(2_654_435_761)).parse().unwrap()
}

impl Redis {
    /// The slots that it takes for those of a node.
    fn slots_of(&self, id: NodeId) -> Vec<u16> {
        (0..).zip(&self.owner).filter(|(_, owner)| **owner == Some(id)).map(|(slot, _)| slot).collect()
    }
}

impl Model {
    pub(crate) fn new(size: u32, replicas_per_shard: u32, slots: u16, persistent: bool) -> Self {
        Self {
            goal: Goal {
                size,
                replicas_per_shard,
                slots,
                take_over: true,
                update: Update { in_memory: !persistent, ..Update::default() },
                ..Goal::default()
            },
            persistent,
            template: 0,
            broken: BTreeSet::new(),
            promoted: BTreeMap::new(),
            replicas: 0,
            pods: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            silent: false,
            syncing: BTreeSet::new(),
            hosts: vec![],
            memory_limit: 0,
            volumes: BTreeMap::new(),
            without_quorum: 0,
            electing: 0,
            lost_gossip: 0,
            voted: BTreeMap::new(),
            round: 0,
            made: 0,
        }
    }

    fn fresh_ip(&mut self) -> IpAddr {
        self.made += 1;
        Ipv4Addr::from(0x0a00_0000 + self.made).into()
    }

    fn blank(&mut self) -> Redis {
        self.made += 1;
        Redis {
            id: id(self.made),
            table: BTreeMap::new(),
            owner: vec![None; usize::from(self.goal.slots)],
            unclaimed: BTreeSet::new(),
            keys: BTreeSet::new(),
            primary: None,
            bound: None,
            down: 0,
            fresh: true,
            epoch: 0,
            current: 0,
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            banned: BTreeMap::new(),
            meets: BTreeSet::new(),
        }
    }

    /// Replaces a pod: another address, and another node unless there is a volume.
    pub(crate) fn replace(&mut self, ordinal: u32, starts_in: u32) {
        let Some(old) = self.pods.get(&ordinal).cloned() else { return };
        let ip = self.fresh_ip();
        let redis = if self.persistent {
            Redis {
                bound: None,
                down: 0,
                fresh: true,
                meets: BTreeSet::new(),
                banned: BTreeMap::new(),
                ..old.redis
            }
        } else {
            self.blank()
        };
        self.made += 1;
        self.insert(ordinal, ip, starts_in, redis);
    }

    fn insert(&mut self, ordinal: u32, ip: IpAddr, starts_in: u32, redis: Redis) {
        let starts_in = if self.broken.contains(&self.template) { NEVER } else { starts_in };
        let (uid, template) = (self.made, self.template);
        self.pods.insert(ordinal, Slot { uid, ip, starts_in, ends_in: None, template, redis });
    }

    /// Pods that cannot start and have an outdated template are made anew.
    pub(crate) fn restart_stuck(&mut self) {
        for ordinal in self.ordinals() {
            let pod = &self.pods[&ordinal];
            if self.broken.contains(&pod.template) && pod.template != self.template {
                self.replace(ordinal, 1);
            }
        }
    }

    /// A pod comes up with a node of another cluster, and its keys.
    pub(crate) fn make_foreign(&mut self, ordinal: u32) {
        let mut redis = self.blank();
        redis.keys = BTreeSet::from([(0, 7)]);
        redis.owner[0] = Some(redis.id);
        (redis.epoch, redis.current) = (1, 1);
        self.pods.get_mut(&ordinal).unwrap().redis = redis;
    }

    /// Deletes a pod: it goes on running for so many rounds, and another takes its place.
    pub(crate) fn terminate(&mut self, ordinal: u32, rounds: u32) {
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            pod.ends_in = Some(rounds);
        }
    }

    /// Somebody else scales the StatefulSet. The volumes of the pods that go stay.
    pub(crate) fn scale(&mut self, replicas: u32) {
        self.replicas = replicas;
        self.scale_down();
    }

    fn scale_down(&mut self) {
        let gone: Vec<u32> = self.pods.keys().copied().filter(|ordinal| *ordinal >= self.replicas).collect();
        for pod in gone {
            let slot = self.pods.remove(&pod);
            if let Some(slot) = slot.filter(|_| self.persistent) {
                // The operator deletes the volume of a node that was drained.
                let redis = slot.redis;
                if !redis.table.is_empty() || !redis.keys.is_empty() || redis.owner.contains(&Some(redis.id))
                {
                    self.volumes.insert(pod, redis);
                }
            }
        }
    }

    pub(crate) fn ordinals(&self) -> Vec<u32> {
        self.pods.keys().copied().collect()
    }

    /// Whether losing this node alone loses keys: nobody else who is up has what its shard has.
    pub(crate) fn is_only_copy(&self, ordinal: u32) -> bool {
        let Some(pod) = self.pods.get(&ordinal) else { return false };
        let shard = pod.redis.primary.unwrap_or(pod.redis.id);
        let holds = !pod.redis.keys.is_empty() || pod.redis.owner.contains(&Some(shard));
        // Of a primary that is gone its replicas are the copies, wherever they looked for it.
        let in_step = |copy: &Slot| {
            copy.redis.primary == Some(shard)
                && copy.redis.keys == pod.redis.keys
                && copy.redis.owner == pod.redis.owner
                && (pod.redis.primary.is_some() || copy.redis.bound == Some(pod.ip))
        };
        holds
            && !self.pods.iter().any(|(other, copy)| {
                *other != ordinal && self.up(*other) && (copy.redis.id == shard || in_step(copy))
            })
    }

    /// Whether a pod can end without keys being lost that nobody gave up.
    fn may_lose(&self, ordinal: u32) -> bool {
        self.persistent || self.goal.update.allow_data_loss || !self.is_only_copy(ordinal)
    }

    /// Whether all replicas of this node know which slots it owns: one that does not would be elected for others.
    pub(crate) fn is_known(&self, ordinal: u32) -> bool {
        let Some(pod) = self.pods.get(&ordinal) else { return true };
        let mut copies = self.pods.values().filter(|copy| copy.redis.primary == Some(pod.redis.id));
        copies.all(|copy| copy.redis.owner == pod.redis.owner)
    }

    /// Puts two keys into every slot, at its owner.
    pub(crate) fn fill(&mut self) {
        for pod in self.pods.values_mut().filter(|pod| pod.redis.primary.is_none()) {
            let own =
                (0..self.goal.slots).filter(|slot| pod.redis.owner[usize::from(*slot)] == Some(pod.redis.id));
            pod.redis.keys = own.flat_map(|slot| [(slot, 0), (slot, 1)]).collect();
        }
        self.replicate();
    }

    /// Keys that no owner of their slot holds, and so are lost to clients.
    pub(crate) fn missing_keys(&self) -> Vec<(u16, u8)> {
        let all = (0..self.goal.slots).flat_map(|slot| [(slot, 0), (slot, 1)]);
        all.filter(|key| {
            !self.pods.values().any(|pod| {
                pod.redis.primary.is_none()
                    && pod.redis.owner[usize::from(key.0)] == Some(pod.redis.id)
                    && pod.redis.keys.contains(key)
            })
        })
        .collect()
    }

    fn up(&self, ordinal: u32) -> bool {
        self.pods.get(&ordinal).is_some_and(|pod| pod.starts_in == 0) && !self.cut_off.contains(&ordinal)
    }

    /// Who runs at an address.
    fn at(&self, ip: IpAddr) -> Option<u32> {
        self.pods
            .iter()
            .find(|(ordinal, pod)| pod.ip == ip && self.up(**ordinal))
            .map(|(ordinal, _)| *ordinal)
    }

    /// Whether `a` has a connection to the node `b`.
    fn connected(&self, a: u32, b: NodeId) -> bool {
        let Some(entry) = self.pods[&a].redis.table.get(&b) else { return false };
        self.at(entry.ip).is_some_and(|ordinal| ordinal != a && self.pods[&ordinal].redis.id == b)
    }

    /// One round: the StatefulSet, gossip, elections, replication.
    pub(crate) fn step(&mut self) {
        self.round += 1;
        for ordinal in 0..self.replicas {
            if !self.pods.contains_key(&ordinal) {
                let (ip, blank) = (self.fresh_ip(), self.blank());
                let redis = self.volumes.remove(&ordinal).map_or(blank, |volume| Redis {
                    bound: None,
                    down: 0,
                    fresh: true,
                    meets: BTreeSet::new(),
                    banned: BTreeMap::new(),
                    ..volume
                });
                self.made += 1;
                self.insert(ordinal, ip, 1, redis);
            }
        }
        self.scale_down();
        for ordinal in self.ordinals() {
            match self.pods[&ordinal].ends_in {
                // Losing the only copy loses data, whatever an operator does.
                Some(0) if self.may_lose(ordinal) => self.replace(ordinal, 1),
                Some(0) => self.pods.get_mut(&ordinal).unwrap().ends_in = None,
                Some(rounds) => self.terminate(ordinal, rounds - 1),
                None => {}
            }
        }
        let observed = self.observe();
        let topology = Topology::of(self.goal, &observed);
        self.without_quorum = if topology.has_quorum() { 0 } else { self.without_quorum + 1 };
        self.electing = if topology.awaits_election() { self.electing + 1 } else { 0 };
        for pod in self.pods.values_mut() {
            pod.starts_in = if pod.starts_in == NEVER { NEVER } else { pod.starts_in.saturating_sub(1) };
        }
        for _ in 0..2 {
            self.introduce();
            self.gossip();
        }
        self.elect();
        self.replicate();
        self.lost_gossip = 0;
    }

    fn introduce(&mut self) {
        for a in self.ordinals() {
            if !self.up(a) {
                continue;
            }
            for ip in std::mem::take(&mut self.pods.get_mut(&a).unwrap().redis.meets) {
                let Some(b) = self.at(ip).filter(|b| *b != a) else { continue };
                self.know(a, b);
                self.know(b, a);
            }
        }
    }

    fn entry(&self, ordinal: u32) -> Entry {
        let Slot { ip, redis, .. } = &self.pods[&ordinal];
        Entry { ip: *ip, pod: name(ordinal), primary: redis.primary, epoch: redis.epoch }
    }

    fn know(&mut self, viewer: u32, other: u32) {
        let (entry, other, round) = (self.entry(other), self.pods[&other].redis.id, self.round);
        let redis = &mut self.pods.get_mut(&viewer).unwrap().redis;
        if redis.banned.get(&other).is_some_and(|until| *until >= round) {
            return;
        }
        if entry.primary.is_some() {
            // Its epoch is that of its primary, which could claim nothing from it any more.
            for owner in redis.owner.iter_mut().filter(|owner| **owner == Some(other)) {
                *owner = None;
            }
        }
        redis.table.insert(other, entry);
    }

    fn gossip(&mut self) {
        let ordinals = self.ordinals();
        for (i, &a) in ordinals.iter().enumerate() {
            for (j, &b) in ordinals.iter().enumerate() {
                if a == b || !self.up(a) || !self.up(b) || self.lost_gossip >> ((i * 7 + j) % 64) & 1 == 1 {
                    continue;
                }
                if self.connected(a, self.pods[&b].redis.id) {
                    self.ping(a, b);
                }
            }
        }
    }

    /// `b` hears from `a`.
    fn ping(&mut self, a: u32, b: u32) {
        let sender = self.pods[&a].redis.clone();
        if !self.pods[&b].redis.table.contains_key(&sender.id) {
            return;
        }
        self.know(b, a);
        let own = |slot: &u16| sender.owner[usize::from(*slot)] == Some(sender.id);
        let claims: Vec<u16> =
            if sender.primary.is_none() { (0..self.goal.slots).filter(own).collect() } else { vec![] };
        if sender.primary.is_none() {
            let receiver = &mut self.pods.get_mut(&b).unwrap().redis;
            for (slot, owner) in (0..).zip(&receiver.owner) {
                if *owner == Some(sender.id) && !own(&slot) {
                    receiver.unclaimed.insert(slot);
                }
            }
        }
        self.claim(b, sender.id, sender.epoch, &claims);

        let receiver = &mut self.pods.get_mut(&b).unwrap().redis;
        receiver.current = receiver.current.max(sender.current).max(sender.epoch);
        if receiver.primary.is_none()
            && sender.primary.is_none()
            && receiver.epoch == sender.epoch
            && receiver.id < sender.id
        {
            receiver.current += 1;
            receiver.epoch = receiver.current;
        }
        // What the sender says of others. Only what somebody can be reached at is worth telling.
        for (other, entry) in &sender.table {
            if *other == self.pods[&b].redis.id || !self.connected(a, *other) {
                continue;
            }
            let (connected, round) = (self.connected(b, *other), self.round);
            let receiver = &mut self.pods.get_mut(&b).unwrap().redis;
            match receiver.table.get_mut(other) {
                Some(known) if !connected => known.ip = entry.ip,
                Some(_) => {}
                // Whom it has not met it introduces itself to.
                None if receiver.banned.get(other).is_none_or(|until| *until < round) => {
                    receiver.meets.insert(entry.ip);
                }
                None => {}
            }
        }
        // Who claims what another has taken since is told so.
        let receiver = self.pods[&b].redis.clone();
        let mut newer: BTreeMap<NodeId, Vec<u16>> = BTreeMap::new();
        for slot in &claims {
            if let Some(owner) = receiver.owner[usize::from(*slot)]
                && owner != sender.id
                && owner != receiver.id
                && !receiver.unclaimed.contains(slot)
                && receiver.table.get(&owner).is_some_and(|entry| entry.epoch > sender.epoch)
            {
                newer.entry(owner).or_default();
            }
        }
        for (owner, _) in newer {
            let (epoch, all) = (
                receiver.table[&owner].epoch,
                (0..self.goal.slots)
                    .filter(|slot| receiver.owner[usize::from(*slot)] == Some(owner))
                    .collect::<Vec<_>>(),
            );
            // Whoever has heard as much of the owner does not listen.
            let told = &mut self.pods.get_mut(&a).unwrap().redis;
            if let Some(entry) = told.table.get_mut(&owner).filter(|entry| entry.epoch < epoch) {
                entry.epoch = epoch;
                self.claim(a, owner, epoch, &all);
            }
        }
    }

    /// A node hears that another claims slots.
    fn claim(&mut self, viewer: u32, claimant: NodeId, epoch: u64, slots: &[u16]) {
        let redis = &mut self.pods.get_mut(&viewer).unwrap().redis;
        let me = redis.id;
        let cur = redis.primary.unwrap_or(me);
        let (mut lost, mut from_current) = (vec![], 0);
        for &slot in slots {
            if redis.importing.contains_key(&slot) {
                continue;
            }
            let owner = redis.owner[usize::from(slot)];
            let known = match owner {
                _ if redis.unclaimed.contains(&slot) => 0,
                Some(owner) if owner == me => redis.epoch,
                Some(owner) => redis.table.get(&owner).map_or(0, |entry| entry.epoch),
                None => 0,
            };
            if owner == Some(claimant) {
                redis.unclaimed.remove(&slot);
                continue;
            }
            if owner.is_some() && known >= epoch {
                continue;
            }
            redis.unclaimed.remove(&slot);
            if owner == Some(cur) {
                from_current += 1;
            }
            if owner == Some(me) {
                lost.push(slot);
            }
            redis.owner[usize::from(slot)] = Some(claimant);
        }
        let left = redis.owner.contains(&Some(cur));
        if from_current > 0 && !left && slots.len() == from_current && claimant != me {
            // As after a failover: follow whoever took everything.
            redis.fresh |= redis.primary.is_none();
            redis.primary = Some(claimant);
            redis.bound = redis.table.get(&claimant).map(|entry| entry.ip);
            redis.migrating.clear();
            redis.importing.clear();
            redis.epoch = epoch;
        } else {
            redis.keys.retain(|(slot, _)| !lost.contains(slot));
        }
    }

    fn elect(&mut self) {
        for ordinal in self.ordinals() {
            let Some(primary) = self.pods[&ordinal].redis.primary else { continue };
            if !self.up(ordinal)
                || self.connected(ordinal, primary)
                || self.pods[&ordinal].redis.down < 2 * ROUND_SECONDS
                || self.pods[&ordinal].redis.fresh
            {
                continue;
            }
            self.stand_for_election(ordinal, primary);
        }
    }

    /// Asks for votes, and says whether they were enough.
    fn stand_for_election(&mut self, ordinal: u32, primary: NodeId) -> bool {
        let redis = &self.pods[&ordinal].redis;
        let slots = redis.slots_of(primary);
        let owners: BTreeSet<NodeId> = redis.owner.iter().flatten().copied().collect();
        let voters: Vec<u32> = self
            .ordinals()
            .into_iter()
            .filter(|voter| {
                let other = &self.pods[voter].redis;
                self.up(*voter)
                    && owners.contains(&other.id)
                    && other.primary.is_none()
                    && self.connected(ordinal, other.id)
                    && self.connected(*voter, redis.id)
                    && !self.connected(*voter, primary)
            })
            .collect();
        let voted = self.voted.get(&primary).is_some_and(|round| self.round < round + VOTE_ROUNDS);
        if slots.is_empty() || voted || voters.len() * 2 <= owners.len() {
            return false;
        }
        self.voted.insert(primary, self.round);
        let epoch = redis.current + 1;
        for voter in voters {
            let voter = &mut self.pods.get_mut(&voter).unwrap().redis;
            voter.current = voter.current.max(epoch);
        }
        self.promote(ordinal, epoch, &slots);
        true
    }

    /// Nodes that were promoted a moment ago.
    fn cooling(&self) -> BTreeSet<NodeId> {
        let cools = |when: &u64| self.round < when + COOLDOWN;
        self.promoted.iter().filter(|(_, when)| cools(when)).map(|(id, _)| *id).collect()
    }

    fn promote(&mut self, ordinal: u32, epoch: u64, slots: &[u16]) {
        self.promoted.insert(self.pods[&ordinal].redis.id, self.round);
        let redis = &mut self.pods.get_mut(&ordinal).unwrap().redis;
        redis.primary = None;
        redis.bound = None;
        redis.down = 0;
        redis.fresh = true;
        (redis.epoch, redis.current) = (epoch, epoch);
        for &slot in slots {
            redis.owner[usize::from(slot)] = Some(redis.id);
        }
    }

    fn replicate(&mut self) {
        for ordinal in self.ordinals() {
            let Some(primary) = self.pods[&ordinal].redis.primary else { continue };
            let source = self.at_id(primary).filter(|source| self.up(*source) && self.up(ordinal));
            let source = source.filter(|_| !self.syncing.contains(&ordinal));
            let bound = self.pods[&ordinal]
                .redis
                .bound
                .or_else(|| self.pods[&ordinal].redis.table.get(&primary).map(|entry| entry.ip));
            let keys = source
                .filter(|source| bound == Some(self.pods[source].ip))
                .map(|source| self.pods[&source].redis.keys.clone());
            let redis = &mut self.pods.get_mut(&ordinal).unwrap().redis;
            redis.bound = bound;
            match keys {
                Some(keys) => (redis.keys, redis.down, redis.fresh) = (keys, 0, false),
                None => redis.down += ROUND_SECONDS,
            }
        }
    }

    fn at_id(&self, id: NodeId) -> Option<u32> {
        self.pods.iter().find(|(_, pod)| pod.redis.id == id).map(|(ordinal, _)| *ordinal)
    }

    fn ok(&self, ordinal: u32) -> bool {
        let redis = &self.pods[&ordinal].redis;
        redis
            .owner
            .iter()
            .all(|owner| owner.is_some_and(|owner| owner == redis.id || self.connected(ordinal, owner)))
    }

    fn place(&self, ordinal: u32) -> (u32, Option<u32>) {
        self.hosts.get(ordinal as usize).copied().unwrap_or((ordinal % 3, None))
    }

    /// The ordinals of each shard's copies, its primary first.
    pub(crate) fn shards(&self) -> Vec<Vec<u32>> {
        let redis = |ordinal: &u32| &self.pods[ordinal].redis;
        let owns = |ordinal: &u32| redis(ordinal).owner.contains(&Some(redis(ordinal).id));
        let primaries = self.pods.keys().filter(|ordinal| redis(ordinal).primary.is_none() && owns(ordinal));
        let copies = |primary: &u32| {
            let id = redis(primary).id;
            let replicas = self.pods.keys().filter(move |ordinal| redis(ordinal).primary == Some(id));
            std::iter::once(primary).chain(replicas).copied().collect()
        };
        primaries.map(copies).collect()
    }

    /// How many pairs of copies of a shard are on one Kubernetes node, and how many in one zone.
    pub(crate) fn crowding(&self, shards: &[Vec<u32>]) -> (usize, usize) {
        let pairs = |shard: &Vec<u32>| {
            let all = shard.clone();
            let pair = move |(index, one): (usize, u32)| {
                all[index + 1..].iter().map(|other| (one, *other)).collect::<Vec<_>>()
            };
            shard.clone().into_iter().enumerate().flat_map(pair).collect::<Vec<_>>()
        };
        let pairs: Vec<(u32, u32)> = shards.iter().flat_map(pairs).collect();
        let hosts = pairs.iter().filter(|(a, b)| self.place(*a).0 == self.place(*b).0).count();
        let zone = |ordinal: u32| self.place(ordinal).1;
        let zones = pairs.iter().filter(|(a, b)| zone(*a).is_some() && zone(*a) == zone(*b)).count();
        (hosts, zones)
    }

    /// What an operator sees.
    pub(crate) fn observe(&self) -> Observed {
        let pods: Vec<Pod> = self
            .pods
            .iter()
            .map(|(&ordinal, pod)| Pod {
                ordinal,
                name: name(ordinal),
                uid: pod.uid.to_string(),
                // A pod that has not started has no address.
                ip: (pod.starts_in == 0).then_some(pod.ip),
                terminating: pod.ends_in.is_some(),
                // The kubelet reaches a pod that is cut off from all others.
                containers_ready: pod.starts_in == 0,
                host: Some(format!("host-{}", self.place(ordinal).0)),
                zone: self.place(ordinal).1.map(|zone| format!("zone-{zone}")),
                redis: (self.up(ordinal) && !self.silent).then(|| self.node(ordinal)),
                outdated: pod.template != self.template,
                ..Pod::default()
            })
            .collect();
        let open: BTreeSet<u16> = pods
            .iter()
            .filter_map(|pod| pod.redis.as_ref())
            .flat_map(|node| node.migrating.keys().chain(node.importing.keys()).copied().collect::<Vec<_>>())
            .collect();
        let keys = |slot: u16| {
            self.pods
                .iter()
                .filter(|(ordinal, _)| self.up(**ordinal) && !self.silent)
                .map(|(_, pod)| {
                    (pod.redis.id, pod.redis.keys.iter().filter(|key| key.0 == slot).count() as u64)
                })
                .collect()
        };
        Observed {
            pods,
            replicas: Some(self.replicas),
            last_owners: BTreeSet::new(),
            takeover_due: self.without_quorum >= 3,
            election_due: self.electing >= 3,
            leave_due: true,
            left_open: BTreeSet::new(),
            promoted: self.cooling(),
            open_keys: open.into_iter().map(|slot| (slot, keys(slot))).collect(),
        }
    }

    fn node(&self, ordinal: u32) -> Node {
        let pod = &self.pods[&ordinal];
        let redis = &pod.redis;
        let line = |id: NodeId, entry: &Entry, connected: bool| Peer {
            id,
            ip: Some(entry.ip),
            pod: Some(entry.pod.clone()),
            primary: entry.primary,
            handshake: false,
            failed: !connected,
            suspected: false,
            connected,
            epoch: entry.epoch,
            slots: (0..self.goal.slots).filter(|slot| redis.owner[usize::from(*slot)] == Some(id)).collect(),
        };
        let mut table = vec![line(redis.id, &self.entry(ordinal), true)];
        table.extend(redis.table.iter().map(|(id, entry)| line(*id, entry, self.connected(ordinal, *id))));
        table.extend(redis.meets.iter().enumerate().map(|(i, ip)| Peer {
            id: id(u32::MAX - i as u32),
            ip: Some(*ip),
            pod: None,
            primary: None,
            handshake: true,
            failed: false,
            suspected: false,
            connected: false,
            epoch: 0,
            slots: Slots::default(),
        }));
        Node {
            id: redis.id,
            table,
            ok: self.ok(ordinal),
            current_epoch: redis.current,
            keys: redis.keys.len() as u64,
            memory: (100 + redis.keys.len() as u64, self.memory_limit),
            link: match redis.primary {
                None => Link::None,
                Some(_) if self.syncing.contains(&ordinal) => Link::Syncing,
                Some(_) if redis.fresh => Link::Never,
                Some(_) if redis.down > 0 || redis.bound.is_none() => Link::Down(redis.down),
                Some(_) => Link::Up,
            },
            bound: redis.bound,
            offset: 0,
            migrating: redis.migrating.clone(),
            importing: redis.importing.clone(),
            version: "7.0.15".into(),
            run_id: String::new(),
        }
    }

    /// What an operator would do now.
    pub(crate) fn plan(&self) -> Plan {
        plan(&Topology::of(self.goal, &self.observe()))
    }

    fn redis(&mut self, place: &NodeAddress) -> Result<&mut Redis, Refused> {
        let ordinal = self.at(place.ip).ok_or(Refused("nobody answers"))?;
        let redis = &mut self.pods.get_mut(&ordinal).unwrap().redis;
        if redis.id == place.id { Ok(redis) } else { Err(Refused("another node answers")) }
    }

    /// Does one thing, as Redis would.
    pub(crate) fn act(&mut self, action: &Action) -> Result<(), Refused> {
        let round = self.round;
        if let Some(node) = action.precondition() {
            let redis = self.redis(node)?;
            if (redis.primary, redis.epoch) != (node.primary, node.epoch) {
                return Err(Refused("promoted or demoted since it was observed"));
            }
        }
        match action {
            Action::SetEpoch { node, epoch } => {
                let redis = self.redis(node)?;
                if !redis.table.is_empty() || !redis.meets.is_empty() || redis.epoch != 0 {
                    return Err(Refused("knows others, or has an epoch"));
                }
                redis.epoch = *epoch;
                redis.current = redis.current.max(*epoch);
            }
            Action::Meet { viewer, node } => {
                self.redis(node)?;
                self.redis(viewer)?.meets.insert(node.ip);
            }
            Action::AddSlots { node, slots } => {
                let redis = self.redis(node)?;
                if redis.primary.is_some()
                    || slots.iter().any(|slot| redis.owner[usize::from(slot)].is_some())
                {
                    return Err(Refused("already busy"));
                }
                for slot in slots.iter() {
                    redis.owner[usize::from(slot)] = Some(redis.id);
                }
            }
            Action::Replicate { node, primary } => {
                let redis = self.redis(node)?;
                let Some(entry) = redis.table.get(primary) else { return Err(Refused("unknown node")) };
                if entry.primary.is_some() {
                    return Err(Refused("only primaries are copied"));
                }
                let owns = redis.owner.contains(&Some(redis.id));
                if redis.primary.is_none() && (owns || !redis.keys.is_empty()) {
                    return Err(Refused("not empty"));
                }
                redis.bound = Some(entry.ip);
                redis.fresh |= redis.primary.is_none();
                redis.primary = Some(*primary);
                redis.migrating.clear();
                redis.importing.clear();
                self.replicate();
            }
            Action::Forget { node, id } => {
                let redis = self.redis(node)?;
                if *id == redis.id || redis.primary == Some(*id) {
                    return Err(Refused("myself or my primary"));
                }
                redis.table.remove(id).ok_or(Refused("unknown node"))?;
                for owner in redis.owner.iter_mut().filter(|owner| **owner == Some(*id)) {
                    *owner = None;
                }
                redis.banned.insert(*id, round + BAN);
            }
            Action::Reset { node } => {
                let place = node.clone();
                let redis = self.redis(&place)?;
                if redis.primary.is_none() && !redis.keys.is_empty() {
                    return Err(Refused("holds keys"));
                }
                let blank = self.blank();
                *self.redis(&place)? = blank;
            }
            Action::Failover { node } => {
                let (me, primary) = {
                    let redis = self.redis(node)?;
                    (redis.id, redis.primary.ok_or(Refused("not a replica"))?)
                };
                let (Some(new), Some(old)) = (self.at_id(me), self.at_id(primary)) else {
                    return Err(Refused("primary is down"));
                };
                if !self.up(old) || self.pods[&new].redis.keys != self.pods[&old].redis.keys {
                    return Err(Refused("out of step"));
                }
                let slots = self.pods[&new].redis.slots_of(primary);
                let epoch = self.pods[&new].redis.current + 1;
                self.promote(new, epoch, &slots);
            }
            Action::Elect { node } => {
                let redis = self.redis(node)?;
                let (me, primary) = (redis.id, redis.primary.ok_or(Refused("not a replica"))?);
                let ordinal = self.at_id(me).ok_or(Refused("nobody answers"))?;
                if !self.stand_for_election(ordinal, primary) {
                    return Err(Refused("too few votes"));
                }
            }
            Action::TakeOver { node } => {
                let redis = self.redis(node)?;
                let primary = redis.primary.ok_or(Refused("not a replica"))?;
                let (me, epoch, slots) = (redis.id, redis.current + 1, redis.slots_of(primary));
                let ordinal = self.at_id(me).ok_or(Refused("nobody answers"))?;
                self.promote(ordinal, epoch, &slots);
            }
            Action::AssignSlot { node, slot, owner } => {
                let redis = self.redis(node)?;
                if redis.primary.is_some() {
                    return Err(Refused("a replica"));
                }
                let known = redis.table.get(owner).is_some_and(|entry| entry.primary.is_none());
                if *owner != redis.id && !known {
                    return Err(Refused("unknown node, or a replica"));
                }
                let holds = redis.keys.iter().any(|key| key.0 == *slot);
                if redis.owner[usize::from(*slot)] == Some(redis.id) && *owner != redis.id && holds {
                    return Err(Refused("still holds keys"));
                }
                if !holds {
                    redis.migrating.remove(slot);
                }
                redis.owner[usize::from(*slot)] = Some(*owner);
                if *owner == redis.id && redis.importing.remove(slot).is_some() {
                    redis.current += 1;
                    redis.epoch = redis.current;
                }
            }
            Action::Stable { node, slot } => {
                let redis = self.redis(node)?;
                redis.migrating.remove(slot);
                redis.importing.remove(slot);
            }
            Action::Import { node, slot, from } => {
                let redis = self.redis(node)?;
                let known = redis.table.contains_key(from);
                if redis.primary.is_some() || !known || redis.owner[usize::from(*slot)] == Some(redis.id) {
                    return Err(Refused("cannot import"));
                }
                redis.importing.insert(*slot, *from);
            }
            Action::Export { node, slot, to } => {
                let redis = self.redis(node)?;
                let known = redis.table.contains_key(to);
                if redis.primary.is_some() || !known || redis.owner[usize::from(*slot)] != Some(redis.id) {
                    return Err(Refused("cannot export"));
                }
                redis.migrating.insert(*slot, *to);
            }
            Action::Keys { from, to, slot, .. } => {
                // One key at a time: `half` breaks off between them.
                while self.one_key(from, to, *slot)? {}
            }
            Action::Restart { pod, uid } => {
                let meant = |slot: &Slot| slot.uid.to_string() == *uid && slot.ends_in.is_none();
                let ordinal = pod.strip_prefix("rc-").unwrap().parse().unwrap();
                if self.pods.get(&ordinal).is_some_and(meant) {
                    self.terminate(ordinal, 1);
                }
            }
            Action::Move(_) => unreachable!("taken apart by whoever acts"),
        }
        Ok(())
    }

    /// Moves one key of a slot, and says whether there was one.
    pub(crate) fn one_key(
        &mut self,
        from: &NodeAddress,
        to: &NodeAddress,
        slot: u16,
    ) -> Result<bool, Refused> {
        self.redis(to)?;
        let source = self.redis(from)?;
        let Some(key) = source.keys.iter().find(|key| key.0 == slot).copied() else { return Ok(false) };
        source.keys.remove(&key);
        self.redis(to)?.keys.insert(key);
        self.replicate_now();
        Ok(true)
    }

    /// The replicas that are in step hear of a moved key; nothing else happens.
    fn replicate_now(&mut self) {
        let down: BTreeMap<u32, u64> =
            self.pods.iter().map(|(ordinal, pod)| (*ordinal, pod.redis.down)).collect();
        self.replicate();
        for (ordinal, pod) in &mut self.pods {
            if pod.redis.down > 0 {
                pod.redis.down = down[ordinal];
            }
        }
    }
}
