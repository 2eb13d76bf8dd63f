//! Which repairs are printed: those after which every version that serves still serves, or has been replaced by one that can run.
//!
//! A repair is the command that is printed, so the command is what is tried: its words are read back ([`deeds`]), and what they change is
//! done on a simulated cluster that is made of what was observed ([`World`]). There, only a version that serves now can run; whether
//! others would, nobody knows. A Deployment that served and is taken away has to come back as one of a version that can run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use olmkit_bundle::pod::{Needed, needed};
use olmkit_catalog::fbc;
use serde_json::{Value, json};

use super::doc::Doc;
use super::lean::lean;
use super::observation::Observation;
use super::relations::{left_behind, owned_crds, versions_of};
use super::{Cause, Repair, codes, groups, pods, workloads};
use crate::lifecycle::api::{Key, Resource, known, label};
use crate::lifecycle::lineage::lineage;
use crate::lifecycle::offer::Offer;
use crate::lifecycle::patch::merge;
use crate::lifecycle::simulate::{EventKind, Registry, Simulation, Store};
use crate::sentence::Sentence;
use crate::shell::{Command, command};

/// How long what a command deletes may take to go.
const GOING: Duration = Duration::from_secs(30);
/// How long OLM is given after a command.
const AFTERWARDS: Duration = Duration::from_secs(600);
/// How many things may happen meanwhile: no simulation goes on for ever.
const MOST: usize = 400;
/// The kinds that a repair may change and that decide whether a version serves.
const KINDS: [&str; 6] = [
    "Subscription",
    "OperatorGroup",
    "InstallPlan",
    "ClusterServiceVersion",
    "OperatorCondition",
    "Deployment",
];

/// What a command does to what serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Everything serves on.
    None,
    /// Something is taken away, and comes back as a version that can run.
    Passing,
    /// Something is taken away for good, or for what nobody knows to run.
    Lasting,
}

/// What begins the effect of a repair that is an alternative to the one before it.
const INSTEAD: &str = "instead, ";

/// As many causes of a namespace are told with repairs: people begin with the first few, and each is tried on all of the namespace.
const MOST_REPAIRED: usize = 50;

/// As many namespaces with rivals of an operator are simulated, for all commands together: where one API has operators in hundreds of
/// namespaces, each command is tried on all of them.
const MOST_RIVALS: usize = 50;

/// More than [`MOST_RIVALS`] would be simulated.
struct TooMany;

/// Commands that are tried one after another on simulations of what was observed.
pub(super) struct Rehearsals<'o> {
    seen: &'o Observation,
    /// The namespaces with versions that own a CRD.
    owners: BTreeMap<&'o str, BTreeSet<&'o str>>,
    /// The namespaces that the last command touched; no world where nothing serves.
    last: Option<(BTreeSet<String>, Option<World>)>,
    /// How many causes of each namespace were told.
    told: BTreeMap<String, usize>,
    /// How many namespaces with rivals may still be simulated; none once there were too many.
    left: Option<usize>,
}

impl<'o> Rehearsals<'o> {
    pub(super) fn of(seen: &'o Observation) -> Self {
        let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for csv in seen.of("ClusterServiceVersion").filter(|csv| !csv.is_copy()) {
            for crd in owned_crds(csv) {
                owners.entry(crd).or_default().insert(csv.namespace());
            }
        }
        Self { seen, owners, last: None, told: BTreeMap::new(), left: Some(MOST_RIVALS) }
    }

    /// Leaves the repairs of a cause that keep up what serves, and puts the way back to a version that still runs before them.
    pub(super) fn choose(&mut self, subscription: &str, namespace: &str, cause: &mut Cause) {
        let told = self.told.entry(namespace.to_owned()).or_default();
        *told += 1;
        let is_first = *told <= MOST_REPAIRED;
        if is_first && self.left.is_some() {
            self.choose_repairs(subscription, namespace, cause);
            if self.left.is_some() {
                return;
            }
        } else {
            cause.repair.clear();
        }
        let which = match is_first {
            true => format!(
                "causes that can be tried on at most {MOST_RIVALS} namespaces with operators of the same API"
            ),
            false => format!("the first {MOST_REPAIRED} causes in the namespace `{namespace}`"),
        };
        cause
            .consequences
            .push(format!("repairs are listed only for {which}: apply those, and run the command again"));
    }

    fn choose_repairs(&mut self, subscription: &str, namespace: &str, cause: &mut Cause) {
        let seen = self.seen;
        let all = cause.repair.len();
        cause.repair.retain(|repair| !is_unseen(seen, &repair.command));
        if cause.repair.len() < all {
            cause.repair.push(Repair::of(
                "kubectl get operatorgroups.operators.coreos.com,clusterserviceversions.operators.coreos.com -A -l '!olm.copiedFrom'",
                "shows what is installed in the other namespaces, which could not be looked at: if an OperatorGroup comes to share a namespace with that of another installation of the operator, OLM deletes a Deployment that runs",
            ));
        }
        cause.repair.retain(|repair| self.outage(&repair.command) != Outage::Lasting);
        if let Some(first) = cause.repair.first_mut() {
            first.effect = std::mem::take(&mut first.effect).without(INSTEAD);
        }
        let found = seen.get("Subscription", namespace, subscription);
        let Some((old, back)) = found.and_then(|found| rollback(seen, found, cause)) else { return };
        // What costs nothing comes before it, as long as OLM has not begun to replace the old version.
        let is_untouched = old.text("/status/phase") == "Succeeded";
        let at = usize::from(is_untouched && cause.repair.first().is_some_and(|first| first.safe));
        cause.repair.retain(|repair| repair.command != back.command);
        cause.repair.insert(at.min(cause.repair.len()), back);
        if let Some(second) = cause.repair.get_mut(1) {
            second.effect = Sentence::from(INSTEAD) + std::mem::take(&mut second.effect).without(INSTEAD);
        }
    }

    fn outage(&mut self, command: &Command) -> Outage {
        let seen = self.seen;
        let deeds = deeds(seen, command);
        // Whether another pod takes the place of one that serves is not simulated.
        if deeds.iter().any(|deed| matches!(deed, Deed::Delete(key) if is_ready_pod(seen, key))) {
            return Outage::Lasting;
        }
        if deeds.is_empty() {
            return Outage::None;
        }
        let touched: BTreeSet<&str> = deeds.iter().map(Deed::namespace).collect();
        let world = match self.world(&touched) {
            Ok(Some(world)) => world,
            Ok(None) => return Outage::None,
            // What was not tried is not advised.
            Err(TooMany) => return Outage::Lasting,
        };
        if deeds.iter().all(|deed| matches!(deed, Deed::Delete(key) if world.aside.contains(key))) {
            return Outage::None;
        }
        let gone = world.gone_after(&deeds);
        if gone.is_empty() {
            return Outage::None;
        }
        // What goes anyway does not go because of the command.
        let anyway = world.gone_anyway();
        let is_lost = |(key, is_back): (&Key, &bool)| !is_back && anyway.get(key) != Some(&false);
        if gone.iter().any(is_lost) { Outage::Lasting } else { Outage::Passing }
    }

    /// What was observed of the namespaces that a command touches, and of those with operators that provide the same APIs, unless
    /// nothing serves there.
    fn world(&mut self, touched: &BTreeSet<&str>) -> Result<Option<&mut World>, TooMany> {
        let apis: BTreeSet<&str> = touched
            .iter()
            .flat_map(|namespace| versions(self.seen, namespace))
            .flat_map(owned_crds)
            .collect();
        let rivals = apis.iter().filter_map(|crd| self.owners.get(crd)).flatten();
        let namespaces: BTreeSet<&str> = touched.iter().chain(rivals).copied().collect();
        let rivals = namespaces.len() - touched.len();
        self.left = self.left.and_then(|left| left.checked_sub(rivals));
        if self.left.is_none() {
            return Err(TooMany);
        }
        if !self.last.as_ref().is_some_and(|(last, _)| last.iter().eq(touched)) {
            let names = touched.iter().map(|name| (*name).to_owned()).collect();
            self.last = Some((names, World::of(self.seen, &namespaces)));
        }
        Ok(self.last.as_mut().and_then(|(_, world)| world.as_mut()))
    }
}

/// What a command does to what serves, on a simulation of what was observed.
pub fn outage(seen: &Observation, command: &Command) -> Outage {
    Rehearsals::of(seen).outage(command)
}

/// Whether a command changes an OperatorGroup in a way that can take down an operator which was not looked for.
fn is_unseen(seen: &Observation, command: &Command) -> bool {
    let deeds = deeds(seen, command);
    deeds.iter().any(|deed| regroups(seen, deed) && !seen.knows_others(deed.namespace()))
}

/// Whether an OperatorGroup comes to select more namespaces; or is created or deleted, where something serves.
fn regroups(seen: &Observation, deed: &Deed) -> bool {
    match deed {
        Deed::Patch(key, patch) if key.kind == known::OPERATOR_GROUP.kind => {
            let Some(wanted) = patch.pointer("/spec/targetNamespaces") else { return false };
            let wanted: Vec<&str> =
                wanted.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let found = seen.get("OperatorGroup", &key.namespace, &key.name);
            let found = found.map(groups::targets).unwrap_or_default();
            // One without names selects all namespaces.
            !found.contains(&"") && (wanted.is_empty() || wanted.iter().any(|one| !found.contains(one)))
        }
        Deed::Delete(Key { kind, namespace, .. }) if *kind == known::OPERATOR_GROUP.kind => {
            versions(seen, namespace).any(|csv| serves(seen, csv))
        }
        Deed::Create(group) if group["kind"] == known::OPERATOR_GROUP.kind.as_str() => {
            versions(seen, deed.namespace()).any(|csv| serves(seen, csv))
        }
        _ => false,
    }
}

fn is_ready_pod(seen: &Observation, key: &Key) -> bool {
    key.kind == known::POD.kind
        && seen.get("Pod", &key.namespace, &key.name).is_some_and(|pod| pods::is_ready(pod))
}

/// The way back to the version that a new one was to replace, where that one still serves.
fn rollback<'o>(seen: &'o Observation, subscription: Doc<'o>, cause: &Cause) -> Option<(Doc<'o>, Repair)> {
    codes::CODES.iter().find(|code| code.name == cause.code && code.has_way_back())?;
    let old = still_serving(seen, subscription)?;
    Some((old, way_back(seen, subscription, old, cause)?))
}

/// Whether pods of a version that runs need what the cause says is missing, as a node: those that take their place would not start
/// either.
fn lacks_the_same(seen: &Observation, old: Doc<'_>, cause: &Cause) -> bool {
    let sentence = cause.sentence.to_string();
    if cause.code == codes::UNSCHEDULABLE.name && sentence.contains(" were unschedulable") {
        return true;
    }
    let is_missing = |needed: &Needed| sentence.contains(&format!("\"{}\" not found", needed.name));
    let own = workloads::wanted(old).flat_map(|name| workloads::pods_of(seen, old.namespace(), name));
    own.filter(|pod| pods::is_ready(*pod)).any(|pod| needed(&pod.0["spec"]).iter().any(is_missing))
}

/// The command that goes back to a version, and what that costs; none where the version would not come up.
pub(super) fn way_back(
    seen: &Observation,
    subscription: Doc<'_>,
    old: Doc<'_>,
    cause: &Cause,
) -> Option<Repair> {
    if lacks_the_same(seen, old, cause) {
        return None;
    }
    let version = match old.text("/spec/version") {
        "" => old.name(),
        version => version,
    };
    let (namespace, name) = (subscription.namespace(), subscription.name());
    let mut deployments =
        workloads::wanted(old).filter_map(|wanted| seen.get("Deployment", namespace, wanted));
    let state = match deployments.all(|found| workloads::is_run_by(old, found)) {
        true => "still runs",
        false => "ran before",
    };
    Some(Repair::of(
        command!("olmkit operator rollback {} -n {} --to {}", name, namespace, version),
        format!(
            "goes back to `{}`, which {state}: the operator is down for about 30 seconds, custom resources stay, and the approval becomes Manual",
            old.name()
        ),
    ))
}

/// The old version that still serves when its successor does not come up, or is gone.
fn still_serving<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Option<Doc<'o>> {
    let csv = |name: &str| seen.get("ClusterServiceVersion", subscription.namespace(), name);
    let names = versions_of(seen, subscription);
    let current = names.first().and_then(|name| csv(name));
    if current.is_some_and(|current| current.text("/status/phase") == "Succeeded") {
        return None;
    }
    let mut older = names.iter().skip(1).filter_map(|name| csv(name));
    older
        .find(|old| can_run(seen, *old))
        .or_else(|| left_behind(seen, subscription).filter(|old| current.is_none() && can_run(seen, *old)))
}

/// Whether a version has come up and serves.
fn can_run(seen: &Observation, csv: Doc<'_>) -> bool {
    matches!(csv.text("/status/phase"), "Succeeded" | "Replacing") && !csv.is_going() && serves(seen, csv)
}

/// Whether the Deployments of a version answer, whichever version their pods are of.
fn serves(seen: &Observation, csv: Doc<'_>) -> bool {
    let mut wanted = workloads::wanted(csv).peekable();
    wanted.peek().is_some() && wanted.all(|name| answers(seen, csv.namespace(), name))
}

fn answers(seen: &Observation, namespace: &str, deployment: &str) -> bool {
    let Some(found) = seen.get("Deployment", namespace, deployment) else { return false };
    found.number("/status/availableReplicas").unwrap_or(0) > 0
        || found.holding("Available").is_some()
        || workloads::pods_of(seen, namespace, deployment).any(|pod| !pod.is_going() && pods::is_ready(pod))
}

/// The versions of a namespace, copies not among them.
fn versions<'o>(seen: &'o Observation, namespace: &str) -> impl Iterator<Item = Doc<'o>> {
    seen.within("ClusterServiceVersion", namespace).filter(|csv| !csv.is_copy())
}

/// What a command changes.
enum Deed {
    Delete(Key),
    Create(Value),
    Patch(Key, Value),
}

impl Deed {
    fn namespace(&self) -> &str {
        match self {
            Self::Delete(key) | Self::Patch(key, _) => &key.namespace,
            Self::Create(object) => object["metadata"]["namespace"].as_str().unwrap_or(""),
        }
    }

    /// Does it, after a deletion or not, and says whether it was one. What is not there is not changed, what is there is not created.
    fn done(&self, cluster: &mut Simulation, is_removing: bool) -> bool {
        match self {
            Self::Delete(key) => {
                cluster.store().delete(key);
            }
            Self::Create(object) => {
                // `kubectl delete` waits, and so do we.
                if is_removing {
                    pass(cluster, GOING);
                }
                let _ = cluster.store().create(by_own_catalog(object.clone()));
            }
            Self::Patch(key, patch) => {
                let _ = cluster.store().patch(key, patch);
            }
        }
        matches!(self, Self::Delete(_))
    }
}

/// What a command changes of the objects that decide whether a version serves. What somebody edits is up to them.
fn deeds(seen: &Observation, command: &Command) -> Vec<Deed> {
    let programs = command.programs();
    let mut deeds = Vec::new();
    for (at, words) in programs.iter().enumerate() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Line { namespace, names, patch, to } = Line::of(&words);
        let namespace = namespace.unwrap_or("");
        match (words.first().copied(), &names[..]) {
            (Some("kubectl"), ["delete", objects @ ..]) => {
                deeds.extend(keys(namespace, objects).map(Deed::Delete));
            }
            (Some("kubectl"), ["patch", objects @ ..]) => {
                let patches = patch.map(merging).unwrap_or_default();
                let of =
                    |key: Key| patches.clone().into_iter().map(move |patch| Deed::Patch(key.clone(), patch));
                deeds.extend(keys(namespace, objects).flat_map(of));
            }
            (Some("kubectl"), ["create"]) => {
                let piped = at.checked_sub(1).and_then(|before| programs[before].get(1));
                deeds.extend(piped.and_then(|text| serde_json::from_str(text).ok()).map(Deed::Create));
            }
            (Some("olmkit"), ["operator", verb @ ("uninstall" | "rollback"), name, ..]) => {
                match seen.get("Subscription", namespace, name) {
                    Some(found) => {
                        deeds.extend(removal(seen, found));
                        deeds
                            .extend(again(seen, found, to).filter(|_| *verb == "rollback").map(Deed::Create));
                    }
                    None => deeds.extend(removal_of_package(seen, namespace, name)),
                }
            }
            _ => {}
        }
    }
    deeds
}

/// The words of a program, by what they mean.
#[derive(Default)]
struct Line<'w> {
    namespace: Option<&'w str>,
    names: Vec<&'w str>,
    patch: Option<&'w str>,
    to: Option<&'w str>,
}

impl<'w> Line<'w> {
    fn of(words: &[&'w str]) -> Self {
        let mut line = Self::default();
        let mut words = words.iter().skip(1).copied();
        while let Some(word) = words.next() {
            match word {
                "-n" => line.namespace = words.next(),
                "-p" => line.patch = words.next(),
                "--to" => line.to = words.next(),
                "--type" | "--subresource" | "-f" | "-l" | "-o" => drop(words.next()),
                flag if flag.starts_with('-') => {}
                name => line.names.push(name),
            }
        }
        line
    }
}

/// The objects that `KIND/NAME…` or `KIND NAME…` mean, of the kinds that matter here.
fn keys<'w>(namespace: &'w str, words: &[&'w str]) -> impl Iterator<Item = Key> + use<'w> {
    let kinds: [&Resource; 6] = [
        &known::SUBSCRIPTION,
        &known::CSV,
        &known::INSTALL_PLAN,
        &known::OPERATOR_GROUP,
        &known::DEPLOYMENT,
        &known::POD,
    ];
    let resource = move |word: &str| {
        let word = word.split('.').next().unwrap_or(word);
        kinds.into_iter().find(|one| one.kind.to_lowercase() == word || one.plural == word)
    };
    let pairs: Vec<(&str, &str)> = match words {
        [kind, names @ ..] if !kind.contains('/') => names.iter().map(|name| (*kind, *name)).collect(),
        words => words.iter().filter_map(|word| word.split_once('/')).collect(),
    };
    pairs.into_iter().filter_map(move |(kind, name)| Some(Key::new(resource(kind)?, namespace, name)))
}

/// A patch as some that are merged, one after another: each operation of a list is one.
fn merging(text: &str) -> Vec<Value> {
    let nested = |operation: &Value| {
        let steps = operation["path"].as_str().unwrap_or("").rsplit('/').filter(|step| !step.is_empty());
        steps.fold(operation["value"].clone(), |below, step| json!({step: below}))
    };
    match serde_json::from_str(text).unwrap_or_default() {
        Value::Array(operations) => operations.iter().map(nested).collect(),
        patch => vec![patch],
    }
}

/// A Subscription and its versions go.
fn removal(seen: &Observation, subscription: Doc<'_>) -> Vec<Deed> {
    let namespace = subscription.namespace();
    let names = of_subscription(seen, subscription).into_iter();
    let csvs = names.map(|name| Deed::Delete(Key::new(&known::CSV, namespace, name)));
    std::iter::once(Deed::Delete(Key::of(subscription.0))).chain(csvs).collect()
}

/// The versions of a package without a Subscription go, with those that they replace.
fn removal_of_package(seen: &Observation, namespace: &str, package: &str) -> Vec<Deed> {
    let of_package = |csv: &Doc<'_>| super::versions::package_of(*csv).as_deref() == Some(package);
    let named = versions(seen, namespace).filter(of_package).map(Doc::name);
    let names = lineage(named, |name| {
        Some(seen.get("ClusterServiceVersion", namespace, name)?.text("/spec/replaces"))
    });
    names.into_iter().map(|name| Deed::Delete(Key::new(&known::CSV, namespace, name))).collect()
}

/// A Subscription as `rollback` makes it again, and as if its plan were approved.
fn again(seen: &Observation, subscription: Doc<'_>, to: Option<&str>) -> Option<Value> {
    let names = of_subscription(seen, subscription);
    let target = names.iter().find(|name| {
        let csv = seen.get("ClusterServiceVersion", subscription.namespace(), name);
        csv.is_some_and(|csv| [csv.text("/spec/version"), csv.name()].map(Some).contains(&to))
    })?;
    let mut spec = subscription.0["spec"].clone();
    merge(&mut spec, &json!({"startingCSV": target, "installPlanApproval": "Automatic"}));
    Some(json!({
        "apiVersion": known::SUBSCRIPTION.api_version(), "kind": known::SUBSCRIPTION.kind,
        "metadata": {"name": subscription.name(), "namespace": subscription.namespace()}, "spec": spec,
    }))
}

/// The names of the versions that a Subscription may have, the newest first: by its status, else by their package.
fn of_subscription<'o>(seen: &'o Observation, subscription: Doc<'o>) -> Vec<&'o str> {
    let mut names = versions_of(seen, subscription);
    let package = subscription.text("/spec/name");
    let more = versions(seen, subscription.namespace())
        .filter(|csv| super::versions::package_of(*csv).as_deref() == Some(package))
        .map(Doc::name)
        .chain(left_behind(seen, subscription).map(Doc::name));
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What was observed of some namespaces, as a simulated cluster.
struct World {
    cluster: Simulation,
    /// The Deployments that serve.
    serving: BTreeSet<Key>,
    /// The versions that can run.
    running: BTreeSet<(String, String)>,
    /// The versions that take no part: nothing that serves goes with one of them.
    aside: BTreeSet<Key>,
    /// What goes without a command, once that was asked.
    anyway: Option<BTreeMap<Key, bool>>,
}

impl World {
    /// Some namespaces; none when nothing serves there.
    fn of(seen: &Observation, namespaces: &BTreeSet<&str>) -> Option<Self> {
        let mut csvs: Vec<Doc<'_>> =
            namespaces.iter().flat_map(|namespace| versions(seen, namespace)).collect();
        let serving = csvs.iter().filter(|csv| serves(seen, **csv)).flat_map(|csv| {
            workloads::wanted(*csv).map(|name| Key::new(&known::DEPLOYMENT, csv.namespace(), name))
        });
        let running = csvs.iter().filter(|csv| can_run(seen, **csv));
        let running = running.map(|csv| (csv.namespace().to_owned(), csv.name().to_owned()));
        let (serving, running): (BTreeSet<Key>, _) = (serving.collect(), running.collect());
        if serving.is_empty() {
            return None;
        }
        let aside = aside(seen, &csvs, &serving);
        csvs.retain(|csv| !aside.contains(&Key::of(csv.0)));
        let (registry, catalogs) = offers(seen, namespaces);
        let within = namespaces.iter().flat_map(|namespace| {
            KINDS.into_iter().flat_map(|kind| seen.within(kind, namespace).filter(|one| !one.is_copy()))
        });
        let within = within.filter(|one| !aside.contains(&Key::of(one.0)));
        let objects = within.map(|one| object(one, &csvs)).chain(crds(&csvs)).chain(catalogs);
        let mut cluster = Simulation::new(registry);
        *cluster.store() = Store::of(objects, Duration::ZERO);
        Some(Self { cluster, serving, running, aside, anyway: None })
    }

    fn gone_anyway(&mut self) -> &BTreeMap<Key, bool> {
        let anyway = self.anyway.take().unwrap_or_else(|| self.gone_after(&[]));
        self.anyway.insert(anyway)
    }

    /// The Deployments that served and were taken away after something was done, and whether they are back.
    fn gone_after(&self, deeds: &[Deed]) -> BTreeMap<Key, bool> {
        let mut cluster = self.cluster.clone();
        cluster.keep_events();
        let mut is_removing = false;
        for deed in deeds {
            is_removing = deed.done(&mut cluster, is_removing);
        }
        pass(&mut cluster, AFTERWARDS);
        let mut gone = BTreeMap::new();
        for event in cluster.events() {
            let key = Key::of(&event.object);
            let labels = event.object.pointer("/metadata/labels");
            let owner = labels.and_then(|labels| labels[label::OWNER].as_str()).unwrap_or_default();
            match event.kind {
                EventKind::Deleted if self.serving.contains(&key) => {
                    gone.insert(key, false);
                }
                // What OLM goes on to from there is an upgrade like any other.
                EventKind::Added if self.running.contains(&(key.namespace.clone(), owner.to_owned())) => {
                    gone.entry(key).and_modify(|is_back| *is_back = true);
                }
                _ => {}
            }
        }
        gone
    }
}

/// Of the versions that no Subscription knows and that have no Deployment which serves, all but the first few: hundreds of them would
/// make a simulation slow, and change no more than those do.
fn aside(seen: &Observation, csvs: &[Doc<'_>], serving: &BTreeSet<Key>) -> BTreeSet<Key> {
    const MOST_IDLE: usize = 5;
    let referenced = super::versions::referenced(seen);
    let is_idle = |csv: &&Doc<'_>| {
        let deployment = |name: &str| Key::new(&known::DEPLOYMENT, csv.namespace(), name);
        !referenced.contains(&(csv.namespace(), csv.name()))
            && !workloads::wanted(**csv).any(|name| serving.contains(&deployment(name)))
    };
    csvs.iter().filter(is_idle).skip(MOST_IDLE).map(|csv| Key::of(csv.0)).collect()
}

/// Lets time pass.
fn pass(cluster: &mut Simulation, time: Duration) {
    let deadline = cluster.store().now() + time;
    (0..MOST).take_while(|_| cluster.step(deadline)).for_each(drop);
}

/// An object as the simulation needs it: with an identity, and a Deployment with its owners.
fn object(found: Doc<'_>, csvs: &[Doc<'_>]) -> Value {
    let mut object = found.0.clone();
    lean(&mut object);
    if object.pointer("/metadata/uid").is_none() {
        object["metadata"]["uid"] = identity(found).into();
    }
    let is_unowned = object.pointer("/metadata/ownerReferences").is_none();
    if found.kind() == known::DEPLOYMENT.kind && is_unowned {
        let own = csvs.iter().filter(|csv| csv.namespace() == found.namespace());
        let own: Vec<_> =
            own.filter(|csv| workloads::wanted(**csv).any(|name| name == found.name())).collect();
        let references = own
            .iter()
            .map(|csv| json!({"kind": known::CSV.kind, "name": csv.name(), "uid": identity(**csv)}));
        let metadata = json!({
            "ownerReferences": references.collect::<Vec<_>>(),
            "labels": {label::OWNER: own.first().map(|csv| csv.name())},
        });
        merge(&mut object, &json!({ "metadata": metadata }));
    }
    match found.kind() {
        "Subscription" => by_own_catalog(object),
        "ClusterServiceVersion" => installable(object),
        _ => object,
    }
}

fn identity(found: Doc<'_>) -> String {
    match found.text("/metadata/uid") {
        "" => format!("{}/{}/{}", found.kind(), found.namespace(), found.name()),
        uid => uid.to_owned(),
    }
}

/// A ClusterServiceVersion without what it requires of the cluster: that is there for one that runs.
fn installable(mut csv: Value) -> Value {
    let nothing = json!({"spec": {
        "minKubeVersion": null, "apiservicedefinitions": null, "nativeAPIs": null,
        "customresourcedefinitions": {"required": null},
    }});
    merge(&mut csv, &nothing);
    csv
}

/// A Subscription with a catalog of its own, which has what is known of its package.
fn by_own_catalog(mut subscription: Value) -> Value {
    let key = Key::of(&subscription);
    merge(&mut subscription, &json!({"spec": {"source": key.name, "sourceNamespace": key.namespace}}));
    subscription
}

/// For each Subscription a catalog with the versions that are known.
fn offers(seen: &Observation, namespaces: &BTreeSet<&str>) -> (Registry, Vec<Value>) {
    let mut registry = Registry::default();
    let mut catalogs = Vec::new();
    for subscription in namespaces.iter().flat_map(|namespace| seen.within("Subscription", namespace)) {
        let (namespace, name) = (subscription.namespace(), subscription.name());
        let names = of_subscription(seen, subscription);
        let image = format!("{namespace}/{name}");
        for csv in names.iter().filter_map(|csv| seen.get("ClusterServiceVersion", namespace, csv)) {
            let spec = installable(csv.0.clone())["spec"].clone();
            let fresh = json!({
                "apiVersion": known::CSV.api_version(), "kind": known::CSV.kind,
                "metadata": {"name": csv.name()}, "spec": spec,
            });
            registry.bundles.insert(csv.name().to_owned(), vec![fresh]);
        }
        let offer = Offer::of(&catalog(seen, subscription, &names));
        registry.catalogs.insert(image.clone(), Arc::new(offer));
        catalogs.push(json!({
            "apiVersion": known::CATALOG_SOURCE.api_version(), "kind": known::CATALOG_SOURCE.kind,
            "metadata": {"name": name, "namespace": namespace, "uid": image},
            "spec": {"sourceType": "grpc", "image": image},
        }));
    }
    (registry, catalogs)
}

/// A package with one channel of what is known, each version replacing the next.
fn catalog<'o>(seen: &'o Observation, subscription: Doc<'o>, names: &[&'o str]) -> fbc::Catalog<'static> {
    let package = subscription.text("/spec/name").to_owned();
    let channel = match subscription.text("/spec/channel") {
        "" => "stable",
        channel => channel,
    };
    let mut catalog = fbc::Catalog::default();
    catalog.packages.push(fbc::Package {
        name: package.clone().into(),
        default_channel: channel.to_owned().into(),
        ..fbc::Package::default()
    });
    let older = names.iter().skip(1).copied().chain([""]);
    let entries = names.iter().zip(older).map(|(name, older)| fbc::Entry {
        name: (*name).to_owned().into(),
        replaces: older.to_owned().into(),
        ..fbc::Entry::default()
    });
    catalog.channels.push(fbc::Channel {
        name: channel.to_owned().into(),
        package: package.clone().into(),
        entries: entries.collect(),
        ..fbc::Channel::default()
    });
    for (at, name) in names.iter().enumerate() {
        let csv = seen.get("ClusterServiceVersion", subscription.namespace(), name);
        let version = csv.map_or("", |csv| csv.text("/spec/version"));
        // A CSV that is gone has no version: the position in the channel gives one, so that newer stays newer.
        let version =
            if version.is_empty() { format!("0.0.{}", names.len() - at) } else { version.to_owned() };
        let value = json!({"packageName": package, "version": version});
        catalog.bundles.push(fbc::Bundle {
            name: (*name).to_owned().into(),
            package: package.clone().into(),
            image: format!("bundle/{name}").into(),
            properties: vec![fbc::Property {
                kind: "olm.package".into(),
                value: Some(value.into()),
                ..fbc::Property::default()
            }],
            ..fbc::Bundle::default()
        });
    }
    catalog
}

/// The CRDs that the versions own, with every version that one of them owns.
fn crds(csvs: &[Doc<'_>]) -> Vec<Value> {
    let mut versions: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for owned in csvs.iter().flat_map(|csv| csv.list("/spec/customresourcedefinitions/owned")).map(Doc) {
        versions.entry(owned.text("/name")).or_default().insert(owned.text("/version"), owned.text("/kind"));
    }
    let crd = |(name, versions): (&str, BTreeMap<&str, &str>)| {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        let kind = versions.values().next().copied().unwrap_or("");
        let last = versions.keys().next_back().copied().unwrap_or("");
        let served = versions.keys().map(|one| json!({"name": one, "served": true, "storage": *one == last}));
        json!({
            "apiVersion": known::CRD.api_version(), "kind": known::CRD.kind,
            "metadata": {"name": name, "uid": name},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                "versions": served.collect::<Vec<_>>(),
            },
        })
    };
    versions.into_iter().map(crd).collect()
}
