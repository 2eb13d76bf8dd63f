//! What is left of an operator when neither its Subscription nor its ClusterServiceVersion is there to lead to it: an
//! `uninstall` that was interrupted goes on by the labels and annotations that OLM wrote.

use std::collections::BTreeSet;

use olmkit_bundle::annotations;
use olmkit_bundle::suggest::some_of;
use serde_json::Value;

use super::api::{ClusterServiceVersion, Key, Named as _, Object, Resource, Subscription, known, label};
use super::checks;
use super::cluster::ClusterError;
use super::component::{COMPONENT, component_label};
use super::engine::{Engine, EngineError};
use super::properties::package_of;
use crate::sentence::Sentence;
use crate::shell::command;

/// The owner of what OLM v1 manages.
const EXTENSION_KIND: &str = "olm.operatorframework.io/owner-kind";
const EXTENSION_NAME: &str = "olm.operatorframework.io/owner-name";

fn has_label(document: &Value, name: &str) -> bool {
    document.pointer("/metadata/labels").is_some_and(|labels| labels.get(name).is_some())
}

/// A CRD that OLM marked as an operator's.
pub(super) struct LabelledCrd {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) versions: Vec<String>,
    /// The ClusterExtension that has it now.
    pub(super) extension: Option<String>,
}

impl Engine<'_> {
    /// The objects of a kind that help but are not needed; none where they may not be listed.
    fn list_if_allowed(
        &mut self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, EngineError> {
        match self.cluster.list(resource, namespace) {
            Err(ClusterError::Forbidden { .. }) => Ok(Vec::new()),
            found => Ok(found?),
        }
    }

    /// Why there is no Subscription of a name although its ClusterServiceVersion is there: that is a copy of one in another namespace,
    /// or its Subscription is gone. The answer ends the sentence, and comes with the next command.
    pub(super) fn lone_version(
        &mut self,
        name: &str,
        namespace: Option<&str>,
        subscriptions: &[Object<Subscription>],
    ) -> Result<Option<(String, Sentence)>, EngineError> {
        let documents = self.list_if_allowed(&known::CSV, namespace)?.into_iter();
        let read = |document| Object::<ClusterServiceVersion>::read(document).ok();
        let is_meant = |csv: &Object<ClusterServiceVersion>| match package_of(csv) {
            _ if csv.name() == name => true,
            Some(package) => package == name,
            None => csv.name().strip_prefix(name).is_some_and(|rest| rest.starts_with(".v")),
        };
        let mut found: Vec<_> = documents.filter_map(read).filter(is_meant).collect();
        found.sort_by_key(|csv| (csv.is_copied(), csv.key()));
        let Some(csv) = found.first() else { return Ok(None) };
        let (own, key) = (csv.name(), csv.key());
        let package = package_of(csv);
        let is_its = |one: &&Object<Subscription>| {
            one.namespace() == key.namespace && Some(&one.spec.package) == package.as_ref()
        };
        if let Some(subscription) = subscriptions.iter().find(is_its).filter(|_| !csv.is_copied()) {
            let (namespace, name) = (subscription.namespace(), subscription.name());
            return Ok(Some((
                format!("clusterserviceversion/{own} belongs to {} in `{namespace}`", subscription.key()),
                format!("name that one: `{namespace}/{name}`").into(),
            )));
        }
        Ok(Some(if csv.is_copied() {
            let home = csv.label(label::COPIED_FROM).unwrap_or("another namespace");
            let help = match csv.label(label::COPIED_FROM) {
                Some(home) => format!("run the command with `-n {home}`").into(),
                None => command!("olmkit operator list -A") + " shows those of all namespaces",
            };
            (
                format!(
                    "clusterserviceversion/{own} in `{}` is a copy of the one in `{home}`",
                    key.namespace
                ),
                help,
            )
        } else {
            let package = package.unwrap_or_else(|| name.to_owned());
            let namespace = &key.namespace;
            let help = Sentence::from("run ")
                + command!("olmkit operator uninstall {} -n {}", package, namespace)
                + ", which keeps custom resources, then "
                + command!("olmkit operator install {} -n {}", package, namespace);
            (format!("clusterserviceversion/{own} is installed in `{namespace}` without one"), help)
        }))
    }

    /// The namespace that an operator of a package was in, when only its ClusterServiceVersion, or CRDs with OLM's label,
    /// still say so. `crds` is whether the latter are asked.
    pub(super) fn namespace_left(
        &mut self,
        package: &str,
        crds: bool,
    ) -> Result<Option<String>, EngineError> {
        let mut namespaces = BTreeSet::new();
        for document in self.list_if_allowed(&known::CSV, None)? {
            let Ok(csv) = Object::<ClusterServiceVersion>::read(document) else {
                continue;
            };
            if !csv.is_copied() && package_of(&csv).as_deref() == Some(package) {
                namespaces.insert(csv.key().namespace);
            }
        }
        if namespaces.is_empty() && crds {
            let prefix = format!("{COMPONENT}{package}.");
            for crd in self.list_if_allowed(&known::CRD, None)? {
                let labels = crd.pointer("/metadata/labels").and_then(Value::as_object);
                let labels = labels.into_iter().flat_map(|labels| labels.keys());
                // A namespace has no dot; what has one is the label of another package.
                let found = labels.filter_map(|label| label.strip_prefix(&prefix));
                namespaces.extend(found.filter(|namespace| !namespace.contains('.')).map(str::to_owned));
            }
        }
        let names: Vec<String> = namespaces.into_iter().collect();
        match &names[..] {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            several => Err(EngineError::refused_help(
                format!(
                    "`{package}` has left objects of {} namespaces without a Subscription: {}",
                    several.len(),
                    some_of("", several.iter().map(String::as_str))
                ),
                "name one of them with -n",
            )),
        }
    }

    /// The CRDs that carry OLM's label of an operator.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) fn labelled_crds(
        &mut self,
        package: &str,
        namespace: &str,
    ) -> Result<Vec<LabelledCrd>, EngineError> {
        let wanted = component_label(package, namespace);
        let found = self.list_if_allowed(&known::CRD, None)?;
        let text = |crd: &Value, path: &str| crd.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let crd = |crd: &Value| {
            let versions = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
            let labels = crd.pointer("/metadata/labels");
            let of = |name: &str| labels.and_then(|labels| labels[name].as_str()).map(str::to_owned);
            LabelledCrd {
                name: Key::of(crd).name,
                kind: text(crd, "/spec/names/kind").unwrap_or_default(),
                versions: versions
                    .filter_map(|version| version["name"].as_str().map(str::to_owned))
                    .collect(),
                extension: of(EXTENSION_KIND)
                    .map(|kind| format!("{kind} `{}`", of(EXTENSION_NAME).unwrap_or_default())),
            }
        };
        Ok(found.iter().filter(|found| has_label(found, &wanted)).map(crd).collect())
    }

    /// Custom resources that nobody would finalize any more: without the operator they never go.
    pub(super) fn check_finalizers(&mut self, crd: &str) -> Result<(), EngineError> {
        let Some(document) = self.cluster.get(&known::CRD, "", crd)? else { return Ok(()) };
        let Some(resource) = checks::served(&document).into_iter().next() else { return Ok(()) };
        let waits = |object: &&Value| {
            let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
            finalizers.is_some_and(|all| !all.is_empty())
        };
        let live = self.cluster.list(&resource, None)?;
        let Some(first) = live.iter().find(waits) else { return Ok(()) };
        let key = Key::of(first);
        Err(EngineError::refused_help(
            format!("{key} has finalizers, but the operator that handles them is gone"),
            "install the operator again and then uninstall it, or remove the finalizers from `metadata.finalizers`",
        ))
    }

    /// What unpacked bundles of a package, by namespace and name, in the namespaces of catalogs.
    pub(super) fn unpacked_of_package(
        &mut self,
        package: &str,
    ) -> Result<BTreeSet<(String, String)>, EngineError> {
        let catalogs = self.list_if_allowed(&known::CATALOG_SOURCE, None)?;
        let namespaces: BTreeSet<String> =
            catalogs.iter().map(|catalog| Key::of(catalog).namespace).collect();
        let mut names = BTreeSet::new();
        for namespace in namespaces {
            for map in self.list_if_allowed(&known::CONFIG_MAP, Some(&namespace))? {
                let name = Key::of(&map).name;
                let meta = |field: &str, key: &str| {
                    map.pointer(field).and_then(|all| all.get(key)).and_then(Value::as_str)
                };
                if meta("/metadata/labels", label::UNPACK) == Some(name.as_str())
                    && meta("/metadata/annotations", annotations::PACKAGE) == Some(package)
                {
                    names.insert((namespace.clone(), name));
                }
            }
        }
        Ok(names)
    }

    /// The ClusterRoles that OLM made for the OperatorGroup that `install` makes in a namespace, when that is gone.
    pub(super) fn roles_of_gone_group(&mut self, namespace: &str) -> Result<Vec<Key>, EngineError> {
        let prefix = format!("olm.og.{namespace}.");
        let roles = self.list_if_allowed(&known::CLUSTER_ROLE, None)?;
        let is_of_group = |role: &&Value| {
            let labels = role.pointer("/metadata/labels");
            let has = |name: &str, value: &str| labels.is_some_and(|labels| labels[name] == value);
            has(label::OWNER_KIND, "OperatorGroup")
                && has(label::OWNER, namespace)
                && has(label::OWNER_NAMESPACE, namespace)
                && Key::of(role).name.starts_with(&prefix)
        };
        Ok(roles.iter().filter(is_of_group).map(Key::of).collect())
    }
}
