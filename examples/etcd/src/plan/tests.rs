//! Each situation in one line: members by their number, with what is special about each.
//!
//! `!` leads, `s` is silent, `u` was added and never ran, `b` is a learner without all data, `l` is one in sync; of its pod: `x` is
//! not there, `d` is being deleted, `D` for too long, `f` has failed, `o` has the old image, `r` restarts with the new one. `p` alone is a pod
//! without a member.

use super::*;

/// What is seen of the members in `words`.
fn seen(words: &str) -> Observed {
    let mut observed = Observed { bootstrapped: true, pods: vec![], members: Ok(vec![]) };
    for word in words.split_whitespace() {
        let flags = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let (number, has) = (&word[..word.len() - flags.len()], |flag| flags.contains(flag));
        let name = format!("e-{number}");
        let health = if has('b') {
            Health::Behind
        } else if has('s') || has('u') || has('x') {
            Health::Silent
        } else {
            Health::InSync
        };
        let member = Member {
            id: number.parse().unwrap(),
            name: name.clone(),
            started: !has('u'),
            learner: has('u') || has('b') || has('l'),
            leader: has('!'),
            health,
        };
        if !has('p') {
            observed.members.as_mut().unwrap().push(member);
        }
        let state = match () {
            () if has('d') => PodState::Leaving,
            () if has('D') => PodState::Overdue,
            () if has('f') => PodState::Failed,
            () if has('r') => PodState::Restarting,
            () => PodState::Present,
        };
        if !has('x') {
            observed.pods.push(Pod { name, image: if has('o') { "old" } else { "new" }.into(), state });
        }
    }
    observed
}

fn said(step: &Step) -> String {
    match step {
        Step::Act(action) => action.to_string(),
        Step::Wait(wait) => wait.reason.to_owned(),
        Step::Settled => "settled".into(),
    }
}

/// What follows from `words` when `size` members are wanted.
fn check(size: usize, words: &str, expected: &str) {
    let step = plan("e", &Goal { size, image: "new".into() }, &seen(words));
    assert_eq!(said(&step), expected, "{size} wanted, seen: {words}");
}

#[test]
fn a_cluster_grows_by_one_learner_at_a_time() {
    check(3, "0!", "added e-1 as a learner");
    check(3, "0! 1ux", "created the pod of e-1");
    check(3, "0! 1u", "LearnerCatchesUp");
    check(3, "0! 1b", "LearnerCatchesUp");
    check(3, "0! 1l", "promoted e-1 to a voting member");
    check(3, "0! 1", "added e-2 as a learner");
    check(3, "0! 1 2", "settled");
    check(5, "0! 1 2", "added e-3 as a learner");
    // The lowest number that no member and no pod has.
    check(3, "0! 2", "added e-1 as a learner");
    // A name whose pod is about to end is waited for, but not for ever.
    check(3, "0! 1pd 2", "PodTerminating");
    check(3, "0! 1pD 2", "added e-3 as a learner");
}

#[test]
fn a_learner_is_never_promoted_into_a_lost_quorum() {
    check(5, "0! 1s 2 3l", "promoted e-3 to a voting member");
    check(5, "0! 1s 2s 3l", "QuorumAtRisk");
    check(3, "0! 1s 2l", "QuorumAtRisk");
}

#[test]
fn a_learner_that_is_lost_or_not_needed_goes() {
    check(3, "0! 1 2bx", "removed e-2 from the members");
    check(3, "0! 1 2lf", "removed e-2 from the members");
    check(3, "0! 1 2 3l", "removed e-3 from the members");
    check(3, "0! 1 2uf", "deleted pod e-2");
    check(3, "0! 1 2ud", "LearnerCatchesUp");
}

#[test]
fn a_member_whose_pod_is_gone_is_removed_and_replaced() {
    check(3, "0! 1x 2", "removed e-1 from the members");
    check(3, "0! 1d 2", "removed e-1 from the members");
    check(3, "0! 1D 2", "removed e-1 from the members");
    check(3, "0! 1f 2", "removed e-1 from the members");
    check(3, "0! 2", "added e-1 as a learner");
    check(5, "0! 1x 2x 3 4", "removed e-1 from the members");
}

#[test]
fn nothing_is_removed_when_the_quorum_would_go_with_it() {
    check(3, "0! 1x 2x", "QuorumAtRisk");
    check(3, "0! 1x 2s", "QuorumAtRisk");
    check(3, "0! 1d 2d", "QuorumAtRisk");
    check(1, "0!d", "QuorumAtRisk");
    check(3, "0! 1x", "QuorumAtRisk");
    check(5, "0! 1x 2x 3x 4", "QuorumAtRisk");
    check(1, "0! 1s 2s", "QuorumAtRisk");
}

#[test]
fn the_reason_for_waiting_names_the_evidence() {
    let step = plan("e", &Goal { size: 3, image: "new".into() }, &seen("0! 1x 2s"));
    let Step::Wait(wait) = step else { panic!("{step:?}") };
    assert_eq!(wait.message, "removing e-1 could lose the quorum: 1 of 3 members are healthy, 2 are needed");
    assert!(wait.degraded);
}

#[test]
fn a_cluster_shrinks_by_the_highest_numbers_and_keeps_its_leader() {
    check(3, "0! 1 2 3 4", "removed e-4 from the members");
    check(3, "0 1 2 3 4!", "removed e-3 from the members");
    check(3, "0 1 2 3p 4!", "deleted pod e-3");
    check(3, "0 1 2 3pd 4!", "removed e-2 from the members");
    check(1, "0! 1", "removed e-1 from the members");
    // One that does not answer is no loss.
    check(3, "0! 1s 2 3 4", "removed e-1 from the members");
}

#[test]
fn a_member_that_does_not_answer_and_has_its_pod_is_waited_for() {
    check(3, "0! 1s 2", "MemberUnhealthy");
    check(5, "0! 1s 2", "MemberUnhealthy");
    check(3, "0!o 1s 2", "MemberUnhealthy");
}

#[test]
fn images_change_one_by_one_and_the_leaders_last() {
    check(3, "0!o 1o 2o", "changed the image of e-1");
    check(3, "0!o 1r 2o", "Restarting");
    check(3, "0!o 1s 2o", "MemberUnhealthy");
    check(3, "0!o 1 2o", "changed the image of e-2");
    check(3, "0!o 1 2", "changed the image of e-0");
    check(3, "0 1! 2", "settled");
    check(1, "0!o", "changed the image of e-0");
    // The size first: what restarts cannot help others to join.
    check(3, "0!o 1o", "added e-2 as a learner");
}

#[test]
fn what_others_added_is_named() {
    let mut observed = seen("0! 1 2");
    observed.members.as_mut().unwrap()[2].name = "theirs".into();
    let step = plan("e", &Goal { size: 3, image: "new".into() }, &observed);
    assert_eq!(said(&step), "ForeignMember");
}

#[test]
fn a_cluster_is_made_once() {
    let goal = Goal { size: 3, image: "new".into() };
    let without = |words: &str, bootstrapped| {
        let observed = Observed { bootstrapped, members: Err("1 of 3 pods answer".into()), ..seen(words) };
        said(&plan("e", &goal, &observed))
    };
    assert_eq!(without("", false), "created the first pod e-0");
    assert_eq!(without("0", false), "Bootstrapping");
    assert_eq!(without("0f", false), "deleted pod e-0");
    assert_eq!(without("0 1 2", true), "QuorumLost");
    assert_eq!(without("", true), "QuorumLost");
    // Its node is lost before the cluster was made: nothing was lost with it, but only the user knows that the node is gone.
    assert_eq!(without("0D", false), "PodOverdue");
}

#[test]
fn a_lost_cluster_says_what_only_its_user_can_do() {
    let message = |words: &str| {
        let observed = Observed { members: Err("0 of 1 pods answer".into()), ..seen(words) };
        match plan("e", &Goal { size: 1, image: "new".into() }, &observed) {
            Step::Wait(wait) => wait.message,
            step => panic!("{step:?}"),
        }
    };
    assert_eq!(message("0"), "no quorum of members answers, so nothing is changed: 0 of 1 pods answer");
    assert_eq!(
        message("0D"),
        "no quorum of members answers, and e-0 does not end: `kubectl delete pod e-0 --force` if its Kubernetes node is gone"
    );
    assert_eq!(
        message(""),
        "no pod is left, and the data went with them: restore a snapshot into another EtcdCluster"
    );
}
