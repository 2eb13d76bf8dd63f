//! Elections, and what replicas copy.

use std::collections::BTreeSet;

use redis_operator_plan::NodeId;

use super::{COOLDOWN, Model, ROUND_SECONDS, Redis, VOTE_ROUNDS};

/// Seconds until a primary that is heard of no more counts as failed.
const DETECTED: u64 = 2 * ROUND_SECONDS;

impl Model {
    /// The replica that heard of its primary last stands first: Redis ranks them by the offset of what they have.
    pub(super) fn elect(&mut self) {
        let mut ranked = self.ordinals();
        ranked.sort_by_key(|ordinal| self.pods[ordinal].redis.down);
        for ordinal in ranked {
            let Some(primary) = self.pods[&ordinal].redis.primary else { continue };
            if !self.may_stand(ordinal)
                || self.connected(ordinal, primary)
                || self.pods[&ordinal].redis.down < DETECTED
                || self.is_outranked(ordinal, primary)
            {
                continue;
            }
            self.stand_for_election(ordinal, primary);
        }
    }

    pub(super) fn may_stand(&self, ordinal: u32) -> bool {
        let redis = &self.pods[&ordinal].redis;
        self.up(ordinal) && !redis.fresh && !redis.held
    }

    /// Whether another replica of its primary has newer data, and stands once the failure is detected.
    fn is_outranked(&self, ordinal: u32, primary: NodeId) -> bool {
        self.pods.iter().any(|(other, pod)| {
            pod.redis.primary == Some(primary)
                && pod.redis.down < DETECTED
                && self.may_stand(*other)
                && self.connected(ordinal, pod.redis.id)
        })
    }

    /// Asks for votes, and says whether they were enough.
    pub(super) fn stand_for_election(&mut self, ordinal: u32, primary: NodeId) -> bool {
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
    pub(super) fn cooling(&self) -> BTreeSet<NodeId> {
        let cools = |when: &u64| self.round < when + COOLDOWN;
        self.promoted.iter().filter(|(_, when)| cools(when)).map(|(id, _)| *id).collect()
    }

    pub(super) fn promote(&mut self, ordinal: u32, epoch: u64, slots: &[u16]) {
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

    pub(super) fn replicate(&mut self) {
        for ordinal in self.ordinals() {
            let Some(primary) = self.pods[&ordinal].redis.primary else { continue };
            let source = self.at_id(primary).filter(|source| {
                let together = self.group.contains(source) == self.group.contains(&ordinal);
                self.up(*source) && self.up(ordinal) && together
            });
            let source = source.filter(|_| !self.syncing.contains(&ordinal));
            let bound = self.pods[&ordinal]
                .redis
                .bound
                .or_else(|| self.pods[&ordinal].redis.table.get(&primary).map(|entry| entry.ip));
            let copied = source.filter(|source| bound == Some(self.pods[source].ip)).map(|source| {
                let Redis { keys, libraries, migrating, importing, .. } = &self.pods[&source].redis;
                (keys.clone(), *libraries, migrating.clone(), importing.clone())
            });
            let knows_open_slots = self.replicas_know_open_slots;
            let redis = &mut self.pods.get_mut(&ordinal).unwrap().redis;
            redis.bound = bound;
            match copied {
                Some((keys, libraries, migrating, importing)) => {
                    (redis.keys, redis.down, redis.fresh, redis.libraries) = (keys, 0, false, libraries);
                    if knows_open_slots {
                        (redis.migrating, redis.importing) = (migrating, importing);
                    }
                }
                None => redis.down += ROUND_SECONDS,
            }
        }
    }
}
