//! `bundle diff --catalog`: every upgrade that OLM makes in a channel, compared like any two bundles.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use olmkit_bundle::annotations::PACKAGE;
use olmkit_bundle::diff::{Beside, bundles_with};
use olmkit_bundle::finding::Levels;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::{Bundle, Texts};
use olmkit_bundle::version::Version;
use olmkit_catalog::fbc::property::BUNDLE_OBJECT;
use olmkit_catalog::fbc::{Bundle as Blob, Catalog};
use olmkit_catalog::path::{PathError, Query, Rules, paths};
use serde_json::json;

use super::super::absent::Within;
use super::Upgrade;
use super::{Compared, cannot_compare, names, policy};
use crate::actions::results::Checked;
use crate::exit::{Exit, Failure};
use crate::image::Access;
use crate::input::Input;

/// Which edges to compare, and how.
#[derive(Debug)]
pub struct EdgesRequest {
    /// The catalog.
    pub catalog: Input,
    /// Filter by package.
    pub package: Option<String>,
    /// In this channel only.
    pub channel: Option<String>,
    /// Directories of bundles, which are not pulled then.
    pub bundles: Vec<PathBuf>,
    /// The package file, or a Cargo.toml, that states the policy.
    pub package_file: Option<PathBuf>,
    /// What findings weigh.
    pub levels: Levels,
}

/// Compares both ends of every edge that OLM takes.
///
/// # Errors
/// When the catalog or a bundle cannot be read, or there is no such channel.
pub fn edges(request: &EdgesRequest, access: &Access) -> Result<Compared, Failure> {
    let policy = request.package_file.as_deref().map(policy::read).transpose()?;
    let files = request.catalog.catalog(access)?;
    let catalog = Catalog::parse(&files);
    let (package, channel) = (request.package.as_deref(), request.channel.as_deref());
    let query = Query { package, channel, rules: Rules::V0, ..Query::default() };
    let found = paths(&catalog, &query).map_err(|error| not_found(error, request, &catalog))?;
    let hop = |path: olmkit_catalog::path::UpgradePath<'_>| {
        Some((path.package.to_owned(), path.from.to_owned(), (*path.hops.first()?).to_owned()))
    };
    let mut blobs: HashMap<(&str, &str), &Blob<'_>> = HashMap::new();
    for blob in &catalog.bundles {
        blobs.entry((blob.package.as_str(), blob.name.as_str())).or_insert(blob);
    }
    let edges: BTreeSet<(String, String, String)> = found.iter().filter_map(hop).collect();
    let local = local(&request.bundles, access)?;
    let mut loaded: BTreeMap<(&str, &str), BundleFiles> = BTreeMap::new();
    for (package, from, to) in &edges {
        for name in [from, to] {
            if loaded.contains_key(&(package.as_str(), name.as_str())) {
                continue;
            }
            let files = match (local.get(name), blobs.get(&(package.as_str(), name.as_str()))) {
                (Some(files), _) => files.clone(),
                (None, Some(blob)) => read(blob, access)?,
                // A bundle that is skipped need not be in the catalog.
                (None, None) => continue,
            };
            loaded.insert((package, name), files);
        }
    }
    let mut texts = Texts::default();
    let parsed: BTreeMap<_, _> =
        loaded.iter().map(|(key, files)| (*key, Bundle::parse_sharing(files, &mut texts))).collect();
    let mut answer = Checked::new("upgrade");
    let mut upgrades = Vec::new();
    for (package, from, to) in &edges {
        let old = parsed.get(&(package.as_str(), from.as_str()));
        let new = parsed.get(&(package.as_str(), to.as_str()));
        let (Some(old), Some(new)) = (old, new) else { continue };
        let of_package = parsed.iter().filter(|((of, _), _)| of == package);
        let history: Vec<_> = of_package.map(|(_, bundle)| bundle).collect();
        let beside = Beside { policy: policy.as_ref(), history: &history, ..Beside::default() };
        let mut findings = bundles_with(old, new, &beside).map_err(cannot_compare)?.findings;
        let edge = format!("{from} -> {to}");
        for finding in &mut findings {
            finding.input.clone_from(&edge);
        }
        let (_, versions) = names(old, new);
        upgrades.push(Upgrade { input: edge.clone(), package: package.clone(), versions });
        answer.inputs.push(edge);
        answer.findings.extend(request.levels.apply(findings));
    }
    let number = |text: &str| Version::parse(text).ok();
    let numbers = |one: &Upgrade| one.versions.as_ref().map(|(from, to)| (number(to), number(from)));
    upgrades.sort_by(|a, b| a.package.cmp(&b.package).then_with(|| numbers(b).cmp(&numbers(a))));
    Ok(Compared { answer, upgrades })
}

/// A filter that fits nothing is a slip of the command line; anything else is wrong with the catalog.
fn not_found(error: PathError, request: &EdgesRequest, catalog: &Catalog<'_>) -> Failure {
    let is_slip = matches!(error, PathError::Package { .. } | PathError::Channel { .. });
    let within = Within { catalog, input: &request.catalog, package: request.package.as_deref() };
    let failure = within.failure(error);
    if is_slip { Failure { exit: Exit::Usage, ..failure } } else { failure }
}

/// Bundles in directories, by the names of their ClusterServiceVersions.
fn local(directories: &[PathBuf], access: &Access) -> Result<BTreeMap<String, BundleFiles>, Failure> {
    let mut found: BTreeMap<String, (&PathBuf, BundleFiles)> = BTreeMap::new();
    for directory in directories {
        let files = Input::Disk(directory.clone()).bundle(access)?;
        let name = Bundle::parse(&files).csv().map(|csv| csv.typed.name().to_owned());
        let Some(name) = name else {
            let error = format!("`{}` has no ClusterServiceVersion that can be read", directory.display());
            return Err(Failure::incomplete(error).help("give directories of bundles"));
        };
        if let Some((other, _)) = found.get(&name) {
            let (first, second) = (other.display(), directory.display());
            let error = format!("`{first}` and `{second}` are both bundles of `{name}`");
            return Err(Failure::usage(error).help("pass one of them to --bundles"));
        }
        found.insert(name, (directory, files));
    }
    Ok(found.into_iter().map(|(name, (_, files))| (name, files)).collect())
}

/// A bundle of a catalog: what the catalog itself has of it, else its image.
fn read(blob: &Blob<'_>, access: &Access) -> Result<BundleFiles, Failure> {
    let name = blob.name.as_str();
    let objects = blob.properties.iter().filter(|property| property.kind.as_str() == BUNDLE_OBJECT);
    let mut files = Vec::new();
    for (at, property) in objects.enumerate() {
        let data = property.value.as_ref().map(|value| value.to_json()["data"].clone()).unwrap_or_default();
        let bytes = BASE64.decode(data.as_str().unwrap_or_default()).map_err(|error| {
            Failure::incomplete(format!("the manifests of `{name}` in the catalog cannot be read: {error}"))
        })?;
        files.push(BundleFile {
            path: format!("manifests/{at:03}.json"),
            content: Content::from_bytes(bytes),
        });
    }
    if files.is_empty() {
        let place = format!("docker://{}", blob.image.as_str()).parse();
        let place = place
            .map_err(|error| Failure::incomplete(error).help(format!("pass --bundles with `{name}`")))?;
        return Input::Image(place).bundle(access);
    }
    let annotations = json!({"annotations": {PACKAGE: blob.package.as_str()}}).to_string();
    files.push(BundleFile { path: "metadata/annotations.yaml".into(), content: Content::Text(annotations) });
    Ok(BundleFiles { name: name.to_owned(), files })
}
