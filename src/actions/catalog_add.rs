//! `catalog add`: puts bundles into channels.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use olmkit_bundle::annotations::{CHANNELS, DEFAULT_CHANNEL, IMAGE_REF_TEMPLATE, VERSION_POLICY};
use olmkit_bundle::generate::Package;
use olmkit_bundle::names::ChannelName;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::suggest::{did_you_mean, nearest};
use olmkit_bundle::version::Version;
use olmkit_catalog::add::{self, AddError, AddReport, Edges, Placement, Policy};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::graph::VersionRelease;
use olmkit_catalog::render::{Form, Rendered};

use super::catalog_files::{catalog_dir, check_not_hidden, check_visible, load_or_new};
use super::render::render_bundle;
use super::{left_out, shipped};
use crate::exit::Failure;
use crate::image::{Access, Place};
use crate::input::Input;

/// What to add, and where to.
#[derive(Debug)]
pub struct AddRequest {
    /// The catalog's directory, which need not be there yet.
    pub catalog: PathBuf,
    /// The bundles.
    pub bundles: Vec<Input>,
    /// The channels, and how places in them are chosen.
    pub request: add::Request,
    /// The bundles' images, with `{{.Package}}`, `{{.Name}}` and `{{.Version}}` to be filled in; the template that the bundle
    /// itself names when absent.
    pub image_ref_template: Option<String>,
    /// Whether manifests go into the catalog where no image is known.
    pub embed: bool,
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
    let recorded = parsed.iter().map(Recorded::of).collect::<Result<Vec<_>, _>>()?;
    let bundles = parsed.iter().zip(&request.bundles).zip(&recorded);
    let bundles = bundles.map(|((bundle, input), recorded)| rendered(request, bundle, input, recorded));
    let bundles = bundles.collect::<Result<Vec<_>, _>>()?;
    placing.placements = bundles
        .iter()
        .zip(&recorded)
        .map(|(bundle, recorded)| (bundle.blob.name.to_string(), recorded.placement.clone()))
        .collect();
    let own_default = own_default(request, &bundles, &recorded);
    let wrong =
        parsed.iter().zip(&request.bundles).map(|(bundle, input)| shipped::check_bundle(bundle, input));
    let wrong = wrong.collect::<Result<Vec<_>, Failure>>()?;
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
    let mut notes: Vec<String> = left_out::note(&left_out.concat(), "the catalog").into_iter().collect();
    notes.extend(recorded_notes(request, &recorded));
    notes.extend(change.notes);
    notes.extend(wrong.into_iter().flatten());
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
            Failure::usage(error).help(format!("{near}pass --new-channel if this is its first version"))
        );
    }
    let files = load_or_new(catalog)?;
    let parsed = Catalog::parse(&files);
    check_not_hidden(catalog, &parsed, package.name.as_str())?;
    if !new_channel && files.files.is_empty() {
        let error = format!("`{}` contains no files of a catalog", catalog.display());
        return Err(Failure::usage(error).help("pass --new-channel if this is its first version"));
    }
    let channels = parsed.channels.iter().filter(|own| *own.package == *package.name.as_str());
    let channels: Vec<&str> = channels.map(|own| own.name.as_str()).collect();
    if !new_channel && !channels.is_empty() && !channels.contains(&channel.as_str()) {
        let error = format!("`{}` has no channel `{channel}` in `{}`", package.name, catalog.display());
        let near = did_you_mean(channel.as_str(), channels.iter().copied());
        let near = near.unwrap_or_else(|| format!("its channels are `{}`;", channels.join("`, `")));
        let help = format!("{near} choose one with --channel, or pass --new-channel if it is new");
        return Err(Failure::usage(error).help(help));
    }
    let version = VersionRelease::from(package.version.clone());
    add::edges(&parsed, &package.name, channel, &package.csv_name(), &version, policy).map_err(add_failure)
}

fn add_failure(error: AddError) -> Failure {
    let (place, help) = (error.place().cloned(), error.help().map(str::to_owned));
    Failure::failed(error).help(help).at(place)
}

/// What a bundle's own `metadata/annotations.yaml` says of its place in catalogs.
#[derive(Debug, Default)]
struct Recorded {
    placement: Placement,
    default_channel: Option<ChannelName>,
    image_ref_template: Option<String>,
}

impl Recorded {
    fn of(bundle: &Bundle<'_>) -> Result<Self, Failure> {
        let Some(annotations) = bundle.annotations() else { return Ok(Self::default()) };
        let at = |key| Some(annotations.place(key));
        let channels = annotations.channels().iter().map(|name| name.parse()).collect::<Result<Vec<_>, _>>();
        let channels = channels.map_err(|error| Failure::failed(error).at(at(CHANNELS)))?;
        let policy = annotations.get(VERSION_POLICY).map(|policy| policy.parse::<Policy>()).transpose();
        let policy = policy.map_err(|error| Failure::failed(error).at(at(VERSION_POLICY)))?;
        Ok(Self {
            placement: Placement { channels, policy },
            default_channel: annotations.get(DEFAULT_CHANNEL).and_then(|name| name.parse().ok()),
            image_ref_template: annotations.get(IMAGE_REF_TEMPLATE),
        })
    }
}

/// A bundle as the catalog is going to hold it: with its image, unless its manifests are to be embedded.
fn rendered(
    request: &AddRequest,
    bundle: &Bundle<'_>,
    input: &Input,
    recorded: &Recorded,
) -> Result<Rendered, Failure> {
    let own = match input {
        // Its own reference says more than a template.
        Input::Image(Place::Registry(_)) => None,
        _ if request.embed => None,
        _ => recorded.image_ref_template.as_deref(),
    };
    let template = request.image_ref_template.as_deref().or(own);
    let rendered = render_bundle(bundle, input, template, Form::default())?;
    if rendered.blob.image.is_empty() && !request.embed {
        let error =
            format!("no image reference for `{input}`, which the catalog needs to refer to the bundle");
        return Err(Failure::usage(error).help(
            "pass --image-ref-template, such as `registry.example.com/{{.Package}}:v{{.Version}}`, or set \
             `imageRefTemplate` in the package file; --embed puts the manifests into the catalog instead",
        ));
    }
    Ok(rendered)
}

/// The default channel that the newest bundle names, where the bundles choose their channels themselves. Only one that the
/// package is going to have can be it.
fn own_default(request: &AddRequest, bundles: &[Rendered], recorded: &[Recorded]) -> Option<ChannelName> {
    if !request.request.channels.is_empty() {
        return None;
    }
    let version = |bundle: &Rendered| bundle.csv.version.parse::<Version>().ok();
    let newest = bundles.iter().zip(recorded).max_by_key(|(bundle, _)| version(bundle))?.1;
    let channels = || recorded.iter().flat_map(|recorded| &recorded.placement.channels);
    newest.default_channel.clone().filter(|default| channels().any(|channel| channel == default))
}

/// Which choices the bundles made where the command line leaves them open.
fn recorded_notes(request: &AddRequest, recorded: &[Recorded]) -> Vec<String> {
    let policies: BTreeSet<_> =
        recorded.iter().filter_map(|own| own.placement.policy).map(Policy::as_str).collect();
    let policies = policies.into_iter().filter(|_| request.request.policy.is_none());
    let policies = policies.map(|policy| {
        format!("the version policy is `{policy}`, as the bundle's `metadata/annotations.yaml` says")
    });
    let from_images = request.bundles.iter().all(|input| matches!(input, Input::Image(Place::Registry(_))));
    let is_open = request.image_ref_template.is_none() && !request.embed && !from_images;
    let templates: BTreeSet<_> =
        recorded.iter().filter_map(|own| own.image_ref_template.as_deref()).collect();
    let templates = templates.into_iter().filter(|_| is_open);
    let templates = templates.map(|template| {
        format!("the template of image references is `{template}`, as the bundle's `metadata/annotations.yaml` says")
    });
    policies.chain(templates).collect()
}
