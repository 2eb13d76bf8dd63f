//! A Redis Cluster in memory: tables, gossip, epochs, elections, half-moved slots, and pods that come and go.
//!
//! It follows redis-server 7.0 where that decides whether data survives: the claim with the higher epoch wins, a primary
//! that loses its last slots to one node becomes its replica and drops its keys, what a node says of itself as a
//! replica ends its claims, what an owner claims no more anybody may claim, an open slot is known to two nodes alone (and, in
//! Valkey, to their replicas), a node that hears of another introduces itself to it, a forgotten id is banned for a minute (in Valkey
//! on each node that hears of the ban), and a replica may stay bound to an old address.

mod act;
mod elections;
mod gossip;
mod observe;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
};

use redis_operator_plan::{Copies, Goal, NodeId, Topology, Update};

/// How long a forgotten id stays banned, in rounds.
const BAN: u64 = 30;
/// How long a shard's voters vote for nobody else, in rounds.
const VOTE_ROUNDS: u64 = 2;
/// Rounds until a pod runs that never does.
const NEVER: u32 = u32::MAX;
/// A node is not promoted on purpose twice within so many rounds.
const COOLDOWN: u64 = 4;
/// How many seconds a round takes.
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
    /// Not promoted, and takes no writes, until it is started again.
    held: bool,
    /// Started, or without the majority, in the last round: it takes no writes yet.
    rejoins: bool,
    /// Number of function libraries.
    libraries: u64,
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
    /// As in Valkey 8 and later, replicas know the open slots of their primary, and nodes tell each other which ids they forgot.
    pub(crate) replicas_know_open_slots: bool,
    /// Whether a pod keeps its data when it is replaced.
    pub(crate) persistent: bool,
    pub(crate) replicas: u32,
    /// How many pods there were before all were stopped.
    pub(crate) before: u32,
    pods: BTreeMap<u32, Slot>,
    /// Ordinals that nobody reaches, the operator neither.
    pub(crate) cut_off: BTreeSet<u32>,
    /// Ordinals that reach each other and nobody else, with clients on their side: a zone that is cut off.
    pub(crate) group: BTreeSet<u32>,
    /// Ordinals of pods whose processes are confirmed to have ended, and have.
    pub(crate) ended: BTreeSet<u32>,
    /// Whether clients write a key to every primary that serves them, each round.
    pub(crate) writes: bool,
    /// The keys that they were acknowledged.
    pub(crate) acknowledged: BTreeSet<(u16, u8)>,
    /// What the operator knew of replicas at its last look.
    pub(crate) copies: Copies,
    /// The node of each pod when it was last a member.
    pub(crate) known: BTreeMap<String, NodeId>,
    /// Since when nodes answer without being members.
    outsiders: BTreeMap<NodeId, u64>,
    /// Whether no node answers the operator: all hang, or they refuse the password.
    pub(crate) silent: bool,
    /// Ordinals of replicas that are being filled, and have nothing yet.
    pub(crate) syncing: BTreeSet<u32>,
    /// The Kubernetes node of each pod, and its zone; three nodes without zones for those that are not listed.
    pub(crate) hosts: Vec<(u32, Option<u32>)>,
    /// The most memory that each node may use; 0 without a limit.
    pub(crate) memory_limit: u64,
    /// Ordinals of pods whose claims are being deleted, and go with them.
    pub(crate) claims_end: BTreeSet<u32>,
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
pub(crate) struct Refused(#[expect(dead_code, reason = "for the output of a failing case")] &'static str);

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

    /// Removes a node from its table, and says whether it was there. Gossip does not bring it back before `until`.
    fn forget(&mut self, id: NodeId, until: u64) -> bool {
        if self.table.remove(&id).is_none() {
            return false;
        }
        self.owner.iter_mut().filter(|owner| **owner == Some(id)).for_each(|owner| *owner = None);
        self.banned.insert(id, until);
        true
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
            replicas_know_open_slots: false,
            persistent,
            template: 0,
            broken: BTreeSet::new(),
            promoted: BTreeMap::new(),
            replicas: 0,
            before: 0,
            pods: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            group: BTreeSet::new(),
            ended: BTreeSet::new(),
            writes: false,
            acknowledged: BTreeSet::new(),
            copies: Copies::default(),
            known: BTreeMap::new(),
            outsiders: BTreeMap::new(),
            silent: false,
            syncing: BTreeSet::new(),
            hosts: vec![],
            memory_limit: 0,
            claims_end: BTreeSet::new(),
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
            held: false,
            rejoins: true,
            libraries: 0,
        }
    }

    /// Replaces a pod: another address, and another node unless there is a volume.
    pub(crate) fn replace(&mut self, ordinal: u32, starts_in: u32) {
        let Some(old) = self.pods.get(&ordinal).cloned() else { return };
        let ip = self.fresh_ip();
        let redis = if self.persistent && !self.claims_end.remove(&ordinal) {
            Redis {
                bound: None,
                down: 0,
                fresh: true,
                meets: BTreeSet::new(),
                banned: BTreeMap::new(),
                held: false,
                rejoins: true,
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
            let stuck = self.broken.contains(&pod.template) && pod.template != self.template;
            if stuck && self.may_end(ordinal) {
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

    /// How many pods there were, as far as volumes or pods tell.
    pub(crate) fn stopped(&self) -> u32 {
        let ordinals = self.volumes.keys().chain(self.pods.keys());
        ordinals.map(|ordinal| ordinal + 1).max().unwrap_or(0)
    }

    pub(crate) fn ordinals(&self) -> Vec<u32> {
        self.pods.keys().copied().collect()
    }

    /// Whether every key that a pod holds is with another one, which owns its slot and runs.
    pub(crate) fn owners_have_keys_of(&self, ordinal: u32) -> bool {
        self.pods[&ordinal].redis.keys.iter().all(|key| {
            self.pods.iter().any(|(other, owner)| {
                let owns = owner.redis.owner[usize::from(key.0)] == Some(owner.redis.id);
                *other != ordinal && self.up(*other) && owns && owner.redis.keys.contains(key)
            })
        })
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

    /// Whether a replica of this node has what clients wrote to it. Where none has, Redis elects the best of them nevertheless.
    pub(crate) fn is_copied(&self, ordinal: u32) -> bool {
        let Some(pod) = self.pods.get(&ordinal).filter(|_| self.writes) else { return true };
        let copies = || self.pods.iter().filter(|(_, copy)| copy.redis.primary == Some(pod.redis.id));
        let is_complete =
            |(other, copy): (&u32, &Slot)| self.may_stand(*other) && copy.redis.keys == pod.redis.keys;
        copies().next().is_none() || copies().any(is_complete)
    }

    /// Whether a successor of this node knows its slots and has its keys.
    pub(crate) fn may_go(&self, ordinal: u32) -> bool {
        self.is_known(ordinal) && self.is_copied(ordinal)
    }

    /// Puts two keys into every slot, at its owner.
    pub(crate) fn fill(&mut self) {
        for pod in self.pods.values_mut().filter(|pod| pod.redis.primary.is_none()) {
            let own =
                (0..self.goal.slots).filter(|slot| pod.redis.owner[usize::from(*slot)] == Some(pod.redis.id));
            pod.redis.keys = own.flat_map(|slot| [(slot, 0), (slot, 1)]).collect();
            pod.redis.libraries = 1;
        }
        self.replicate();
    }

    /// Keys that no owner of their slot holds, and so are lost to clients.
    pub(crate) fn missing_keys(&self) -> Vec<(u16, u8)> {
        let all = (0..self.goal.slots).flat_map(|slot| [(slot, 0), (slot, 1)]);
        let all = all.chain(self.acknowledged.iter().copied());
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
        let runs = self.pods.get(&ordinal).is_some_and(|pod| pod.starts_in == 0);
        runs && !self.cut_off.contains(&ordinal) && !self.ended.contains(&ordinal)
    }

    /// Whether the operator reaches it.
    fn answers(&self, ordinal: u32) -> bool {
        self.up(ordinal) && !self.silent && !self.group.contains(&ordinal)
    }

    /// Clients write to every primary that knows an owner of every slot, and has reached a majority for a round: Redis refuses writes
    /// for up to five seconds after it came back, in which it hears of its successor. What is acknowledged is in its append-only file.
    fn write(&mut self) {
        let round = u8::try_from(2 + self.round % 250).unwrap();
        for ordinal in self.ordinals() {
            let redis = &self.pods[&ordinal].redis;
            let owners: BTreeSet<NodeId> = redis.owner.iter().flatten().copied().collect();
            let reached =
                owners.iter().filter(|owner| **owner == redis.id || self.connected(ordinal, **owner)).count();
            let slots = redis.slots_of(redis.id);
            let has_majority = self.up(ordinal) && reached * 2 > owners.len();
            let is_covered = redis.owner.iter().all(Option::is_some);
            let refuses = redis.primary.is_some() || redis.held || redis.rejoins || !is_covered;
            let redis = &mut self.pods.get_mut(&ordinal).unwrap().redis;
            redis.rejoins = !has_majority;
            let slot = slots.get(usize::try_from(self.round).unwrap() % slots.len().max(1));
            let Some(slot) = slot.filter(|slot| !redis.migrating.contains_key(slot)) else { continue };
            if has_majority && !refuses {
                redis.keys.insert((*slot, round));
                self.acknowledged.insert((*slot, round));
            }
        }
    }

    /// A pod is deleted, and a quota keeps Kubernetes from making it again.
    pub(crate) fn keep_away(&mut self, ordinal: u32) {
        self.replace(ordinal, NEVER);
    }

    /// It may be made again, and starts after so many rounds.
    pub(crate) fn let_back(&mut self, ordinal: u32, starts_in: u32) {
        self.pods.get_mut(&ordinal).unwrap().starts_in = starts_in;
    }

    /// Who runs at an address that a node reaches; without a node, that the operator reaches.
    fn at(&self, viewer: Option<u32>, ip: IpAddr) -> Option<u32> {
        let side = viewer.is_some_and(|viewer| self.group.contains(&viewer));
        self.pods
            .iter()
            .find(|(ordinal, pod)| {
                pod.ip == ip && self.up(**ordinal) && self.group.contains(*ordinal) == side
            })
            .map(|(ordinal, _)| *ordinal)
    }

    /// Whether `a` has a connection to the node `b`.
    fn connected(&self, a: u32, b: NodeId) -> bool {
        let Some(entry) = self.pods[&a].redis.table.get(&b) else { return false };
        self.at(Some(a), entry.ip).is_some_and(|ordinal| ordinal != a && self.pods[&ordinal].redis.id == b)
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
                    held: false,
                    rejoins: true,
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
        if self.writes {
            self.write();
        }
        self.replicate();
        self.lost_gossip = 0;
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
}
