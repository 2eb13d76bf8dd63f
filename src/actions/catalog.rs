//! The catalog verbs.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use olmkit_bundle::annotations::{CHANNELS, DEFAULT_CHANNEL};
use olmkit_bundle::finding::Levels;
use olmkit_bundle::generate::Package;
use olmkit_bundle::names::{ChannelName, ImageRef};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::suggest::{did_you_mean, nearest};
use olmkit_bundle::version::Version;
use olmkit_catalog::add::{self, AddError, Edges, Policy};
use olmkit_catalog::fbc::{Catalog, FaultKind};
use olmkit_catalog::graph::VersionRelease;
use olmkit_catalog::load::{CatalogFiles, hidden_by};
use olmkit_catalog::path::{Query, Rules, paths};
use olmkit_catalog::render::{self, Form, Rendered};
use olmkit_catalog::{draw, list, validate};

use super::absent::{What, Within};
use super::build::left_out_note;
use crate::actions::results::{Checked, FileText};
use crate::exit::Failure;
use crate::files::{FileError, OutputDir};
use crate::image::{Access, Place};
use crate::input::Input;
use crate::shell::argument;
use olmkit_catalog::add::AddReport;
use olmkit_catalog::list::{BundleItem, ChannelItem, PackageItem};
use olmkit_catalog::path::UpgradePaths;

/// What to add, and where to.
#[derive(Debug)]
pub struct AddRequest {
    /// The catalog's directory, which need not be there yet.
    pub catalog: PathBuf,
    /// The bundles.
    pub bundles: Vec<Input>,
    /// The channels, and how places in them are chosen.
    pub request: add::Request,
    /// The bundles' images, with `{{.Package}}`, `{{.Name}}` and `{{.Version}}` to be filled in.
    pub image_ref_template: Option<String>,
}

/// The bundles that were added, and what became of the channels.
#[derive(Debug)]
pub struct Added {
    /// What was done.
    pub account: AddReport,
    /// The catalog.
    pub catalog: PathBuf,
    /// What there is to say besides.
    pub notes: Vec<String>,
}

/// Adds bundles to a catalog. Its files change only when every bundle has a place.
///
/// # Errors
/// When the catalog or a bundle cannot be read, a bundle has no place, or a file cannot be written.
pub fn add(request: &AddRequest, access: &Access) -> Result<Added, Failure> {
    let loaded = request.bundles.iter().map(|bundle| Ok(bundle.bundle(access)?.without_leftovers()));
    let (loaded, left_out): (Vec<_>, Vec<_>) =
        loaded.collect::<Result<Vec<_>, Failure>>()?.into_iter().unzip();
    let parsed: Vec<_> = loaded.iter().map(Bundle::parse).collect();
    let mut placing = request.request.clone();
    let own_default = own_channels(&parsed, &mut placing)?;
    let template = request.image_ref_template.as_deref();
    let bundles = parsed
        .iter()
        .zip(&request.bundles)
        .map(|(bundle, input)| render_bundle(bundle, input, template, Form::default()));
    let bundles = bundles.collect::<Result<Vec<_>, _>>()?;
    // The bundles are here, so others wait only while the catalog is read and written. They have to: of two that add at the
    // same time, one would undo what the other did.
    let (mut directory, file) = catalog_dir(&request.catalog)?;
    let files = load_or_new(&request.catalog)?;
    let catalog = Catalog::parse(&files);
    if let Some(first) = bundles.first() {
        check_not_hidden(&request.catalog, &catalog, &first.blob.package)?;
    }
    let first = bundles.first().map(|bundle| bundle.blob.package.as_str());
    let package = catalog.packages.iter().find(|package| Some(package.name.as_str()) == first);
    let old_default = package.map(|package| package.default_channel.to_string());
    if old_default.is_none() {
        placing.default_channel = placing.default_channel.take().or(own_default.clone());
    }
    let change = add::add(&catalog, &bundles, &placing).map_err(add_failure)?;
    let created = change.files.iter().filter(|file| file.created);
    check_visible(&request.catalog, created.map(|file| file.path.as_str()))?;
    let texts = change.files.into_iter().map(|changed| {
        let path = if changed.path.is_empty() { file.clone() } else { changed.path };
        (path, Some(changed.text))
    });
    directory.write(&texts.collect())?;
    let mut notes: Vec<String> = left_out_note(&left_out.concat(), "the catalog").into_iter().collect();
    let now = &change.report.default_channel;
    notes.extend(match (&old_default, own_default) {
        (Some(old), _) if old != now => Some(format!("the default channel is `{now}`; it was `{old}`")),
        (Some(old), Some(own)) if *old != own.as_str() && request.request.default_channel.is_none() => Some(format!(
            "the default channel is still `{old}`; the bundle names `{own}`, which `--default-channel {own}` would set"
        )),
        _ => None,
    });
    if let Some(package) = package {
        let there = catalog.channels.iter().filter(|channel| channel.package == package.name);
        let there: Vec<&str> = there.map(|channel| channel.name.as_str()).collect();
        let new = change.report.channels.iter().filter(|channel| channel.added && !there.is_empty());
        notes.extend(new.map(|channel| {
            let near = did_you_mean(&channel.name, there.iter().copied());
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            format!("the channel `{}` of `{}` is new{near}", channel.name, package.name)
        }));
    }
    Ok(Added { account: change.report, catalog: request.catalog.clone(), notes })
}

/// Refuses a package that the catalog does not show, although files that `.indexignore` hides from it have it: what is new would
/// contradict them as soon as they are shown again.
fn check_not_hidden(path: &Path, catalog: &Catalog<'_>, package: &str) -> Result<(), Failure> {
    if !path.is_dir() || catalog.packages.iter().any(|blob| *blob.name == *package) {
        return Ok(());
    }
    let hidden = CatalogFiles::load_hidden_mentioning(path, package).map_err(Failure::unknown)?;
    let parsed = Catalog::parse(&hidden);
    let Some(blob) = parsed.packages.iter().find(|blob| *blob.name == *package) else { return Ok(()) };
    let place = parsed.place(blob.at.with(blob.name.span));
    let error = HiddenError::Package { package: package.to_owned(), catalog: path.to_owned() };
    Err(Failure::no(error).at(Some(place)).help(SHOW_HELP))
}

/// Refuses new files that would not belong to the catalog, or replace files that do not.
pub(super) fn check_visible<'p>(
    catalog: &Path,
    created: impl IntoIterator<Item = &'p str>,
) -> Result<(), Failure> {
    for path in created.into_iter().filter(|path| !path.is_empty()) {
        let file = catalog.join(path);
        if let Some(by) = hidden_by(catalog, path) {
            return Err(Failure::no(HiddenError::File { file, by }).help(SHOW_HELP));
        }
        if fs::symlink_metadata(&file).is_ok() {
            return Err(FileError::Exists { path: file }.into());
        }
    }
    Ok(())
}

/// The way on for what is hidden.
const SHOW_HELP: &str =
    "remove the pattern from `.indexignore`, or the hidden file, then run the command again";

/// What an `.indexignore` hides.
#[derive(Debug, thiserror::Error)]
enum HiddenError {
    #[error("the package `{package}` is hidden in `{}` by `.indexignore`", .catalog.display())]
    Package { package: String, catalog: PathBuf },
    #[error("`{}` would not be part of the catalog: `{}` hides it", .file.display(), .by.display())]
    File { file: PathBuf, by: PathBuf },
}

/// The edges that a bundle yet to be made would get in a channel; of one that is there already those that it has.
///
/// # Errors
/// When the catalog or the channel is not there, unless it is the first version that goes into it.
pub(super) fn edges(
    catalog: &Path,
    channel: &ChannelName,
    package: &Package<'_>,
    policy: Policy,
    new_channel: bool,
) -> Result<Edges, Failure> {
    if !new_channel && !catalog.exists() {
        let beside = catalog.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let entries = fs::read_dir(beside).into_iter().flatten().flatten();
        let names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let name = catalog.file_name().unwrap_or_default().to_string_lossy();
        let near = nearest(&name, names.iter().map(String::as_str)).map(|near| catalog.with_file_name(near));
        let near = near.map(|near| format!("did you mean `{}`? ", near.display())).unwrap_or_default();
        let error = format!("there is no catalog `{}`", catalog.display());
        return Err(
            Failure::misuse(error).help(format!("{near}pass --new-channel if this is its first version"))
        );
    }
    let files = load_or_new(catalog)?;
    let parsed = Catalog::parse(&files);
    check_not_hidden(catalog, &parsed, package.name.as_str())?;
    if !new_channel && files.files.is_empty() {
        let error = format!("`{}` holds no files of a catalog", catalog.display());
        return Err(Failure::misuse(error).help("pass --new-channel if this is its first version"));
    }
    let channels = parsed.channels.iter().filter(|own| *own.package == *package.name.as_str());
    let channels: Vec<&str> = channels.map(|own| own.name.as_str()).collect();
    if !new_channel && !channels.is_empty() && !channels.contains(&channel.as_str()) {
        let error = format!("`{}` has no channel `{channel}` in `{}`", package.name, catalog.display());
        let near = did_you_mean(channel.as_str(), channels.iter().copied());
        let near = near.unwrap_or_else(|| format!("its channels are `{}`;", channels.join("`, `")));
        let help = format!("{near} choose one with --channel, or pass --new-channel if it is new");
        return Err(Failure::misuse(error).help(help));
    }
    let version = VersionRelease::from(package.version.clone());
    add::edges(&parsed, &package.name, channel, &package.csv_name(), &version, policy).map_err(add_failure)
}

fn add_failure(error: AddError) -> Failure {
    let (place, help) = (error.place().cloned(), error.help().map(str::to_owned));
    Failure::no(error).help(help).at(place)
}

/// The directory that a catalog is written to, and the file's name in it if the catalog is one file.
pub(super) fn catalog_dir(catalog: &Path) -> Result<(OutputDir, String), Failure> {
    if !catalog.is_file() {
        // A file there may be is one; a directory of such a name is hardly meant.
        let is_named_file =
            catalog.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if is_named_file && !catalog.exists() {
            let name = catalog.display();
            let touched = argument(&name);
            let help = format!("name a directory, or run `touch {touched}` for a catalog of one file");
            return Err(
                Failure::misuse(format!("`{name}` does not exist, and would become a directory")).help(help)
            );
        }
        return Ok((OutputDir::open_tree(catalog)?, String::new()));
    }
    let fail = |source| FileError::Read { path: catalog.to_owned(), source };
    let file = catalog.canonicalize().map_err(fail)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((OutputDir::open_tree(file.parent().unwrap_or(Path::new("/")))?, name))
}

/// A catalog, or an empty one where there is none yet.
pub(super) fn load_or_new(path: &Path) -> Result<CatalogFiles, Failure> {
    let is_empty = || path.is_dir() && CatalogFiles::load(path).is_ok_and(|files| files.files.is_empty());
    if path.exists() && !is_empty() {
        Input::Disk(path.to_owned()).catalog(&Access::default())
    } else {
        Ok(CatalogFiles { name: path.display().to_string(), files: Vec::new() })
    }
}

/// Where the command line names no channels, those that the bundles name themselves, if they agree. The answer is the default
/// channel that they name, which counts for a package that the catalog does not have yet.
fn own_channels(bundles: &[Bundle<'_>], request: &mut add::Request) -> Result<Option<ChannelName>, Failure> {
    if !request.channels.is_empty() {
        return Ok(None);
    }
    let mut default_channel = None;
    let mut first: Option<(&str, Vec<ChannelName>)> = None;
    for bundle in bundles {
        let Some(annotations) = bundle.annotations() else { continue };
        let channels =
            annotations.channels().iter().map(|name| name.parse()).collect::<Result<Vec<ChannelName>, _>>();
        let channels = channels.map_err(|error| Failure::no(error).at(Some(annotations.place(CHANNELS))))?;
        match &first {
            Some((name, others)) if *others != channels => {
                let message = format!("`{name}` and `{}` name different channels", bundle.name);
                return Err(
                    Failure::misuse(message).help("say which with --channels, or add them one by one")
                );
            }
            Some(_) => {}
            None => {
                let default = annotations.get(DEFAULT_CHANNEL).and_then(|name| name.parse().ok());
                // Only a default that the package is going to have can be one.
                default_channel = default.filter(|default| channels.contains(default));
                first = Some((bundle.name, channels));
            }
        }
    }
    request.channels = first.map(|(_, channels)| channels).unwrap_or_default();
    Ok(default_channel)
}

/// A bundle as catalogs hold it. Its image is what the template says, else the one in a registry that it was read from.
pub(super) fn render_bundle(
    parsed: &Bundle<'_>,
    input: &Input,
    template: Option<&str>,
    form: Form,
) -> Result<Rendered, Failure> {
    let image = match (template, input) {
        (Some(template), _) => fill(template, parsed)?,
        (None, Input::Image(Place::Registry(reference))) => reference.whole(),
        _ => String::new(),
    };
    if let Err(error) = image.parse::<ImageRef>()
        && !image.is_empty()
    {
        return Err(Failure::misuse(error).help(
            "give --image-ref-template a reference such as `registry.example.com/{{.Package}}:v{{.Version}}`",
        ));
    }
    render::bundle(parsed, &render::Options::new(image, form)).map_err(|error| {
        let place = error.place().cloned();
        Failure::no(error).at(place).help(format!("run `olmkit bundle validate {}`", argument(input)))
    })
}

/// Fills in what opm's templates know.
///
/// # Errors
/// The template has another field, or one that does not end.
fn fill(template: &str, bundle: &Bundle<'_>) -> Result<String, Failure> {
    let package = bundle.annotations().map(|annotations| annotations.package()).unwrap_or_default();
    let csv = bundle.csv().map(|csv| csv.typed);
    let name = csv.map(|csv| csv.name()).unwrap_or_default();
    let version = csv.map(|csv| csv.spec.version.as_str()).unwrap_or_default();
    let values = [("Package", package.as_str()), ("Name", name), ("Version", version)];
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once("{{") {
        let Some((key, after)) = from.split_once("}}") else {
            let error =
                format!("`--image-ref-template` has a field without `}}}}`: `{{{{{}`", from.escape_debug());
            return Err(Failure::misuse(error).help("write it like `{{.Version}}`"));
        };
        let key = key.trim();
        let Some((_, value)) = values.iter().find(|(name, _)| key.strip_prefix('.') == Some(*name)) else {
            return Err(unknown_field(key));
        };
        text += before;
        text += value;
        rest = after;
    }
    Ok(text + rest)
}

fn unknown_field(key: &str) -> Failure {
    const FIELDS: [&str; 3] = ["Package", "Name", "Version"];
    let near =
        nearest(key.trim_start_matches('.'), FIELDS).map(|near| format!("did you mean `{{{{.{near}}}}}`? "));
    let error = format!("`--image-ref-template` has no field `{{{{{}}}}}`", key.escape_debug());
    Failure::misuse(error).help(format!(
        "{}the fields are `{{{{.Package}}}}`, `{{{{.Name}}}}` and `{{{{.Version}}}}`",
        near.unwrap_or_default()
    ))
}

/// Validates every catalog, and answers with all findings in the order of the catalogs.
///
/// # Errors
/// When an input cannot be read at all.
pub fn validate(catalogs: &[Input], levels: &Levels, access: &Access) -> Result<Checked, Failure> {
    let mut answer = Checked::new("catalog");
    for catalog in catalogs {
        answer.findings.extend(levels.apply(validate::advise(&Catalog::parse(&catalog.catalog(access)?))));
    }
    answer.inputs = catalogs.iter().map(Input::to_string).collect();
    Ok(answer)
}

/// Which ways to show.
#[derive(Debug)]
pub struct PathRequest {
    /// The catalog.
    pub catalog: Input,
    /// Filter by package.
    pub package: Option<String>,
    /// In this channel only.
    pub channel: Option<String>,
    /// From this ClusterServiceVersion only.
    pub from: Option<String>,
    /// OLM version whose rules apply.
    pub rules: Rules,
    /// An older catalog, whose bundles must still have their ways.
    pub since: Option<Input>,
}

/// Each version's way to the head of its channel.
///
/// # Errors
/// When the catalog cannot be read, what is asked about is not there, or a channel cannot be followed.
pub fn path(request: &PathRequest, access: &Access) -> Result<UpgradePaths, Failure> {
    let files = request.catalog.catalog(access)?;
    let catalog = Catalog::parse(&files);
    complete(&catalog, &request.catalog)?;
    let older = request.since.as_ref().map(|older| older.catalog(access)).transpose()?;
    let older = older.as_ref().map(Catalog::parse);
    if let Some((older, input)) = older.as_ref().zip(request.since.as_ref()) {
        complete(older, input)?;
    }
    let from = match &request.from {
        Some(from) => Some(named(from, request.package.as_deref(), std::iter::once(&catalog).chain(&older))?),
        None => None,
    };
    let query = Query {
        since: older.as_ref(),
        package: request.package.as_deref(),
        channel: request.channel.as_deref(),
        from: from.as_deref(),
        rules: request.rules,
    };
    let within = Within { catalog: &catalog, input: &request.catalog, package: query.package };
    let paths = paths(&catalog, &query).map_err(|error| within.failure(error))?;
    Ok(paths)
}

/// The bundle of a version; a name stays as it is.
fn named<'c, 'a: 'c>(
    from: &str,
    package: Option<&str>,
    catalogs: impl Iterator<Item = &'c Catalog<'a>>,
) -> Result<String, Failure> {
    let version = from.strip_prefix('v').unwrap_or(from);
    if version.parse::<Version>().is_err() {
        return Ok(from.to_owned());
    }
    let all = catalogs.flat_map(|catalog| list::bundles(catalog, package));
    let names: BTreeSet<String> = all
        .filter(|bundle| bundle.version.as_deref() == Some(version))
        .map(|bundle| bundle.name.to_owned())
        .collect();
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (None, _) => Ok(from.to_owned()),
        (Some(name), None) => Ok(name),
        (Some(first), Some(second)) => {
            let error =
                format!("several bundles have the version `{version}`, such as `{first}` and `{second}`");
            Err(Failure::misuse(error).help("pass --package, or the name of the ClusterServiceVersion"))
        }
    }
}

/// What to list.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    /// Packages.
    Packages,
    /// Channels.
    Channels,
    /// Bundles.
    Bundles,
}

/// What a catalog holds of one kind.
#[derive(Debug)]
pub enum Items<'c> {
    /// Packages.
    Packages(Vec<PackageItem<'c>>),
    /// Channels.
    Channels(Vec<ChannelItem<'c>>),
    /// Bundles.
    Bundles(Vec<BundleItem<'c>>),
}

/// What a catalog holds, as `shown` takes it over: the items borrow from the catalog.
///
/// # Errors
/// When the catalog cannot be read, or does not have the package.
pub fn list<R>(
    what: Listed,
    catalog: &Input,
    package: Option<&str>,
    access: &Access,
    shown: impl FnOnce(&Items<'_>) -> R,
) -> Result<R, Failure> {
    let files = catalog.catalog(access)?;
    let parsed = Catalog::parse(&files);
    complete(&parsed, catalog)?;
    if let Some(package) = package
        && parsed.packages.iter().all(|found| *found.name != *package)
    {
        let within = Within { catalog: &parsed, input: catalog, package: None };
        let error = format!("`{catalog}` has no package `{package}`");
        return Err(Failure::no(error).help(within.help(What::Package, package)));
    }
    Ok(shown(&match what {
        Listed::Packages => Items::Packages(list::packages(&parsed, package)),
        Listed::Channels => Items::Channels(list::channels(&parsed, package)),
        Listed::Bundles => Items::Bundles(list::bundles(&parsed, package)),
    }))
}

/// Refuses a catalog of which a part cannot be read: what is missing would not be missed.
pub(super) fn complete(catalog: &Catalog<'_>, input: &dyn Display) -> Result<(), Failure> {
    let Some(fault) = catalog.faults.first() else { return Ok(()) };
    let place = catalog.place(fault.at);
    let mut findings = validate::validate(catalog).into_iter();
    let why = findings.find(|finding| finding.place.as_ref() == Some(&place));
    let error = match why {
        Some(finding) => format!("a part of `{input}` cannot be read: {}", finding.message),
        None => format!("a part of `{input}` cannot be read"),
    };
    let failure = match fault.kind {
        FaultKind::NoText(_) => Failure::unknown(error),
        _ => Failure::no(error),
    };
    let input = argument(input);
    Err(failure.at(Some(place)).help(format!("run `olmkit catalog validate {input}` to list every problem")))
}

/// What to draw.
#[derive(Debug)]
pub struct GraphRequest {
    /// The catalog.
    pub catalog: Input,
    /// Filter by package.
    pub package: Option<String>,
    /// Of this channel only.
    pub channel: Option<String>,
    /// From this bundle's version on.
    pub minimum_edge: Option<String>,
    /// Whether to mark what OLM v0 does not go through.
    pub v0_semantics: bool,
    /// How.
    pub format: draw::Format,
}

/// The upgrade graph as a picture.
///
/// # Errors
/// When the catalog cannot be read, or what is asked for is not there.
pub fn graph(request: &GraphRequest, access: &Access) -> Result<FileText, Failure> {
    let files = request.catalog.catalog(access)?;
    let catalog = Catalog::parse(&files);
    complete(&catalog, &request.catalog)?;
    let mut options = draw::Options::default();
    options.package = request.package.as_deref();
    options.channel = request.channel.as_deref();
    options.minimum_edge = request.minimum_edge.as_deref();
    options.v0_semantics = request.v0_semantics;
    let within = Within { catalog: &catalog, input: &request.catalog, package: options.package };
    let drawing = draw::Drawing::of(&catalog, &options).map_err(|error| {
        let help = match &error {
            draw::DrawError::Missing { what, name, .. } => within.help(What::of(what), name),
            _ => format!("run `olmkit catalog validate {}`", argument(&request.catalog)),
        };
        Failure::no(error).help(help)
    })?;
    Ok(FileText { text: drawing.text(request.format) })
}
