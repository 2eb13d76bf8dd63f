//! The catalog-operator's work on InstallPlans: made, approved, done step by step.

use serde_json::{Value, json};

use super::super::scope::{self, Chosen, Scope};
use super::super::{names, plan};
use super::{Change, View, Write};
use crate::lifecycle::api::{
    Approval, InstallPlan, InstallPlanPhase, Key, Named as _, Object, StepStatus, known, label,
};
use crate::lifecycle::{admission, checks, immutable, replace, schema};

/// How long OLM tries a step that fails before the plan has failed.
pub(in super::super) const RETRIED_MILLIS: u64 = 60_000;
/// What a plan says meanwhile, before the reason.
pub(in super::super) const RETRYING: &str = "retrying execution due to error: ";

/// The plans of a namespace, the newest first.
pub(super) fn newest_first(view: &View<'_>, namespace: &str) -> Vec<Object<InstallPlan>> {
    let mut plans: Vec<Object<InstallPlan>> =
        scope::read(view.store.list(&known::INSTALL_PLAN, Some(namespace)));
    plans.sort_by_key(|plan| -plan.spec.generation);
    plans
}

/// A plan for what was chosen, unless there is one already.
pub(super) fn create(view: &View<'_>, scope: &Scope<'_>, chosen: &[Chosen]) -> Option<Change> {
    let names: Vec<&str> = chosen.iter().map(|chosen| chosen.csv.as_str()).collect();
    let plans = newest_first(view, scope.namespace);
    let has_all = |plan: &Object<InstallPlan>| {
        let in_plan = &plan.spec.cluster_service_version_names;
        names.iter().all(|name| in_plan.iter().any(|other| other == name))
    };
    // Until the Subscriptions refer to it.
    if plans.iter().any(|plan| !plan.is_over() && has_all(plan)) {
        return None;
    }
    let manual = scope.subscriptions.iter().any(|found| found.spec.install_plan_approval == Approval::Manual);
    let approval = if manual { Approval::Manual } else { Approval::Automatic };
    let owner = |subscription: &Object<crate::lifecycle::api::Subscription>| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "name": subscription.name(),
            "uid": subscription.metadata.uid, "controller": false, "blockOwnerDeletion": false,
        })
    };
    let generation = plans.first().map_or(0, |plan| plan.spec.generation) + 1;
    let object = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {
            "generateName": "install-", "namespace": scope.namespace, "labels": {label::MANAGED: "true"},
            "ownerReferences": scope.subscriptions.iter().map(owner).collect::<Vec<_>>(),
        },
        "spec": {
            "approval": approval.as_str(), "approved": !manual, "clusterServiceVersionNames": names,
            "generation": generation,
        },
    });
    // The first plan comes at once; later ones when OLM looks again.
    let delay = if scope.csvs.is_empty() { 1_000 } else { 5_000 };
    let name = format!("plan {} {}", scope.namespace, names.join(" "));
    Some(Change::new(name, delay, vec![Write::Create(object)]))
}

/// What is due for the plans of a namespace.
pub(super) fn due(view: &View<'_>, scope: &Scope<'_>) -> Vec<Change> {
    newest_first(view, scope.namespace).iter().filter_map(|plan| one(view, scope, plan)).collect()
}

fn one(view: &View<'_>, scope: &Scope<'_>, plan: &Object<InstallPlan>) -> Option<Change> {
    let name = |what: &str| format!("{what} {}/{}", scope.namespace, plan.name());
    match plan.status.phase {
        InstallPlanPhase::None => {
            let chosen = chosen_again(scope, plan)?;
            let steps = plan::steps(&chosen, scope.namespace, view.registry);
            let phase = if plan.spec.approved { "Installing" } else { "RequiresApproval" };
            let catalogs: std::collections::BTreeSet<_> = chosen.iter().map(|one| &one.catalog.0).collect();
            let lookups: Vec<Value> =
                chosen.iter().filter(|one| one.bundle.manifests.is_empty()).map(lookup).collect();
            let patch =
                json!({"phase": phase, "plan": steps, "catalogSources": catalogs, "bundleLookups": lookups});
            Some(Change::status(name("steps"), 200, plan.key(), patch))
        }
        InstallPlanPhase::RequiresApproval if plan.spec.approved => {
            Some(Change::status(name("install"), 500, plan.key(), json!({"phase": "Installing"})))
        }
        InstallPlanPhase::Installing if scope.groups.len() == 1 => {
            let undone = |status: &StepStatus| !matches!(status, StepStatus::Created | StepStatus::Present);
            match plan.status.plan.iter().position(|step| undone(&step.status)) {
                Some(at) => step(view, plan, at),
                None => {
                    let installed = json!([{"type": "Installed", "status": "True",
                        "lastTransitionTime": view.store.timestamp(), "lastUpdateTime": view.store.timestamp()}]);
                    let patch = json!({"phase": "Complete", "conditions": installed});
                    Some(Change::status(name("complete"), 1_500, plan.key(), patch))
                }
            }
        }
        _ => None,
    }
}

/// What a plan was made for: chosen again, since it is a function of the state.
fn chosen_again(scope: &Scope<'_>, plan: &Object<InstallPlan>) -> Option<Vec<Chosen>> {
    let mut chosen = scope.choose().ok()?;
    chosen.retain(|one| plan.spec.cluster_service_version_names.contains(&one.csv));
    (!chosen.is_empty()).then_some(chosen)
}

/// Where a bundle was unpacked from.
fn lookup(chosen: &Chosen) -> Value {
    json!({
        "path": chosen.bundle.image, "identifier": chosen.csv, "replaces": chosen.replaces,
        "catalogSourceRef": {"name": chosen.catalog.0, "namespace": chosen.catalog.1},
    })
}

/// One step: the object is made or brought up to date, and the step says so.
fn step(view: &View<'_>, plan: &Object<InstallPlan>, at: usize) -> Option<Change> {
    let step = plan.status.plan.get(at)?;
    let change_name = format!("step {}/{} {at}", plan.namespace(), plan.name());
    let mut steps = plan.document().pointer("/status/plan")?.as_array()?.clone();
    let mut object: Value = serde_json::from_str(&step.resource.manifest).ok()?;
    let key = Key::of(&object);
    // The Subscription of a dependency comes from OLM itself.
    let unsupported = key.kind != known::SUBSCRIPTION.kind
        && !olmkit_bundle::kinds::supported(&key.kind).is_some_and(|kind| kind.installed);
    let fault = if unsupported {
        steps[at]["status"] = json!("UnsupportedResource");
        Some("the InstallPlan contains invalid data".to_owned())
    } else {
        not_unpacked(view, plan, &step.resolving)
            .or_else(|| changes_immutable(view, &object))
            .or_else(|| misfit_crd(view, &object))
            .or_else(|| not_stored(view, &object))
            .or_else(|| not_served(view, &object).filter(|_| !step.optional))
    };
    if let Some(fault) = fault {
        return Some(failing(view, plan, steps, fault));
    }
    let owner = view.store.get(&Key::new(&known::CSV, plan.namespace(), &step.resolving));
    let existing = view.store.get(&key);
    let write = match (key.kind.as_str(), existing) {
        // A ClusterServiceVersion that is there is never changed.
        ("ClusterServiceVersion" | "Subscription", Some(_)) => None,
        ("Subscription", None) => {
            object["metadata"]["annotations"] = json!({label::GENERATED_BY: plan.name()});
            Some(Write::Create(object))
        }
        ("ClusterServiceVersion", None) => Some(Write::Create(object)),
        (_, existing) => {
            // One that OLM makes itself carries its label; one of the bundle keeps the owners that it has.
            let is_shipped = key.kind == known::SERVICE_ACCOUNT.kind
                && object.pointer("/metadata/labels").is_none_or(|all| all[label::MANAGED].is_null());
            if is_shipped {
                let owners = existing.and_then(|existing| existing.pointer("/metadata/ownerReferences"));
                object["metadata"]["ownerReferences"] = owners.cloned().unwrap_or_else(|| json!([]));
            } else if let Some(owner) = owner.filter(|_| !key.namespace.is_empty()) {
                object["metadata"]["ownerReferences"] = owned_by(owner, existing);
            }
            Some(match existing {
                None => Write::Create(object),
                Some(existing) => {
                    Write::Patch { key, patch: replace::patch(&object, existing), status: false }
                }
            })
        }
    };
    steps[at]["status"] = json!(if existing.is_some() { "Present" } else { "Created" });
    let done = Write::Patch { key: plan.key(), patch: json!({"status": {"plan": steps}}), status: true };
    Some(Change::new(change_name, 60, write.into_iter().chain([done]).collect()))
}

/// The owners of an object, one more among them.
fn owned_by(owner: &Value, existing: Option<&Value>) -> Value {
    let mut owners = existing
        .and_then(|object| object.pointer("/metadata/ownerReferences"))
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let uid = &owner["metadata"]["uid"];
    if !owners.iter().any(|other| other["uid"] == *uid) {
        owners.push(json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": uid, "controller": false, "blockOwnerDeletion": false,
        }));
    }
    Value::Array(owners)
}

/// The steps of a bundle from an image are read from the ConfigMap that it was unpacked into.
fn not_unpacked(view: &View<'_>, plan: &Object<InstallPlan>, csv: &str) -> Option<String> {
    let mut lookups = plan.status.bundle_lookups.iter();
    let lookup = lookups.find(|lookup| lookup.identifier == csv && !lookup.path.is_empty())?;
    let (namespace, name) = (&lookup.catalog_source_ref.namespace, names::unpack(&lookup.path));
    let missing = view.store.get(&Key::new(&known::CONFIG_MAP, namespace, &name)).is_none();
    missing.then(|| {
        format!(
            "error finding unpacked bundle configmap for ref {{ConfigMap {name} {namespace}}}: configmap {name:?} not found"
        )
    })
}

/// What the API server says of an object that exists and gets another value in a field that nobody may change.
fn changes_immutable(view: &View<'_>, object: &Value) -> Option<String> {
    let key = Key::of(object);
    let found = immutable::changed(view.store.get(&key)?, object)?;
    let (what, refusal) = match key.kind.as_str() {
        "CustomResourceDefinition" => ("CRD", format!("{}: ", key.name)),
        kind => (kind, String::new()),
    };
    Some(format!("error updating {what}: {refusal}{}", refused(&key, &found)))
}

/// What the API server says of an object that it does not take, whatever was there before. A ClusterServiceVersion is looked at when its
/// Deployments are made.
fn not_stored(view: &View<'_>, object: &Value) -> Option<String> {
    let key = Key::of(object);
    if key.kind == known::CSV.kind {
        return None;
    }
    let why = quoted(&admission::removed(object).or_else(|| admission::object(object))?);
    let doing = if view.store.get(&key).is_some() { "updating" } else { "creating" };
    let dot = if key.group.is_empty() { "" } else { "." };
    Some(format!(
        "error {doing} {}: {}{dot}{} {:?} is invalid: {why}",
        key.kind, key.kind, key.group, key.name
    ))
}

/// What OLM says of an object whose API the cluster does not have.
fn not_served(view: &View<'_>, object: &Value) -> Option<String> {
    let key = Key::of(object);
    olmkit_bundle::kinds::supported(&key.kind)?.crd?;
    let is_it = |crd: &Value| {
        crd["spec"]["group"] == key.group.as_str() && crd["spec"]["names"]["kind"] == key.kind.as_str()
    };
    if view.store.list(&known::CRD, None).any(is_it) {
        return None;
    }
    Some(format!(
        "api-server resource not found installing {} {}: GroupVersionKind {}, Kind={0} not found on the cluster. This API may \
         have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
        key.kind,
        key.name,
        object["apiVersion"].as_str().unwrap_or("")
    ))
}

/// A message of a rule as the API server would quote names.
pub(super) fn quoted(text: &str) -> String {
    text.replace('`', "\"")
}

/// A change of an immutable field as the API server refuses it.
pub(super) fn refused(key: &Key, changed: &immutable::Changed) -> String {
    let dot = if key.group.is_empty() { "" } else { "." };
    format!(
        "{}{dot}{} {:?} is invalid: {}: Invalid value: {:?}: field is immutable",
        key.kind, key.group, key.name, changed.field, changed.new
    )
}

/// What keeps OLM from updating a CRD: a custom resource that the new schema forbids, or a version that objects are stored at and the
/// new CRD no longer has.
fn misfit_crd(view: &View<'_>, object: &Value) -> Option<String> {
    let key = Key::of(object);
    let existing = view.store.get(&key).filter(|_| key.kind == "CustomResourceDefinition")?;
    let by_webhook = object.pointer("/spec/conversion/strategy") == Some(&json!("Webhook"));
    for resource in checks::served(existing).into_iter().filter(|_| !by_webhook) {
        let Some(schema) = schema::schema_of(object, &resource.version) else { continue };
        for custom in view.store.list(&resource, None) {
            if let Some(fault) = schema::judge(schema, custom).faults.first() {
                let custom = Key::of(custom);
                return Some(format!(
                    "error validating existing CRs against new CRD's schema for {:?}: error validating {}, Kind={} \
                     \"{}/{}\": updated validation is too restrictive: {fault}",
                    key.name,
                    resource.api_version(),
                    resource.kind,
                    custom.namespace,
                    custom.name
                ));
            }
        }
    }
    let lost = schema::lost_version(existing, object)?;
    Some(format!(
        "risk of data loss updating {:?}: new CRD removes version {lost} that is listed as a stored version on the existing CRD",
        key.name
    ))
}

/// A step that fails is tried again for a minute; then the plan has failed.
fn failing(view: &View<'_>, plan: &Object<InstallPlan>, steps: Vec<Value>, fault: String) -> Change {
    let retrying = format!("{RETRYING}{fault}");
    let key = plan.key();
    let name = |what: &str| format!("{what} {}/{}", plan.namespace(), plan.name());
    if plan.status.message != retrying {
        let patch = json!({"plan": steps, "message": retrying, "startTime": view.store.timestamp()});
        return Change::status(name("retry"), 60, key, patch);
    }
    let condition = json!([{"type": "Installed", "status": "False", "reason": "InstallComponentFailed", "message": fault}]);
    let patch = json!({"phase": "Failed", "message": fault, "conditions": condition});
    Change::status(name("fail"), RETRIED_MILLIS, key, patch)
}
