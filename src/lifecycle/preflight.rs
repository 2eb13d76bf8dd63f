//! What would keep OLM from installing a bundle, looked at before its plan is approved: a plan that fails has put the old version
//! into `Replacing` already.
//!
//! CRDs are held against what is stored, as OLM does it (operator-lifecycle-manager
//! `pkg/controller/operators/catalog/step.go`); images are looked for in their registries, which OLM does not do. What cannot be
//! looked at from here is named, and no obstacle.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::api::{Key, Resource, known, label};
use super::checks;
use super::cluster::ClusterError;
use super::engine::{ContentError, Engine, EngineError};
use super::offer::{OfferedBundle, OfferedPackage};
use super::patch::merge;
use super::schema::{fixed_field, judge, lost_version, schema_of, versions};

/// What was not looked at, by the reason.
#[derive(Default)]
pub(super) struct Unchecked(BTreeMap<String, BTreeSet<String>>);

/// A CRD as it will be when a bundle comes to it.
struct Current {
    /// As it is on the cluster; null when it is not there.
    live: Value,
    /// The versions that are served by then.
    served: BTreeSet<String>,
    /// The custom resources, at each version that is served now.
    objects: Vec<(Resource, Vec<Value>)>,
}

impl Engine<'_> {
    /// Looks at bundles that are to be installed one after another.
    ///
    /// # Errors
    /// OLM could not install one of them, or an image of it does not exist.
    pub(super) fn preflight(
        &mut self,
        package: &OfferedPackage,
        bundles: &[&str],
        accept_missing_images: bool,
    ) -> Result<(), EngineError> {
        let mut unchecked = Unchecked::default();
        let mut crds = BTreeMap::new();
        for (at, csv) in bundles.iter().enumerate() {
            let bundle = package.bundles.get(*csv).cloned().unwrap_or_default();
            let looked = self.look_at(csv, &bundle, accept_missing_images, &mut crds, &mut unchecked);
            let before = at.checked_sub(1).map(|before| package.version(bundles[before]));
            looked.map_err(|error| stop_before(error, before))?;
        }
        for line in unchecked.lines() {
            self.say(format!("not checked: {line}"));
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        csv: &str,
        bundle: &OfferedBundle,
        accept_missing_images: bool,
        crds: &mut BTreeMap<String, Current>,
        unchecked: &mut Unchecked,
    ) -> Result<(), EngineError> {
        let manifests = match self.catalogs.manifests(csv, bundle) {
            Ok(manifests) => manifests,
            Err(error) => {
                let help = self.catalogs.help_missing();
                return unchecked.take(csv, error, accept_missing_images, help);
            }
        };
        for crd in manifests.iter().filter(|object| object["kind"] == known::CRD.kind.as_str()) {
            self.crd_fits(csv, crd, crds, unchecked)?;
        }
        for image in manifests.iter().flat_map(images) {
            if let Err(error) = self.catalogs.image(&image) {
                unchecked.take(csv, error, accept_missing_images, self.catalogs.help_missing())?;
            }
        }
        Ok(())
    }

    /// Refuses a first version whose CRD is older than the one that others use: OLM would put it in the place of that one.
    pub(super) fn no_downgrade(&mut self, package: &OfferedPackage, csv: &str) -> Result<(), EngineError> {
        let bundle = package.bundles.get(csv).cloned().unwrap_or_default();
        // What cannot be read was named before.
        let manifests = self.catalogs.manifests(csv, &bundle).unwrap_or_default();
        for crd in manifests.iter().filter(|object| object["kind"] == known::CRD.kind.as_str()) {
            let name = Key::of(crd).name;
            let Some(current) = self.current(&name, &mut Unchecked::default())? else { continue };
            let lost = losses(&current, crd);
            let user = if lost.is_empty() { None } else { self.user_of(&name, &current)? };
            if let Some(user) = user {
                return Err(EngineError::refused_help(
                    format!(
                        "`{csv}` has an older CRD `{name}` than the one that {user} uses, and OLM puts it in its place, which loses {}",
                        lost.join(", ")
                    ),
                    "install a version that has these, or pass --accept-crd-downgrade",
                ));
            }
        }
        Ok(())
    }

    /// Who uses a CRD: an operator that owns or requires it, or custom resources.
    fn user_of(&mut self, crd: &str, current: &Current) -> Result<Option<String>, EngineError> {
        let csvs = match self.cluster.list(&known::CSV, None) {
            Err(ClusterError::Forbidden { .. }) => Vec::new(),
            found => found?,
        };
        let uses = |csv: &&Value| {
            let is_copy =
                csv.pointer("/metadata/labels").is_some_and(|all| !all[label::COPIED_FROM].is_null());
            let lists = ["owned", "required"].map(|list| format!("/spec/customresourcedefinitions/{list}"));
            let mut crds = lists.iter().filter_map(|list| csv.pointer(list)?.as_array()).flatten();
            !is_copy && crds.any(|one| one["name"] == crd)
        };
        let user = csvs.iter().find(uses).map(Key::of);
        let user = user.map(|key| format!("`{}/{}`", key.namespace, key.name));
        let object = current.objects.iter().flat_map(|(_, all)| all).next().map(Key::of);
        Ok(user.or(object.map(|key| key.placed())))
    }

    /// What of the CRDs of a version will keep OLM from installing it, a sentence each.
    pub(super) fn blockers(
        &mut self,
        csv: &str,
        crds: &[&Value],
        unchecked: &mut Unchecked,
    ) -> Result<Vec<String>, EngineError> {
        let mut known = BTreeMap::new();
        let mut blockers = Vec::new();
        for crd in crds {
            match self.crd_fits(csv, crd, &mut known, unchecked) {
                Err(EngineError::Refused { what, .. }) => blockers.push(what),
                done => done?,
            }
        }
        Ok(blockers)
    }

    /// Whether OLM would update a CRD, and what that takes away.
    fn crd_fits(
        &mut self,
        csv: &str,
        new: &Value,
        crds: &mut BTreeMap<String, Current>,
        unchecked: &mut Unchecked,
    ) -> Result<(), EngineError> {
        let name = Key::of(new).name;
        if !crds.contains_key(&name) {
            let Some(current) = self.current(&name, unchecked)? else { return Ok(()) };
            crds.insert(name.clone(), current);
        }
        let Some(current) = crds.get_mut(&name) else { return Ok(()) };
        if let Some(lost) = lost_version(&current.live, new) {
            return Err(EngineError::refused_help(
                format!(
                    "`{csv}` cannot be installed: its CRD `{name}` does not have the version {lost}, at which objects are stored"
                ),
                format!(
                    "migrate the objects to another version, then remove {lost} from `status.storedVersions` of \
                     customresourcedefinition/{name}"
                ),
            ));
        }
        if let Some((field, old, new)) = fixed_field(&current.live, new) {
            return Err(EngineError::refused_help(
                format!(
                    "`{csv}` cannot be installed: its CRD `{name}` changes `{field}` from {old} to {new}, which Kubernetes refuses"
                ),
                "leave it unchanged, or define a separate CRD for the new resource",
            ));
        }
        let by_webhook = new.pointer("/spec/conversion/strategy") == Some(&Value::from("Webhook"));
        for (resource, objects) in &current.objects {
            let Some(schema) = schema_of(new, &resource.version) else { continue };
            for object in objects {
                let judgement = judge(schema, object);
                let key = Key::of(object);
                let custom = match key.namespace.as_str() {
                    "" => key.name,
                    namespace => format!("{namespace}/{}", key.name),
                };
                let misfit = judgement.faults.first().map(|fault| {
                    format!("`{custom}` of `{name}` does not fit the schema of `{csv}`: {fault}")
                });
                match misfit {
                    // Its objects may become something else on the way, and OLM lets them pass.
                    Some(misfit) if by_webhook => self.say(misfit),
                    Some(misfit) => {
                        return Err(EngineError::refused_help(misfit, "change it so that it fits both"));
                    }
                    None => {}
                }
                if let Some(dropped) = judgement.dropped.first().filter(|_| !by_webhook) {
                    self.say(format!("`{custom}` of `{name}` loses a field with `{csv}`: {dropped}"));
                }
                // Rules in CEL do not keep OLM from updating a CRD.
                for pattern in judgement.unknown.iter().filter(|unknown| unknown.contains("the pattern")) {
                    unchecked.add(format!("`{name}`"), format!("{pattern} is not evaluated here"));
                }
            }
        }
        let served: BTreeSet<String> = versions(new)
            .filter(|version| version["served"] == true)
            .filter_map(|version| version["name"].as_str().map(str::to_owned))
            .collect();
        let dropped: Vec<&str> = current.served.difference(&served).map(String::as_str).collect();
        if !dropped.is_empty() {
            self.say(format!("`{csv}` no longer serves `{name}` at {}", dropped.join(", ")));
        }
        current.served = served;
        // Of one that is new these are fixed from now on.
        for path in ["/spec/scope", "/spec/names/kind"] {
            if current.live.pointer(path).is_none()
                && let Some(value) = new.pointer(path)
            {
                let patch = path.rsplit('/').filter(|step| !step.is_empty());
                let patch = patch.fold(value.clone(), |below, step| serde_json::json!({ step: below }));
                merge(&mut current.live, &patch);
            }
        }
        // From then on objects may be stored at its version.
        let storage =
            versions(new).find(|version| version["storage"] == true).map(|version| &version["name"]);
        let stored = current.live.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut);
        if let (Some(stored), Some(storage)) = (stored, storage)
            && !stored.contains(storage)
        {
            stored.push(storage.clone());
        }
        Ok(())
    }

    /// A CRD and its custom resources; none when it may not be looked at.
    fn current(&mut self, name: &str, unchecked: &mut Unchecked) -> Result<Option<Current>, EngineError> {
        let live = match self.cluster.get(&known::CRD, "", name) {
            Ok(live) => live,
            Err(error @ ClusterError::Forbidden { .. }) => {
                unchecked.add(format!("`{name}`"), error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        // A new one begins with no objects, and is updated by the bundles after it.
        let mut live = live.unwrap_or_else(|| serde_json::json!({}));
        if live.pointer("/status/storedVersions").is_none() {
            live["status"]["storedVersions"] = Value::Array(Vec::new());
        }
        let mut objects = Vec::new();
        let served = checks::served(&live);
        for resource in &served {
            match self.cluster.list(resource, None) {
                Ok(found) => objects.push((resource.clone(), found)),
                // A CRD that was just made, a right that is missing, or a conversion webhook that does not answer.
                Err(
                    error @ (ClusterError::Forbidden { .. }
                    | ClusterError::NotServed { .. }
                    | ClusterError::Refused { .. }
                    | ClusterError::Failed { .. }),
                ) => {
                    unchecked.add(format!("custom resources of `{name}`"), error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        let served = served.into_iter().map(|resource| resource.version).collect();
        Ok(Some(Current { live, served, objects }))
    }
}

/// What an older CRD takes away from the one that is there.
fn losses(current: &Current, new: &Value) -> Vec<String> {
    let is_served = |name: &String| versions(new).any(|one| one["name"] == **name && one["served"] == true);
    let versions =
        current.served.iter().filter(|name| !is_served(name)).map(|name| format!("the version {name}"));
    let by_webhook = |crd: &Value| crd.pointer("/spec/conversion/strategy") == Some(&Value::from("Webhook"));
    let conversion = by_webhook(&current.live) && !by_webhook(new);
    let fields = current.objects.iter().flat_map(|(resource, objects)| {
        let schema = schema_of(new, &resource.version);
        objects.iter().filter_map(move |object| judge(schema?, object).dropped.into_iter().next())
    });
    versions
        .chain(conversion.then(|| "the conversion by a webhook".to_owned()))
        .chain(fields.take(1))
        .collect()
}

impl Unchecked {
    /// A line for each reason.
    pub(super) fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(reason, what)| {
            let what: Vec<String> = what.into_iter().collect();
            format!("{}: {reason}", what.join(", "))
        })
    }

    fn add(&mut self, what: String, reason: String) {
        self.0.entry(reason).or_default().insert(what);
    }

    /// What could not be read is no obstacle; what does not exist is, unless it was accepted.
    fn take(
        &mut self,
        csv: &str,
        error: ContentError,
        accept_missing: bool,
        help: &str,
    ) -> Result<(), EngineError> {
        match error {
            ContentError::Interrupted => return Err(ClusterError::Interrupted.into()),
            ContentError::NotFound { reference } if accept_missing => {
                self.add(
                    format!("`{reference}`"),
                    "does not exist; continuing because of --accept-missing-images".to_owned(),
                );
            }
            ContentError::NotFound { reference } => {
                return Err(EngineError::refused_help(
                    format!("`{csv}` cannot be installed: the image `{reference}` does not exist"),
                    help,
                ));
            }
            ContentError::Unreadable { reference, source } => {
                let mut reason = source.to_string();
                let mut next = source.source();
                while let Some(cause) = next {
                    reason = format!("{reason}: {cause}");
                    next = cause.source();
                }
                self.add(format!("`{reference}`"), reason);
            }
        }
        Ok(())
    }
}

/// A refusal with the version that an upgrade can go to all the same.
fn stop_before(error: EngineError, version: Option<String>) -> EngineError {
    match (error, version) {
        (EngineError::Refused { what, help }, Some(version)) if !help.is_empty() => {
            EngineError::refused_help(what, help.ending(format!("; `--to {version}` stops before it")))
        }
        (error, _) => error,
    }
}

/// The images that the deployments of a ClusterServiceVersion run.
fn images(csv: &Value) -> BTreeSet<String> {
    if csv["kind"] != olmkit_bundle::csv::KIND {
        return BTreeSet::new();
    }
    let deployments = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let pods = deployments.into_iter().flatten().filter_map(|one| one.pointer("/spec/template/spec"));
    let containers = pods.flat_map(|pod| [&pod["initContainers"], &pod["containers"]]);
    let containers = containers.filter_map(Value::as_array).flatten();
    containers.filter_map(|container| container["image"].as_str().map(str::to_owned)).collect()
}
