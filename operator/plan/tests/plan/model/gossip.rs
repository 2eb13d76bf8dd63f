//! What nodes hear of one another: tables, claims and epochs.

use std::collections::BTreeMap;

use redis_operator_plan::NodeId;

use super::{Entry, Model, Slot, name};

impl Model {
    pub(super) fn introduce(&mut self) {
        for a in self.ordinals() {
            if !self.up(a) {
                continue;
            }
            for ip in std::mem::take(&mut self.pods.get_mut(&a).unwrap().redis.meets) {
                let Some(b) = self.at(Some(a), ip).filter(|b| *b != a) else { continue };
                self.know(a, b);
                self.know(b, a);
                // What they claim is in the first packets.
                self.ping(a, b);
                self.ping(b, a);
            }
        }
    }

    pub(super) fn entry(&self, ordinal: u32) -> Entry {
        let Slot { ip, redis, .. } = &self.pods[&ordinal];
        Entry { ip: *ip, pod: name(ordinal), primary: redis.primary, epoch: redis.epoch }
    }

    pub(super) fn know(&mut self, viewer: u32, other: u32) {
        let (entry, other) = (self.entry(other), self.pods[&other].redis.id);
        let redis = &mut self.pods.get_mut(&viewer).unwrap().redis;
        if entry.primary.is_some() {
            // Its epoch is that of its primary, which could claim nothing from it any more.
            for owner in redis.owner.iter_mut().filter(|owner| **owner == Some(other)) {
                *owner = None;
            }
        }
        redis.table.insert(other, entry);
    }

    pub(super) fn gossip(&mut self) {
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
    pub(super) fn ping(&mut self, a: u32, b: u32) {
        let sender = self.pods[&a].redis.clone();
        if !self.pods[&b].redis.table.contains_key(&sender.id) {
            return;
        }
        self.know(b, a);
        let (tells, round) = (self.replicas_know_open_slots, self.round);
        let receiver = &mut self.pods.get_mut(&b).unwrap().redis;
        for (id, until) in sender.banned.iter().filter(|(_, until)| tells && **until >= round) {
            if receiver.primary != Some(*id) {
                receiver.forget(*id, *until);
            }
        }
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
                // It meets nodes that it does not know.
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
            // A node that knows an equal or later epoch of the owner ignores this.
            let told = &mut self.pods.get_mut(&a).unwrap().redis;
            if let Some(entry) = told.table.get_mut(&owner).filter(|entry| entry.epoch < epoch) {
                entry.epoch = epoch;
                self.claim(a, owner, epoch, &all);
            }
        }
    }

    /// A node hears that another claims slots.
    pub(super) fn claim(&mut self, viewer: u32, claimant: NodeId, epoch: u64, slots: &[u16]) {
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
            // As after a failover: it follows the node that took all of its slots.
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
}
