//! The keys and values that tell OLM what a bundle is: `metadata/annotations.yaml` and the labels of its image.

use std::collections::BTreeMap;

/// The bundle's format; [`REGISTRY_V1`] here.
pub const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The directory of the manifests; [`MANIFESTS_DIR`] everywhere.
pub const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";
/// The directory of the metadata; [`METADATA_DIR`] everywhere.
pub const METADATA: &str = "operators.operatorframework.io.bundle.metadata.v1";
/// The package the bundle belongs to.
pub const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
/// The channels its author meant it for, with commas between; catalogs decide for themselves.
pub const CHANNELS: &str = "operators.operatorframework.io.bundle.channels.v1";
/// The channel its author would subscribe to; optional.
pub const DEFAULT_CHANNEL: &str = "operators.operatorframework.io.bundle.channel.default.v1";
/// The version policy of the package file, by which `catalog add` chooses the bundle's upgrade edges; ours, and optional.
pub const VERSION_POLICY: &str = "olmkit.catalog.version-policy";
/// The template of bundle images' references, of the package file; ours, and optional.
pub const IMAGE_REF_TEMPLATE: &str = "olmkit.catalog.image-ref-template";
/// What the keys begin with by which operator-sdk names itself.
pub const METRICS: &str = "operators.operatorframework.io.metrics.";
/// The versions of OpenShift that a bundle is offered on; OpenShift's pipelines look for it here, not in the
/// ClusterServiceVersion.
pub const OPENSHIFT_VERSIONS: &str = "com.redhat.openshift.versions";

/// The format that this crate is about: one ClusterServiceVersion with its CRDs and other manifests.
pub const REGISTRY_V1: &str = "registry+v1";
/// Where manifests are, in the directory and in the image.
pub const MANIFESTS_DIR: &str = "manifests/";
/// Where metadata is, in the directory and in the image.
pub const METADATA_DIR: &str = "metadata/";

/// The keys that every bundle has.
pub const REQUIRED: [&str; 5] = [MEDIA_TYPE, MANIFESTS, METADATA, PACKAGE, CHANNELS];

/// The annotations of a bundle of ours, which are also the labels of its image.
pub fn registry_v1(
    package: &str,
    channels: &[&str],
    default_channel: Option<&str>,
) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from([
        (MEDIA_TYPE.to_owned(), REGISTRY_V1.to_owned()),
        (MANIFESTS.to_owned(), MANIFESTS_DIR.to_owned()),
        (METADATA.to_owned(), METADATA_DIR.to_owned()),
        (PACKAGE.to_owned(), package.to_owned()),
        (CHANNELS.to_owned(), channels.join(",")),
    ]);
    if let Some(channel) = default_channel {
        annotations.insert(DEFAULT_CHANNEL.to_owned(), channel.to_owned());
    }
    annotations
}

/// Whether `bundle generate` decides on an annotation, so that nobody else can keep a value for it.
pub fn is_generated(key: &str) -> bool {
    ["operators.operatorframework.io.bundle.", "operators.operatorframework.io.test.", METRICS, "olmkit."]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}

/// Whether a path, as an annotation gives it, is one of the bundle's directories: `manifests`, `/manifests/` and
/// `./manifests` are the same.
pub fn is_directory(path: &str, directory: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.next() == directory.strip_suffix('/') && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_told_by_their_parts() {
        for same in ["manifests", "manifests/", "/manifests", ".//manifests/."] {
            assert!(is_directory(same, MANIFESTS_DIR), "{same}");
        }
        for other in ["", "/", "manifest", "a/manifests", "manifests/..", "../manifests"] {
            assert!(!is_directory(other, MANIFESTS_DIR), "{other}");
        }
    }
}
