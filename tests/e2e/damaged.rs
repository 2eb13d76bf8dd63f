//! What happens to an installed operator under the real OLM, by somebody's hand: the doctor names it soon, and OLM goes on once it
//! is undone.

use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::cluster::{Namespace, PATIENCE, within};
use crate::harness::{Company, part, trial_with};
use crate::olm::{Told, needed, push_catalog, serve};
use crate::small::{PLAIN, Version, published};
use crate::webhook::{MIRROR, Webhook};

/// From the moment at which the cluster shows a fault to its name.
const SOON: Duration = Duration::from_secs(10);

/// What is installed at first.
const CSV: &str = "clusterserviceversion.operators.coreos.com/sound.v1.0.0";

/// A CRD, so that two installations can be in each other's way.
const CRD: &str = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wheels.damaged.example.com}
spec: {group: damaged.example.com, scope: Namespaced, names: {kind: Wheel, plural: wheels}, versions: [{name: v1, served: true, \
     storage: true, schema: {openAPIV3Schema: {type: object}}}]}
---
apiVersion: apps/v1";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial_with("damages_are_named_under_olm", Company::Any, Some(needed()), all)]
}

fn all(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let sound = Version { package: "sound", change: ("---\napiVersion: apps/v1", CRD), ..PLAIN };
    published(namespace, dir, &[sound, Version { version: "1.1.0", ..sound }])?;
    let catalog = push_catalog(dir, &namespace.image("catalog:v1"))?;
    part("a_namespace_that_goes_is_named_under_olm", |other| {
        serve(other, "small", &catalog)?;
        going(&mut Told { namespace: other, dir, text: String::new() })
    })?;
    serve(namespace, "small", &catalog)?;
    let told = &mut Told { namespace, dir, text: String::new() };
    install(told)?;
    second_group(told)?;
    part("an_operator_group_conflict_is_named_under_olm", |other| {
        serve(other, "small", &catalog)?;
        conflict(namespace, &mut Told { namespace: other, dir, text: String::new() })
    })?;
    account(told)?;
    automatic(told)?;
    changed_pods(told)?;
    told.operator(&["uninstall", "sound", "--delete-crds"])?;
    Ok(())
}

fn install(told: &mut Told<'_>) -> Result<(), Failed> {
    let watch = told.namespace.name.clone();
    told.operator(&["install", "sound", "--version", "1.0.0", "--watch", &watch, "--settle", "1s"])?;
    Ok(())
}

/// Nothing is created in a namespace that is being deleted, and what keeps it is named.
fn going(told: &mut Told<'_>) -> Result<(), Failed> {
    let namespace = told.namespace;
    namespace
        .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, finalizers: [example.com/keep]}}")?;
    namespace.kubectl(&["delete", "namespace", &namespace.name, "--wait=false"])?;
    let refused = told.refused(&["install", "sound", "--watch", &namespace.name, "--timeout", "60s"])?;
    namespace.kubectl(&[
        "patch",
        "configmap",
        "kept",
        "--type=merge",
        "--patch",
        r#"{"metadata":{"finalizers":null}}"#,
    ])?;
    assert!(refused.contains("is being deleted"), "{refused}");
    Ok(())
}

/// Two OperatorGroups stop everything in their namespace.
fn second_group(told: &mut Told<'_>) -> Result<(), Failed> {
    told.namespace.apply(
        "{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: second}, \
         spec: {targetNamespaces: ['{namespace}']}}",
    )?;
    let both =
        ["wait", "operatorgroups.operators.coreos.com", "--all", "--for=condition=MultipleOperatorGroup"];
    told.namespace.kubectl(&[&both[..], &["--timeout=120s"]].concat())?;
    named(told, "several-operator-groups")?;
    told.namespace.kubectl(&["delete", "operatorgroups.operators.coreos.com", "second"])?;
    well(told)
}

/// The same operator in another namespace whose OperatorGroup is changed to that of the first. OLM stops the one that it looks at
/// first.
fn conflict<'t>(first: &'t Namespace, told: &mut Told<'t>) -> Result<(), Failed> {
    let (namespace, theirs) = (told.namespace, &first.name);
    let mut first = Told { namespace: first, dir: told.dir, text: String::new() };
    let refused = told.refused(&["install", "sound", "--version", "1.0.0", "--watch", theirs])?;
    assert!(refused.contains(&format!("operator uninstall sound -n {theirs}`")), "{refused}");
    install(told)?;
    let group = namespace.kubectl(&["get", "operatorgroups.operators.coreos.com", "--output=name"])?;
    let watch = |target: &str| {
        let targets = json!({"spec": {"targetNamespaces": [target]}}).to_string();
        namespace.kubectl(&["patch", group.trim(), "--type=merge", "--patch", &targets])
    };
    watch(theirs)?;
    let reason = ["get", CSV, "--output=jsonpath={.status.reason}"];
    let stopped = within(PATIENCE, || {
        for (at, one) in [first.namespace, namespace].into_iter().enumerate() {
            if one.kubectl(&reason)? == "InterOperatorGroupOwnerConflict" {
                return Ok(Some(at));
            }
        }
        Ok(None)
    })?;
    let is_first = stopped.ok_or("OLM stops neither")? == 0;
    let (stopped, other) = if is_first { (&mut first, &namespace.name) } else { (&mut *told, theirs) };
    let said = named(stopped, "operator-group-conflict")?;
    assert!(said.contains(other), "{said}");
    watch(&namespace.name)?;
    well(told)?;
    well(&mut first)?;
    told.operator(&["uninstall", "sound"])?;
    Ok(())
}

/// The ServiceAccount of a running operator is deleted.
fn account(told: &mut Told<'_>) -> Result<(), Failed> {
    told.namespace.kubectl(&["delete", "serviceaccount", "sound"])?;
    told.namespace.wait(CSV, "jsonpath={.status.reason}=RequirementsNotMet")?;
    let said = named(told, "requirement-missing")?;
    assert!(said.contains(&format!("-n {} create serviceaccount sound", told.namespace.name)), "{said}");
    told.namespace.kubectl(&["create", "serviceaccount", "sound"])?;
    well(told)
}

/// OLM never approves a plan that waited before the approval became automatic, which is said.
fn automatic(told: &mut Told<'_>) -> Result<(), Failed> {
    // The versions differ in nothing but their name; what OLM stores is no change.
    let plan = told.operator(&["plan", "sound"])?;
    assert!(!plan.contains("strategy") && !plan.contains("resources"), "{plan}");
    let said = told.operator(&["upgrade", "sound", "--approval", "Automatic"])?;
    let approve = format!("`olmkit operator approve sound -n {}` does", told.namespace.name);
    assert!(said.contains(&approve), "{said}");
    told.operator(&["approve", "sound"])?;
    let csv = "clusterserviceversion.operators.coreos.com/sound.v1.1.0";
    within(6 * SOON, || Ok(told.namespace.kubectl(&["get", csv]).ok()))?.ok_or("it is not created")?;
    told.namespace.wait(csv, "jsonpath={.status.phase}=Succeeded")
}

/// A webhook gives the catalog's pods another image, so that OLM makes them anew again and again.
fn changed_pods(told: &mut Told<'_>) -> Result<(), Failed> {
    let namespace = told.namespace;
    let webhook = Webhook::install(namespace)?;
    namespace.kubectl(&["delete", "pods", "--selector=olm.catalogSource=small", "--grace-period=1"])?;
    let images = ["get", "pods", "--output", "jsonpath={.items[*].spec.containers[*].image}"];
    let is_changed = || Ok(namespace.kubectl(&images)?.contains(MIRROR).then_some(()));
    within(6 * SOON, is_changed)?.ok_or("no pod is changed")?;
    named(told, "catalog-pod-changed")?;
    // Whichever pod is there, or none.
    for _ in 0..8 {
        let diagnosis = doctor(told)?;
        assert_eq!(diagnosis["causes"][0]["code"], "catalog-pod-changed", "{diagnosis:#}");
    }
    drop(webhook);
    let ready = "jsonpath={.status.connectionState.lastObservedState}=READY";
    namespace.wait("catalogsource.operators.coreos.com/small", ready)
}

/// Waits until the doctor puts a cause first, and says what it says then.
fn named(told: &mut Told<'_>, code: &str) -> Result<String, Failed> {
    let begun = Instant::now();
    let mut last = String::new();
    let found = within(6 * SOON, || {
        let diagnosis = doctor(told)?;
        let is_named = diagnosis["causes"][0]["code"] == code;
        last = format!("{diagnosis:#}");
        Ok(is_named.then_some(()))
    })?;
    let after = begun.elapsed();
    eprintln!("{code}: {after:?}");
    assert!(found.is_some() && after <= SOON, "{code} was not named within {SOON:?}: {after:?}\n{last}");
    Ok(last)
}

fn doctor(told: &mut Told<'_>) -> Result<Value, Failed> {
    let (_, said) = told.run(&["doctor", "sound", "--output", "json", "--quiet"])?;
    serde_json::from_str(&said).map_err(|error| format!("{error}: {said}").into())
}

/// Waits until OLM and the doctor see nothing wrong.
fn well(told: &mut Told<'_>) -> Result<(), Failed> {
    told.namespace.wait(CSV, "jsonpath={.status.phase}=Succeeded")?;
    let mut last = String::new();
    let found = within(6 * SOON, || {
        let diagnosis = doctor(told)?;
        let state = diagnosis["state"].clone();
        last = format!("{diagnosis:#}");
        // A plan waits for approval.
        Ok((state == "healthy" || state == "waiting").then_some(()))
    })?;
    found.ok_or_else(|| format!("the doctor is not content\n{last}").into())
}
