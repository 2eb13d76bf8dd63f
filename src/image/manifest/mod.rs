//! Images as values: a manifest with its configuration and layers, an index of them, and what a tag can name.
//!
//! A manifest that was read keeps its bytes, so that its digest stays the same wherever it is copied to. How it is read is
//! told in `load`.

mod load;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use oci_spec::image::{self as oci, Descriptor, MediaType};
use serde::Serialize;

use super::blob::{Blob, BlobError};
use super::config::Config;
use super::digest::Digest;
use super::json::canonical;
use super::layer::Layer;
use super::platform::Platform;

pub(super) use load::{check_readable, listed_platforms};

/// One image: manifest, configuration and layers. Clones share the bytes.
#[derive(Debug, Clone)]
pub struct Image {
    manifest: Blob,
    configuration: Blob,
    layers: Vec<Blob>,
    /// Nothing when the manifest is of something else than an image, such as an attestation.
    details: Option<Arc<Details>>,
}

/// What an image's configuration says.
#[derive(Debug, Clone)]
struct Details {
    platform: Platform,
    diff_ids: Vec<Digest>,
    run: Config,
}

/// Images of several platforms under one digest.
#[derive(Debug, Clone)]
pub struct Index {
    index: Blob,
    images: Vec<Image>,
}

/// What a tag or a digest names: an image, or an index of images.
#[derive(Debug, Clone)]
pub enum Root {
    /// One image.
    Image(Image),
    /// One image per platform.
    Index(Index),
}

/// Why blobs do not make an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// A blob of the image is missing, damaged or too large.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The document is not what its media type says.
    #[error("`{digest}` is not a valid {what}")]
    Json {
        /// The document.
        digest: Digest,
        /// What it should be.
        what: &'static str,
        /// Where and why it cannot be read.
        source: serde_json::Error,
    },
    /// There is no such kind of manifest, or no support for it.
    #[error("`{digest}` has the media type `{}`, expected an image manifest or an image index", .media_type.escape_debug())]
    MediaType {
        /// The document.
        digest: Digest,
        /// What it says that it is.
        media_type: String,
    },
    /// The document disagrees with itself or with what points to it.
    #[error("`{digest}` is inconsistent: {problem}")]
    Inconsistent {
        /// The document.
        digest: Digest,
        /// What contradicts what.
        problem: String,
    },
    /// The image is for another platform.
    #[error("the image `{digest}` is for {available} only, not for {wanted}")]
    OtherPlatform {
        /// The image.
        digest: Digest,
        /// The platform that was asked for.
        wanted: String,
        /// The platform that it is for.
        available: String,
    },
    /// An index has no image that can be used.
    #[error("the index `{digest}` has no image for `{wanted}`; it has {available}")]
    NoSuchPlatform {
        /// The index.
        digest: Digest,
        /// The platform that was asked for.
        wanted: String,
        /// The platforms that are there.
        available: String,
    },
    /// Two images of one index are for the same platform.
    #[error("two images of one index are for `{platform}`")]
    SamePlatform {
        /// The platform.
        platform: Platform,
    },
    /// Something that is not an image cannot stand for a platform.
    #[error("`{digest}` is not an image and names no platform")]
    NoPlatform {
        /// The manifest.
        digest: Digest,
    },
    /// An index without images.
    #[error("an index needs at least one image")]
    EmptyIndex,
}

impl ImageError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Blob(error) => error.help(),
            Self::MediaType { media_type, .. } if media_type.contains("manifest.v1+") => Some(
                "Docker's schema 1 is long obsolete: build or push the image again with a current tool"
                    .into(),
            ),
            Self::NoSuchPlatform { .. } | Self::OtherPlatform { .. } => {
                Some("choose one of the available platforms".into())
            }
            _ => None,
        }
    }
}

impl Image {
    /// An image of these layers, lowest first.
    pub fn new(platform: &Platform, config: &Config, layers: &[Layer]) -> Self {
        let configuration = Blob::from_bytes(MediaType::ImageConfig, config.encode(platform, layers));
        let details = Details {
            platform: platform.clone(),
            diff_ids: layers.iter().map(|layer| layer.diff_id()).collect(),
            run: config.clone(),
        };
        Self::from_parts(
            configuration,
            layers.iter().map(|layer| layer.blob().clone()).collect(),
            Some(details),
        )
    }

    fn from_parts(configuration: Blob, layers: Vec<Blob>, details: Option<Details>) -> Self {
        let details = details.map(Arc::new);
        let manifest = Manifest {
            schema_version: oci::SCHEMA_VERSION,
            media_type: MediaType::ImageManifest,
            config: configuration.descriptor(),
            layers: layers.iter().map(Blob::descriptor).collect(),
        };
        let manifest = Blob::from_bytes(MediaType::ImageManifest, canonical(&manifest));
        Self { manifest, configuration, layers, details }
    }

    /// The digest that names the image.
    pub fn digest(&self) -> Digest {
        self.manifest.digest()
    }

    /// The manifest's bytes.
    pub fn manifest(&self) -> &Blob {
        &self.manifest
    }

    /// The configuration's bytes.
    pub fn configuration(&self) -> &Blob {
        &self.configuration
    }

    /// The compressed layers, lowest first.
    pub fn layers(&self) -> &[Blob] {
        &self.layers
    }

    /// The digests of the layers before compression, in the order of [`Image::layers`]; none when the manifest is not
    /// of an image.
    pub fn diff_ids(&self) -> &[Digest] {
        self.details.as_ref().map_or(&[], |details| &details.diff_ids)
    }

    /// The platform that the image is for; `None` when the manifest is not of an image.
    pub fn platform(&self) -> Option<&Platform> {
        self.details.as_ref().map(|details| &details.platform)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.run()?.labels.get(key).map(String::as_str)
    }

    /// How it is run and labelled; `None` when the manifest is not of an image.
    pub fn run(&self) -> Option<&Config> {
        self.details.as_ref().map(|details| &details.run)
    }

    /// Attestations, which builders put beside the images of an index, name no platform or an unknown one.
    fn is_for_a_platform(&self) -> bool {
        self.platform().is_some_and(Platform::is_known)
    }

    fn blobs(&self) -> impl Iterator<Item = &Blob> {
        self.layers.iter().chain([&self.configuration, &self.manifest])
    }
}

impl Index {
    /// An index of images, sorted by platform.
    ///
    /// # Errors
    /// There is no image, two are for the same platform, or one is for none.
    pub fn new(images: Vec<Image>) -> Result<Self, ImageError> {
        let mut by_platform = BTreeMap::new();
        for image in images {
            let platform = image.platform().cloned();
            let platform = platform.ok_or_else(|| ImageError::NoPlatform { digest: image.digest() })?;
            if by_platform.insert(platform.clone(), image).is_some() {
                return Err(ImageError::SamePlatform { platform });
            }
        }
        if by_platform.is_empty() {
            return Err(ImageError::EmptyIndex);
        }
        let named = |(platform, image): (&Platform, &Image)| {
            let mut descriptor = image.manifest.descriptor();
            descriptor.set_platform(Some(platform.to_oci()));
            descriptor
        };
        let document = IndexDocument {
            schema_version: oci::SCHEMA_VERSION,
            media_type: MediaType::ImageIndex,
            manifests: by_platform.iter().map(named).collect(),
        };
        let index = Blob::from_bytes(MediaType::ImageIndex, canonical(&document));
        Ok(Self { index, images: by_platform.into_values().collect() })
    }

    /// The digest that names the index.
    pub fn digest(&self) -> Digest {
        self.index.digest()
    }

    /// The images, in the index's order.
    pub fn images(&self) -> &[Image] {
        &self.images
    }
}

impl Root {
    /// The digest that names it.
    pub fn digest(&self) -> Digest {
        self.top().digest()
    }

    /// What it is: an image's manifest or an index.
    pub fn media_type(&self) -> &MediaType {
        self.top().media_type()
    }

    /// The images: one, or those of the index.
    pub fn images(&self) -> &[Image] {
        match self {
            Self::Image(image) => std::slice::from_ref(image),
            Self::Index(index) => index.images(),
        }
    }

    /// The image for a platform. Without a platform: the only image, else the one for the default platform, else the
    /// first; right for images that carry the same data for every platform. A single image that names no platform is right for any.
    ///
    /// # Errors
    /// There is no image for the platform, or no image at all.
    pub fn image(&self, platform: Option<&Platform>) -> Result<&Image, ImageError> {
        let Self::Index(index) = self else {
            let single = &self.images()[0];
            let own = single.platform().filter(|_| single.is_for_a_platform());
            return match (own, platform) {
                (Some(own), Some(wanted)) if own != wanted && !own.suits(wanted) => {
                    Err(ImageError::OtherPlatform {
                        digest: single.digest(),
                        wanted: wanted.to_string(),
                        available: own.to_string().escape_debug().to_string(),
                    })
                }
                _ => Ok(single),
            };
        };
        let default = Platform::default();
        let wanted = platform.unwrap_or(&default);
        let mut real = index.images.iter().filter(|image| image.is_for_a_platform());
        let exact = real.clone().find(|image| image.platform() == Some(wanted));
        let suits = |image: &&Image| image.platform().is_some_and(|platform| platform.suits(wanted));
        let suitable = exact.or_else(|| real.clone().find(suits));
        let any = if platform.is_none() { real.next() } else { None };
        suitable.or(any).ok_or_else(|| {
            let named = |platform: &Platform| format!("`{}`", platform.to_string().escape_debug());
            let real = index.images.iter().filter(|image| image.is_for_a_platform());
            let platforms: BTreeSet<String> = real.filter_map(Image::platform).map(named).collect();
            let available = Vec::from_iter(platforms).join(", ");
            let available = if available.is_empty() { "none".into() } else { available };
            ImageError::NoSuchPlatform { digest: index.digest(), wanted: wanted.to_string(), available }
        })
    }

    /// The platforms that there are images for.
    pub fn platforms(&self) -> Vec<Platform> {
        let real = self.images().iter().filter(|image| image.is_for_a_platform());
        real.filter_map(|image| image.platform().cloned()).collect()
    }

    /// The manifest or the index: the blob that a tag points to.
    pub(super) fn top(&self) -> &Blob {
        match self {
            Self::Image(image) => &image.manifest,
            Self::Index(index) => &index.index,
        }
    }

    /// Whether a blob is a manifest or the index, which registries keep apart from other blobs.
    pub(super) fn is_manifest(&self, blob: &Blob) -> bool {
        let mut manifests = self.images().iter().map(|image| image.manifest.digest());
        blob.digest() == self.digest() || manifests.any(|manifest| manifest == blob.digest())
    }

    /// Every blob once, each after those that it names, so that a store in this order never names a blob that it lacks.
    pub(super) fn blobs(&self) -> Vec<&Blob> {
        let mut blobs: Vec<&Blob> = self.images().iter().flat_map(Image::blobs).collect();
        blobs.push(self.top());
        let mut seen = HashSet::new();
        blobs.retain(|blob| seen.insert(blob.digest()));
        blobs
    }
}

impl From<Image> for Root {
    fn from(image: Image) -> Self {
        Self::Image(image)
    }
}

impl From<Index> for Root {
    fn from(index: Index) -> Self {
        Self::Index(index)
    }
}

/// The manifests that we write. `oci-spec`'s builders can fail and know fields that we never set.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u32,
    media_type: MediaType,
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IndexDocument {
    schema_version: u32,
    media_type: MediaType,
    manifests: Vec<Descriptor>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::FileTree;
    use insta::assert_snapshot;

    pub(super) fn sample(platform: &str) -> Image {
        let mut tree = FileTree::new();
        tree.add_file("manifests/service.yaml", "kind: Service\n").unwrap();
        let config = Config { labels: [("key".into(), "value".into())].into(), ..Config::default() };
        Image::new(&platform.parse().unwrap(), &config, &[Layer::build(&tree).unwrap()])
    }

    pub(super) fn text(blob: &Blob) -> String {
        String::from_utf8(blob.read(1 << 20).unwrap()).unwrap()
    }

    /// The configuration holds diff IDs and no compressed digest: pinned for good.
    #[test]
    fn the_configuration_digest_of_the_sample_never_changes() {
        assert_snapshot!(sample("linux/amd64").configuration().digest(), @"sha256:9aa33ea734df1cb317d1acc1cbc0a0ff16e989c5e9d67e087582fcf4ce62c575");
        assert_snapshot!(sample("linux/arm64").configuration().digest(), @"sha256:40ca270f6e76c44032f656e3f1856a293cded5430daf23fc9af33c4c62ab22b0");
    }

    /// Names the compressed layer: pinned for the locked version of zlib-rs.
    #[test]
    fn the_manifest_of_the_sample() {
        assert_snapshot!(text(sample("linux/amd64").manifest()), @r#"{"config":{"digest":"sha256:9aa33ea734df1cb317d1acc1cbc0a0ff16e989c5e9d67e087582fcf4ce62c575","mediaType":"application/vnd.oci.image.config.v1+json","size":306},"layers":[{"digest":"sha256:e5762506230b5871f1635886548f26a24139ca39df0b9b58e426aef3cc99d690","mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","size":135}],"mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}"#);
        assert_snapshot!(sample("linux/amd64").digest(), @"sha256:e95f8784d509feab63499fd9d2544064af926dabc17b34a0478c9a1d69fced51");
    }

    /// Names the manifests: pinned for the locked version of zlib-rs.
    #[test]
    fn an_index_names_each_platform_once_in_any_order() {
        let index = Index::new(vec![sample("linux/arm64"), sample("linux/amd64")]).unwrap();
        let same = Index::new(vec![sample("linux/amd64"), sample("linux/arm64")]).unwrap();
        assert_eq!(index.digest(), same.digest());
        assert_snapshot!(text(&index.index), @r#"{"manifests":[{"digest":"sha256:e95f8784d509feab63499fd9d2544064af926dabc17b34a0478c9a1d69fced51","mediaType":"application/vnd.oci.image.manifest.v1+json","platform":{"architecture":"amd64","os":"linux"},"size":401},{"digest":"sha256:4f9c41dc9d27a499ae6e7d0129ac8e20ec285b01af7c06c098cae14d801b8c8d","mediaType":"application/vnd.oci.image.manifest.v1+json","platform":{"architecture":"arm64","os":"linux"},"size":401}],"mediaType":"application/vnd.oci.image.index.v1+json","schemaVersion":2}"#);
        let twice = Index::new(vec![sample("linux/amd64"), sample("linux/amd64")]).unwrap_err();
        assert_snapshot!(twice, @"two images of one index are for `linux/amd64`");
        assert_snapshot!(Index::new(vec![]).unwrap_err(), @"an index needs at least one image");
    }

    #[test]
    fn the_image_for_a_platform() {
        let platform = |text: &str| text.parse::<Platform>().unwrap();
        let root = Root::from(Index::new(vec![sample("linux/s390x"), sample("linux/arm64")]).unwrap());
        let found = |wanted: Option<&Platform>| root.image(wanted).unwrap().platform().unwrap().to_string();
        assert_eq!(found(Some(&platform("linux/s390x"))), "linux/s390x");
        assert_eq!(found(None), "linux/arm64");
        let error = root.image(Some(&platform("linux/amd64"))).unwrap_err();
        assert_snapshot!(error.to_string().replace(&root.digest().to_string(), "DIGEST"), @"the index `DIGEST` has no image for `linux/amd64`; it has `linux/arm64`, `linux/s390x`");
        let variants =
            Root::from(Index::new(vec![sample("linux/arm/v7"), sample("linux/arm64/v8")]).unwrap());
        let chosen = variants.image(Some(&platform("linux/arm64"))).unwrap();
        assert_eq!(chosen.digest(), sample("linux/arm64/v8").digest());
        let single = Root::from(sample("linux/amd64"));
        assert_eq!(single.image(Some(&platform("linux/amd64"))).unwrap().digest(), single.digest());
        assert_eq!(single.image(None).unwrap().digest(), single.digest());
        let error = single.image(Some(&platform("linux/s390x"))).unwrap_err();
        assert_snapshot!(error.to_string().replace(&single.digest().to_string(), "DIGEST"), @"the image `DIGEST` is for linux/amd64 only, not for linux/s390x");
    }
}
