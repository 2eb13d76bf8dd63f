//! Since when nodes have responded without being members.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use crate::plan::{NodeId, Topology};

/// How long a node that was told to forget another takes it back from nobody, and longer than it tells others to forget it too.
const BAN: Duration = Duration::from_secs(65);

/// What was seen of one cluster since this process leads: a new leader does not know what was before.
#[derive(Debug, Default)]
pub struct Outsiders(BTreeMap<NodeId, Instant>);

impl Outsiders {
    /// The nodes that have responded without being members for less than a ban lasts.
    pub fn see(&mut self, topology: &Topology<'_>, now: Instant) -> BTreeSet<NodeId> {
        let outside: BTreeSet<NodeId> = topology.outsiders.iter().map(|member| member.node.id).collect();
        self.0.retain(|id, _| outside.contains(id));
        let mut lately = outside;
        lately.retain(|id| now.duration_since(*self.0.entry(*id).or_insert(now)) < BAN);
        lately
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Goal, Node, Observed, Pod};

    #[test]
    fn a_node_is_outside_lately_until_bans_have_ended() {
        let id: NodeId = "a".repeat(40).parse().unwrap();
        let node = Node { id, ..Node::default() };
        let outside =
            Observed { pods: vec![Pod { redis: Some(node), ..Pod::default() }], ..Observed::default() };
        let mut topology = Topology::of(Goal::default(), &outside);
        topology.outsiders = std::mem::take(&mut topology.core);
        let (mut outsiders, start) = (Outsiders::default(), Instant::now());
        let mut at = |topology: &Topology<'_>, second: u64| {
            outsiders.see(topology, start + Duration::from_secs(second)).contains(&id)
        };
        assert!(at(&topology, 0) && at(&topology, 64));
        assert!(!at(&topology, 65));
        let nobody = Observed::default();
        assert!(!at(&Topology::of(Goal::default(), &nobody), 66));
        assert!(at(&topology, 67), "it joined, or was away, in between");
    }
}
