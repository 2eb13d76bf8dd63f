//! `bundle init`: looks at a directory and writes a package file for what is there.

mod makefile;
mod sources;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use olmkit_bundle::annotations::{self, is_generated};
use olmkit_bundle::crd::Crd;
use olmkit_bundle::generate::init::{self, Found};
use olmkit_bundle::generate::package_file::FILE_NAME as PACKAGE_FILE;
use olmkit_bundle::generate::{Base, CargoFile, Manifests};
use olmkit_bundle::kinds;
use olmkit_bundle::names::{ChannelName, PackageName};
use olmkit_bundle::parse::Object;
use olmkit_bundle::source::Source;
use olmkit_bundle::version::Version;
use olmkit_bundle::yaml;
use serde_json::Value as Json;

use super::former;
use super::generate::workspace;
use super::output::{self, Output};
use crate::exit::Failure;
use crate::files::{self, OutputDir};
use crate::shell::argument;

/// Where to look, and what to start from.
#[derive(Debug)]
pub struct Request {
    /// The directory of the operator.
    pub directory: PathBuf,
    /// A ClusterServiceVersion whose content becomes the package file.
    pub from_csv: Option<PathBuf>,
    /// The name of the package file, in the directory.
    pub package_file: String,
}

/// Directories whose YAML is not the operator's: what tools make and fetch, and tests.
const NOT_OURS: [&str; 8] =
    ["target", "node_modules", "vendor", "bundle", "e2e", "test", "tests", "testdata"];
/// More files than this are not looked at.
const MOST_FILES: usize = 10_000;

/// Where `bundle generate` puts the bundle, unless it is told otherwise.
const DEFAULT_OUTPUT: &str = "bundle";
/// More files than this are not listed.
const LISTED: usize = 3;

/// Files of other tools.
const FOREIGN: [&str; 4] = ["Chart.yaml", "kustomization.yaml", "kustomization.yml", "values.yaml"];
/// Directories with examples.
const SAMPLES: [&str; 2] = ["samples", "examples"];
/// Where operator-sdk's projects keep samples.
const STOCK_SAMPLES: &str = "config/samples";
/// Directories whose samples are for something else where there are others.
const TOOLS_AND_TEXTS: [&str; 6] = ["doc", "docs", "hack", "scripts", "site", "website"];
/// With more files than this they are the snippets of a handbook, with values that nobody can apply.
const MOST_TEXTS: usize = 10;
/// What operator-sdk's projects make their bundle of.
const STOCK_MANIFESTS: &str = "config/manifests";
/// The same where there are several of them, each with what another platform needs besides.
const STOCK_BASE: &str = "config/manifests/base";
/// Parts of the paths of kustomizations that do not make the whole operator.
const PARTS: [&str; 8] = ["samples", "crd", "rbac", "scorecard", "manifests", "examples", "test", "e2e"];
/// Names of kustomizations that others add something with; they come last where there is another.
const ADDITIONS: [&str; 6] =
    ["certmanager", "cert-manager", "components", "network-policy", "prometheus", "webhook"];
/// How the name of a base's file ends.
const BASE_ENDING: &str = ".clusterserviceversion.yaml";

/// Where the manifests come from, and what is seen besides.
struct Chosen {
    key: &'static str,
    paths: Vec<String>,
    /// Manifests with the CRDs that a chart lacks.
    crds: Vec<String>,
    /// Other sources, as the package file would name them.
    others: Vec<String>,
}

/// What the YAML files of a directory are.
#[derive(Default)]
struct Survey {
    manifests: BTreeSet<String>,
    /// Manifests that repeat objects of others.
    again: BTreeSet<String>,
    samples: BTreeSet<String>,
    /// Samples elsewhere than where the project keeps them.
    more_samples: Vec<String>,
    kustomize: BTreeSet<String>,
    /// Directories with a kustomization, also those that do not make the whole operator.
    kustomized: BTreeSet<String>,
    /// Those that make the CRDs or the roles of it.
    parts: BTreeSet<String>,
    /// Those that name no other directory.
    alone: BTreeSet<String>,
    /// What the project makes its bundle of: `config/manifests` or its base, if one of the directories that it builds is the operator's.
    stock_at: Option<String>,
    /// The directories that it builds.
    stock: BTreeSet<String>,
    helm: BTreeSet<String>,
    /// Charts with CRDs.
    helm_with_crds: BTreeSet<String>,
    /// Charts with something that runs.
    helm_with_workload: BTreeSet<String>,
    /// Charts among examples.
    helm_samples: BTreeSet<String>,
    /// Files with CRDs, and with something that runs, outside of charts.
    with_crds: BTreeSet<String>,
    with_workload: BTreeSet<String>,
    kinds: BTreeSet<String>,
    base: Option<String>,
    /// The packages of ClusterServiceVersions that stand among other manifests.
    packages: BTreeSet<String>,
    /// ClusterServiceVersions that are not the base.
    csvs: Vec<String>,
    /// Directories of bundles.
    bundles: Vec<String>,
    /// How many files were not looked at.
    unseen: usize,
    /// Files that are not YAML, and that no directory among the manifests holds.
    broken: Vec<String>,
}

/// A package file and the files that it names.
#[derive(Debug)]
pub struct Initial {
    /// The directory they are in.
    pub directory: PathBuf,
    /// Their names.
    pub files: Vec<String>,
    /// Other sources of manifests that were seen, as keys of the package file; and files that are not YAML.
    pub unused: Vec<String>,
    /// What the package file still lacks.
    pub missing: Vec<String>,
    /// What to write into the package file before the next command can work.
    pub fill_in: Option<String>,
    /// The next command.
    pub next: String,
}

/// Writes the package file, and the files that it takes out of a ClusterServiceVersion. Nothing is overwritten.
///
/// # Errors
/// When a file is there already, cannot be read, or cannot be written.
pub fn run(request: Request) -> Result<Initial, Failure> {
    let directory = &request.directory;
    let name = Path::new(&request.package_file);
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if name.file_name().is_none() || !is_inside {
        return Err(Failure::usage(format!(
            "`{}` is not the name of a file in `{}`",
            name.display(),
            directory.display()
        ))
        .help("pass a name relative to the operator's directory, such as `--package-file olmkit.yaml`"));
    }
    check_is_yaml(name)?;
    if !directory.is_dir() {
        let error = format!("there is no directory `{}`", directory.display());
        return Err(
            Failure::incomplete(error).help("name the directory of the operator, or omit it for this one")
        );
    }
    let cargo_path = directory.join("Cargo.toml");
    let cargo_text = if cargo_path.is_file() { Some(files::read_text(&cargo_path)?) } else { None };
    let root_text = match &cargo_text {
        Some(text) => workspace::root_of(&cargo_path, text)?,
        None => None,
    };
    let mut cargo = cargo_text.as_deref().and_then(|text| workspace::parse(&cargo_path, text));
    if let (Some(own), Some((path, text))) = (&mut cargo, &root_text)
        && let Some(root) = workspace::parse(path, text)
    {
        own.set_workspace(root);
    }
    let operators = match (&cargo, &cargo_text) {
        (Some(root), Some(text)) if !root.has_package() => operators(directory, root, text),
        _ => Vec::new(),
    };
    let mut cargo = cargo.filter(CargoFile::has_package);
    let project = read_yaml(&directory.join("PROJECT"));
    let survey = Survey::of(directory, package_name(directory, project.as_ref(), None).as_deref())?;
    let from_csv = request.from_csv.as_deref();
    let base_path =
        from_csv.map(Path::to_owned).or_else(|| survey.base.as_ref().map(|path| directory.join(path)));
    let base_text = base_path.as_deref().map(files::read_text).transpose()?;
    let source = base_path.as_deref().zip(base_text.as_deref());
    let source = source.map(|(path, text)| Source::new(path.display().to_string(), text));
    let manifests = Manifests::parse(source.into_iter().collect());
    let csv = match base_path.is_some().then(|| Base::of(&manifests)).transpose() {
        Ok(csv) => csv,
        Err(finding) => {
            return Err(Failure::failed(finding.message.clone()).at(finding.place.clone()));
        }
    };
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    let chosen = survey.choose();
    check_is_one(&chosen, &operators, &request.package_file)?;
    let paths = |key| if chosen.key == key { chosen.paths.clone() } else { Vec::new() };
    let chart = paths("helm").first().and_then(|path| read_yaml(&directory.join(path).join("Chart.yaml")));
    let makefile = files::read_text(&directory.join("Makefile")).unwrap_or_default();
    let place = Beside::of(name);
    // `bundle generate` reads the Cargo.toml that stands beside the package file, and no other.
    let elsewhere = cargo.take_if(|_| !place.above.is_empty());
    let elsewhere = elsewhere.as_ref().and_then(|cargo| OperatorCrate::of(".".to_owned(), cargo));
    let elsewhere = match operators.as_slice() {
        [only] => Some(only),
        _ => elsewhere.as_ref(),
    };
    let of_crate = cargo.as_ref().and_then(CargoFile::name_and_version);
    let former = Former::of(&former_bundles(directory, from_csv, &survey));
    let base = survey.base.clone().filter(|_| from_csv.is_none());
    let has_csv_in_manifests = base.as_ref().is_some_and(|base| {
        chosen.key == "kustomize" && chosen.paths.iter().any(|path| is_patched(directory, path, base))
    });
    let makefile_channels = makefile::channels(&makefile);
    let found = Found {
        cargo: cargo.as_ref(),
        csv: csv.as_ref(),
        base: base.filter(|_| !has_csv_in_manifests).map(|path| place.path(&path)),
        has_csv_in_manifests,
        annotated_package: former.package,
        bundle_annotations: former.annotations,
        package: match (elsewhere, &of_crate) {
            (Some(only), _) => valid_name(&only.name),
            // What is no package name is not taken from Cargo.toml.
            (_, Some((name, _))) => valid_name(name).filter(|valid| valid != name),
            _ => survey.package().or_else(|| package_name(directory, project.as_ref(), chart.as_ref())),
        },
        version: match (elsewhere, &of_crate) {
            (Some(only), _) => only.version.clone(),
            (_, Some((_, Some(_)))) => None,
            _ => version(chart.as_ref(), &makefile),
        },
        fields: elsewhere.map(|only| only.fields.clone()).unwrap_or_default(),
        default_channel: match makefile_channels.is_empty() {
            true => former.default_channel,
            false => makefile::default_channel(&makefile),
        },
        channels: if makefile_channels.is_empty() { former.channels } else { makefile_channels },
        chart,
        manifests: place.paths(if chosen.key == "manifests" { &chosen.paths } else { &chosen.crds }),
        samples: place.paths(&list(&survey.samples)),
        kustomize: place.paths(&paths("kustomize")),
        helm: place.paths(&paths("helm")),
        kinds: list(&survey.kinds),
    };
    let has_version = found.version.is_some() || of_crate.is_some_and(|(_, version)| version.is_some());
    let has_name = found.package.is_some() || cargo.is_some() || found.csv.is_some();
    let initial = init::package_file(&found);
    let mut missing = Vec::new();
    let has_sources = !chosen.paths.is_empty();
    if !has_sources {
        missing.push("`manifests`, `kustomize` or `helm`: none of them was found".to_owned());
    }
    if !has_name {
        missing.push("`package`: the directory has no name that a package can have".to_owned());
    }
    let mut unused = chosen.others;
    if operators.len() > 1 {
        unused.extend(operators.iter().map(|own| format!("crate `{}` in {}", own.name, own.path)));
    }
    let path = directory.join(&request.package_file).display().to_string();
    let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
    let fill_in = (!has_sources).then(|| {
        format!("name the operator's manifests in `{path}`, under `manifests`, `kustomize` or `helm`")
    });
    let mut next = "olmkit bundle generate".to_owned();
    if path != PACKAGE_FILE {
        next += &format!(" --package-file {}", argument(&path));
    }
    if !has_name {
        next += " --package my-operator";
    }
    if !has_version {
        let (_, version) = name_of(directory);
        let of_csv = csv.as_ref().and_then(Base::operator_version);
        next += &format!(" --version {}", argument(version.as_deref().or(of_csv).unwrap_or("0.1.0")));
    }
    let of_crate = || found.cargo.and_then(CargoFile::name_and_version).map(|(name, _)| name);
    // A bundle next to another package file was made from that file.
    let is_first = !directory.join(PACKAGE_FILE).exists();
    let package = found.annotated_package.clone().or_else(|| found.package.clone());
    let package = package.or_else(of_crate).filter(|_| is_first);
    let bundle = Path::new(DEFAULT_OUTPUT);
    if let Some((other, beside)) = package.and_then(|name| Output::of(bundle).beside_other(&name)) {
        unused.push(format!("{DEFAULT_OUTPUT} (a bundle of the package `{other}`)"));
        next += &format!(" --output-dir {}", argument(beside.display()));
    } else if output::is_bundle_of_others(bundle) {
        unused.push(format!("{DEFAULT_OUTPUT} (a bundle by another tool)"));
        next += &format!(" --output-dir {DEFAULT_OUTPUT}-olmkit");
    }
    let package_file = BTreeMap::from([(request.package_file, Some(initial.text.into_bytes()))]);
    let others =
        initial.files.into_iter().map(|(name, bytes)| (format!("{}{name}", place.below), Some(bytes)));
    let others: BTreeMap<_, _> = others.collect();
    let mut output = OutputDir::open(directory)?;
    for (name, bytes) in package_file.iter().chain(&others) {
        let path = directory.join(name);
        // A run that was interrupted wrote the others, and not the package file.
        let is_written = !package_file.contains_key(name) && files::read(&path).ok() == *bytes;
        if path.exists() && !is_written {
            let help = match package_file.contains_key(name) {
                true => "edit it, or write another file with `--package-file NAME`",
                false => {
                    "move it away and run the command again, which writes the contents of the ClusterServiceVersion there"
                }
            };
            return Err(Failure::failed(files::FileError::Exists { path }).help(help));
        }
    }
    output.write(&others)?;
    output.write(&package_file)?;
    let names: BTreeSet<_> = package_file.into_keys().chain(others.into_keys()).collect();
    let files = names.into_iter().collect();
    Ok(Initial { directory: request.directory, files, unused, missing, fill_in, next })
}

/// The metadata of earlier bundles, where they agree.
#[derive(Default)]
struct Former {
    package: Option<String>,
    channels: Vec<String>,
    default_channel: Option<String>,
    annotations: BTreeMap<String, String>,
}

impl Former {
    fn of(bundles: &[PathBuf]) -> Self {
        let all: Vec<_> = bundles
            .iter()
            .map(|bundle| {
                let mut all = former::annotations(bundle);
                let mut labels = former::labels(bundle);
                labels.retain(|key, _| !is_generated(key));
                labels.append(&mut all);
                labels
            })
            .collect();
        let Some(first) = all.first() else { return Self::default() };
        let agreed =
            |key: &str| first.get(key).filter(|value| all.iter().all(|one| one.get(key) == Some(value)));
        let channels = agreed(annotations::CHANNELS).map_or("", String::as_str).split(',').map(str::trim);
        let is_channel = |name: &&str| name.parse::<ChannelName>().is_ok();
        let further = first.keys().filter(|key| !is_generated(key));
        Self {
            package: agreed(annotations::PACKAGE).and_then(|name| valid_name(name)),
            channels: channels.filter(is_channel).map(str::to_owned).collect(),
            default_channel: agreed(annotations::DEFAULT_CHANNEL)
                .filter(|name| is_channel(&name.as_str()))
                .cloned(),
            annotations: further.filter_map(|key| Some((key.clone(), agreed(key)?.clone()))).collect(),
        }
    }
}

/// The bundles whose annotations count: that of the ClusterServiceVersion to start from, else those in the directory.
fn former_bundles(directory: &Path, from_csv: Option<&Path>, survey: &Survey) -> Vec<PathBuf> {
    match from_csv {
        // `BUNDLE/manifests/CSV`
        Some(csv) => csv.parent().and_then(Path::parent).into_iter().map(Path::to_owned).collect(),
        None => {
            let is_own =
                |path: &&String| !path.split('/').any(|part| part != DEFAULT_OUTPUT && is_not_ours(part));
            survey.bundles.iter().filter(is_own).map(|path| directory.join(path)).collect()
        }
    }
}

/// Whether a kustomization takes a file as it is and changes it, so that what it makes says more than the file.
fn is_patched(directory: &Path, kustomization: &str, file: &str) -> bool {
    const PLAIN: [&str; 3] = ["apiVersion", "kind", "resources"];
    let Some(below) = Path::new(file).strip_prefix(kustomization).ok().and_then(Path::to_str) else {
        return false;
    };
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let found = names.iter().find_map(|name| read_yaml(&directory.join(kustomization).join(name)));
    found.is_some_and(|found| {
        let mut resources = found["resources"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let takes = resources.any(|path| path.trim_start_matches("./") == below);
        let mut keys = found.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        takes && keys.any(|key| !PLAIN.contains(&key))
    })
}

/// Where the package file stands below the operator's directory: what it names is relative to it.
struct Beside {
    /// The directory, with a `/` at its end; empty for the operator's own.
    below: String,
    /// The way back.
    above: String,
}

impl Beside {
    fn of(package_file: &Path) -> Self {
        let parts = package_file.parent().into_iter().flat_map(Path::components);
        let parts: Vec<_> = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
        let below = parts.iter().map(|part| format!("{}/", part.as_os_str().to_string_lossy())).collect();
        Self { below, above: "../".repeat(parts.len()) }
    }

    fn path(&self, path: &str) -> String {
        let whole = format!("{}{path}", self.above);
        if self.above.is_empty() { whole } else { whole.trim_end_matches("/.").to_owned() }
    }

    fn paths(&self, paths: &[String]) -> Vec<String> {
        paths.iter().map(|path| self.path(path)).collect()
    }
}

/// Refuses manifests that several crates of a workspace keep, each its own: together they would be one operator.
fn check_is_one(chosen: &Chosen, operators: &[OperatorCrate], package_file: &str) -> Result<(), Failure> {
    let holds = |own: &&OperatorCrate| {
        chosen.paths.iter().any(|path| *path == own.path || sources::is_below(path, &own.path))
    };
    let all: Vec<_> = operators.iter().filter(holds).map(|own| format!("`{}`", own.path)).collect();
    let [first @ .., last] = all.as_slice() else { return Ok(()) };
    if first.is_empty() {
        return Ok(());
    }
    let message =
        format!("the workspace has {} operators with manifests of their own: {}", all.len(), all.join(", "));
    Err(Failure::failed(message).help(format!(
        "run `olmkit bundle init` in the directory of one, {} or {last}; if they are one package, write `{}: [{}]` into `{package_file}`",
        first.join(", "),
        chosen.key,
        chosen.paths.join(", ")
    )))
}

/// Refuses a name that another tool reads, or that does not look like YAML.
fn check_is_yaml(name: &Path) -> Result<(), Failure> {
    let file = name.file_name().unwrap_or_default().to_string_lossy();
    let is_yaml = name.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    if is_yaml && !FOREIGN.contains(&file.as_ref()) {
        return Ok(());
    }
    let failure = Failure::usage(format!(
        "`{}` cannot be the package file: it must be a separate YAML file",
        name.display()
    ));
    Err(failure.help(match file.as_ref() {
        "Cargo.toml" => "pass a name such as `olmkit.yaml`; in Cargo.toml write the same keys under `[package.metadata.olmkit]`",
        _ => "pass a name such as `olmkit.yaml`",
    }))
}

/// A crate of a workspace that is an operator.
struct OperatorCrate {
    path: String,
    name: String,
    version: Option<String>,
    /// What else it says, as keys of the package file.
    fields: Vec<(&'static str, String)>,
}

impl OperatorCrate {
    fn of(path: String, cargo: &CargoFile<'_>) -> Option<Self> {
        let (name, version) = cargo.name_and_version()?;
        Some(Self { path, name, version, fields: cargo.fields() })
    }
}

/// The operators among the members of a workspace: the programs that use kube.
fn operators(directory: &Path, root: &CargoFile<'_>, root_text: &str) -> Vec<OperatorCrate> {
    let mut paths = Vec::new();
    for member in root.members() {
        let (parent, pattern) = member.rsplit_once('/').map_or(("", member), |(parent, name)| (parent, name));
        let Some((start, end)) = pattern.split_once('*') else {
            paths.push(member.to_owned());
            continue;
        };
        let entries = std::fs::read_dir(directory.join(parent)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let fits = |name: &String| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        let path = |name: String| if parent.is_empty() { name } else { format!("{parent}/{name}") };
        paths.extend(names.filter(fits).map(path));
    }
    let excluded = root.excluded();
    paths.retain(|path| !excluded.contains(&path.as_str()));
    paths.sort();
    paths.dedup();
    let operator = |path: String| {
        let file = directory.join(&path).join("Cargo.toml");
        let text = files::read_text(&file).ok()?;
        let mut own = CargoFile::parse(Source::new(file.display().to_string(), &text)).ok()?;
        own.set_workspace(CargoFile::parse(Source::new("Cargo.toml", root_text)).ok()?);
        let is_there = |file: &str| directory.join(&path).join(file).exists();
        let is_program = is_there("src/main.rs") || is_there("src/bin") || own.names_programs();
        if is_program && own.depends_on("kube") { OperatorCrate::of(path, &own) } else { None }
    };
    paths.into_iter().filter_map(operator).collect()
}

/// A YAML file as a value, if it is there and can be read.
fn read_yaml(path: &Path) -> Option<Json> {
    let text = files::read_text(path).ok()?;
    Some(yaml::first_document(&text).ok()?.root.to_json())
}

/// The name of the package: that of the project or the chart, else of the directory.
fn package_name(directory: &Path, project: Option<&Json>, chart: Option<&Json>) -> Option<String> {
    let text = |value: Option<&Json>, key: &str| Some(value?.get(key)?.as_str()?.to_owned());
    let names = [text(project, "projectName"), text(chart, "name"), name_of(directory).0];
    names.into_iter().flatten().find_map(|name| valid_name(&name))
}

/// What a directory is called. Of one that is named as a version, the directory above and the version.
fn name_of(directory: &Path) -> (Option<String>, Option<String>) {
    // `..` has no name before it is known where it leads.
    let leads_up = directory.components().any(|part| part == Component::ParentDir);
    let path = if leads_up { directory.canonicalize() } else { std::path::absolute(directory) };
    let Ok(path) = path else { return (None, None) };
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let version = name(&path).map(|name| name.trim_start_matches('v').to_owned());
    match version.filter(|text| text.parse::<Version>().is_ok()) {
        Some(version) => (path.parent().and_then(name), Some(version)),
        None => (name(&path), None),
    }
}

/// A package name as near to a text as there is: in lower case, with `-` for what is not allowed.
fn valid_name(text: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let parts: String = text.chars().map(plain).collect();
    let parts: Vec<_> = parts.split('-').filter(|part| !part.is_empty()).collect();
    Some(parts.join("-")).filter(|name| name.parse::<PackageName>().is_ok())
}

/// The version that the chart or the Makefile names.
fn version(chart: Option<&Json>, makefile: &str) -> Option<String> {
    let of_chart = ["appVersion", "version"].into_iter().filter_map(|key| chart?.get(key)?.as_str());
    let of_makefile = makefile::variable(makefile, "VERSION");
    let mut versions = of_chart.chain(of_makefile).map(|text| text.trim_start_matches('v').to_owned());
    versions.find(|text| text.parse::<Version>().is_ok())
}

impl Survey {
    /// The package whose ClusterServiceVersion stands among the manifests: it is the base of that package alone.
    fn package(&self) -> Option<String> {
        let only = self.packages.first().filter(|_| self.packages.len() == 1)?;
        only.parse::<PackageName>().is_ok().then(|| only.clone())
    }

    /// One source of manifests, never two of the same operator: what the project makes its bundle of today, `config/default`, a
    /// chart, another kustomization, or else the files themselves.
    fn choose(&self) -> Chosen {
        let default = "config/default".to_owned();
        let (key, paths) = if let Some(stock) = &self.stock_at {
            ("kustomize", vec![stock.clone()])
        } else if self.kustomize.contains(&default) {
            ("kustomize", vec![default])
        } else if !self.helm.is_empty() && !self.is_manifests_before_chart() {
            ("helm", self.charts())
        } else if let Some(path) = self.kustomize.iter().min_by_key(|path| likelihood(path)) {
            ("kustomize", vec![path.clone()])
        } else {
            ("manifests", self.manifests.iter().cloned().collect())
        };
        // What is beside a kustomization is mostly a part of what it builds.
        let root = |path: &str| path.split('/').next().unwrap_or("").to_owned();
        let is_part = |path: &str| {
            let builds = |own: &String| !self.alone.contains(own) && (own == "." || root(own) == root(path));
            key == "kustomize" && paths.iter().any(builds)
        };
        // Where no kustomization is chosen, their files are read.
        let parts = if key == "kustomize" { self.parts.clone() } else { BTreeSet::new() };
        let is_without_crds = key == "helm" && paths.iter().all(|path| !self.helm_with_crds.contains(path));
        let crds: Vec<String> = match is_without_crds {
            true => self.manifests.iter().filter(|path| holds(&self.with_crds, path)).cloned().collect(),
            false => Vec::new(),
        };
        let mut others = Vec::new();
        for (of, set) in [
            ("kustomize", &self.kustomize),
            ("kustomize", &parts),
            ("helm", &self.helm),
            ("manifests", &self.manifests),
            ("manifests", &self.again),
        ] {
            let is_used = |path: &String| paths.contains(path) || of == "manifests" && crds.contains(path);
            let unused = set.iter().filter(|path| !is_used(path) && (of == "helm" || !is_part(path)));
            others.extend(unused.map(|path| format!("{of}: [{path}]")));
        }
        if let Some(more) = listed(&self.more_samples) {
            others.push(format!("samples: [{more}]"));
        }
        others.extend(self.csvs.iter().map(|path| format!("base: {path}")));
        if paths.is_empty() {
            others.extend(self.bundles.iter().map(|path| format!("{path} (a bundle)")));
        }
        if let Some(unread) = listed(&self.broken).filter(|_| key == "manifests") {
            others.push(format!("{unread} (not YAML)"));
        }
        others.extend(
            (self.unseen > 0).then(|| format!("{} more files: only {MOST_FILES} were read", self.unseen)),
        );
        Chosen { key, paths, crds, others }
    }

    /// The chart that makes the operator, and those with its CRDs where they have charts of their own.
    fn charts(&self) -> Vec<String> {
        let rank = |path: &&String| (!self.helm_with_workload.contains(*path), path.matches('/').count());
        let mut charts: Vec<_> = self.helm.iter().min_by_key(rank).cloned().into_iter().collect();
        if charts.iter().all(|chart| !self.helm_with_crds.contains(chart)) {
            let alone = self.helm_with_crds.difference(&self.helm_with_workload);
            charts.extend(alone.cloned());
        }
        charts
    }

    /// Whether manifests make the operator, and a chart beside them does not: CRDs are what makes an operator.
    fn is_manifests_before_chart(&self) -> bool {
        let has = |set: &BTreeSet<String>| self.manifests.iter().any(|path| holds(set, path));
        self.helm_with_crds.is_empty() && has(&self.with_crds) && has(&self.with_workload)
    }

    /// `package` is what the package is probably called.
    fn of(directory: &Path, package: Option<&str>) -> Result<Self, Failure> {
        let list = |source| files::FileError::List { path: directory.to_owned(), source };
        let name = |path: &Path| path.strip_prefix(directory).unwrap_or(path).to_string_lossy().into_owned();
        let bundles = RefCell::new(Vec::new());
        let is_bundle = |path: &Path| {
            let is_one = output::is_of_bundle(path);
            bundles.borrow_mut().extend((is_one && output::is_bundle(path)).then(|| name(path)));
            is_one
        };
        let all = files::below(directory, is_bundle).map_err(list)?;
        let is_ours = |path: &&PathBuf| !name(path).split('/').any(is_not_ours);
        let (ours, others): (Vec<_>, Vec<_>) = all.iter().partition(is_ours);
        let mut others: BTreeSet<_> =
            others.into_iter().filter(|path| output::is_manifest(path)).map(|path| name(path)).collect();
        let unseen = ours.len().saturating_sub(MOST_FILES);
        let mut survey = Self { bundles: bundles.take(), unseen, ..Self::default() };
        survey.bundles.sort();
        let mut read = Vec::new();
        for path in ours.into_iter().take(MOST_FILES) {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let parent =
                path.parent().map(name).filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".into());
            match file.as_ref() {
                "Chart.yaml" => {
                    others.insert(name(path));
                    let charts =
                        if is_samples(&parent) { &mut survey.helm_samples } else { &mut survey.helm };
                    charts.insert(parent);
                }
                "kustomization.yaml" | "kustomization.yml" | "Kustomization" => {
                    others.insert(name(path));
                    survey.kustomized.insert(parent.clone());
                    let content = read_yaml(path).unwrap_or_default();
                    let beside = path.with_file_name("");
                    let named: Vec<_> = ["resources", "bases", "components"]
                        .into_iter()
                        .flat_map(|key| {
                            content[key].as_array().into_iter().flatten().filter_map(Json::as_str)
                        })
                        .filter(|own| own.contains("://") || beside.join(own).is_dir())
                        .collect();
                    if named.is_empty() {
                        survey.alone.insert(parent.clone());
                    }
                    let built: BTreeSet<_> = named.iter().map(|own| normal(&parent, own)).collect();
                    let is_operator = |own: &String| !own.split('/').any(|part| PARTS.contains(&part));
                    let is_stock =
                        parent == STOCK_MANIFESTS || parent == STOCK_BASE && survey.stock_at.is_none();
                    if is_stock && built.iter().any(is_operator) {
                        (survey.stock_at, survey.stock) = (Some(parent.clone()), built);
                    }
                    // A component builds nothing by itself.
                    if content["kind"] != "Component" {
                        survey.kustomize.insert(parent);
                    }
                }
                _ if output::is_manifest(path) => {
                    // What is not text is no manifest.
                    match files::read_text(path) {
                        Ok(text) => read.push((name(path), parent, text)),
                        Err(_) => {
                            survey.broken.push(name(path));
                            others.insert(name(path));
                        }
                    }
                }
                _ => {}
            }
        }
        let is_part = |path: &String| path.split('/').any(|part| PARTS.contains(&part));
        let is_crd_or_rbac = |path: &String| matches!(path.rsplit('/').next(), Some("crd" | "rbac"));
        // A chart below a chart is a part of it.
        let charts = survey.helm.clone();
        survey.helm.retain(|own| !charts.iter().any(|above| own != above && sources::is_below(own, above)));
        survey.parts = survey.kustomize.iter().filter(|path| is_crd_or_rbac(path)).cloned().collect();
        survey.kustomize.retain(|path| !is_part(path));
        survey.classify(&read, others, package);
        Ok(survey)
    }

    /// Sorts the files, each with its path, its directory and its text. `others` are files that are none of the operator's.
    fn classify(
        &mut self,
        files: &[(String, String, String)],
        mut others: BTreeSet<String>,
        package: Option<&str>,
    ) {
        let (charts, samples) = (self.helm.clone(), self.helm_samples.clone());
        let in_chart = |path: &str| charts.union(&samples).any(|chart| sources::is_below(path, chart));
        let parsed: Vec<_> = files
            .iter()
            // A template is not YAML yet; a chart keeps CRDs in a directory without templates.
            .filter(|(path, _, _)| !in_chart(path) || path.contains("/crds/") || path.starts_with("crds/"))
            .map(|(path, parent, text)| {
                (path, parent, Manifests::parse(vec![Source::new(path.as_str(), text)]))
            })
            .collect();
        for (path, _, text) in files.iter().filter(|(path, _, _)| in_chart(path)) {
            others.insert(path.clone());
            let own = charts.iter().filter(|chart| sources::is_below(path, chart)).cloned();
            if text.contains("CustomResourceDefinition") {
                self.helm_with_crds.extend(own.clone());
            }
            if ["Deployment", "StatefulSet", "DaemonSet"]
                .iter()
                .any(|kind| text.contains(&format!("kind: {kind}")))
            {
                self.helm_with_workload.extend(own);
            }
        }
        let mut groups = BTreeSet::new();
        for object in parsed.iter().flat_map(|(_, _, manifests)| manifests.objects()) {
            if object.kind() == "CustomResourceDefinition" {
                let crd = Crd::from(object);
                self.kinds.insert(crd.kind().into_owned());
                groups.insert(crd.group().into_owned());
            }
        }
        let (mut manifests, mut samples) = (Vec::new(), Vec::new());
        let (mut bases, mut csvs) = (Vec::new(), Vec::new());
        for (path, parent, texts) in parsed.iter().filter(|(path, _, _)| !in_chart(path)) {
            let is_csv = |object: &Object<'_, '_>| object.kind() == "ClusterServiceVersion";
            let is_sample = |object: &Object<'_, '_>| {
                object.api_version().split_once('/').is_some_and(|(group, _)| groups.contains(group))
            };
            let objects: Vec<_> = texts.objects().collect();
            let is_tool =
                |object: &Object<'_, '_>| object.api_version().starts_with("kustomize.config.k8s.io");
            if objects.is_empty() {
                // In a directory of manifests `bundle generate` says where it is not YAML.
                self.broken.extend(texts.has_errors().then(|| (*path).clone()));
            } else if objects.iter().all(is_setting) || objects.iter().any(is_tool) {
                others.insert((*path).clone());
            } else if objects.iter().all(is_csv) {
                others.insert((*path).clone());
                let list = if parent.ends_with("bases") { &mut bases } else { &mut csvs };
                list.push((*path).clone());
            } else if objects.iter().all(is_sample) || is_samples_file(path) {
                samples.push((*path, *parent));
            } else if is_samples(parent) {
                // What samples need besides is not the operator's.
                others.insert((*path).clone());
            } else if self.kustomize.is_empty() || !self.kustomized.contains(*parent) {
                // What kustomize builds is told by its kustomization.
                let file = sources::ManifestFile::new(path, objects.iter());
                let names = objects.iter().filter(|object| is_csv(object)).map(|object| object.name());
                self.packages.extend(names.filter_map(|name| Some(name.split_once('.')?.0.to_owned())));
                self.with_crds.extend(file.has_crd().then(|| (*path).clone()));
                self.with_workload.extend(file.has_workload().then(|| (*path).clone()));
                manifests.push(file);
            }
        }
        self.choose_base(bases, csvs, package);
        let holds_manifests =
            |directory: &str| manifests.iter().any(|file| sources::is_below(file.path(), directory));
        let name = |(path, parent): (&String, &String)| {
            let is_apart = parent != "." && !holds_manifests(parent);
            if is_apart { parent.clone() } else { path.clone() }
        };
        self.samples = samples.into_iter().map(name).collect();
        let sources::Sources { paths, again } = sources::choose(manifests, &others);
        (self.manifests, self.again) = (paths, again);
        // Samples of another version say what that one had.
        let version = self.manifests.iter().find_map(|path| sources::version_of(path));
        let is_current = |path: &String| {
            let own = sources::version_of(path);
            version.is_none() || own.is_none() || own == version
        };
        self.samples.retain(is_current);
        let mine = &self.manifests;
        self.broken.retain(|path| !mine.iter().any(|above| sources::is_below(path, above)));
        // A directory is read with everything below it.
        let all: Vec<_> = self.samples.iter().chain(&self.manifests).cloned().collect();
        self.samples.retain(|own| !all.iter().any(|above| sources::is_below(own, above)));
        self.choose_samples();
    }

    /// The samples that the project keeps as such: those of `config/samples`, else those that are not of its tools and texts.
    /// Where `config/manifests` builds samples, they are the project's.
    fn choose_samples(&mut self) {
        if self.stock.iter().any(|directory| is_samples(directory)) {
            let is_built =
                |path: &String| self.stock.iter().any(|own| own == path || sources::is_below(path, own));
            self.more_samples = self.samples.iter().filter(|path| !is_built(path)).cloned().collect();
            self.samples.clear();
            return;
        }
        let is_stock = |path: &String| path == STOCK_SAMPLES || sources::is_below(path, STOCK_SAMPLES);
        let is_own = |path: &String| !path.split('/').any(|part| TOOLS_AND_TEXTS.contains(&part));
        let own: BTreeSet<_> = match self.samples.iter().any(is_stock) {
            true => self.samples.iter().filter(|path| is_stock(path)).cloned().collect(),
            false => self.samples.iter().filter(|path| is_own(path)).cloned().collect(),
        };
        if !own.is_empty() || self.samples.len() > MOST_TEXTS {
            self.more_samples = self.samples.difference(&own).cloned().collect();
            self.samples = own;
        }
    }

    /// The base: that of operator-sdk's layout, where there are several that of the package. One that stands elsewhere is the
    /// base where there is no other; those further below are parts of something else.
    fn choose_base(&mut self, mut bases: Vec<String>, mut csvs: Vec<String>, package: Option<&str>) {
        let is_package = |path: &String| {
            let file = path.rsplit('/').next().unwrap_or("");
            package.is_some_and(|package| file.strip_suffix(BASE_ENDING) == Some(package))
        };
        let depth = |path: &String| path.matches('/').count();
        let least = csvs.iter().map(depth).min();
        csvs.retain(|path| Some(depth(path)) == least);
        let from = if bases.is_empty() { &mut csvs } else { &mut bases };
        let own = from.iter().position(is_package).or_else(|| (from.len() == 1).then_some(0));
        self.base = own.map(|own| from.remove(own));
        self.csvs = [bases, csvs].concat();
    }
}

/// The first of some paths, and that there are more; none where there are none.
fn listed(paths: &[String]) -> Option<String> {
    let first: Vec<_> = paths.iter().take(LISTED).map(String::as_str).collect();
    let more = if paths.len() > LISTED { ", …" } else { "" };
    (!first.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}

/// Whether one of these files is at a path, or below it.
fn holds(files: &BTreeSet<String>, path: &str) -> bool {
    files.iter().any(|file| file == path || sources::is_below(file, path))
}

/// Whether a directory of this name holds tests or what others made.
fn is_not_ours(name: &str) -> bool {
    let is_of_tests = ["-test", "-tests", "_test", "_tests"].iter().any(|end| name.ends_with(end));
    NOT_OURS.contains(&name) || is_of_tests
}

/// Where a path leads that a kustomization in a directory names, as a path in the project.
fn normal(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a directory is one of examples.
fn is_samples(directory: &str) -> bool {
    directory.split('/').any(|part| SAMPLES.contains(&part))
}

/// Whether a file is called as the one that `bundle init` takes out of a ClusterServiceVersion.
fn is_samples_file(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("samples.yaml" | "samples.yml"))
}

/// Whether this is no object of a cluster, but what a tool is told: docker-compose, kind, skaffold.
fn is_setting(object: &Object<'_, '_>) -> bool {
    let is_of_cluster = kinds::supported(object.kind()).is_some() || sources::ONCE.contains(&object.kind());
    object.api_version().is_empty() || object.name().is_empty() && !is_of_cluster
}

/// Which of several kustomizations is the operator's: the least is. One that only adds something is last, then counts how
/// deep it is, then its name.
fn likelihood(path: &str) -> (bool, usize, usize) {
    let name = path.rsplit('/').next().unwrap_or("");
    let by_name = ["default", "base"].iter().position(|own| *own == name).unwrap_or(2);
    (ADDITIONS.contains(&name), path.matches('/').count(), by_name)
}
