//! The older layout of a package, a directory of package manifests, to bundles.
//!
//! There a package is a directory for each version and one file that names the head of each channel. A version that is
//! not a head belongs to the channels whose heads lead to it by `spec.replaces` and `spec.skips`; operator-sdk's
//! `pkgman-to-bundle` puts all of those into the default channel.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::annotations;
use crate::csv;
use crate::finding::{Finding, Findings, Place};
use crate::generate::{HEADER, codes};
use crate::names::{ChannelName, PackageName};
use crate::parse::Object;
use crate::source::Source;
use crate::yaml::{self, Document, Node, steps, write};

/// A package in the older layout, as texts.
#[derive(Debug)]
pub struct PackageFiles<'a> {
    /// The file that names the channels.
    pub manifest: Source<'a>,
    /// The files of each version by the directory's name: the path in it and the text.
    pub versions: BTreeMap<String, Vec<(String, Source<'a>)>>,
}

/// A bundle that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The name of the version's directory.
    pub directory: String,
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The channels it is in.
    pub channels: Vec<String>,
    /// The files by path.
    pub files: BTreeMap<String, String>,
}

/// The bundles of a package.
#[derive(Debug)]
pub struct Conversion {
    /// The package's name, empty when it could not be read.
    pub package: String,
    /// The bundles in the order of their directories; none when a finding is an error.
    pub bundles: Vec<Converted>,
    /// What there is to say.
    pub findings: Vec<Finding>,
}

/// What the package's file says, checked.
struct Package {
    name: PackageName,
    /// The channels by their heads.
    heads: BTreeMap<String, Vec<ChannelName>>,
    default: ChannelName,
}

/// One version's directory, read.
struct Version<'v, 'a> {
    directory: &'v str,
    files: Vec<(&'v str, &'v Source<'a>, Vec<Document<'a>>)>,
    csv: String,
    /// What it replaces and skips.
    former: Vec<String>,
}

/// Makes a bundle of every version.
pub fn convert(files: &PackageFiles<'_>) -> Conversion {
    let mut findings = Findings::new();
    let package = package(&files.manifest, &mut findings);
    let versions: Vec<_> =
        files.versions.iter().filter_map(|(name, texts)| version(name, texts, &mut findings)).collect();
    let name = package.as_ref().map(|package| package.name.to_string()).unwrap_or_default();
    for (at, version) in versions.iter().enumerate() {
        if let Some(first) = versions[..at].iter().find(|first| first.csv == version.csv) {
            let message = format!(
                "`{}` is in two directories, `{}` and `{}`",
                version.csv, first.directory, version.directory
            );
            let finding = Finding::new(&codes::PACKAGE_MANIFEST_INVALID, message);
            findings.push(finding.at(Place::file(files.manifest.path())));
        }
    }
    let mut bundles = Vec::new();
    if let Some(package) = &package {
        for head in package.heads.keys().filter(|head| versions.iter().all(|version| version.csv != **head)) {
            let message = format!("`{head}` heads a channel, and no directory has it");
            let finding = Finding::new(&codes::PACKAGE_MANIFEST_INVALID, message);
            findings.push(finding.at(Place::file(files.manifest.path())));
        }
        let channels = memberships(package, &versions);
        for version in &versions {
            let own = channels.get(version.csv.as_str()).cloned().unwrap_or_default();
            bundles.push(bundle(package, version, own, &mut findings));
        }
    }
    if findings.has_errors() {
        bundles.clear();
    }
    Conversion { findings: findings.into_sorted(&name), package: name, bundles }
}

fn package(source: &Source<'_>, findings: &mut Findings) -> Option<Package> {
    let document = match yaml::first_document(source.text()) {
        Ok(document) => document,
        Err(error) => {
            let place = Place::new(source, error.span);
            findings.push(Finding::new(&codes::SYNTAX, error.message).at(place));
            return None;
        }
    };
    let root = &document.root;
    let mut fail = |message: String, path: &[yaml::Step<'_>]| {
        let place = Place::new(source, root.locate(path));
        findings.push(Finding::new(&codes::PACKAGE_MANIFEST_INVALID, message).at(place));
    };
    let text = |node: Option<&Node<'_>>| node.and_then(Node::to_text).unwrap_or_default().into_owned();
    let name = text(root.get("packageName"));
    let name =
        name.parse::<PackageName>().map_err(|error| fail(error.to_string(), steps!("packageName"))).ok();
    let listed = root.get("channels").and_then(Node::as_sequence).unwrap_or(&[]);
    if listed.is_empty() {
        fail("the package has no channels".into(), steps!("channels"));
    }
    let mut heads = BTreeMap::<String, Vec<ChannelName>>::new();
    let mut channels = Vec::new();
    for (at, channel) in listed.iter().enumerate() {
        match text(channel.get("name")).parse::<ChannelName>() {
            Ok(parsed) if channels.contains(&parsed) => {
                fail(format!("the channel `{parsed}` is listed twice"), steps!("channels", at, "name"));
            }
            Ok(parsed) => {
                heads.entry(text(channel.get("currentCSV"))).or_default().push(parsed.clone());
                channels.push(parsed);
            }
            Err(error) => fail(error.to_string(), steps!("channels", at, "name")),
        }
    }
    let default = text(root.get("defaultChannel"));
    let default = match (default.is_empty(), channels.as_slice()) {
        (true, [only]) => Some(only.clone()),
        (true, _) => {
            fail(
                "`defaultChannel` is missing, and there is more than one channel".into(),
                steps!("defaultChannel"),
            );
            None
        }
        (false, channels) => {
            let found = channels.iter().find(|channel| channel.as_str() == default).cloned();
            if found.is_none() {
                fail(
                    format!("the default channel `{default}` is not among the channels"),
                    steps!("defaultChannel"),
                );
            }
            found
        }
    };
    Some(Package { name: name?, heads, default: default? })
}

fn version<'v, 'a>(
    directory: &'v str,
    texts: &'v [(String, Source<'a>)],
    findings: &mut Findings,
) -> Option<Version<'v, 'a>> {
    let mut files = Vec::new();
    let mut sound = true;
    for (path, source) in texts {
        let mut documents = Vec::new();
        for document in yaml::documents(source.text()) {
            match document {
                Ok(document) if document.root.is_null() => {}
                Ok(document) => documents.push(document),
                Err(error) => {
                    sound = false;
                    findings
                        .push(Finding::new(&codes::SYNTAX, error.message).at(Place::new(source, error.span)));
                }
            }
        }
        files.push((path.as_str(), source, documents));
    }
    let objects = files.iter().flat_map(|(_, source, documents)| {
        documents.iter().map(move |document| Object { source, root: &document.root })
    });
    let csvs: Vec<_> = objects.filter(|object| object.kind() == csv::KIND).collect();
    let [csv] = csvs[..] else {
        if sound {
            let place = csvs.get(1).map(|csv| csv.place(steps!("kind")));
            let place = place.or_else(|| texts.first().map(|(_, source)| Place::file(source.path())));
            let message =
                format!("`{directory}` contains {} ClusterServiceVersions, expected one", csvs.len());
            let finding = Finding::new(&codes::PACKAGE_MANIFEST_INVALID, message);
            findings.push(match place {
                Some(place) => finding.at(place),
                None => finding,
            });
        }
        return None;
    };
    let skips = csv.root.at(steps!("spec", "skips")).and_then(Node::as_sequence).unwrap_or(&[]);
    let former = skips.iter().filter_map(Node::as_str).chain([csv.text(steps!("spec", "replaces"))]);
    let (name, former) = (csv.name().to_owned(), former.map(str::to_owned).collect());
    Some(Version { directory, csv: name, former, files })
}

/// The channels of every version that a head leads to.
fn memberships<'v>(
    package: &Package,
    versions: &'v [Version<'_, '_>],
) -> BTreeMap<&'v str, Vec<ChannelName>> {
    let by_name: BTreeMap<&str, &Version<'_, '_>> =
        versions.iter().map(|version| (version.csv.as_str(), version)).collect();
    let mut channels = BTreeMap::<&str, Vec<ChannelName>>::new();
    for (head, named) in &package.heads {
        let (mut seen, mut open) = (BTreeSet::new(), vec![head.as_str()]);
        while let Some(name) = open.pop() {
            if let Some((name, version)) = by_name.get_key_value(name).filter(|(name, _)| seen.insert(**name))
            {
                channels.entry(name).or_default().extend(named.iter().cloned());
                open.extend(version.former.iter().map(String::as_str));
            }
        }
    }
    for channels in channels.values_mut() {
        channels.sort();
    }
    channels
}

fn bundle(
    package: &Package,
    version: &Version<'_, '_>,
    mut channels: Vec<ChannelName>,
    findings: &mut Findings,
) -> Converted {
    if channels.is_empty() {
        let message = format!(
            "no channel leads to `{}`: it is put into the default channel `{}`",
            version.csv, package.default
        );
        let finding = Finding::new(&codes::VERSION_STRANDED, message).subject(version.csv.clone());
        let place = version.files.first().map(|(_, source, _)| Place::file(source.path()));
        findings.push(match place {
            Some(place) => finding.at(place),
            None => finding,
        });
        channels.push(package.default.clone());
    }
    let names: Vec<&str> = channels.iter().map(ChannelName::as_str).collect();
    let mut labels = annotations::registry_v1(package.name.as_str(), &names, Some(package.default.as_str()));
    let mut files = BTreeMap::new();
    for (path, source, documents) in &version.files {
        for (at, document) in documents.iter().enumerate() {
            let object = Object { source, root: &document.root };
            let name = path.rsplit('/').next().unwrap_or(path);
            let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "yaml"));
            let text = document.span.slice(source.text());
            let path = match (object.kind(), at) {
                ("Configuration", _)
                    if object.api_version().starts_with("scorecard.operatorframework.io/") =>
                {
                    labels.insert(
                        "operators.operatorframework.io.test.mediatype.v1".into(),
                        "scorecard+v1".into(),
                    );
                    labels.insert(
                        "operators.operatorframework.io.test.config.v1".into(),
                        "tests/scorecard/".into(),
                    );
                    "tests/scorecard/config.yaml".to_owned()
                }
                (_, 0) => format!("manifests/{name}"),
                // OLM reads the first document of a file alone.
                _ => format!("manifests/{stem}-{}.{extension}", at + 1),
            };
            // One document is copied as it stands, comments and all.
            let text = if documents.len() == 1 {
                source.text().to_owned()
            } else {
                text.trim_start_matches('\n').to_owned()
            };
            if files.insert(path.clone(), text).is_some() {
                let message = format!("two files of `{}` would both be `{path}`", version.directory);
                let finding = Finding::new(&codes::PACKAGE_MANIFEST_INVALID, message);
                findings.push(finding.at(Place::file(source.path())));
            }
        }
    }
    match write::to_string(&json!({ "annotations": labels })) {
        Ok(text) => drop(files.insert("metadata/annotations.yaml".into(), format!("{HEADER}{text}"))),
        Err(error) => findings.push(Finding::new(&codes::PACKAGE_MANIFEST_INVALID, error.to_string())),
    }
    Converted {
        directory: version.directory.to_owned(),
        csv: version.csv.clone(),
        channels: names.into_iter().map(str::to_owned).collect(),
        files,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(name: &str, replaces: &str) -> String {
        format!(
            "# by hand\nkind: ClusterServiceVersion\nmetadata: {{name: {name}}}\nspec: {{replaces: {replaces}}}\n"
        )
    }

    #[track_caller]
    fn check(manifest: &str, versions: &[(&str, &str)], expected: &str) {
        let versions = versions.iter().map(|(name, text)| {
            ((*name).to_owned(), vec![("csv.yaml".to_owned(), Source::new(format!("{name}/csv.yaml"), text))])
        });
        let files =
            PackageFiles { manifest: Source::new("p.package.yaml", manifest), versions: versions.collect() };
        let conversion = convert(&files);
        let bundles = conversion.bundles.iter().map(|bundle| {
            format!(
                "{} {} {}",
                bundle.directory,
                bundle.channels.join(","),
                bundle.files.keys().cloned().collect::<Vec<_>>().join(" ")
            )
        });
        let findings =
            conversion.findings.iter().map(|finding| format!("{}: {}", finding.level, finding.message));
        assert_eq!(findings.chain(bundles).collect::<Vec<_>>().join("\n"), expected);
    }

    #[test]
    fn versions_are_in_the_channels_whose_heads_lead_to_them() {
        let manifest = "packageName: p\ndefaultChannel: beta\nchannels: [{name: alpha, currentCSV: p.v2}, {name: beta, currentCSV: p.v1}]";
        let two = csv("p.v2", "p.v1") + "---\n# nothing\n---\nkind: ConfigMap\n";
        let stranded = csv("p.v9", "p.v8");
        check(
            manifest,
            &[("1", &csv("p.v1", "p.v0")), ("2", &two), ("9", &stranded)],
            "warning: no channel leads to `p.v9`: it is put into the default channel `beta`\n\
             1 alpha,beta manifests/csv.yaml metadata/annotations.yaml\n\
             2 alpha manifests/csv-2.yaml manifests/csv.yaml metadata/annotations.yaml\n\
             9 beta manifests/csv.yaml metadata/annotations.yaml",
        );
    }

    #[test]
    fn every_problem_at_once_and_no_bundle() {
        check(
            "packageName: P\nchannels: [{name: a, currentCSV: x}, {name: a, currentCSV: y}, {name: b c, currentCSV: y}]\ndefaultChannel: d",
            &[("1", "kind: ConfigMap\n"), ("2", "a: [\n")],
            "error: `1` contains 0 ClusterServiceVersions, expected one\n\
             error: unclosed bracket '['\n\
             error: `P` is not a package name: only lower case letters, digits and `-` are allowed\n\
             error: the channel `a` is listed twice\n\
             error: `b c` is not a channel name: white space, commas and control characters are not allowed\n\
             error: the default channel `d` is not among the channels",
        );
        check(
            "packageName: p\nchannels: [{name: a, currentCSV: p.v2}]",
            &[("1", &csv("p.v1", ""))],
            "warning: no channel leads to `p.v1`: it is put into the default channel `a`\nerror: `p.v2` heads a channel, and no directory has it",
        );
    }
}
