//! Which key of the package file makes a field of a generated bundle.

use super::draft::PathStep;
use super::explain;
use super::package_file::PackageFile;
use crate::annotations;
use crate::csv::annotation;
use crate::finding::{Finding, MadeBy, Place};
use crate::yaml::{self, Node, Step};

/// What the package file and the ClusterServiceVersion's `spec` call by one name.
pub(super) const OF_ONE_NAME: [&str; 9] = [
    "displayName",
    "provider",
    "maintainers",
    "links",
    "keywords",
    "maturity",
    "minKubeVersion",
    "relatedImages",
    "nativeAPIs",
];

/// Annotations of the ClusterServiceVersion whose values are those of a key.
pub(super) const ANNOTATIONS: [(&str, &str); 6] = [
    (annotation::CAPABILITIES, "capabilities"),
    (annotation::CONTAINER_IMAGE, "containerImage"),
    (annotation::REPOSITORY, "repository"),
    (annotation::SUPPORT, "support"),
    (annotation::SUGGESTED_NAMESPACE, "suggestedNamespace"),
    ("license", "license"),
];

/// Other fields of the ClusterServiceVersion's `spec`, each with the key that sets it; `None` for those made from the operator's manifests.
const OF_OTHER_NAME: [(&str, Option<&str>); 10] = [
    ("description", Some("description")),
    ("icon", Some("icon")),
    ("installModes", Some("installModes")),
    ("version", Some("version")),
    ("release", Some("release")),
    ("replaces", Some("replaces")),
    ("skips", Some("skips")),
    ("install", None),
    ("webhookdefinitions", None),
    // Without a list in them.
    ("customresourcedefinitions", None),
];

/// Whether a key of `spec` has a key of the package file to itself, or comes from the manifests: all others go below `csv`.
pub(super) fn is_known(field: &str) -> bool {
    field == "apiservicedefinitions"
        || OF_ONE_NAME.contains(&field)
        || OF_OTHER_NAME.iter().any(|(known, _)| *known == field)
}

/// The key that makes a field of a generated ClusterServiceVersion; none for what the operator's manifests make.
pub(crate) fn of_csv(path: &[Step<'_>]) -> Option<&'static str> {
    let key = |at: usize| match path.get(at) {
        Some(Step::Key(key)) => *key,
        _ => "",
    };
    match (key(0), key(1), key(2)) {
        ("metadata", "name", _) => Some("package"),
        ("metadata", "labels", _) => Some("labels"),
        ("metadata", "annotations", annotation) => of_annotation(annotation),
        ("spec", "customresourcedefinitions", "required") => Some("requiredCrds"),
        // The CRDs themselves are manifests; how they are shown is not.
        ("spec", "customresourcedefinitions", "owned") => {
            let shown = ["displayName", "description", "resources"].contains(&key(4))
                || key(4).ends_with("Descriptors");
            shown.then_some("descriptors")
        }
        ("spec", "apiservicedefinitions", "required") => Some("requiredApiServices"),
        ("spec", "apiservicedefinitions", "owned") => Some("apiServices"),
        ("spec", "apiservicedefinitions" | "", _) => None,
        ("spec", field, _) => of_spec(field),
        _ => None,
    }
}

/// What makes a field of a generated ClusterServiceVersion, as far as the field says it.
pub(crate) fn of(path: &[Step<'_>]) -> MadeBy {
    let owned = |step: &Step<'_>| match step {
        Step::Key(key) => PathStep::from(*key),
        Step::Index(at) => PathStep::Index(*at),
    };
    MadeBy { field: path.iter().map(owned).collect(), ..of_csv(path).into() }
}

/// Says of findings about a generated bundle what its package file makes their lines from: a value below `csv` has the last word, then
/// one of `annotations`, and what the file does not say comes from the base, if that has it. `base` is its path and its text.
pub fn trace(findings: &mut [Finding], file: &PackageFile<'_>, base: Option<(&str, &str)>) {
    let document = base.and_then(|(_, text)| yaml::first_document(text).ok());
    for finding in findings {
        let Some(Place { made_by, .. }) = &mut finding.place else { continue };
        let overlaid = file.node("csv").and_then(|csv| overlaid(csv, &made_by.field));
        if let Some(path) = overlaid.or_else(|| annotated(file, &made_by.field)) {
            made_by.key = Some(path.into());
            continue;
        }
        // What the manifests, a flag or the catalog decide is never the base's.
        let key = made_by
            .key
            .as_deref()
            .filter(|key| !["package", "version", "release", "descriptors"].contains(key));
        let is_of_base = |key: &str| {
            let found = document.as_ref().and_then(|document| value(&document.root, &made_by.field));
            file.node(key).is_none() && found.is_some_and(|node| !node.is_null())
        };
        if let (Some(_), Some((path, _))) = (key.filter(|key| is_of_base(key)), base) {
            made_by.key = None;
            made_by.base = Some(path.to_owned());
        }
    }
}

/// The path of the value below `csv` that sets a field, or all of a list that it is in.
fn overlaid(csv: &Node<'_>, field: &[PathStep]) -> Option<String> {
    let (mut at, mut path) = (csv, "csv".to_owned());
    for step in field {
        let (PathStep::Key(key), Some(map)) = (step, at.as_mapping()) else { break };
        at = map.get(key)?;
        path = explain::with_key(path, key);
    }
    at.as_mapping().is_none().then_some(path)
}

/// The annotation of the package file that a field is in.
fn annotated(file: &PackageFile<'_>, field: &[PathStep]) -> Option<String> {
    let [PathStep::Key(metadata), PathStep::Key(annotations), PathStep::Key(name), ..] = field else {
        return None;
    };
    let is_one = metadata == "metadata" && annotations == "annotations";
    file.node("annotations").filter(|_| is_one)?.get(name)?;
    Some(explain::with_key("annotations".to_owned(), name))
}

/// The value of a field.
fn value<'n, 'a>(root: &'n Node<'a>, field: &[PathStep]) -> Option<&'n Node<'a>> {
    field.iter().try_fold(root, |at, step| match step {
        PathStep::Key(key) => at.get(key),
        PathStep::Index(index) => at.as_sequence()?.get(*index),
    })
}

fn of_spec(field: &str) -> Option<&'static str> {
    let same = OF_ONE_NAME.into_iter().find(|known| *known == field);
    let other = || OF_OTHER_NAME.into_iter().find(|(known, _)| *known == field);
    same.or_else(|| other().map_or(Some("csv"), |(_, key)| key))
}

fn of_annotation(annotation: &str) -> Option<&'static str> {
    match annotation {
        annotation::ALM_EXAMPLES | annotation::OLM_EXAMPLES => Some("samples"),
        annotation::CATEGORIES => Some("categories"),
        annotation::SKIP_RANGE => Some("skipRange"),
        annotation::CREATED_AT => None,
        _ => {
            let known = ANNOTATIONS.into_iter().find(|(known, _)| *known == annotation);
            Some(known.map_or("annotations", |(_, key)| key))
        }
    }
}

/// The key that makes an annotation in a generated `metadata/annotations.yaml`; none for what the format demands.
pub(crate) fn of_bundle_annotation(annotation: &str) -> Option<&'static str> {
    match annotation {
        annotations::PACKAGE => Some("package"),
        annotations::CHANNELS => Some("channels"),
        annotations::DEFAULT_CHANNEL => Some("defaultChannel"),
        annotations::VERSION_POLICY => Some("versionPolicy"),
        annotations::IMAGE_REF_TEMPLATE => Some("imageRefTemplate"),
        other => (!annotations::is_generated(other)).then_some("bundleAnnotations"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::init::KEYS;
    use super::*;

    #[test]
    fn every_key_is_one_of_the_package_file() {
        let of_annotations = ANNOTATIONS.into_iter().map(|(_, key)| key);
        let others = OF_OTHER_NAME.into_iter().filter_map(|(_, key)| key);
        for key in OF_ONE_NAME.into_iter().chain(of_annotations).chain(others) {
            assert!(KEYS.iter().any(|(known, _)| *known == key), "{key}");
        }
    }
}
