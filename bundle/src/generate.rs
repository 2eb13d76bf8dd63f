//! Manifests of any operator to a bundle: the ClusterServiceVersion, the CRDs and other manifests, the annotations.
//!
//! The manifests say what runs and what it may do; the package file says what they cannot. Every object of the
//! input is used, written into the bundle, or reported: nothing is dropped in silence. All problems are found
//! in one run, and with an error nothing is generated. Same input in any order, same bytes.
//!
//! The way of the data: [`package_file`] and `input` read, `workload`, `rbac` and `api` each derive one part of the
//! ClusterServiceVersion, `assemble` puts it together, `output` names and writes the files.

mod api;
mod assemble;
mod assignment;
mod base;
mod builder;
mod cargo;
mod chart;
pub mod codes;
mod contradictions;
mod descriptors;
mod draft;
mod explain;
pub mod icon;
mod images;
pub mod init;
mod input;
mod inputs;
pub(crate) mod keys;
mod modes;
mod namespaces;
mod output;
pub mod package;
pub mod package_file;
mod pins;
mod rbac;
mod references;
mod sample;
mod webhook;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Code, Finding, Findings, Level};
use crate::load::{BundleFile, BundleFiles, Content};
use crate::parallel::in_parallel;
use crate::parse::{Bundle, Object};
use crate::suggest::did_you_mean;
use crate::validate::{self, INSTALL, OLM, objects, validate_without};
use crate::yaml::steps;
use assemble::{FromBase, Parts};
use inputs::Inputs;

pub use assignment::{Assignment, AssignmentError};
pub use base::Base;
pub use builder::{BuildError, Builder, Built};
pub use cargo::CargoFile;
pub use chart::ChartFile;
pub use descriptors::Descriptors;
pub use draft::{By, Draft, Origin, Relation};
pub use explain::{Field, PathError, PathStep, explain};
pub use input::Manifests;
pub use keys::trace;
pub use output::HEADER;
pub use package::{Attachments, ImageOverride, ImageOverrideError, Overrides, Package, Sources};
pub use package_file::{PackageFile, PackageSettings};
pub use pins::{Pins, pinned, unpinned};

/// Where the bundle stands among the versions of its package; see [`crate::csv::ClusterServiceVersionSpec`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// The ClusterServiceVersion it takes over from.
    pub replaces: Option<String>,
    /// Those that may jump to it and are no longer offered.
    pub skips: Vec<String>,
    /// A range of versions that may jump to it.
    pub skip_range: Option<String>,
}

/// Another tool, whose bundles are to be made as it makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compat {
    /// `operator-sdk generate bundle`: everything that it does not derive, or derives otherwise, is left as it has it.
    OperatorSdk,
}

/// What to generate a bundle from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'r> {
    /// What the manifests cannot say.
    pub package: &'r Package<'r>,
    /// The operator's manifests.
    pub manifests: &'r Manifests<'r>,
    /// The place that a catalog gives the bundle; without a catalog, what the package file and the base say.
    pub edge: Option<Edge>,
    /// The `createdAt` annotation, RFC 3339, and who gave it; the base's when absent.
    pub created_at: Option<(String, Origin<'r>)>,
    /// The version policy that was named instead of the package file's; recorded for `catalog add`.
    pub version_policy: Option<&'r str>,
    /// Annotations of the bundle that is regenerated which are not ours to write: see [`crate::annotations::is_generated`].
    pub kept_annotations: BTreeMap<String, String>,
    /// Whose bundles to make.
    pub compat: Option<Compat>,
    /// The digests to put in place of tags.
    pub pins: Pins,
    /// Which descriptors of owned APIs the bundle gets.
    pub descriptors: Descriptors,
}

/// A generated bundle.
#[derive(Debug)]
pub struct Generated<'r> {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The files of the bundle by path, with `/` between; empty when there is an error among the findings.
    pub files: BTreeMap<String, String>,
    /// What there is to say about the input, and about the bundle if it does not validate.
    pub findings: Vec<Finding>,
    /// The ClusterServiceVersion with the origin of everything in it, for [`explain`]; there even where there are errors.
    pub draft: Draft<'r>,
}

/// Generates a bundle.
///
/// ```
/// use olmkit_bundle::generate::{Manifests, Overrides, Package, Request, Sources, generate};
/// use olmkit_bundle::source::Source;
///
/// let deployment = "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: op}\nspec: {selector: {matchLabels: {app: op}}, \
///     template: {metadata: {labels: {app: op}}, spec: {containers: [{name: op, image: op}]}}}\n";
/// let manifests = Manifests::parse(vec![Source::new("deploy.yaml", deployment)]);
/// let overrides = Overrides {
///     package: Some("op".parse()?),
///     version: Some("0.1.0".parse()?),
///     ..Overrides::default()
/// };
/// let package = Package::resolve(Sources::default(), overrides, Default::default());
/// let package = package.map_err(|findings| format!("{findings:?}"))?;
/// let generated = generate(&Request::new(&package, &manifests));
/// assert_eq!(generated.csv, "op.v0.1.0");
/// assert!(generated.files.contains_key("manifests/op.clusterserviceversion.yaml"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate<'r>(request: &Request<'r>) -> Generated<'r> {
    let mut findings = Findings::new();
    let (package, compat) = (request.package, request.compat);
    let name = package.csv_name();
    let objects = request.manifests.classify(compat, &mut findings);
    if let Some(finding) = workload::too_many(&objects) {
        findings.push(finding);
        return Generated::failed(request, name, findings);
    }
    let base = base_draft(request, &objects.csvs, &mut findings);
    let mut base = FromBase::take(base.unwrap_or_else(|| assemble::default_base(request)));
    let mut workload = workload::derive(&objects, package, compat, &mut findings);
    let webhooks = webhook::derive(&objects, &mut workload.deployments, compat, &mut findings);
    let known = std::mem::take(&mut base.owned);
    let api = api::derive(&objects, request, known, &mut findings);
    let serving = webhooks.definitions.iter().chain(&api.owned_services);
    let serving: BTreeSet<_> = serving.map(|entry| entry.text("deploymentName").to_owned()).collect();
    let rbac = rbac::derive(&objects, &workload, &serving, compat, &mut findings);
    let written = assemble::written_images(request, &mut base.images);
    let images = images::derive(&objects, written, compat, &mut findings);
    workload::report_not_installed(&objects, &rbac.gone, compat, &mut findings);
    workload::report_unknown_accounts(&objects, package, base.accounts(), compat, &mut findings);
    workload::report_default_accounts(&objects, package, compat, &mut findings);
    let modes = modes::derive(&objects, &workload, &rbac, compat, &mut findings);
    let is_chart = package.sources.chart.is_some();
    if compat.is_none() {
        let told = |own| namespaces::of_deployment(own, &workload.namespaces);
        findings.extend(workload.deployments.iter().filter_map(told));
    }
    references::report(&objects, &workload, &serving, &rbac, compat, is_chart, &mut findings);
    report_namespaces(&objects.namespaces, compat, &mut findings);
    let services = webhooks.services.clone();
    let parts =
        Parts { objects: &objects, workload: &mut workload, rbac: &rbac, api, webhooks, images, modes };
    let mut draft = assemble::csv(request, base, parts, &mut findings);
    findings.extend(package.set.iter().flat_map(Assignment::check));
    pins::rename(&mut draft, &package.images, &mut findings);
    pins::apply(&mut draft, &request.pins, &mut findings);
    contradictions::report(request, &draft, &mut findings);
    if compat.is_none() {
        api::report_unknown_fields(&draft, &objects, package, &mut findings);
    }
    images::report_placeholders(&draft, compat, &mut findings);
    workload::report_refused(&draft, &objects, compat, &mut findings);
    let manifests = output::Manifests { objects: &objects, rbac: &rbac, services: &services };
    if compat.is_none() {
        report_carried(&manifests, &mut findings);
    }
    let files = output::files(request, draft.to_json(), &manifests, &mut findings);
    allow(package, &mut findings);
    if !findings.has_errors() {
        let suites: &[&str] = if compat.is_some() { &[OLM] } else { &[OLM, INSTALL] };
        let inputs = Inputs::new(&name, &files, &draft, &manifests, package.sources.file);
        findings.extend(self_check(&files, &manifests, &inputs, suites));
        allow(package, &mut findings);
    }
    let failed = findings.has_errors();
    let files = if failed { BTreeMap::new() } else { files };
    Generated { csv: name, files, findings: findings.into_sorted(package.name.as_str()), draft }
}

impl<'r> Generated<'r> {
    /// The findings about manifests that give no bundle.
    fn failed(request: &Request<'r>, csv: String, findings: Findings) -> Self {
        let findings = findings.into_sorted(request.package.name.as_str());
        Self { csv, files: BTreeMap::new(), findings, draft: assemble::default_base(request) }
    }
}

impl<'r> Request<'r> {
    /// A bundle from these manifests, with nothing said besides.
    pub fn new(package: &'r Package<'r>, manifests: &'r Manifests<'r>) -> Self {
        Self {
            package,
            manifests,
            edge: None,
            version_policy: None,
            kept_annotations: BTreeMap::new(),
            created_at: None,
            compat: None,
            pins: Pins::new(),
            descriptors: Descriptors::default(),
        }
    }
}

/// The base: the one that was named, else a ClusterServiceVersion of this package among the manifests, as `kustomize build
/// config/manifests` of operator-sdk's projects gives it, else the one that was found beside the kustomization. One among the manifests
/// that has the name of the base is what a kustomization made of it, and counts instead of it.
fn base_draft<'r>(
    request: &Request<'r>,
    among: &[Object<'r, 'r>],
    findings: &mut Findings,
) -> Option<Draft<'r>> {
    let mut base = request.package.sources.base.copied();
    let prefix = format!("{}.", request.package.name);
    for object in among {
        let is_of_package = object.name().starts_with(&prefix);
        if is_of_package && base.is_none_or(|base| base.is_found() || base.is_named(object.name())) {
            base = Some(Base::named(*object));
        } else if base.is_none_or(|base| !base.is_same(object)) {
            findings.push(assemble::foreign_base(object));
        }
    }
    findings.extend(base.map(Base::duplicate_keys).unwrap_or_default());
    base.map(|base| base.draft(request.compat))
}

/// OLM installs into a namespace that is there.
fn report_namespaces(namespaces: &[Object<'_, '_>], compat: Option<Compat>, findings: &mut Findings) {
    for object in namespaces.iter().filter(|_| compat.is_none()) {
        let message = format!("a bundle cannot contain kind `Namespace`: `{}` is left out", object.name());
        let finding = object.finding(&codes::KIND_LEFT_OUT, message, steps!("kind"));
        let finding = finding
            .help("OLM installs into a namespace that is there; consoles suggest the one of the Deployments");
        findings.push(Finding { level: Level::Info, ..finding });
    }
}

/// Takes away what the package file allows, each with a reason; a code that there is not is an error.
fn allow(package: &Package<'_>, findings: &mut Findings) {
    let mut known: Vec<&str> = codes::ALL.iter().map(|code| code.name).collect();
    known.extend(validate::rules().iter().map(|rule| rule.code.name));
    for code in &package.allow {
        if known.contains(&code.as_str()) {
            findings.remove(code);
            continue;
        }
        let message = format!("`--allow`: unknown finding code `{code}`");
        let help = did_you_mean(code, known.iter().copied());
        let help =
            help.unwrap_or_else(|| "`olmkit bundle validate --list` shows the kinds of findings".into());
        findings.push(Finding::new(&codes::PACKAGE_VALUE_INVALID, message).help(help));
    }
    let Some(file) = package.sources.file else { return };
    for (at, allowed) in file.settings.allow.iter().enumerate() {
        if known.contains(&allowed.code.as_str()) {
            findings.remove(&allowed.code);
            continue;
        }
        let message = format!("unknown finding code `{}`", allowed.code);
        let finding = file.invalid(message, steps!("allow", at, "code"));
        let help = did_you_mean(&allowed.code, known.iter().copied());
        findings.push(
            finding.help(help.unwrap_or_else(|| "`docs/findings.md` has all kinds of findings".into())),
        );
    }
}

/// Reports what Kubernetes refuses of the objects that go into the bundle as they are, at their places in the manifests.
fn report_carried(manifests: &output::Manifests<'_, '_>, findings: &mut Findings) {
    let all: Vec<_> = manifests.carried().collect();
    for refused in in_parallel(&all, |object| objects::refused(**object)) {
        findings.extend(refused.iter().cloned());
    }
}

/// The errors that the rules find in what was generated: a bundle that does not validate is not written. What was asked of the
/// manifests is not asked again. One warning goes with them, about objects that not every cluster can have. All are told at
/// their places in the input.
fn self_check(
    files: &BTreeMap<String, String>,
    manifests: &output::Manifests<'_, '_>,
    inputs: &Inputs<'_, '_>,
    suites: &[&str],
) -> Vec<Finding> {
    let file = |(path, text): (&String, &String)| BundleFile {
        path: path.clone(),
        content: Content::Text(text.clone()),
    };
    let files = BundleFiles { name: inputs.name.to_owned(), files: files.iter().map(file).collect() };
    let known: &[&Code] = if suites.contains(&INSTALL) { &objects::CODES } else { &[] };
    let found = validate_without(&Bundle::parse(&files), suites, known);
    let needs_crd = |finding: &Finding| finding.code == objects::NEEDS_CRD;
    let kept = found.into_iter().filter(|own| own.level == Level::Error || needs_crd(own));
    let carried: BTreeMap<_, _> = manifests.carried().map(|object| (object.subject(), object)).collect();
    kept.map(|finding| {
        let own = finding.subject.as_ref().filter(|_| needs_crd(&finding));
        match own.and_then(|subject| carried.get(subject)) {
            Some(object) => finding.at(object.place(steps!("kind"))),
            None => inputs.moved(finding),
        }
    })
    .collect()
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
