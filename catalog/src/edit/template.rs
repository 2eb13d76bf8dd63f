//! Edits of templates whose `entries` are a catalog: `olm.template.basic` and `olm.template.substitutes`.
//!
//! The entries are edited as a catalog of their own, in which bundles that are references have the names that channels give them, and what
//! comes out goes back into the template, in place. Other templates make their channels from versions or from other files: they are refused.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::version::Version;
use serde_json::{Value as Json, json};

use super::merge::{Id, id};
use super::texts::Texts;
use super::{Change, EditError, FORMAT, Request, change};
use crate::fbc::{Catalog, Other, schema};
use crate::index::Index;
use crate::load::CatalogFiles;
use crate::template::schema::{BASIC, COMPOSITE, SEMVER, SUBSTITUTES};

/// The image of a bundle of which only the name is known.
const UNKNOWN: &str = "example.com/bundle:unknown";

/// The template in a catalog's files, if there is one.
pub(super) fn find<'c, 'a>(catalog: &'c Catalog<'a>) -> Option<&'c Other<'a>> {
    let known = [BASIC, COMPOSITE, SEMVER, SUBSTITUTES];
    catalog.others.iter().find(|other| known.contains(&other.schema.as_str()))
}

/// Edits a template.
pub(super) fn edit(
    catalog: &Catalog<'_>,
    template: &Other<'_>,
    request: &Request,
) -> Result<Change, EditError> {
    let place = || Box::new(catalog.place(template.at.with(template.schema.span)));
    let refused = || EditError::Template { place: place(), schema: template.schema.to_string() };
    let is_known = matches!(
        request,
        Request::Promote { .. }
            | Request::Deprecate { .. }
            | Request::Undeprecate { .. }
            | Request::Remove { .. }
            | Request::SetDefault { .. }
            | Request::RenameChannel { .. }
    );
    if !is_known || ![BASIC, SUBSTITUTES].contains(&template.schema.as_str()) {
        return Err(refused());
    }
    let old = template.to_json();
    let Some(entries) = old["entries"].as_array() else { return Err(refused()) };
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
    let mut blobs: BTreeMap<Id, Json> =
        after.trees().map(|(_, tree)| (id(&tree), tree.into_json())).collect();
    let before: BTreeMap<Id, Json> = parsed.trees().map(|(_, tree)| (id(&tree), tree.into_json())).collect();
    let gone: BTreeSet<&str> = named
        .iter()
        .filter(|bundle| !blobs.contains_key(&id_of(bundle)))
        .filter_map(|bundle| bundle["properties"][0]["value"]["version"].as_str())
        .collect();
    for bundle in &named {
        blobs.remove(&id_of(bundle));
    }
    let mut new = Vec::new();
    let mut references_gone = 0;
    for entry in entries {
        if is_reference(entry) {
            let image = entry["image"].as_str().unwrap_or_default();
            match image.rsplit_once(':').is_some_and(|(_, tag)| gone.contains(tag.trim_start_matches('v'))) {
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
        return Err(refused());
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
        let version = name.strip_prefix(package.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let version = version.or(name.split_once('.').map(|(_, rest)| rest))?.trim_start_matches('v');
        version.parse::<Version>().ok()?;
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

fn id_of(blob: &Json) -> Id {
    let text = |key: &str| blob[key].as_str().unwrap_or_default().to_owned();
    (text("schema"), text("package"), text("name"))
}

/// What a blob is called after the edit.
fn renamed(own: &Id, request: &Request) -> Id {
    match request {
        Request::RenameChannel { package, channel, to }
            if own.0 == schema::CHANNEL && own.1 == *package && own.2 == *channel =>
        {
            (own.0.clone(), own.1.clone(), to.to_string())
        }
        _ => own.clone(),
    }
}
