//! What an operator sees of it.

use std::collections::BTreeSet;

use redis_operator_plan::{
    Flavour, Link, Node, NodeId, Observed, Peer, Plan, Pod, Slots, Topology, Version, plan,
};

use super::{BAN, Entry, Model, id, name};

impl Model {
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
                claim_ends: self.claims_end.contains(&ordinal),
                // The kubelet reaches a pod that is cut off from all others.
                containers_ready: pod.starts_in == 0 && !self.group.contains(&ordinal),
                ended: self.ended.contains(&ordinal),
                host: Some(format!("host-{}", self.place(ordinal).0)),
                zone: self.place(ordinal).1.map(|zone| format!("zone-{zone}")),
                redis: self.answers(ordinal).then(|| self.node(ordinal)),
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
                .filter(|(ordinal, _)| self.answers(**ordinal))
                .map(|(_, pod)| {
                    (pod.redis.id, pod.redis.keys.iter().filter(|key| key.0 == slot).count() as u64)
                })
                .collect()
        };
        Observed {
            unrest: pods.iter().any(|pod| pod.terminating),
            pods,
            replicas: Some(if self.goal.hibernated { self.replicas } else { self.replicas.max(self.before) }),
            last_owners: BTreeSet::new(),
            known: self.known.clone(),
            copies: self.copies.clone(),
            without_claim: BTreeSet::new(),
            takeover_due: self.without_quorum >= 3,
            election_due: self.electing >= 3,
            leave_due: true,
            join_overdue: false,
            outside_lately: self.outsiders.keys().copied().filter(|id| self.is_outside_lately(*id)).collect(),
            keeps_volumes: true,
            let_go: false,
            holds: true,
            left_open: BTreeSet::new(),
            promoted: self.cooling(),
            open_keys: open.into_iter().map(|slot| (slot, keys(slot))).collect(),
        }
    }

    pub(super) fn node(&self, ordinal: u32) -> Node {
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
            hostname: None,
            table: table.into(),
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
            silence: None,
            attached: self
                .pods
                .iter()
                .filter(|(copy, pod)| pod.redis.primary == Some(redis.id) && self.in_step(**copy, ordinal))
                .map(|(_, pod)| pod.ip)
                .collect(),
            good_replicas: None,
            migrating: redis.migrating.clone(),
            importing: redis.importing.clone(),
            held: redis.held,
            libraries: redis.libraries,
            settings: Default::default(),
            persistence: Default::default(),
            version: self.version(),
            run_id: String::new(),
        }
    }

    fn version(&self) -> Version {
        match self.replicas_know_open_slots {
            true => Version { flavour: Flavour::Valkey, number: "9.1.2".into() },
            false => Version { flavour: Flavour::Redis, number: "7.0.15".into() },
        }
    }

    /// Whether a replica is connected to its primary.
    fn in_step(&self, copy: u32, primary: u32) -> bool {
        let redis = &self.pods[&copy].redis;
        let together =
            self.up(copy) && self.up(primary) && self.group.contains(&copy) == self.group.contains(&primary);
        together
            && !self.syncing.contains(&copy)
            && redis.down == 0
            && redis.bound == Some(self.pods[&primary].ip)
    }

    /// Whether an operator may make a pod end.
    pub(super) fn may_end(&self, ordinal: u32) -> bool {
        let observed = self.observe();
        let topology = Topology::of(self.goal, &observed);
        observed.pods.iter().filter(|pod| pod.ordinal == ordinal).all(|pod| topology.may_end(pod))
    }

    /// The operator looks at it.
    pub(crate) fn look(&mut self) {
        let observed = self.observe();
        if self.goal.hibernated && observed.replicas == Some(0) {
            // All members come back: its status still has them.
            return;
        }
        let topology = Topology::of(self.goal, &observed);
        self.copies = self.copies.next(&topology, false);
        let outside: BTreeSet<NodeId> = topology.outsiders.iter().map(|member| member.node.id).collect();
        self.outsiders.retain(|id, _| outside.contains(id));
        for id in outside {
            self.outsiders.entry(id).or_insert(self.round);
        }
        let members = topology.core.iter().filter(|member| !member.node.alone());
        self.known.extend(members.map(|member| (member.pod.name.clone(), member.node.id)));
        let pods: BTreeSet<String> = (0..observed.replicas.unwrap_or(0)).map(name).collect();
        self.known.retain(|pod, _| pods.contains(pod));
    }

    fn is_outside_lately(&self, id: NodeId) -> bool {
        self.outsiders.get(&id).is_some_and(|since| self.round <= since + BAN)
    }

    /// What an operator would do now.
    pub(crate) fn plan(&self) -> Plan {
        plan(&Topology::of(self.goal, &self.observe()))
    }
}
