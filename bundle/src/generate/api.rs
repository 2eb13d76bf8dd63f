//! The APIs that the operator brings and needs, and examples of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::draft::{By, Draft, Origin};
use super::input::{self, Objects};
use super::package::Package;
use super::package_file::{ApiSettings, PackageFile};
use super::{Request, codes, descriptors, sample};
use crate::crd::{Crd, CrdVersion};
use crate::finding::{Finding, Findings, Place};
use crate::parse::Object;
use crate::validate;
use crate::yaml::{Node, Value, steps};

/// What the operator brings and needs.
pub(super) struct Api<'m> {
    /// The entries of `spec.customresourcedefinitions.owned`.
    pub(super) owned: Vec<Draft<'m>>,
    /// The entries of `spec.apiservicedefinitions.owned`.
    pub(super) owned_services: Vec<Draft<'m>>,
    /// The custom resources of `alm-examples`.
    pub(super) examples: Vec<Draft<'m>>,
}

/// Derives the owned APIs. What the base says of each of them is `known`: its fields are kept.
pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    request: &Request<'m>,
    mut known: Known<'m>,
    findings: &mut Findings,
) -> Api<'m> {
    let (package, compat) = (request.package, request.compat);
    let mut owned = Vec::new();
    let mut schemas = BTreeMap::new();
    for object in &objects.crds {
        let crd = Crd::from(*object);
        let origin = Origin::manifest(object, steps!("spec", "names", "kind"));
        for version in crd.versions() {
            // OLM waits for an owned version to be served.
            if !version.is_served() {
                known.report_unserved(&crd.name(), &version.name, &crd.kind(), findings);
                continue;
            }
            let mut entry = Draft::map(origin);
            let placed = |span| Origin::written(By::Manifest, object.source, span);
            entry.set(
                &["name"],
                Draft::new(crd.name().as_ref(), Origin::manifest(object, steps!("metadata", "name"))),
            );
            entry.set(&["version"], Draft::new(version.name.as_ref(), placed(version.span)));
            entry.set(&["kind"], Draft::new(crd.kind().as_ref(), origin));
            let schema = schema(object, version.node);
            if compat.is_none() {
                entry.set(
                    &["displayName"],
                    Draft::new(descriptors::spaced(&crd.kind()), origin.by_rule("the kind, in words")),
                );
                if let Some(schema) = schema {
                    if let Some(description) =
                        schema.get("description").filter(|node| node.as_str().is_some())
                    {
                        entry.set_some(
                            &["description"],
                            Draft::node(description, object.source, By::Manifest),
                        );
                    }
                    descriptors::derive(&mut entry, schema, object.source);
                }
            }
            if let Some(schema) = schema {
                let group = crd.group().into_owned();
                schemas.insert((group, version.name.to_string(), crd.kind().into_owned()), schema);
            }
            let mut written = descriptors::Written::default();
            let base = known.take(&crd.name(), &version.name, &crd.kind());
            if let Some(base) = base {
                written.add(&base);
                descriptors::overlay(&mut entry, base);
            }
            if let Some(file) = package.sources.file {
                apply_settings(&mut entry, file, &crd.kind(), &version.name, &mut written);
            }
            descriptors::keep(&mut entry, request.descriptors, &written);
            owned.push(entry);
        }
    }
    known.report_rest(findings);
    report_unused_settings(objects, package, findings);
    for sample in &objects.samples {
        let gvk = input::gvk(sample);
        if let Some(schema) = schemas.get(&(gvk.group, gvk.version, gvk.kind)).filter(|_| compat.is_none()) {
            sample::check(sample, schema, findings);
        }
    }
    let examples = objects.samples.iter().map(|sample| Draft::node(sample.root, sample.source, By::Manifest));
    Api { owned, owned_services: services(objects, package, findings), examples: examples.collect() }
}

/// What the base says of owned custom resources.
#[derive(Default)]
pub(super) struct Known<'m>(pub(super) Vec<Draft<'m>>);

impl<'m> Known<'m> {
    fn take(&mut self, name: &str, version: &str, kind: &str) -> Option<Draft<'m>> {
        let is = |entry: &Draft<'_>| {
            (entry.text("name"), entry.text("version"), entry.text("kind")) == (name, version, kind)
        };
        let at = self.0.iter().position(is)?;
        Some(self.0.remove(at))
    }

    /// Takes an entry away that OLM would wait for in vain.
    fn report_unserved(&mut self, name: &str, version: &str, kind: &str, findings: &mut Findings) {
        let Some(entry) = self.take(name, version, kind) else { return };
        let message = format!(
            "the base owns `{name} {version}`, a version that the CRD does not serve: it is left out"
        );
        findings.push(entry.finding(&codes::BASE_OVERRULED, message).help("remove the entry from the base"));
    }

    /// Entries for which there is no CRD: a bundle that owned them would not install.
    fn report_rest(self, findings: &mut Findings) {
        for entry in self.0 {
            let name = format!("{} {}", entry.text("name"), entry.text("version"));
            let message = format!(
                "the base owns `{name}`, for which there is no CRD among the manifests: it is left out"
            );
            let finding = entry.finding(&codes::BASE_OVERRULED, message);
            findings.push(finding.help("add the CRD to the manifests, or move the entry to `required`"));
        }
    }
}

/// The schema of a version; in old CRDs it may stand for all of them.
fn schema<'m>(object: &Object<'m, 'm>, version: &'m Node<'m>) -> Option<&'m Node<'m>> {
    let own = version.at(steps!("schema", "openAPIV3Schema"));
    own.or_else(|| object.root.at(steps!("spec", "validation", "openAPIV3Schema")))
}

/// What the package file says of how a kind is shown.
fn apply_settings<'m>(
    entry: &mut Draft<'m>,
    file: &'m PackageFile<'m>,
    kind: &str,
    version: &str,
    written: &mut descriptors::Written,
) {
    for (at, settings) in file.settings.descriptors.iter().enumerate() {
        let mine = settings.kind == kind && (settings.version.is_empty() || settings.version == version);
        let draft = mine.then(|| file.item("descriptors", at)).flatten();
        let Some(mut draft) = draft else { continue };
        let ApiSettings { hide, .. } = settings;
        for key in ["kind", "version", "hide"] {
            draft.remove(key);
        }
        for (short, key) in
            [("spec", "specDescriptors"), ("status", "statusDescriptors"), ("actions", "actionDescriptors")]
        {
            if let Some(list) = draft.remove(short) {
                draft.set(&[key], list);
            }
        }
        written.add(&draft);
        descriptors::overlay(entry, draft);
        let hide: BTreeSet<_> = hide.iter().filter_map(|hidden| hidden.split_once('.')).collect();
        for (part, key) in [("spec", "specDescriptors"), ("status", "statusDescriptors")] {
            if let Some(list) = entry.at_mut(&[key]) {
                list.retain(|descriptor| !hide.contains(&(part, descriptor.text("path"))));
            }
        }
    }
}

fn report_unused_settings(objects: &Objects<'_>, package: &Package<'_>, findings: &mut Findings) {
    let Some(file) = package.sources.file else { return };
    let gvks = objects.crds.iter().flat_map(|object| Crd::from(*object).gvks());
    let versions = gvks.flat_map(|gvk| [(gvk.kind.clone(), gvk.version), (gvk.kind, String::new())]);
    let known: BTreeSet<_> = versions.collect();
    for (at, settings) in file.settings.descriptors.iter().enumerate() {
        if !known.contains(&(settings.kind.clone(), settings.version.clone())) {
            let kind = format!("{} {}", settings.kind, settings.version);
            let message = format!("there is no CRD for `{}` among the manifests", kind.trim_end());
            findings.push(file.invalid(message, steps!("descriptors", at, "kind")));
        }
    }
}

/// Reports descriptors that somebody wrote, and those to hide, of fields that no version of the custom resource has.
pub(super) fn report_unknown_fields(
    csv: &Draft<'_>,
    objects: &Objects<'_>,
    package: &Package<'_>,
    findings: &mut Findings,
) {
    let mut fields = Fields::default();
    let all: Vec<_> = objects.crds.iter().flat_map(versions).collect();
    let (mut by_name, mut by_kind) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
    for own in &all {
        by_name.entry((own.crd.as_str(), own.name.as_str())).or_default().push(own);
        by_kind.entry(own.kind.as_str()).or_default().push(own);
    }
    for entry in csv.at(&["spec", "customresourcedefinitions"]).map_or(&[][..], |own| own.items_of("owned")) {
        let named = by_name.get(&(entry.text("name"), entry.text("version")));
        for crd in named.into_iter().flatten() {
            for (list, part) in validate::descriptors::LISTS {
                for path in entry.items_of(list).iter().filter_map(|descriptor| descriptor.get("path")) {
                    let below = (part, path.as_str().unwrap_or_default());
                    fields.look(crd, below, "", path.origin());
                }
            }
        }
    }
    let file = package.sources.file;
    let settings = file.map(|file| file.settings.descriptors.as_slice()).unwrap_or_default();
    for ((at, settings), file) in settings.iter().enumerate().zip(std::iter::repeat(file).flatten()) {
        for (number, hidden) in settings.hide.iter().enumerate() {
            let place = steps!("descriptors", at, "hide", number);
            let Some((part, path)) = hidden.split_once('.') else { continue };
            let of_version =
                |own: &&&SchemaOf<'_>| settings.version.is_empty() || own.name == settings.version;
            let of_kind = by_kind.get(settings.kind.as_str()).into_iter().flatten();
            for crd in of_kind.filter(of_version) {
                fields.look(crd, (part, path), &format!("{part}."), file.origin(place));
            }
        }
    }
    findings.extend(fields.unknown());
}

/// The schema of a version that is served.
struct SchemaOf<'m> {
    crd: String,
    kind: String,
    name: String,
    node: &'m Node<'m>,
}

/// The versions of a CRD whose schemas say which fields there are.
fn versions<'m>(object: &Object<'m, 'm>) -> Vec<SchemaOf<'m>> {
    let crd = Crd::from(*object);
    if crd.preserves_unknown_fields() {
        return Vec::new();
    }
    let served = crd.versions().into_iter().filter(CrdVersion::is_served);
    let (own, kind) = (crd.name(), crd.kind());
    let of = |version: CrdVersion<'m, 'm>| {
        let node = schema(object, version.node)?;
        Some(SchemaOf { crd: own.to_string(), kind: kind.to_string(), name: version.name.to_string(), node })
    };
    served.filter_map(of).collect()
}

/// Places that name fields: what is known in one version is not missing in another that the same place is about.
#[derive(Default)]
struct Fields<'a> {
    known: Vec<Origin<'a>>,
    unknown: Vec<Finding>,
}

impl<'a> Fields<'a> {
    /// Looks for the field of a path; `prefix` is what is written before it.
    fn look(&mut self, crd: &SchemaOf<'_>, below: (&str, &str), prefix: &str, origin: Origin<'a>) {
        match validate::descriptors::unknown((&crd.kind, &crd.name), crd.node, below, prefix) {
            Some((message, help)) => {
                let finding = Finding::new(&validate::DESCRIPTOR_UNKNOWN.code, message).help(help);
                self.unknown.push(match origin.place() {
                    Some(place) => finding.at(place),
                    None => finding,
                });
            }
            None => self.known.push(origin),
        }
    }

    fn unknown(self) -> Vec<Finding> {
        let Self { known, unknown } = self;
        // Lines are counted only where there is something to say.
        let known = known.iter().filter(|_| !unknown.is_empty());
        let mut seen: HashSet<Place> = known.filter_map(Origin::place).collect();
        let mut is_new =
            |finding: &Finding| finding.place.as_ref().is_none_or(|place| seen.insert(place.clone()));
        let unknown = unknown.into_iter().filter(|finding| is_new(finding)).collect();
        validate::descriptors::by_field(unknown)
    }
}

/// Aggregated APIs: what the APIService says, and the names that it does not know from the package file.
fn services<'m>(objects: &Objects<'m>, package: &Package<'m>, findings: &mut Findings) -> Vec<Draft<'m>> {
    let mut owned = Vec::new();
    let file = package.sources.file;
    let settings = file.map(|file| file.settings.api_services.as_slice()).unwrap_or_default();
    for object in &objects.api_services {
        let (group, version) = (object.text(steps!("spec", "group")), object.text(steps!("spec", "version")));
        if object.root.at(steps!("spec", "service")).is_none_or(Node::is_null) {
            let message = format!("`{}` is served by the cluster itself, and is left out", object.id());
            findings.push(object.finding(&codes::KIND_LEFT_OUT, message, steps!("spec")));
            continue;
        }
        let at = settings.iter().position(|entry| entry.group == group && entry.version == version);
        let Some((at, file)) = at.zip(file) else {
            let message = format!("`{}` does not say which kind it serves", object.id());
            let finding = object.finding(&codes::API_SERVICE_INCOMPLETE, message, steps!("spec", "group"));
            findings.push(finding.help(format!(
                "add an entry with `group: {group}`, `version: {version}`, `kind`, `name` (the plural) to `apiServices` in the package file"
            )));
            continue;
        };
        let mut entry = Draft::map(Origin::manifest(object, &[]));
        for (key, path) in [("group", steps!("spec", "group")), ("version", steps!("spec", "version"))] {
            if let Some(node) = object.root.at(path) {
                entry.set_some(&[key], Draft::node(node, object.source, By::Manifest));
            }
        }
        let service = object.text(steps!("spec", "service", "name"));
        match deployment_behind(objects, service) {
            Some(deployment) => {
                let origin = Origin::manifest(object, steps!("spec", "service", "name"));
                let origin = origin.by_rule("the Deployment behind the API's Service");
                entry.set(&["deploymentName"], Draft::new(deployment.name(), origin));
            }
            None => {
                let message = format!(
                    "nothing serves `{}`: the Service `{service}` selects no Deployment",
                    object.id()
                );
                let finding = object.finding(
                    &codes::WEBHOOK_WITHOUT_WORKLOAD,
                    message,
                    steps!("spec", "service", "name"),
                );
                findings.push(finding.help("add the Service and the Deployment that serve it"));
            }
        }
        if let Some(port) = target_port(objects, object, service) {
            entry.set(&["containerPort"], port);
        }
        entry.merge(file.item("apiServices", at).unwrap_or_else(|| Draft::map(entry.origin())));
        owned.push(entry);
    }
    let without_object = |entry: &crate::csv::ApiServiceDescription| {
        objects.api_services.iter().all(|object| {
            (object.text(steps!("spec", "group")), object.text(steps!("spec", "version")))
                != (entry.group.as_str(), entry.version.as_str())
        })
    };
    // An API that OLM registers needs no APIService among the manifests.
    for at in (0..settings.len()).filter(|at| without_object(&settings[*at])) {
        owned.extend(file.and_then(|file| file.item("apiServices", at)));
    }
    owned
}

fn deployment_behind<'m>(objects: &Objects<'m>, service: &str) -> Option<Object<'m, 'm>> {
    let service = objects.services.iter().find(|own| own.name() == service)?;
    let selector = service.root.at(steps!("spec", "selector"))?.as_mapping()?;
    let selects = |deployment: &&Object<'m, 'm>| {
        let labels = deployment.root.at(steps!("spec", "template", "metadata", "labels"));
        let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
        !selector.is_empty() && selector.iter().all(|entry| label(&entry.key) == entry.value.as_str())
    };
    objects.deployments.iter().find(selects).copied()
}

/// The port that the API's Service leads to, where it is a number: OLM's Service has the same port on both sides.
fn target_port<'m>(objects: &Objects<'m>, api: &Object<'m, 'm>, service: &str) -> Option<Draft<'m>> {
    let wanted = match api.root.at(steps!("spec", "service", "port")).map(|node| &node.value) {
        Some(Value::Int(port)) => *port,
        _ => 443,
    };
    let service = objects.services.iter().find(|own| own.name() == service)?;
    let ports = service.root.at(steps!("spec", "ports"))?.as_sequence()?;
    let port =
        ports.iter().find(|port| port.get("port").map(|node| &node.value) == Some(&Value::Int(wanted)))?;
    let target = port.get("targetPort").filter(|node| matches!(node.value, Value::Int(_)));
    Some(Draft::node(target.or_else(|| port.get("port"))?, service.source, By::Manifest))
}
