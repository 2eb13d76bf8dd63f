//! What changes for those who install an operator: its version, install modes, requirements, webhooks, other objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::codes;
use crate::csv::{ClusterServiceVersionSpec, WebhookDescription};
use crate::finding::{Code, Finding, Findings, Place};
use crate::parse::{Bundle, Csv, Object};
use crate::version::{Version, parse_tolerant};
use crate::yaml::{Node, Step, steps};

struct Comparison<'f, 'b, 'a> {
    old: &'f Csv<'b, 'a>,
    new: &'f Csv<'b, 'a>,
    findings: &'f mut Findings,
}

/// Compares two ClusterServiceVersions, but for their permissions and Deployments.
pub(super) fn compare(old: &Csv<'_, '_>, new: &Csv<'_, '_>, findings: &mut Findings) {
    let mut comparison = Comparison { old, new, findings };
    comparison.version();
    comparison.install_modes();
    comparison.kubernetes();
    comparison.required();
    comparison.owned();
    comparison.openshift();
    comparison.webhooks();
    comparison.images();
}

/// Compares what bundles depend on, by `metadata/dependencies.yaml` and `metadata/properties.yaml`.
pub(super) fn compare_bundles(old: &Bundle<'_>, new: &Bundle<'_>, findings: &mut Findings) {
    let (olds, news) = (dependencies(old), dependencies(new));
    for (what, (range, place)) in &news {
        match olds.get(what) {
            None => {
                let message = format!("the bundle now depends on {}", shown(what, range));
                findings
                    .push(Finding::new(&codes::DEPENDENCY_ADDED, message).at(place.clone()).and(old.place()));
            }
            Some((before, was)) if without_spaces(before) != without_spaces(range) => {
                let message = format!("the bundle depended on {what} in `{before}`, and now in `{range}`");
                let finding = Finding::new(&codes::DEPENDENCY_CHANGED, message);
                findings.push(finding.at(place.clone()).and(was.clone().label("before")));
            }
            Some(_) => {}
        }
    }
    for (what, (range, place)) in olds.iter().filter(|(what, _)| !news.contains_key(*what)) {
        let message = format!("the bundle no longer depends on {}", shown(what, range));
        let finding = Finding::new(&codes::DEPENDENCY_REMOVED, message);
        findings.push(finding.at(new.place()).and(place.clone().label("before")));
    }
}

/// Spaces in a range mean nothing beside operators.
fn without_spaces(range: &str) -> String {
    range.replace(">= ", ">=").replace("<= ", "<=").replace("> ", ">").replace("< ", "<").replace("= ", "=")
}

fn shown(what: &str, range: &str) -> String {
    if range.is_empty() { what.to_owned() } else { format!("{what} in `{range}`") }
}

/// The dependencies of a bundle, each with its version range (empty without one) and place.
fn dependencies(bundle: &Bundle<'_>) -> BTreeMap<String, (String, Place)> {
    let mut found = BTreeMap::new();
    for file in bundle.metadata() {
        let list = |key| file.root().and_then(|root| root.get(key)?.as_sequence()).unwrap_or_default();
        let is_dependency = |item: &&Node<'_>| {
            let kind = item.get("type").and_then(Node::as_str).unwrap_or_default();
            matches!(kind, "olm.constraint" | "olm.gvk.required" | "olm.package.required")
        };
        for item in list("dependencies").iter().chain(list("properties").iter().filter(is_dependency)) {
            let (what, range) = dependency(item);
            found.insert(what, (range, file.place_at(item.span)));
        }
    }
    found
}

/// What an entry depends on, and in which range.
fn dependency(item: &Node<'_>) -> (String, String) {
    let text = |path: &[Step<'_>]| item.at(path).and_then(Node::to_text).unwrap_or_default().into_owned();
    match text(steps!("type")).as_str() {
        kind @ ("olm.package" | "olm.package.required") => {
            let key = if kind == "olm.package" { "version" } else { "versionRange" };
            (format!("the package `{}`", text(steps!("value", "packageName"))), text(steps!("value", key)))
        }
        "olm.gvk" | "olm.gvk.required" => {
            let [group, version, kind] = ["group", "version", "kind"].map(|key| text(steps!("value", key)));
            (format!("the API `{kind}.{version}.{group}`"), String::new())
        }
        kind => {
            let value = item.get("value").map(|value| value.to_json().to_string()).unwrap_or_default();
            (format!("`{kind}` {value}"), String::new())
        }
    }
}

impl<'b> Comparison<'_, 'b, '_> {
    fn specs(&self) -> (&'b ClusterServiceVersionSpec, &'b ClusterServiceVersionSpec) {
        (&self.old.typed.spec, &self.new.typed.spec)
    }

    fn push(
        &mut self,
        code: &'static Code,
        message: String,
        old: &[Step<'_>],
        new: &[Step<'_>],
    ) -> &mut Self {
        let place = |object: &Object<'_, '_>, path: &[Step<'_>]| object.place(path);
        let finding = Finding::new(code, message)
            .at(place(&self.new.object, new))
            .and(place(&self.old.object, old).label("before"))
            .subject(self.new.object.subject());
        self.findings.push(finding);
        self
    }

    fn version(&mut self) {
        let (old, new) = self.specs();
        let path = steps!("spec", "version");
        let differ = self.old.typed != self.new.typed;
        let (name, new_name) = (self.old.typed.name(), self.new.typed.name());
        if name == new_name && differ && old.version != new.version {
            let message = format!("both ClusterServiceVersions are named `{name}`, and they differ");
            let path = steps!("metadata", "name");
            self.push(&codes::VERSION_NOT_HIGHER, message, path, path);
        }
        let Ok(from) = Version::parse(&old.version) else { return };
        let Ok(to) = Version::parse(&new.version) else {
            let message = match new.version.as_str() {
                "" => format!("the old version is `{from}`, and the new bundle has no version"),
                version => format!("the new version `{version}` is not a semantic version"),
            };
            self.push(&codes::VERSION_NOT_HIGHER, message, path, path);
            return;
        };
        if from == to {
            if name != new_name || differ {
                let message = format!("both bundles have the version `{from}`, and they differ");
                self.push(&codes::VERSION_NOT_HIGHER, message, path, path);
            }
        } else if to < from {
            let message = format!("the new version `{to}` is lower than the old one `{from}`");
            self.push(&codes::VERSION_NOT_HIGHER, message, path, path);
        }
    }

    fn install_modes(&mut self) {
        let modes = |spec: &ClusterServiceVersionSpec| {
            let supported = spec.install_modes.iter().filter(|mode| mode.supported);
            supported.map(|mode| mode.kind.clone()).collect::<BTreeSet<_>>()
        };
        let (old, new) = self.specs();
        let (from, to) = (modes(old), modes(new));
        let path = steps!("spec", "installModes");
        for mode in from.difference(&to) {
            let message = format!("the install mode `{mode}` is no longer supported");
            self.push(&codes::INSTALL_MODE_REMOVED, message, path, path);
        }
        for mode in to.difference(&from) {
            self.push(
                &codes::INSTALL_MODE_ADDED,
                format!("the install mode `{mode}` is now supported"),
                path,
                path,
            );
        }
    }

    fn kubernetes(&mut self) {
        let (old, new) = self.specs();
        let path = steps!("spec", "minKubeVersion");
        let Ok(to) = parse_tolerant(&new.min_kube_version) else { return };
        let from = parse_tolerant(&old.min_kube_version).ok();
        if from.as_ref().is_none_or(|from| *from < to) {
            let message = match from {
                Some(from) => format!("the operator needed Kubernetes {from}, and now needs {to}"),
                None => format!("the operator now needs Kubernetes {to}"),
            };
            self.push(&codes::MIN_KUBE_VERSION_RAISED, message, path, path);
        }
    }

    fn required(&mut self) {
        let apis = |spec: &ClusterServiceVersionSpec| {
            let crds = spec.custom_resource_definitions.required.iter().map(|crd| crd.gvk().to_string());
            let services = spec.api_service_definitions.required.iter();
            let services = services.map(|api| format!("{}.{}.{}", api.kind, api.version, api.group));
            let native = spec.native_apis.iter().map(ToString::to_string);
            crds.chain(services).chain(native).collect::<BTreeSet<_>>()
        };
        let (old, new) = self.specs();
        let (from, to) = (apis(old), apis(new));
        let path = steps!("spec", "customresourcedefinitions");
        for api in to.difference(&from) {
            self.push(
                &codes::DEPENDENCY_ADDED,
                format!("the operator now needs the API `{api}`"),
                path,
                path,
            );
        }
        for api in from.difference(&to) {
            let message = format!("the operator no longer needs the API `{api}`");
            self.push(&codes::DEPENDENCY_REMOVED, message, path, path);
        }
    }

    /// APIs that the ClusterServiceVersion says it owns.
    fn owned(&mut self) {
        let crds = |spec: &ClusterServiceVersionSpec| {
            let owned = spec.custom_resource_definitions.owned.iter();
            owned.map(|crd| crd.gvk().to_string()).collect::<BTreeSet<_>>()
        };
        let services = |spec: &ClusterServiceVersionSpec| {
            let owned = spec.api_service_definitions.owned.iter();
            owned.map(|api| format!("{}.{}.{}", api.kind, api.version, api.group)).collect::<BTreeSet<_>>()
        };
        let (old, new) = self.specs();
        let path = steps!("spec", "customresourcedefinitions", "owned");
        let by_services = steps!("spec", "apiservicedefinitions", "owned");
        let (from, to) = (crds(old), crds(new));
        let (from_services, to_services) = (services(old), services(new));
        let still: BTreeSet<_> = to.union(&to_services).collect();
        for api in from.iter().filter(|api| !still.contains(api)) {
            let message = format!("the operator no longer owns the API `{api}`");
            self.push(&codes::OWNED_API_REMOVED, message, path, path);
        }
        for api in from_services.iter().filter(|api| !still.contains(api)) {
            let message = format!("the operator no longer serves the API `{api}`");
            self.push(&codes::OWNED_API_REMOVED, message, by_services, by_services);
        }
        for api in to_services.difference(&from_services) {
            let message = format!("the operator now serves the API `{api}` itself");
            self.push(&codes::API_SERVICE_ADDED, message, by_services, by_services);
        }
    }

    /// The newest OpenShift that the operator works on.
    fn openshift(&mut self) {
        let newest = |csv: &Csv<'_, '_>| {
            let properties: serde_json::Value =
                serde_json::from_str(csv.typed.annotation("olm.properties")?).ok()?;
            let is_it = |property: &&serde_json::Value| property["type"] == "olm.maxOpenShiftVersion";
            let value = properties.as_array()?.iter().find(is_it)?["value"].clone();
            Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let (from, to) = (newest(self.old), newest(self.new));
        let Some(limit) = to else { return };
        let message = match from {
            Some(from) if from == limit => return,
            Some(from) => format!(
                "clusters with OpenShift newer than {limit} cannot be upgraded while the operator is installed; the limit was {from}"
            ),
            None => format!(
                "clusters with OpenShift newer than {limit} cannot be upgraded while the operator is installed"
            ),
        };
        let path = steps!("metadata", "annotations", "olm.properties");
        self.push(&codes::MAX_OPENSHIFT_VERSION_CHANGED, message, path, path);
    }

    fn webhooks(&mut self) {
        let (old, new) = self.specs();
        let all = steps!("spec", "webhookdefinitions");
        let (olds, news) = (webhooks(old), webhooks(new));
        for (at, webhook) in old.webhook_definitions.iter().enumerate() {
            let name = &webhook.generate_name;
            let path = steps!("spec", "webhookdefinitions", at, "generateName");
            let Some(&to) = news.get(&(&*webhook.kind, &**name)) else {
                let message = format!("the webhook `{name}` is removed");
                self.push(&codes::WEBHOOK_REMOVED, message, path, all);
                continue;
            };
            let changes = webhook_changes(webhook, &new.webhook_definitions[to]);
            if !changes.is_empty() {
                let next = steps!("spec", "webhookdefinitions", to, "generateName");
                let message = format!("the webhook `{name}` changes: {}", changes.join(", "));
                self.push(&codes::WEBHOOK_CHANGED, message, path, next);
            }
        }
        for (to, webhook) in new.webhook_definitions.iter().enumerate() {
            if olds.contains_key(&(&*webhook.kind, &*webhook.generate_name)) {
                continue;
            }
            let path = steps!("spec", "webhookdefinitions", to, "generateName");
            let name = &webhook.generate_name;
            let message = match webhook.failure_policy.as_deref() {
                Some("Ignore") => format!("the webhook `{name}` is new"),
                _ => format!("the webhook `{name}` is new; while it does not answer, requests fail"),
            };
            self.push(&codes::WEBHOOK_ADDED, message, all, path);
        }
    }

    fn images(&mut self) {
        let (old, new) = self.specs();
        let images = |spec: &ClusterServiceVersionSpec| {
            spec.related_images.iter().map(|related| related.image.clone()).collect::<BTreeSet<_>>()
        };
        let (from, to) = (images(old), images(new));
        let (added, removed) = (to.difference(&from).count(), from.difference(&to).count());
        if added + removed > 0 {
            let path = steps!("spec", "relatedImages");
            let images =
                |count: usize| if count == 1 { "1 image".to_owned() } else { format!("{count} images") };
            let message = format!("{} to mirror added, {} removed", images(added), images(removed));
            self.push(&codes::RELATED_IMAGES_CHANGED, message, path, path);
        }
    }
}

/// Where webhooks are, by kind and name: the first of each.
fn webhooks(spec: &ClusterServiceVersionSpec) -> HashMap<(&str, &str), usize> {
    let all = spec.webhook_definitions.iter().enumerate().rev();
    all.map(|(at, webhook)| ((&*webhook.kind, &*webhook.generate_name), at)).collect()
}

/// What changes between two definitions of a webhook, with what OLM and Kubernetes fill in where nothing is said.
fn webhook_changes(old: &WebhookDescription, new: &WebhookDescription) -> Vec<String> {
    let filled_in = |webhook: &WebhookDescription| {
        let mut webhook = webhook.clone();
        let port = *webhook.container_port.get_or_insert(443);
        webhook.target_port.get_or_insert(IntOrString::Int(port));
        webhook.timeout_seconds.get_or_insert(10);
        for (field, default) in [
            (&mut webhook.failure_policy, "Fail"),
            (&mut webhook.match_policy, "Equivalent"),
            (&mut webhook.reinvocation_policy, "Never"),
        ] {
            field.get_or_insert_with(|| default.to_owned());
        }
        for rule in &mut webhook.rules {
            for list in
                [&mut rule.operations, &mut rule.resources, &mut rule.api_groups, &mut rule.api_versions]
            {
                list.iter_mut().for_each(|list| list.sort());
            }
            rule.scope.get_or_insert_with(|| "*".to_owned());
        }
        match serde_json::to_value(webhook) {
            Ok(serde_json::Value::Object(map)) => map,
            _ => serde_json::Map::new(),
        }
    };
    let (from, to) = (filled_in(old), filled_in(new));
    let keys: BTreeSet<_> = from.keys().chain(to.keys()).collect();
    let differing = keys.into_iter().filter(|key| from.get(*key) != to.get(*key));
    let said = |key: &String| match (from.get(key), to.get(key)) {
        (Some(from), Some(to)) if !from.is_array() && !from.is_object() => {
            format!("`{key}` from `{}` to `{}`", plain(from), plain(to))
        }
        _ => format!("`{key}`"),
    };
    differing.map(said).collect()
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
