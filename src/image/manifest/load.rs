//! From documents that were found, and are not trusted, to images.

use std::sync::Arc;

use oci_spec::image::{self as oci, Descriptor, MediaType};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::blob::{Blob, BlobError};
use super::super::config::Config;
use super::super::digest::{Digest, DigestError};
use super::super::layer::Layer;
use super::super::media_types::{
    DOCKER_CONFIGURATION, MAX_CONFIGURATION, MAX_MANIFEST, READABLE, is_index, is_manifest,
};
use super::super::platform::Platform;
use super::{Details, Image, ImageError, Index, Root};

/// The most layers of an image, and the most images of an index. Real ones have at most 127 and about twenty.
const MAX_CHILDREN: usize = 256;

/// Gets the blob that a document names.
pub(in crate::image) type Find<'f> = dyn FnMut(&Descriptor) -> Result<Blob, BlobError> + 'f;

impl Root {
    /// The image or index that a descriptor names; `find` gets the blobs.
    ///
    /// # Errors
    /// A document is damaged, contradicts itself or is of an unknown kind, or whatever `find` fails with.
    pub(in crate::image) fn load(descriptor: &Descriptor, find: &mut Find) -> Result<Self, ImageError> {
        if is_manifest(descriptor.media_type()) {
            return Ok(Self::Image(Image::load(find(descriptor)?, find)?));
        }
        if !is_index(descriptor.media_type()) {
            return Err(unknown_media_type(descriptor));
        }
        let index = find(descriptor)?;
        let parsed: oci::ImageIndex = document(&index, "image index", MAX_MANIFEST)?;
        check_document(
            &index,
            parsed.schema_version(),
            parsed.media_type().as_ref(),
            parsed.manifests().len(),
        )?;
        let mut images = Vec::new();
        for child in parsed.manifests() {
            if !is_manifest(child.media_type()) {
                return Err(unknown_media_type(child));
            }
            images.push(Image::load(find(child)?, find)?);
        }
        Ok(Self::Index(Index { index, images }))
    }
}

impl Image {
    /// An image of a configuration, over a base: the base's layers below, and what its configuration says where ours
    /// says nothing.
    ///
    /// # Errors
    /// The base is not an image.
    pub fn on(base: &Self, config: &Config, layers: &[Layer]) -> Result<Self, ImageError> {
        let no_image = || ImageError::NoPlatform { digest: base.digest() };
        if base.details.is_none() {
            return Err(no_image());
        }
        let document: Map<String, Value> =
            document(&base.configuration, "image configuration", MAX_CONFIGURATION)?;
        let bytes = config.encode_on(document, layers);
        let below = base.layers.iter().map(Blob::as_oci);
        let above = layers.iter().map(|layer| layer.blob().clone());
        Self::assemble(Blob::from_bytes(MediaType::ImageConfig, bytes), below.chain(above).collect())
    }

    /// An image of a configuration and layers that were found without a manifest.
    ///
    /// # Errors
    /// The configuration is damaged or contradicts the layers.
    pub(in crate::image) fn assemble(configuration: Blob, layers: Vec<Blob>) -> Result<Self, ImageError> {
        let details = Details::of(&configuration, layers.len())?;
        Ok(Self::from_parts(configuration, layers, details))
    }

    /// The image of a manifest that was found; `find` gets the blobs that the manifest names.
    ///
    /// # Errors
    /// The manifest or configuration is damaged or contradicts itself, or whatever `find` fails with.
    fn load(manifest: Blob, find: &mut Find) -> Result<Self, ImageError> {
        let parsed: oci::ImageManifest = document(&manifest, "image manifest", MAX_MANIFEST)?;
        check_document(
            &manifest,
            parsed.schema_version(),
            parsed.media_type().as_ref(),
            parsed.layers().len(),
        )?;
        let configuration = find(parsed.config())?;
        let layers = parsed.layers().iter().map(&mut *find).collect::<Result<Vec<_>, _>>()?;
        let details = Details::of(&configuration, layers.len())?.map(Arc::new);
        Ok(Self { manifest, configuration, layers, details })
    }
}

impl Details {
    fn of(configuration: &Blob, layers: usize) -> Result<Option<Self>, ImageError> {
        if !matches!(configuration.media_type(), MediaType::ImageConfig)
            && configuration.media_type().as_ref() != DOCKER_CONFIGURATION
        {
            return Ok(None);
        }
        let parsed: oci::ImageConfiguration =
            document(configuration, "image configuration", MAX_CONFIGURATION)?;
        let inconsistent =
            |problem: String| ImageError::Inconsistent { digest: configuration.digest(), problem };
        let diff_ids = parsed.rootfs().diff_ids();
        if diff_ids.len() != layers {
            return Err(inconsistent(format!("it has {} diff IDs for {layers} layers", diff_ids.len())));
        }
        let diff_ids = diff_ids
            .iter()
            .map(|id| id.parse())
            .collect::<Result<_, DigestError>>()
            .map_err(|error| inconsistent(format!("as a diff ID, {error}")))?;
        Ok(Some(Self { platform: Platform::of(&parsed), diff_ids, run: Config::of(&parsed) }))
    }
}

/// # Errors
/// The document is of a kind that is not read, such as docker's schema 1.
pub(in crate::image) fn check_readable(document: &Blob) -> Result<(), ImageError> {
    let is_readable = READABLE.contains(&document.media_type().as_ref());
    if is_readable { Ok(()) } else { Err(unknown_media_type(&document.descriptor())) }
}

/// The platforms that an index lists, attestations left out. `None` when it is no sound index or does not name the platform
/// of each image: then the images have to be read.
pub(in crate::image) fn listed_platforms(index: &Blob) -> Option<Vec<Platform>> {
    if !is_index(index.media_type()) {
        return None;
    }
    let parsed: oci::ImageIndex = document(index, "image index", MAX_MANIFEST).ok()?;
    let children = parsed.manifests();
    check_document(index, parsed.schema_version(), parsed.media_type().as_ref(), children.len()).ok()?;
    let listed: Option<Vec<Platform>> =
        children.iter().map(|child| child.platform().as_ref().map(Platform::from)).collect();
    Some(listed?.into_iter().filter(Platform::is_known).collect())
}

fn unknown_media_type(descriptor: &Descriptor) -> ImageError {
    match Digest::try_from(descriptor.digest()) {
        Ok(digest) => ImageError::MediaType { digest, media_type: descriptor.media_type().to_string() },
        Err(error) => BlobError::from(error).into(),
    }
}

fn document<T: DeserializeOwned>(blob: &Blob, what: &'static str, limit: u64) -> Result<T, ImageError> {
    let bytes = blob.read(limit)?;
    serde_json::from_slice(&bytes).map_err(|source| ImageError::Json { digest: blob.digest(), what, source })
}

/// A document must not be of one type by itself and of another by the descriptor that points to it:
/// <https://github.com/opencontainers/image-spec/security/advisories/GHSA-77vh-xpmg-72qh>.
fn check_document(
    blob: &Blob,
    schema_version: u32,
    media_type: Option<&MediaType>,
    children: usize,
) -> Result<(), ImageError> {
    let problem = match media_type {
        _ if schema_version != oci::SCHEMA_VERSION => {
            format!("its schema version is {schema_version}, expected {}", oci::SCHEMA_VERSION)
        }
        Some(own) if own != blob.media_type() => {
            format!(
                "it calls itself `{}`, but is listed as `{}`",
                own.as_ref().escape_debug(),
                blob.media_type()
            )
        }
        _ if children > MAX_CHILDREN => format!("it names {children} blobs, at most {MAX_CHILDREN} are read"),
        _ => return Ok(()),
    };
    Err(ImageError::Inconsistent { digest: blob.digest(), problem })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{sample, text};
    use super::super::{IndexDocument, Manifest};
    use super::*;
    use crate::image::json::canonical;
    use crate::image::media_types::DOCKER_MANIFEST;
    use insta::assert_snapshot;

    /// Holds blobs as a layout would, and finds them by digest.
    fn reload(descriptor: &Descriptor, blobs: &[&Blob]) -> Result<Root, ImageError> {
        Root::load(descriptor, &mut |wanted| {
            let found = blobs
                .iter()
                .find(|blob| Digest::try_from(wanted.digest()) == Ok(blob.digest()))
                .expect("test has every blob");
            let bytes = found.read(1 << 20)?;
            Ok(Blob::from_bytes(wanted.media_type().clone(), bytes))
        })
    }

    /// The refusal of a manifest or an index with this text.
    fn check_refused(media_type: MediaType, text: &str, others: &[&Blob]) -> String {
        let blob = Blob::from_bytes(media_type, text.into());
        let mut all = others.to_vec();
        all.push(&blob);
        let error = reload(&blob.descriptor(), &all).unwrap_err();
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        format!("{error}{source}").replace(&blob.digest().to_string(), "DIGEST")
    }

    #[test]
    fn what_is_written_can_be_read() {
        let root = Root::from(Index::new(vec![sample("linux/arm64"), sample("linux/amd64")]).unwrap());
        let blobs = root.blobs();
        // Two images share one layer: a layer, two configurations, two manifests, the index.
        assert_eq!(blobs.len(), 6);
        assert_eq!(blobs[5].digest(), root.digest());
        let again = reload(&root.top().descriptor(), &blobs).unwrap();
        assert_eq!(again.digest(), root.digest());
        let image = again.image(None).unwrap();
        assert_eq!(image.platform().unwrap().to_string(), "linux/amd64");
        assert_eq!(image.label("key"), Some("value"));
        assert_eq!(image.label("other"), None);
        assert_eq!(image.diff_ids(), sample("linux/amd64").diff_ids());
    }

    #[test]
    fn docker_media_types_are_read() {
        let image = sample("linux/amd64");
        let manifest = text(image.manifest())
            .replace("application/vnd.oci.image.manifest.v1+json", DOCKER_MANIFEST)
            .replace("application/vnd.oci.image.config.v1+json", DOCKER_CONFIGURATION);
        let manifest = Blob::from_bytes(DOCKER_MANIFEST.into(), manifest.into());
        let blobs = [&manifest, image.configuration(), &image.layers()[0]];
        let root = reload(&manifest.descriptor(), &blobs).unwrap();
        assert_eq!(root.images()[0].label("key"), Some("value"));
    }

    #[test]
    fn attestations_in_an_index_are_kept_and_never_chosen() {
        let image = sample("linux/arm64");
        let empty = Blob::from_bytes(MediaType::EmptyJSON, b"{}".to_vec());
        let attestation = Manifest {
            schema_version: 2,
            media_type: MediaType::ImageManifest,
            config: empty.descriptor(),
            layers: vec![],
        };
        let attestation = Blob::from_bytes(MediaType::ImageManifest, canonical(&attestation));
        let unknown = sample("unknown/unknown");
        let document = IndexDocument {
            schema_version: 2,
            media_type: MediaType::ImageIndex,
            manifests: [&attestation, unknown.manifest(), image.manifest()].map(Blob::descriptor).into(),
        };
        let index = Blob::from_bytes(MediaType::ImageIndex, canonical(&document));
        let mut blobs = vec![&index, &attestation, &empty];
        blobs.extend(unknown.blobs().chain(image.blobs()));
        let root = reload(&index.descriptor(), &blobs).unwrap();
        assert_eq!(root.images().len(), 3);
        assert_eq!(root.image(None).unwrap().digest(), image.digest());
        assert_eq!(root.blobs().len(), blobs.len() - 1, "the layer is shared");

        let error = root.image(Some(&"linux/amd64".parse().unwrap())).unwrap_err();
        assert!(
            error.to_string().ends_with("has no image for `linux/amd64`; it has `linux/arm64`"),
            "{error}"
        );
        let error = Index::new(vec![root.images()[0].clone()]).unwrap_err();
        assert!(matches!(error, ImageError::NoPlatform { .. }), "{error}");
    }

    #[test]
    fn documents_that_are_refused() {
        let image = sample("linux/amd64");
        let manifest = text(image.manifest());
        let parts = [image.manifest(), image.configuration(), &image.layers()[0]];

        assert_snapshot!(check_refused(MediaType::ImageManifest, "{", &[]), @"`DIGEST` is not a valid image manifest: EOF while parsing an object at line 1 column 1");
        assert_snapshot!(check_refused(MediaType::ImageManifest, "{}", &[]), @"`DIGEST` is not a valid image manifest: missing field `schemaVersion` at line 1 column 2");
        let old = manifest.replace("\"schemaVersion\":2", "\"schemaVersion\":1");
        assert_snapshot!(check_refused(MediaType::ImageManifest, &old, &parts), @"`DIGEST` is inconsistent: its schema version is 1, expected 2");
        assert_snapshot!(check_refused(DOCKER_MANIFEST.into(), &manifest, &parts), @"`DIGEST` is inconsistent: it calls itself `application/vnd.oci.image.manifest.v1+json`, but is listed as `application/vnd.docker.distribution.manifest.v2+json`");
        let schema_1 = "application/vnd.docker.distribution.manifest.v1+prettyjws";
        assert_snapshot!(check_refused(schema_1.into(), "{}", &[]), @"`DIGEST` has the media type `application/vnd.docker.distribution.manifest.v1+prettyjws`, expected an image manifest or an image index");

        let index = |media_type: &str| {
            let child = format!(r#"{{"digest":"{}","mediaType":"{media_type}","size":2}}"#, image.digest());
            format!(r#"{{"schemaVersion":2,"manifests":[{child}]}}"#)
        };
        let nested =
            check_refused(MediaType::ImageIndex, &index("application/vnd.oci.image.index.v1+json"), &parts);
        assert_snapshot!(nested.replace(&image.digest().to_string(), "CHILD"), @"`CHILD` has the media type `application/vnd.oci.image.index.v1+json`, expected an image manifest or an image index");

        let layer = String::from_utf8(canonical(&image.layers()[0].descriptor())).unwrap();
        let two_layers = manifest.replace(&layer, &format!("{layer},{layer}"));
        let refused = check_refused(MediaType::ImageManifest, &two_layers, &parts);
        assert_snapshot!(refused.replace(&image.configuration().digest().to_string(), "CONFIG"), @"`CONFIG` is inconsistent: it has 1 diff IDs for 2 layers");

        let many = manifest.replace(&layer, &vec![layer.as_str(); MAX_CHILDREN + 1].join(","));
        assert_snapshot!(check_refused(MediaType::ImageManifest, &many, &parts), @"`DIGEST` is inconsistent: it names 257 blobs, at most 256 are read");
    }
}
