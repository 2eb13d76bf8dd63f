//! `operator uninstall`: an inventory of everything that belongs to an operator, and what becomes of each part.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use olmkit_bundle::csv::CrdDescription;

use super::api::{
    ClusterServiceVersion, InstallPlan, Key, Named as _, Object, Resource, Subscription, known, label,
    made_here,
};
use super::checks;
use super::cluster::ClusterError;
use super::engine::{Engine, EngineError, waits_for_finalizers};
use super::lineage::lineage;
use super::observe::Observed;
use super::offer::Need;
use super::properties::{needs_of, package_of, requires};
use super::rights::Right;
use super::simulate;
use super::throw_away;
use crate::sentence::Sentence;
use crate::shell::{Reach, command};

/// What to remove, and how much of it.
#[derive(Clone, Debug, Default)]
pub struct Uninstall {
    /// The Subscription, or its package.
    pub name: String,
    /// Its namespace; none to look everywhere.
    pub namespace: Option<String>,
    /// Whether custom resources and the CRDs that the operator owns go too.
    pub delete_crds: bool,
    /// Whether custom resources may stay without the webhook that converts them.
    pub accept_conversion_gap: bool,
    /// Whether operators may stay that require an API of this one.
    pub accept_dependents: bool,
    /// Whether the operator may go while custom resources wait for it to remove their finalizers.
    pub accept_finalizers: bool,
}

/// What became of each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Whether nothing was done and this is what would be.
    pub dry_run: bool,
    /// What was removed, in that order.
    pub removed: Vec<Part>,
    /// What is being deleted and was not waited for, with what it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleting: Vec<Part>,
    /// What was kept.
    pub kept: Vec<Part>,
}

/// A part of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// Its kind.
    pub kind: String,
    /// Its namespace, empty where it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why it was kept, or what it waits for; empty for what was removed.
    pub reason: Sentence,
}

/// Why a CRD stays that may go.
const WITHOUT_CRD: &str = "without it its custom resources go too; --delete-crds removes both";
/// Why the rest stays while a custom resource waits for its finalizers.
pub const UNFINISHED: &str = "the operator still has to finalize";

/// A part with the way to it.
struct Item {
    resource: Resource,
    key: Key,
    /// Why it stays; none when it goes.
    keep: Option<Sentence>,
    /// What it waits for, when it was deleted and is there still.
    going: Option<Sentence>,
    /// Whether it is one of the operator's custom resources.
    is_custom_resource: bool,
}

impl Item {
    fn new(resource: &Resource, key: Key, keep: Option<impl Into<Sentence>>) -> Self {
        let keep = keep.map(Into::into);
        Self { resource: resource.clone(), key, keep, going: None, is_custom_resource: false }
    }
}

impl Removed {
    /// The same, with its commands on a cluster.
    #[must_use]
    pub fn on(mut self, reach: &Reach) -> Self {
        for part in self.kept.iter_mut().chain(&mut self.deleting) {
            part.reason = std::mem::take(&mut part.reason).on(reach);
        }
        self
    }
}

impl Engine<'_> {
    /// Removes an operator, and says what it leaves.
    ///
    /// # Errors
    /// No operator has this name; custom resources would be left that nobody can convert; the cluster does not answer.
    pub fn uninstall(&mut self, request: &Uninstall) -> Result<Removed, EngineError> {
        let found = self.find(&request.name, request.namespace.as_deref())?;
        let (namespace, name) = match (&found, &request.namespace) {
            (Some(found), _) => (found.namespace().to_owned(), found.name().to_owned()),
            (None, Some(namespace)) => (namespace.clone(), request.name.clone()),
            (None, None) => match self.namespace_left(&request.name, request.delete_crds)? {
                Some(namespace) => (namespace, request.name.clone()),
                None => {
                    self.expect(&request.name, None)?;
                    return Ok(Removed::default());
                }
            },
        };
        if let Some(found) = found.as_ref().filter(|found| found.name() != found.spec.package) {
            // With the Subscription its name goes.
            self.resume_as(&found.spec.package, &namespace);
        }
        let observed = self.look(&namespace, &name)?;
        let csvs = installed_by(&observed, found.as_ref(), &request.name);
        if !request.accept_dependents {
            self.no_dependents(&observed, &csvs)?;
        }
        let mut items = self.inventory(request, &observed, found.as_ref(), &csvs)?;
        if found.is_none() && csvs.is_empty() && items.iter().all(|item| item.keep.is_some()) {
            // Not even something that an interrupted run has left.
            self.expect(&request.name, Some(&namespace))?;
        }
        let rights: Vec<Right> = items
            .iter()
            .filter(|item| item.keep.is_none())
            .map(|item| Right::new("delete", &item.resource, &item.key.namespace, &item.key.name))
            .collect();
        self.need(rights)?;
        let goes = items.iter().filter(|item| item.keep.is_none());
        let left: Vec<String> = goes.map(|item| format!("delete {}", item.key.placed())).collect();
        self.still_to_do(left);
        let mut unfinished: Option<Key> = None;
        for item in items.iter_mut().filter(|item| item.keep.is_none()) {
            // A custom resource with a finalizer goes only while its operator runs.
            if let Some(key) = unfinished.as_ref().filter(|_| !item.is_custom_resource) {
                item.keep = Some(format!("{UNFINISHED} {}: run the same command again", key.placed()).into());
                continue;
            }
            self.delete(&item.resource, &item.key)?;
            self.one_is_done();
            // Custom resources go while their operator still runs, which may have finalizers to see to; the
            // ClusterServiceVersion goes before what its finalizer looks for.
            let waited_for = !item.resource.group.ends_with(".k8s.io") && item.resource.group != "batch"
                || item.is_custom_resource
                || item.resource.kind == known::CRD.kind;
            if self.options.wait && waited_for {
                self.gone(&item.resource, &item.key)?;
            } else if waited_for && !self.options.dry_run {
                let stays = self.cluster.get(&item.resource, &item.key.namespace, &item.key.name)?;
                item.going = stays.as_ref().map(|stays| {
                    let waits = waits_for_finalizers(stays).map(|stuck| stuck.sentence);
                    waits.map_or_else(|| "it is being deleted".into(), Sentence::from)
                });
                if item.is_custom_resource {
                    unfinished = unfinished.or(stays.map(|_| item.key.clone()));
                }
            }
        }
        if !self.options.dry_run {
            self.look(&namespace, &name)?;
        }
        let (kept, gone): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| item.keep.is_some());
        let (deleting, removed): (Vec<Item>, Vec<Item>) =
            gone.into_iter().partition(|item| item.going.is_some());
        let part = |item: Item| Part {
            kind: item.key.kind,
            namespace: item.key.namespace,
            name: item.key.name,
            reason: item.keep.or(item.going).unwrap_or_default(),
        };
        Ok(Removed {
            dry_run: self.options.dry_run,
            removed: removed.into_iter().map(part).collect(),
            deleting: deleting.into_iter().map(part).collect(),
            kept: kept.into_iter().map(part).collect(),
        })
    }

    /// Refuses when another operator requires an API that nobody would serve any more.
    fn no_dependents(
        &mut self,
        observed: &Observed,
        csvs: &[&Object<ClusterServiceVersion>],
    ) -> Result<(), EngineError> {
        let everywhere = match self.cluster.list(&known::CSV, None) {
            Err(ClusterError::Forbidden { .. }) => {
                self.cluster.list(&known::CSV, Some(&observed.namespace))?
            }
            found => found?,
        };
        for csv in csvs {
            for crd in &csv.spec.custom_resource_definitions.owned {
                if let Some(User { name, owns: false }) = other_user(&everywhere, observed, csvs, crd) {
                    return Err(EngineError::refused_help(
                        format!("`{name}` requires `{}`, which `{}` provides", crd.name, csv.name()),
                        "uninstall that operator first, or pass --accept-dependents: it runs on, and fails where it needs the API",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Everything that belongs to an operator, in the order it is removed. The ClusterServiceVersion goes late: as long as it
    /// is there, a run that follows an interrupted one finds the rest by it.
    fn inventory(
        &mut self,
        request: &Uninstall,
        observed: &Observed,
        subscription: Option<&Object<Subscription>>,
        csvs: &[&Object<ClusterServiceVersion>],
    ) -> Result<Vec<Item>, EngineError> {
        let mut items = Vec::new();
        let (mut crds, roles) = if csvs.is_empty() {
            self.labelled_crd_items(request, observed, subscription)?
        } else {
            self.crd_items(request, observed, csvs)?
        };
        items.append(&mut self.custom_resource_items(request, observed, csvs, &crds)?);
        items.extend(subscription.map(|found| Item::new(&known::SUBSCRIPTION, found.key(), None::<String>)));
        items.extend(self.throw_away_item(request, observed, subscription)?);
        let plans = plans_of(observed, subscription, csvs);
        let mut removed = BTreeSet::new();
        for plan in &plans {
            let owners = plan.metadata.owner_references.iter().flatten();
            let others: Vec<&str> = owners
                .map(|owner| owner.name.as_str())
                .filter(|name| subscription.is_none_or(|own| own.name() != *name))
                .filter(|name| observed.others.iter().any(|other| other.name() == *name))
                .collect();
            let keep =
                (!others.is_empty()).then(|| format!("it belongs to subscription/{} too", others.join(", ")));
            if keep.is_none() {
                removed.insert(plan.key());
            }
            items.push(Item::new(&known::INSTALL_PLAN, plan.key(), keep));
        }
        let package = subscription.map_or(request.name.as_str(), |found| found.spec.package.as_str());
        let left = match subscription {
            Some(_) => BTreeSet::new(),
            // The plans have gone with the Subscription.
            None => self.unpacked_of_package(package)?,
        };
        items.extend(self.unpack_items(&plans, &removed, left)?);
        items.extend(csvs.iter().map(|csv| Item::new(&known::CSV, csv.key(), None::<String>)));
        items.extend(dependency_items(observed, subscription, csvs, &plans));
        items.extend(self.group_items(observed, csvs)?);
        items.extend(roles);
        items.append(&mut crds);
        items.extend(self.namespace_item(&observed.namespace)?);
        Ok(items)
    }

    /// The CRDs, and the ClusterRoles that OLM made for them.
    fn crd_items(
        &mut self,
        request: &Uninstall,
        observed: &Observed,
        csvs: &[&Object<ClusterServiceVersion>],
    ) -> Result<(Vec<Item>, Vec<Item>), EngineError> {
        let (mut crds, mut roles) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        let everywhere = self.cluster.list(&known::CSV, None)?;
        for csv in csvs {
            for crd in &csv.spec.custom_resource_definitions.required {
                if seen.insert(crd.name.clone()) && self.cluster.get(&known::CRD, "", &crd.name)?.is_some() {
                    let keep = Some("it is needed by the operator, not brought by it");
                    crds.push(Item::new(&known::CRD, Key::new(&known::CRD, "", &crd.name), keep));
                }
            }
            for crd in &csv.spec.custom_resource_definitions.owned {
                let keep = match other_user(&everywhere, observed, csvs, crd) {
                    Some(user) => Some(user.to_string()),
                    None if !request.delete_crds => Some(WITHOUT_CRD.to_owned()),
                    None => None,
                };
                if seen.insert(crd.name.clone()) && self.cluster.get(&known::CRD, "", &crd.name)?.is_some() {
                    crds.push(Item::new(&known::CRD, Key::new(&known::CRD, "", &crd.name), keep.clone()));
                }
                roles.extend(self.crd_role_items(&crd.name, &crd.version, keep.is_some())?);
            }
        }
        Ok((crds, roles))
    }

    /// As [`Engine::crd_items`], by OLM's label, when no ClusterServiceVersion says any more which CRDs the operator owns.
    fn labelled_crd_items(
        &mut self,
        request: &Uninstall,
        observed: &Observed,
        subscription: Option<&Object<Subscription>>,
    ) -> Result<(Vec<Item>, Vec<Item>), EngineError> {
        let (mut crds, mut roles) = (Vec::new(), Vec::new());
        let package = subscription.map_or(request.name.as_str(), |found| found.spec.package.as_str());
        let everywhere = self.cluster.list(&known::CSV, None)?;
        for crd in self.labelled_crds(package, &observed.namespace)? {
            let description = CrdDescription {
                name: crd.name.clone(),
                kind: crd.kind.clone(),
                version: crd.versions.first().cloned().unwrap_or_default(),
                ..CrdDescription::default()
            };
            let keep = match (&crd.extension, other_user(&everywhere, observed, &[], &description)) {
                (Some(extension), _) => Some(format!("{extension} has it")),
                (None, Some(user)) => Some(user.to_string()),
                (None, None) if !request.delete_crds => Some(WITHOUT_CRD.to_owned()),
                (None, None) => None,
            };
            if keep.is_none() {
                self.check_finalizers(&crd.name)?;
            }
            crds.push(Item::new(&known::CRD, Key::new(&known::CRD, "", &crd.name), keep.clone()));
            for version in &crd.versions {
                roles.extend(self.crd_role_items(&crd.name, version, keep.is_some())?);
            }
        }
        Ok((crds, roles))
    }

    /// The ClusterRoles that OLM made for a version of a CRD.
    fn crd_role_items(&mut self, crd: &str, version: &str, stays: bool) -> Result<Vec<Item>, EngineError> {
        let mut roles = Vec::new();
        for level in ["admin", "crdview", "edit", "view"] {
            let name = format!("{crd}-{version}-{level}");
            if self.cluster.get(&known::CLUSTER_ROLE, "", &name)?.is_some() {
                let keep = stays.then(|| format!("the CRD `{crd}` stays"));
                roles.push(Item::new(&known::CLUSTER_ROLE, Key::new(&known::CLUSTER_ROLE, "", &name), keep));
            }
        }
        Ok(roles)
    }

    /// The custom resources: those of CRDs that go, and one line about those that stay.
    fn custom_resource_items(
        &mut self,
        request: &Uninstall,
        observed: &Observed,
        csvs: &[&Object<ClusterServiceVersion>],
        crds: &[Item],
    ) -> Result<Vec<Item>, EngineError> {
        let mut items = Vec::new();
        for item in crds {
            let Some(crd) = self.cluster.get(&known::CRD, "", &item.key.name)? else { continue };
            let Some(resource) = checks::served(&crd).into_iter().next() else { continue };
            let live = self.cluster.list(&resource, None)?;
            let converted = csvs.iter().any(|csv| {
                let hooks = csv.spec.webhook_definitions.iter();
                hooks.flat_map(|hook| &hook.conversion_crds).any(|name| *name == item.key.name)
            });
            if item.keep.is_some() && converted && !live.is_empty() && !request.accept_conversion_gap {
                return Err(EngineError::refused_help(
                    format!(
                        "{} custom resources of `{}` would stay without the webhook that converts them",
                        live.len(),
                        item.key.name
                    ),
                    "pass --delete-crds to remove them, or --accept-conversion-gap to keep them, readable only at their stored version",
                ));
            }
            if item.keep.is_some() && !request.accept_finalizers {
                no_unfinalized(observed, csvs, &item.key.name, &resource, &live)?;
            }
            if item.keep.is_none() {
                self.say(format!("{} custom resources of `{}` go with it", live.len(), item.key.name));
            }
            for object in &live {
                let keep = item.keep.as_ref().map(|_| "its CRD stays");
                let item = Item::new(&resource, Key::of(object), keep);
                items.push(Item { is_custom_resource: true, ..item });
            }
        }
        Ok(items)
    }

    /// The catalog that was made for this operator alone.
    fn throw_away_item(
        &mut self,
        request: &Uninstall,
        observed: &Observed,
        subscription: Option<&Object<Subscription>>,
    ) -> Result<Option<Item>, EngineError> {
        let name = match subscription {
            Some(found) if found.spec.source_namespace != found.namespace() => return Ok(None),
            // Others were made by `source add` or for a test, and are not the operator's.
            Some(found) if found.spec.source != throw_away::name_of(&found.spec.package) => return Ok(None),
            Some(found) => found.spec.source.clone(),
            // An interrupted run has removed it; what was named is the package then.
            None => throw_away::name_of(&request.name),
        };
        let found = self.cluster.get(&known::CATALOG_SOURCE, &observed.namespace, &name)?;
        let Some(found) = found.filter(made_here) else { return Ok(None) };
        let user = observed
            .others
            .iter()
            .find(|other| other.spec.source == name && other.spec.source_namespace == observed.namespace);
        let keep = user.map(|other| format!("{} needs it", other.key()));
        Ok(Some(Item::new(&known::CATALOG_SOURCE, Key::of(&found), keep)))
    }

    /// What unpacked the bundles. Subscriptions to one catalog share it, wherever they are: a plan that is still to be carried
    /// out, or to be tried again, fails for good without it.
    fn unpack_items(
        &mut self,
        plans: &[&Object<InstallPlan>],
        removed: &BTreeSet<Key>,
        left: BTreeSet<(String, String)>,
    ) -> Result<Vec<Item>, EngineError> {
        let mut names = left;
        names.extend(plans.iter().flat_map(|plan| unpacked(plan)));
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut users: BTreeMap<(String, String), String> = BTreeMap::new();
        let hidden = match self.cluster.list(&known::INSTALL_PLAN, None) {
            Ok(everywhere) => {
                let everywhere = everywhere.into_iter().filter_map(|found| Object::read(found).ok());
                for plan in everywhere.filter(|plan: &Object<InstallPlan>| !removed.contains(&plan.key())) {
                    let user = format!("{} in {}", plan.key(), plan.namespace());
                    users.extend(unpacked(&plan).into_iter().map(|name| (name, user.clone())));
                }
                false
            }
            Err(ClusterError::Forbidden { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        let mut items = Vec::new();
        for (namespace, name) in names {
            let keep = match users.get(&(namespace.clone(), name.clone())) {
                Some(user) => Some(format!("{user} refers to it")),
                None if hidden => Some("InstallPlans of other namespaces may refer to it".to_owned()),
                None => None,
            };
            // The ConfigMap goes last: a run that follows an interrupted one finds the rest by it.
            for resource in [
                &*known::JOB,
                &*known::ROLE_BINDING,
                &*known::ROLE,
                &*known::SERVICE_ACCOUNT,
                &*known::CONFIG_MAP,
            ] {
                if self.cluster.get(resource, &namespace, &name)?.is_some() {
                    items.push(Item::new(resource, Key::new(resource, &namespace, &name), keep.clone()));
                }
            }
        }
        Ok(items)
    }

    /// The namespace, where `install` made it: others may have put something into it since.
    fn namespace_item(&mut self, namespace: &str) -> Result<Option<Item>, EngineError> {
        let found = match self.cluster.get(&known::NAMESPACE, "", namespace) {
            Ok(found) => found.filter(made_here),
            // A user without the right to read it did not create it.
            Err(ClusterError::Forbidden { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let keep = command!("kubectl delete namespace {}", namespace) + " removes it, with everything in it";
        Ok(found.map(|found| Item::new(&known::NAMESPACE, Key::of(&found), Some(keep))))
    }

    /// The OperatorGroup and the ClusterRoles that OLM made for it.
    fn group_items(
        &mut self,
        observed: &Observed,
        csvs: &[&Object<ClusterServiceVersion>],
    ) -> Result<Vec<Item>, EngineError> {
        let mut items = Vec::new();
        let stays = observed.csvs.iter().find(|csv| csvs.iter().all(|own| own.name() != csv.name()));
        let user = observed.others.first().map(|other| other.key()).or_else(|| stays.map(|csv| csv.key()));
        if observed.groups.is_empty() && observed.subscription.is_none() && observed.csvs.is_empty() {
            let roles = self.roles_of_gone_group(&observed.namespace)?;
            items.extend(roles.into_iter().map(|key| Item::new(&known::CLUSTER_ROLE, key, None::<String>)));
        }
        for group in &observed.groups {
            let keep = match &user {
                Some(user) if made_here(group.document()) => Some(
                    Sentence::from(format!("{user} needs it: "))
                        + command!("kubectl delete operatorgroup {} -n {}", group.name(), group.namespace())
                        + " removes it once that is gone",
                ),
                Some(user) => Some(format!("{user} needs it").into()),
                None if !made_here(group.document()) => Some("it was not created by olmkit".into()),
                None => None,
            };
            items.push(Item::new(&known::OPERATOR_GROUP, group.key(), keep.clone()));
            let prefix = format!("olm.og.{}.", group.name());
            for role in self.cluster.list(&known::CLUSTER_ROLE, None)? {
                let key = Key::of(&role);
                if key.name.starts_with(&prefix) && is_of_group(&role, group.namespace()) {
                    let keep = keep.as_ref().map(|_| "the OperatorGroup stays");
                    items.push(Item::new(&known::CLUSTER_ROLE, key, keep));
                }
            }
        }
        Ok(items)
    }
}

/// Refuses while custom resources that stay are being deleted and wait for the operator to remove their finalizers: without it they
/// never go, and neither does their namespace.
fn no_unfinalized(
    observed: &Observed,
    csvs: &[&Object<ClusterServiceVersion>],
    crd: &str,
    resource: &Resource,
    live: &[Value],
) -> Result<(), EngineError> {
    let owns = |csv: &&&Object<ClusterServiceVersion>| {
        csv.spec.custom_resource_definitions.owned.iter().any(|owned| owned.name == crd)
    };
    let Some(csv) = csvs.iter().find(owns) else { return Ok(()) };
    let targets = observed.targets();
    let waits = |object: &&Value| {
        let namespace = Key::of(object).namespace;
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        let mut names = finalizers.into_iter().flatten().filter_map(Value::as_str);
        object.pointer("/metadata/deletionTimestamp").is_some_and(|since| !since.is_null())
            && names.any(|name| !matches!(name, "foregroundDeletion" | "orphan"))
            && (namespace.is_empty() || targets.iter().any(|one| one.is_empty() || *one == namespace))
    };
    let Some(object) = live.iter().find(waits) else { return Ok(()) };
    let key = Key::of(object);
    let why = waits_for_finalizers(object).map(|stuck| stuck.sentence).unwrap_or_default();
    let name = format!("{}/{}", resource.full_name(), key.name);
    let wait = match key.namespace.as_str() {
        "" => command!("kubectl wait --for=delete {} --timeout=10m", name),
        namespace => command!("kubectl -n {} wait --for=delete {} --timeout=10m", namespace, name),
    };
    let help = wait
        + format!(" waits until `{}` has done so: then run the same command again", csv.name())
        + "; if it never does, pass --accept-finalizers, and remove `metadata.finalizers` by hand afterwards";
    Err(EngineError::refused_help(format!("{} is being deleted: {why}", key.placed()), help))
}

/// Whether a role is of the group of a namespace; a label says so where OLM wrote one.
fn is_of_group(role: &Value, namespace: &str) -> bool {
    let owner =
        role.pointer("/metadata/labels").and_then(|labels| labels.get(super::api::label::OWNER_NAMESPACE));
    owner.is_none_or(|owner| owner == namespace)
}

/// The ClusterServiceVersions that came by a Subscription, or of a package that no Subscription has any more.
fn installed_by<'o>(
    observed: &'o Observed,
    subscription: Option<&'o Object<Subscription>>,
    package: &str,
) -> Vec<&'o Object<ClusterServiceVersion>> {
    let names = match subscription {
        Some(found) => observed.versions_of(found),
        None => {
            let of_package = observed.csvs.iter().filter(|csv| package_of(csv).as_deref() == Some(package));
            let named: Vec<&str> = of_package.map(|csv| csv.name()).collect();
            lineage(named, |name| Some(observed.csv(name)?.spec.replaces.as_str()))
        }
    };
    observed.csvs.iter().filter(|csv| names.contains(&csv.name())).collect()
}

fn plans_of<'o>(
    observed: &'o Observed,
    subscription: Option<&Object<Subscription>>,
    csvs: &[&Object<ClusterServiceVersion>],
) -> Vec<&'o Object<InstallPlan>> {
    let is_ours = |plan: &&Object<InstallPlan>| {
        let owners = plan.metadata.owner_references.iter().flatten();
        let mut owners = owners.map(|owner| owner.name.as_str());
        let carries = plan
            .spec
            .cluster_service_version_names
            .iter()
            .any(|name| csvs.iter().any(|csv| csv.name() == name));
        carries || subscription.is_some_and(|own| owners.any(|name| name == own.name()))
    };
    observed.plans.iter().filter(is_ours).collect()
}

/// The ConfigMaps that a plan's bundles were unpacked into, by namespace and name; the Job and its rights are called the same.
fn unpacked(plan: &InstallPlan) -> BTreeSet<(String, String)> {
    let lookups = plan
        .status
        .bundle_lookups
        .iter()
        .filter(|lookup| !lookup.path.is_empty())
        .map(|lookup| (lookup.catalog_source_ref.namespace.clone(), simulate::unpack_name(&lookup.path)));
    let referred = plan.status.plan.iter().filter_map(|step| {
        let manifest: Value = serde_json::from_str(&step.resource.manifest).ok()?;
        // A reference, not a ConfigMap that the bundle brings.
        let text = |field: &str| manifest[field].as_str().map(str::to_owned);
        (manifest["kind"] == "ConfigMap").then(|| text("namespace").zip(text("name")))?
    });
    lookups.chain(referred).collect()
}

/// What OLM installed because the operator needs it: it stays, and the sentence says how to remove it too.
fn dependency_items(
    observed: &Observed,
    subscription: Option<&Object<Subscription>>,
    csvs: &[&Object<ClusterServiceVersion>],
    plans: &[&Object<InstallPlan>],
) -> Vec<Item> {
    let mut items = Vec::new();
    for other in &observed.others {
        let Some(made_by) = other.annotation(label::GENERATED_BY) else { continue };
        let csv = observed.csv(&other.status.installed_csv);
        let is_needed_by =
            |user: &ClusterServiceVersion| csv.is_some_and(|csv| requires(user, csv, &other.spec.package));
        let is_ours =
            plans.iter().any(|plan| plan.name() == made_by) || csvs.iter().any(|own| is_needed_by(own));
        if !is_ours || subscription.is_some_and(|own| own.name() == other.name()) {
            continue;
        }
        let stays = |user: &&Object<ClusterServiceVersion>| csvs.iter().all(|own| own.name() != user.name());
        let user = observed.csvs.iter().filter(stays).find(|user| is_needed_by(user));
        let keep = match user {
            Some(user) => format!("{} needs it too", user.key()).into(),
            None => {
                let uninstall =
                    command!("olmkit operator uninstall {} -n {}", other.name(), other.namespace());
                Sentence::from("it was installed as a dependency: ") + uninstall + " removes it"
            }
        };
        items.push(Item::new(&known::SUBSCRIPTION, other.key(), Some(keep)));
        let keep = format!("it belongs to {}", other.key());
        items.extend(csv.map(|csv| Item::new(&known::CSV, csv.key(), Some(keep))));
    }
    items
}

/// Another operator that uses a CRD.
struct User {
    /// Its namespace and name.
    name: String,
    /// Whether it owns the CRD, or else needs it.
    owns: bool,
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, owns } = self;
        write!(f, "`{name}` {}", if *owns { "owns it too" } else { "needs it" })
    }
}

/// Another operator, anywhere, that owns or needs a CRD.
fn other_user(
    everywhere: &[Value],
    observed: &Observed,
    csvs: &[&Object<ClusterServiceVersion>],
    crd: &CrdDescription,
) -> Option<User> {
    let all =
        everywhere.iter().filter_map(|document| Object::<ClusterServiceVersion>::read(document.clone()).ok());
    let others = all.filter(|csv| {
        let own = csv.namespace() == observed.namespace && csvs.iter().any(|own| own.name() == csv.name());
        !csv.is_copied() && !own
    });
    let mut user = None;
    for csv in others {
        let name = format!("{}/{}", csv.namespace(), csv.name());
        let definitions = &csv.spec.custom_resource_definitions;
        if definitions.owned.iter().any(|owned| owned.name == crd.name) {
            return Some(User { name, owns: true });
        }
        // Whichever version is needed.
        let api = crd.gvk();
        let is_needed = |need: &Need| matches!(need, Need::Api(needed) if (&needed.group, &needed.kind) == (&api.group, &api.kind));
        if definitions.required.iter().any(|required| required.name == crd.name)
            || needs_of(&csv).iter().any(is_needed)
        {
            user = Some(User { name, owns: false });
        }
    }
    user
}
