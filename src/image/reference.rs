//! Names of images in registries.

use oci_spec::distribution::Reference;
use olmkit_bundle::names::{ImageRef, NameError};

/// Reads a reference by docker's grammar. Not as `oci-spec` reads it, with a regular expression that takes longer to compile
/// than an image to push.
pub(super) fn reference_from(text: &str) -> Result<Reference, NameError> {
    text.parse().map(|parsed: ImageRef| reference_of(&parsed))
}

pub(super) fn reference_of(image: &ImageRef) -> Reference {
    let (registry, repository) = (image.registry().to_owned(), image.repository().to_owned());
    match (image.tag().map(str::to_owned), image.digest().map(str::to_owned)) {
        (Some(tag), Some(digest)) => Reference::with_tag_and_digest(registry, repository, tag, digest),
        (None, Some(digest)) => Reference::with_digest(registry, repository, digest),
        (tag, None) => Reference::with_tag(registry, repository, tag.unwrap_or_else(|| "latest".into())),
    }
}
