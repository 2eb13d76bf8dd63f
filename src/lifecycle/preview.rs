//! What an InstallPlan will change on this cluster, before anybody approves it: one plan carries the ClusterServiceVersions of every
//! Subscription of its namespace that moves, and approving it approves all of them.
//!
//! The manifests are those that OLM will apply: they stand in the plan, or in the ConfigMap that its bundle was unpacked into. What
//! they change is found out against the objects of the cluster, and for each ClusterServiceVersion by `bundle diff` against the one
//! that it replaces.

mod reach;

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::diff;
use olmkit_bundle::finding::Level;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::{validate, yaml};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::api::{InstallPlan, Key, Named as _, Object, Subscription, known, resource_of};
use super::blockers::{Blocker, Candidate, Company, Ground};
use super::cluster::ClusterError;
use super::engine::{Engine, EngineError};
use super::observe::Observed;
use super::preflight::{Unchecked, images};
use super::{replace, unpacked};
use crate::sentence::Sentence;
use crate::shell::command;

/// What a plan will change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The InstallPlan.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its phase, as OLM says it.
    pub phase: String,
    /// Whether it was approved already.
    pub approved: bool,
    /// The versions that it installs, in its order.
    pub csvs: Vec<PlannedCsv>,
    /// What it does to each object, in its order.
    pub steps: Vec<PlannedStep>,
    /// What could not be read, a sentence each: the preview is incomplete without it.
    pub not_read: Vec<String>,
    /// What of the cluster was not looked at, and why: custom resources that may not be listed. They may not fit a CRD of the plan.
    pub not_checked: Vec<String>,
}

/// A version that a plan installs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCsv {
    /// The ClusterServiceVersion.
    pub name: String,
    /// Its version; empty when its manifest could not be read.
    pub version: String,
    /// The Subscription that it is for; empty for a dependency that has none yet.
    pub subscription: String,
    /// The ClusterServiceVersion that it replaces on this cluster; empty for an install.
    pub replaces: String,
    /// The version that it replaces.
    pub replaces_version: String,
    /// All images that it names, those of init containers and of operands (`RELATED_IMAGE_…`) too.
    pub images: Vec<String>,
    /// Those of them that the replaced version does not name.
    pub new_images: Vec<String>,
    /// Those of its Deployments.
    #[serde(skip)]
    pub pod_images: BTreeSet<String>,
    /// What its service accounts may newly do in all namespaces, a line for each rule, and the new or changed ClusterRoles and
    /// ClusterRoleBindings of its bundle.
    pub new_cluster_rules: Vec<String>,
    /// What ClusterRoles and ClusterRoleBindings of its bundle no longer allow, a line for each of them.
    pub lost_cluster_rules: Vec<String>,
    /// The admission and conversion webhooks that the replaced version does not have, as `TYPE NAME`, or that cover more than there.
    pub new_webhooks: Vec<String>,
    /// What `bundle diff` finds between the two versions.
    pub findings: Vec<PlannedFinding>,
    /// What will keep OLM from installing it, such as a custom resource that its CRD rejects: a sentence that ends in the code.
    #[schemars(with = "Vec<String>")]
    pub blockers: Vec<Blocker>,
}

/// A difference between two versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedFinding {
    /// Its code; docs/findings.md has a section for each.
    pub code: &'static str,
    /// Its level: `error`, `warning` or `info`.
    pub level: String,
    /// What changes.
    pub message: String,
    /// The object that changes, such as `CustomResourceDefinition/apples.example.com`; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// An object of a plan as OLM will apply it, what happens to it, and the one that the cluster has now.
type PlannedObject = (Value, Change, Option<Value>);

/// What a plan does to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// The ClusterServiceVersion that needs it.
    pub csv: String,
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What happens to it.
    pub change: Change,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It does not exist yet.
    Create,
    /// It exists and becomes another one.
    Change,
    /// It exists, and nothing is added to it or removed from it.
    Keep,
    /// It could not be compared.
    Unknown,
}

impl Change {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Keep => "keep",
            Self::Unknown => "unknown",
        }
    }
}

impl Engine<'_> {
    /// What the pending InstallPlan of an operator will change, and the version of that operator in it.
    ///
    /// # Errors
    /// There is no such plan, or the cluster does not answer.
    pub fn preview(&mut self, name: &str, namespace: Option<&str>) -> Result<(Preview, String), EngineError> {
        let subscription = self.expect(name, namespace)?;
        let (name, namespace) = (subscription.name(), subscription.namespace());
        let observed = self.look(namespace, name)?;
        let current = observed.subscription.as_ref().map_or("", |found| found.status.current_csv.as_str());
        let Some(plan) = observed.open_plan(current) else {
            return Err(EngineError::refused_help(
                format!("no plan of {} waits for approval", subscription.key()),
                Sentence::from("see ")
                    + command!("olmkit operator status {} -n {}", name, namespace)
                    + "; OLM creates an InstallPlan some seconds after a catalog offers a newer version",
            ));
        };
        let plan = plan.clone();
        Ok((self.preview_with_images(&plan, &observed)?, current.to_owned()))
    }

    /// What a plan will change, and which images of its pods do not exist.
    pub(super) fn preview_with_images(
        &mut self,
        plan: &Object<InstallPlan>,
        observed: &Observed,
    ) -> Result<Preview, EngineError> {
        let mut preview = self.preview_of(plan, observed)?;
        let mut unchecked = Unchecked::default();
        for csv in &mut preview.csvs {
            let images = std::mem::take(&mut csv.pod_images);
            csv.blockers.extend(self.missing_images(&csv.name, images, &mut unchecked)?);
        }
        preview.not_checked.extend(unchecked.lines());
        Ok(preview)
    }

    /// What a plan will change.
    pub(super) fn preview_of(
        &mut self,
        plan: &Object<InstallPlan>,
        observed: &Observed,
    ) -> Result<Preview, EngineError> {
        let namespace = plan.namespace();
        let mut preview = Preview {
            name: plan.name().to_owned(),
            namespace: namespace.to_owned(),
            phase: plan.status.phase.to_string(),
            approved: plan.spec.approved,
            ..Preview::default()
        };
        let mut manifests: BTreeMap<String, Vec<PlannedObject>> = BTreeMap::new();
        let mut unpacked = Unpacked::default();
        for step in &plan.status.plan {
            let resource = &step.resource;
            let api_version = match resource.group.as_str() {
                "" => resource.version.clone(),
                group => format!("{group}/{}", resource.version),
            };
            let read = self.manifest(&resource.manifest, &resource.kind, &resource.name, &mut unpacked)?;
            let is_made = read.is_err()
                && unpacked.is_of_permissions(
                    &resource.manifest,
                    &resource.kind,
                    &resource.name,
                    &step.resolving,
                );
            let manifest = match read {
                Ok(manifest) => Some(manifest),
                // Its name tells its content, so that the one which is there is the same.
                Err(_) if is_made => Some(json!({
                    "apiVersion": api_version, "kind": resource.kind, "metadata": {"name": resource.name},
                })),
                Err(why) => {
                    preview.not_read.push(format!(
                        "{}/{} of `{}`: {why}",
                        resource.kind.to_lowercase(),
                        resource.name,
                        step.resolving
                    ));
                    None
                }
            };
            let (mut change, within, live) = self.change(manifest.as_ref(), namespace)?;
            if is_made && live.is_some() {
                change = Change::Keep;
            }
            preview.steps.push(PlannedStep {
                csv: step.resolving.clone(),
                api_version,
                kind: resource.kind.clone(),
                namespace: within,
                name: resource.name.clone(),
                change,
            });
            // What it allows is compared as permissions of the ClusterServiceVersion.
            let manifest = manifest.filter(|_| !is_made);
            let own = manifests.entry(step.resolving.clone()).or_default();
            own.extend(manifest.map(|one| (one, change, live)));
        }
        let ground =
            self.ground(&observed.namespace, observed.targets(), company(plan, manifests.values().flatten()));
        for name in &plan.spec.cluster_service_version_names {
            let own = manifests.remove(name).unwrap_or_default();
            let mut all = observed.subscription.iter().chain(&observed.others);
            let subscription = all.find(|found| found.status.current_csv == *name);
            let csv = self.planned_csv(name, &own, subscription, observed, &ground, &mut preview)?;
            if csv.version.is_empty() && !preview.not_read.iter().any(|one| one.contains(name.as_str())) {
                preview
                    .not_read
                    .push(format!("clusterserviceversion/{name}: the plan does not have its manifest"));
            }
            preview.csvs.push(csv);
        }
        Ok(preview)
    }

    /// What keeps the CRDs of a plan from being installed, a sentence each; what cannot be read is one too.
    pub(super) fn crd_blockers_of(&mut self, plan: &Object<InstallPlan>) -> Result<Vec<String>, EngineError> {
        let (mut unpacked, mut unchecked) = (Unpacked::default(), Unchecked::default());
        let mut blockers = Vec::new();
        for step in plan.status.plan.iter().filter(|step| step.resource.kind == known::CRD.kind) {
            let resource = &step.resource;
            match self.manifest(&resource.manifest, &resource.kind, &resource.name, &mut unpacked)? {
                Ok(crd) => {
                    let candidate = Candidate { name: &step.resolving, manifests: &[crd], before: None };
                    let found = self.crd_blockers(candidate, &mut BTreeMap::new(), &mut unchecked)?;
                    blockers.extend(found.iter().map(ToString::to_string));
                }
                Err(why) => blockers.push(format!("the CRD `{}` cannot be read: {why}", resource.name)),
            }
        }
        for line in unchecked.lines() {
            self.say(format!("not checked: {line}"));
        }
        Ok(blockers)
    }

    /// The manifest of a step, or why it cannot be read.
    fn manifest(
        &mut self,
        text: &str,
        kind: &str,
        name: &str,
        unpacked: &mut Unpacked,
    ) -> Result<Result<Value, String>, EngineError> {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return Ok(Err("its manifest is not JSON".into()));
        };
        let Some(place) = place_of(&value) else { return Ok(Ok(value)) };
        if !unpacked.0.contains_key(&place) {
            let read = match self.cluster.get(&known::CONFIG_MAP, &place.0, &place.1) {
                Ok(Some(map)) => Ok(objects(&map)),
                Ok(None) => Err(format!("configmap/{} in {} does not exist", place.1, place.0)),
                Err(error @ ClusterError::Forbidden { .. }) => Err(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            unpacked.0.insert(place.clone(), read);
        }
        Ok(match &unpacked.0[&place] {
            Err(why) => Err(why.clone()),
            Ok(found) => {
                let mut all = found.iter();
                let own = all
                    .find(|one| one["kind"] == kind && one.pointer("/metadata/name") == Some(&name.into()));
                own.cloned().ok_or_else(|| format!("it is not in configmap/{} in {}", place.1, place.0))
            }
        })
    }

    /// What happens to an object, its namespace, and the object as it is now.
    fn change(
        &mut self,
        manifest: Option<&Value>,
        namespace: &str,
    ) -> Result<(Change, String, Option<Value>), EngineError> {
        let Some((manifest, resource)) = manifest.and_then(|one| Some((one, resource_of(one)?))) else {
            return Ok((Change::Unknown, String::new(), None));
        };
        let own = Key::of(manifest);
        let within = match (resource.namespaced, own.namespace.as_str()) {
            (false, _) => "",
            (true, "") => namespace,
            (true, own) => own,
        };
        let (change, live) = match self.cluster.get(resource, within, &own.name) {
            Ok(None) => (Change::Create, None),
            Ok(Some(live)) => (replace::compare(manifest, &live), Some(live)),
            Err(ClusterError::Forbidden { .. } | ClusterError::NotServed { .. }) => (Change::Unknown, None),
            Err(error) => return Err(error.into()),
        };
        Ok((change, within.to_owned(), live))
    }

    fn planned_csv(
        &mut self,
        name: &str,
        objects: &[PlannedObject],
        subscription: Option<&Object<Subscription>>,
        observed: &Observed,
        ground: &Ground<'_>,
        preview: &mut Preview,
    ) -> Result<PlannedCsv, EngineError> {
        let mut planned = PlannedCsv {
            name: name.to_owned(),
            subscription: subscription.map(|one| one.name().to_owned()).unwrap_or_default(),
            ..PlannedCsv::default()
        };
        let manifests = || objects.iter().map(|(object, ..)| object);
        let is_csv = |one: &&Value| one["kind"] == olmkit_bundle::csv::KIND && Key::of(one).name == name;
        let Some(csv) = manifests().find(is_csv) else { return Ok(planned) };
        planned.version = csv.pointer("/spec/version").and_then(Value::as_str).unwrap_or("").to_owned();
        let mut crds: Vec<&Value> =
            manifests().filter(|one| one["kind"] == known::CRD.kind.as_str()).collect();
        let installed = subscription.map(|one| one.status.installed_csv.as_str()).unwrap_or_default();
        let before = match observed.csv(installed).filter(|old| old.name() != name) {
            Some(old) => self.cluster.get(&known::CSV, &observed.namespace, old.name())?,
            None => None,
        };
        let all: Vec<Value> = manifests().cloned().collect();
        let candidate = Candidate { name, manifests: &all, before: before.as_ref() };
        let mut unchecked = Unchecked::default();
        planned.pod_images = images(csv);
        planned.blockers = self.blockers(candidate, ground, &mut BTreeMap::new(), &mut unchecked)?;
        preview.not_checked.extend(unchecked.lines());
        // One that cannot be read is not new, and what changes in it is not known.
        let (mut live, mut unread) = (Vec::new(), Vec::new());
        for crd in &crds {
            let crd = Key::of(crd).name;
            match self.cluster.get(&known::CRD, "", &crd) {
                Ok(found) => live.extend(found),
                Err(error @ ClusterError::Forbidden { .. }) => {
                    preview.not_read.push(format!("customresourcedefinition/{crd} on the cluster: {error}"));
                    unread.push(crd);
                }
                Err(error) => return Err(error.into()),
            }
        }
        crds.retain(|crd| !unread.contains(&Key::of(crd).name));
        if let Some(before) = &before {
            planned.replaces = Key::of(before).name;
            planned.replaces_version =
                before.pointer("/spec/version").and_then(Value::as_str).unwrap_or("").to_owned();
        }
        let everywhere = observed.groups.first().is_some_and(|group| group.target_namespaces() == [""]);
        compare(&mut planned, before.as_ref().map(|csv| (csv, &live[..])), (csv, &crds), everywhere);
        planned.new_cluster_rules.extend(reach::rights(csv, &observed.namespace, objects));
        planned.lost_cluster_rules = reach::lost_rights(objects);
        Ok(planned)
    }
}

/// The APIs that the CRDs of a plan bring, where all of these could be read, and the objects that OLM can do without.
fn company<'o>(plan: &InstallPlan, objects: impl Iterator<Item = &'o PlannedObject> + Clone) -> Company {
    let objects = objects.map(|(object, ..)| object);
    let text =
        |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    let steps = &plan.status.plan;
    let is_crd = |kind: &str| kind == known::CRD.kind;
    let crds = objects.clone().filter(|one| one["kind"].as_str().is_some_and(is_crd));
    let brought: Vec<_> = crds.map(|crd| (text(crd, "/spec/group"), text(crd, "/spec/names/kind"))).collect();
    let is_whole = brought.len() == steps.iter().filter(|step| is_crd(&step.resource.kind)).count();
    let optional = steps.iter().filter(|step| step.optional).map(|step| &step.resource);
    let replaced = objects.clone().map(|object| text(object, "/spec/replaces"));
    Company {
        replaced: Some(replaced.collect()),
        brought: is_whole.then(|| brought.into_iter().collect()),
        optional: optional.map(|one| (one.kind.clone(), one.name.clone())).collect(),
    }
}

/// What the bundles of a plan were unpacked to, by the namespace and the name of the ConfigMap.
#[derive(Default)]
struct Unpacked(BTreeMap<(String, String), Result<Vec<Value>, String>>);

impl Unpacked {
    /// Whether the object of a step is what OLM makes of the permissions of a ClusterServiceVersion, and in no file of the bundle: an
    /// account, or a role or binding that is named after the ClusterServiceVersion and an account, with a hash.
    fn is_of_permissions(&self, manifest: &str, kind: &str, name: &str, csv: &str) -> bool {
        let place = serde_json::from_str(manifest).ok().and_then(|value| place_of(&value));
        let Some(Ok(objects)) = place.and_then(|place| self.0.get(&place)) else { return false };
        let is_csv = |one: &&Value| one["kind"] == olmkit_bundle::csv::KIND && Key::of(one).name == csv;
        let Some(found) = objects.iter().find(is_csv) else { return false };
        let permissions = ["permissions", "clusterPermissions"];
        let lists = permissions.map(|list| found.pointer(&format!("/spec/install/spec/{list}")));
        let mut accounts = lists
            .into_iter()
            .filter_map(|list| list?.as_array())
            .flatten()
            .filter_map(|one| one["serviceAccountName"].as_str());
        match kind {
            "ServiceAccount" => accounts.any(|account| account == name),
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => {
                let Some((base, _)) = name.rsplit_once('-').filter(|(base, _)| !base.is_empty()) else {
                    return false;
                };
                accounts.any(|account| format!("{csv}-{account}").starts_with(base))
            }
            _ => false,
        }
    }
}

/// The ConfigMap that stands for a manifest: its namespace and name; none for a manifest.
fn place_of(value: &Value) -> Option<(String, String)> {
    let field = |name: &str| value[name].as_str().unwrap_or("").to_owned();
    let is_reference = value["kind"] == "ConfigMap" && value["metadata"].is_null();
    is_reference.then(|| (field("namespace"), field("name")))
}

/// The objects of an unpacked bundle.
fn objects(map: &Value) -> Vec<Value> {
    let texts: Vec<String> = unpacked::texts(map).map(|(_, text)| text).collect();
    let documents = |text: &String| -> Vec<Value> {
        yaml::documents(text).filter_map(Result::ok).map(|document| document.root.to_json()).collect()
    };
    texts.iter().flat_map(documents).filter(Value::is_object).collect()
}

/// Objects as the files of a bundle.
fn files<'o>(name: &str, objects: impl IntoIterator<Item = &'o Value>) -> BundleFiles {
    let file = |(at, object): (usize, &Value)| BundleFile {
        path: format!("manifests/{at}.json"),
        content: Content::Text(object.to_string()),
    };
    BundleFiles { name: name.to_owned(), files: objects.into_iter().enumerate().map(file).collect() }
}

/// Compares the new version with what it replaces, if it replaces something.
fn compare(
    planned: &mut PlannedCsv,
    before: Option<(&Value, &[Value])>,
    after: (&Value, &[&Value]),
    everywhere: bool,
) {
    let new = files(&planned.name, std::iter::once(after.0).chain(after.1.iter().copied()));
    let new = Bundle::parse(&new);
    let old = before.map(|(csv, crds)| files(&planned.replaces, std::iter::once(csv).chain(crds)));
    let old = old.as_ref().map(Bundle::parse);
    let mut images = validate::images(&new);
    images.extend(reach::images(after.0));
    let mut known = old.as_ref().map(validate::images).unwrap_or_default();
    known.extend(before.iter().flat_map(|(csv, _)| reach::images(csv)));
    planned.new_images = images.difference(&known).cloned().collect();
    planned.images = images.into_iter().collect();
    planned.new_webhooks = reach::webhooks(before.map(|(csv, _)| csv), after.0);
    let old_csv = old.as_ref().and_then(Bundle::csv);
    if let Some(new_csv) = new.csv() {
        planned.new_cluster_rules = diff::gained_in_all_namespaces(old_csv.as_ref(), &new_csv, everywhere);
    }
    let Some(old) = &old else { return };
    let found = diff::bundles(old, &new).map(|comparison| comparison.findings).unwrap_or_default();
    planned.findings = found
        .into_iter()
        .map(|one| PlannedFinding {
            code: one.code.name,
            level: one.level.to_string(),
            message: one.message_with_crd(),
            subject: one.subject,
        })
        .collect();
}

impl PlannedCsv {
    /// Whether something that existed stops to work by `bundle diff`, or OLM will refuse it.
    pub fn is_breaking(&self) -> bool {
        !self.blockers.is_empty() || self.findings.iter().any(|one| one.level == Level::Error.to_string())
    }
}
