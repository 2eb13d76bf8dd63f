//! Gives directives to running nodes: CONFIG SET, all of them at once to each node, so that a node takes all or none.

use std::collections::{BTreeMap, BTreeSet};

use redis::cmd;
use tracing::debug;

use super::{Access, COMMAND_DEADLINE, CommandError, Connection, act::Permit};
use crate::{plan::Pod, telemetry::chain};

/// Directives with their values, as CONFIG SET takes them.
pub type Directives = BTreeMap<String, String>;

/// A directive that Redis refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Redis in pod {pod} refused spec.config.{directive} `{value}`: {answer}")]
pub struct Refusal {
    /// The pod.
    pub pod: String,
    /// The directive, or all of them where Redis did not say which.
    pub directive: String,
    /// Its value.
    pub value: String,
    /// What Redis said.
    pub answer: String,
}

/// What became of the directives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// Runs of redis-server that have taken them.
    pub runs: BTreeSet<String>,
    /// The first refusal. Later nodes were not asked.
    pub refusal: Option<Refusal>,
}

/// Gives these directives to the nodes that responded, one after the other, up to the first that refuses. One that cannot be
/// reached, or is another process than the one that was observed, is left out.
pub async fn configure<'a>(
    access: &Access,
    permit: &dyn Permit,
    pods: impl IntoIterator<Item = &'a Pod>,
    directives: &Directives,
) -> Configured {
    let mut configured = Configured::default();
    for pod in pods {
        match give(access, permit, pod, directives).await {
            Ok(Some(run)) => drop(configured.runs.insert(run)),
            Ok(None) => {}
            Err(error) => {
                let Some(answer) = answer(&error) else {
                    debug!(pod = pod.name, error = chain(&error), "not configured");
                    continue;
                };
                configured.refusal = Some(refusal(pod, directives, answer));
                return configured;
            }
        }
    }
    configured
}

/// What Redis said, if it refused the values.
pub(super) fn answer(error: &CommandError) -> Option<String> {
    match error {
        CommandError::Failed { command: "CONFIG SET" | "ACL SETUSER", source }
            if source.code() == Some("ERR") =>
        {
            Some(source.detail().map_or_else(|| source.to_string(), str::to_owned))
        }
        _ => None,
    }
}

async fn give(
    access: &Access,
    permit: &dyn Permit,
    pod: &Pod,
    directives: &Directives,
) -> Result<Option<String>, CommandError> {
    let Some((mut connection, run)) = connect_to(access, permit, pod).await? else { return Ok(None) };
    let mut command = cmd("CONFIG");
    command.arg("SET");
    for (directive, value) in directives {
        command.arg(directive).arg(value);
    }
    connection.send::<()>("CONFIG SET", &command).await?;
    Ok(Some(run))
}

/// A connection to the very process that was observed, and its run id.
pub(super) async fn connect_to(
    access: &Access,
    permit: &dyn Permit,
    pod: &Pod,
) -> Result<Option<(Connection, String)>, CommandError> {
    let (Some(ip), Some(node)) = (pod.ip, &pod.redis) else { return Ok(None) };
    let mut connection = access.connect(ip).await?;
    if !permit.holds_for(2 * COMMAND_DEADLINE) {
        return Ok(None);
    }
    // An address can pass to another pod, even of another cluster.
    let info: String = connection.send("INFO", cmd("INFO").arg("server")).await?;
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).map(str::trim_end);
    Ok((run == Some(&*node.run_id)).then(|| (connection, node.run_id.clone())))
}

/// Redis names the directive in quotes.
fn refusal(pod: &Pod, directives: &Directives, answer: String) -> Refusal {
    let named = directives.iter().find(|(directive, _)| answer.contains(&format!("'{directive}'")));
    let all = || directives.keys().cloned().collect::<Vec<_>>().join(", ");
    Refusal {
        pod: pod.name.clone(),
        directive: named.map_or_else(all, |(directive, _)| directive.clone()),
        value: named.map(|(_, value)| value.clone()).unwrap_or_default(),
        answer,
    }
}
