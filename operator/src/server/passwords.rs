//! Changes the passwords of running nodes, so that no client and no replica is refused meanwhile.
//!
//! A node accepts several passwords (`ACL SETUSER default`), and replicates with one (`masterauth`). So first every node accepts
//! the new password, then every node replicates with it, and only then the old one is removed. Each step is due for all nodes
//! before the next begins for any: a replica with a password that its primary does not accept would lose its connection. What is
//! due follows from the observation only, so an operator that takes over needs no record of the steps before.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use redis::{Value, cmd, from_redis_value};
use tracing::debug;

use super::{Access, CommandError, Password, act::Permit, configure::connect_to};
use crate::{
    plan::{PasswordHash, Passwords, Pod},
    telemetry::chain,
};

/// Connections at once for one cluster.
const AT_ONCE: usize = 32;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Whether the pods are all that there are. If not, there may be a node that knows only the old password.
    pub all_known: bool,
    /// Whether passwords that are not wanted any more may be removed.
    pub removal: bool,
}

/// The steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Accept the wanted passwords as well.
    Accept,
    /// Replicate with the new password.
    Replicate,
    /// Accept nothing but the wanted passwords.
    Remove,
}

/// What ACL GETUSER and CONFIG GET say; nothing if that is something else than Redis says.
pub(super) fn parse(user: Value, mut config: BTreeMap<String, String>) -> Option<Passwords> {
    let mut user: BTreeMap<String, Value> = from_redis_value(user).ok()?;
    let accepted: Vec<String> = from_redis_value(user.remove("passwords")?).ok()?;
    let replicates_with = config.remove("masterauth").filter(|word| !word.is_empty());
    Some(Passwords {
        accepted: accepted.into_iter().map(PasswordHash).collect(),
        replicates_with: replicates_with.map(|word| Password::new(word).hash()),
    })
}

/// The passwords that every node should accept.
pub fn wanted(access: &Access) -> BTreeSet<PasswordHash> {
    access.password.iter().chain(&access.previous).map(Password::hash).collect()
}

/// Whether a node accepts the wanted passwords, others as well perhaps, and replicates with the new one.
pub fn has(access: &Access, node: &Passwords) -> bool {
    let new = access.password.as_ref().map(Password::hash);
    node.accepted.is_superset(&wanted(access)) && node.replicates_with == new
}

/// The pods whose passwords are not known although a process may run there.
pub fn unknown(pods: &[Pod]) -> impl Iterator<Item = &Pod> {
    pods.iter().filter(|pod| pod.ip.is_some() && pod.passwords.is_none())
}

/// Takes every step that is due, and notes in `pods` what became of it. A node that cannot be reached, or is another process than
/// the one that was observed, is left as it is.
pub async fn change(access: &Access, permit: &dyn Permit, pods: &mut [Pod], allowed: Allowed) {
    for step in [Step::Accept, Step::Replicate, Step::Remove] {
        let due: Vec<_> = due(step, access, pods, allowed)
            .into_iter()
            .map(|index| {
                let pod = &pods[index];
                async move {
                    let changed = take(step, access, permit, pod).await;
                    if let Err(error) = &changed {
                        debug!(pod = pod.name, ?step, error = chain(error), "passwords not changed");
                    }
                    (index, changed.is_ok_and(|changed| changed))
                }
            })
            .collect();
        let changed: Vec<_> = stream::iter(due).buffer_unordered(AT_ONCE).collect().await;
        for (index, _) in changed.into_iter().filter(|(_, changed)| *changed) {
            let Some(passwords) = &mut pods[index].passwords else { continue };
            match step {
                Step::Accept => passwords.accepted.extend(wanted(access)),
                Step::Replicate => passwords.replicates_with = access.password.as_ref().map(Password::hash),
                Step::Remove => passwords.accepted = wanted(access),
            }
        }
    }
}

/// The pods for which a step is due.
fn due(step: Step, access: &Access, pods: &[Pod], allowed: Allowed) -> Vec<usize> {
    let Some(new) = access.password.as_ref().map(Password::hash) else { return vec![] };
    let wanted = wanted(access);
    let all = |holds: &dyn Fn(&Passwords) -> bool| {
        let known = allowed.all_known && unknown(pods).next().is_none();
        known && pods.iter().filter_map(|pod| pod.passwords.as_ref()).all(holds)
    };
    let is_due: &dyn Fn(&Passwords) -> bool = match step {
        Step::Accept => &|node| !node.accepted.is_superset(&wanted),
        Step::Replicate if all(&|node| node.accepted.contains(&new)) => {
            &|node| node.replicates_with.as_ref() != Some(&new)
        }
        Step::Remove if allowed.removal && all(&|node| has(access, node)) => &|node| node.accepted != wanted,
        Step::Replicate | Step::Remove => return vec![],
    };
    let due = |pod: &Pod| pod.passwords.as_ref().is_some_and(is_due);
    pods.iter().enumerate().filter(|(_, pod)| due(pod)).map(|(index, _)| index).collect()
}

async fn take(step: Step, access: &Access, permit: &dyn Permit, pod: &Pod) -> Result<bool, CommandError> {
    let (Some(new), Some((mut connection, _))) = (&access.password, connect_to(access, permit, pod).await?)
    else {
        return Ok(false);
    };
    let (name, mut command) = match step {
        Step::Replicate => ("CONFIG SET", cmd("CONFIG")),
        Step::Accept | Step::Remove => ("ACL SETUSER", cmd("ACL")),
    };
    match step {
        Step::Replicate => {
            command.arg("SET").arg("masterauth").arg(new.reveal());
        }
        Step::Accept | Step::Remove => {
            command.arg("SETUSER").arg("default");
            // All of it takes effect at once: no client is refused in between, and connections stay.
            command.arg((step == Step::Remove).then_some("resetpass"));
            for PasswordHash(hash) in wanted(access) {
                command.arg(format!("#{hash}"));
            }
        }
    }
    connection.send::<()>(name, &command).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::metrics::Metrics;

    fn access(password: &str, previous: Option<&str>) -> Access {
        let word = |word: &str| Password::new(word.into());
        let metrics = Arc::new(Metrics::default());
        Access {
            port: 1,
            host: None,
            trust: None,
            password: Some(word(password)),
            previous: previous.map(word),
            metrics,
        }
    }

    /// A pod for each line: its accepted passwords, and the one with which it replicates; `-` for one that does not respond.
    fn pods(lines: &str) -> Vec<Pod> {
        let hash = |word: &str| Password::new(word.into()).hash();
        let passwords = |line: &str| {
            let (accepted, with) = line.trim().split_once('/')?;
            let accepted = accepted.split(' ').map(hash).collect();
            Some(Passwords { accepted, replicates_with: Some(hash(with)) })
        };
        let ip = Some([10, 0, 0, 1].into());
        lines.lines().map(|line| Pod { ip, passwords: passwords(line), ..Pod::default() }).collect()
    }

    /// What is due for which pods.
    #[track_caller]
    fn check(access: &Access, lines: &str, allowed: Allowed, expected: &[(Step, &[usize])]) {
        let pods = pods(lines);
        let steps = [Step::Accept, Step::Replicate, Step::Remove];
        let due: Vec<_> = steps.map(|step| (step, due(step, access, &pods, allowed))).into();
        let due: Vec<_> =
            due.iter().map(|(step, due)| (*step, &due[..])).filter(|one| !one.1.is_empty()).collect();
        assert_eq!(due, expected, "{lines}");
    }

    const ALL: Allowed = Allowed { all_known: true, removal: true };

    #[test]
    fn a_step_waits_until_all_nodes_took_the_one_before() {
        let both = access("new", Some("old"));
        check(&both, "old/old\nnew old/old\nnew old/old", ALL, &[(Step::Accept, &[0])]);
        check(&both, "new old/old\nnew old/new", ALL, &[(Step::Replicate, &[0])]);
        check(&both, "new old/new\nnew old/new", ALL, &[]);
        let new = access("new", None);
        check(&new, "new old/old\nnew old/new", ALL, &[(Step::Replicate, &[0])]);
        check(&new, "new old/new\nnew old/new\nnew/new", ALL, &[(Step::Remove, &[0, 1])]);
        check(&new, "new/new\nnew/new", ALL, &[]);
    }

    #[test]
    fn a_node_that_is_not_seen_keeps_the_old_password_in_use() {
        let new = access("new", None);
        check(&access("new", Some("old")), "old/old\n-", ALL, &[(Step::Accept, &[0])]);
        check(&new, "new old/old\n-", ALL, &[]);
        check(&new, "new old/new\n-", ALL, &[]);
        check(&new, "new old/old", Allowed { all_known: false, ..ALL }, &[]);
        check(&new, "new old/new", Allowed { removal: false, ..ALL }, &[]);
        // One that never ran takes the password of today when it starts.
        let mut pods = pods("new old/new\n-");
        pods[1].ip = None;
        assert_eq!(due(Step::Remove, &new, &pods, ALL), [0]);
    }

    #[test]
    fn a_change_that_is_taken_back_or_followed_by_another_ends_where_the_secret_says() {
        let back = access("old", None);
        check(&back, "new old/new\nold/old", ALL, &[(Step::Replicate, &[0])]);
        check(&back, "new old/old\nold/old", ALL, &[(Step::Remove, &[0])]);
        let third = access("third", Some("new"));
        check(&third, "new old/old\nnew old/new", ALL, &[(Step::Accept, &[0, 1])]);
        check(&third, "third new old/third", ALL, &[(Step::Remove, &[0])]);
    }
}
