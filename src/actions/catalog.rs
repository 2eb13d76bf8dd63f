//! Catalogs as they are: checked, listed and drawn, with their upgrade paths.

use std::collections::BTreeSet;

use olmkit_bundle::finding::Levels;
use olmkit_bundle::version::Version;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::list::{BundleItem, ChannelItem, PackageItem};
use olmkit_catalog::path::{Query, Rules, UpgradePaths, paths};
use olmkit_catalog::{draw, list, validate};

use super::absent::{What, Within};
use super::readable::check_readable;
use crate::actions::results::{Checked, FileText};
use crate::exit::Failure;
use crate::image::Access;
use crate::input::Input;
use crate::shell::argument;

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
    check_readable(&catalog, &request.catalog)?;
    let older = request.since.as_ref().map(|older| older.catalog(access)).transpose()?;
    let older = older.as_ref().map(Catalog::parse);
    if let Some((older, input)) = older.as_ref().zip(request.since.as_ref()) {
        check_readable(older, input)?;
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
            Err(Failure::usage(error).help("pass --package, or the name of the ClusterServiceVersion"))
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
    check_readable(&parsed, catalog)?;
    if let Some(package) = package
        && parsed.packages.iter().all(|found| *found.name != *package)
    {
        let within = Within { catalog: &parsed, input: catalog, package: None };
        let error = format!("`{catalog}` has no package `{package}`");
        return Err(Failure::failed(error).help(within.help(What::Package, package)));
    }
    Ok(shown(&match what {
        Listed::Packages => Items::Packages(list::packages(&parsed, package)),
        Listed::Channels => Items::Channels(list::channels(&parsed, package)),
        Listed::Bundles => Items::Bundles(list::bundles(&parsed, package)),
    }))
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
    check_readable(&catalog, &request.catalog)?;
    let mut options = draw::Options::default();
    options.package = request.package.as_deref();
    options.channel = request.channel.as_deref();
    options.minimum_edge = request.minimum_edge.as_deref();
    options.v0_semantics = request.v0_semantics;
    let within = Within { catalog: &catalog, input: &request.catalog, package: options.package };
    let drawing = draw::Drawing::of(&catalog, &options).map_err(|error| {
        let help = match &error {
            draw::DrawError::Missing { what, name, .. } => within.help(What::of(what), name),
            draw::DrawError::TooLarge { .. } => {
                "choose a part of it: `--package`, `--channel`, or `--minimum-edge` for the newest versions"
                    .into()
            }
            _ => format!("run `olmkit catalog validate {}`", argument(&request.catalog)),
        };
        Failure::failed(error).help(help)
    })?;
    Ok(FileText { text: drawing.text(request.format) })
}
