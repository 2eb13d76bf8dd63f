//! `bundle generate`: reads manifests and the package file, writes the bundle's directory.

mod base;
mod manifests;
mod remote;
mod streams;
mod time;
pub(super) mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use olmkit_bundle::annotations::is_generated;
use olmkit_bundle::csv::annotation::CREATED_AT;
use olmkit_bundle::finding::{self, Finding, Findings, Level};
use olmkit_bundle::generate::package_file::FILE_NAME as PACKAGE_FILE;
use olmkit_bundle::generate::{
    self, Attachments, Base, By, CargoFile, ChartFile, Compat, Descriptors, Edge, Field, Generated,
    Manifests, Origin, Overrides, Package, PackageFile, Pins, Relation, Sources,
};
use olmkit_bundle::names::{ChannelName, ImageRef, PackageName};
use olmkit_bundle::source::Source;
use olmkit_bundle::yaml;
use olmkit_catalog::add::Policy;

use super::output::{CHART_FILE, Output};
use super::{catalog_add, former};
use crate::exit::Failure;
use crate::files::Difference;
use crate::files::{self, OutputDir};
use crate::image::{Access, Place, digests};

pub use manifests::{Helm, Inputs, PROGRAM_LIMIT};

/// The file beside it that knows the crate, and may hold the package file.
const CARGO_FILE: &str = "Cargo.toml";

/// What to generate from, and where to.
#[derive(Debug)]
pub struct Request {
    /// The manifests; those of the package file, else of standard input, when none are given.
    pub inputs: Inputs,
    /// Files and directories of which only the examples of custom resources count, besides the package file's.
    pub samples: Vec<PathBuf>,
    /// The package file; when absent `olmkit.yaml` here, or a `Cargo.toml` here that holds one.
    pub package_file: Option<PathBuf>,
    /// The base ClusterServiceVersion, instead of the package file's.
    pub base: Option<PathBuf>,
    /// What the command line says instead of the package file.
    pub overrides: Overrides,
    /// A catalog that decides on the edges.
    pub catalog: Option<PathBuf>,
    /// The channel there; the default channel when absent.
    pub channel: Option<ChannelName>,
    /// Whether the channel, or the catalog, may be one that is not there yet.
    pub new_channel: bool,
    /// How the place there is chosen; the package file's way when absent.
    pub policy: Option<Policy>,
    /// The time of creation, RFC 3339 or `now`.
    pub created_at: Option<String>,
    /// Whose bundles to make.
    pub compat: Option<Compat>,
    /// Which descriptors of owned APIs the bundle gets.
    pub descriptors: Descriptors,
    /// How long kustomize and helm may take together.
    pub program_limit: Duration,
    /// Whether kustomize and helm must fetch nothing.
    pub offline: bool,
    /// Whether tags are to become digests.
    pub pin_digests: bool,
    /// Whether to write the bundle into a directory that plainly holds something else, and over files of others.
    pub force: bool,
    /// What to do with the bundle.
    pub task: Task,
    /// Where the bundle goes, or is compared with.
    pub output_dir: PathBuf,
}

/// What to do with a generated bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Write it.
    Write,
    /// Compare it with what is there.
    Check,
    /// Say where a field of the ClusterServiceVersion comes from.
    Explain(String),
}

/// What these texts say.
pub(super) struct Known<'t> {
    pub(super) file: Option<PackageFile<'t>>,
    cargo: Option<CargoFile<'t>>,
    /// What is wrong with the package file.
    pub(super) findings: Vec<Finding>,
}

/// The texts that a package is put together from.
pub(super) struct Texts {
    package: Option<(PathBuf, String)>,
    cargo: Option<(PathBuf, String)>,
    workspace: Option<(PathBuf, String)>,
}

/// A generated bundle, or the findings that prevented it.
#[derive(Debug, Default)]
pub struct GeneratedBundle {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The bundle's directory.
    pub output_dir: PathBuf,
    /// The base that was found, where none was named.
    pub base: Option<PathBuf>,
    /// The files that were written; empty when nothing was.
    pub files: Vec<String>,
    /// Files in the directory that olmkit did not write, and left alone.
    pub kept: Vec<String>,
    /// With `--check`: where the directory differs from the bundle, and nothing was written.
    pub stale: Option<Vec<Difference>>,
    /// Where files beside the bundle contradict it.
    pub notes: Vec<String>,
    /// What there is to say about the input.
    pub findings: Vec<Finding>,
}

/// How `bundle generate` ended.
#[derive(Debug)]
pub enum Outcome {
    /// A bundle, or why there is none.
    Bundle(GeneratedBundle),
    /// Where fields come from.
    Explained(Explained),
}

/// Fields of a ClusterServiceVersion with their values and origins.
#[derive(Debug)]
pub struct Explained {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The fields.
    pub fields: Vec<ExplainedField>,
}

/// A field with its value and its origin.
#[derive(Debug)]
pub struct ExplainedField {
    /// Its path.
    pub path: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Where the value comes from.
    pub origin: FieldOrigin,
    /// What else it was made of.
    pub made_of: Vec<FieldOrigin>,
    /// What it stands in place of.
    pub instead_of: Vec<FieldOrigin>,
}

/// Where a value comes from.
#[derive(Debug)]
pub struct FieldOrigin {
    /// The kind of its origin, in a word.
    pub by: &'static str,
    /// The flag, the variable or the rule.
    pub name: Option<String>,
    /// The place in a file.
    pub place: Option<finding::Place>,
}

impl Explained {
    fn of(csv: String, fields: &[Field<'_, '_>]) -> Self {
        let related = |field: &Field<'_, '_>, wanted: Relation| {
            let mine = field.draft.related().iter().filter(|(relation, _)| *relation == wanted);
            mine.map(|(_, related)| FieldOrigin::of(related)).collect()
        };
        let fields = fields.iter().map(|field| ExplainedField {
            path: field.path.clone(),
            value: field.draft.to_json(),
            origin: FieldOrigin::of(&field.draft.origin()),
            made_of: related(field, Relation::MadeOf),
            instead_of: related(field, Relation::InsteadOf),
        });
        Self { csv, fields: fields.collect() }
    }
}

impl FieldOrigin {
    fn of(origin: &Origin<'_>) -> Self {
        let name = match origin.by {
            By::Flag(name) | By::Environment(name) | By::Rule(name) => Some(name.to_owned()),
            _ => None,
        };
        Self { by: origin.by.word(), name, place: origin.place() }
    }
}

/// Generates the bundle. Files are written only when no finding is an error.
///
/// # Errors
/// When an input cannot be read, the output not be written, or there is nothing at a path to explain.
pub fn run(request: Request, access: &Access) -> Result<Outcome, Failure> {
    let output = Output::of(&request.output_dir);
    if request.task == Task::Write && !request.force {
        output.check_is_for_bundle()?;
    }
    let texts = Texts::find(request.package_file.as_deref())?;
    let output =
        output.and(texts.package.iter().map(|(path, _)| path.clone()).chain(request.catalog.clone()));
    let Known { file, cargo, mut findings } = match texts.read() {
        Ok(read) => read,
        Err(findings) => return refused(findings),
    };
    let beside = texts.directory();
    let settings = file.as_ref().map(|file| file.settings.clone()).unwrap_or_default();
    let named = |path: &String| Some(beside.join(path)).filter(|_| !path.is_empty());
    let inputs = request.inputs.or(&settings, beside)?;
    for path in &inputs.paths {
        output.check_is_not(path)?;
        super::output::check_is_no_bundle(path)?;
        super::output::check_is_no_chart(path)?;
    }
    if !request.force {
        inputs.paths.iter().try_for_each(|path| output.check_hides_none(path))?;
    }

    let given_base = request.base.or_else(|| named(&settings.base));
    let package_name = request.overrides.package.as_ref().map(PackageName::as_str);
    let package_name = package_name.or(Some(settings.package.as_str()).filter(|name| !name.is_empty()));
    let found_base = match given_base {
        Some(_) => None,
        None => base::find(&inputs, package_name, &output)?,
    };
    let base_path = given_base.or_else(|| found_base.clone());
    let base_text = base_path.as_deref().map(files::read_text).transpose()?;
    let base_source = base_path.as_deref().zip(base_text.as_deref());
    let base = Manifests::parse(base_source.map(|(path, text)| source(path, text)).into_iter().collect());
    let base = match base_source.map(|_| Base::of(&base)).transpose() {
        Ok(base) if found_base.is_some() => base.map(Base::found),
        Ok(base) => base,
        Err(finding) => return refused(vec![*finding]),
    };
    // A file that cannot be read is one more thing that is wrong with the package file.
    let mut unreadable = |key: &'static str, error: &dyn std::error::Error| {
        findings.extend(file.as_ref().map(|file| file.invalid(chain(error), &[key.into()])));
    };
    let attached = |path: &String| named(path).as_deref().map(files::read).transpose();
    let icon = attached(&settings.icon).unwrap_or_else(|error| {
        unreadable("icon", &error);
        None
    });
    let description = named(&settings.description_file).as_deref().map(files::read_text).transpose();
    let description = description.unwrap_or_else(|error| {
        unreadable("descriptionFile", &error);
        None
    });
    let chart_text =
        inputs.helm.charts.first().map(|chart| chart.join(CHART_FILE)).filter(|path| path.is_file());
    let chart_text = chart_text.map(|path| files::read_text(&path).map(|text| (path, text))).transpose()?;
    let chart = match chart_text.as_ref().map(|(path, text)| read_chart(path, text)).transpose() {
        Ok(chart) => chart,
        Err(finding) => return refused(vec![*finding]),
    };
    let sources =
        Sources { file: file.as_ref(), base: base.as_ref(), chart: chart.as_ref(), cargo: cargo.as_ref() };
    let package = match Package::resolve(sources, request.overrides, Attachments { description, icon }) {
        Ok(package) if findings.is_empty() => package,
        resolved => {
            findings.extend(resolved.err().into_iter().flatten());
            let mut sorted = Findings::new();
            sorted.extend(findings);
            return refused(sorted.into_sorted(""));
        }
    };
    if request.task == Task::Write && !request.force {
        output.check_is_of_package(package.name.as_str())?;
    }
    if inputs.is_empty() {
        return Err(Failure::usage("no manifests were given")
            .help("name files or directories, send them to standard input, or list them under `manifests` in the package file"));
    }
    remote::check(&inputs, request.offline)?;
    let manifest_texts = inputs.read(package.name.as_str(), &output, request.program_limit)?;
    let mut samples: Vec<_> = package.settings.samples.iter().map(|path| beside.join(path)).collect();
    samples.extend(request.samples);
    let (sample_texts, unread) = manifests::read_samples(&samples, &output)?;
    let manifests = Manifests::parse(sources_of(&manifest_texts)).with_samples(sources_of(&sample_texts));
    let manifests = manifests.with_unread_samples(unread);
    let edge = match &request.catalog {
        Some(catalog) => {
            let channel = request.channel.as_ref().unwrap_or(&package.default_channel);
            let named = package.settings.version_policy.parse().unwrap_or_default();
            let policy = request.policy.unwrap_or(named);
            let edges = catalog_add::edges(catalog, channel, &package, policy, request.new_channel)?;
            Some(Edge { replaces: edges.replaces, skips: edges.skips, skip_range: edges.skip_range })
        }
        None => None,
    };
    let mut making = generate::Request::new(&package, &manifests);
    making.edge = edge;
    making.version_policy = request.policy.map(Policy::as_str);
    making.kept_annotations = kept_annotations(&request.output_dir);
    making.compat = request.compat;
    making.descriptors = request.descriptors;
    if request.pin_digests {
        making.pins = pins(&generate::unpinned(&generate::generate(&making).draft), access)?;
    }
    let mut generated = dated(making, request.created_at.as_deref(), &request.output_dir, &request.task)?;
    streams::name_objects(&mut generated.findings, &manifest_texts);
    if request.task == Task::Write && !request.force {
        output.check_replaces_ours(&generated.files)?;
    }
    if request.task == Task::Write {
        output.check_is_only_csv(&generated.files)?;
    }
    finish(generated, request.task, request.output_dir, found_base)
}

/// Chart.yaml, with the icon in the chart's directory that it names.
fn read_chart<'t>(path: &'t Path, text: &'t str) -> Result<ChartFile<'t>, Box<Finding>> {
    let mut chart = ChartFile::parse(source(path, text))?;
    let icon = chart.icon_file().map(|file| path.with_file_name(file));
    if let Some(bytes) = icon.and_then(|path| files::read(&path).ok()) {
        chart.set_icon(bytes);
    }
    Ok(chart)
}

/// The answer when the package file itself is at fault.
fn refused(findings: Vec<Finding>) -> Result<Outcome, Failure> {
    debug_assert!(findings.iter().any(|finding| finding.level == Level::Error));
    Ok(Outcome::Bundle(GeneratedBundle { findings, ..GeneratedBundle::default() }))
}

fn source<'t>(path: &Path, text: &'t str) -> Source<'t> {
    Source::new(path.display().to_string(), text)
}

fn sources_of(texts: &[manifests::Named]) -> Vec<Source<'_>> {
    texts.iter().map(|(name, text)| Source::new(name.as_str(), text)).collect()
}

/// Generates with a time of creation that changes only when the content does, or is given.
///
/// A bundle without the annotation gets none unless one is asked for, because the same input is to give the same bytes.
fn dated<'r>(
    request: generate::Request<'r>,
    given: Option<&str>,
    output_dir: &Path,
    task: &Task,
) -> Result<Generated<'r>, Failure> {
    let with = |created_at: String, by| {
        let mut request = request.clone();
        request.created_at = Some((created_at, Origin::unwritten(by)));
        generate::generate(&request)
    };
    let flag = By::Flag("--created-at");
    if let Some(given) = given.filter(|given| *given != "now") {
        return Ok(with(given.to_owned(), flag));
    }
    if given.is_none()
        && let Some(date) = time::source_date()?
    {
        return Ok(with(date, By::Environment("SOURCE_DATE_EPOCH")));
    }
    let path = format!("manifests/{}.clusterserviceversion.yaml", request.package.name);
    let former = files::read_text(&output_dir.join(&path)).ok();
    let former = former.filter(|text| text.starts_with(generate::HEADER));
    let date = former.as_deref().and_then(|text| {
        let document = yaml::first_document(text).ok()?;
        Some(document.root.get("metadata")?.get("annotations")?.get(CREATED_AT)?.as_str()?.to_owned())
    });
    if given.is_none() && date.is_none() && request.compat.is_none() {
        return Ok(generate::generate(&request));
    }
    if let Some(date) = date {
        let same = with(date, By::Rule("the content is as it was"));
        if *task == Task::Check || unchanged(&same.files, output_dir) {
            return Ok(same);
        }
    }
    Ok(with(time::now(), if given.is_some() { flag } else { By::Rule("the content has changed") }))
}

/// The annotations of the bundle in a directory that were added by hand: they stay when it is generated again.
fn kept_annotations(output_dir: &Path) -> BTreeMap<String, String> {
    let mut kept = former::annotations(output_dir);
    kept.retain(|key, _| !is_generated(key));
    kept
}

/// The references of images with the digests that registries give them.
fn pins(images: &BTreeSet<String>, access: &Access) -> Result<Pins, Failure> {
    let place = |image: &String| -> Result<Place, String> {
        let whole = image.parse::<ImageRef>().map_err(|error| error.to_string())?;
        format!("docker://{}", String::from(whole)).parse::<Place>().map_err(|error| error.to_string())
    };
    let places: Vec<_> = images.iter().map(|image| (image, place(image))).collect();
    let askable: Vec<_> = places.iter().filter_map(|(_, place)| place.as_ref().ok().cloned()).collect();
    let mut answers = digests(&askable, access)?.into_iter();
    let mut pins = Pins::new();
    for (image, place) in places {
        let answer = match place {
            Ok(_) => match answers.next() {
                Some(answer) => answer.map_err(|error| chain(&error)),
                None => Err("the registry was not contacted".to_owned()),
            },
            Err(why) => Err(why),
        };
        pins.insert(image.clone(), answer.map(|digest| generate::pinned(image, &digest.to_string())));
    }
    Ok(pins)
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}

/// Whether every file is on disk as it is here.
fn unchanged(files: &BTreeMap<String, String>, directory: &Path) -> bool {
    let mut same = files
        .iter()
        .map(|(path, text)| files::read_text(&directory.join(path)).is_ok_and(|own| own == *text));
    same.all(|same| same)
}

fn finish(
    generated: Generated<'_>,
    task: Task,
    output_dir: PathBuf,
    base: Option<PathBuf>,
) -> Result<Outcome, Failure> {
    if let Task::Explain(path) = &task {
        let fields = generate::explain(&generated.draft, path).map_err(|error| {
            let help = error.help.clone();
            Failure::failed(error).help(help)
        })?;
        return Ok(Outcome::Explained(Explained::of(generated.csv, &fields)));
    }
    let mut answer = GeneratedBundle {
        csv: generated.csv,
        base,
        findings: generated.findings,
        ..GeneratedBundle::default()
    };
    if !generated.files.is_empty() {
        let others = || Output::of(&output_dir).others(&generated.files);
        if task == Task::Check {
            answer.stale = Some(files::differences(&output_dir, &generated.files, &others()?.stale)?);
        } else {
            let texts = generated.files.iter().map(|(path, text)| (path.clone(), Some(text)));
            let mut directory = OutputDir::open(&output_dir)?;
            directory.write(&texts.collect())?;
            let others = others()?;
            directory.remove(&others.stale)?;
            answer.kept = others.kept;
        }
    }
    if let Some(text) = generated.files.get(former::ANNOTATIONS_FILE) {
        answer.notes = former::differences(&output_dir, text);
    }
    answer.files = generated.files.into_keys().collect();
    answer.output_dir = output_dir;
    Ok(Outcome::Bundle(answer))
}

impl Texts {
    pub(super) fn find(given: Option<&Path>) -> Result<Self, Failure> {
        let read = |path: PathBuf| files::read_text(&path).map(|text| (path, text));
        let mut texts = Self { package: None, cargo: None, workspace: None };
        match given {
            Some(path) if path.file_name().is_some_and(|name| name == CARGO_FILE) => {
                texts.cargo = Some(read(path.to_owned())?);
            }
            Some(path) => texts.package = Some(read(path.to_owned())?),
            // Whatever has that name: what cannot be read is not left out in silence.
            None if Path::new(PACKAGE_FILE).symlink_metadata().is_ok() => {
                texts.package = Some(read(PACKAGE_FILE.into())?)
            }
            None if Path::new(CARGO_FILE).is_file() => {
                let cargo = read(CARGO_FILE.into())?;
                // Any other crate's Cargo.toml has nothing to do with it.
                texts.cargo = Some(cargo).filter(|(_, text)| text.contains("metadata.olmkit"));
            }
            None => {}
        }
        if let Some((path, _)) = &texts.package {
            let beside = path.with_file_name(CARGO_FILE);
            if beside.is_file() {
                texts.cargo = Some(read(beside)?);
            }
        }
        if let Some((path, text)) = &texts.cargo {
            texts.workspace = workspace::root_of(path, text)?;
        }
        Ok(texts)
    }

    /// The package file and what Cargo.toml says, and what is wrong with the package file.
    pub(super) fn read(&self) -> Result<Known<'_>, Vec<Finding>> {
        let mut cargo = None;
        if let Some(own) = &self.cargo {
            let mut own = CargoFile::parse(source(&own.0, &own.1)).map_err(|finding| vec![*finding])?;
            if let Some((path, text)) = &self.workspace {
                let root = CargoFile::parse(source(path, text));
                own.set_workspace(root.map_err(|finding| vec![*finding])?);
            }
            cargo = Some(own).filter(CargoFile::has_package);
        }
        let file = match (&self.package, &cargo) {
            (Some((path, text)), _) => Some(PackageFile::parse_part(source(path, text))?),
            (None, Some(cargo)) => cargo.part_of_package_file().transpose()?,
            (None, None) => None,
        };
        let (file, findings) = file.map_or((None, Vec::new()), |(file, findings)| (Some(file), findings));
        Ok(Known { file, cargo, findings })
    }

    /// The directory that the paths of the package file are relative to.
    fn directory(&self) -> &Path {
        let path = self.package.as_ref().or(self.cargo.as_ref()).map(|(path, _)| path.as_path());
        path.and_then(Path::parent).unwrap_or(Path::new(""))
    }
}
