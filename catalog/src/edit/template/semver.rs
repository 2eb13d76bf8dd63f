//! Edits of `olm.semver` templates: which bundles are candidates, fast and stable. Channels and edges follow from their versions.
//!
//! A template has only the images of its bundles, so their versions are those of the tags.

use std::collections::BTreeSet;

use olmkit_bundle::go::same_field;
use olmkit_bundle::version::{Version, precedence};
use serde_json::{Map, Value as Json};

use super::Refused;
use crate::edit::{Change, Keep, Request, backticked, deprecate::nothing};

const MATURITIES: [&str; 3] = ["candidate", "fast", "stable"];

/// The template after an edit, and what was done.
pub(super) fn edit(old: &Json, request: &Request) -> Result<(Json, Change), Refused> {
    let mut template = old.as_object().cloned().ok_or(Refused::Schema)?;
    let package = match request {
        Request::Prune(Keep { packages, .. }) => Some(packages.as_slice()).filter(|all| all.len() == 1),
        _ => None,
    };
    let package = package.and_then(|all| all.first().map(String::as_str)).or(request.package());
    if let Some(package) = package.filter(|package| !is_named_in(&template, package)) {
        let what = format!("that it makes the package `{package}`: none of its images is named like it");
        return Err(Refused::Unknown(what));
    }
    let change = match request {
        Request::Promote { version, to, policy: None, .. } => promote(&mut template, version, to.as_str()),
        Request::Promote { .. } => {
            Err(Refused::Unknown("other edges than those between its versions".into()))
        }
        Request::Remove { version: Some(version), channel, keep_path: false, .. } => {
            remove(&mut template, version, channel.as_deref())
        }
        Request::Prune(keep) => prune(&mut template, keep),
        _ => Err(Refused::Schema),
    }?;
    if MATURITIES.iter().all(|maturity| bundles(&template, maturity).is_empty()) {
        return Err(Refused::Empty);
    }
    Ok((Json::Object(template), change))
}

/// The key of a map that matches a field, as Go matches fields.
fn key<'m>(map: &'m Map<String, Json>, field: &str) -> Option<&'m String> {
    map.keys().find(|key| same_field(key, field))
}

fn field<'m>(map: &'m Map<String, Json>, name: &str) -> Option<&'m Json> {
    map.get(key(map, name)?)
}

/// The bundles of a maturity.
fn bundles<'m>(template: &'m Map<String, Json>, maturity: &str) -> &'m [Json] {
    let of = field(template, maturity).and_then(Json::as_object);
    of.and_then(|of| field(of, "bundles")?.as_array()).map_or(&[], Vec::as_slice)
}

/// Replaces the bundles of a maturity, which goes with the last of them.
fn set_bundles(template: &mut Map<String, Json>, maturity: &str, bundles: Vec<Json>) {
    let Some(own) = key(template, maturity).cloned() else { return };
    if bundles.is_empty() {
        template.remove(&own);
    } else if let Some(of) = template.get_mut(&own).and_then(Json::as_object_mut)
        && let Some(list) = key(of, "bundles").cloned()
    {
        of.insert(list, Json::Array(bundles));
    }
}

fn image(bundle: &Json) -> &str {
    bundle.as_object().and_then(|bundle| field(bundle, "image")?.as_str()).unwrap_or_default()
}

/// The version that an image has as its tag.
pub(super) fn tagged_version(image: &str) -> Option<Version> {
    let (_, tag) = image.rsplit_once(':').filter(|(name, _)| !name.contains('@'))?;
    tag.trim_start_matches('v').parse().ok()
}

fn is_of(bundle: &Json, version: &str) -> bool {
    let wanted = version.rsplit_once(".v").map_or(version, |(_, version)| version).trim_start_matches('v');
    tagged_version(image(bundle)).is_some_and(|own| own.to_string() == wanted)
}

/// Words that say nothing of an operator.
const GENERIC: [&str; 7] =
    ["bundle", "catalog", "certified", "community", "controller", "operator", "operators"];

/// Whether the name of a package and that of an image have something in common: the template does not name its package.
fn is_named_in(template: &Map<String, Json>, package: &str) -> bool {
    let letters = |text: &str| text.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase);
        words.filter(|word| !word.is_empty() && !GENERIC.contains(&word.as_str())).collect()
    };
    let own = words(package);
    let mut images = MATURITIES.iter().flat_map(|maturity| bundles(template, maturity)).map(image);
    let is_like = |image: &str| {
        let path = image.split_once('/').map_or(image, |(_, path)| path);
        let path = path.split(['@', ':']).next().unwrap_or_default();
        let is_part = |word: &str| word.len() > 2 && letters(path).contains(word);
        is_part(&letters(package)) || own.iter().any(|word| is_part(word)) || !own.is_disjoint(&words(path))
    };
    own.is_empty() || images.any(is_like)
}

fn known_versions(template: &Map<String, Json>) -> Vec<String> {
    let all = MATURITIES.iter().flat_map(|maturity| bundles(template, maturity));
    let mut versions: Vec<Version> = all.filter_map(|bundle| tagged_version(image(bundle))).collect();
    versions.sort_by(|a, b| precedence(b, a));
    versions.dedup();
    versions.iter().map(Version::to_string).collect()
}

fn maturity(name: &str) -> Result<&'static str, Refused> {
    let found = MATURITIES.iter().find(|maturity| **maturity == name);
    found.copied().ok_or_else(|| Refused::NoMaturity(name.to_owned()))
}

fn promote(template: &mut Map<String, Json>, version: &str, to: &str) -> Result<Change, Refused> {
    let to = maturity(to)?;
    if bundles(template, to).iter().any(|bundle| is_of(bundle, version)) {
        return Ok(nothing(format!("`{version}` is already in `{to}`: nothing to change")));
    }
    let source = MATURITIES.iter().find_map(|maturity| {
        Some((maturity, bundles(template, maturity).iter().find(|bundle| is_of(bundle, version))?.clone()))
    });
    let Some((from, bundle)) = source else {
        return Err(Refused::NoVersion { version: version.to_owned(), known: known_versions(template) });
    };
    let own = tagged_version(image(&bundle));
    let mut list = bundles(template, to).to_vec();
    let is_lower = |other: &Json| {
        let (other, own) = (tagged_version(image(other)), own.as_ref());
        other.zip(own).is_some_and(|(other, own)| precedence(&other, own).is_lt())
    };
    let at = if list.is_sorted_by_key(|other| !is_lower(other)) {
        list.partition_point(is_lower)
    } else {
        list.len()
    };
    list.insert(at, bundle);
    if key(template, to).is_some() {
        set_bundles(template, to, list);
    } else if let Some(source) = key(template, from).cloned()
        && let Some(of) = template.get(&source).and_then(Json::as_object)
        && let Some(list_key) = key(of, "bundles").cloned()
    {
        // Written as the maturity beside it: some people have capitals.
        let is_capital = source.starts_with(|c: char| c.is_uppercase());
        let name = if is_capital { to[..1].to_uppercase() + &to[1..] } else { to.to_owned() };
        template.insert(name, Json::Object([(list_key, Json::Array(list))].into_iter().collect()));
    }
    Ok(Change { files: Vec::new(), summary: vec![format!("`{version}` is in `{to}`")] })
}

fn remove(template: &mut Map<String, Json>, version: &str, channel: Option<&str>) -> Result<Change, Refused> {
    let from = match channel {
        Some(channel) => vec![maturity(channel)?],
        None => MATURITIES.to_vec(),
    };
    let mut summary = Vec::new();
    for maturity in from {
        let list = bundles(template, maturity);
        let kept: Vec<Json> = list.iter().filter(|bundle| !is_of(bundle, version)).cloned().collect();
        if kept.len() < list.len() {
            set_bundles(template, maturity, kept);
            summary.push(format!("removed `{version}` from `{maturity}`"));
        }
    }
    if summary.is_empty() {
        return Ok(nothing(format!("no image of the template has the tag `{version}`: nothing to remove")));
    }
    Ok(Change { files: Vec::new(), summary })
}

fn prune(template: &mut Map<String, Json>, keep: &Keep) -> Result<Change, Refused> {
    if keep.packages.len() != 1 {
        return Err(Refused::Unknown("the package that it belongs to, so that only one can be kept".into()));
    }
    if keep.with_dependencies {
        return Err(Refused::Unknown("what its bundles require".into()));
    }
    let kept: Vec<&str> = keep
        .channels
        .iter()
        .map(|name| maturity(name.rsplit_once('/').map_or(name, |(_, name)| name)))
        .collect::<Result<_, _>>()?;
    let is_on = |name: &str| field(template, name).and_then(Json::as_bool).unwrap_or(false);
    let has_minor = is_on("generateMinorChannels") || !is_on("generateMajorChannels");
    let mut removed = 0;
    for name in MATURITIES {
        let list = bundles(template, name).to_vec();
        let versions: Vec<Option<Version>> =
            list.iter().map(|bundle| tagged_version(image(bundle))).collect();
        let needs_versions = keep.min_version.is_some() || keep.heads_only;
        if let Some(at) = versions.iter().position(Option::is_none).filter(|_| needs_versions) {
            return Err(Refused::Unknown(format!("the version of `{}`", image(&list[at]))));
        }
        let is_high_enough = |version: &Version| {
            keep.min_version.as_ref().is_none_or(|least| precedence(version, least).is_ge())
        };
        let channel = |version: &Version| (version.major, has_minor.then_some(version.minor));
        let is_head = |version: &Version| {
            let others = versions.iter().flatten().filter(|other| channel(other) == channel(version));
            others.into_iter().all(|other| precedence(other, version).is_le())
        };
        let is_wanted = |version: &Option<Version>| {
            version.as_ref().is_none_or(|v| is_high_enough(v) && (!keep.heads_only || is_head(v)))
        };
        let left = if kept.is_empty() || kept.contains(&name) {
            let both = list.iter().zip(&versions);
            both.filter(|(_, version)| is_wanted(version)).map(|(bundle, _)| bundle.clone()).collect()
        } else {
            Vec::new()
        };
        if left.len() < list.len() {
            removed += list.len() - left.len();
            set_bundles(template, name, left);
        }
    }
    if removed == 0 {
        return Ok(nothing("the template has nothing else: nothing to remove".into()));
    }
    let left: BTreeSet<&str> =
        MATURITIES.into_iter().filter(|name| !bundles(template, name).is_empty()).collect();
    let left: Vec<String> = left.into_iter().map(str::to_owned).collect();
    let images = if removed == 1 { "1 image".to_owned() } else { format!("{removed} images") };
    Ok(Change { files: Vec::new(), summary: vec![format!("removed {images}; {} left", are(&left))] })
}

fn are(names: &[String]) -> String {
    format!("{} {}", backticked(names), if names.len() == 1 { "is" } else { "are" })
}
