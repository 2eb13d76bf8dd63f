//! `operator uninstall`: an inventory of everything that belongs to an operator, and what becomes of each part.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::api::{
    ClusterServiceVersion, InstallPlan, Key, Named as _, Object, Resource, Subscription, known, made_here,
};
use super::checks;
use super::engine::{Engine, EngineError};
use super::observe::Observed;
use super::simulate;
use super::throw_away;

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
}

/// What became of each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Whether nothing was done and this is what would be.
    pub dry_run: bool,
    /// What was removed, in that order.
    pub removed: Vec<Part>,
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
    /// Why it was kept; empty for what was removed.
    pub reason: String,
}

/// A part with the way to it.
struct Item {
    resource: Resource,
    key: Key,
    /// Why it stays; none when it goes.
    keep: Option<String>,
}

impl Item {
    fn new(resource: &Resource, key: Key, keep: Option<impl Into<String>>) -> Self {
        Self { resource: resource.clone(), key, keep: keep.map(Into::into) }
    }
}

impl Engine<'_> {
    /// Removes an operator, and says what it leaves.
    ///
    /// # Errors
    /// There is none of the name; custom resources would be left that nobody can convert; the cluster does not answer.
    pub fn uninstall(&mut self, request: &Uninstall) -> Result<Removed, EngineError> {
        let found = self.find(&request.name, request.namespace.as_deref())?;
        let (namespace, name) = match (&found, &request.namespace) {
            (Some(found), _) => (found.namespace().to_owned(), found.name().to_owned()),
            (None, Some(namespace)) => (namespace.clone(), request.name.clone()),
            (None, None) => {
                self.expect(&request.name, None)?;
                return Ok(Removed::default());
            }
        };
        let observed = self.look(&namespace, &name)?;
        let csvs = installed_by(&observed, found.as_ref(), &request.name);
        if found.is_none() && csvs.is_empty() {
            // Not even a ClusterServiceVersion that an interrupted run has left.
            self.expect(&request.name, Some(&namespace))?;
        }
        let items = self.inventory(request, &observed, found.as_ref(), &csvs)?;
        for item in items.iter().filter(|item| item.keep.is_none()) {
            self.delete(&item.resource, &item.key)?;
            // Custom resources go while their operator still runs, which may have finalizers to see to; the
            // ClusterServiceVersion goes before what its finalizer looks for.
            let waited_for = !item.resource.group.ends_with(".k8s.io") && item.resource.group != "batch"
                || item.resource.kind == known::CRD.kind;
            if self.options.wait && waited_for {
                self.gone(&item.resource, &item.key)?;
            }
        }
        if !self.options.dry_run {
            self.look(&namespace, &name)?;
        }
        let (kept, removed): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| item.keep.is_some());
        let part = |item: Item| Part {
            kind: item.key.kind,
            namespace: item.key.namespace,
            name: item.key.name,
            reason: item.keep.unwrap_or_default(),
        };
        Ok(Removed {
            dry_run: self.options.dry_run,
            removed: removed.into_iter().map(part).collect(),
            kept: kept.into_iter().map(part).collect(),
        })
    }

    /// Everything that belongs to an operator, in the order it is removed.
    fn inventory(
        &mut self,
        request: &Uninstall,
        observed: &Observed,
        subscription: Option<&Object<Subscription>>,
        csvs: &[&Object<ClusterServiceVersion>],
    ) -> Result<Vec<Item>, EngineError> {
        let mut items = Vec::new();
        let (mut crds, roles) = self.crd_items(request, observed, csvs)?;
        items.append(&mut self.custom_resource_items(request, csvs, &crds)?);
        items.extend(subscription.map(|found| Item::new(&known::SUBSCRIPTION, found.key(), None::<String>)));
        items.extend(csvs.iter().map(|csv| Item::new(&known::CSV, csv.key(), None::<String>)));
        items.extend(self.throw_away_item(request, observed, subscription)?);
        let plans = plans_of(observed, subscription, csvs);
        for plan in &plans {
            let owners = plan.metadata.owner_references.iter().flatten();
            let others: Vec<&str> = owners
                .map(|owner| owner.name.as_str())
                .filter(|name| subscription.is_none_or(|own| own.name() != *name))
                .filter(|name| observed.others.iter().any(|other| other.name() == *name))
                .collect();
            let keep =
                (!others.is_empty()).then(|| format!("it belongs to subscription/{} too", others.join(", ")));
            items.push(Item::new(&known::INSTALL_PLAN, plan.key(), keep));
        }
        items.extend(self.unpack_items(&plans)?);
        items.extend(self.group_items(observed, csvs)?);
        items.extend(roles);
        items.append(&mut crds);
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
                let keep = match other_owner(&everywhere, observed, csvs, &crd.name) {
                    Some(other) => Some(format!("`{other}` owns it too")),
                    None if !request.delete_crds => {
                        Some("without it its custom resources go too; --delete-crds removes both".to_owned())
                    }
                    None => None,
                };
                if seen.insert(crd.name.clone()) && self.cluster.get(&known::CRD, "", &crd.name)?.is_some() {
                    crds.push(Item::new(&known::CRD, Key::new(&known::CRD, "", &crd.name), keep.clone()));
                }
                for level in ["admin", "crdview", "edit", "view"] {
                    let name = format!("{}-{}-{level}", crd.name, crd.version);
                    if self.cluster.get(&known::CLUSTER_ROLE, "", &name)?.is_some() {
                        let keep = keep.as_ref().map(|_| format!("the CRD `{}` stays", crd.name));
                        roles.push(Item::new(
                            &known::CLUSTER_ROLE,
                            Key::new(&known::CLUSTER_ROLE, "", &name),
                            keep,
                        ));
                    }
                }
            }
        }
        Ok((crds, roles))
    }

    /// The custom resources: those of CRDs that go, and one line about those that stay.
    fn custom_resource_items(
        &mut self,
        request: &Uninstall,
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
                    "--delete-crds removes them, --accept-conversion-gap leaves them readable at their stored version alone",
                ));
            }
            if item.keep.is_none() {
                self.say(format!("{} custom resources of `{}` go with it", live.len(), item.key.name));
            }
            for object in &live {
                let keep = item.keep.as_ref().map(|_| "its CRD stays");
                items.push(Item::new(&resource, Key::of(object), keep));
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

    /// What unpacked the bundles.
    fn unpack_items(&mut self, plans: &[&Object<InstallPlan>]) -> Result<Vec<Item>, EngineError> {
        let lookups = plans.iter().flat_map(|plan| &plan.status.bundle_lookups);
        let names: BTreeSet<(String, String)> = lookups
            .filter(|lookup| !lookup.path.is_empty())
            .map(|lookup| (lookup.catalog_source_ref.namespace.clone(), simulate::unpack_name(&lookup.path)))
            .collect();
        let mut items = Vec::new();
        for (namespace, name) in names {
            for resource in [
                &*known::JOB,
                &*known::CONFIG_MAP,
                &*known::ROLE_BINDING,
                &*known::ROLE,
                &*known::SERVICE_ACCOUNT,
            ] {
                if self.cluster.get(resource, &namespace, &name)?.is_some() {
                    items.push(Item::new(resource, Key::new(resource, &namespace, &name), None::<String>));
                }
            }
        }
        Ok(items)
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
        for group in &observed.groups {
            let keep = match &user {
                Some(user) => Some(format!("{user} needs it")),
                None if !made_here(group.document()) => Some("somebody else made it".to_owned()),
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

/// Whether a role is of the group of a namespace; a label says so where OLM wrote one.
fn is_of_group(role: &Value, namespace: &str) -> bool {
    let owner =
        role.pointer("/metadata/labels").and_then(|labels| labels.get(super::api::label::OWNER_NAMESPACE));
    owner.is_none_or(|owner| owner == namespace)
}

/// The ClusterServiceVersions that came by a Subscription, or of a package that no Subscription has any more.
fn installed_by<'o>(
    observed: &'o Observed,
    subscription: Option<&Object<Subscription>>,
    package: &str,
) -> Vec<&'o Object<ClusterServiceVersion>> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    match subscription {
        Some(found) => names.extend([found.status.installed_csv.clone(), found.status.current_csv.clone()]),
        None => {
            let of_package =
                observed.csvs.iter().filter(|csv| simulate::package_of(csv).as_deref() == Some(package));
            names.extend(of_package.map(|csv| csv.name().to_owned()));
        }
    }
    // With the predecessors that have not gone yet.
    loop {
        let more: Vec<String> = observed
            .csvs
            .iter()
            .filter(|csv| names.contains(csv.name()) && !csv.spec.replaces.is_empty())
            .map(|csv| csv.spec.replaces.clone())
            .filter(|name| !names.contains(name))
            .collect();
        if more.is_empty() {
            break;
        }
        names.extend(more);
    }
    observed.csvs.iter().filter(|csv| names.contains(csv.name())).collect()
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

/// Another operator, anywhere, that owns a CRD.
fn other_owner(
    everywhere: &[Value],
    observed: &Observed,
    csvs: &[&Object<ClusterServiceVersion>],
    crd: &str,
) -> Option<String> {
    let all =
        everywhere.iter().filter_map(|document| Object::<ClusterServiceVersion>::read(document.clone()).ok());
    let mut others = all.filter(|csv| {
        let own = csv.namespace() == observed.namespace && csvs.iter().any(|own| own.name() == csv.name());
        !csv.is_copied() && !own
    });
    let other = others
        .find(|csv| csv.spec.custom_resource_definitions.owned.iter().any(|owned| owned.name == crd))?;
    Some(format!("{}/{}", other.namespace(), other.name()))
}
