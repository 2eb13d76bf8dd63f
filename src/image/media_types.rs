//! The media types that are read, and how large such documents may be.

use oci_spec::image::MediaType;

/// The largest manifest or index that is read, in bytes: what registries accept.
pub(super) const MAX_MANIFEST: u64 = 4 << 20;
/// The largest configuration that is read, in bytes.
pub(super) const MAX_CONFIGURATION: u64 = 8 << 20;

/// Docker's names for the same documents; registries and layouts hold them too.
pub(super) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(super) const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(super) const DOCKER_CONFIGURATION: &str = "application/vnd.docker.container.image.v1+json";

/// The media types of manifests and indexes that are read.
pub(super) const READABLE: [&str; 4] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    DOCKER_INDEX,
    DOCKER_MANIFEST,
];

/// What docker calls a layer.
pub(super) const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// Whether it names a manifest.
pub(super) fn is_manifest(media_type: &MediaType) -> bool {
    matches!(media_type, MediaType::ImageManifest) || media_type.as_ref() == DOCKER_MANIFEST
}

/// Whether it names an index.
pub(super) fn is_index(media_type: &MediaType) -> bool {
    matches!(media_type, MediaType::ImageIndex) || media_type.as_ref() == DOCKER_INDEX
}
