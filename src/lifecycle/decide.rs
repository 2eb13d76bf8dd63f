//! What comes next on the way to a goal: one step, a wait, or the reason why nothing will help. Pure: no client, no clock.
//!
//! The rules are OLM's (see [`super::simulate`]); what is decided here never goes against them. A plan is approved only when
//! it waits for that, leads to the next bundle of the way and carries nothing else; nothing is decided by what OLM is known
//! to leave stale: conditions of Subscriptions only arouse a suspicion, which the engine believes once it has stood a while.

use std::collections::BTreeSet;

use super::api::{
    Approval, ClusterServiceVersion, Condition, CsvPhase, InstallPlan, InstallPlanPhase, Named as _, Object,
    Subscription, SubscriptionState, condition, csv_reason, label,
};
use super::observe::Observed;

/// Where to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// The bundles that are to be installed one after another. The first may be installed already.
    pub way: Vec<String>,
    /// Whether plans are approved here: the Subscription is made Manual first.
    pub approve: bool,
    /// The channel that the Subscription is to follow; none to leave it.
    pub channel: Option<String>,
    /// Bundles of other Subscriptions that a plan may carry as well.
    pub accept: BTreeSet<String>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Something is to be done.
    Act(Step),
    /// OLM has something to do.
    Wait {
        /// What is waited for.
        awaited: Awaited,
        /// What may be wrong; believed once it has stood for a while.
        suspicion: Option<Stuck>,
    },
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

/// Why nothing will come of waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// A word for programs.
    pub code: &'static str,
    /// In a sentence.
    pub sentence: String,
    /// The way out.
    pub help: Option<String>,
}

impl Stuck {
    fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

fn wait(awaited: Awaited) -> Decision {
    Decision::Wait { awaited, suspicion: None }
}

/// What comes next.
pub fn decide(goal: &Goal, observed: &Observed) -> Decision {
    let Some(subscription) = &observed.subscription else {
        return Decision::Stuck(Stuck::new("no-subscription", "the Subscription is not there"));
    };
    if let Some(stuck) = group_fault(observed) {
        return Decision::Stuck(stuck);
    }
    if let Some(step) = hold(goal, subscription) {
        return Decision::Act(step);
    }
    let Some(destination) = goal.way.last() else { return Decision::Arrived };
    let reached = goal.way.iter().rposition(|name| observed.csv(name).is_some());
    // What has come up last decides whether it may go on.
    if let Some(csv) = reached.and_then(|at| observed.csv(&goal.way[at])) {
        if let Some(decision) = unfinished(observed, csv) {
            return decision;
        }
        if csv.name() == destination {
            return arrived(observed, subscription, csv);
        }
        if subscription.status.installed_csv != csv.name() && subscription.status.current_csv != csv.name() {
            return stranger(subscription, csv);
        }
    }
    let next = &goal.way[reached.map_or(0, |at| at + 1)];
    hop(goal, observed, subscription, next)
}

/// What is wrong with the OperatorGroup; OLM says nothing of it before something is installed.
fn group_fault(observed: &Observed) -> Option<Stuck> {
    let namespace = &observed.namespace;
    match &observed.groups[..] {
        [] => Some(
            Stuck::new(
                "no-operator-group",
                format!("the namespace `{namespace}` has no OperatorGroup, so OLM resolves nothing there"),
            )
            .help("create one, or run `olmkit operator install`, which does"),
        ),
        [group] => {
            let missing = group
                .status
                .conditions
                .iter()
                .find(|found| found.reason == "ServiceAccountNotFound" && found.is_true());
            missing.map(|found| {
                Stuck::new("no-service-account", found.message.clone())
                    .help("create it, with the rights that the operator's install needs")
            })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|group| group.name()).collect();
            Some(
                Stuck::new(
                    "several-operator-groups",
                    format!(
                        "the namespace `{namespace}` has {} OperatorGroups: {}",
                        several.len(),
                        names.join(", ")
                    ),
                )
                .help("leave one"),
            )
        }
    }
}

/// Plans must wait for us before anything else is changed.
fn hold(goal: &Goal, subscription: &Object<Subscription>) -> Option<Step> {
    let spec = &subscription.spec;
    let channel = goal.channel.clone().filter(|channel| *channel != spec.channel);
    let remember = (goal.approve && spec.install_plan_approval != Approval::Manual)
        .then(|| spec.install_plan_approval.clone());
    (channel.is_some() || remember.is_some()).then_some(Step::Hold { channel, remember })
}

/// The decision about a ClusterServiceVersion that is not up; none when it is.
fn unfinished(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Option<Decision> {
    let status = &csv.status;
    let awaited = Awaited::Success(csv.name().to_owned());
    let failed_plan = observed.plans.iter().find(|plan| {
        plan.status.phase == InstallPlanPhase::Failed
            && plan.spec.cluster_service_version_names.iter().any(|name| name == csv.name())
    });
    match &status.phase {
        CsvPhase::Succeeded if !csv.is_being_deleted() => return None,
        _ if csv.is_being_deleted() => {
            return Some(wait(Awaited::Replacement(csv.name().to_owned())));
        }
        CsvPhase::Replacing | CsvPhase::Deleting => {
            let next = observed.csvs.iter().any(|other| other.spec.replaces == csv.name());
            let suspicion = (!next).then(|| {
                Stuck::new(
                    "replaced-by-nothing",
                    format!("`{}` gives way to a ClusterServiceVersion that is not there, and OLM does not take it back", csv.name()),
                )
                .help("delete the Subscription and the ClusterServiceVersion, and install again; custom resources stay")
            });
            return Some(Decision::Wait { awaited: Awaited::Replacement(csv.name().to_owned()), suspicion });
        }
        _ => {}
    }
    if let Some(plan) = failed_plan {
        return Some(Decision::Stuck(plan_failed(plan)));
    }
    let suspicion = match (&status.phase, status.reason.as_str()) {
        (CsvPhase::Failed, reason) => {
            if let Some((_, help)) = csv_reason::TERMINAL.iter().find(|(known, _)| *known == reason) {
                let stuck = Stuck::new("csv-failed", format!("`{}` failed: {}", csv.name(), status.message));
                return Some(Decision::Stuck(stuck.help(*help)));
            }
            Some(Stuck::new("csv-failed", format!("`{}` failed: {}", csv.name(), status.message)))
        }
        (CsvPhase::Pending, csv_reason::NOT_UPGRADEABLE) => {
            let old = csv.spec.replaces.as_str();
            let said = observed.conditions.iter().find(|found| found.name() == old);
            let why = said
                .and_then(|found| found.not_upgradeable())
                .map_or(status.message.as_str(), |found| &found.message);
            let sentence = format!("`{old}` says that it must not be replaced now: {why}");
            Some(Stuck::new("not-upgradeable", sentence).help(format!(
                "let it finish, or set `Upgradeable` to True in `spec.overrides` of operatorcondition/{old}"
            )))
        }
        (CsvPhase::Pending, "RequirementsNotMet") => {
            let unmet: Vec<String> = csv
                .unmet()
                .filter(|found| found.kind != "ServiceAccount")
                .map(|found| format!("{} `{}`: {}", found.kind, found.name, found.message))
                .collect();
            (!unmet.is_empty())
                .then(|| Stuck::new("requirements", format!("`{}` needs {}", csv.name(), unmet.join("; "))))
        }
        _ => never_ready(observed, csv),
    };
    Some(Decision::Wait { awaited, suspicion })
}

/// OLM gives an operator five minutes, fails it for a moment, and starts anew; only the history shows it.
fn never_ready(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Option<Stuck> {
    let timed_out = csv
        .status
        .conditions
        .iter()
        .any(|found| found.phase == CsvPhase::Failed && found.reason == "InstallCheckFailed");
    timed_out.then(|| {
        let ill: Vec<&str> = observed
            .deployments
            .iter()
            .filter(|workload| workload.owner == csv.name() && !workload.is_well())
            .map(|workload| workload.name.as_str())
            .collect();
        Stuck::new(
            "never-ready",
            format!("`{}` has not come up in five minutes: deployment {}", csv.name(), ill.join(", ")),
        )
        .help("`olmkit operator doctor` names the cause")
    })
}

/// A plan that failed has made its ClusterServiceVersions already; it is done again in place once its cause is gone.
fn plan_failed(plan: &Object<InstallPlan>) -> Stuck {
    Stuck::new("plan-failed", format!("{} failed: {}", plan.key(), plan.status.message)).help(format!(
        "mend the cause, then `kubectl patch installplan {} -n {} --subresource status --type merge -p \
         '{{\"status\":{{\"phase\":\"Installing\"}}}}'`",
        plan.name(),
        plan.namespace()
    ))
}

/// The destination is up; what it replaced has to go, and the Subscription to know it.
fn arrived(
    observed: &Observed,
    subscription: &Object<Subscription>,
    csv: &Object<ClusterServiceVersion>,
) -> Decision {
    if let Some(old) = observed.csv(&csv.spec.replaces) {
        return wait(Awaited::Replacement(old.name().to_owned()));
    }
    if subscription.status.installed_csv == csv.name() {
        return Decision::Arrived;
    }
    if subscription.status.current_csv != csv.name() {
        return stranger(subscription, csv);
    }
    wait(Awaited::Bookkeeping(csv.name().to_owned()))
}

/// A ClusterServiceVersion that the Subscription knows nothing of keeps OLM from resolving anything for it.
fn stranger(subscription: &Object<Subscription>, csv: &Object<ClusterServiceVersion>) -> Decision {
    let suspicion = Stuck::new(
        "unowned-csv",
        format!("`{}` exists, and {} does not know it", csv.name(), subscription.key()),
    )
    .help(format!(
        "delete clusterserviceversion/{}: OLM installs it again within seconds, and custom resources stay",
        csv.name()
    ));
    Decision::Wait { awaited: Awaited::Bookkeeping(csv.name().to_owned()), suspicion: Some(suspicion) }
}

/// On the way to the next bundle.
fn hop(goal: &Goal, observed: &Observed, subscription: &Object<Subscription>, next: &str) -> Decision {
    let Some(plan) = observed.open_plan(next) else {
        return without_plan(goal, observed, subscription, next);
    };
    match plan.status.phase {
        InstallPlanPhase::None | InstallPlanPhase::Planning => wait(Awaited::Steps(plan.name().to_owned())),
        InstallPlanPhase::RequiresApproval if !plan.spec.approved => approve(goal, plan, next),
        _ => wait(Awaited::Install(plan.name().to_owned())),
    }
}

/// A plan that waits for approval gets it when it carries what was expected and no more.
pub(super) fn approve(goal: &Goal, plan: &Object<InstallPlan>, next: &str) -> Decision {
    let dependencies = plan.dependencies();
    let more: Vec<&str> = plan
        .spec
        .cluster_service_version_names
        .iter()
        .map(String::as_str)
        .filter(|name| *name != next && !goal.accept.contains(*name) && !dependencies.contains(name))
        .collect();
    if !more.is_empty() {
        let stuck = Stuck::new(
            "plan-carries-more",
            format!(
                "{} carries `{}` besides `{next}`: approving one approves all",
                plan.key(),
                more.join("`, `")
            ),
        );
        return Decision::Stuck(stuck.help(format!(
            "say yes to it with `--accept {}`, or give the other Subscription a namespace of its own",
            more.join(",")
        )));
    }
    if !goal.approve {
        return wait(Awaited::Approval(plan.name().to_owned()));
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
        return Decision::Stuck(plan_failed(plan));
    }
    // A plan of ours that leads somewhere else.
    let elsewhere = observed.open_plan(&status.current_csv).filter(|_| !status.current_csv.is_empty());
    if let Some(plan) = elsewhere.filter(|_| !goal.way.contains(&status.current_csv)) {
        let stuck = Stuck::new(
            "plan-leads-elsewhere",
            format!("{} leads to `{}`, not to `{next}`", plan.key(), status.current_csv),
        );
        return Decision::Stuck(
            stuck.help("the catalog has changed, or its edges are others than were read"),
        );
    }
    let beyond = !status.installed_csv.is_empty() && !goal.way.contains(&status.installed_csv);
    if let Some(csv) = observed.installed().filter(|_| beyond && goal.way.len() > 1) {
        let sentence = format!("`{}` is installed, which is not on the way to `{next}`", csv.name());
        return Decision::Stuck(
            Stuck::new("off-the-way", sentence).help("run the command again: the way is found anew"),
        );
    }
    let suspicion = gone(observed, subscription).or_else(|| unresolved(observed, subscription));
    Decision::Wait { awaited: Awaited::Plan(next.to_owned()), suspicion }
}

/// A ClusterServiceVersion that somebody deleted is not installed again while its Subscription remembers it.
fn gone(observed: &Observed, subscription: &Object<Subscription>) -> Option<Stuck> {
    let status = &subscription.status;
    let lost = !status.installed_csv.is_empty()
        && status.installed_csv == status.current_csv
        && status.state == SubscriptionState::UpgradePending
        && observed.csv(&status.installed_csv).is_none();
    lost.then(|| {
        let sentence = format!("`{}` was deleted, and OLM does not install it again", status.installed_csv);
        Stuck::new("csv-gone", sentence)
            .help(format!("delete {} and create it again: custom resources stay", subscription.key()))
    })
}

/// What the conditions of a Subscription say when no plan comes.
fn unresolved(observed: &Observed, subscription: &Object<Subscription>) -> Option<Stuck> {
    let status = &subscription.status;
    if let Some(found) = status.condition(condition::BUNDLE_UNPACK_FAILED) {
        return Some(
            Stuck::new("unpack-failed", format!("the bundle cannot be unpacked: {}", found.message))
                .help("push the bundle's image, then delete the unpack Job and its ConfigMap"),
        );
    }
    let catalog = &subscription.spec.source;
    match &observed.catalog {
        None => {
            let sentence = format!("the CatalogSource `{catalog}` is not there");
            return Some(
                Stuck::new("no-catalog", sentence).help("correct `spec.source` of the Subscription"),
            );
        }
        Some(source) if !source.is_ready() => {
            let state = if source.connection().is_empty() { "not connected" } else { source.connection() };
            return Some(Stuck::new(
                "catalog-down",
                format!("the CatalogSource `{catalog}` does not answer: {state}"),
            ));
        }
        Some(_) => {}
    }
    let found = status.condition(condition::RESOLUTION_FAILED)?;
    if is_symptom(observed, found) {
        return None;
    }
    Some(Stuck::new("unresolvable", format!("OLM can resolve nothing: {}", found.message)))
}

/// During an upgrade OLM complains of the two versions that it is exchanging; that says nothing.
fn is_symptom(observed: &Observed, found: &Condition) -> bool {
    let existing = observed.csvs.iter().filter(|csv| {
        let name = format!("@existing/{}//{}", observed.namespace, csv.name());
        found.message.contains(&name)
    });
    let existing: Vec<_> = existing.collect();
    existing.len() > 1
        && existing.iter().any(|csv| matches!(csv.status.phase, CsvPhase::Replacing | CsvPhase::Deleting))
}

/// The approval that a Subscription had before it was held, if it is to be restored.
pub fn remembered(subscription: &Subscription) -> Option<Approval> {
    subscription.annotation(label::APPROVAL_BEFORE).map(Approval::from)
}
