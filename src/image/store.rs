//! Storing images at a place, and loading them from it.

use std::collections::HashSet;

use oci_spec::distribution::Reference;
use olmkit_bundle::names::ImageRef;
use serde::Serialize;

use super::archive::{self, ArchiveError};
use super::digest::Digest;
use super::layer::Layer;
use super::layout::{Layout, LayoutError, Tag, TagError};
use super::manifest::{ImageError, Root};
use super::place::Place;
use super::reference::reference_from;
use super::registry::{self, Access, Pushed, RegistryError};

/// An image that was stored: what a report needs to say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    /// Where it is, as [`Place`] reads it.
    pub reference: String,
    /// The digest of the manifest or index.
    pub digest: Digest,
    /// The same with the digest, where [`Place`] reads that: in registries.
    #[serde(skip)]
    pub pinned: Option<String>,
    /// Every layer once: lowest first, and image after image in the index's order.
    pub layers: Vec<StoredLayer>,
}

/// A layer of an image that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredLayer {
    /// The digest of the compressed bytes.
    pub digest: Digest,
    /// The digest of the bytes before compression.
    pub diff_id: Digest,
    /// The number of compressed bytes.
    pub size: u64,
}

/// Why an image cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The layout directory cannot take it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The archive cannot be written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The registry did not take it.
    #[error("cannot push to `{reference}`: {left}")]
    Registry {
        /// The image's name in the registry.
        reference: String,
        /// What the registry has now.
        left: String,
        /// What went wrong.
        source: Box<RegistryError>,
    },
    /// The reference says that it is another image.
    #[error("cannot push to `{reference}`: the image's digest is `{digest}`")]
    OtherDigest {
        /// The name, with a digest.
        reference: String,
        /// The digest of what should be stored.
        digest: Digest,
    },
    /// More tags than the place can have.
    #[error("`{place}` cannot have another tag")]
    OneTag {
        /// The place.
        place: Box<Place>,
    },
    /// The other tag is not one that a layout can have.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The other tag is not one that a registry can have.
    #[error("`{}` is not a tag", .tag.escape_debug())]
    RegistryTag {
        /// What was given.
        tag: String,
    },
}

/// Why an image cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The layout directory does not have it, or not whole.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The archive does not have it, or not whole.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The registry does not give it.
    #[error("cannot pull `{reference}`")]
    Registry {
        /// The image's name in the registry.
        reference: String,
        /// What went wrong.
        source: Box<RegistryError>,
    },
    /// What the registry gives is not an image.
    #[error("cannot pull `{reference}`")]
    Image {
        /// The image's name in the registry.
        reference: String,
        /// What is wrong with it.
        source: ImageError,
    },
}

impl StoreError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Layout(error) => error.help(),
            Self::Archive(error) => error.help(),
            Self::Registry { source, .. } => source.help(),
            Self::OtherDigest { .. } => Some("give a tag instead of the digest".into()),
            Self::OneTag { .. } => Some("other tags go to registries and `oci:` directories".into()),
            Self::Tag(error) => error.help(),
            Self::RegistryTag { .. } => {
                Some("a registry's tag has letters, digits, `_`, `.` and `-`, at most 128 in all".into())
            }
        }
    }

    /// Whether the command line asked for what no place could do.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::OneTag { .. } | Self::Tag(_) | Self::RegistryTag { .. })
    }
}

impl LoadError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Layout(LayoutError::NotALayout { .. } | LayoutError::Missing { .. }) => Some(
                "name a directory with images, such as `olmkit image copy IMAGE oci:DIR:TAG` writes it"
                    .into(),
            ),
            Self::Layout(error) => error.help(),
            Self::Archive(error) => error.help(),
            Self::Registry { source, .. } => source.help(),
            Self::Image { source, .. } => source.help(),
        }
    }
}

impl Place {
    /// Stores an image there, whole or not at all.
    ///
    /// # Errors
    /// The place cannot be written, or a blob of the image cannot be read or is damaged.
    pub fn store(&self, root: &Root, access: &Access) -> Result<Stored, StoreError> {
        self.store_also(root, &[], access)
    }

    /// Starts to send a layer to a registry, while others are still being packed. Elsewhere this does nothing. The image
    /// has to be stored all the same, which also tells of faults.
    pub fn send_ahead(&self, layer: &Layer, access: &Access) {
        if let Self::Registry(reference) = self {
            access.send_ahead(reference, layer.blob());
        }
    }

    /// Stores an image there, and under other tags in the same place. In a registry, the tags are set one after the
    /// other, after everything else.
    ///
    /// # Errors
    /// As [`Place::store`]; or the place has no other tags, as archives have none.
    pub fn store_also(&self, root: &Root, also: &[String], access: &Access) -> Result<Stored, StoreError> {
        let is_real = !access.is_dry_run();
        let mut place = self.clone();
        match &mut place {
            Self::Layout { dir, tag } => {
                let tag = tag.get_or_insert_default();
                let also = also.iter().map(|tag| tag.parse()).collect::<Result<Vec<Tag>, _>>()?;
                for tag in std::iter::once(&*tag).chain(&also).filter(|_| is_real) {
                    Layout::new(&*dir).write(tag, root)?;
                }
            }
            Self::OciArchive { .. } | Self::DockerArchive { .. } if !also.is_empty() => {
                return Err(StoreError::OneTag { place: Box::new(place) });
            }
            Self::OciArchive { file, tag } => {
                let is_named = tag.is_some();
                let tag = &*tag.get_or_insert_default();
                let content = archive::Content { tag, docker: None, is_named, root };
                archive::check_target(file, &content)?;
                if is_real {
                    archive::write(file, &content)?;
                }
            }
            Self::DockerArchive { file, reference } => {
                // Docker's readers go by the reference; those of layouts by the tag.
                let tag = reference.as_ref().and_then(|reference| reference.whole().parse().ok());
                let (tag, is_named) = (tag.unwrap_or_default(), reference.is_some());
                let content =
                    archive::Content { tag: &tag, docker: Some(reference.as_ref()), is_named, root };
                archive::check_target(file, &content)?;
                if is_real {
                    archive::write(file, &content)?;
                }
            }
            Self::Registry(reference) => push(reference, also, root, access)?,
        }
        let digest = root.digest();
        let pinned = place.reference().map(|reference| match reference.digest() {
            Some(_) => reference.whole(),
            None => format!("{}@{digest}", reference.whole()),
        });
        Ok(Stored { reference: place.to_string(), digest, pinned, layers: layers_of(root) })
    }

    /// The same, with the name of the image that is there: that of the only image of a layout or an archive, if the place has none
    /// itself and the image has one.
    ///
    /// # Errors
    /// The layout or the archive cannot be read.
    pub fn named(&self) -> Result<Self, LoadError> {
        let mut place = self.clone();
        match &mut place {
            Self::Layout { dir, tag: tag @ None } => {
                *tag = Layout::new(&*dir).only_tag()?.and_then(|name| name.parse().ok());
            }
            Self::OciArchive { file, tag: tag @ None } => {
                *tag = archive::only_tag(file)?.and_then(|name| name.parse().ok());
            }
            Self::DockerArchive { file, reference: reference @ None } => {
                *reference = archive::only_docker_name(file)?.and_then(|name| reference_from(&name).ok());
            }
            _ => {}
        }
        Ok(place)
    }

    /// Loads the image that is there. Its layers are only opened, those of a registry are not even fetched: their content
    /// is checked when it is read.
    ///
    /// # Errors
    /// There is no such image, or its documents are damaged.
    pub fn load(&self, access: &Access) -> Result<Root, LoadError> {
        match self {
            Self::Layout { dir, tag } => Ok(Layout::new(dir).read(tag.as_ref())?),
            Self::OciArchive { file, tag } => Ok(archive::read_oci(file, tag.as_ref())?),
            Self::DockerArchive { file, reference } => Ok(archive::read_docker(file, reference.as_ref())?),
            Self::Registry(reference) => {
                access.load(reference).map_err(|error| LoadError::of(reference, error))
            }
        }
    }
}

impl LoadError {
    pub(super) fn of(reference: &Reference, error: registry::LoadError) -> Self {
        let reference = reference.whole();
        match error {
            registry::LoadError::Registry(source) => Self::Registry { reference, source: Box::new(source) },
            registry::LoadError::Image(source) => Self::Image { reference, source },
        }
    }
}

fn push(reference: &Reference, also: &[String], root: &Root, access: &Access) -> Result<(), StoreError> {
    let digest = root.digest();
    if reference.digest().is_some_and(|wanted| wanted != digest.to_string()) {
        return Err(StoreError::OtherDigest { reference: reference.whole(), digest });
    }
    let is_tag =
        |tag: &str| format!("x.y/z:{tag}").parse::<ImageRef>().is_ok_and(|parsed| parsed.tag() == Some(tag));
    if let Some(tag) = also.iter().find(|tag| !is_tag(tag)) {
        return Err(StoreError::RegistryTag { tag: tag.clone() });
    }
    let pushed = Pushed::default();
    access.store(reference, also, root, &pushed).map_err(|source| {
        let tags = pushed.tags();
        let blobs = root.blobs().iter().filter(|blob| !root.is_manifest(blob)).count();
        let left = match tags.as_slice() {
            [] => format!("no tag was set; {} of {blobs} blobs are there", pushed.blobs()),
            tags => format!("only `{}` was set", tags.join("`, `")),
        };
        StoreError::Registry { reference: reference.whole(), left, source: Box::new(source) }
    })
}

fn layers_of(root: &Root) -> Vec<StoredLayer> {
    let mut seen = HashSet::new();
    let all = root.images().iter().flat_map(|image| image.layers().iter().zip(image.diff_ids()));
    all.filter(|(blob, _)| seen.insert(blob.digest()))
        .map(|(blob, diff_id)| StoredLayer { digest: blob.digest(), diff_id: *diff_id, size: blob.size() })
        .collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn what_a_report_says_of_a_stored_image() {
        use crate::image::{Config, FileTree, Image, Index, Layer};
        let mut tree = FileTree::new();
        tree.add_file("a", "a").unwrap();
        let layer = Layer::build(&tree).unwrap();
        let image = |platform: &str| {
            Image::new(&platform.parse().unwrap(), &Config::default(), std::slice::from_ref(&layer))
        };
        let index = Index::new(vec![image("linux/amd64"), image("linux/arm64")]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let place: Place = format!("oci:{}:v1", dir.path().display()).parse().unwrap();
        let stored =
            serde_json::to_string_pretty(&place.store(&index.into(), &Access::default()).unwrap()).unwrap();
        assert_snapshot!(stored.replace(dir.path().to_str().unwrap(), "DIR"), @r#"
        {
          "reference": "oci:DIR:v1",
          "digest": "sha256:21e5bc45e0f32f52a7a923b68e5ffe6b8f3ff1d3b579ce0d51bd7a400a7d39a5",
          "layers": [
            {
              "digest": "sha256:dbcf52642a6524704dc061fbefbc8bb21c20608c1f58c397b0c9217a2c464eb2",
              "diffId": "sha256:45c1fb9fee2b481828d5bfa936b6ac00d8fd3531fcc8cf785d8a4f6b438a5637",
              "size": 81
            }
          ]
        }
        "#);
    }

    #[test]
    fn every_place_on_disk_gives_back_what_it_took() {
        let image = |platform: &str| {
            let mut tree = crate::image::FileTree::new();
            tree.add_file("a", "a").unwrap();
            let layer = crate::image::Layer::build(&tree).unwrap();
            crate::image::Image::new(&platform.parse().unwrap(), &Default::default(), &[layer])
        };
        let one = Root::from(image("linux/amd64"));
        let two =
            Root::from(crate::image::Index::new(vec![image("linux/amd64"), image("linux/arm64")]).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let at = |rest: &str| rest.replace("DIR", dir.path().to_str().unwrap()).parse::<Place>().unwrap();
        let access = Access::default();
        for place in [
            "oci:DIR/layout:v1",
            "oci-archive:DIR/oci.tar:v1",
            "oci-archive:DIR/plain.tar",
            "docker-archive:DIR/docker.tar:quay.io/example/bundle:v1",
            "docker-archive:DIR/nameless.tar",
        ] {
            for root in [&one, &two] {
                if root.digest() == two.digest() && !place.contains(":v1") {
                    let refused = at(place).store(root, &access).unwrap_err().to_string();
                    assert!(refused.contains("already has another image"), "{refused}");
                    std::fs::remove_file(at(place).path().unwrap()).unwrap();
                }
                let stored = at(place).store(root, &access).unwrap();
                assert_eq!(stored.digest, root.digest(), "{place}");
                assert_eq!(at(place).load(&access).unwrap().digest(), root.digest(), "{place}");
            }
        }
        let other = at("docker-archive:DIR/docker.tar:quay.io/example/bundle:v2").load(&access).unwrap_err();
        assert_snapshot!(other.to_string().replace(dir.path().to_str().unwrap(), "DIR"), @"the archive `DIR/docker.tar` has no image `quay.io/example/bundle:v2`; it has `quay.io/example/bundle:v1`");
        let twice = at("oci-archive:DIR/x.tar").store_also(&one, &["v2".into()], &access).unwrap_err();
        assert_snapshot!(twice.to_string().replace(dir.path().to_str().unwrap(), "DIR"), @"`oci-archive:DIR/x.tar` cannot have another tag");
    }
}
