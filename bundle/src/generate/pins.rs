//! Tags to digests: which images a bundle names, and the rewriting of them once somebody has asked their registries.

use std::collections::{BTreeMap, BTreeSet};

use super::codes;
use super::draft::{By, Draft, Origin};
use super::package::{ImageOverride, split_reference};
use crate::csv::annotation;
use crate::finding::{Finding, Findings};
use crate::names::ImageRef;
use crate::suggest::did_you_mean;

/// Variables of this name tell an operator which images to run.
pub(super) const VARIABLE: &str = "RELATED_IMAGE_";

/// What registries said of the images that a bundle names: the reference with a digest, or why there is none.
pub type Pins = BTreeMap<String, Result<String, String>>;

/// The images of a ClusterServiceVersion that are named by a tag, as they are written there.
///
/// ```
/// use olmkit_bundle::generate::{Builder, pinned};
/// assert_eq!(pinned("quay.io/a/b:v1", "sha256:0a"), "quay.io/a/b@sha256:0a");
/// ```
pub fn unpinned(csv: &Draft<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut csv = csv.clone();
    each(&mut csv, &mut |image| {
        let text = image.as_str().unwrap_or("");
        if text.parse::<ImageRef>().is_ok_and(|image| image.digest().is_none()) {
            found.insert(text.to_owned());
        }
    });
    found
}

/// A reference with a digest in place of its tag, and otherwise as somebody wrote it.
pub fn pinned(reference: &str, digest: &str) -> String {
    let name_starts = reference.rfind('/').map_or(0, |slash| slash + 1);
    let name = match reference[name_starts..].find(':') {
        Some(colon) => &reference[..name_starts + colon],
        None => reference,
    };
    format!("{name}@{digest}")
}

/// Names images as the command line says; an override that is about no image is an error.
pub(super) fn rename<'a>(csv: &mut Draft<'a>, images: &[ImageOverride], findings: &mut Findings) {
    let by_name: BTreeMap<_, _> = images.iter().map(|over| (over.name.as_str(), over)).collect();
    let mut names = BTreeSet::new();
    each(csv, &mut |image: &mut Draft<'a>| {
        let Some(text) = image.as_str().map(str::to_owned) else { return };
        let name = split_reference(&text).0;
        names.insert(name.to_owned());
        if let Some(new) = by_name.get(name).and_then(|over| over.apply(&text)) {
            image.set(&[], Draft::new(new, Origin::unwritten(By::Flag("--image"))));
        }
    });
    for over in images.iter().filter(|over| !names.contains(&over.name)) {
        let message = format!("`--image`: no image of the operator is named `{}`", over.name);
        let help = did_you_mean(&over.name, names.iter().map(String::as_str)).unwrap_or_else(|| {
            format!("its images are `{}`", names.iter().map(String::as_str).collect::<Vec<_>>().join("`, `"))
        });
        findings.push(Finding::new(&codes::PACKAGE_VALUE_INVALID, message).help(help));
    }
}

/// Puts the digests in.
pub(super) fn apply<'a>(csv: &mut Draft<'a>, pins: &Pins, findings: &mut Findings) {
    each(csv, &mut |image: &mut Draft<'a>| match image.as_str().and_then(|text| pins.get(text)) {
        Some(Ok(pinned)) => image.set(&[], Draft::new(pinned.as_str(), Origin::unwritten(By::Registry))),
        Some(Err(why)) => {
            let message = format!("the digest of `{}` is not known: {why}", image.as_str().unwrap_or(""));
            findings.push(image.finding(&codes::IMAGE_UNRESOLVED, message));
        }
        None => {}
    });
}

/// Every place of a ClusterServiceVersion that names an image which the operator runs.
pub(super) fn each<'a>(csv: &mut Draft<'a>, visit: &mut dyn FnMut(&mut Draft<'a>)) {
    for related in csv.at_mut(&["spec", "relatedImages"]).map(Draft::items_mut).unwrap_or_default() {
        related.at_mut(&["image"]).map(&mut *visit);
    }
    csv.at_mut(&["metadata", "annotations", annotation::CONTAINER_IMAGE]).map(&mut *visit);
    let path = ["spec", "install", "spec", "deployments"];
    for deployment in csv.at_mut(&path).map(Draft::items_mut).unwrap_or_default() {
        for list in ["containers", "initContainers"] {
            let path = ["spec", "template", "spec", list];
            for container in deployment.at_mut(&path).map(Draft::items_mut).unwrap_or_default() {
                container.at_mut(&["image"]).map(&mut *visit);
                for variable in container.at_mut(&["env"]).map(Draft::items_mut).unwrap_or_default() {
                    if variable.text("name").starts_with(VARIABLE) {
                        variable.at_mut(&["value"]).map(&mut *visit);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_takes_the_place_of_the_tag() {
        for (reference, expected) in [
            ("redis", "redis@d"),
            ("redis:7", "redis@d"),
            ("localhost:5000/redis", "localhost:5000/redis@d"),
            ("localhost:5000/a/redis:7", "localhost:5000/a/redis@d"),
        ] {
            assert_eq!(pinned(reference, "d"), expected);
        }
    }
}
