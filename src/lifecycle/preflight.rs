//! What would keep OLM from installing a bundle, looked at before its plan is approved: a plan that fails has put the old version
//! into `Replacing` already.
//!
//! What of it the manifests alone tell is in [`super::blockers`]. CRDs are held against what is stored, as OLM does it (operator-lifecycle-manager
//! `pkg/controller/operators/catalog/step.go`); images are looked for in their registries, which OLM does not do. What cannot be
//! looked at from here is named, and no obstacle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use olmkit_bundle::version::{Version, VersionRange};
use serde_json::{Value, json};

use super::api::{CatalogSource, ClusterServiceVersion, Key, Named as _, Object, Resource, known, label};
use super::blockers::{self, Blocker, Candidate, Company, Ground, lacking};
use super::checks;
use super::cluster::ClusterError;
use super::decide::Accept;
use super::engine::{ContentError, Engine, EngineError};
use super::immutable;
use super::install::GLOBAL;
use super::observe::Observed;
use super::offer::{Need, Offer, OfferedBundle, OfferedPackage, needs};
use super::patch::merge;
use super::properties::{needs_of, package_of};
use super::schema::{judge, lost_version, schema_of, versions};

/// What was not looked at, by the reason.
#[derive(Default)]
pub(super) struct Unchecked(BTreeMap<String, BTreeSet<String>>);

/// A CRD as it will be when a bundle comes to it.
pub(super) struct Current {
    /// As it is on the cluster; null when it is not there.
    live: Value,
    /// The versions that are served by then.
    served: BTreeSet<String>,
    /// The custom resources, at each version that is served now.
    objects: Vec<(Resource, Vec<Value>)>,
}

/// Bundles that are to be installed one after another.
pub(super) struct Upcoming<'u> {
    /// What the catalog of the operator offers.
    pub(super) offer: &'u Offer,
    /// Its package.
    pub(super) package: &'u OfferedPackage,
    /// The bundles, by name.
    pub(super) bundles: &'u [&'u str],
    /// What there is in the namespace.
    pub(super) observed: &'u Observed,
    /// The namespaces that the OperatorGroup selects, or will.
    pub(super) targets: Vec<String>,
    /// What is accepted.
    pub(super) accept: &'u Accept,
    /// Whether images may be missing where they are looked for.
    pub(super) accept_missing_images: bool,
}

/// What a look at the bundles before has shown.
#[derive(Default)]
struct Looked {
    crds: BTreeMap<String, Current>,
    unchecked: Unchecked,
    /// What other catalogs that the namespace sees offer, once that was asked, and whether all of them could be read.
    others: Option<(Vec<Arc<Offer>>, bool)>,
}

impl Engine<'_> {
    /// Looks at bundles that are to be installed one after another.
    ///
    /// # Errors
    /// OLM could not install one of them, or an image of it does not exist.
    pub(super) fn preflight(&mut self, upcoming: &Upcoming<'_>) -> Result<(), EngineError> {
        let Upcoming { offer, package, bundles, observed, .. } = upcoming;
        let mut looked = Looked::default();
        let mut company = Company::of(offer, package, bundles);
        // Other operators move too if the user names them with --accept.
        company.replaced = upcoming.accept.csvs.is_empty().then(BTreeSet::new);
        let ground = self.ground(&observed.namespace, upcoming.targets.clone(), company);
        let mut before = observed.installed().map(|csv| csv.document().clone());
        for (at, csv) in bundles.iter().enumerate() {
            let stop = at.checked_sub(1).map(|before| package.version(bundles[before]));
            let (found, manifest) = self
                .look_at(csv, before.as_ref(), upcoming, &ground, &mut looked)
                .map_err(|error| stop_before(error, stop.as_deref()))?;
            self.refuse_blocked(found, upcoming.accept, stop.as_deref())?;
            before = manifest;
        }
        for line in looked.unchecked.lines() {
            self.say(format!("not checked: {line}"));
        }
        Ok(())
    }

    /// Refuses the first blocker that was not accepted, and tells the others.
    pub(super) fn refuse_blocked(
        &mut self,
        blockers: Vec<Blocker>,
        accept: &Accept,
        stop: Option<&str>,
    ) -> Result<(), EngineError> {
        let (accepted, refused): (Vec<_>, Vec<_>) =
            blockers.into_iter().partition(|one| accept.codes.contains(one.code));
        for one in accepted {
            self.say(format!("{one}; continuing because of --accept {}", one.code));
        }
        let mut refused = refused.into_iter();
        let Some(first) = refused.next() else { return Ok(()) };
        for one in refused {
            self.say(one.to_string());
        }
        Err(EngineError::Blocked { blocker: first, stop: stop.map(str::to_owned) })
    }

    /// What versions in a namespace come to.
    pub(super) fn ground<'g>(
        &mut self,
        namespace: &'g str,
        targets: Vec<String>,
        company: Company,
    ) -> Ground<'g> {
        Ground { namespace, targets, kubernetes: self.cluster.kubernetes_version(), company }
    }

    /// What keeps a bundle from being installed, and its ClusterServiceVersion as far as it can be read.
    fn look_at(
        &mut self,
        csv: &str,
        before: Option<&Value>,
        upcoming: &Upcoming<'_>,
        ground: &Ground<'_>,
        looked: &mut Looked,
    ) -> Result<(Vec<Blocker>, Option<Value>), EngineError> {
        let bundle = upcoming.package.bundles.get(csv).cloned().unwrap_or_default();
        let accept_missing = upcoming.accept_missing_images;
        let mut found = self.unmet(csv, &bundle, upcoming, looked)?;
        let manifests = match self.catalogs.manifests(csv, &bundle) {
            Ok(manifests) => manifests,
            Err(error) => {
                let help = self.catalogs.help_missing();
                looked.unchecked.take(csv, error, accept_missing, help)?;
                // The catalog says a part of it for consoles.
                let spec = bundle.csv_metadata.unwrap_or_default();
                let known = [json!({"kind": olmkit_bundle::csv::KIND, "spec": spec})];
                let candidate = Candidate { name: csv, manifests: &known, before: None };
                found.extend(blockers::of(candidate, ground));
                return Ok((found, None));
            }
        };
        let candidate = Candidate { name: csv, manifests: &manifests, before };
        found.extend(self.blockers(candidate, ground, &mut looked.crds, &mut looked.unchecked)?);
        for image in manifests.iter().flat_map(images) {
            if let Err(error) = self.catalogs.image(&image) {
                let help = self.catalogs.help_missing();
                looked.unchecked.take(csv, error, accept_missing, help)?;
            }
        }
        Ok((found, candidate.csv().cloned()))
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

    /// A user of a CRD: an operator that owns or requires it, or custom resources.
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

    /// The whole list: what keeps a version from being installed whose dependencies are resolved.
    pub(super) fn blockers(
        &mut self,
        candidate: Candidate<'_>,
        ground: &Ground<'_>,
        known: &mut BTreeMap<String, Current>,
        unchecked: &mut Unchecked,
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut found = blockers::of(candidate, ground);
        found.extend(self.missing_apis(candidate)?);
        found.extend(self.unserved(candidate, ground)?);
        found.extend(self.taken_accounts(candidate, ground)?);
        found.extend(self.taken_from_others(candidate, ground)?);
        found.extend(self.crd_blockers(candidate, known, unchecked)?);
        Ok(found)
    }

    /// What of the CRDs of a version will keep OLM from installing it.
    pub(super) fn crd_blockers(
        &mut self,
        candidate: Candidate<'_>,
        known: &mut BTreeMap<String, Current>,
        unchecked: &mut Unchecked,
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut found = Vec::new();
        for crd in candidate.manifests.iter().filter(|object| object["kind"] == known::CRD.kind.as_str()) {
            found.extend(self.crd_fits(candidate.name, crd, known, unchecked)?);
        }
        Ok(found)
    }

    /// The first thing that the first bundle requires and nothing provides.
    pub(super) fn unmet_first(&mut self, upcoming: &Upcoming<'_>) -> Result<Option<Blocker>, EngineError> {
        let Some(csv) = upcoming.bundles.first() else { return Ok(None) };
        let bundle = upcoming.package.bundles.get(*csv).cloned().unwrap_or_default();
        Ok(self.unmet(csv, &bundle, upcoming, &mut Looked::default())?.into_iter().next())
    }

    /// What a bundle requires and nothing that the namespace sees or has provides: OLM stays where it is then, and does not say why.
    fn unmet(
        &mut self,
        csv: &str,
        bundle: &OfferedBundle,
        upcoming: &Upcoming<'_>,
        looked: &mut Looked,
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut found = Vec::new();
        for need in needs(&bundle.properties) {
            let Some(what) = lacking(&need, upcoming.offer).filter(|_| !is_there(&need, upcoming.observed))
            else {
                continue;
            };
            if looked.others.is_none() {
                looked.others = Some(self.other_offers(upcoming.observed, &mut looked.unchecked)?);
            }
            let (offers, is_complete) =
                looked.others.as_ref().map_or((&[][..], true), |(offers, all)| (offers, *all));
            if is_complete && offers.iter().all(|offer| lacking(&need, offer).is_some()) {
                let sentence =
                    format!("`{csv}` cannot be installed: it requires {what}, which no catalog offers");
                let help = "add it to the catalog, or add a catalog that has it with `olmkit source add`";
                found.push(Blocker::new(blockers::DEPENDENCY_MISSING, sentence, help));
            }
        }
        Ok(found)
    }

    /// What the catalogs offer that a namespace sees, and whether that is all: one that cannot be read may have what is missing.
    fn other_offers(
        &mut self,
        observed: &Observed,
        unchecked: &mut Unchecked,
    ) -> Result<(Vec<Arc<Offer>>, bool), EngineError> {
        let (mut offers, mut is_complete) = (Vec::new(), true);
        // OLM's own namespace may have any name.
        let own = observed.subscription.iter().map(|found| found.spec.source_namespace.as_str());
        let spaces: BTreeSet<&str> = own.chain(GLOBAL).chain([observed.namespace.as_str()]).collect();
        for space in spaces {
            let listed = match self.cluster.list(&known::CATALOG_SOURCE, Some(space)) {
                Err(error @ ClusterError::Forbidden { .. }) => {
                    unchecked.add(format!("catalogs in `{space}`"), error.to_string());
                    is_complete = false;
                    continue;
                }
                listed => listed?,
            };
            for source in listed.into_iter().filter_map(|one| Object::<CatalogSource>::read(one).ok()) {
                match self.offer_of(&source) {
                    Ok(offer) => offers.push(offer),
                    Err(error) => {
                        is_complete = false;
                        unchecked.add(source.key().placed(), error.to_string());
                    }
                }
            }
        }
        Ok((offers, is_complete))
    }

    /// The APIs besides its CRDs that a version requires and that the cluster does not serve.
    fn missing_apis(&mut self, candidate: Candidate<'_>) -> Result<Vec<Blocker>, EngineError> {
        let required = candidate.csv().and_then(|csv| csv.pointer("/spec/nativeAPIs")?.as_array());
        let mut found = Vec::new();
        for api in required.into_iter().flatten() {
            let text = |field: &str| api[field].as_str().unwrap_or("");
            let (group, version, kind) = (text("group"), text("version"), text("kind"));
            // Those of Kubernetes itself are there.
            if !group.contains('.') || group.ends_with(".k8s.io") || self.serves(group, version, kind)? {
                continue;
            }
            let name = candidate.name;
            let sentence = format!(
                "`{name}` cannot be installed: it requires the API `{kind}.{group}/{version}`, which the cluster does not serve"
            );
            let help = "install what provides the API first";
            found.push(Blocker::new(blockers::REQUIRED_API_MISSING, sentence, help));
        }
        Ok(found)
    }

    /// The objects of a version whose API the cluster does not have: OLM fails the plan when it comes to them.
    fn unserved(
        &mut self,
        candidate: Candidate<'_>,
        ground: &Ground<'_>,
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut found: Vec<Blocker> = Vec::new();
        for (group, version, Key { kind, name, .. }) in blockers::asked_for(candidate, ground) {
            let api = format!("`{kind}.{group}/{version}`");
            if found.iter().any(|one| one.sentence.contains(&api)) || self.serves(&group, &version, &kind)? {
                continue;
            }
            let sentence = format!(
                "`{}` cannot be installed: its bundle has the {kind} `{name}`, and the cluster does not serve the API {api}",
                candidate.name
            );
            let help = "install what provides the API first";
            found.push(Blocker::new(blockers::REQUIRED_API_MISSING, sentence, help));
        }
        Ok(found)
    }

    /// The ServiceAccounts that a bundle has as objects and that belong to the version before. OLM makes the new version an owner of those
    /// that it creates itself, not of these, and waits for good for an account that another version owns.
    fn taken_accounts(
        &mut self,
        candidate: Candidate<'_>,
        ground: &Ground<'_>,
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut found = Vec::new();
        for name in blockers::shipped_accounts(candidate) {
            let live = match self.cluster.get(&known::SERVICE_ACCOUNT, ground.namespace, name) {
                Err(ClusterError::Forbidden { .. }) => None,
                live => live?,
            };
            let owners = live.as_ref().and_then(|live| live.pointer("/metadata/ownerReferences")?.as_array());
            let owners = owners.into_iter().flatten().filter(|one| one["kind"] == known::CSV.kind.as_str());
            let mut owners = owners.filter_map(|one| one["name"].as_str()).peekable();
            let Some(owner) = owners.peek().copied() else { continue };
            if owners.any(|owner| owner == candidate.name) {
                continue;
            }
            let sentence = format!(
                "`{}` cannot be installed: its bundle has the ServiceAccount `{name}` of its permissions as an object, and `{owner}` owns that account, so OLM waits for good",
                candidate.name
            );
            let help =
                "publish a bundle without the object: OLM creates the accounts of the permissions itself";
            found.push(Blocker::new(blockers::REQUIREMENT_MISSING, sentence, help));
        }
        Ok(found)
    }

    /// What a version takes away that other operators require: versions of its CRDs, and the version of its package before it. OLM
    /// itself plans nothing of the kind, but a plan may be older than the operator that requires it, and of CRDs OLM knows no versions.
    fn taken_from_others(
        &mut self,
        candidate: Candidate<'_>,
        ground: &Ground<'_>,
    ) -> Result<Vec<Blocker>, EngineError> {
        let (Some(before), Some(going)) = (candidate.before, &ground.company.replaced) else {
            return Ok(Vec::new());
        };
        let Ok(before) = Object::<ClusterServiceVersion>::read(before.clone()) else { return Ok(Vec::new()) };
        let listed = match self.cluster.list(&known::CSV, None) {
            Err(ClusterError::Forbidden { .. }) => self.cluster.list(&known::CSV, Some(ground.namespace))?,
            listed => listed?,
        };
        let others = listed.into_iter().filter_map(|one| Object::<ClusterServiceVersion>::read(one).ok());
        let is_other = |one: &Object<ClusterServiceVersion>| {
            let is_copy =
                one.metadata.labels.as_ref().is_some_and(|all| all.contains_key(label::COPIED_FROM));
            !is_copy && ![candidate.name, before.name()].contains(&one.name()) && !going.contains(one.name())
        };
        let version_of = |csv: &Value| Version::parse(csv.pointer("/spec/version")?.as_str()?).ok();
        let versions = version_of(before.document()).zip(candidate.csv().and_then(version_of));
        let package = package_of(&before);
        let mut found = Vec::new();
        for other in others.filter(is_other) {
            let name = other.name();
            let mut taken = |code, what: String| {
                let sentence = format!(
                    "`{}` takes away {what}, which `{name}` in the namespace `{}` requires",
                    candidate.name,
                    other.namespace()
                );
                found.push(Blocker::new(code, sentence, format!("upgrade or uninstall `{name}` first")));
            };
            for required in &other.spec.custom_resource_definitions.required {
                let served =
                    |crd: &Value| checks::served(crd).iter().any(|one| one.version == required.version);
                let mut own =
                    candidate.manifests.iter().filter(|one| one["kind"] == known::CRD.kind.as_str());
                let is_lost = own.any(|crd| Key::of(crd).name == required.name && !served(crd));
                // Who may not look at the CRD does not know whether it is served now.
                let live = match is_lost.then(|| self.cluster.get(&known::CRD, "", &required.name)) {
                    None | Some(Err(ClusterError::Forbidden { .. })) => None,
                    Some(live) => live?,
                };
                if live.as_ref().is_some_and(served) {
                    let what = format!("the version {} of the CRD `{}`", required.version, required.name);
                    taken(blockers::REQUIRED_API_MISSING, what);
                }
            }
            for need in needs_of(&other).into_iter().filter(|_| other.namespace() == ground.namespace) {
                if let (Need::Package { name, range }, Some((old, new))) = (need, &versions)
                    && Some(&name) == package.as_ref()
                    && range
                        .parse::<VersionRange>()
                        .is_ok_and(|range| range.contains(old) && !range.contains(new))
                {
                    taken(
                        blockers::DEPENDENCY_MISSING,
                        format!("a version `{range}` of the package `{name}`"),
                    );
                }
            }
        }
        Ok(found)
    }

    /// The images of a version's pods that do not exist in their registries.
    pub(super) fn missing_images(
        &mut self,
        csv: &str,
        images: impl IntoIterator<Item = String>,
        unchecked: &mut Unchecked,
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut found = Vec::new();
        for image in images {
            match self.catalogs.image(&image) {
                Ok(()) => {}
                Err(ContentError::NotFound { reference }) => {
                    let sentence =
                        format!("`{csv}` cannot be installed: the image `{reference}` does not exist");
                    found.push(Blocker::new(blockers::IMAGE_PULL, sentence, "push it first"));
                }
                Err(error) => unchecked.take(csv, error, true, "")?,
            }
        }
        Ok(found)
    }

    /// Whether an API is served, as far as this can be seen.
    fn serves(&mut self, group: &str, version: &str, kind: &str) -> Result<bool, EngineError> {
        match self.cluster.get(&known::API_SERVICE, "", &format!("{version}.{group}")) {
            Ok(None) => {}
            Ok(Some(_)) | Err(ClusterError::Forbidden { .. }) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        let is_it = |crd: &Value| {
            crd.pointer("/spec/group") == Some(&json!(group))
                && crd.pointer("/spec/names/kind") == Some(&json!(kind))
        };
        match self.cluster.list(&known::CRD, None) {
            Ok(crds) => Ok(crds.iter().any(is_it)),
            Err(ClusterError::Forbidden { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether OLM would update a CRD, and what that takes away.
    fn crd_fits(
        &mut self,
        csv: &str,
        new: &Value,
        crds: &mut BTreeMap<String, Current>,
        unchecked: &mut Unchecked,
    ) -> Result<Option<Blocker>, EngineError> {
        let name = Key::of(new).name;
        if !crds.contains_key(&name) {
            let Some(current) = self.current(&name, unchecked)? else { return Ok(None) };
            crds.insert(name.clone(), current);
        }
        let Some(current) = crds.get_mut(&name) else { return Ok(None) };
        if let Some(lost) = lost_version(&current.live, new) {
            return Ok(Some(Blocker::new(
                blockers::CRD_STORED_VERSION,
                format!(
                    "`{csv}` cannot be installed: its CRD `{name}` does not have the version {lost}, at which objects are stored"
                ),
                format!(
                    "migrate the objects to another version, then remove {lost} from `status.storedVersions` of \
                     customresourcedefinition/{name}"
                ),
            )));
        }
        if let Some(found) = immutable::changed(&current.live, new) {
            let immutable::Changed { field, old, new } = found;
            let sentence = format!(
                "`{csv}` cannot be installed: its CRD `{name}` changes `{field}` from {old} to {new}, which Kubernetes refuses"
            );
            let help = "leave it unchanged, or define a separate CRD for the new resource";
            return Ok(Some(Blocker::new(blockers::IMMUTABLE_FIELD, sentence, help)));
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
                        let help = "change it so that it fits both";
                        return Ok(Some(Blocker::new(blockers::CRD_INVALIDATES_RESOURCES, misfit, help)));
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
                let patch = patch.fold(value.clone(), |below, step| json!({ step: below }));
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
        Ok(None)
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
        let mut live = live.unwrap_or_else(|| json!({}));
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

/// Whether a version of the namespace meets a need.
fn is_there(need: &Need, observed: &Observed) -> bool {
    observed.csvs.iter().any(|csv| match need {
        Need::Api(api) => csv.spec.custom_resource_definitions.owned.iter().any(|crd| crd.gvk() == *api),
        // Which versions will do is for OLM to say.
        Need::Package { name, .. } => package_of(csv).as_deref() == Some(name),
    })
}

/// A refusal with the version that an upgrade can go to all the same.
fn stop_before(error: EngineError, version: Option<&str>) -> EngineError {
    match (error, version) {
        (EngineError::Refused { what, help }, Some(version)) if !help.is_empty() => {
            EngineError::refused_help(what, help.ending(format!("; `--to {version}` stops before it")))
        }
        (error, _) => error,
    }
}

/// The images that the deployments of a ClusterServiceVersion run.
pub(super) fn images(csv: &Value) -> BTreeSet<String> {
    if csv["kind"] != olmkit_bundle::csv::KIND {
        return BTreeSet::new();
    }
    let deployments = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let pods = deployments.into_iter().flatten().filter_map(|one| one.pointer("/spec/template/spec"));
    let containers = pods.flat_map(|pod| [&pod["initContainers"], &pod["containers"]]);
    let containers = containers.filter_map(Value::as_array).flatten();
    containers.filter_map(|container| container["image"].as_str().map(str::to_owned)).collect()
}
