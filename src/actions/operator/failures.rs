//! How a verb fails: the exit code, what was done, and the way out.

use std::error::Error;

use serde_json::Value;

use super::sources::FailureSource;
use super::{SourceVerb, Verb};
use crate::exit::{Exit, Failure};
use crate::lifecycle::api::known;
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::decide::Stuck;
use crate::lifecycle::doctor::{self, Scope, diagnose};
use crate::lifecycle::engine::{Account, ContentError, EngineError, Planned};
use crate::lifecycle::sources::Origin;
use crate::sentence::{Help, Sentence, first_of};
use crate::shell::command;

/// Whether a verb timed out before the doctor had found out why.
pub(super) fn is_unexplained(failure: &Failure) -> bool {
    let error = failure.error.downcast_ref::<EngineError>();
    matches!(error, Some(EngineError::TimedOut { suspicion: None, .. }))
}

/// Names the root cause of a wait that timed out, and its repairs, if the doctor finds one.
pub(super) fn explained(cluster: &mut dyn Cluster, verb: &Verb, failure: Failure) -> Failure {
    if let Verb::Source(verb) = verb {
        return match unconnected(cluster, verb) {
            Ok(Some(found)) => with_cause(failure, found),
            _ => failure,
        };
    }
    let Some((name, namespace)) = verb.subject() else { return failure };
    let scope = Scope { name: Some(name), namespace };
    let now = cluster.time_of_day();
    let Ok(seen) = doctor::observe(cluster, &scope, Some(now)) else { return failure };
    let diagnosis = diagnose(&seen, &scope);
    let (Some(cause), Some(operator)) = (diagnosis.causes.first(), diagnosis.operators.first()) else {
        return failure;
    };
    with_cause(failure, Stuck::of(cause, &operator.namespace))
}

fn with_cause(mut failure: Failure, found: Stuck) -> Failure {
    if let Some(EngineError::TimedOut { suspicion, .. }) = failure.error.downcast_mut::<EngineError>() {
        failure.help = found.help.clone().and(failure.help.into_sentences());
        *suspicion = Some(found);
    }
    failure
}

/// Why OLM is not connected to a catalog that was waited for: it does not run, or the catalog has no pod.
fn unconnected(cluster: &mut dyn Cluster, verb: &SourceVerb) -> Result<Option<Stuck>, ClusterError> {
    let (name, namespace, has_pod) = match verb {
        SourceVerb::Add { wanted, .. } => {
            (&wanted.name, Some(wanted.namespace.as_str()), !matches!(wanted.origin, Origin::Address(_)))
        }
        SourceVerb::Refresh { name, namespace } => (name, namespace.as_deref(), true),
        _ => return Ok(None),
    };
    let now = cluster.time_of_day();
    if let Some(cause) = doctor::olm_fault(cluster, now)? {
        return Ok(Some(Stuck::of_olm(&cause)));
    }
    let pods = cluster.list(&known::POD, namespace)?;
    let is_own = |pod: &Value| {
        pod.pointer("/metadata/labels").is_some_and(|labels| labels["olm.catalogSource"] == name.as_str())
    };
    if !has_pod || pods.iter().any(is_own) {
        return Ok(None);
    }
    let mut help = vec![Sentence::step(
        command!("olmkit olm status"),
        "shows whether OLM runs: it creates the catalog's pod",
    )];
    let effect = "shows what refused the pod, if something did";
    help.extend(
        namespace.map(|namespace| Sentence::step(command!("kubectl get events -n {}", namespace), effect)),
    );
    let sentence = format!("catalogsource/{name} has no pod: OLM has not created one");
    Ok(Some(Stuck { code: "catalog-pod-missing", sentence, help: help.into() }))
}

/// What is said when a verb was interrupted before it did something.
pub(super) const NOTHING_CHANGED: &str = "nothing was changed";
pub(super) const START_OVER: &str = "run the same command again to start over";
/// What is said when a verb did something and did not get to its end.
const RESUME: &str = "run the same command again to resume";

/// The writes that were done, as a sentence says them.
fn done_so_far(done: &[Planned]) -> String {
    let past = |verb| match verb {
        "create" => "created",
        "patch" => "changed",
        _ => "deleted",
    };
    let lines: Vec<String> =
        done.iter().map(|one| format!("{} {}", past(one.verb), one.key.placed())).collect();
    match lines.is_empty() {
        true => NOTHING_CHANGED.to_owned(),
        false => format!("done: {}", first_of(&lines, MOST_TOLD)),
    }
}

/// The writes that are named when a command is interrupted: enough to know where it was.
const MOST_TOLD: usize = 12;

/// What a verb had still to do, as a sentence says it. That it has waited for something is no news where it timed out.
fn left_to_do(account: &Account, exit: Exit) -> Option<String> {
    let Account { awaited, left, .. } = account;
    // What is waited for may be the first of what is left.
    let is_awaited =
        |one: &&String| one.split('`').nth(1).is_some_and(|name| awaited.contains(&format!("`{name}`")));
    let left = &left[usize::from(left.first().filter(is_awaited).is_some())..];
    let wait = (exit == Exit::Interrupted && !awaited.is_empty()).then(|| format!("wait for {awaited}"));
    let most = MOST_TOLD + usize::from(wait.is_some());
    let steps: Vec<&str> = wait.iter().chain(left).map(String::as_str).collect();
    (!steps.is_empty()).then(|| format!("left: {}", first_of(&steps, most)))
}

/// How a verb's failure ends the command, and the way out.
pub(in crate::actions) fn failure(error: EngineError, account: &Account) -> Failure {
    let (exit, mut help) = match &error {
        EngineError::Stuck(stuck) => (Exit::Failed, stuck.help.clone()),
        EngineError::Refused { help, .. } => (Exit::Failed, help.clone()),
        EngineError::Blocked { blocker, stop } => (Exit::Failed, blocker.ways_out(stop.as_deref())),
        EngineError::TimedOut { suspicion, .. } => {
            (Exit::TimedOut, suspicion.as_ref().map(|stuck| stuck.help.clone()).unwrap_or_default())
        }
        EngineError::Cluster(ClusterError::Interrupted) => (Exit::Interrupted, Help::default()),
        EngineError::Cluster(error @ ClusterError::TimedOut { .. }) => (Exit::TimedOut, error.help().into()),
        EngineError::Cluster(error) => (Exit::Incomplete, error.help().into()),
        EngineError::Rights { missing } => {
            let rules: Vec<Sentence> = missing.iter().map(|right| right.rule().into()).collect();
            (Exit::Incomplete, rules.into())
        }
        EngineError::Backup { .. } => (Exit::Incomplete, "choose a directory for them with --backup-dir".into()),
        EngineError::Bundle { source, .. } => match source {
            ContentError::NotFound { .. } => {
                (Exit::Failed, "push it again: what it stores has to fit the CRDs of that version".into())
            }
            _ => (
                Exit::Incomplete,
                "check the registry, and the credentials for it (--authfile, --creds): the CRDs of that version are read from there".into(),
            ),
        },
        EngineError::Catalog { source, .. } => {
            let elsewhere = "pass --catalog-from with a readable copy of the catalog";
            match source.downcast_ref() {
                // What is said of an interruption follows.
                Some(FailureSource(failure)) if failure.exit == Exit::Interrupted => {
                    (failure.exit, Help::default())
                }
                Some(FailureSource(failure)) => (failure.exit, failure.help.clone().or(elsewhere)),
                None => (Exit::Incomplete, elsewhere.into()),
            }
        }
    };
    let is_over = matches!(exit, Exit::Interrupted | Exit::TimedOut);
    let has_begun = !account.done.is_empty();
    if exit == Exit::Interrupted || is_over && has_begun {
        help = help.and(done_so_far(&account.done));
    }
    if let Some(left) =
        left_to_do(account, exit).filter(|_| is_over && (has_begun || exit == Exit::Interrupted))
    {
        help = help.and(left);
    }
    match (has_begun, exit) {
        (true, _) => {
            let resume = account.resume.clone().unwrap_or_else(|| RESUME.into());
            help = help.and(Sentence::from("changes were kept; ") + resume);
        }
        (false, Exit::Interrupted) => help = help.and(START_OVER),
        (false, _) => {}
    }
    Failure { exit, error: Box::<dyn Error + Send + Sync>::from(error), place: None, help }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::lifecycle::simulate::{Registry, Simulation};

    /// What is said of a catalog that OLM was not connected to in time.
    fn told(objects: Vec<Value>) -> String {
        let mut cluster = Simulation::new(Registry::default());
        for object in objects {
            cluster.store().create(object).unwrap();
        }
        cluster.run_until(Duration::from_secs(300));
        let verb = Verb::Source(SourceVerb::Refresh { name: "p".into(), namespace: Some("olm".into()) });
        let awaited = "catalogsource/p in olm to be READY; it is not connected yet".to_owned();
        let error = EngineError::TimedOut { after: Duration::from_secs(300), awaited, suspicion: None };
        let failure = explained(&mut cluster, &verb, failure(error, &Account::default()));
        format!("{failure}\n{}\n{}", failure.causes().join("\n"), failure.help)
    }

    #[test]
    fn a_catalog_that_olm_is_not_connected_to_in_time_is_explained() {
        let catalog_operator = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "catalog-operator", "namespace": "olm"}, "spec": {"replicas": 0},
        });
        let said = told(vec![catalog_operator]);
        let timed_out =
            "timed out after 5m waiting for catalogsource/p in olm to be READY; it is not connected yet\n";
        assert!(said.starts_with(timed_out), "{said}");
        assert!(
            said.contains("deployment `catalog-operator` in the namespace `olm` has no available pod"),
            "{said}"
        );
        assert!(said.contains("`olmkit olm status`"), "{said}");
        let said = told(Vec::new());
        assert!(said.contains("catalogsource/p has no pod: OLM has not created one"), "{said}");
        assert!(said.contains("`olmkit olm status`"), "{said}");
    }
}
