//! What the doctor looks at on a cluster: OLM's objects first, and the pods, Jobs and events of those namespaces where something
//! is not as it should be. A right that is missing makes a partial observation.
//!
//! Lists are read in pages, and of each object only that is kept which a cause is read from: a cluster has thousands of pods and of
//! copied ClusterServiceVersions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::doc::Doc;
use super::lean::{lean, metadata_of};
use super::observation::Observation;
use super::relations::owned_crds;
use super::{Cause, Scope, State, codes, diagnose, namespaces, refusals, unpack, workloads};
use crate::lifecycle::api::{Resource, known, label};
use crate::lifecycle::cluster::{Cluster, ClusterError, Selection};
use crate::lifecycle::olm::{CATALOG_OPERATOR, OLM_OPERATOR};

/// From so many namespaces on, all of the cluster are asked for at once.
const MANY: usize = 8;
/// ClusterServiceVersions and InstallPlans are large.
const SMALL_PAGE: u32 = 50;

/// A kind that is listed, and which objects of it.
struct Part {
    kind: &'static Resource,
    selection: Selection<'static>,
}

/// The namespaces where something is not as it should be.
#[derive(Default)]
struct Suspects {
    operators: BTreeSet<String>,
    catalogs: BTreeSet<String>,
    /// Whether a repair may change which namespaces an OperatorGroup selects.
    are_groups: bool,
}

impl Suspects {
    fn all(&self) -> BTreeSet<String> {
        self.operators.union(&self.catalogs).cloned().collect()
    }
}

const ALL: Selection<'static> = Selection { labels: "", fields: "", metadata_only: false, page: 0 };

/// Looks at a cluster.
///
/// # Errors
/// It does not answer, or has no OLM.
pub fn observe(
    cluster: &mut dyn Cluster,
    scope: &Scope,
    now: Option<i64>,
) -> Result<Observation, ClusterError> {
    let mut seen = Observation::new();
    list(cluster, &mut seen, &known::SUBSCRIPTION, scope.namespace.as_deref())?;
    complete(cluster, seen, scope, now)
}

/// Why OLM does not run, where its Deployments may be looked at; none while it runs, and where they cannot be seen.
///
/// # Errors
/// The cluster does not answer.
pub fn olm_fault(cluster: &mut dyn Cluster, now: i64) -> Result<Option<Cause>, ClusterError> {
    let mut seen = Observation::new();
    for name in [CATALOG_OPERATOR, OLM_OPERATOR] {
        let fields = format!("metadata.name={name}");
        let selection = Selection { fields: &fields, page: 200, ..ALL };
        let mut found = Vec::new();
        let listed = cluster.each(&known::DEPLOYMENT, None, &selection, &mut |object| {
            if Doc(&object).name() == name {
                found.push(object);
            }
        });
        match listed {
            Err(ClusterError::Forbidden { .. } | ClusterError::NotServed { .. }) => return Ok(None),
            listed => listed?,
        }
        // Another one of this name may be left somewhere.
        if found.iter().all(|one| Doc(one).number("/status/availableReplicas").unwrap_or(0) == 0) {
            found.into_iter().for_each(|object| seen.put(object));
        }
    }
    seen.at(now, 0);
    Ok(namespaces::olm(&seen))
}

/// Lists a kind of OLM's for an observation.
///
/// # Errors
/// It may not be listed, or the cluster does not answer.
pub fn list(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    kind: &Resource,
    within: Option<&str>,
) -> Result<(), ClusterError> {
    let part = olm().into_iter().find(|part| part.kind == kind);
    let selection = part.map_or(ALL, |part| part.selection);
    cluster.each(kind, within, &selection, &mut |mut object| {
        lean(&mut object);
        seen.add(object);
    })?;
    seen.look_at(kind.kind.as_str());
    Ok(())
}

/// Looks at everything of a cluster that an observation does not have yet.
///
/// # Errors
/// It does not answer, or has no OLM.
pub fn complete(
    cluster: &mut dyn Cluster,
    mut seen: Observation,
    scope: &Scope,
    now: Option<i64>,
) -> Result<Observation, ClusterError> {
    let within = scope.namespace.as_deref();
    let settle = |seen: &mut Observation| match now {
        Some(now) => seen.at(now, 0),
        None => seen.at_newest(),
    };
    for part in olm() {
        if !seen.looked_at(&part.kind.kind) {
            part_of(cluster, &mut seen, &part, within, |_| true)?;
        }
    }
    foreign_catalogs(cluster, &mut seen, within)?;
    copies(cluster, &mut seen)?;
    let is_installed = |csv: Doc<'_>| csv.text("/status/phase") == "Succeeded";
    if !seen.looked_at(&known::DEPLOYMENT.kind) && seen.of("ClusterServiceVersion").any(is_installed) {
        deployments(cluster, &mut seen, within)?;
    }
    settle(&mut seen);
    let ill = suspects(&seen, scope);
    around(cluster, &mut seen, &ill, within)?;
    bundles(cluster, &mut seen)?;
    crds(cluster, &mut seen)?;
    if mentions_webhook(&seen) {
        for kind in [&known::VALIDATING_WEBHOOK, &known::MUTATING_WEBHOOK] {
            part_of(cluster, &mut seen, &Part { kind, selection: ALL }, None, |_| true)?;
        }
    }
    if let Some(namespace) = within.filter(|_| ill.are_groups) {
        elsewhere(cluster, &mut seen, namespace)?;
    }
    settle(&mut seen);
    Ok(seen)
}

/// The CRDs that versions and plans complain of.
fn crds(cluster: &mut dyn Cluster, seen: &mut Observation) -> Result<(), ClusterError> {
    let required = seen
        .of("ClusterServiceVersion")
        .flat_map(|csv| csv.list("/status/requirementStatus"))
        .filter(|one| one["kind"] == "CustomResourceDefinition" && one["status"] != "Present")
        .filter_map(|one| one["name"].as_str());
    let planned = seen.of("InstallPlan").filter_map(|plan| {
        let message = plan.text("/status/message");
        refusals::is_not_served(message).then(|| refusals::crd(message))?
    });
    let names: BTreeSet<String> = required.chain(planned).map(str::to_owned).collect();
    for name in names {
        get(cluster, seen, &known::CRD, "", &name)?;
    }
    Ok(())
}

/// The operators of other namespaces that provide the same APIs, where they may be looked at: what an OperatorGroup selects decides
/// whether they run on.
fn elsewhere(cluster: &mut dyn Cluster, seen: &mut Observation, namespace: &str) -> Result<(), ClusterError> {
    match rivals(cluster, seen, namespace) {
        Ok(found) => {
            found.into_iter().for_each(|mut object| {
                lean(&mut object);
                seen.put(object);
            });
            seen.look_everywhere();
            Ok(())
        }
        Err(error @ (ClusterError::Forbidden { .. } | ClusterError::NotServed { .. })) => {
            seen.miss("operators of other namespaces", error.to_string());
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Versions of other namespaces that own a CRD of this one, with their Deployments and OperatorGroups.
fn rivals(
    cluster: &mut dyn Cluster,
    seen: &Observation,
    namespace: &str,
) -> Result<Vec<Value>, ClusterError> {
    let own = seen.within("ClusterServiceVersion", namespace).filter(|csv| !csv.is_copy());
    let own: BTreeSet<&str> = own.flat_map(owned_crds).collect();
    let mut found = Vec::new();
    let selection = Selection { labels: "!olm.copiedFrom", page: SMALL_PAGE, ..ALL };
    cluster.each(&known::CSV, None, &selection, &mut |object| {
        let csv = Doc(&object);
        let is_foreign = csv.namespace() != namespace && !csv.is_copy();
        if is_foreign && owned_crds(csv).any(|crd| own.contains(crd)) {
            found.push(object);
        }
    })?;
    let mut around = Vec::new();
    for csv in found.iter().map(Doc) {
        for name in workloads::wanted(csv) {
            around.extend(cluster.get(&known::DEPLOYMENT, csv.namespace(), name)?);
        }
        around.extend(cluster.list(&known::OPERATOR_GROUP, Some(csv.namespace()))?);
    }
    found.extend(around);
    Ok(found)
}

/// The kinds of OLM that come with the Subscriptions.
fn olm() -> [Part; 5] {
    let small = Selection { page: SMALL_PAGE, ..ALL };
    [
        // OLM copies those of operators for all namespaces into every namespace.
        Part { kind: &known::CSV, selection: Selection { labels: "!olm.copiedFrom", ..small } },
        Part { kind: &known::INSTALL_PLAN, selection: small },
        Part { kind: &known::OPERATOR_GROUP, selection: ALL },
        Part { kind: &known::CATALOG_SOURCE, selection: ALL },
        Part { kind: &known::OPERATOR_CONDITION, selection: ALL },
    ]
}

/// Catalogs are mostly in another namespace; where they may not be listed, those that are named may still be read.
fn foreign_catalogs(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    within: Option<&str>,
) -> Result<(), ClusterError> {
    let named: BTreeSet<(String, String)> = seen
        .of("Subscription")
        .map(|one| (one.text("/spec/sourceNamespace").to_owned(), one.text("/spec/source").to_owned()))
        .filter(|(home, name)| !home.is_empty() && !name.is_empty())
        .collect();
    let homes: BTreeSet<&str> = named.iter().map(|(home, _)| home.as_str()).collect();
    let elsewhere = homes.into_iter().filter(|home| within.is_some_and(|within| within != *home));
    for home in elsewhere {
        let part = Part { kind: &known::CATALOG_SOURCE, selection: ALL };
        part_of(cluster, seen, &part, Some(home), |_| true)?;
    }
    if seen.may_not_list(&known::CATALOG_SOURCE.kind) {
        for (home, name) in &named {
            get(cluster, seen, &known::CATALOG_SOURCE, home, name)?;
        }
    }
    Ok(())
}

/// A Subscription may have taken a copied version for its own, and copies are not listed.
fn copies(cluster: &mut dyn Cluster, seen: &mut Observation) -> Result<(), ClusterError> {
    let mut missing = BTreeSet::new();
    for one in seen.of("Subscription") {
        for field in ["/status/installedCSV", "/status/currentCSV"] {
            let name = one.text(field);
            if !name.is_empty() && seen.get("ClusterServiceVersion", one.namespace(), name).is_none() {
                missing.insert((one.namespace().to_owned(), name.to_owned()));
            }
        }
    }
    for (namespace, name) in missing {
        get(cluster, seen, &known::CSV, &namespace, &name)?;
    }
    Ok(())
}

/// The Deployments of installed versions: OLM calls them Succeeded also when somebody has scaled them to zero.
fn deployments(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    within: Option<&str>,
) -> Result<(), ClusterError> {
    let selection = Selection { labels: label::OWNER, page: 200, ..ALL };
    let listed = cluster.each(&known::DEPLOYMENT, within, &selection, &mut |mut object| {
        lean(&mut object);
        seen.put(object);
    });
    match listed {
        Ok(()) => Ok(()),
        Err(error @ (ClusterError::Forbidden { .. } | ClusterError::NotServed { .. })) => {
            seen.miss(known::DEPLOYMENT.kind.as_str(), error.to_string());
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// What is around the operators of namespaces in which something is not as it should be.
fn around(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    ill: &Suspects,
    within: Option<&str>,
) -> Result<(), ClusterError> {
    let all = ill.all();
    let part = |kind, selection| Part { kind, selection };
    // Bundles are unpacked beside their catalog.
    let unpacked = Selection { labels: "olm.managed=true", metadata_only: true, ..ALL };
    let mut parts = vec![
        (part(&known::DEPLOYMENT, Selection { page: 200, ..ALL }), &all),
        (part(&known::JOB, Selection { labels: label::UNPACK, ..ALL }), &ill.catalogs),
        (part(&known::POD, ALL), &all),
        (part(&known::CONFIG_MAP, unpacked), &ill.catalogs),
        (part(&known::EVENT, Selection { fields: "type=Warning", ..ALL }), &all),
    ];
    if seen.of("OperatorGroup").any(|group| !group.text("/spec/serviceAccountName").is_empty()) {
        let selection = Selection { metadata_only: true, ..ALL };
        parts.push((part(&known::SERVICE_ACCOUNT, selection), &ill.operators));
    }
    // For one operator its Deployments may have been read already.
    let known_in = within.filter(|_| seen.looked_at(&known::DEPLOYMENT.kind));
    if !cluster.has_pods() {
        parts.retain(|(part, _)| part.kind.kind != known::POD.kind);
        seen.miss(known::POD.kind.as_str(), "a simulated cluster has no pods");
    }
    for (part, ill) in &parts {
        if ill.len() > MANY && within.is_none() {
            let is_pod = part.kind.kind == known::POD.kind;
            let stems = if is_pod { stems(seen) } else { BTreeSet::new() };
            let is_meant = |object: &Value| {
                let object = Doc(object);
                let is_olm = matches!(object.name(), "olm-operator" | "catalog-operator");
                (ill.contains(object.namespace()) || is_olm) && (!is_pod || is_of_operator(object, &stems))
            };
            part_of(cluster, seen, part, None, is_meant)?;
        } else {
            for namespace in *ill {
                if part.kind.kind != known::DEPLOYMENT.kind || known_in != Some(namespace.as_str()) {
                    part_of(cluster, seen, part, Some(namespace), |_| true)?;
                }
            }
        }
        if ill.is_empty() {
            seen.look_at(part.kind.kind.as_str());
        }
    }
    if ill.operators.len() > MANY {
        let part = part(&known::NAMESPACE, ALL);
        return part_of(cluster, seen, &part, None, |object| ill.operators.contains(Doc(object).name()));
    }
    // One that is asked about may be on its way out, with nothing in it that is ill.
    if let Some(namespace) = within.filter(|one| !ill.operators.contains(*one)) {
        get(cluster, seen, &known::NAMESPACE, "", namespace)?;
    }
    for namespace in &ill.operators {
        get(cluster, seen, &known::NAMESPACE, "", namespace)?;
    }
    Ok(())
}

/// The Deployments of operators, by namespace and name.
fn stems(seen: &Observation) -> BTreeSet<(String, String)> {
    let wanted = seen.of("ClusterServiceVersion").flat_map(|csv| {
        let names = csv.list("/spec/install/spec/deployments").filter_map(|one| one["name"].as_str());
        names.map(move |name| (csv.namespace().to_owned(), name.to_owned()))
    });
    wanted.collect()
}

/// Whether a pod belongs to an operator, a catalog or an unpack Job.
fn is_of_operator(pod: Doc<'_>, deployments: &BTreeSet<(String, String)>) -> bool {
    let is_labelled = ["olm.catalogSource", "job-name", "batch.kubernetes.io/job-name"]
        .iter()
        .any(|name| !pod.label(name).is_empty());
    let set = pod.owners("ReplicaSet").next().and_then(|set| set.rsplit_once('-'));
    is_labelled
        || set.is_some_and(|(name, _)| deployments.contains(&(pod.namespace().to_owned(), name.to_owned())))
}

/// Unpacked bundles of Subscriptions that have no plan: only these are read whole, since they hold compressed manifests.
fn bundles(cluster: &mut dyn Cluster, seen: &mut Observation) -> Result<(), ClusterError> {
    let waiting: Vec<(String, String)> = seen
        .of("Subscription")
        .filter(|one| one.text("/status/currentCSV").is_empty())
        .map(|one| (one.text("/spec/sourceNamespace").to_owned(), one.text("/spec/name").to_owned()))
        .collect();
    let names: Vec<(String, String)> = seen
        .of("ConfigMap")
        .filter(|map| waiting.iter().any(|(home, package)| unpack::is_bundle_of(*map, home, package)))
        .map(|map| (map.namespace().to_owned(), map.name().to_owned()))
        .collect();
    for (namespace, name) in names {
        get(cluster, seen, &known::CONFIG_MAP, &namespace, &name)?;
    }
    Ok(())
}

fn suspects(seen: &Observation, scope: &Scope) -> Suspects {
    let diagnosis = diagnose(seen, scope);
    let are_groups = diagnosis.causes.iter().any(|cause| codes::is_of_groups(cause.code));
    let mut ill = Suspects { are_groups, ..Suspects::default() };
    for one in &diagnosis.operators {
        let subscription = seen.get("Subscription", &one.namespace, &one.subscription);
        // These may be stale, or the only sign that the next version cannot be had.
        let is_told = |found: Doc<'_>| {
            ["ResolutionFailed", "BundleUnpacking", "BundleUnpackFailed"]
                .iter()
                .any(|kind| found.holding(kind).is_some())
        };
        let is_ill = one.state != State::Healthy || subscription.is_some_and(is_told);
        if is_ill || scope.name.is_some() {
            ill.operators.insert(one.namespace.clone());
        }
        if let Some(subscription) = subscription.filter(|_| is_ill) {
            ill.catalogs.insert(subscription.text("/spec/sourceNamespace").to_owned());
        }
    }
    if !seen.may_not_list(&known::DEPLOYMENT.kind) {
        let installed = seen.of("ClusterServiceVersion").filter(|csv| {
            let is_meant = scope.name.is_none()
                && scope.namespace.as_ref().is_none_or(|namespace| csv.namespace() == namespace);
            is_meant && !csv.is_copy() && csv.text("/status/phase") == "Succeeded"
        });
        let down =
            installed.filter(|csv| workloads::wanted(*csv).any(|name| workloads::is_down(seen, *csv, name)));
        ill.operators.extend(down.map(|csv| csv.namespace().to_owned()));
    }
    let is_down = |one: &Doc<'_>| one.text("/status/connectionState/lastObservedState") != "READY";
    ill.catalogs.extend(seen.of("CatalogSource").filter(is_down).map(|one| one.namespace().to_owned()));
    ill.catalogs.remove("");
    ill
}

fn mentions_webhook(seen: &Observation) -> bool {
    let plans = seen.of("InstallPlan").map(|one| one.text("/status/message").to_owned());
    let deployments = seen.of("Deployment").flat_map(|one| one.list("/status/conditions"));
    let deployments = deployments.filter_map(|one| one["message"].as_str().map(str::to_owned));
    let csvs = seen.of("ClusterServiceVersion").map(|one| one.text("/status/message").to_owned());
    plans.chain(deployments).chain(csvs).any(|message| message.contains("webhook"))
}

/// Lists a kind; what may not be listed is missing from the observation.
fn part_of(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    part: &Part,
    within: Option<&str>,
    is_meant: impl Fn(&Value) -> bool,
) -> Result<(), ClusterError> {
    let name = part.kind.kind.as_str();
    let done = cluster.each(part.kind, within, &part.selection, &mut |object| {
        if is_meant(&object) {
            let mut object = if part.selection.metadata_only { metadata_of(object) } else { object };
            lean(&mut object);
            seen.add(object);
        }
    });
    match done {
        Ok(()) => seen.look_at(name),
        Err(error @ (ClusterError::Forbidden { .. } | ClusterError::NotServed { .. })) => {
            seen.miss(name, error.to_string());
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn get(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    kind: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), ClusterError> {
    match cluster.get(kind, namespace, name) {
        Ok(found) => found.into_iter().for_each(|mut object| {
            lean(&mut object);
            seen.put(object);
        }),
        Err(error @ (ClusterError::Forbidden { .. } | ClusterError::NotServed { .. })) => {
            seen.miss(kind.kind.as_str(), error.to_string());
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
