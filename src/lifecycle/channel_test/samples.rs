//! Custom resources that go through upgrades: applied before a hop, compared after it.
//!
//! What an operator adds is no fault. What was there and is not any more is one: the object itself, a field that somebody set, the version
//! that it is served at, a condition that was good. A field that the new schema does not have is named as such: the API server drops it.

use std::collections::BTreeSet;
use std::time::Duration;

use olmkit_bundle::csv::GroupVersionKind;
use olmkit_bundle::csv::annotation::ALM_EXAMPLES;
use olmkit_bundle::suggest::{did_you_mean, some_of};
use serde_json::{Value, json};

use crate::lifecycle::api::{ClusterServiceVersion, Key, Named as _, Resource, known, label, resource_of};
use crate::lifecycle::checks;
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::engine::{Catalogs, EngineError};
use crate::lifecycle::offer::{OfferedBundle, OfferedPackage};
use crate::lifecycle::patch::merge;
use crate::lifecycle::schema::{judge, schema_of};

/// How often samples are looked at while they settle.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a kind may take to be served once its CRD is there.
const SERVED: Duration = Duration::from_secs(30);
/// The differences of a spec that are told at most.
const MOST_TOLD: usize = 3;

/// A custom resource on its way through upgrades.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    resource: Resource,
    key: Key,
    /// The CRD; none for an object of another kind, which is there for others to use and is not compared.
    crd: Option<String>,
    /// As it was before the hop.
    before: Value,
}

/// What is wrong with a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleFault {
    pub(super) code: &'static str,
    pub(super) sentence: String,
}

impl SampleFault {
    fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into() }
    }
}

/// How long samples are waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// At most this long.
    pub(super) limit: Duration,
    /// This long without a change is settled.
    pub(super) settle: Duration,
}

/// Refuses samples that would be applied in no test, since none of the versions that are tested serves their kind.
pub(super) fn check_served(
    catalogs: &dyn Catalogs,
    package: &OfferedPackage,
    tested: &BTreeSet<&String>,
    objects: &[Value],
) -> Result<(), EngineError> {
    let bundles: Vec<(&String, &OfferedBundle)> =
        tested.iter().filter_map(|name| Some((*name, package.bundles.get(*name)?))).collect();
    let provided: BTreeSet<GroupVersionKind> =
        bundles.iter().flat_map(|(_, bundle)| bundle.provides()).collect();
    for object in objects {
        let key = Key::of(object);
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let is_served = match resource_of(object) {
            Some(known) => known.api_version() == api_version,
            None => {
                let same: Vec<_> = provided
                    .iter()
                    .filter(|one| (&one.group, &one.kind) == (&key.group, &key.kind))
                    .collect();
                same.iter().any(|one| one.version == version)
                    // Not every bundle names each version of the CRDs that it owns.
                    || !same.is_empty() && bundles.iter().any(|(name, bundle)| {
                        catalogs.manifests(name, bundle).map_or(true, |manifests| {
                            kind_of(&manifests, object).is_some()
                        })
                    })
            }
        };
        if bundles.is_empty() {
            continue;
        }
        if is_served {
            known_fields(catalogs, &bundles, object)?;
            continue;
        }
        let kinds: BTreeSet<&str> = provided.iter().map(|one| one.kind.as_str()).collect();
        if !kinds.is_empty() && resource_of(object).is_none() && !kinds.contains(key.kind.as_str()) {
            let help = did_you_mean(&key.kind, kinds.iter().copied())
                .unwrap_or_else(|| format!("they have {}", some_of(&key.kind, kinds.iter().copied())));
            return Err(EngineError::refused_help(
                format!(
                    "the versions that are tested have no kind `{}`, which the sample {key} has",
                    key.kind
                ),
                help,
            ));
        }
        let served: Vec<String> = provided
            .iter()
            .map(|one| format!("`{}` at `{}/{}`", one.kind, one.group, one.version))
            .take(MOST_TOLD)
            .collect();
        let help = match &served[..] {
            [] => "the versions that are tested have no custom resources: omit --samples".to_owned(),
            some => format!("the versions that are tested serve {}", some.join(", ")),
        };
        return Err(EngineError::refused_help(
            format!("the sample {key} is at `{api_version}`, which no version that is tested serves"),
            help,
        ));
    }
    Ok(())
}

/// Refuses a sample with fields that no version has: an API server would drop them without a word. What cannot be read here is taken to
/// have them.
fn known_fields(
    catalogs: &dyn Catalogs,
    bundles: &[(&String, &OfferedBundle)],
    object: &Value,
) -> Result<(), EngineError> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let mut unknown = Vec::new();
    // Newer versions have more fields.
    for (name, bundle) in bundles.iter().rev() {
        let Ok(manifests) = catalogs.manifests(name, bundle) else { return Ok(()) };
        let Some((_, Some(crd))) = kind_of(&manifests, object) else { continue };
        let crd =
            manifests.iter().find(|one| one["kind"] == known::CRD.kind.as_str() && Key::of(one).name == crd);
        let Some(schema) = crd.and_then(|crd| schema_of(crd, version)) else { continue };
        let dropped = judge(schema, object).dropped;
        if dropped.is_empty() {
            return Ok(());
        }
        unknown = if unknown.is_empty() { dropped } else { unknown };
    }
    if unknown.is_empty() {
        return Ok(());
    }
    Err(EngineError::refused_help(
        format!(
            "the sample {} has fields that no version that is tested has: {}",
            Key::of(object),
            brief_list(&unknown)
        ),
        "correct their names: an API server drops unknown fields",
    ))
}

/// The examples that a ClusterServiceVersion carries.
pub(super) fn examples(csv: &ClusterServiceVersion) -> Result<Vec<Value>, SampleFault> {
    let Some(text) = csv.annotation(ALM_EXAMPLES).filter(|text| !text.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let invalid = |why: String| {
        let what = format!("`{}` of `{}` cannot be read: {why}", ALM_EXAMPLES, csv.name());
        SampleFault::new("sample-invalid", what)
    };
    match serde_json::from_str(text) {
        Ok(Value::Array(objects)) => Ok(objects),
        Ok(_) => Err(invalid("expected a list of objects".to_owned())),
        Err(error) => Err(invalid(error.to_string())),
    }
}

/// Applies samples that are not there yet. Those of `given` whose kind this version does not serve wait for a later one.
pub(super) fn apply(
    cluster: &mut dyn Cluster,
    csv: &ClusterServiceVersion,
    given: Option<&[Value]>,
    namespace: &str,
    samples: &mut Vec<Sample>,
) -> Result<Option<SampleFault>, ClusterError> {
    let objects = match given {
        Some(given) => given.to_vec(),
        None => match examples(csv) {
            Ok(found) => found,
            Err(fault) => return Ok(Some(fault)),
        },
    };
    let crds = owned(cluster, csv)?;
    // What custom resources refer to comes before them.
    let (others, custom): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| resource_of(object).is_some());
    for object in others.into_iter().chain(custom) {
        match one(cluster, csv, &crds, object, given.is_some(), namespace, samples)? {
            // None for one that was there before, and for a kind that is not served yet.
            Ok(sample) => samples.extend(sample),
            Err(fault) => return Ok(Some(fault)),
        }
    }
    Ok(None)
}

/// The CRDs that a version owns, as they are on the cluster.
fn owned(cluster: &mut dyn Cluster, csv: &ClusterServiceVersion) -> Result<Vec<Value>, ClusterError> {
    let mut crds = Vec::new();
    for crd in &csv.spec.custom_resource_definitions.owned {
        if crds.iter().all(|known: &Value| Key::of(known).name != crd.name) {
            crds.extend(cluster.get(&known::CRD, "", &crd.name)?);
        }
    }
    Ok(crds)
}

/// The kind of a sample, and its CRD.
fn kind_of(crds: &[Value], object: &Value) -> Option<(Resource, Option<String>)> {
    if let Some(known) = resource_of(object) {
        return Some((known.clone(), None));
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    crds.iter().find_map(|crd| {
        let served = checks::served(crd);
        let found = served
            .into_iter()
            .find(|one| object["kind"] == one.kind.as_str() && one.api_version() == api_version)?;
        Some((found, Some(Key::of(crd).name)))
    })
}

fn one(
    cluster: &mut dyn Cluster,
    csv: &ClusterServiceVersion,
    crds: &[Value],
    mut object: Value,
    is_given: bool,
    namespace: &str,
    samples: &[Sample],
) -> Result<Result<Option<Sample>, SampleFault>, ClusterError> {
    let named = Key::of(&object);
    let Some((resource, crd)) = kind_of(crds, &object) else {
        if is_given {
            return Ok(Ok(None));
        }
        let what = format!(
            "the example {named} of `{}` is at `{}`, which no CRD of it serves",
            csv.name(),
            object["apiVersion"].as_str().unwrap_or_default()
        );
        return Ok(Err(SampleFault::new("sample-invalid", what)));
    };
    let placed = if resource.namespaced { json!(namespace) } else { Value::Null };
    let label = json!({label::CREATED_BY: label::OLMKIT});
    merge(&mut object, &json!({"metadata": {"namespace": placed, "labels": label}, "status": null}));
    let key = Key::of(&object);
    if samples.iter().any(|sample| sample.key == key) {
        return Ok(Ok(None));
    }
    let begun = cluster.now();
    let created = loop {
        match cluster.create(&resource, &object) {
            // A server that has taken a CRD serves it a moment later.
            Err(ClusterError::NotServed { .. }) if cluster.now().saturating_sub(begun) < SERVED => {
                cluster.wait(LOOK_AGAIN)?;
            }
            created => break created,
        }
    };
    match created {
        Ok(before) => Ok(Ok(Some(Sample { resource, key, crd, before }))),
        // Somebody else's, which is left alone.
        Err(ClusterError::Exists { .. }) => Ok(Ok(None)),
        Err(error @ (ClusterError::Refused { .. } | ClusterError::Failed { .. })) => {
            let said = match &error {
                ClusterError::Refused { message, .. } => message.clone(),
                ClusterError::Failed { source, .. } => source.to_string(),
                _ => String::new(),
            };
            let what = format!("the sample {key} was refused while `{}` is installed: {said}", csv.name());
            Ok(Err(SampleFault::new("sample-refused", what)))
        }
        Err(error) => Err(error),
    }
}

/// Waits until samples no longer change, and remembers how they are then.
pub(super) fn settle(
    cluster: &mut dyn Cluster,
    samples: &mut [Sample],
    patience: Patience,
) -> Result<(), ClusterError> {
    let begun = cluster.now();
    let mut since = begun;
    loop {
        let mut is_busy = false;
        for sample in samples.iter_mut().filter(|sample| sample.crd.is_some()) {
            let found = cluster.get(&sample.resource, &sample.key.namespace, &sample.key.name)?;
            let Some(found) = found else { continue };
            if found.get("status") != sample.before.get("status")
                || found.get("spec") != sample.before.get("spec")
            {
                since = cluster.now();
            }
            is_busy |= !is_observed(&found)
                || conditions(&found).any(|(kind, status)| is_progress(kind) && status == "True");
            sample.before = found;
        }
        let now = cluster.now();
        let is_calm = !is_busy && now.saturating_sub(since) >= patience.settle;
        if samples.is_empty() || is_calm || now.saturating_sub(begun) >= patience.limit {
            return Ok(());
        }
        cluster.wait(LOOK_AGAIN)?;
    }
}

/// What is wrong with samples after a hop. Conditions may take a while to be good again.
pub(super) fn compare(
    cluster: &mut dyn Cluster,
    samples: &mut [Sample],
    patience: Patience,
) -> Result<Option<SampleFault>, ClusterError> {
    let begun = cluster.now();
    loop {
        let mut worse = None;
        for sample in samples.iter().filter(|sample| sample.crd.is_some()) {
            match look(cluster, sample)? {
                Ok(found) => worse = worse.or_else(|| worsened(sample, &found)),
                Err(fault) => return Ok(Some(fault)),
            }
        }
        if worse.is_none() {
            break;
        }
        if cluster.now().saturating_sub(begun) >= patience.limit {
            return Ok(worse);
        }
        cluster.wait(LOOK_AGAIN)?;
    }
    settle(cluster, samples, patience)?;
    Ok(None)
}

/// A sample as it is, or what of it is gone.
fn look(cluster: &mut dyn Cluster, sample: &Sample) -> Result<Result<Value, SampleFault>, ClusterError> {
    let (resource, key) = (&sample.resource, &sample.key);
    let fault = |code, sentence: String| Ok(Err(SampleFault::new(code, sentence)));
    let mut dropped = Vec::new();
    if let Some(name) = &sample.crd {
        let Some(crd) = cluster.get(&known::CRD, "", name)? else {
            return fault("sample-gone", format!("the CRD `{name}` is gone, and {} with it", key.placed()));
        };
        let served: Vec<String> = checks::served(&crd).into_iter().map(|one| one.version).collect();
        if !served.contains(&resource.version) {
            let what = format!(
                "`{name}` is no longer served at {}, only at {}: clients of {} fail",
                resource.version,
                served.join(", "),
                key.placed()
            );
            return fault("version-not-served", what);
        }
        // What a webhook makes of them is another matter.
        let by_webhook = crd.pointer("/spec/conversion/strategy") == Some(&json!("Webhook"));
        if let Some(schema) = schema_of(&crd, &resource.version).filter(|_| !by_webhook) {
            dropped = judge(schema, &sample.before).dropped;
        }
    }
    let found = match cluster.get(resource, &key.namespace, &key.name) {
        Err(
            error @ (ClusterError::Refused { .. }
            | ClusterError::Failed { .. }
            | ClusterError::NotServed { .. }),
        ) => {
            let what = format!("{} cannot be read at {}: {error}", key.placed(), resource.version);
            return fault("sample-unreadable", what);
        }
        found => found?,
    };
    let Some(found) = found else {
        return fault("sample-gone", format!("{} is gone", key.placed()));
    };
    if found.pointer("/metadata/uid") != sample.before.pointer("/metadata/uid") {
        return fault("sample-gone", format!("{} was deleted and created again", key.placed()));
    }
    if found.pointer("/metadata/deletionTimestamp").is_some() {
        return fault("sample-gone", format!("{} is being deleted", key.placed()));
    }
    if let (Some(name), false) = (&sample.crd, dropped.is_empty()) {
        let what =
            format!("the schema of `{name}` drops fields of {}: {}", key.placed(), brief_list(&dropped));
        return fault("sample-pruned", what);
    }
    let mut differences = Vec::new();
    for (field, before) in sample.before.as_object().into_iter().flatten() {
        // What a server or a controller writes changes by itself.
        if !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()) {
            differ(before, &found[field.as_str()], field, &mut differences);
        }
    }
    if !differences.is_empty() {
        let told = brief_list(&differences);
        return fault("sample-changed", format!("{} was changed: {told}", key.placed()));
    }
    Ok(Ok(found))
}

/// What of a value is not in another one any more. What was added is no difference.
fn differ(before: &Value, after: &Value, path: &str, differences: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                differ(value, new.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"), differences);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                differ(old, new, &format!("{path}[{at}]"), differences);
            }
        }
        (old, new) if old == new => {}
        (old, Value::Null) => differences.push(format!("{path} was {} and is gone", brief(old))),
        (old, new) => differences.push(format!("{path} was {} and is {}", brief(old), brief(new))),
    }
}

/// The first of several texts, and how many more there are.
fn brief_list(texts: &[String]) -> String {
    let more = texts.len().saturating_sub(MOST_TOLD);
    let told = texts[..texts.len() - more].join(", ");
    if more > 0 { format!("{told} and {more} more") } else { told }
}

/// A value in a few characters.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 { text } else { text.chars().take(39).collect::<String>() + "…" }
}

/// The conditions of an object: type and status.
fn conditions(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().filter_map(|one| Some((one["type"].as_str()?, one["status"].as_str()?)))
}

/// Whether a controller has seen the newest spec, as far as it says.
fn is_observed(object: &Value) -> bool {
    let observed = object.pointer("/status/observedGeneration");
    observed.is_none_or(|observed| Some(observed) == object.pointer("/metadata/generation"))
}

/// Conditions that say that something is going on, which is neither good nor bad.
fn is_progress(kind: &str) -> bool {
    ["Progress", "Reconciling", "Upgrading", "Updating", "Scaling", "Pending", "Creating"]
        .iter()
        .any(|word| kind.contains(word))
}

/// Whether a condition is good: most are when they hold, those that name a fault when they do not.
fn is_good(kind: &str, status: &str) -> bool {
    const FAULTS: [&str; 10] = [
        "Degraded",
        "Fail",
        "Error",
        "Stalled",
        "Unhealthy",
        "Unavailable",
        "Blocked",
        "Invalid",
        "Pressure",
        "Lost",
    ];
    let names_fault = FAULTS.iter().any(|word| kind.contains(word));
    if names_fault { status != "True" } else { status == "True" }
}

/// A condition that was good before a hop and is not after it.
fn worsened(sample: &Sample, found: &Value) -> Option<SampleFault> {
    let mut before =
        conditions(&sample.before).filter(|(kind, status)| !is_progress(kind) && is_good(kind, status));
    let (kind, old) = before.find(|(kind, _)| {
        let now = conditions(found).find(|(found, _)| found == kind);
        // One that names a fault may as well not be there.
        now.map_or(!is_good(kind, "absent"), |(_, status)| !is_good(kind, status))
    })?;
    let list = found.pointer("/status/conditions").and_then(Value::as_array);
    let now = list.into_iter().flatten().find(|one| one["type"] == kind);
    let text = |field: &str| now.and_then(|now| now[field].as_str()).unwrap_or("");
    let is = match (text("status"), text("reason"), text("message")) {
        ("", ..) => "is gone".to_owned(),
        (status, "", "") => format!("is {status}"),
        (status, reason, "") => format!("is {status} ({reason})"),
        (status, "", message) => format!("is {status}: {message}"),
        (status, reason, message) => format!("is {status} ({reason}): {message}"),
    };
    let what = format!("condition `{kind}` of {} was {old} and {is}", sample.key.placed());
    Some(SampleFault::new("sample-condition", what))
}

/// Removes samples; those with finalizers wait for their operator, at most for `limit`, and are then let go: they were made for the
/// test alone.
pub(super) fn remove(
    cluster: &mut dyn Cluster,
    samples: &[Sample],
    limit: Duration,
) -> Result<(), ClusterError> {
    // What others may refer to goes last.
    let (custom, others): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.crd.is_some());
    for group in [custom, others] {
        for sample in &group {
            gone_with_kind(cluster.delete(&sample.resource, &sample.key))?;
        }
        let begun = cluster.now();
        for sample in &group {
            while let Some(found) = still_there(cluster, sample)? {
                // Somebody puts the finalizers back.
                if cluster.now().saturating_sub(begun) >= limit * 2 {
                    break;
                }
                if cluster.now().saturating_sub(begun) >= limit {
                    let version = found.pointer("/metadata/resourceVersion");
                    let patch = json!({"metadata": {"finalizers": null, "resourceVersion": version}});
                    match gone_with_kind(cluster.patch(&sample.resource, &sample.key, &patch).map(drop)) {
                        Err(ClusterError::Conflict { .. }) => {}
                        done => done?,
                    }
                }
                cluster.wait(LOOK_AGAIN)?;
            }
        }
    }
    Ok(())
}

/// A sample that is being deleted, as long as it is there.
fn still_there(cluster: &mut dyn Cluster, sample: &Sample) -> Result<Option<Value>, ClusterError> {
    match cluster.get(&sample.resource, &sample.key.namespace, &sample.key.name) {
        // Where it was deleted, somebody else may have made one of that name.
        Ok(found) => {
            Ok(found.filter(|found| found.pointer("/metadata/uid") == sample.before.pointer("/metadata/uid")))
        }
        // Nobody can read it: its CRD is gone, or its conversion webhook. The CRD goes next.
        Err(ClusterError::NotServed { .. } | ClusterError::Failed { .. } | ClusterError::Refused { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// That the object is not there any more, or nobody serves its kind, is what was wanted.
fn gone_with_kind(done: Result<(), ClusterError>) -> Result<(), ClusterError> {
    match done {
        Err(
            ClusterError::NotServed { .. }
            | ClusterError::NotFound { .. }
            | ClusterError::Failed { .. }
            | ClusterError::Refused { .. },
        ) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests;
