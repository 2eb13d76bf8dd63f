//! Bundles of a catalog in their newer form.

use olmkit_bundle::csv::ClusterServiceVersion;

use super::csv_metadata;
use super::embedded::csv_of;
use super::properties::Property;
use crate::fbc::{self, property};

/// Gives bundles that have an image and their manifests the newer form, as [`Form::Metadata`](super::Form::Metadata) has it. Others stay as they are.
///
/// # Errors
/// When the ClusterServiceVersion of a bundle cannot be read.
pub fn migrate(catalog: &mut fbc::Catalog<'_>) -> Result<(), MigrateError> {
    for bundle in &mut catalog.bundles {
        if let Some(new) = migrated(bundle)? {
            *bundle = new;
        }
    }
    Ok(())
}

/// The newer form of a bundle; none when it has that already, or has to keep its manifests.
pub(crate) fn migrated<'a>(bundle: &fbc::Bundle<'a>) -> Result<Option<fbc::Bundle<'a>>, MigrateError> {
    let is = |kind: &str, found: &fbc::Property<'_>| *found.kind == *kind;
    if bundle.image.is_empty() || bundle.properties.iter().any(|found| is(property::CSV_METADATA, found)) {
        return Ok(None);
    }
    let Some(csv) = csv_of(bundle) else { return Ok(None) };
    let csv: ClusterServiceVersion = serde_json::from_value(csv)
        .map_err(|source| MigrateError { bundle: bundle.name.to_string(), source })?;
    let kept = bundle.properties.iter().filter(|found| !is(property::BUNDLE_OBJECT, found)).cloned();
    let metadata = Property::new(property::CSV_METADATA, csv_metadata::value(&csv));
    let properties = kept.chain([metadata.into()]).collect();
    let (at, name, package) = (bundle.at, bundle.name.clone(), bundle.package.clone());
    let (image, related_images) = (bundle.image.clone(), bundle.related_images.clone());
    Ok(Some(fbc::Bundle {
        at,
        name,
        package,
        image,
        properties,
        related_images,
        unknown: bundle.unknown.clone(),
    }))
}

/// A bundle that cannot have its newer form.
#[derive(Debug, thiserror::Error)]
#[error("the ClusterServiceVersion in the blob of `{bundle}` cannot be read")]
pub struct MigrateError {
    /// The bundle.
    pub bundle: String,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}
