//! What was known of replicas when their primaries were last observed.
//!
//! Of a primary that does not respond, only its replicas tell anything, and each of them considers itself the best. Whether a
//! replica had all writes can only be observed while its primary responds, so it is remembered from then on.

use std::collections::BTreeMap;

use super::{Link, Member, NodeId, Topology};

/// Whether a replica was in sync with its primary when that was last observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The replica.
    pub node: NodeId,
    /// Its primary.
    pub primary: NodeId,
    /// Whether it was in sync.
    pub in_sync: bool,
    /// Its replication offset then.
    pub offset: i64,
}

/// The replicas, by pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies(pub BTreeMap<String, Copy>);

impl Copies {
    /// What is known with this observation. Replicas of primaries that do not respond keep what was known before. A `first`
    /// observation of an operator does not: a replica that has started again may have been away while its primary took writes.
    pub fn next(&self, topology: &Topology<'_>, first: bool) -> Self {
        let responds = |id: NodeId| topology.member(id).is_some_and(|member| member.is_primary());
        let mut next = BTreeMap::new();
        // What was removed from the cluster is not waited for.
        let known = |id: NodeId| topology.core.iter().any(|member| member.node.peer(id).is_some());
        for (pod, copy) in self.0.iter().filter(|(_, copy)| topology.core.is_empty() || known(copy.node)) {
            let in_sync =
                if responds(copy.primary) { listed(topology, pod, copy.primary) } else { copy.in_sync };
            next.insert(pod.clone(), Copy { in_sync, ..copy.clone() });
        }
        for member in &topology.core {
            let (node, pod) = (member.node, &member.pod.name);
            let Some(primary) = node.primary() else {
                next.remove(pod);
                continue;
            };
            let same = next.get(pod).is_some_and(|copy| (copy.node, copy.primary) == (node.id, primary));
            if responds(primary) {
                let in_sync = topology.in_sync(*member);
                next.insert(pod.clone(), Copy { node: node.id, primary, in_sync, offset: node.offset });
            } else if !same || first && node.link == Link::Never {
                next.remove(pod);
            }
        }
        Self(next)
    }

    /// Whether this replica had all writes of the primary when that was last observed. Not known means no.
    pub fn were_in_sync(&self, replica: NodeId, primary: NodeId) -> bool {
        self.0.values().any(|copy| copy.in_sync && (copy.node, copy.primary) == (replica, primary))
    }
}

/// Whether the primary lists the replica of this pod as one that is in sync, which also counts if the replica does not respond to
/// the operator.
fn listed(topology: &Topology<'_>, pod: &str, primary: NodeId) -> bool {
    let ip = topology.observed.pods.iter().find(|other| other.name == pod).and_then(|pod| pod.ip);
    let primary: Option<Member<'_>> = topology.member(primary);
    primary.is_some_and(|primary| ip.is_some_and(|ip| primary.node.attached.contains(&ip)))
}
