//! Whether what a version removes was deprecated before, for as long as the package promises.

use std::collections::BTreeSet;

use super::version_place;
use crate::crd::Crd;
use crate::diff::codes;
use crate::finding::{Finding, Findings, Place};
use crate::parse::{Bundle, Csv, Object};
use crate::schema::{Additional, Schema};
use crate::version::Version;

/// Something that users may rely on, and that is removed.
struct Removed {
    crd: String,
    version: String,
    /// The field; empty for the whole version.
    field: Vec<String>,
    place: Place,
}

/// The step of a path into the items of a list, and into the values of a map.
const ITEMS: &str = "[]";
const VALUES: &str = "*";

/// Finds what the new version removes too early.
pub(super) fn check(
    notice: usize,
    (old, old_csv): (&Bundle<'_>, &Csv<'_, '_>),
    (new, new_csv): (&Bundle<'_>, &Csv<'_, '_>),
    history: &[&Bundle<'_>],
    findings: &mut Findings,
) {
    let version = |csv: &Csv<'_, '_>| Version::parse(&csv.typed.spec.version).ok();
    let (from, to) = (version(old_csv), version(new_csv));
    // The versions up to the old one, newest first.
    let mut earlier: Vec<(Version, &Bundle<'_>)> = history
        .iter()
        .filter_map(|bundle| Some((version(&bundle.csv()?)?, *bundle)))
        .filter(|(version, _)| from.as_ref().is_some_and(|from| version < from))
        .collect();
    earlier.sort_by(|(a, _), (b, _)| b.cmp(a));
    for removed in removed(old, new) {
        let deprecated = |bundle: &Bundle<'_>| removed.is_deprecated(bundle);
        let mut minors = BTreeSet::new();
        if deprecated(old) {
            minors.extend(from.iter().map(|from| (from.major, from.minor)));
            let while_deprecated = earlier.iter().take_while(|(_, bundle)| deprecated(bundle));
            minors.extend(while_deprecated.map(|(version, _)| (version.major, version.minor)));
        }
        // A patch does not end the minor version that it belongs to.
        minors.retain(|minor| to.as_ref().is_none_or(|to| (to.major, to.minor) != *minor));
        let known = if history.is_empty() { notice.min(1) } else { notice };
        if minors.len() >= known {
            continue;
        }
        let what = removed.name();
        let times = |count: usize| {
            if count == 1 { "1 minor version".into() } else { format!("{count} minor versions") }
        };
        let message = match minors.len() {
            0 => format!("{what} is removed without being deprecated for {} before", times(notice)),
            count => format!(
                "{what} is removed after it was deprecated for {}, not for {}",
                times(count),
                times(notice)
            ),
        };
        let how = if removed.field.is_empty() {
            "set `deprecated: true` for the version"
        } else {
            "begin the field's description with `Deprecated:`"
        };
        let finding = Finding::new(&codes::POLICY_NOTICE_TOO_SHORT, message)
            .at(version_place(new_csv))
            .and(removed.place.clone().label("removed"))
            .subject(format!("CustomResourceDefinition/{}", removed.crd));
        findings.push(finding.help(format!("keep it, {how}, and remove it {} later", times(notice))));
    }
}

impl Removed {
    fn name(&self) -> String {
        let Self { crd, version, field, .. } = self;
        match field.join(".").replace(".[]", "[]") {
            field if field.is_empty() => format!("the version `{version}` of `{crd}`"),
            field => format!("`{field}` of `{crd}`, version `{version}`,"),
        }
    }

    /// Whether a bundle tells users that it will go.
    fn is_deprecated(&self, bundle: &Bundle<'_>) -> bool {
        let Some(object) = bundle.crds().find(|crd| crd.name() == self.crd) else { return false };
        let crd = Crd::from(object);
        let Some(version) = crd.versions().into_iter().find(|version| version.name == self.version) else {
            return false;
        };
        if Schema(version.node).flag("deprecated") {
            return true;
        }
        let mut schema = match (self.field.is_empty(), crd.schema(&version)) {
            (false, Some(schema)) => Schema(schema),
            _ => return false,
        };
        // A field goes with the one that it is in.
        self.field.iter().any(|step| {
            let Some(below) = below(schema, step) else { return false };
            schema = below;
            schema.text("description").lines().any(says_deprecated)
        })
    }
}

/// Whether a line says so itself, as `Deprecated: use x` does, and `This is not deprecated` does not.
fn says_deprecated(line: &str) -> bool {
    line.trim_start().to_lowercase().starts_with("deprecated")
}

fn below<'b, 'a>(schema: Schema<'b, 'a>, step: &str) -> Option<Schema<'b, 'a>> {
    match (step, schema.additional()) {
        (ITEMS, _) => schema.items(),
        (VALUES, Additional::Schema(values)) => Some(values),
        (name, _) => schema.property(name),
    }
}

/// What is served by the old version, and not by the new one.
fn removed(old: &Bundle<'_>, new: &Bundle<'_>) -> Vec<Removed> {
    let mut removed = Vec::new();
    for object in old.crds() {
        let next = new.crds().find(|crd| crd.name() == object.name());
        let crd = Crd::from(object);
        for version in crd.versions().into_iter().filter(|version| version.is_served()) {
            let place = object.place_at(version.span);
            let one = |field, place| Removed {
                crd: object.name().to_owned(),
                version: version.name.to_string(),
                field,
                place,
            };
            let still = next.map(Crd::from).and_then(|next| {
                let is_it =
                    |other: &crate::crd::CrdVersion<'_, '_>| other.name == version.name && other.is_served();
                Some((next, next.versions().into_iter().find(is_it)?))
            });
            let Some((next, still)) = still else {
                removed.push(one(Vec::new(), place));
                continue;
            };
            if let (Some(before), Some(after)) = (crd.schema(&version), next.schema(&still)) {
                let mut fields = Vec::new();
                removed_fields((object, Schema(before)), Schema(after), &mut Vec::new(), &mut fields);
                removed.extend(fields.into_iter().map(|(field, place)| one(field, place)));
            }
        }
    }
    removed
}

/// The fields that the new schema does not have, outermost first.
fn removed_fields(
    (object, old): (Object<'_, '_>, Schema<'_, '_>),
    new: Schema<'_, '_>,
    path: &mut Vec<String>,
    removed: &mut Vec<(Vec<String>, Place)>,
) {
    if new.flag("x-kubernetes-preserve-unknown-fields") {
        return;
    }
    for (entry, before) in old.properties() {
        path.push(entry.key.to_string());
        match (new.property(&entry.key), new.additional()) {
            (Some(after), _) => removed_fields((object, before), after, path, removed),
            // Any key is a field still.
            (None, Additional::Any | Additional::Schema(_)) => {}
            (None, Additional::None) => removed.push((path.clone(), object.place_at(entry.key_span))),
        }
        path.pop();
    }
    if let (Some(before), Some(after)) = (old.items(), new.items()) {
        path.push(ITEMS.to_owned());
        removed_fields((object, before), after, path, removed);
        path.pop();
    }
    if let (Additional::Schema(before), Additional::Schema(after)) = (old.additional(), new.additional()) {
        path.push(VALUES.to_owned());
        removed_fields((object, before), after, path, removed);
        path.pop();
    }
}
