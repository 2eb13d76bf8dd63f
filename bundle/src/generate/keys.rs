//! Which key of the package file makes a field of a generated bundle.

use crate::annotations;
use crate::csv::annotation;
use crate::yaml::Step;

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
