//! What the doctor looks at on a cluster: OLM's objects first, and the pods, Jobs and events of those namespaces where something
//! is not as it should be. A right that is missing makes a partial observation.

use std::collections::BTreeSet;

use super::{Observation, Scope, State, diagnose};
use crate::lifecycle::api::{Resource, known, label};
use crate::lifecycle::cluster::{Cluster, ClusterError};

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
    let within = scope.namespace.as_deref();
    let settle = |seen: &mut Observation| match now {
        Some(now) => seen.at(now, 0),
        None => seen.at_newest(),
    };
    match cluster.list(&known::SUBSCRIPTION, within) {
        Ok(found) => keep(&mut seen, &known::SUBSCRIPTION, found),
        Err(error) => return Err(error),
    }
    for kind in [
        &known::CSV,
        &known::INSTALL_PLAN,
        &known::OPERATOR_GROUP,
        &known::CATALOG_SOURCE,
        &known::OPERATOR_CONDITION,
    ] {
        list(cluster, &mut seen, kind, within)?;
    }
    // Catalogs are mostly in another namespace.
    if let Some(namespace) = within {
        let homes: BTreeSet<String> =
            seen.of("Subscription").map(|one| one.text("/spec/sourceNamespace").to_owned()).collect();
        for home in homes.iter().filter(|home| *home != namespace && !home.is_empty()) {
            list(cluster, &mut seen, &known::CATALOG_SOURCE, Some(home))?;
        }
    }
    settle(&mut seen);
    let ill: BTreeSet<String> = suspects(&seen, scope);
    let whole = ill.len() > 20;
    for kind in [
        &known::DEPLOYMENT,
        &known::JOB,
        &known::POD,
        &known::CONFIG_MAP,
        &known::EVENT,
        &known::SERVICE_ACCOUNT,
    ] {
        // Many namespaces are asked for at once.
        if whole && within.is_none() {
            list(cluster, &mut seen, kind, None)?;
            continue;
        }
        for namespace in &ill {
            list(cluster, &mut seen, kind, Some(namespace))?;
        }
        if ill.is_empty() {
            seen.look_at(kind.kind.as_str());
        }
    }
    for namespace in &ill {
        get(cluster, &mut seen, &known::NAMESPACE, namespace)?;
    }
    let crds: BTreeSet<String> = seen
        .of("ClusterServiceVersion")
        .flat_map(|csv| csv.list("/status/requirementStatus"))
        .filter(|one| one["kind"] == "CustomResourceDefinition" && one["status"] != "Present")
        .filter_map(|one| one["name"].as_str().map(str::to_owned))
        .collect();
    for name in crds {
        get(cluster, &mut seen, &known::CRD, &name)?;
    }
    if mentions_webhook(&seen) {
        for kind in [&known::VALIDATING_WEBHOOK, &known::MUTATING_WEBHOOK] {
            list(cluster, &mut seen, kind, None)?;
        }
    }
    settle(&mut seen);
    Ok(seen)
}

/// The namespaces where something is not as it should be, with those of their catalogs.
fn suspects(seen: &Observation, scope: &Scope) -> BTreeSet<String> {
    let diagnosis = diagnose(seen, scope);
    let mut ill: BTreeSet<String> = BTreeSet::new();
    for one in diagnosis.operators.iter().filter(|one| one.state != State::Healthy) {
        ill.insert(one.namespace.clone());
        if let Some(subscription) = seen.get("Subscription", &one.namespace, &one.subscription) {
            ill.insert(subscription.text("/spec/sourceNamespace").to_owned());
        }
    }
    let is_down = |one: &super::Doc<'_>| one.text("/status/connectionState/lastObservedState") != "READY";
    ill.extend(seen.of("CatalogSource").filter(is_down).map(|one| one.namespace().to_owned()));
    ill.extend(diagnosis.operators.iter().filter(|_| scope.name.is_some()).map(|one| one.namespace.clone()));
    ill.remove("");
    ill
}

fn mentions_webhook(seen: &Observation) -> bool {
    let plans = seen.of("InstallPlan").map(|one| one.text("/status/message").to_owned());
    let deployments = seen.of("Deployment").flat_map(|one| one.list("/status/conditions"));
    let deployments = deployments.filter_map(|one| one["message"].as_str().map(str::to_owned));
    let csvs = seen.of("ClusterServiceVersion").map(|one| one.text("/status/message").to_owned());
    plans.chain(deployments).chain(csvs).any(|message| message.contains("webhook"))
}

fn keep(seen: &mut Observation, kind: &Resource, found: Vec<serde_json::Value>) {
    seen.look_at(kind.kind.as_str());
    for object in found {
        let is_bundle = kind.kind != "ConfigMap"
            || object.pointer("/metadata/labels").is_some_and(|all| all[label::MANAGED] == "true");
        if is_bundle {
            seen.add(object);
        }
    }
}

/// Lists a kind; what may not be listed is missing from the observation.
fn list(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    kind: &Resource,
    within: Option<&str>,
) -> Result<(), ClusterError> {
    match cluster.list(kind, within) {
        Ok(found) => keep(seen, kind, found),
        Err(error @ ClusterError::Forbidden { .. }) => seen.miss(kind.kind.as_str(), error.to_string()),
        Err(error @ ClusterError::NotServed { .. }) => seen.miss(kind.kind.as_str(), error.to_string()),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn get(
    cluster: &mut dyn Cluster,
    seen: &mut Observation,
    kind: &Resource,
    name: &str,
) -> Result<(), ClusterError> {
    match cluster.get(kind, "", name) {
        Ok(found) => found.into_iter().for_each(|object| seen.add(object)),
        Err(error @ (ClusterError::Forbidden { .. } | ClusterError::NotServed { .. })) => {
            seen.miss(kind.kind.as_str(), error.to_string());
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
