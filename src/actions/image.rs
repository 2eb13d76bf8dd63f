//! `image …`, `bundle push` and `catalog push`: images as they are, from place to place.

use crate::actions::results::StoredImage;
use crate::exit::Failure;
use crate::image::Place;
use crate::image::{Access, Image, Platform, Root};
use crate::image::{Config, Digest};
use crate::input::Input;

/// What to copy, and where to.
#[derive(Debug)]
pub struct Copy {
    /// The image.
    pub from: Input,
    /// Where it goes.
    pub to: Place,
    /// Other tags that it gets there.
    pub also_tag: Vec<String>,
    /// The platform whose image is copied; all of them when none is given.
    pub platform: Option<Platform>,
}

/// The digest of an image.
#[derive(Debug)]
pub struct ImageDigest {
    /// The digest of its manifest or index.
    pub digest: Digest,
    /// The platforms, and the digest of the image for each.
    pub platforms: Vec<(String, Digest)>,
}

/// Image metadata.
#[derive(Debug)]
pub struct Inspected {
    /// The image as it was named.
    pub reference: String,
    /// The digest of its manifest or index.
    pub digest: Digest,
    /// What the digest names.
    pub media_type: String,
    /// The image for each platform.
    pub images: Vec<InspectedImage>,
}

/// The image for one platform.
#[derive(Debug)]
pub struct InspectedImage {
    /// The digest of its manifest.
    pub digest: Digest,
    /// The platform; none for an attestation or the like.
    pub platform: Option<String>,
    /// How it is run and labelled.
    pub run: Config,
    /// Its layers, lowest first.
    pub layers: Vec<InspectedLayer>,
}

/// A layer of an image.
#[derive(Debug)]
pub struct InspectedLayer {
    /// The digest of the bytes as they are stored.
    pub digest: Digest,
    /// The digest of the bytes before compression.
    pub diff_id: Option<Digest>,
    /// The number of bytes as they are stored.
    pub size: u64,
    /// How they are packed.
    pub media_type: String,
}

/// Copies an image, byte for byte. Between repositories of one registry, nothing moves that need not.
///
/// # Errors
/// The image cannot be read, or not be written.
pub fn copy(request: &Copy, access: &Access) -> Result<StoredImage, Failure> {
    let (_, root) = request.from.image(access)?;
    let root = match &request.platform {
        None => root,
        Some(platform) => Root::from(root.image(Some(platform))?.clone()),
    };
    store(&root, &request.to, &request.also_tag, access)
}

/// Writes an image that was loaded.
pub(super) fn store(
    root: &Root,
    to: &Place,
    also_tag: &[String],
    access: &Access,
) -> Result<StoredImage, Failure> {
    let stored = to.store_also(root, also_tag, access)?;
    Ok(StoredImage { stored, dry_run: access.is_dry_run(), note: None })
}

/// The digest of an image, and of the image for each platform.
///
/// # Errors
/// The image cannot be read.
pub fn digest(input: &Input, access: &Access) -> Result<ImageDigest, Failure> {
    let (_, root) = input.image(access)?;
    let named = |image: &Image| Some((image.platform()?.to_string(), image.digest()));
    Ok(ImageDigest { digest: root.digest(), platforms: root.images().iter().filter_map(named).collect() })
}

/// Image metadata.
///
/// # Errors
/// The image cannot be read.
pub fn inspect(input: &Input, access: &Access) -> Result<Inspected, Failure> {
    let (place, root) = input.image(access)?;
    let layers = |image: &Image| {
        let mut diff_ids = image.diff_ids().iter();
        let layer = |blob: &crate::image::Blob| InspectedLayer {
            digest: blob.digest(),
            diff_id: diff_ids.next().copied(),
            size: blob.size(),
            media_type: blob.media_type().to_string(),
        };
        image.layers().iter().map(layer).collect()
    };
    let images = root.images().iter().map(|image| InspectedImage {
        digest: image.digest(),
        platform: image.platform().map(ToString::to_string),
        run: image.run().cloned().unwrap_or_default(),
        layers: layers(image),
    });
    Ok(Inspected {
        reference: place.to_string(),
        digest: root.digest(),
        media_type: root.media_type().to_string(),
        images: images.collect(),
    })
}
