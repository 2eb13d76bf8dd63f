//! What comes next on the way to a goal: one step, a wait, or the reason why nothing will help. Pure: no client, no clock.
//!
//! The rules are OLM's (see [`super::simulate`]); what is decided here never goes against them. A plan is approved only when
//! it waits for that, leads to the next bundle of the way and carries nothing else that was not accepted; nothing is decided by what OLM is known
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
    if is_passed(goal, observed, subscription, destination) {
        return Decision::Arrived;
    }
    let reached = goal.way.iter().rposition(|name| observed.csv(name).is_some());
    // What has come up last decides whether it may go on.
    if let Some((at, csv)) = reached.and_then(|at| Some((at, observed.csv(&goal.way[at])?))) {
        if let Some(decision) = unfinished(observed, csv) {
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
            return stranger(subscription, csv);
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

/// What is wrong with the OperatorGroup; OLM says nothing of it before something is installed.
pub(super) fn group_fault(observed: &Observed) -> Option<Stuck> {
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
                .help("delete all but one"),
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

/// The decision about the plan of a version that is up, which may come before its plan has failed at a CRD: that keeps its old
/// form then. None when the plan is complete, or gone.
fn incomplete(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Option<Decision> {
    let mut plans = observed.plans.iter().filter(|plan| plan.spec.approved);
    let plan =
        plans.find(|plan| plan.spec.cluster_service_version_names.iter().any(|name| name == csv.name()))?;
    match plan.status.phase {
        InstallPlanPhase::Complete => None,
        InstallPlanPhase::Failed => Some(Decision::Stuck(plan_failed(plan))),
        _ => Some(wait(Awaited::Install(plan.name().to_owned()))),
    }
}

/// OLM gives an operator five minutes, fails it for a moment, and starts anew; only the history shows it.
fn never_ready(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Option<Stuck> {
    let timed_out = csv
        .status
        .conditions
        .iter()
        .any(|found| found.phase == CsvPhase::Failed && found.reason == "InstallCheckFailed");
    timed_out.then(|| {
        let ill: Vec<String> = observed
            .deployments
            .iter()
            .filter(|workload| workload.owner == csv.name() && !workload.is_well())
            .map(|workload| match workload.trouble.as_str() {
                "" => workload.name.clone(),
                trouble => format!("{} ({trouble})", workload.name),
            })
            .collect();
        Stuck::new(
            "never-ready",
            format!("`{}` has not come up in five minutes: deployment {}", csv.name(), ill.join(", ")),
        )
        .help("`olmkit operator describe` shows its deployments and the newest events")
    })
}

/// A plan that failed is done again in place once its cause is gone. One whose unpacked bundle somebody has deleted cannot be:
/// OLM unpacks a bundle for a new plan alone.
fn plan_failed(plan: &Object<InstallPlan>) -> Stuck {
    let (name, namespace) = (plan.name(), plan.namespace());
    let stuck = Stuck::new("plan-failed", format!("{} failed: {}", plan.key(), plan.status.message));
    if plan.status.message.contains("unpacked bundle configmap") {
        return stuck.help(format!(
            "`kubectl delete installplan {name} -n {namespace}`, then run the command again: OLM unpacks the bundle again and \
             makes a new plan"
        ));
    }
    stuck.help(format!(
        "mend the cause, then `kubectl patch installplan {name} -n {namespace} --subresource status --type merge -p \
         '{{\"status\":{{\"phase\":\"Installing\"}}}}'`"
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
            format!(
                "{} carries `{}` besides `{next}`: approving one approves all",
                plan.key(),
                all.join("`, `")
            ),
        );
        return Decision::Stuck(stuck.help(format!(
            "accept them with `--accept {}`, or give the other Subscription a namespace of its own",
            all.join(",")
        )));
    }
    if !dependencies.is_empty() {
        let stuck = Stuck::new(
            "plan-carries-dependencies",
            format!(
                "{} carries `{}` besides `{next}`, which depends on them",
                plan.key(),
                dependencies.join("`, `")
            ),
        );
        return Decision::Stuck(stuck.help(format!(
            "accept them with `--accept {}`, or all dependencies with `--accept-dependencies`",
            dependencies.join(",")
        )));
    }
    // A plan that waits only because of a neighbour's Manual approval was approved by naming what it carries.
    let accepted = plan.spec.cluster_service_version_names.iter().any(|name| goal.accept.csvs.contains(name));
    if !goal.approve && !accepted {
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
    if let Some(found) = unpack_fault(subscription) {
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
    if is_symptom(observed, found) || is_stale(observed, found) {
        return None;
    }
    Some(Stuck::new("unresolvable", format!("OLM can resolve nothing: {}", found.message)))
}

/// What is wrong with an operator besides the phase of its ClusterServiceVersion, a sentence each: what OLM does not get over
/// by itself and says nothing of in the ClusterServiceVersion that is installed. `head` is the channel's, empty when unknown.
pub fn problems(observed: &Observed, head: &str) -> Vec<String> {
    let Some(subscription) = &observed.subscription else { return Vec::new() };
    let status = &subscription.status;
    let carries =
        |plan: &Object<InstallPlan>| plan.spec.cluster_service_version_names.contains(&status.current_csv);
    // Of several plans for one ClusterServiceVersion the newest counts.
    let newest = observed.plans.iter().find(|plan| plan.name() == status.plan() || carries(plan));
    let failed = newest.filter(|plan| plan.status.phase == InstallPlanPhase::Failed);
    // Once there is a plan, or nothing newer, the bundle was unpacked, and what is said of it is left behind.
    let nothing_to_unpack =
        !head.is_empty() && status.installed_csv == head || newest.is_some_and(|plan| !plan.is_over());
    let unpacking = unpack_fault(subscription).filter(|_| !nothing_to_unpack);
    failed
        .map(|plan| format!("{} failed: {}", plan.key(), plan.status.message))
        .into_iter()
        .chain(unpacking.map(|found| format!("the bundle cannot be unpacked: {}", found.message)))
        .collect()
}

/// What is said of a bundle that cannot be unpacked. OLM leaves the failure behind when it begins anew.
fn unpack_fault(subscription: &Subscription) -> Option<&Condition> {
    let status = &subscription.status;
    match status.condition(condition::BUNDLE_UNPACKING) {
        Some(found) => UNPULLABLE.iter().any(|reason| found.message.contains(reason)).then_some(found),
        None => status.condition(condition::BUNDLE_UNPACK_FAILED),
    }
}

/// What OLM and the kubelet say of an image that cannot be pulled.
const UNPULLABLE: [&str; 5] =
    ["image pull failed", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

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

/// OLM clears the condition at its next resolution only: what it says of objects that are gone by now says nothing.
fn is_stale(observed: &Observed, found: &Condition) -> bool {
    let existing = format!("@existing/{}//", observed.namespace);
    let words: Vec<&str> =
        found.message.split_whitespace().map(|word| word.trim_end_matches([',', '.', '"'])).collect();
    let installed = words.iter().filter_map(|word| word.trim_start_matches('"').strip_prefix(&existing));
    let named = |kind: &'static str| {
        words.windows(3).filter(move |found| found[0] == kind && found[2] == "exists").map(|found| found[1])
    };
    let is_subscription = |name: &str| {
        let all = observed.others.iter().chain(&observed.subscription);
        all.into_iter().any(|subscription| subscription.name() == name)
    };
    installed.chain(named("clusterserviceversion")).any(|name| observed.csv(name).is_none())
        || named("subscription").any(|name| !is_subscription(name))
}

/// The approval that a Subscription had before it was held, if it is to be restored.
pub fn remembered(subscription: &Subscription) -> Option<Approval> {
    subscription.annotation(label::APPROVAL_BEFORE).map(Approval::from)
}
