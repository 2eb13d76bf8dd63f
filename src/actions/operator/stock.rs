//! What the registry of a test is filled with, from this machine: a catalog, bundles, and images of operators.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use olmkit_bundle::names::ImageRef;
use olmkit_catalog::fbc::Catalog;
use serde_json::Value;

use super::bundles::bundles_below;
use crate::actions::{build, image};
use crate::exit::Failure;
use crate::image::{Access, Place};
use crate::input::Input;
use crate::lifecycle::engine::Progress;
use crate::lifecycle::offer::Offer;

/// Where the catalog goes.
const CATALOG: &str = "olmkit-test/catalog:latest";

/// What is pushed.
#[derive(Clone, Debug, Default)]
pub struct Stock {
    /// The catalog that names the bundles.
    pub catalog: Option<Input>,
    /// Whether this catalog is pushed and tested, and not an image.
    pub push_catalog: bool,
    /// A directory with a subdirectory for each bundle.
    pub bundles: Option<PathBuf>,
    /// Images of operators, by the references under which bundles name them.
    pub images: Vec<(String, Place)>,
}

/// What the registry has then.
#[derive(Clone, Debug, Default)]
pub(super) struct Stocked {
    /// The catalog's image, and the directory in it.
    pub(super) catalog: Option<(String, String)>,
    /// The manifests of the bundles, by their names.
    pub(super) bundles: BTreeMap<String, Vec<Value>>,
    /// The references under which nodes find what was pushed.
    pub(super) images: BTreeSet<String>,
}

impl Stock {
    /// Whether nothing is pushed.
    pub fn is_empty(&self) -> bool {
        !self.push_catalog && self.bundles.is_none() && self.images.is_empty()
    }

    /// Pushes everything to a registry that nodes ask for images of whatever host.
    ///
    /// # Errors
    /// Something cannot be read or pushed, or is not the image that a digest names.
    pub(super) fn push(
        &self,
        registry: &str,
        access: &Access,
        progress: &dyn Progress,
    ) -> Result<Stocked, Failure> {
        let mut stocked = Stocked::default();
        let told = |reference: &str| {
            progress.said(Duration::ZERO, &format!("{reference}: pushed to the registry of the test"));
        };
        for (reference, from) in &self.images {
            let (to, digest) = place(reference, registry)?;
            let copy =
                image::Copy { from: Input::Image(from.clone()), to, also_tag: Vec::new(), platform: None };
            let answer = image::copy(&copy, access)?;
            check(reference, &from.to_string(), digest.as_deref(), &answer.stored.digest.to_string())?;
            told(reference);
            stocked.images.insert(reference.clone());
        }
        let Some(catalog) = &self.catalog else { return Ok(stocked) };
        if let Some(directory) = &self.bundles {
            let offer = Offer::of(&Catalog::parse(&catalog.catalog(access)?));
            let mut found = bundles_below(directory, access)?;
            let offered = offer.packages.values().flat_map(|package| &package.bundles);
            for (name, bundle) in offered.filter(|(_, bundle)| !bundle.image.is_empty()) {
                let Some((path, manifests)) = found.remove(name) else { continue };
                let (to, digest) = place(&bundle.image, registry)?;
                let from = path.display().to_string();
                let output = build::Output {
                    to,
                    also_tag: Vec::new(),
                    push: false,
                    compression: build::BUNDLE_COMPRESSION,
                };
                let answer = build::bundle(&build::Request { input: Input::Disk(path), output }, access)?;
                check(&bundle.image, &from, digest.as_deref(), &answer.stored.digest.to_string())?;
                told(&bundle.image);
                stocked.images.insert(bundle.image.clone());
                stocked.bundles.insert(name.clone(), manifests);
            }
            if stocked.bundles.is_empty() {
                let what = format!("`{}` has no bundle of the catalog", directory.display());
                return Err(Failure::usage(what)
                    .help("name the directory that has a subdirectory for each of its bundles"));
            }
        }
        if !self.push_catalog {
            return Ok(stocked);
        }
        let to: Place = format!("{registry}/{CATALOG}").parse().map_err(Failure::incomplete)?;
        let output =
            build::Output { to, also_tag: Vec::new(), push: false, compression: build::BUNDLE_COMPRESSION };
        let request = build::Request { input: catalog.clone(), output };
        let answer = build::catalog(&request, &build::ImageBase::default(), access)?;
        let pinned = answer.stored.pinned.unwrap_or(answer.stored.reference);
        told(&pinned);
        stocked.images.insert(pinned.clone());
        stocked.catalog = Some((pinned, build::CONFIGS.to_owned()));
        Ok(stocked)
    }
}

/// Where an image goes in a registry that stands in for its own, and the digest that it must have.
fn place(reference: &str, registry: &str) -> Result<(Place, Option<String>), Failure> {
    let named: ImageRef = reference.parse().map_err(Failure::usage)?;
    // A reference by digest has no tag; that the next image takes `latest` over does not matter then.
    let tag = named.tag().unwrap_or("latest");
    let to = format!("docker://{registry}/{}:{tag}", named.repository());
    Ok((to.parse().map_err(Failure::usage)?, named.digest().map(str::to_owned)))
}

/// Refuses another image than the one that is named.
fn check(reference: &str, from: &str, wanted: Option<&str>, found: &str) -> Result<(), Failure> {
    match wanted.filter(|wanted| *wanted != found) {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "`{from}` is not the image `{reference}`: it has the digest {found}"
        ))
        .help(
            "pass the image with this digest, or omit --push-image so that the nodes pull it from its registry",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_keeps_its_repository_in_the_registry_that_stands_in_for_its_own() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let placed = |reference: &str| {
            let (to, digest) = place(reference, "127.0.0.1:5001").unwrap();
            (to.to_string(), digest)
        };
        assert_eq!(placed("quay.io/team/app:v1"), ("127.0.0.1:5001/team/app:v1".to_owned(), None));
        assert_eq!(placed("busybox"), ("127.0.0.1:5001/library/busybox:latest".to_owned(), None));
        let pinned = format!("quay.io/team/app@{digest}");
        assert_eq!(placed(&pinned), ("127.0.0.1:5001/team/app:latest".to_owned(), Some(digest.clone())));
        check(&pinned, "oci:app", Some(&digest), &digest).unwrap();
        assert!(check(&pinned, "oci:app", Some(&digest), "sha256:b").is_err());
        assert!(place("not an image", "127.0.0.1:5001").is_err());
    }
}
