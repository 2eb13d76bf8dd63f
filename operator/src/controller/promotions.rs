//! When replicas became primaries.
//!
//! A node that is promoted twice within four node timeouts wins its second election with the epoch of the first, which the
//! others have seen replaced: it loses its slots again, and writes stop for seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use crate::plan::{NodeId, Topology};

/// What was seen of one cluster since this process leads.
#[derive(Debug)]
pub struct Promotions {
    since: Instant,
    replicas: BTreeSet<NodeId>,
    promoted: BTreeMap<NodeId, Instant>,
}

impl Promotions {
    /// Nothing was seen yet.
    pub fn new(now: Instant) -> Self {
        Self { since: now, replicas: BTreeSet::new(), promoted: BTreeMap::new() }
    }

    /// The nodes that must not be promoted at `now`. A new leader does not know what happened before it, so these are all
    /// replicas at first.
    pub fn see(&mut self, topology: &Topology<'_>, pause: Duration, now: Instant) -> BTreeSet<NodeId> {
        let members = || topology.core.iter().map(|member| (member.node.id, member.is_primary()));
        for (id, is_primary) in members() {
            if !is_primary {
                self.replicas.insert(id);
            } else if self.replicas.remove(&id) {
                self.promoted.insert(id, now);
            }
        }
        let known: BTreeSet<NodeId> = members().map(|(id, _)| id).collect();
        self.replicas.retain(|id| known.contains(id));
        self.promoted.retain(|_, when| now.duration_since(*when) < pause);
        let new = now.duration_since(self.since) < pause;
        self.promoted.keys().copied().chain(self.replicas.iter().copied().filter(|_| new)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Goal, Node, Observed, Peer, Pod, Slots};

    const PAUSE: Duration = Duration::from_secs(20);

    fn id(number: u8) -> NodeId {
        format!("{number:040x}").parse().unwrap()
    }

    /// Two nodes: this one is the primary.
    fn observed(primary: u8) -> Observed {
        let peer = |number: u8| Peer {
            id: id(number),
            ip: None,
            pod: None,
            primary: (number != primary).then(|| id(primary)),
            handshake: false,
            failed: false,
            suspected: false,
            connected: true,
            epoch: 1,
            slots: if number == primary { Slots::range(0, 9) } else { Slots::default() },
        };
        let node = |number: u8| Node {
            id: id(number),
            table: vec![peer(1), peer(2)].into(),
            ok: true,
            current_epoch: 1,
            ..Node::default()
        };
        let pod = |number: u8| Pod { redis: Some(node(number)), ..Pod::default() };
        Observed { pods: vec![pod(1), pod(2)], ..Observed::default() }
    }

    #[test]
    fn no_node_is_promoted_twice_within_the_pause() {
        let goal = Goal { size: 2, replicas_per_shard: 1, slots: 10, ..Goal::default() };
        let start = Instant::now();
        let mut promotions = Promotions::new(start);
        let mut at = |second: u64, primary: u8| {
            let observed = observed(primary);
            promotions.see(&Topology::of(goal, &observed), PAUSE, start + Duration::from_secs(second))
        };
        assert_eq!(at(0, 1), [id(2)].into(), "a new leader does not know what was before");
        assert_eq!(at(19, 1), [id(2)].into());
        assert_eq!(at(20, 1), [].into());
        assert_eq!(at(21, 2), [id(2)].into(), "it took over");
        assert_eq!(at(30, 1), [id(1), id(2)].into(), "and the other again");
        assert_eq!(at(41, 1), [id(1)].into());
        assert_eq!(at(50, 1), [].into());
    }
}
