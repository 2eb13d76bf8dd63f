//! What an operator does to it, as Redis would.

use std::collections::BTreeMap;

use redis_operator_plan::{Action, NodeAddress, NodeId};

use super::{BAN, Model, Redis, Refused, Slot};

impl Model {
    pub(super) fn redis(&mut self, place: &NodeAddress) -> Result<&mut Redis, Refused> {
        let ordinal = self.at(None, place.ip).ok_or(Refused("nobody answers"))?;
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
            Action::CopyFunctions { from, to } => {
                let libraries = self.redis(from)?.libraries;
                self.redis(to)?.libraries = libraries;
            }
            Action::Forget { node, id } => {
                let redis = self.redis(node)?;
                if *id == redis.id || redis.primary == Some(*id) {
                    return Err(Refused("myself or my primary"));
                }
                if !redis.forget(*id, round + BAN) {
                    return Err(Refused("unknown node"));
                }
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
            Action::Empty { node } => {
                let redis = self.redis(node)?;
                if redis.primary.is_some() || redis.owner.contains(&Some(redis.id)) {
                    return Err(Refused("it serves its keys"));
                }
                redis.keys.clear();
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
            Action::AssignSlots { nodes, slots, owner } => {
                for node in nodes {
                    for slot in slots.iter() {
                        self.assign(node, slot, *owner)?;
                    }
                }
            }
            Action::Stable { node, slot } => {
                let redis = self.redis(node)?;
                if redis.primary.is_some() {
                    return Err(Refused("a replica"));
                }
                redis.migrating.remove(slot);
                redis.importing.remove(slot);
            }
            Action::Import { node, slots, from } => {
                for slot in slots.iter() {
                    let redis = self.redis(node)?;
                    let known = redis.table.contains_key(from);
                    if redis.primary.is_some() || !known || redis.owner[usize::from(slot)] == Some(redis.id) {
                        return Err(Refused("cannot import"));
                    }
                    redis.importing.insert(slot, *from);
                }
            }
            Action::Export { node, slots, to } => {
                for slot in slots.iter() {
                    let redis = self.redis(node)?;
                    let known = redis.table.contains_key(to);
                    if redis.primary.is_some() || !known || redis.owner[usize::from(slot)] != Some(redis.id) {
                        return Err(Refused("cannot export"));
                    }
                    redis.migrating.insert(slot, *to);
                }
            }
            Action::Keys { from, to, slots, .. } => {
                // One key at a time: `half` breaks off between them.
                for slot in slots.iter() {
                    while self.one_key(from, to, slot)? {}
                }
            }
            Action::Restart { pod, uid, .. } => {
                let meant = |slot: &Slot| slot.uid.to_string() == *uid && slot.ends_in.is_none();
                let ordinal = pod.strip_prefix("rc-").unwrap().parse().unwrap();
                if self.pods.get(&ordinal).is_some_and(meant) {
                    self.terminate(ordinal, 1);
                }
            }
            Action::Hold { node } => self.redis(node)?.held = true,
            Action::Release { node } => self.redis(node)?.held = false,
            Action::Move(_) => unreachable!("`step` takes moves apart first"),
        }
        Ok(())
    }

    /// `CLUSTER SETSLOT NODE`.
    fn assign(&mut self, node: &NodeAddress, slot: u16, owner: NodeId) -> Result<(), Refused> {
        let redis = self.redis(node)?;
        if redis.primary.is_some() {
            return Err(Refused("a replica"));
        }
        let known = redis.table.get(&owner).is_some_and(|entry| entry.primary.is_none());
        if owner != redis.id && !known {
            return Err(Refused("unknown node, or a replica"));
        }
        let holds = redis.keys.iter().any(|key| key.0 == slot);
        if redis.owner[usize::from(slot)] == Some(redis.id) && owner != redis.id && holds {
            return Err(Refused("still holds keys"));
        }
        if !holds {
            redis.migrating.remove(&slot);
        }
        redis.owner[usize::from(slot)] = Some(owner);
        if owner == redis.id && redis.importing.remove(&slot).is_some() {
            redis.current += 1;
            redis.epoch = redis.current;
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
    pub(super) fn replicate_now(&mut self) {
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
