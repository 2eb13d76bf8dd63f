//! Gives nodes the users that clients log in as, beside `default` (`ACL SETUSER`): all of a user at once, so that no client that has
//! logged in is refused meanwhile.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use redis::cmd;
use tracing::debug;

use super::{
    Access, COMMAND_DEADLINE, CommandError,
    act::Permit,
    configure::{answer, connect_to},
};
use crate::{
    plan::{PasswordHash, Pod},
    telemetry::chain,
};

/// Connections at once for one cluster.
const AT_ONCE: usize = 32;

/// A user as nodes should have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// The passwords that are accepted.
    pub passwords: BTreeSet<PasswordHash>,
    /// What it may do, as `ACL SETUSER` takes it.
    pub rules: String,
}

/// A user that Redis refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Redis in pod {pod} refused user `{user}`: {answer}")]
pub struct Refusal {
    /// The pod.
    pub pod: String,
    /// The user.
    pub user: String,
    /// What Redis said.
    pub answer: String,
}

/// What became of the users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Runs of redis-server that have them, but for those that were refused.
    pub runs: BTreeSet<String>,
    /// One that a node refused: there, it stays as it was.
    pub refusal: Option<Refusal>,
}

/// Gives these users to the nodes that responded, and removes those that are gone. A node that cannot be reached, or is another
/// process than the one that was observed, is left out.
pub async fn give(
    access: &Access,
    permit: &dyn Permit,
    pods: &[&Pod],
    users: &[User],
    gone: &[String],
) -> Given {
    let told = pods.iter().map(|&pod| async move {
        let told = tell(access, permit, pod, users, gone).await;
        told.inspect_err(|error| debug!(pod = pod.name, error = chain(error), "has not got its users"))
    });
    let told: Vec<_> = told.collect();
    let told: Vec<_> = stream::iter(told).buffer_unordered(AT_ONCE).collect().await;
    let mut given = Given::default();
    for (run, refusal) in told.into_iter().filter_map(Result::ok).flatten() {
        given.runs.insert(run);
        // The first by name, so that the message stays the same.
        given.refusal = given.refusal.into_iter().chain(refusal).min_by(|a, b| a.pod.cmp(&b.pod));
    }
    given
}

async fn tell(
    access: &Access,
    permit: &dyn Permit,
    pod: &Pod,
    users: &[User],
    gone: &[String],
) -> Result<Option<(String, Option<Refusal>)>, CommandError> {
    let Some((mut connection, run)) = connect_to(access, permit, pod).await? else { return Ok(None) };
    let mut refusal = None;
    for user in users {
        let mut command = cmd("ACL");
        command.arg("SETUSER").arg(&user.name).arg("reset").arg("on");
        for PasswordHash(hash) in &user.passwords {
            command.arg(format!("#{hash}"));
        }
        for rule in user.rules.split_whitespace() {
            command.arg(rule);
        }
        if !permit.holds_for(2 * COMMAND_DEADLINE) {
            return Ok(None);
        }
        if let Err(error) = connection.send::<()>("ACL SETUSER", &command).await {
            let Some(answer) = answer(&error) else { return Err(error) };
            let (pod, user) = (pod.name.clone(), user.name.clone());
            refusal.get_or_insert(Refusal { pod, user, answer });
        }
    }
    if !gone.is_empty() {
        connection.send::<()>("ACL DELUSER", cmd("ACL").arg("DELUSER").arg(gone)).await?;
    }
    Ok(Some((run, refusal)))
}
