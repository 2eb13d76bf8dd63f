//! What changes for those who install an operator: its version, install modes, requirements, webhooks, other objects.

use std::collections::{BTreeMap, BTreeSet};

use super::codes;
use crate::csv::{ClusterServiceVersionSpec, WebhookDescription};
use crate::finding::{Code, Finding, Findings};
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
    comparison.webhooks();
    comparison.images();
}

/// Compares what bundles carry besides the ClusterServiceVersion and CRDs, and what they depend on.
pub(super) fn compare_bundles(old: &Bundle<'_>, new: &Bundle<'_>, findings: &mut Findings) {
    let objects = |bundle: &'_ Bundle<'_>| {
        let others = bundle
            .objects()
            .filter(|object| !matches!(object.kind(), "CustomResourceDefinition" | "" | crate::csv::KIND));
        others
            .map(|object| (object.id(), object.place(&["metadata".into(), "name".into()])))
            .collect::<BTreeMap<_, _>>()
    };
    let (olds, news) = (objects(old), objects(new));
    for (id, place) in olds.iter().filter(|(id, _)| !news.contains_key(*id)) {
        let finding = Finding::new(&codes::OBJECT_REMOVED, format!("`{id}` is no longer in the bundle"));
        findings.push(finding.at(new.place()).and(place.clone().label("before")).subject(id));
    }
    for (id, place) in news.iter().filter(|(id, _)| !olds.contains_key(*id)) {
        let finding = Finding::new(&codes::OBJECT_ADDED, format!("`{id}` is new in the bundle"));
        findings.push(finding.at(place.clone()).and(old.place()).subject(id));
    }
    dependencies(old, new, findings);
}

/// What a bundle depends on, by `metadata/dependencies.yaml`.
fn dependencies(old: &Bundle<'_>, new: &Bundle<'_>, findings: &mut Findings) {
    let listed = |bundle: &Bundle<'_>| {
        let mut found = BTreeMap::new();
        for file in bundle.metadata() {
            let Some(items) = file.root().and_then(|root| root.get("dependencies")?.as_sequence()) else {
                continue;
            };
            for item in items {
                found.insert(dependency(item), file.place_at(item.span));
            }
        }
        found
    };
    let (olds, news) = (listed(old), listed(new));
    for (what, place) in news.iter().filter(|(what, _)| !olds.contains_key(*what)) {
        let finding = Finding::new(&codes::DEPENDENCY_ADDED, format!("the bundle now depends on {what}"));
        findings.push(finding.at(place.clone()).and(old.place()));
    }
    for (what, place) in olds.iter().filter(|(what, _)| !news.contains_key(*what)) {
        let finding =
            Finding::new(&codes::DEPENDENCY_REMOVED, format!("the bundle no longer depends on {what}"));
        findings.push(finding.at(new.place()).and(place.clone().label("before")));
    }
}

fn dependency(item: &Node<'_>) -> String {
    let text = |path: &[Step<'_>]| item.at(path).and_then(Node::to_text).unwrap_or_default().into_owned();
    match text(steps!("type")).as_str() {
        "olm.package" => {
            let (name, range) = (text(steps!("value", "packageName")), text(steps!("value", "version")));
            format!("the package `{name}` in `{range}`")
        }
        "olm.gvk" => {
            let [group, version, kind] = ["group", "version", "kind"].map(|key| text(steps!("value", key)));
            format!("the API `{kind}.{version}.{group}`")
        }
        kind => {
            let value = item.get("value").map(|value| value.to_json().to_string()).unwrap_or_default();
            format!("`{kind}` {value}")
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
        let (Ok(from), Ok(to)) = (Version::parse(&old.version), Version::parse(&new.version)) else { return };
        if from == to {
            let same = self.old.typed.name() == self.new.typed.name() && self.old.typed == self.new.typed;
            if !same {
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

    fn webhooks(&mut self) {
        let (old, new) = self.specs();
        let all = steps!("spec", "webhookdefinitions");
        let key = |webhook: &WebhookDescription| (webhook.kind.clone(), webhook.generate_name.clone());
        for (at, webhook) in old.webhook_definitions.iter().enumerate() {
            let name = &webhook.generate_name;
            let path = steps!("spec", "webhookdefinitions", at, "generateName");
            let Some(to) = new.webhook_definitions.iter().position(|next| key(next) == key(webhook)) else {
                let message = format!("the webhook `{name}` is removed");
                self.push(&codes::WEBHOOK_REMOVED, message, path, all);
                continue;
            };
            if *webhook != new.webhook_definitions[to] {
                let next = steps!("spec", "webhookdefinitions", to, "generateName");
                self.push(&codes::WEBHOOK_CHANGED, format!("the webhook `{name}` changes"), path, next);
            }
        }
        for (to, webhook) in new.webhook_definitions.iter().enumerate() {
            if old.webhook_definitions.iter().any(|other| key(other) == key(webhook)) {
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
            let message = format!("{added} images to mirror are new, {removed} are gone");
            self.push(&codes::RELATED_IMAGES_CHANGED, message, path, path);
        }
    }
}
