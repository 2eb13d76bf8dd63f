//! Where an image is or should go: a layout directory, an archive or a registry.
//!
//! The words are those of skopeo and podman, so that what works there works here.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use oci_spec::distribution::{ParseError, Reference};
use serde::Serialize;

use super::digest::Digest;
use super::layout::{Layout, LayoutError, Tag, TagError};
use super::manifest::Root;

/// Where an image is or should go.
///
/// ```
/// use olmkit::image::Place;
///
/// assert!(matches!("oci:target/images:v1".parse()?, Place::Layout { .. }));
/// assert!(matches!("quay.io/example/bundle:v1".parse()?, Place::Registry(_)));
/// # Ok::<(), olmkit::image::PlaceError>(())
/// ```
///
/// Layouts are all that can be reached so far; [`Place::store`] and [`Place::load`] say so of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// `oci:DIR[:TAG]`: an OCI image layout directory. The first colon ends the directory's name.
    Layout {
        /// The directory.
        dir: PathBuf,
        /// The tag; without it the layout's own rules choose, see [`Layout`].
        tag: Option<Tag>,
    },
    /// `oci-archive:FILE[:TAG]`: a tar of an OCI image layout.
    OciArchive {
        /// The file.
        file: PathBuf,
        /// The tag.
        tag: Option<Tag>,
    },
    /// `docker-archive:FILE[:REFERENCE]`: what `docker save` writes.
    DockerArchive {
        /// The file.
        file: PathBuf,
        /// The name of the image in the file.
        reference: Option<Reference>,
    },
    /// `docker://REFERENCE`, or the reference alone: an image in a registry.
    Registry(Reference),
}

/// Text that names no place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// What stands before the colon is not a kind of place.
    #[error("`{}` is not a kind of place for images", .transport.escape_debug())]
    Transport {
        /// What stands there.
        transport: String,
    },
    /// A directory or file is expected and missing.
    #[error("a path is missing after `{transport}:`")]
    NoPath {
        /// The kind of place.
        transport: &'static str,
    },
    /// The tag is not one that a layout can have.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The rest is not the name of an image.
    #[error("`{}` is not an image reference", .text.escape_debug())]
    Reference {
        /// What was given.
        text: String,
        /// What is wrong with it.
        source: ParseError,
    },
}

impl PlaceError {
    /// The way out.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Transport { transport } if transport == "oci://" || transport.starts_with("http") => {
                "write `docker://HOST/NAME:TAG` for an image in a registry, `oci:DIR:TAG` for a directory"
                    .into()
            }
            Self::Transport { .. } | Self::NoPath { .. } => {
                "use `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE` or `docker://HOST/NAME:TAG`"
                    .into()
            }
            Self::Tag(error) => return error.help(),
            Self::Reference { .. } => "write it like `quay.io/example/operator:v1.0.0`, in lower case".into(),
        })
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if let Some(reference) = text.strip_prefix("docker://") {
            return Ok(Self::Registry(reference_from(reference)?));
        }
        for scheme in ["oci://", "http://", "https://"] {
            if text.starts_with(scheme) {
                return Err(PlaceError::Transport { transport: scheme.into() });
            }
        }
        if let Some(rest) = text.strip_prefix("oci:") {
            let (dir, tag) = path_and_name("oci", rest)?;
            return Ok(Self::Layout { dir, tag: tag.map(str::parse).transpose()? });
        }
        if let Some(rest) = text.strip_prefix("oci-archive:") {
            let (file, tag) = path_and_name("oci-archive", rest)?;
            return Ok(Self::OciArchive { file, tag: tag.map(str::parse).transpose()? });
        }
        if let Some(rest) = text.strip_prefix("docker-archive:") {
            let (file, reference) = path_and_name("docker-archive", rest)?;
            return Ok(Self::DockerArchive { file, reference: reference.map(reference_from).transpose()? });
        }
        for transport in ["dir", "docker-daemon", "containers-storage", "sif", "ostree"] {
            if text.strip_prefix(transport).is_some_and(|rest| rest.starts_with(':')) {
                return Err(PlaceError::Transport { transport: format!("{transport}:") });
            }
        }
        Ok(Self::Registry(reference_from(text)?))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transport, path, name) = match self {
            Self::Layout { dir, tag } => ("oci", dir, tag.as_ref().map(Tag::to_string)),
            Self::OciArchive { file, tag } => ("oci-archive", file, tag.as_ref().map(Tag::to_string)),
            Self::DockerArchive { file, reference } => {
                ("docker-archive", file, reference.as_ref().map(Reference::whole))
            }
            Self::Registry(reference) => return write!(f, "{reference}"),
        };
        write!(f, "{transport}:{}", path.display())?;
        name.iter().try_for_each(|name| write!(f, ":{name}"))
    }
}

/// An image that was stored: what a report needs to say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    /// Where it is, as [`Place`] reads it.
    pub reference: String,
    /// The digest of the manifest or index.
    pub digest: Digest,
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
    /// That kind of place cannot be written yet.
    #[error("cannot store an image at `{place}`: only `oci:` directories can be written so far")]
    NotYet {
        /// The place.
        place: Box<Place>,
    },
}

/// Why an image cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The layout directory does not have it, or not whole.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// That kind of place cannot be read yet.
    #[error("cannot load an image from `{place}`: only `oci:` directories can be read so far")]
    NotYet {
        /// The place.
        place: Box<Place>,
    },
}

impl StoreError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Layout(error) => error.help(),
            Self::NotYet { place } => {
                Some(format!("write `oci:DIR:TAG`, then run `skopeo copy oci:DIR:TAG {}`", for_skopeo(place)))
            }
        }
    }
}

impl LoadError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Layout(error) => error.help(),
            Self::NotYet { place } => {
                Some(format!("run `skopeo copy {} oci:DIR:TAG`, then read `oci:DIR:TAG`", for_skopeo(place)))
            }
        }
    }
}

impl Place {
    /// Stores an image there, whole or not at all.
    ///
    /// # Errors
    /// The place cannot be written, or a blob of the image cannot be read or is damaged.
    pub fn store(&self, root: &Root) -> Result<Stored, StoreError> {
        let Self::Layout { dir, tag } = self else {
            return Err(StoreError::NotYet { place: Box::new(self.clone()) });
        };
        let tag = tag.clone().unwrap_or_default();
        Layout::new(dir).write(&tag, root)?;
        let place = Self::Layout { dir: dir.clone(), tag: Some(tag) };
        Ok(Stored { reference: place.to_string(), digest: root.digest(), layers: layers_of(root) })
    }

    /// Loads the image that is there. Its layers are only opened: their content is checked when it is read.
    ///
    /// # Errors
    /// There is no such image, or its documents are damaged.
    pub fn load(&self) -> Result<Root, LoadError> {
        match self {
            Self::Layout { dir, tag } => Ok(Layout::new(dir).read(tag.as_ref())?),
            _ => Err(LoadError::NotYet { place: Box::new(self.clone()) }),
        }
    }
}

fn layers_of(root: &Root) -> Vec<StoredLayer> {
    let mut seen = HashSet::new();
    let all = root.images().iter().flat_map(|image| image.layers().iter().zip(image.diff_ids()));
    all.filter(|(blob, _)| seen.insert(blob.digest()))
        .map(|(blob, diff_id)| StoredLayer { digest: blob.digest(), diff_id: *diff_id, size: blob.size() })
        .collect()
}

fn for_skopeo(place: &Place) -> String {
    match place {
        Place::Registry(reference) => format!("docker://{reference}"),
        place => place.to_string(),
    }
}

/// Parts `PATH[:NAME]` at the first colon, as skopeo does: names may have colons, paths may not.
fn path_and_name<'t>(
    transport: &'static str,
    text: &'t str,
) -> Result<(PathBuf, Option<&'t str>), PlaceError> {
    let (path, name) = match text.split_once(':') {
        Some((path, name)) => (path, Some(name)),
        None => (text, None),
    };
    if path.is_empty() { Err(PlaceError::NoPath { transport }) } else { Ok((path.into(), name)) }
}

fn reference_from(text: &str) -> Result<Reference, PlaceError> {
    text.parse().map_err(|source| PlaceError::Reference { text: text.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn check(text: &str, printed: &str) {
        let place: Place = text.parse().unwrap();
        assert_eq!(place.to_string(), printed, "{place:?}");
        assert_eq!(printed.parse::<Place>().unwrap(), place);
    }

    fn refused(text: &str) -> String {
        let error = text.parse::<Place>().unwrap_err();
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        format!("{error}{source}\nhelp: {}", error.help().unwrap())
    }

    #[test]
    fn places_that_parse() {
        check("oci:dir", "oci:dir");
        check("oci:/abs/dir:v1.0", "oci:/abs/dir:v1.0");
        check("oci:dir:quay.io/example/bundle:v1", "oci:dir:quay.io/example/bundle:v1");
        check("oci-archive:file.tar", "oci-archive:file.tar");
        check("oci-archive:file.tar:v1", "oci-archive:file.tar:v1");
        check("docker-archive:file.tar", "docker-archive:file.tar");
        check("docker-archive:f:quay.io/example/bundle:v1", "docker-archive:f:quay.io/example/bundle:v1");
        check("docker://quay.io/example/bundle:v1", "quay.io/example/bundle:v1");
        check("localhost:5000/bundle", "localhost:5000/bundle:latest");
        check("busybox", "docker.io/library/busybox:latest");
        let digest = format!("sha256:{}", "0".repeat(64));
        check(&format!("quay.io/example/bundle@{digest}"), &format!("quay.io/example/bundle@{digest}"));
    }

    #[test]
    fn places_that_do_not() {
        assert_snapshot!(refused(""), @r"
        `` is not an image reference: repository name must have at least one component
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("oci:"), @r"
        a path is missing after `oci:`
        help: use `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE` or `docker://HOST/NAME:TAG`
        ");
        assert_snapshot!(refused("oci::v1"), @r"
        a path is missing after `oci:`
        help: use `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE` or `docker://HOST/NAME:TAG`
        ");
        assert_snapshot!(refused("oci:dir:"), @r"
        `` is not a tag
        help: a tag is made of letters and digits, with `.`, `-`, `_`, `:`, `@`, `+` and `/` between them
        ");
        assert_snapshot!(refused("oci:dir:not a tag"), @r"
        `not a tag` is not a tag
        help: a tag is made of letters and digits, with `.`, `-`, `_`, `:`, `@`, `+` and `/` between them
        ");
        assert_snapshot!(refused("oci://quay.io/example/bundle:v1"), @r"
        `oci://` is not a kind of place for images
        help: write `docker://HOST/NAME:TAG` for an image in a registry, `oci:DIR:TAG` for a directory
        ");
        assert_snapshot!(refused("https://quay.io/example/bundle"), @r"
        `https://` is not a kind of place for images
        help: write `docker://HOST/NAME:TAG` for an image in a registry, `oci:DIR:TAG` for a directory
        ");
        assert_snapshot!(refused("docker-daemon:bundle:v1"), @r"
        `docker-daemon:` is not a kind of place for images
        help: use `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE` or `docker://HOST/NAME:TAG`
        ");
        assert_snapshot!(refused("docker://"), @r"
        `` is not an image reference: repository name must have at least one component
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("quay.io/Example/Bundle:v1"), @r"
        `quay.io/Example/Bundle:v1` is not an image reference: invalid reference format
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("./bundle"), @r"
        `./bundle` is not an image reference: invalid reference format
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("quay.io/example/bundle@sha256:12"), @r"
        `quay.io/example/bundle@sha256:12` is not an image reference: invalid reference format
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("x\u{1b}[31m"), @r"
        `x\u{1b}[31m` is not an image reference: invalid reference format
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
    }

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
        let stored = serde_json::to_string_pretty(&place.store(&index.into()).unwrap()).unwrap();
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
    fn places_that_cannot_be_reached_say_so() {
        for text in ["oci-archive:file.tar", "docker-archive:file.tar", "docker://quay.io/example/bundle:v1"]
        {
            assert!(matches!(text.parse::<Place>().unwrap().load(), Err(LoadError::NotYet { .. })), "{text}");
        }
        let place: Place = "quay.io/example/bundle:v1".parse().unwrap();
        let error = place.load().unwrap_err();
        assert_snapshot!(error, @"cannot load an image from `quay.io/example/bundle:v1`: only `oci:` directories can be read so far");
        assert_snapshot!(error.help().unwrap(), @"run `skopeo copy docker://quay.io/example/bundle:v1 oci:DIR:TAG`, then read `oci:DIR:TAG`");
        let image = crate::image::Image::new(&Default::default(), &Default::default(), &[]);
        let error = "oci-archive:f.tar".parse::<Place>().unwrap().store(&image.into()).unwrap_err();
        assert_snapshot!(error, @"cannot store an image at `oci-archive:f.tar`: only `oci:` directories can be written so far");
        assert_snapshot!(error.help().unwrap(), @"write `oci:DIR:TAG`, then run `skopeo copy oci:DIR:TAG oci-archive:f.tar`");
    }
}
