//! What comes next on the way to a goal: one step, a wait, or the reason why the goal is out of reach. Pure: no client, no clock.
//!
//! The rules are OLM's (see [`super::simulate`]); what is decided here never goes against them. A plan is approved only when
//! it waits for that, leads to the next bundle of the way and carries nothing else that was not accepted; nothing is decided by what OLM is known
//! to leave stale. Why OLM does not go on is not decided here: [`super::doctor`] knows, and the engine asks it while it waits.

use std::collections::BTreeSet;

use super::api::{
    Approval, ClusterServiceVersion, CsvPhase, InstallPlan, InstallPlanPhase, Named as _, Object,
    Subscription, label,
};
use super::blockers;
use super::doctor::{Cause, FIXABLE, Repair};
use super::observe::Observed;
use crate::sentence::{Help, Sentence};
use crate::shell::command;

/// Where to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// The bundles that are to be installed one after another. The first may be installed already.
    pub way: Vec<String>,
    /// Whether plans are approved here: the Subscription is made Manual first.
    pub approve: bool,
    /// The channel that the Subscription is to follow; none to leave it.
    pub channel: Option<String>,
    /// What a plan may carry as well; one that carries what is named here is approved.
    pub accept: Accept,
}

/// What a plan may carry besides the bundle that it is approved for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// ClusterServiceVersions by name: dependencies, or those of other Subscriptions.
    pub csvs: BTreeSet<String>,
    /// Whatever OLM adds as a dependency.
    pub dependencies: bool,
    /// What keeps OLM from installing a version, by the codes of [`super::blockers`].
    pub codes: BTreeSet<String>,
}

impl Accept {
    /// What `--accept` names: codes of blockers, and ClusterServiceVersions.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        let (codes, csvs) = names.into_iter().partition(|name| blockers::CODES.contains(&name.as_str()));
        Self { csvs, codes, dependencies: false }
    }
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Something is to be done.
    Act(Step),
    /// OLM has something to do.
    Wait(Awaited),
    /// What stands there would never get anywhere, but OLM may not have looked again yet: a Subscription's status is that of its old
    /// channel for a while after the channel has changed.
    Suspect(Awaited, Stuck),
    /// The last bundle of the way is installed, and its predecessor is gone.
    Arrived,
    /// Nothing will come of waiting.
    Stuck(Stuck),
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Plans are to wait for approval, and the channel is to be this one.
    Hold {
        /// The new channel, where it changes.
        channel: Option<String>,
        /// The approval that is to be remembered, where it changes.
        remember: Option<Approval>,
    },
    /// A plan is to be approved.
    Approve {
        /// Its name.
        plan: String,
        /// What it carries.
        csvs: Vec<String>,
    },
}

/// What OLM is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The one OperatorGroup that OLM needs.
    Group,
    /// A plan that leads to a bundle.
    Plan(String),
    /// The steps of a plan.
    Steps(String),
    /// Somebody's approval of a plan.
    Approval(String),
    /// The end of a plan.
    Install(String),
    /// A ClusterServiceVersion that succeeds.
    Success(String),
    /// A predecessor's end.
    Replacement(String),
    /// A Subscription that knows what is installed.
    Bookkeeping(String),
}

/// Why nothing will come of waiting: a cause that the doctor found, or a goal that is out of reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Stuck {
    /// A word for programs; for a cause of the doctor, its code.
    pub code: &'static str,
    /// In a sentence.
    pub sentence: String,
    /// The way out.
    pub help: Help,
}

impl Stuck {
    fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), help: Help::default() }
    }

    fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = help.into();
        self
    }

    /// What the doctor found: its sentence and code, the first repairs that fit a line, and where there is more.
    pub fn of(cause: &Cause, namespace: &str) -> Self {
        const MOST: usize = 2;
        const LONGEST: usize = 200;
        let fits = |line: &str| !line.contains('\n') && line.len() <= LONGEST;
        let repairs = cause.repair.iter().filter(|repair| fits(&repair.command.to_string()));
        let mut help: Vec<Sentence> = repairs.take(MOST).map(Repair::step).collect();
        if FIXABLE.contains(&cause.code) {
            let effect = "repairs it where that interrupts nothing and loses nothing";
            help.push(Sentence::step(cause.doctor(namespace).then(" --fix", &[]), effect));
        }
        let effect = "shows what the cause was seen by, and every repair";
        help.push(Sentence::step(cause.doctor(namespace), effect));
        Self { code: cause.code, sentence: format!("{} [{}]", cause.sentence, cause.code), help: help.into() }
    }

    /// What the doctor found about OLM itself, which is about no operator.
    pub fn of_olm(cause: &Cause) -> Self {
        let help: Vec<Sentence> = cause.repair.iter().map(Repair::step).collect();
        Self { code: cause.code, sentence: format!("{} [{}]", cause.sentence, cause.code), help: help.into() }
    }
}

/// What comes next.
pub fn decide(goal: &Goal, observed: &Observed) -> Decision {
    let Some(subscription) = &observed.subscription else {
        return Decision::Stuck(Stuck::new("no-subscription", "the Subscription does not exist"));
    };
    // With none or several OLM does nothing in the namespace.
    if observed.groups.len() != 1 {
        return Decision::Wait(Awaited::Group);
    }
    if let Some(step) = hold(goal, subscription) {
        return Decision::Act(step);
    }
    let Some(destination) = goal.way.last() else { return Decision::Arrived };
    if is_passed(goal, observed, subscription, destination) {
        return Decision::Arrived;
    }
    let reached = goal.way.iter().rposition(|name| observed.csv(name).is_some());
    // What has come up last decides whether it may go on.
    if let Some((at, csv)) = reached.and_then(|at| Some((at, observed.csv(&goal.way[at])?))) {
        if let Some(decision) = unfinished(csv) {
            return decision;
        }
        // What was installed before is no concern of a hop.
        let is_new = at > 0 || csv.name() == destination;
        if let Some(decision) = incomplete(observed, csv).filter(|_| is_new) {
            return decision;
        }
        if csv.name() == destination {
            return arrived(observed, subscription, csv);
        }
        if subscription.status.installed_csv != csv.name() && subscription.status.current_csv != csv.name() {
            return Decision::Wait(Awaited::Bookkeeping(csv.name().to_owned()));
        }
    }
    let next = &goal.way[reached.map_or(0, |at| at + 1)];
    hop(goal, observed, subscription, next)
}

/// Whether the last bundle was installed and OLM, which approves by itself, has gone on to another one.
fn is_passed(goal: &Goal, observed: &Observed, subscription: &Subscription, destination: &str) -> bool {
    let complete = |plan: &Object<InstallPlan>| {
        plan.status.phase == InstallPlanPhase::Complete
            && plan.spec.cluster_service_version_names.iter().any(|name| name == destination)
    };
    subscription.spec.install_plan_approval == Approval::Automatic
        && observed.csv(destination).is_none()
        && observed.installed().is_some_and(|csv| goal.way.iter().all(|name| name != csv.name()))
        && observed.plans.iter().any(complete)
}

/// Plans must wait for us before anything else is changed.
pub(super) fn hold(goal: &Goal, subscription: &Object<Subscription>) -> Option<Step> {
    let spec = &subscription.spec;
    let channel = goal.channel.clone().filter(|channel| *channel != spec.channel);
    let remember = (goal.approve && spec.install_plan_approval != Approval::Manual)
        .then(|| spec.install_plan_approval.clone());
    (channel.is_some() || remember.is_some()).then_some(Step::Hold { channel, remember })
}

/// The decision about a ClusterServiceVersion that is not up; none when it is.
fn unfinished(csv: &Object<ClusterServiceVersion>) -> Option<Decision> {
    let name = csv.name().to_owned();
    match &csv.status.phase {
        _ if csv.is_being_deleted() => Some(Decision::Wait(Awaited::Replacement(name))),
        CsvPhase::Succeeded => None,
        CsvPhase::Replacing | CsvPhase::Deleting => Some(Decision::Wait(Awaited::Replacement(name))),
        _ => Some(Decision::Wait(Awaited::Success(name))),
    }
}

/// The decision about the plan of a version that is up, which may come before its plan has failed at a CRD: that keeps its old
/// form then. None when the plan is complete and all that it carries has come up, or when it is gone.
fn incomplete(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Option<Decision> {
    let mut plans = observed.plans.iter().filter(|plan| plan.spec.approved);
    let plan =
        plans.find(|plan| plan.spec.cluster_service_version_names.iter().any(|name| name == csv.name()))?;
    if plan.status.phase != InstallPlanPhase::Complete {
        return Some(Decision::Wait(Awaited::Install(plan.name().to_owned())));
    }
    // A version may succeed without its dependencies; an approved plan is done when both are.
    let mut carried = plan.spec.cluster_service_version_names.iter().filter_map(|name| observed.csv(name));
    let unfinished = carried.find(|one| {
        !matches!(one.status.phase, CsvPhase::Succeeded | CsvPhase::Replacing | CsvPhase::Deleting)
    })?;
    Some(Decision::Wait(Awaited::Success(unfinished.name().to_owned())))
}

/// The destination is up; what it replaced has to go, and the Subscription to know it.
fn arrived(
    observed: &Observed,
    subscription: &Object<Subscription>,
    csv: &Object<ClusterServiceVersion>,
) -> Decision {
    if let Some(old) = observed.csv(&csv.spec.replaces) {
        return Decision::Wait(Awaited::Replacement(old.name().to_owned()));
    }
    if subscription.status.installed_csv == csv.name() {
        return Decision::Arrived;
    }
    Decision::Wait(Awaited::Bookkeeping(csv.name().to_owned()))
}

/// On the way to the next bundle.
fn hop(goal: &Goal, observed: &Observed, subscription: &Object<Subscription>, next: &str) -> Decision {
    let Some(plan) = observed.open_plan(next) else {
        return without_plan(goal, observed, subscription, next);
    };
    match plan.status.phase {
        InstallPlanPhase::None | InstallPlanPhase::Planning => {
            Decision::Wait(Awaited::Steps(plan.name().to_owned()))
        }
        InstallPlanPhase::RequiresApproval if !plan.spec.approved => approve(goal, plan, next),
        _ => Decision::Wait(Awaited::Install(plan.name().to_owned())),
    }
}

/// A plan that waits for approval gets it when it carries what was named and no more.
pub(super) fn approve(goal: &Goal, plan: &Object<InstallPlan>, next: &str) -> Decision {
    let names = plan.spec.cluster_service_version_names.iter().map(String::as_str);
    let more = names.filter(|name| *name != next && !goal.accept.csvs.contains(*name));
    let (dependencies, others): (Vec<&str>, Vec<&str>) =
        more.partition(|name| plan.dependencies().contains(name));
    let dependencies = if goal.accept.dependencies { Vec::new() } else { dependencies };
    if !others.is_empty() {
        let all = [others.clone(), dependencies].concat();
        let stuck = Stuck::new(
            "plan-carries-more",
            format!("{} also contains `{}`: approving it approves everything", plan.key(), all.join("`, `")),
        );
        return Decision::Stuck(stuck.help(format!(
            "pass `--accept {}`, or use a separate namespace for the other Subscription",
            all.join(",")
        )));
    }
    if !dependencies.is_empty() {
        let stuck = Stuck::new(
            "plan-carries-dependencies",
            format!(
                "{} also contains `{}`, which `{next}` depends on",
                plan.key(),
                dependencies.join("`, `")
            ),
        );
        return Decision::Stuck(stuck.help(format!(
            "pass `--accept {}`, or `--accept-dependencies` for all dependencies",
            dependencies.join(",")
        )));
    }
    // A plan that waits only because of a neighbour's Manual approval was approved by naming what it carries.
    let accepted = plan.spec.cluster_service_version_names.iter().any(|name| goal.accept.csvs.contains(name));
    if !goal.approve && !accepted {
        return Decision::Wait(Awaited::Approval(plan.name().to_owned()));
    }
    let csvs = plan.spec.cluster_service_version_names.clone();
    Decision::Act(Step::Approve { plan: plan.name().to_owned(), csvs })
}

fn without_plan(
    goal: &Goal,
    observed: &Observed,
    subscription: &Object<Subscription>,
    next: &str,
) -> Decision {
    let status = &subscription.status;
    let failed = observed.plans.iter().find(|plan| {
        plan.status.phase == InstallPlanPhase::Failed
            && plan.spec.cluster_service_version_names.iter().any(|name| name == next)
    });
    if let Some(plan) = failed {
        return Decision::Wait(Awaited::Install(plan.name().to_owned()));
    }
    // A plan of ours that leads somewhere else.
    let elsewhere = observed.open_plan(&status.current_csv).filter(|_| !status.current_csv.is_empty());
    if let Some(plan) = elsewhere.filter(|_| !goal.way.contains(&status.current_csv)) {
        let stuck = Stuck::new(
            "plan-leads-elsewhere",
            format!("{} installs `{}`, not `{next}`", plan.key(), status.current_csv),
        );
        let again = "run the command again: it computes the upgrade path again, for the catalog may have changed; if the plan is still there, ";
        let doctor =
            command!("olmkit operator doctor {} -n {}", subscription.name(), subscription.namespace());
        let stuck = stuck.help(Sentence::from(again) + doctor + " shows why OLM keeps it");
        return Decision::Suspect(Awaited::Plan(next.to_owned()), stuck);
    }
    let beyond = !status.installed_csv.is_empty() && !goal.way.contains(&status.installed_csv);
    if let Some(csv) = observed.installed().filter(|_| beyond && goal.way.len() > 1) {
        let sentence = format!("`{}` is installed, but is not on the upgrade path to `{next}`", csv.name());
        return Decision::Stuck(
            Stuck::new("off-the-way", sentence)
                .help("run the command again: it computes the upgrade path again"),
        );
    }
    Decision::Wait(Awaited::Plan(next.to_owned()))
}

/// The approval that a Subscription had before it was held, if it is to be restored.
pub fn remembered(subscription: &Subscription) -> Option<Approval> {
    subscription.annotation(label::APPROVAL_BEFORE).map(Approval::from)
}
