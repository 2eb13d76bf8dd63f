//! What was known of members when they were last observed, in `status.members`. Pure functions.

use super::status::last_owners;
use crate::{
    crd::v1::{Member, RedisClusterStatus},
    plan::{Copies, Copy, Observed, Topology},
};

/// What the status knows of an observation: the node id of each pod, and which pods owned slots.
pub(super) fn observed(status: &RedisClusterStatus) -> Observed {
    let node = |member: &Member| Some((member.pod.clone(), member.node_id.as_deref()?.parse().ok()?));
    let known = status.members.iter().filter_map(node).collect();
    Observed { known, last_owners: last_owners(status), ..Observed::default() }
}

/// What was known of replicas when their primaries were last observed. A status of an older release says nothing.
pub(super) fn from_status(status: &RedisClusterStatus) -> Copies {
    let copy = |member: &Member| {
        Some(Copy {
            node: member.node_id.as_deref()?.parse().ok()?,
            primary: member.primary_id.as_deref()?.parse().ok()?,
            in_sync: member.in_sync?,
            offset: member.offset.unwrap_or(0),
        })
    };
    Copies(status.members.iter().filter_map(|member| Some((member.pod.clone(), copy(member)?))).collect())
}

/// Writes it into the members. An offset changes all the time, so it is only written while the primary does not respond.
pub(super) fn add(members: &mut [Member], topology: &Topology<'_>) {
    for member in members {
        let Some(copy) = topology.observed.copies.0.get(&member.pod) else { continue };
        if member.node_id.as_ref().is_some_and(|id| *id != copy.node.to_string()) {
            continue;
        }
        member.primary_id = Some(copy.primary.to_string());
        member.in_sync = Some(copy.in_sync);
        member.offset = topology.member(copy.primary).is_none().then_some(copy.offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_an_older_release_is_not_known_to_be_in_sync() {
        let member = |primary_id: Option<String>, in_sync: Option<bool>| {
            let node_id = Some("a".repeat(40));
            let member = Member { pod: "rc-1".into(), node_id, primary_id, in_sync, ..Member::default() };
            let copies = from_status(&RedisClusterStatus { members: vec![member], ..Default::default() });
            let id = |letter: &str| letter.repeat(40).parse().unwrap();
            copies.were_in_sync(id("a"), id("b"))
        };
        assert!(member(Some("b".repeat(40)), Some(true)));
        assert!(!member(Some("c".repeat(40)), Some(true)));
        assert!(!member(Some("b".repeat(40)), Some(false)));
        assert!(!member(Some("b".repeat(40)), None));
        assert!(!member(None, None));
    }
}
