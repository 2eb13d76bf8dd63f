//! Edits of templates.
//!
//! The `entries` of `olm.template.basic` and `olm.template.substitutes` are edited as a catalog of their own, in which bundles that are references
//! have the names that channels give them, and what comes out goes back into the template, in place. `semver` and `composite` have
//! the other templates: their channels come from versions or from other files, so some edits mean nothing there and are refused.

mod composite;
mod semver;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::blob_id::{BlobId, id};
use super::{Change, EditError, FORMAT, Keep, Request, backticked, change};
use crate::fbc::{Catalog, Other, schema};
use crate::index::Index;
use crate::load::CatalogFiles;
use crate::path::released::version_in_name;
use crate::template::schema::{COMPOSITE, SEMVER};
use crate::template::single_template;
use crate::texts::Texts;

/// The image of a bundle of which only the name is known.
const UNKNOWN: &str = "example.com/bundle:unknown";

/// Refuses a catalog that is a template: what is added to its file nothing reads.
pub(super) fn refuse_single(catalog: &Catalog<'_>) -> Result<(), EditError> {
    match single_template(catalog) {
        Some((template, place)) => {
            Err(EditError::Template { place: Box::new(place), schema: template.schema.to_string() })
        }
        None => Ok(()),
    }
}

/// Whether an edit is one of the template: it is about packages that the catalog beside it lacks.
pub(super) fn is_target(request: &Request, is_missing: impl Fn(&str) -> bool) -> bool {
    match request {
        Request::Prune(keep) => keep.packages.iter().all(|package| is_missing(package)),
        _ => request.package().is_some_and(is_missing),
    }
}

/// Why a template cannot be edited so.
pub(super) enum Refused {
    /// The edit means nothing in such a template.
    Schema,
    /// The template does not say what it takes.
    Unknown(String),
    /// No bundle would be left.
    Empty,
    /// It does not have the package.
    NoPackage { package: String, known: Vec<String> },
    /// It does not have the version.
    NoVersion {
        /// The version.
        version: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// Not `candidate`, `fast` or `stable`.
    NoMaturity(String),
}

/// Edits a template.
pub(super) fn edit(
    catalog: &Catalog<'_>,
    template: &Other<'_>,
    request: &Request,
) -> Result<Change, EditError> {
    let place = || Box::new(catalog.place(template.at.with(template.schema.span)));
    let schema = template.schema.as_str();
    let refuse = |refused: Refused| {
        let source = match refused {
            Refused::Schema => return EditError::Template { place: place(), schema: schema.to_owned() },
            Refused::Unknown(what) => {
                return EditError::NotInTemplate { place: place(), what, schema: schema.to_owned() };
            }
            Refused::Empty => return EditError::EmptyTemplate { place: place() },
            Refused::NoPackage { package, known } => EditError::NoPackage { package, known },
            Refused::NoVersion { version, known } => EditError::NoVersion {
                package: request.package().unwrap_or_default().to_owned(),
                version,
                known,
            },
            Refused::NoMaturity(channel) => EditError::NoChannel {
                package: request.package().unwrap_or("the template").to_owned(),
                channel,
                known: ["candidate", "fast", "stable"].map(str::to_owned).to_vec(),
            },
        };
        EditError::InTemplate { place: place(), source: Box::new(source) }
    };
    let old = template.to_json();
    let edited = match schema {
        SEMVER => semver::edit(&old, request),
        COMPOSITE => composite::edit(&old, request),
        _ => return edit_entries(catalog, template, request),
    };
    let (new, change) = edited.map_err(refuse)?;
    let mut texts = Texts::new(catalog, FORMAT);
    texts.set(template.at, &old, &new)?;
    Ok(Change { files: texts.finish()?, ..change })
}

/// Edits a template whose entries are a catalog.
fn edit_entries(catalog: &Catalog<'_>, template: &Other<'_>, request: &Request) -> Result<Change, EditError> {
    let place = || Box::new(catalog.place(template.at.with(template.schema.span)));
    let refused = || EditError::Template { place: place(), schema: template.schema.to_string() };
    let is_known = matches!(
        request,
        Request::Promote { .. }
            | Request::Deprecate { .. }
            | Request::Undeprecate { .. }
            | Request::Remove { .. }
            | Request::Prune(_)
            | Request::SetDefault { .. }
            | Request::RenameChannel { .. }
    );
    if !is_known {
        return Err(refused());
    }
    let old = template.to_json();
    let Some(entries) = old["entries"].as_array() else { return Err(refused()) };
    if let Request::Prune(Keep { with_dependencies: true, .. }) = request
        && entries.iter().any(is_reference)
    {
        let (what, schema) = ("what its bundles require".to_owned(), template.schema.to_string());
        return Err(EditError::NotInTemplate { place: place(), what, schema });
    }
    let named = named_bundles(entries).ok_or_else(refused)?;
    let text: String = entries.iter().filter(|entry| !is_reference(entry)).chain(&named).map(line).collect();
    let files = CatalogFiles::from_text(catalog.name, text);
    let parsed = Catalog::parse(&files);
    if !parsed.faults.is_empty() {
        return Err(refused());
    }
    let made = change(&Index::new(&parsed), &files, request)
        .map_err(|source| EditError::InTemplate { place: place(), source: Box::new(source) })?;
    let Some(file) = made.files.first() else { return Ok(made) };
    let files = CatalogFiles::from_text("", file.new.clone().unwrap_or_default());
    let after = Catalog::parse(&files);
    let mut blobs: BTreeMap<BlobId, Json> =
        after.trees().map(|(_, tree)| (id(&tree), tree.into_json())).collect();
    let before: BTreeMap<BlobId, Json> =
        parsed.trees().map(|(_, tree)| (id(&tree), tree.into_json())).collect();
    let gone: Vec<(&str, &str)> = named
        .iter()
        .filter(|bundle| !blobs.contains_key(&id_of(bundle)))
        .filter_map(|bundle| {
            Some((bundle["package"].as_str()?, bundle["properties"][0]["value"]["version"].as_str()?))
        })
        .collect();
    let is_only_package = parsed.packages.len() == 1;
    for bundle in &named {
        blobs.remove(&id_of(bundle));
    }
    let mut new = Vec::new();
    let mut references_gone = 0;
    for entry in entries {
        if is_reference(entry) {
            let image = entry["image"].as_str().unwrap_or_default();
            let version = semver::tagged_version(image).map(|version| version.to_string());
            // One of several packages is told by the repository.
            let repository = image.rsplit('/').next().unwrap_or_default();
            let is_it = |(package, gone): &(&str, &str)| {
                version.as_deref() == Some(gone) && (is_only_package || repository.contains(package))
            };
            match gone.iter().any(is_it) {
                true => references_gone += 1,
                false => new.push(entry.clone()),
            }
            continue;
        }
        let own = id_of(entry);
        match blobs.remove(&renamed(&own, request)) {
            Some(blob) if before.get(&own) == Some(&blob) => new.push(entry.clone()),
            Some(blob) => new.push(blob),
            None => {}
        }
    }
    // Only the image's tag can tell which reference is the bundle's.
    if references_gone != gone.len() {
        let versions: Vec<String> = gone.iter().map(|(_, version)| (*version).to_owned()).collect();
        let what = format!("which images are those of {}: no tags tell", backticked(&versions));
        return Err(EditError::NotInTemplate { place: place(), what, schema: template.schema.to_string() });
    }
    new.extend(blobs.into_values());
    let mut template_after = old.clone();
    template_after["entries"] = Json::Array(new);
    let mut texts = Texts::new(catalog, FORMAT);
    texts.set(template.at, &old, &template_after)?;
    Ok(Change { files: texts.finish()?, summary: made.summary })
}

/// Whether an entry is a bundle of which the template has only the image.
fn is_reference(entry: &Json) -> bool {
    entry["schema"] == schema::BUNDLE && entry.get("name").is_none()
}

/// Bundles for the names in channels that have none, with the versions in these names; none when one has no version.
fn named_bundles(entries: &[Json]) -> Option<Vec<Json>> {
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    let known: BTreeSet<(String, String)> = entries
        .iter()
        .filter(|entry| entry["schema"] == schema::BUNDLE)
        .filter_map(|bundle| Some((bundle["package"].as_str()?.into(), bundle["name"].as_str()?.into())))
        .collect();
    let mut wanted = BTreeSet::new();
    for channel in entries.iter().filter(|entry| entry["schema"] == schema::CHANNEL) {
        for entry in list(&channel["entries"]) {
            wanted.insert((channel["package"].as_str()?.to_owned(), entry["name"].as_str()?.to_owned()));
        }
    }
    let bundle = |(package, name): &(String, String)| {
        let version = version_in_name(package, name)?.to_string();
        let value = json!({"packageName": package, "version": version});
        Some(json!({
            "schema": schema::BUNDLE,
            "package": package,
            "name": name,
            "image": UNKNOWN,
            "properties": [{"type": "olm.package", "value": value}],
        }))
    };
    wanted.difference(&known).map(bundle).collect()
}

fn line(blob: &Json) -> String {
    format!("{blob}\n")
}

fn id_of(blob: &Json) -> BlobId {
    let text = |key: &str| blob[key].as_str().unwrap_or_default().to_owned();
    (text("schema"), text("package"), text("name"))
}

/// What a blob is called after the edit.
fn renamed(own: &BlobId, request: &Request) -> BlobId {
    match request {
        Request::RenameChannel { package, channel, to }
            if own.0 == schema::CHANNEL && own.1 == *package && own.2 == *channel =>
        {
            (own.0.clone(), own.1.clone(), to.to_string())
        }
        _ => own.clone(),
    }
}
