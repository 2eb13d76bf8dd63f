//! How a bundle with APIs that OpenShift 4.9 removed keeps itself off it (operator-framework/api
//! `pkg/validation/internal/community.go`).

use super::facts::Facts;
use super::removals::{self, Table};
use crate::csv::annotation::PROPERTIES;
use crate::go;
use crate::parse::Csv;
use crate::version::{Version, parse_tolerant, precedence};

/// The first OpenShift without the APIs that Kubernetes 1.22 removed.
pub(super) const V4_9: Version = Version::new(4, 9, 0);

/// The label of a bundle's image that says on which versions of OpenShift it is offered.
const LABEL: &str = "com.redhat.openshift.versions";

/// Whether the bundle has objects that OpenShift 4.8 is the last to serve.
pub(super) fn needs_4_8(facts: &Facts<'_, '_>) -> bool {
    facts.objects().any(|object| {
        removals::find(object.api_version(), object.kind())
            .is_some_and(|removal| removal.table == Table::V1_22)
    })
}

/// What the property `olm.maxOpenShiftVersion` says.
pub(super) enum MaxVersion {
    /// There is none.
    Absent,
    /// It cannot be read, and why.
    Invalid(String),
    /// A version.
    Version(Version),
}

/// The property `olm.maxOpenShiftVersion` in the annotation `olm.properties`.
pub(super) fn max_version(csv: Csv<'_, '_>) -> MaxVersion {
    let text = csv.typed.annotation(PROPERTIES).unwrap_or("");
    if text.is_empty() {
        return MaxVersion::Absent;
    }
    let invalid = |why: &str| MaxVersion::Invalid(format!("`olm.properties` cannot be read: {why}"));
    let properties: Option<Vec<serde_json::Value>> = match serde_json::from_str(text) {
        Ok(properties) => properties,
        Err(error) => return invalid(&error.to_string().replace('`', "'")),
    };
    let mut version = None;
    for property in properties.into_iter().flatten() {
        match property {
            serde_json::Value::Null => continue,
            serde_json::Value::Object(_) => {}
            _ => return invalid("a property is not an object"),
        }
        // Go takes null for nothing.
        let text = |name: &str| match go::value_of(&property, name) {
            None | Some(serde_json::Value::Null) => Some(""),
            Some(serde_json::Value::String(text)) => Some(text.as_str()),
            Some(_) => None,
        };
        let (Some(kind), Some(value)) = (text("type"), text("value")) else {
            return invalid("`type` and `value` of a property are not both text");
        };
        if kind == "olm.maxOpenShiftVersion" && version.is_none() {
            version = Some(value.to_owned());
        }
    }
    match version.map(|version| parse_tolerant(&version).map_err(|_| version)) {
        None => MaxVersion::Absent,
        Some(Ok(version)) => MaxVersion::Version(version),
        Some(Err(text)) => MaxVersion::Invalid(format!(
            "`olm.maxOpenShiftVersion` is not a version: `{}`",
            text.replace('`', "'")
        )),
    }
}

/// Whether a version has two numbers and nothing else.
pub(super) fn is_major_minor(version: &Version) -> bool {
    precedence(version, &Version::new(version.major, version.minor, 0)).is_eq()
}

/// Why a Dockerfile does not keep its image off OpenShift 4.9, if it does not. Only the first line with the label counts.
pub(super) fn reason_not_kept_off_4_9(dockerfile: &str) -> Option<String> {
    let Some(line) = dockerfile.split('\n').find(|line| line.contains(LABEL)) else {
        return Some(format!(
            "the Dockerfile has no label `{LABEL}`, so that the image is offered on OpenShift 4.9"
        ));
    };
    let parts: Vec<_> = line.split('=').collect();
    let clean = |text: &str| text.replace(['\'', '"', 'v'], "");
    let reaches = |text: &str| match parse_tolerant(text) {
        Err(_) => Some(format!("`{}` in the label `{LABEL}` is not a version", text.replace('`', "'"))),
        Ok(version) if precedence(&version, &V4_9).is_ge() => Some(format!(
            "the label `{LABEL}` offers the image on OpenShift `{version}`, which has removed APIs of the bundle"
        )),
        Ok(_) => None,
    };
    match parts[..] {
        [] | [_] => Some(format!("the label `{LABEL}` has no value")),
        // `=v4.6`: that version alone.
        [_, _, only, ..] if !only.is_empty() => reaches(&clean(only)),
        [_, range, ..] => match clean(range).split('-').collect::<Vec<_>>()[..] {
            [text] if text.len() <= 1 => Some(format!("the label `{LABEL}` has no range")),
            [_] => Some(format!(
                "the label `{LABEL}` has no upper end, so that the image is offered on OpenShift 4.9"
            )),
            [_, last, ..] => reaches(last),
            [] => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let check = |line: &str| reason_not_kept_off_4_9(line).unwrap_or_default();
        assert_eq!(check("LABEL com.redhat.openshift.versions=\"v4.6-v4.8\""), "");
        assert_eq!(check("LABEL com.redhat.openshift.versions==v4.6"), "");
        for (line, part) in [
            ("FROM scratch", "no label"),
            ("LABEL com.redhat.openshift.versions v4.6", "no value"),
            ("LABEL com.redhat.openshift.versions=", "no range"),
            ("LABEL com.redhat.openshift.versions=v4.6", "no upper end"),
            ("LABEL com.redhat.openshift.versions=v4.6-v4.9", "offers the image"),
            ("LABEL com.redhat.openshift.versions==v4.9", "offers the image"),
            ("LABEL com.redhat.openshift.versions=v4.6-x", "is not a version"),
        ] {
            assert!(check(line).contains(part), "{line}: {}", check(line));
        }
    }
}
