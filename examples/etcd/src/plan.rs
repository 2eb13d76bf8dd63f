//! What to do next: from what was seen to one action, or to the reason why nothing is done. Nothing here talks to anybody.
//!
//! [`plan`] reads from top to bottom, and the first rule that applies decides. Three promises hold for every situation, and
//! `plan/model.rs` tries them on clusters whose members crash:
//!
//! - An action never takes away the quorum: what etcd's own members say is the evidence, and a pod that is about to go does not
//!   count as healthy.
//! - At most one membership change at a time: the next one waits until the last one can be seen to be complete.
//! - A new member begins as a learner, which has no vote until it has the data.

use std::fmt;

/// What the user wants.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    /// Number of members that vote.
    pub(crate) size: usize,
    /// Image of the pods.
    pub(crate) image: String,
}

/// What was seen, pods first.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// Whether etcd has been running before: then an empty cluster is never made again.
    pub(crate) bootstrapped: bool,
    /// The pods of the cluster.
    pub(crate) pods: Vec<Pod>,
    /// The members, as a quorum of them knows them; or why they are not known.
    pub(crate) members: Result<Vec<Member>, String>,
}

/// A pod. Its name is that of its member.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) state: PodState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    Present,
    /// Its container is about to be replaced by one of another image.
    Restarting,
    /// It is being deleted.
    Leaving,
    /// It is being deleted, and still there after the time that it was given: its node may be gone.
    Overdue,
    /// It has ended for good, as after an eviction.
    Failed,
}

/// A member of the etcd cluster.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: u64,
    /// From its peer URL, which it has before it starts.
    pub(crate) name: String,
    /// Whether it has ever run: then it has data, and a pod without them cannot take its place.
    pub(crate) started: bool,
    pub(crate) learner: bool,
    pub(crate) leader: bool,
    pub(crate) health: Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It does not answer, or follows no leader.
    Silent,
    /// A learner that does not have all data yet.
    Behind,
    InSync,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Act(Action),
    Wait(Wait),
    /// All is as wanted.
    Settled,
}

/// One thing to do. What is done is seen the next time, so a crash between two of them is no special case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Create the first pod, which makes the cluster or restores it.
    Bootstrap { name: String },
    /// Add a member without a vote and without a pod.
    AddLearner { name: String },
    /// Create the pod of a member that has never run.
    StartMember { name: String },
    /// Give a learner its vote.
    Promote { id: u64, name: String },
    /// Take a member out of the cluster.
    Remove { id: u64, name: String },
    /// Delete a pod that belongs to no member, or that has to be created again.
    DeletePod { name: String },
    /// Change the image of a pod, which keeps its data.
    ChangeImage { name: String },
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Whether something is wrong, and not only under way.
    pub(crate) degraded: bool,
}

impl Action {
    /// One CamelCase word for programs.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Bootstrap { .. } => "Bootstrapping",
            Self::AddLearner { .. } | Self::StartMember { .. } | Self::Promote { .. } => "AddingMember",
            Self::Remove { .. } | Self::DeletePod { .. } => "RemovingMember",
            Self::ChangeImage { .. } => "Restarting",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bootstrap { name } => write!(f, "created the first pod {name}"),
            Self::AddLearner { name } => write!(f, "added {name} as a learner"),
            Self::StartMember { name } => write!(f, "created the pod of {name}"),
            Self::Promote { name, .. } => write!(f, "promoted {name} to a voting member"),
            Self::Remove { name, .. } => write!(f, "removed {name} from the members"),
            Self::DeletePod { name } => write!(f, "deleted pod {name}"),
            Self::ChangeImage { name } => write!(f, "changed the image of {name}"),
        }
    }
}

/// How many of so many voting members have to agree.
pub(crate) fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// The name of a member: `NAME-NUMBER`.
fn numbered(cluster: &str, number: usize) -> String {
    format!("{cluster}-{number}")
}

fn number(cluster: &str, name: &str) -> Option<usize> {
    name.strip_prefix(cluster)?.strip_prefix('-')?.parse().ok()
}

/// The next action for the cluster of this name.
pub(crate) fn plan(cluster: &str, goal: &Goal, seen: &Observed) -> Step {
    let members = match &seen.members {
        Ok(members) => members,
        Err(evidence) => return without_members(cluster, seen, evidence),
    };
    // A member that others have added is not ours to remove.
    if let Some(other) = members.iter().find(|member| number(cluster, &member.name).is_none()) {
        return wait(
            "ForeignMember",
            format!("member {:x} `{}` was added by others: remove it", other.id, other.name),
            true,
        );
    }
    let pod = |name: &str| seen.pods.iter().find(|pod| pod.name == name);
    // Its data are gone, or will be in a moment.
    let lost = |member: &&Member| {
        let state = pod(&member.name).map(|pod| pod.state);
        member.started
            && matches!(state, None | Some(PodState::Leaving | PodState::Overdue | PodState::Failed))
    };
    let healthy = |member: &&Member| member.health != Health::Silent && !lost(member);
    let voters: Vec<&Member> = members.iter().filter(|member| !member.learner).collect();
    let count = voters.iter().copied().filter(healthy).count();

    // Removed from the members first, then deleted.
    let is_member = |pod: &&Pod| members.iter().any(|member| member.name == pod.name);
    let leaves = |pod: &&Pod| matches!(pod.state, PodState::Leaving | PodState::Overdue);
    if let Some(pod) = seen.pods.iter().find(|pod| !is_member(pod) && !leaves(pod)) {
        return Step::Act(Action::DeletePod { name: pod.name.clone() });
    }

    if let Some(learner) = members.iter().find(|member| member.learner) {
        let (id, name) = (learner.id, learner.name.clone());
        if lost(&learner) || voters.len() >= goal.size {
            return Step::Act(Action::Remove { id, name });
        }
        return match pod(&name).map(|pod| pod.state) {
            None => Step::Act(Action::StartMember { name }),
            Some(PodState::Failed) => Step::Act(Action::DeletePod { name }),
            Some(_) if learner.health != Health::InSync => {
                wait("LearnerCatchesUp", format!("{name} does not have all data yet"), false)
            }
            Some(_) if count < quorum(voters.len()) || count + 1 < quorum(voters.len() + 1) => {
                at_risk(&format!("promoting {name}"), count, voters.len())
            }
            Some(_) => Step::Act(Action::Promote { id, name }),
        };
    }

    // One whose pod is gone; or one too many, preferably one that does not answer, never the leader while there is another.
    let surplus = || {
        let others = voters.iter().copied().filter(|_| voters.len() > goal.size);
        others.max_by_key(|member| (!healthy(member), !member.leader, number(cluster, &member.name)))
    };
    if let Some(member) = voters.iter().copied().find(lost).or_else(surplus) {
        let (id, name) = (member.id, member.name.clone());
        let (voters, left) = (voters.len(), count - usize::from(healthy(&member)));
        // The removal itself needs the quorum of before.
        if voters == 1 || count < quorum(voters) || left < quorum(voters - 1) {
            return at_risk(&format!("removing {name}"), count, voters);
        }
        return Step::Act(Action::Remove { id, name });
    }

    if let Some(pod) = seen.pods.iter().find(|pod| pod.state == PodState::Restarting) {
        return wait("Restarting", format!("{} restarts with another image", pod.name), false);
    }
    if let Some(silent) = voters.iter().copied().find(|member| !healthy(member)) {
        let message = format!("{} does not answer; {count} of {} members do", silent.name, voters.len());
        return wait("MemberUnhealthy", message, true);
    }
    if voters.len() < goal.size {
        if let Some(pod) = seen.pods.iter().find(|pod| pod.state == PodState::Leaving) {
            let message = format!("{} ends; the next member may take its name", pod.name);
            return wait("PodTerminating", message, false);
        }
        let taken = |name: &String| pod(name).is_some() || members.iter().any(|member| member.name == *name);
        let free = (0..).map(|number| numbered(cluster, number)).find(|name| !taken(name));
        return Step::Act(Action::AddLearner { name: free.expect("there is always a higher number") });
    }

    // The leader last: it hands over when it is stopped.
    let outdated =
        voters.iter().filter(|member| pod(&member.name).is_some_and(|pod| pod.image != goal.image));
    match outdated.min_by_key(|member| (member.leader, number(cluster, &member.name))) {
        // A single member cannot be restarted without a pause.
        Some(member) if voters.len() == 1 || count > quorum(voters.len()) => {
            Step::Act(Action::ChangeImage { name: member.name.clone() })
        }
        Some(member) => at_risk(&format!("restarting {}", member.name), count, voters.len()),
        None => Step::Settled,
    }
}

/// No quorum answers. Where a pod does not end, only the user knows whether its Kubernetes node comes back.
fn without_members(cluster: &str, seen: &Observed, evidence: &str) -> Step {
    let overdue = seen.pods.iter().find(|pod| pod.state == PodState::Overdue);
    let force = overdue.map(|pod| {
        let name = &pod.name;
        format!("{name} does not end: `kubectl delete pod {name} --force` if its Kubernetes node is gone")
    });
    if seen.bootstrapped {
        let message = match force {
            Some(force) => format!("no quorum of members answers, and {force}"),
            None if seen.pods.is_empty() => {
                "no pod is left, and the data went with them: restore a snapshot into another EtcdCluster"
                    .into()
            }
            None => format!("no quorum of members answers, so nothing is changed: {evidence}"),
        };
        return wait("QuorumLost", message, true);
    }
    if let Some(force) = force {
        return wait("PodOverdue", force, true);
    }
    match seen.pods.first() {
        None => Step::Act(Action::Bootstrap { name: numbered(cluster, 0) }),
        Some(pod) if pod.state == PodState::Failed => Step::Act(Action::DeletePod { name: pod.name.clone() }),
        Some(pod) => wait("Bootstrapping", format!("waiting for {}: {evidence}", pod.name), false),
    }
}

fn at_risk(what: &str, healthy: usize, voters: usize) -> Step {
    let needed = quorum(voters);
    let message = format!(
        "{what} could lose the quorum: {healthy} of {voters} members are healthy, {needed} are needed"
    );
    wait("QuorumAtRisk", message, true)
}

fn wait(reason: &'static str, message: String, degraded: bool) -> Step {
    Step::Wait(Wait { reason, message, degraded })
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
