//! `operator upgrade` and `operator approve`: along the channel's edges, one hop after another.

use std::time::Duration;

use olmkit_bundle::suggest::{did_you_mean, some_of};
use olmkit_bundle::version::{Version, precedence};
use olmkit_catalog::graph::VersionRelease;
use serde_json::{Value, json};

use super::ahead::superseded;
use super::api::{
    Approval, ClusterServiceVersion, InstallPlan, InstallPlanPhase, Named as _, Object, Subscription, known,
    label,
};
use super::cluster::ClusterError;
use super::decide::{self, Accept, Decision, Goal, Step, Stuck, remembered};
use super::doctor::Scope;
use super::engine::{Engine, EngineError, UNWATCHED, holding};
use super::health::unfinished;
use super::observe::Observed;
use super::offer::{Offer, OfferedChannel, OfferedPackage};
use super::operator::Operator;
use super::patch::merge;
use super::policy::Policy;
use super::preflight::Upcoming;
use super::preview::Preview;
use super::properties::package_of;
use super::rights::Right;
use crate::sentence::Sentence;
use crate::shell::command;

/// How long OLM may take to create the InstallPlan of a new Subscription.
const PLANNING: Duration = Duration::from_secs(60);

/// What to upgrade, and how far.
#[derive(Clone, Debug, Default)]
pub struct Upgrade {
    /// The Subscription, or its package.
    pub name: String,
    /// Its namespace; none to look everywhere.
    pub namespace: Option<String>,
    /// The version to stop at; none for the channel's head.
    pub to: Option<String>,
    /// The channel to switch to.
    pub channel: Option<String>,
    /// The approval that the Subscription is to have afterwards.
    pub approval: Option<Approval>,
    /// What a plan may carry as well.
    pub accept: Accept,
    /// Whether images may be missing where they are looked for.
    pub accept_missing_images: bool,
}

/// The way that an upgrade takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What is installed, and what follows.
    pub bundles: Vec<String>,
    /// Whether it ends at the channel's head.
    pub to_head: bool,
}

impl Engine<'_> {
    /// Upgrades an operator hop by hop.
    ///
    /// # Errors
    /// There is no way, which is said before anything is changed; or a hop went wrong.
    pub fn upgrade(&mut self, request: &Upgrade) -> Result<Operator, EngineError> {
        let subscription = self.expect(&request.name, request.namespace.as_deref())?;
        let (namespace, name) = (subscription.namespace().to_owned(), subscription.name().to_owned());
        let observed = self.look(&namespace, &name)?;
        self.check(&observed)?;
        if let Some(approval) = &request.approval
            && request.to.is_none()
            && request.channel.is_none()
        {
            self.set_approval(&subscription, approval)?;
            return self.row(&subscription);
        }
        let offer = self.offer(&subscription)?;
        let Some(package) = offer.packages.get(&subscription.spec.package) else {
            let spec = &subscription.spec;
            let what = format!("the catalog `{}` no longer has the package `{}`", spec.source, spec.package);
            return Err(EngineError::refused(what));
        };
        let way = way(request, &subscription, &observed, package)?;
        let hops = way.bundles.len().saturating_sub(1);
        if hops > 0 {
            self.olm_runs()?;
            not_superseded(&observed, &offer, request)?;
        }
        self.say_way(&way);
        let new: Vec<&str> = way.bundles.iter().skip(1).map(String::as_str).collect();
        self.preflight(&Upcoming {
            offer: &offer,
            package,
            bundles: &new,
            observed: &observed,
            targets: observed.targets(),
            accept: &request.accept,
            accept_missing_images: request.accept_missing_images,
        })?;
        if hops > 0 {
            self.need([
                Right::new("patch", &known::SUBSCRIPTION, &namespace, &name),
                Right::new("patch", &known::INSTALL_PLAN, &namespace, ""),
            ])?;
        }
        if request.approval == Some(Approval::Automatic) && !way.to_head {
            let last = way.bundles.last().map_or("", String::as_str);
            return Err(goes_on(package, channel_of_request(request, &subscription), last, "--to"));
        }
        let mut held = subscription.clone();
        if let Some(approval) = &request.approval {
            held = self.restore_later(&subscription, approval)?;
        }
        let goal = Goal {
            way: way.bundles,
            // At the goal already, no plan is approved.
            approve: hops > 0 || remembered(&subscription).is_some() || request.approval.is_some(),
            channel: request.channel.clone(),
            accept: request.accept.clone(),
        };
        if self.options.dry_run {
            self.plan_upgrade(&held, &goal, way.to_head)?;
            return self.row(&subscription);
        }
        if self.options.wait {
            self.reach(&namespace, &name, &goal)?;
            self.restore(&namespace, &name, way.to_head)?;
            self.say_never_carried(&request.accept, &namespace)?;
        } else if self.one_step(&namespace, &name, &goal)? {
            self.restore(&namespace, &name, way.to_head)?;
        }
        self.row(&subscription)
    }

    fn say_way(&mut self, way: &Way) {
        let said = match way.bundles.len().saturating_sub(1) {
            0 => format!("already at the requested version: `{}`", way.bundles.join("")),
            hops => {
                let unit = if hops == 1 { "hop" } else { "hops" };
                format!("{hops} {unit}: {}", way.bundles.join(" → "))
            }
        };
        self.say(said);
    }

    /// Gives a Subscription an approval, whatever an interrupted verb has left to be restored.
    fn set_approval(
        &mut self,
        subscription: &Object<Subscription>,
        approval: &Approval,
    ) -> Result<(), EngineError> {
        let mut patch = json!({"spec": {"installPlanApproval": approval.as_str()}});
        let has_noted = remembered(subscription).is_some();
        if has_noted {
            patch["metadata"]["annotations"][label::APPROVAL_BEFORE] = Value::Null;
        }
        if has_noted || subscription.spec.install_plan_approval != *approval {
            self.patch(&known::SUBSCRIPTION, &subscription.key(), patch)?;
        }
        if *approval == Approval::Automatic { self.say_pending(subscription) } else { Ok(()) }
    }

    /// Says which plan waits on although the approval is Automatic: OLM decides that when it creates a plan.
    fn say_pending(&mut self, subscription: &Object<Subscription>) -> Result<(), EngineError> {
        let (name, namespace) = (subscription.name(), subscription.namespace());
        let observed = self.look(namespace, name)?;
        let plan = observed.open_plan(&subscription.status.current_csv);
        if let Some(plan) = plan.filter(|plan| plan.waits_for_approval()) {
            self.say(
                Sentence::from(format!(
                    "{} was created while the approval was Manual, and OLM never approves it: ",
                    plan.key()
                )) + command!("olmkit operator approve {} -n {}", name, namespace)
                    + " does",
            );
        }
        Ok(())
    }

    /// Holds a Subscription, and notes the approval that it gets at the end. Gives back what it is then.
    fn restore_later(
        &mut self,
        subscription: &Object<Subscription>,
        approval: &Approval,
    ) -> Result<Object<Subscription>, EngineError> {
        let patch = json!({
            "metadata": {"annotations": {label::APPROVAL_BEFORE: approval.as_str()}},
            "spec": {"installPlanApproval": Approval::Manual.as_str()},
        });
        let held = patched(subscription, &patch);
        self.patch(&known::SUBSCRIPTION, &subscription.key(), patch)?;
        Ok(held)
    }

    /// What an upgrade would write, as far as it can be known before OLM has made its plans.
    fn plan_upgrade(
        &mut self,
        subscription: &Object<Subscription>,
        goal: &Goal,
        to_head: bool,
    ) -> Result<(), EngineError> {
        let mut held = subscription.clone();
        if let Some(Step::Hold { channel, remember }) = decide::hold(goal, subscription) {
            let patch = holding(subscription, channel.as_deref(), remember.as_ref());
            held = patched(subscription, &patch);
            self.patch(&known::SUBSCRIPTION, &subscription.key(), patch)?;
        }
        self.plan_approvals(subscription.namespace(), subscription.name(), goal)?;
        if let Some(before) = remembered(&held) {
            let patch = self.restoring(&held, &before, to_head);
            self.patch(&known::SUBSCRIPTION, &held.key(), patch)?;
        }
        Ok(())
    }

    /// The approvals on the way to a goal, as far as they can be known: one for each version that is not installed.
    pub(super) fn plan_approvals(
        &mut self,
        namespace: &str,
        name: &str,
        goal: &Goal,
    ) -> Result<(), EngineError> {
        if !goal.approve {
            return Ok(());
        }
        let observed = self.look(namespace, name)?;
        for csv in goal.way.iter().filter(|csv| observed.csv(csv).is_none()) {
            let open = observed.open_plan(csv);
            // One that is there already is refused here as it would be then.
            if let Some(plan) = open.filter(|plan| plan.waits_for_approval())
                && let Decision::Stuck(stuck) = decide::approve(goal, plan, csv)
            {
                return Err(EngineError::Stuck(stuck));
            }
            if open.is_some_and(|plan| plan.spec.approved) {
                continue;
            }
            let plan = open.map_or_else(|| format!("(for {csv})"), |plan| plan.name().to_owned());
            let key = super::api::Key::new(&known::INSTALL_PLAN, namespace, &plan);
            self.patch(&known::INSTALL_PLAN, &key, json!({"spec": {"approved": true}}))?;
        }
        Ok(())
    }

    /// Submits the changes without waiting for their outcome. Returns whether the goal is already reached.
    pub(super) fn one_step(&mut self, namespace: &str, name: &str, goal: &Goal) -> Result<bool, EngineError> {
        self.options.timeout = Duration::ZERO;
        self.options.settle = Duration::ZERO;
        match self.reach(namespace, name, goal) {
            Ok(_) => Ok(true),
            Err(EngineError::TimedOut { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Approves the pending InstallPlan, after showing what it contains.
    ///
    /// # Errors
    /// There is none, or it carries more than was named.
    pub fn approve(
        &mut self,
        name: &str,
        namespace: Option<&str>,
        accept: &Accept,
    ) -> Result<Operator, EngineError> {
        self.approve_if(name, namespace, accept, None)
    }

    /// As [`Engine::approve`], if the plan meets a policy.
    ///
    /// # Errors
    /// There is none, it carries more than was named, or it does not meet the policy.
    pub fn approve_if(
        &mut self,
        name: &str,
        namespace: Option<&str>,
        accept: &Accept,
        policy: Option<&Policy>,
    ) -> Result<Operator, EngineError> {
        let subscription = self.expect(name, namespace)?;
        let (name, namespace) = (subscription.name(), subscription.namespace());
        self.olm_runs()?;
        let mut planned_by = None;
        let goal = loop {
            let observed = self.look(namespace, name)?;
            self.check(&observed)?;
            let known = observed.subscription.as_ref();
            let current = known.map(|found| found.status.current_csv.clone()).unwrap_or_default();
            let Some(plan) = observed.open_plan(&current) else {
                if let Some(stuck) = self.failed_plan(&observed, &current)? {
                    return Err(EngineError::Stuck(stuck));
                }
                if self.awaits_plan(&observed, &mut planned_by)? {
                    continue;
                }
                return Err(EngineError::refused_help(
                    format!("no plan of {} waits for approval", subscription.key()),
                    Sentence::from("see ")
                        + command!("olmkit operator status {} -n {}", name, namespace)
                        + "; OLM creates an InstallPlan some seconds after a catalog offers a newer version",
                ));
            };
            all_carried(accept, plan, &current)?;
            let way = vec![current.clone()];
            let goal = Goal { way, approve: true, channel: None, accept: accept.clone() };
            let preview = self.preview_with_images(&plan.clone(), &observed)?;
            if let Some(policy) = policy {
                self.meets(policy, plan, &preview, &observed, &current)?;
            }
            if !plan.waits_for_approval() {
                self.say(format!("{} is approved already", plan.key()));
                break goal;
            }
            let csvs = &plan.spec.cluster_service_version_names;
            if let Decision::Stuck(stuck) = decide::approve(&goal, plan, &current) {
                return Err(EngineError::Stuck(stuck));
            }
            let blockers = self.against(&subscription, &observed, preview)?;
            self.refuse_blocked(blockers, accept, None)?;
            self.say(format!("approving {}: {}", plan.key(), csvs.join(" ")));
            let patch = json!({
                "metadata": {"resourceVersion": plan.metadata.resource_version}, "spec": {"approved": true},
            });
            match self.patch(&known::INSTALL_PLAN, &plan.key(), patch) {
                // It may carry something else by now.
                Err(EngineError::Cluster(error @ ClusterError::Conflict { .. })) => self.overtaken(error)?,
                done => break done.map(|()| goal)?,
            }
        };
        // Approving it again does nothing.
        self.olm_resumes(name, namespace);
        if self.options.wait && !self.options.dry_run {
            let goal = Goal { approve: false, ..goal };
            self.reach(namespace, name, &goal)?;
        }
        self.row(&subscription)
    }
}

/// Whether a plan was made for a Subscription that does not refer to it yet: OLM writes that down about a second later.
fn is_not_recorded(
    plan: &Object<InstallPlan>,
    subscription: &Object<Subscription>,
    observed: &Observed,
) -> bool {
    let mut owners = plan.metadata.owner_references.iter().flatten();
    let csvs = &plan.spec.cluster_service_version_names;
    !plan.is_over()
        && owners.any(|owner| Some(&owner.uid) == subscription.metadata.uid.as_ref())
        && csvs.iter().all(|csv| !observed.is_named(csv))
        && csvs.iter().all(|csv| observed.csv(csv).is_none())
}

impl Engine<'_> {
    /// Waits a little for the plan of a Subscription that was just created, and says whether to look again. OLM needs about ten seconds.
    fn awaits_plan(
        &mut self,
        observed: &Observed,
        limit: &mut Option<Duration>,
    ) -> Result<bool, EngineError> {
        let is_new = observed.subscription.as_ref().is_some_and(|found| {
            found.status.current_csv.is_empty() && found.status.installed_csv.is_empty()
                || observed.plans.iter().any(|plan| is_not_recorded(plan, found, observed))
        });
        let now = self.cluster.now();
        if !is_new || !self.options.wait || self.options.dry_run || limit.is_some_and(|limit| now >= limit) {
            return Ok(false);
        }
        if limit.is_none() {
            self.say("waiting for OLM to create the InstallPlan");
        }
        let limit = *limit.get_or_insert((now + PLANNING).min(self.deadline()));
        if limit <= now {
            return Ok(false);
        }
        self.cluster.wait((limit - now).min(UNWATCHED))?;
        Ok(true)
    }

    /// Refuses a plan that does not meet a policy.
    fn meets(
        &self,
        policy: &Policy,
        plan: &Object<InstallPlan>,
        preview: &Preview,
        observed: &Observed,
        csv: &str,
    ) -> Result<(), EngineError> {
        let violations = policy.check(preview, csv);
        if violations.is_empty() {
            return Ok(());
        }
        let all: Vec<String> =
            violations.iter().map(|one| format!("{} [{}]", one.sentence, one.rule)).collect();
        let already = if plan.spec.approved { ", and is approved already" } else { "" };
        let (name, namespace) = (plan.name(), plan.namespace());
        let subscription = observed.subscription.as_ref().map_or("", |found| found.name());
        Err(EngineError::Stuck(Stuck {
            code: "policy",
            sentence: format!("installplan/{name} does not meet the policy{already}: {}", all.join("; ")),
            help: (Sentence::from("see all that it changes with ")
                + command!("olmkit operator plan {} -n {}", subscription, namespace)
                + "; approve it without --policy only if you accept this")
                .into(),
        }))
    }

    /// That the plan of a version has failed: OLM makes no other one, and does not run it again by itself.
    fn failed_plan(&mut self, observed: &Observed, csv: &str) -> Result<Option<Stuck>, EngineError> {
        if observed.csv(csv).is_some_and(|csv| csv.succeeded()) {
            return Ok(None);
        }
        let is_it = |plan: &&Object<InstallPlan>| {
            plan.status.phase == InstallPlanPhase::Failed
                && plan.spec.cluster_service_version_names.iter().any(|name| name == csv)
        };
        let Some(plan) = observed.plans.iter().find(is_it) else { return Ok(None) };
        let (namespace, name) =
            (&observed.namespace, observed.subscription.as_ref().map_or("", |found| found.name()));
        let scope = Scope { name: Some(name.to_owned()), namespace: Some(namespace.clone()) };
        let found = self.diagnosis(&scope)?.causes.into_iter().next();
        let doctor = command!("olmkit operator doctor {} -n {}", name, namespace) + " shows why";
        Ok(Some(Stuck {
            code: "plan-failed",
            sentence: format!(
                "{} has failed, and there is nothing to approve: {}",
                plan.key(),
                plan.status.message
            ),
            help: found.map_or_else(|| doctor.into(), |cause| Stuck::of(&cause, namespace).help),
        }))
    }

    /// Names what was accepted and no plan of a namespace has carried, which is most likely misspelt.
    fn say_never_carried(&mut self, accept: &Accept, namespace: &str) -> Result<(), EngineError> {
        if accept.csvs.is_empty() {
            return Ok(());
        }
        let plans = self.cluster.list(&known::INSTALL_PLAN, Some(namespace))?;
        let carried = |name: &String| {
            let mut lists = plans.iter().map(|plan| &plan["spec"]["clusterServiceVersionNames"]);
            lists.any(|list| list.as_array().is_some_and(|list| list.iter().any(|one| one == name.as_str())))
        };
        for name in accept.csvs.iter().filter(|name| !carried(name)) {
            self.say(format!("--accept {name}: no InstallPlan in the namespace `{namespace}` contains it"));
        }
        Ok(())
    }
}

/// Refuses to begin while a plan waits that OLM made of what the catalog offered before: it keeps that one, and makes no other.
fn not_superseded(observed: &Observed, offer: &Offer, request: &Upgrade) -> Result<(), EngineError> {
    let subscription = observed.subscription.as_ref();
    let follows = |channel: &String| subscription.is_none_or(|found| found.spec.channel == *channel);
    let old = superseded(observed, offer).filter(|_| request.channel.as_ref().is_none_or(follows));
    let Some(old) = old else { return Ok(()) };
    Err(EngineError::refused_help(old.sentence(), old.way_out() + "; then run the command again"))
}

/// A Subscription as it is after a patch.
fn patched(subscription: &Object<Subscription>, patch: &Value) -> Object<Subscription> {
    let mut document = subscription.document().clone();
    merge(&mut document, patch);
    // The patches made here keep it what it is.
    Object::read(document).unwrap_or_else(|_| subscription.clone())
}

/// The channel that an upgrade follows.
fn channel_of_request<'r>(request: &'r Upgrade, subscription: &'r Subscription) -> &'r str {
    request.channel.as_deref().unwrap_or(&subscription.spec.channel)
}

/// That OLM does not stay at a version below the channel's head where it approves by itself. `flag` names the version.
pub(super) fn goes_on(package: &OfferedPackage, channel: &str, csv: &str, flag: &str) -> EngineError {
    let head = package.channel(channel).and_then(OfferedChannel::head).unwrap_or_default();
    EngineError::refused_help(
        format!(
            "with --approval Automatic OLM does not stay at `{csv}`: it upgrades to the channel's head, `{head}`"
        ),
        format!("omit --approval to stay at this version, or {flag} for the channel's head"),
    )
}

/// Refuses names that a plan does not carry, which are most likely misspelt.
fn all_carried(accept: &Accept, plan: &Object<InstallPlan>, current: &str) -> Result<(), EngineError> {
    let carried = &plan.spec.cluster_service_version_names;
    let unknown: Vec<&str> =
        accept.csvs.iter().filter(|name| !carried.contains(name)).map(String::as_str).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let others: Vec<&str> = carried.iter().map(String::as_str).filter(|name| *name != current).collect();
    let help = match others.is_empty() {
        true => format!("it contains only `{current}`: omit --accept"),
        false => format!("it also contains `{}`: pass `--accept {}`", others.join("`, `"), others.join(",")),
    };
    Err(EngineError::refused_help(
        format!("--accept names `{}`, which {} does not contain", unknown.join("`, `"), plan.key()),
        help,
    ))
}

/// The bundles from what is installed to the destination.
fn way(
    request: &Upgrade,
    subscription: &Object<Subscription>,
    observed: &Observed,
    package: &OfferedPackage,
) -> Result<Way, EngineError> {
    let spec = &subscription.spec;
    let channel_name = request.channel.as_deref().unwrap_or(&spec.channel);
    let channel = channel_of(package, &spec.package, channel_name)?;
    let Some(csv) = observed.installed() else {
        let (name, namespace) = (subscription.name(), subscription.namespace());
        let help = match unfinished(subscription) {
            Some((sentence, help)) => Sentence::from(format!("{sentence}: ")) + help,
            None => Sentence::from("see ") + command!("olmkit operator status {} -n {}", name, namespace),
        };
        let what = format!("{} has nothing installed", subscription.key());
        return Err(EngineError::refused_help(what, help));
    };
    let version = Version::parse(&csv.spec.version).ok().map(VersionRelease::from);
    find_way(package, channel, csv, version.as_ref(), request.to.as_deref())
}

/// A channel that must be there.
pub(super) fn channel_of<'p>(
    package: &'p OfferedPackage,
    name: &str,
    channel: &str,
) -> Result<&'p OfferedChannel, EngineError> {
    let Some(found) = package.channel(channel) else {
        let names: Vec<&str> = package.channels.keys().map(String::as_str).collect();
        let help = did_you_mean(channel, names.iter().copied())
            .unwrap_or_else(|| format!("the package has {}", some_of(channel, names.iter().copied())));
        return Err(EngineError::refused_help(format!("`{name}` has no channel `{channel}`"), help));
    };
    match found.fault() {
        None => Ok(found),
        Some(fault) => Err(EngineError::refused(format!(
            "the channel `{channel}` of `{name}` cannot be followed: {fault}"
        ))),
    }
}

/// The bundle of a channel that a version names.
pub(super) fn bundle_of(
    package: &OfferedPackage,
    channel: &OfferedChannel,
    version: &str,
) -> Result<String, EngineError> {
    package.find(channel, version).ok_or_else(|| {
        let versions: Vec<String> =
            channel.entries.iter().map(|entry| package.version(&entry.name)).collect();
        // None of them is suggested: a version that looks alike may be older than what is installed.
        let help = format!("it has {}", some_of(version, versions.iter().map(String::as_str)));
        let name = package.channels.iter().find(|(_, one)| std::ptr::eq(*one, channel)).map(|(name, _)| name);
        let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
        EngineError::refused_help(format!("the channel{name} has no version `{version}`"), help)
    })
}

/// The bundles that OLM's rules lead through, from what is installed to the destination.
pub(super) fn find_way(
    package: &OfferedPackage,
    channel: &OfferedChannel,
    installed: &Object<ClusterServiceVersion>,
    version: Option<&VersionRelease>,
    to: Option<&str>,
) -> Result<Way, EngineError> {
    let from = installed.name();
    let mut way = vec![from.to_owned()];
    way.extend(channel.way(from, version));
    let head = channel.head().unwrap_or_default();
    let destination = match to {
        Some(to) => bundle_of(package, channel, to)?,
        None => match way.last() {
            Some(last) if last == head => head.to_owned(),
            last => {
                let last = last.map_or("", String::as_str);
                let what =
                    format!("OLM stays at `{last}`: the channel has no edge from there to its head `{head}`");
                let help = "ask its publisher for an edge (`replaces`, `skips` or `olm.skipRange`), or choose \
                            another channel";
                return Err(EngineError::refused_help(what, help));
            }
        },
    };
    match way.iter().position(|name| *name == destination) {
        Some(at) => {
            way.truncate(at + 1);
            let to_head = destination == head;
            Ok(Way { bundles: way, to_head })
        }
        None => Err(passed_over(package, channel, installed, &way, &destination)),
    }
}

/// Why OLM does not come by a version: the edge that jumps over it, or the end of the way.
fn passed_over(
    package: &OfferedPackage,
    channel: &OfferedChannel,
    installed: &Object<ClusterServiceVersion>,
    way: &[String],
    destination: &str,
) -> EngineError {
    let version = |name: &str| {
        package.bundles.get(name).and_then(|bundle| bundle.version.as_ref()).map(|found| &found.version)
    };
    let is_above = |name: &str| {
        let both = version(name).zip(version(destination));
        both.is_some_and(|(own, wanted)| precedence(own, wanted).is_gt())
    };
    if way.first().is_some_and(|from| is_above(from)) {
        return EngineError::refused_help(
            format!("`{destination}` is older than what is installed, and OLM does not go back"),
            command!(
                "olmkit operator rollback {} -n {} --to {}",
                package_of(installed).unwrap_or_else(|| "NAME".to_owned()),
                installed.namespace(),
                package.version(destination)
            ) + " installs it again",
        );
    }
    let jump = way.windows(2).find(|hop| is_above(&hop[1]));
    let what = match jump {
        Some(hop) => {
            let edge = channel.entry(&hop[1]).map(|entry| entry.edge_from(&hop[0])).unwrap_or_default();
            format!(
                "no upgrade path stops at `{destination}`: OLM goes from `{}` to `{}`, since {edge}",
                hop[0], hop[1]
            )
        }
        None => {
            let last = way.last().map_or("", String::as_str);
            format!("OLM never reaches `{destination}`: no edge leads on from `{last}`")
        }
    };
    EngineError::refused(what)
}
