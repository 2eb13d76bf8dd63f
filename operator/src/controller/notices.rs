//! Events of a RedisCluster: the difference between two statuses, in sentences. Pure functions.

use std::collections::BTreeSet;

use kube::runtime::events::EventType;

use super::{
    hibernate::was_hibernated,
    problem::{CONFIG_REFUSED, NOT_RESIZED},
    status::{
        ALL_WELL, BOTH_PASSWORDS, CERTIFICATE_EXPIRES, CERTIFICATE_PENDING, CERTIFICATE_UNREAD,
        CONFIG_PENDING, GROWING, HIBERNATED, MEMORY_ABOVE_LIMIT, OLD_PASSWORD, PASSWORD_PENDING,
        ROLLOUT_FAILED, count,
    },
};
use crate::{
    crd::v1::{Member, Phase, RedisClusterStatus, Role},
    plan::NodeId,
};

/// An Event for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Normal or Warning.
    pub warning: bool,
    /// The reason, one word.
    pub reason: &'static str,
    /// The sentence.
    pub note: String,
}

impl Notice {
    /// A Normal Event.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { warning: false, reason, note: note.into() }
    }

    /// A Warning Event.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { warning: true, reason, note: note.into() }
    }

    /// The type of the Event.
    pub fn event_type(&self) -> EventType {
        if self.warning { EventType::Warning } else { EventType::Normal }
    }
}

/// A pod has another node: the operator reset the one before, or it is gone with its data.
fn replaced(pod: &str, before: &str, id: &str, reset: &BTreeSet<NodeId>) -> Notice {
    let planned = before.parse().is_ok_and(|before| reset.contains(&before));
    let note = if planned {
        format!("{pod}: the operator reset node {before}, whose keys other nodes have, and it joined as {id}")
    } else {
        format!("{pod} started without the data of node {before}, as node {id}")
    };
    Notice::normal("MemberReplaced", note)
}

/// The Events for the difference between two statuses. `reset` are nodes that the operator has reset.
pub fn notices(
    old: &RedisClusterStatus,
    new: &RedisClusterStatus,
    size: i32,
    reset: &BTreeSet<NodeId>,
) -> Vec<Notice> {
    let mut notices = vec![];
    let is_true = |status: &RedisClusterStatus, kind: &str| {
        status
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind)
            .map(|condition| condition.status == "True")
    };
    let formed_before = old.initialized == Some(true);
    if !formed_before && new.initialized == Some(true) {
        notices.push(Notice::normal(
            "ClusterCreated",
            format!("formed with {} shards", new.shards.unwrap_or(0)),
        ));
    }
    if old.phase != Some(Phase::Hibernated) && new.phase == Some(Phase::Hibernated) {
        notices.push(Notice::normal(HIBERNATED, "all pods are stopped, and their volumes kept"));
    }
    if old.phase == Some(Phase::Waking) && !was_hibernated(new) && is_true(new, "Available") == Some(true) {
        notices.push(Notice::normal("Awake", "pods run again, and every slot is served"));
    }
    if formed_before && !was_hibernated(old) && old.observed_generation != new.observed_generation {
        // An update may have one pod more.
        let more = old.phase == Some(Phase::Updating) && count(old.nodes.len()) == size + 1;
        // A pod that is being replaced is a member all the same.
        let nodes = count(old.nodes.len().max(old.members.len()));
        let before = if more { size } else { nodes };
        match before.cmp(&size) {
            std::cmp::Ordering::Less => {
                notices.push(Notice::normal("ScalingUp", format!("from {before} to {size} nodes")))
            }
            std::cmp::Ordering::Greater => {
                notices.push(Notice::normal("ScalingDown", format!("from {before} to {size} nodes")));
            }
            std::cmp::Ordering::Equal => {}
        }
    }
    if formed_before {
        for member in &new.members {
            let before = old.members.iter().find(|before| before.pod == member.pod);
            match (before, &member.node_id) {
                (Some(Member { node_id: Some(before), .. }), Some(id)) if before != id => {
                    notices.push(replaced(&member.pod, before, id, reset));
                }
                (None | Some(Member { node_id: None, .. }), Some(id)) => {
                    notices
                        .push(Notice::normal("MemberJoined", format!("{} joined as node {id}", member.pod)));
                }
                _ => {}
            }
        }
        for pod in failed_over(old, new) {
            notices
                .push(Notice::normal("FailoverCompleted", format!("{pod} is now the primary of its shard")));
        }
        for before in old.members.iter().filter(|before| before.node_id.is_some()) {
            if !new.members.iter().any(|member| member.pod == before.pod) {
                notices.push(Notice::normal("MemberForgotten", format!("{} left the cluster", before.pod)));
            }
        }
        match (is_pending(old), is_pending(new)) {
            (false, true) => notices.push(Notice::normal(
                "RolloutStarted",
                "replacing pods that have an older image, configuration or resources",
            )),
            (true, false) => {
                notices.push(Notice::normal("RolloutCompleted", "all pods have what the spec wants"))
            }
            _ => {}
        }
        let reason = |status: &RedisClusterStatus| {
            let update = status.conditions.iter().find(|condition| condition.type_ == "UpdatePending");
            update.map(|update| update.reason.clone())
        };
        if reason(old).as_deref() == Some(GROWING) && reason(new).as_deref() == Some("UpToDate") {
            notices.push(Notice::normal("VolumesResized", "all volumes have the size of spec.storage.size"));
        }
        let (before, now) = (reason(old), reason(new));
        // What is reported only while no certificate is pending.
        let loaded = ["UpToDate", CERTIFICATE_UNREAD, BOTH_PASSWORDS, MEMORY_ABOVE_LIMIT, CONFIG_PENDING];
        if before.as_deref() == Some(CERTIFICATE_PENDING)
            && now.as_deref().is_some_and(|now| loaded.contains(&now))
        {
            notices
                .push(Notice::normal("CertificateLoaded", "all nodes present the certificate in the Secret"));
        }
        match now.as_deref().filter(|_| before != now) {
            Some(MEMORY_ABOVE_LIMIT) => {
                let update = new.conditions.iter().find(|condition| condition.type_ == "UpdatePending");
                let message = update.map(|update| update.message.clone()).unwrap_or_default();
                notices.push(Notice::warning(MEMORY_ABOVE_LIMIT, message));
            }
            Some(PASSWORD_PENDING) => {
                notices.push(Notice::normal("PasswordChangeStarted", "the password in the Secret changed"));
            }
            Some(BOTH_PASSWORDS) => notices.push(Notice::normal(
                "PreviousPasswordAccepted",
                "all nodes accept the new password and the previous one",
            )),
            Some("UpToDate")
                if before
                    .as_deref()
                    .is_some_and(|before| [PASSWORD_PENDING, OLD_PASSWORD].contains(&before)) =>
            {
                notices.push(Notice::normal(
                    "PasswordChanged",
                    "all nodes accept only the password in the Secret",
                ));
            }
            _ => {}
        }
        if old.phase == Some(Phase::Scaling) && new.phase == Some(Phase::Ready) {
            let shards = new.shards.unwrap_or(0);
            notices.push(Notice::normal(
                "SlotsMigrated",
                format!("slots are balanced across {shards} primaries"),
            ));
        }
    }
    // A problem is reported once, when it starts or its reason changes.
    let reason = |status: &RedisClusterStatus| {
        let degraded = status.conditions.iter().find(|condition| condition.type_ == "Degraded");
        degraded
            .filter(|degraded| degraded.status == "True")
            .map(|degraded| (degraded.reason.clone(), degraded.message.clone()))
    };
    if let Some((now, message)) = reason(new)
        && reason(old).is_none_or(|(before, _)| before != now)
    {
        let reason = WARNINGS.into_iter().find(|warning| **warning == now).unwrap_or("Degraded");
        notices.push(Notice::warning(reason, message));
    }
    if is_true(old, "Degraded") == Some(true) && is_true(new, "Degraded") == Some(false) {
        let degraded = new.conditions.iter().find(|condition| condition.type_ == "Degraded");
        let well = degraded.is_some_and(|degraded| degraded.reason == ALL_WELL);
        let note = if well { "all members respond" } else { "what Degraded named is solved" };
        notices.push(Notice::normal("Recovered", note));
    }
    notices
}

/// Whether pods have an older template.
fn is_pending(status: &RedisClusterStatus) -> bool {
    let update = status.conditions.iter().find(|condition| condition.type_ == "UpdatePending");
    update.is_some_and(|update| {
        update.status == "True"
            && ![
                NOT_RESIZED,
                GROWING,
                "DowngradeRefused",
                CONFIG_PENDING,
                MEMORY_ABOVE_LIMIT,
                CONFIG_REFUSED,
                PASSWORD_PENDING,
                OLD_PASSWORD,
                CERTIFICATE_PENDING,
            ]
            .contains(&update.reason.as_str())
    })
}

/// Reasons of `Degraded` that are also reasons of Events.
const WARNINGS: [&str; 25] = [
    "CertificateExpired",
    CERTIFICATE_EXPIRES,
    "CertificateUntrusted",
    "CertificateUnusable",
    "ClaimTerminating",
    CONFIG_REFUSED,
    "DataLost",
    "DowngradeRefused",
    "FailedCreate",
    "ForeignNode",
    "InsufficientMemory",
    "InvalidSpec",
    "KeyTooLarge",
    "MembersMissing",
    "NameTaken",
    "PasswordRejected",
    "PasswordUnusable",
    "PodTrouble",
    "PreviousPasswordUnusable",
    "QuorumLost",
    ROLLOUT_FAILED,
    "SecretMissing",
    "SlotsLost",
    NOT_RESIZED,
    "WritesRefused",
];

/// Pods whose node was a replica and owns slots now.
pub fn failed_over<'a>(
    old: &'a RedisClusterStatus,
    new: &'a RedisClusterStatus,
) -> impl Iterator<Item = &'a str> + 'a {
    new.members
        .iter()
        .filter(|member| member.role == Some(Role::Primary) && !member.slots.is_empty())
        .filter(|member| {
            old.members
                .iter()
                .any(|before| before.node_id == member.node_id && before.role == Some(Role::Replica))
        })
        .map(|member| member.pod.as_str())
}

#[cfg(test)]
pub(super) mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

    use super::*;

    /// A member: `pod id role`, where `-` is unknown.
    fn member(words: &str) -> Member {
        let words: Vec<&str> = words.split(' ').collect();
        let known = |word: &str| (word != "-").then(|| word.to_owned());
        let role = match words[2] {
            "primary" => Some(Role::Primary),
            "replica" => Some(Role::Replica),
            _ => None,
        };
        let slots = if role == Some(Role::Primary) { vec!["0-5".into()] } else { vec![] };
        Member { pod: words[0].into(), node_id: known(words[1]), role, slots, ..Member::default() }
    }

    /// A status with these members.
    pub(in crate::controller) fn formed(members: &str) -> RedisClusterStatus {
        let members: Vec<Member> =
            members.split(", ").filter(|words| !words.is_empty()).map(member).collect();
        let nodes = members.iter().map(|member| member.pod.clone()).collect();
        RedisClusterStatus { initialized: Some(true), members, nodes, ..Default::default() }
    }

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let reset = BTreeSet::from(["d".repeat(40).parse().unwrap()]);
        let printed: Vec<_> = notices(&formed(old), &formed(new), 2, &reset)
            .into_iter()
            .map(|notice| format!("{} {}", notice.reason, notice.note))
            .collect();
        assert_eq!(printed, expected);
    }

    #[test]
    fn a_node_that_comes_back_as_another() {
        let lost = "MemberReplaced rc-0 started without the data of node a, as node b";
        check("rc-0 a primary", "rc-0 b replica", &[lost]);
        check("rc-0 a -", "rc-0 b replica", &[lost]);
        let reset = "d".repeat(40);
        let planned = format!(
            "MemberReplaced rc-0: the operator reset node {reset}, whose keys other nodes have, and it joined as b"
        );
        check(&format!("rc-0 {reset} -"), "rc-0 b replica", &[&planned]);
    }

    #[test]
    fn a_node_that_comes_back_as_itself() {
        check("rc-0 a primary", "rc-0 a -", &[]);
        check("rc-0 a -", "rc-0 a primary", &[]);
    }

    #[test]
    fn nodes_that_come_and_go() {
        check("rc-0 a primary", "rc-0 a primary, rc-1 - -", &[]);
        check(
            "rc-0 a primary, rc-1 - -",
            "rc-0 a primary, rc-1 b replica",
            &["MemberJoined rc-1 joined as node b"],
        );
        check("rc-0 a primary, rc-1 b -", "rc-0 a primary", &["MemberForgotten rc-1 left the cluster"]);
    }

    #[test]
    fn a_pod_that_is_being_replaced_is_no_growth() {
        let mut old = formed("rc-0 a primary, rc-1 b primary");
        old.nodes.pop();
        let mut new = formed("rc-0 a primary, rc-1 b primary");
        new.observed_generation = Some(2);
        assert_eq!(notices(&old, &new, 2, &BTreeSet::new()), []);
        let more: Vec<_> =
            notices(&old, &new, 3, &BTreeSet::new()).into_iter().map(|notice| notice.note).collect();
        assert_eq!(more, ["from 2 to 3 nodes"]);
    }

    #[test]
    fn a_replica_that_takes_over() {
        check(
            "rc-0 a replica",
            "rc-0 a primary",
            &["FailoverCompleted rc-0 is now the primary of its shard"],
        );
    }

    /// Each is reported once, when the reason of UpdatePending changes.
    #[test]
    fn a_change_of_the_password() {
        let with = |reason: &str| {
            let mut status = formed("rc-0 a primary");
            let waits = [PASSWORD_PENDING, OLD_PASSWORD, CERTIFICATE_PENDING].contains(&reason);
            status.conditions.push(Condition {
                type_: "UpdatePending".into(),
                status: if waits { "True" } else { "False" }.into(),
                reason: reason.into(),
                message: String::new(),
                last_transition_time: Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH),
                observed_generation: None,
            });
            status
        };
        let events = |old: &str, new: &str| {
            let notices = notices(&with(old), &with(new), 1, &BTreeSet::new());
            notices.into_iter().map(|notice| notice.reason).collect::<Vec<_>>()
        };
        assert_eq!(events("UpToDate", PASSWORD_PENDING), ["PasswordChangeStarted"]);
        assert_eq!(events(PASSWORD_PENDING, BOTH_PASSWORDS), ["PreviousPasswordAccepted"]);
        assert_eq!(events(BOTH_PASSWORDS, BOTH_PASSWORDS), [""; 0]);
        assert_eq!(events(BOTH_PASSWORDS, OLD_PASSWORD), [""; 0]);
        assert_eq!(events(OLD_PASSWORD, "UpToDate"), ["PasswordChanged"]);
        assert_eq!(events("UpToDate", CERTIFICATE_PENDING), [""; 0]);
        assert_eq!(events(CERTIFICATE_PENDING, CERTIFICATE_UNREAD), ["CertificateLoaded"]);
        let both = ["CertificateLoaded", "PreviousPasswordAccepted"];
        assert_eq!(events(CERTIFICATE_PENDING, BOTH_PASSWORDS), both);
        assert_eq!(events(CERTIFICATE_PENDING, PASSWORD_PENDING), ["PasswordChangeStarted"]);
        assert_eq!(events(CERTIFICATE_UNREAD, "UpToDate"), [""; 0]);
    }
}
