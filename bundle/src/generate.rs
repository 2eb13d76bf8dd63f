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
pub mod codes;
pub mod icon;
mod input;
mod output;
pub mod package_file;
mod rbac;
mod workload;

use std::collections::BTreeMap;

use crate::finding::{Finding, Findings, Level};
use crate::load::{BundleFile, BundleFiles, Content};
use crate::parse::Bundle;
use crate::validate::{OLM, validate};

pub use input::Manifests;
pub use output::HEADER;
pub use package_file::{Attachments, Overrides, Package, PackageFile};

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

/// What to generate a bundle from.
#[derive(Debug)]
pub struct Request<'a> {
    /// What the manifests cannot say.
    pub package: &'a Package,
    /// The operator's manifests.
    pub manifests: &'a Manifests<'a>,
    /// The edge to write into the ClusterServiceVersion.
    pub edge: Edge,
    /// The `createdAt` annotation, RFC 3339; left out when not given, so that same input gives same bytes.
    pub created_at: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub struct Generated {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The files of the bundle by path, with `/` between; empty when there is an error among the findings.
    pub files: BTreeMap<String, String>,
    /// What there is to say about the input, and about the bundle if it does not validate.
    pub findings: Vec<Finding>,
}

/// Generates a bundle.
///
/// ```
/// use olmkit_bundle::generate::{Edge, Manifests, Overrides, Package, Request, generate};
/// use olmkit_bundle::source::Source;
///
/// let deployment = "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: op}\nspec: {template: {spec: {}}}\n";
/// let manifests = Manifests::parse(vec![Source::new("deploy.yaml", deployment)]);
/// let overrides = Overrides {
///     package: Some("op".parse().unwrap()),
///     version: Some("0.1.0".parse().unwrap()),
///     ..Overrides::default()
/// };
/// let package = Package::resolve(None, overrides, Default::default()).unwrap();
/// let request = Request { package: &package, manifests: &manifests, edge: Edge::default(), created_at: None };
/// let generated = generate(&request);
/// assert_eq!(generated.csv, "op.v0.1.0");
/// assert!(generated.files.contains_key("manifests/op.clusterserviceversion.yaml"));
/// ```
pub fn generate(request: &Request<'_>) -> Generated {
    let mut findings = Findings::new();
    let name = request.package.csv_name();
    let objects = request.manifests.classify(&mut findings);
    let workload = workload::derive(&objects, &mut findings);
    let rbac = rbac::derive(&objects, &workload.service_accounts);
    let api = api::derive(&objects, &mut findings);
    let csv = assemble::csv(request, &workload, &rbac, &api);
    let files = output::files(request.package, &csv, &objects, &rbac, &mut findings);
    if !findings.has_errors() {
        findings.extend(self_check(&files, &name));
    }
    let failed = findings.has_errors();
    let files = if failed { BTreeMap::new() } else { files };
    Generated { csv: name, files, findings: findings.into_sorted(request.package.name.as_str()) }
}

/// The errors that the rules find in what was generated: a bundle that does not validate is not written.
fn self_check(files: &BTreeMap<String, String>, name: &str) -> Vec<Finding> {
    let file = |(path, text): (&String, &String)| BundleFile {
        path: path.clone(),
        content: Content::Text(text.clone()),
    };
    let files = BundleFiles { name: name.to_owned(), files: files.iter().map(file).collect() };
    validate(&Bundle::parse(&files), &[OLM])
        .into_iter()
        .filter(|finding| finding.level == Level::Error)
        .collect()
}

#[cfg(test)]
mod tests;
