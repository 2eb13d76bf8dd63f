//! The loop itself: from what was seen to a decision, to what is done about it, until the goal is there or nothing leads to it.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::api::{Approval, Named, Object, Subscription, SubscriptionState, known, label};
use super::super::checks::{self, Check};
use super::super::cluster::ClusterError;
use super::super::decide::{Awaited, Decision, Goal, Step, Stuck, decide, remembered};
use super::super::doctor::{self, Diagnosis, Scope, diagnose};
use super::super::health;
use super::super::observe::Observed;
use super::super::patch::merge;
use super::attempt::{Attempt, EXAMINE, Suspicion};
use super::{Engine, EngineError, GRACE, Planned};
use crate::limits::span;
use crate::sentence::{Help, Sentence};
use crate::shell::command;

/// How long OLM may leave a Subscription alone while it could go on, before it is told to look again. It resolves on events, and
/// when the last one comes while a replaced version is still on its way out, nothing follows for minutes.
const IDLE: Duration = Duration::from_secs(20);
/// The same while it says that it unpacks a bundle.
const IDLE_UNPACKING: Duration = Duration::from_secs(60);

/// How long a version whose container has crashed must stay up at least.
const AFTER_CRASH: Duration = Duration::from_secs(15);

/// What is waited for, and what may keep it from coming.
type Awaiting = (String, Option<Suspicion>);

impl Engine<'_> {
    /// Drives an operator to a goal, and leaves its Subscription as it was but for that.
    ///
    /// # Errors
    /// It got stuck, it took too long, or the cluster does not answer or allow it.
    pub fn reach(
        &mut self,
        namespace: &str,
        subscription: &str,
        goal: &Goal,
    ) -> Result<Observed, EngineError> {
        let mut attempt = Attempt::begin(self.cluster.now(), self.deadline(), self.options.settle);
        loop {
            let now = self.cluster.now();
            if attempt.last_look.is_some_and(|at| now >= at) {
                self.cluster.look_again();
                attempt.last_look = None;
            }
            let looked = self.look(namespace, subscription);
            let observed = looked.map_err(|error| self.while_waiting(error, attempt.suspicion()))?;
            self.still_to_do(to_come(goal, &observed));
            attempt.is_examined = false;
            let decision = decide(goal, &observed);
            if !matches!(decision, Decision::Act(_) | Decision::Arrived) {
                attempt.well_since = None;
            }
            let (awaited, suspicion) = match decision {
                Decision::Stuck(stuck) => return Err(EngineError::Stuck(stuck)),
                Decision::Act(step) => match self.act_once(&observed, step, &mut attempt)? {
                    Some(awaiting) => awaiting,
                    None => continue,
                },
                Decision::Arrived => match self.settled(goal, &observed, &mut attempt)? {
                    Some(awaiting) => awaiting,
                    None => {
                        self.waits_no_more();
                        return Ok(observed);
                    }
                },
                Decision::Suspect(awaited, stuck) => (self.sentence(&awaited), Some(grace(stuck))),
                Decision::Wait(awaited) => self.await_olm(&observed, subscription, &awaited, &mut attempt)?,
            };
            self.awaited.clone_from(&awaited);
            let now = self.cluster.now();
            attempt.suspect(suspicion, now);
            if let Some(stuck) = attempt.given_up(now) {
                return Err(EngineError::Stuck(stuck));
            }
            if now >= attempt.deadline {
                let (after, suspicion) = (self.options.timeout, attempt.suspicion());
                return Err(EngineError::TimedOut { after, awaited, suspicion });
            }
            self.cluster.wait(attempt.next_wake(now))?;
        }
    }

    /// Does a step, unless what is installed is not well, or the step was done just now: the server took it and nothing came of it, and
    /// done over and over it would only load the server. Says what is waited for then.
    fn act_once(
        &mut self,
        observed: &Observed,
        step: Step,
        attempt: &mut Attempt,
    ) -> Result<Option<Awaiting>, EngineError> {
        if let (Step::Approve { .. }, Some(csv)) = (&step, observed.installed())
            && csv.name() != attempt.checked
        {
            let name = csv.name().to_owned();
            if let Some(wrong) = self.failed_check(observed, &name)? {
                return Ok(Some(("a healthy version to upgrade from".to_owned(), Some(grace(wrong)))));
            }
            attempt.checked = name;
        }
        if attempt.has_just_done(&step, self.cluster.now()) {
            return Ok(Some((without_effect(&step, observed), None)));
        }
        if self.act(observed, step.clone())? {
            self.told_lines.clear();
            attempt.done = Some((step, self.cluster.now()));
        }
        Ok(None)
    }

    /// Whether the last version has been up for long enough; says what is waited for while it has not.
    fn settled(
        &mut self,
        goal: &Goal,
        observed: &Observed,
        attempt: &mut Attempt,
    ) -> Result<Option<Awaiting>, EngineError> {
        let name = goal.way.last().cloned().unwrap_or_default();
        let wrong = self.failed_check(observed, &name)?;
        let now = self.cluster.now();
        if wrong.is_some() {
            attempt.well_since = None;
        } else {
            // Seen only at the last look, it may have been up for long.
            let before = match attempt.last_look {
                None if attempt.well_since.is_none() => self.up_for(observed, &name),
                _ => Duration::ZERO,
            };
            let since = *attempt.well_since.get_or_insert(now.saturating_sub(before));
            attempt.settle = match observed.has_crashed(&name) {
                true => self.options.settle.max(AFTER_CRASH.min(attempt.time / 2)),
                false => self.options.settle,
            };
            if now.saturating_sub(since) >= attempt.settle {
                return Ok(None);
            }
        }
        Ok(Some(("the new version to settle".to_owned(), wrong.map(grace))))
    }

    /// Says what OLM is waited for, and what keeps it; wakes it where it does nothing though it could.
    fn await_olm(
        &mut self,
        observed: &Observed,
        subscription: &str,
        awaited: &Awaited,
        attempt: &mut Attempt,
    ) -> Result<Awaiting, EngineError> {
        let now = self.cluster.now();
        let is_idle = matches!(awaited, Awaited::Plan(_)) && is_idle(observed);
        let (since, patience) =
            (attempt.idle.map_or(now, |(since, _)| since), patience_with_idleness(observed));
        attempt.idle = is_idle.then_some((since, patience));
        if is_idle && now.saturating_sub(since) >= patience {
            self.wake(observed, now - since)?;
            attempt.idle = Some((now, patience));
        }
        attempt.is_examined = self.options.wait && !matches!(awaited, Awaited::Approval(_));
        let mut suspicion = None;
        if attempt.is_examined {
            let cause = self.examine(&observed.namespace, subscription, awaited);
            suspicion = cause.map_err(|error| self.while_waiting(error.into(), attempt.suspicion()))?;
        }
        Ok((self.sentence(awaited), suspicion))
    }

    /// How long a version has been up, as far as it says.
    fn up_for(&self, observed: &Observed, csv: &str) -> Duration {
        let since = observed.csv(csv).and_then(|csv| {
            let status = &csv.document()["status"];
            doctor::parse_time(status["lastTransitionTime"].as_str()?)
        });
        let passed = since.map_or(0, |since| self.cluster.time_of_day() - since);
        Duration::from_millis(u64::try_from(passed).unwrap_or_default())
    }

    /// What the doctor says of the operators in a scope.
    pub(in crate::lifecycle) fn diagnosis(&mut self, scope: &Scope) -> Result<Diagnosis, ClusterError> {
        let now = self.cluster.time_of_day();
        let seen = doctor::observe(self.cluster, scope, Some(now))?;
        Ok(diagnose(&seen, scope))
    }

    /// What the doctor says of an operator that is waited for. A cause is told as soon as it is seen.
    fn examine(
        &mut self,
        namespace: &str,
        subscription: &str,
        awaited: &Awaited,
    ) -> Result<Option<Suspicion>, ClusterError> {
        let now = self.cluster.now();
        let is_fresh = self.examined.as_ref().is_some_and(|(at, _)| now < *at + EXAMINE);
        if !is_fresh {
            // What a plan brings besides has a Subscription of its own.
            let name = match awaited {
                Awaited::Success(csv) => csv,
                _ => subscription,
            };
            let scope = Scope { name: Some(name.into()), namespace: Some(namespace.into()) };
            let found = match self.diagnosis(&scope) {
                Ok(diagnosis) => diagnosis.causes.into_iter().next(),
                Err(error @ (ClusterError::Interrupted | ClusterError::TimedOut { .. })) => {
                    return Err(error);
                }
                // It will be asked again, and what is waited for does not depend on it.
                Err(_) => None,
            };
            self.examined = Some((now, found));
        }
        let Some((_, Some(cause))) = &self.examined else { return Ok(None) };
        // To wait for an installed version, the next one need not be found.
        let concerns = matches!(awaited, Awaited::Plan(_)) || !cause.is_upstream();
        if !concerns || cause.code == doctor::APPROVAL_REQUIRED {
            return Ok(None);
        }
        let (stuck, patience, code) = (Stuck::of(cause, namespace), cause.patience(), cause.code);
        if self.told_cause != code {
            self.told_cause = code;
            self.say(stuck.sentence.as_str());
        }
        Ok(Some(Suspicion { stuck, patience }))
    }

    /// Refuses where a verb cannot succeed: the Subscription is being deleted, or what the doctor knows that OLM does not get over.
    pub(in crate::lifecycle) fn check(&mut self, observed: &Observed) -> Result<(), EngineError> {
        let namespace = &observed.namespace;
        let now = self.cluster.time_of_day();
        let Some(subscription) = &observed.subscription else {
            let scope = Scope { name: None, namespace: Some(namespace.clone()) };
            let seen = doctor::observe(self.cluster, &scope, Some(now))?;
            return match doctor::blocked_namespace(&seen, namespace) {
                Some(cause) => Err(EngineError::Stuck(Stuck::of(&cause, namespace))),
                None => Ok(()),
            };
        };
        if let Some(going) = health::going(subscription) {
            return Err(EngineError::refused_help(
                going,
                "wait until it is gone, then run the command again",
            ));
        }
        let scope = Scope { name: Some(subscription.name().into()), namespace: Some(namespace.clone()) };
        let diagnosis = self.diagnosis(&scope)?;
        match diagnosis.causes.iter().find(|cause| doctor::BLOCKING.contains(&cause.code)) {
            Some(cause) => Err(EngineError::Stuck(Stuck::of(cause, namespace))),
            None => Ok(()),
        }
    }

    /// Refuses while OLM itself does not run: nothing would come of what is written. It may just be starting, so it is waited for; where
    /// nothing is waited for, that is only told.
    ///
    /// # Errors
    /// It does not run, or the cluster does not answer.
    pub fn olm_runs(&mut self) -> Result<(), EngineError> {
        let limit = GRACE.min(self.deadline().saturating_sub(self.cluster.now()));
        let deadline = self.cluster.now() + limit;
        let mut seen: Option<Stuck> = None;
        loop {
            let today = self.cluster.time_of_day();
            let found = match doctor::olm_fault(self.cluster, today) {
                Err(error) => return Err(self.while_waiting(error.into(), seen)),
                Ok(found) => found,
            };
            let Some(cause) = found else {
                self.waits_no_more();
                return Ok(());
            };
            let stuck = Stuck::of_olm(&cause);
            if !self.options.wait || self.options.dry_run {
                self.say(stuck.sentence);
                return Ok(());
            }
            let now = self.cluster.now();
            if now >= deadline {
                return Err(EngineError::Stuck(stuck));
            }
            if seen.is_none() {
                self.say(format!("{}; waiting for it (up to {})", stuck.sentence, span(limit)));
                self.waits_for("OLM to run".to_owned());
            }
            seen = Some(stuck);
            self.cluster.wait((deadline - now).min(EXAMINE))?;
        }
    }

    /// Makes OLM look at a Subscription again: any change of it does. An annotation comes and goes.
    fn wake(&mut self, observed: &Observed, idle: Duration) -> Result<(), EngineError> {
        let Some(key) = observed.subscription.as_ref().map(Object::key) else { return Ok(()) };
        self.say(format!("OLM has done nothing for {} s; touching {key}", idle.as_secs()));
        for value in [json!(format!("{}", self.elapsed().as_secs())), Value::Null] {
            let patch = json!({"metadata": {"annotations": {label::LOOK_AGAIN: value}}});
            // It is only to be of help: OLM looks again by itself, later.
            let patched = self.cluster.patch(&known::SUBSCRIPTION, &key, &patch);
            if let Err(error @ (ClusterError::Interrupted | ClusterError::TimedOut { .. })) = patched {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// What is wrong with a version that has come up, if anything is.
    fn failed_check(&mut self, observed: &Observed, csv: &str) -> Result<Option<Stuck>, EngineError> {
        let Some(csv) = observed.csv(csv) else { return Ok(None) };
        let checks = checks::after_hop(self.cluster, observed, csv)?;
        let fault = checks.into_iter().find_map(|Check { what, fault }| Some((what, fault?)));
        Ok(fault.map(|(what, fault)| Stuck {
            code: "check-failed",
            sentence: format!(
                "`{}` succeeded, but the post-install check failed: {what}: {fault}",
                csv.name()
            ),
            help: Help::default(),
        }))
    }

    /// What an error means that came while something was waited for: that says more than what was asked for last.
    pub(in crate::lifecycle) fn while_waiting(
        &self,
        error: EngineError,
        suspicion: Option<Stuck>,
    ) -> EngineError {
        match error {
            EngineError::Cluster(ClusterError::TimedOut { last, .. }) if !self.awaited.is_empty() => {
                let heard =
                    last.map(|said| Stuck { code: "trouble", sentence: said.0, help: Help::default() });
                let (after, awaited) = (self.options.timeout, self.awaited.clone());
                EngineError::TimedOut { after, awaited, suspicion: suspicion.or(heard) }
            }
            error => error,
        }
    }

    /// Does a step; says whether somebody else's write did not come in between.
    fn act(&mut self, observed: &Observed, step: Step) -> Result<bool, EngineError> {
        let Some(subscription) = &observed.subscription else { return Ok(false) };
        let done = match step {
            Step::Hold { channel, remember } => {
                let mut patch = holding(subscription, channel.as_deref(), remember.as_ref());
                merge(&mut patch, &json!({"metadata": version_of(subscription)}));
                self.patch(&known::SUBSCRIPTION, &subscription.key(), patch)
            }
            Step::Approve { plan, .. } => {
                let Some(plan) = observed.plans.iter().find(|found| found.name() == plan) else {
                    return Ok(false);
                };
                let csvs = &plan.spec.cluster_service_version_names;
                if csvs.len() > 1 {
                    self.say(format!("approving {}: {}", plan.key(), csvs.join(" ")));
                }
                let patch = json!({"metadata": version_of(plan), "spec": {"approved": true}});
                self.patch(&known::INSTALL_PLAN, &plan.key(), patch)
            }
        };
        match done {
            // Somebody else was at it: what is there now is looked at again.
            Err(EngineError::Cluster(
                error @ (ClusterError::Conflict { .. } | ClusterError::NotFound { .. }),
            )) => self.overtaken(error).map(|()| false),
            done => done.map(|()| true),
        }
    }

    /// Gives a Subscription back the approval that it had. One that was Automatic stays Manual below the channel's head,
    /// since OLM would go on to it at once.
    pub(in crate::lifecycle) fn restore(
        &mut self,
        namespace: &str,
        subscription: &str,
        at_head: bool,
    ) -> Result<Observed, EngineError> {
        loop {
            let observed = self.look(namespace, subscription)?;
            let Some((found, before)) =
                observed.subscription.as_ref().and_then(|found| Some((found, remembered(found)?)))
            else {
                return Ok(observed);
            };
            let mut patch = self.restoring(found, &before, at_head);
            merge(&mut patch, &json!({"metadata": version_of(found)}));
            match self.patch(&known::SUBSCRIPTION, &found.key(), patch) {
                Err(EngineError::Cluster(error @ ClusterError::Conflict { .. })) => self.overtaken(error)?,
                done => done?,
            }
            if self.options.dry_run {
                return Ok(observed);
            }
        }
    }

    /// The patch that gives a Subscription back the approval that it had, and says so where it stays another one.
    pub(in crate::lifecycle) fn restoring(
        &self,
        subscription: &Object<Subscription>,
        before: &Approval,
        at_head: bool,
    ) -> Value {
        let keep = *before == Approval::Automatic && !at_head;
        if keep {
            let (name, namespace) = (subscription.name(), subscription.namespace());
            let upgrade = command!("olmkit operator upgrade {} -n {} --approval Automatic", name, namespace);
            self.say(
                Sentence::from(
                    "the approval stays Manual, because with Automatic OLM would upgrade to the channel's head; ",
                ) + upgrade
                    + " changes it",
            );
        }
        let approval = if keep { &Approval::Manual } else { before };
        json!({
            "metadata": {"annotations": {label::APPROVAL_BEFORE: null}},
            "spec": {"installPlanApproval": approval.as_str()},
        })
    }

    fn sentence(&self, awaited: &Awaited) -> String {
        match awaited {
            Awaited::Group => "exactly one OperatorGroup in the namespace".to_owned(),
            Awaited::Plan(csv) => format!("an InstallPlan for `{csv}`"),
            Awaited::Steps(plan) => format!("the steps of installplan/{plan}"),
            Awaited::Approval(plan) => {
                let is_it = |one: &Planned| {
                    one.key.kind == known::INSTALL_PLAN.kind
                        && one.key.name == *plan
                        && one.document.pointer("/spec/approved") == Some(&Value::Bool(true))
                };
                match self.planned.iter().any(is_it) {
                    true => format!(
                        "installplan/{plan} to be approved, although the server has accepted the patch"
                    ),
                    false => format!("approval of installplan/{plan}"),
                }
            }
            Awaited::Install(plan) => format!("installplan/{plan} to install"),
            Awaited::Success(csv) => format!("`{csv}` to succeed"),
            Awaited::Replacement(csv) => format!("`{csv}` to be replaced"),
            Awaited::Bookkeeping(csv) => format!("the Subscription to record `{csv}`"),
        }
    }
}

/// What is to be done until a goal is reached, as far as it can be seen.
fn to_come(goal: &Goal, observed: &Observed) -> Vec<String> {
    let last = goal.way.iter().rposition(|name| observed.csv(name).is_some());
    let is_up = |at: usize| observed.csv(&goal.way[at]).is_some_and(|csv| csv.succeeded());
    // A version that is there, and all before it, were installed; whether it has come up is another matter.
    let begin = last.map_or(0, |at| if is_up(at) { at + 1 } else { at });
    let versions = goal.way.iter().skip(begin);
    let before = observed.subscription.as_ref().and_then(|found| remembered(found));
    versions
        .map(|name| format!("install `{name}`"))
        .chain(before.map(|before| format!("restore the approval mode {}", before.as_str())))
        .collect()
}

/// A failed check, which may pass within a minute.
fn grace(stuck: Stuck) -> Suspicion {
    Suspicion { stuck, patience: GRACE }
}

/// Whether OLM takes a Subscription for settled: what it has chosen is installed and up.
fn is_idle(observed: &Observed) -> bool {
    observed.subscription.as_ref().is_some_and(|found| {
        let status = &found.status;
        status.state == SubscriptionState::AtLatestKnown
            && status.installed_csv == status.current_csv
            && observed.installed().is_some_and(|csv| csv.succeeded())
    })
}

/// How long OLM may do nothing. It says `BundleUnpacking` while it unpacks the next bundle, and may say so long after: what it said
/// before its newest plan was about the bundle of that plan.
fn patience_with_idleness(observed: &Observed) -> Duration {
    let newest = observed.plans.first().and_then(|plan| plan.metadata.creation_timestamp.as_ref());
    let newest = newest.map(|time| time.0.as_millisecond());
    let conditions = observed.subscription.iter().flat_map(|found| {
        found.document().pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
    });
    let is_unpacking = |one: &Value| {
        let since = one["lastTransitionTime"].as_str().and_then(doctor::parse_time);
        one["type"] == "BundleUnpacking" && one["status"] == "True" && since > newest
    };
    if conditions.into_iter().any(is_unpacking) { IDLE_UNPACKING } else { IDLE }
}

/// The patch that makes a Subscription's plans wait for approval, and changes its channel.
pub(in crate::lifecycle) fn holding(
    subscription: &Subscription,
    channel: Option<&str>,
    remember: Option<&Approval>,
) -> Value {
    let mut patch = json!({});
    if let Some(channel) = channel {
        patch["spec"]["channel"] = json!(channel);
    }
    if let Some(before) = remember {
        patch["spec"]["installPlanApproval"] = json!(Approval::Manual.as_str());
        if remembered(subscription).is_none() {
            patch["metadata"]["annotations"][label::APPROVAL_BEFORE] = json!(before.as_str());
        }
    }
    patch
}

/// The version that a patch is about, so that it does not undo what somebody else did meanwhile.
fn version_of<T: Named>(object: &Object<T>) -> Value {
    json!({"resourceVersion": object.metadata().resource_version})
}

/// What is waited for when a step that was done shows no effect.
fn without_effect(step: &Step, observed: &Observed) -> String {
    let what = match step {
        Step::Approve { plan, .. } => format!("installplan/{plan} to be approved"),
        Step::Hold { .. } => {
            let key = observed.subscription.as_ref().map(|found| found.key().to_string());
            format!("{} to be held", key.unwrap_or_default())
        }
    };
    format!("{what}, although the server has accepted the patch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_does_not_come_up_is_left_and_none_before_it() {
        let csv = |name: &str, phase: &str| {
            let csv = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": {"name": name, "namespace": "ns"}, "status": {"phase": phase},
            });
            Object::read(csv).unwrap()
        };
        let goal = Goal { way: ["v1", "v2", "v3"].map(String::from).into(), ..Goal::default() };
        let left = |csvs| to_come(&goal, &Observed { csvs, ..Observed::default() });
        assert_eq!(left(vec![]).len(), 3);
        assert_eq!(left(vec![csv("v2", "Installing")]), ["install `v2`", "install `v3`"]);
        assert_eq!(left(vec![csv("v1", "Replacing"), csv("v2", "Succeeded")]), ["install `v3`"]);
    }
}
