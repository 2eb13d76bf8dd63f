//! Where an image is or should go: a layout directory, an archive or a registry.
//!
//! The words are those of skopeo and podman, so that what works there works here.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use oci_spec::distribution::Reference;
use olmkit_bundle::names::{ImageRef, NameError};
use serde::Serialize;

use super::archive::{self, ArchiveError};
use super::digest::Digest;
use super::layer::Layer;
use super::layout::{Layout, LayoutError, Tag, TagError};
use super::manifest::{ImageError, Root};
use super::reference::{reference_from, reference_of};
use super::registry::{self, Access, Pushed, RegistryError};

/// Where an image is or should go.
///
/// ```
/// use olmkit::image::Place;
///
/// assert!(matches!("oci:target/images:v1".parse()?, Place::Layout { .. }));
/// assert!(matches!("quay.io/example/bundle:v1".parse()?, Place::Registry(_)));
/// # Ok::<(), olmkit::image::PlaceError>(())
/// ```
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
    /// `docker://REFERENCE`, or the reference alone if it names the registry's host: an image in a registry.
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
    /// Nothing says which registry is meant, and nobody wants to send to Docker Hub by mistake.
    #[error("`{}` has no registry host", .text.escape_debug())]
    NoHost {
        /// What was written.
        text: String,
    },
    /// The rest is not the name of an image.
    #[error("`{}` is not an image reference: {}", .0.text.escape_debug(), .0.why)]
    Reference(NameError),
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
            Self::NoHost { text } => format!(
                "write `docker://{text}` for Docker Hub, `HOST/{text}` for another registry, or `oci:{text}` for a \
                 directory"
            ),
            Self::Reference(_) => "write it like `quay.io/example/operator:v1.0.0`, in lower case".into(),
        })
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if let Some(reference) = text.strip_prefix("docker://") {
            return Ok(Self::Registry(reference_from(reference).map_err(PlaceError::Reference)?));
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
            return Ok(Self::DockerArchive {
                file,
                reference: reference.map(reference_from).transpose().map_err(PlaceError::Reference)?,
            });
        }
        for transport in ["dir", "docker-daemon", "containers-storage", "sif", "ostree"] {
            if text.strip_prefix(transport).is_some_and(|rest| rest.starts_with(':')) {
                return Err(PlaceError::Transport { transport: format!("{transport}:") });
            }
        }
        let reference = reference_from(text).map_err(PlaceError::Reference)?;
        if names_registry(text) {
            Ok(Self::Registry(reference))
        } else {
            Err(PlaceError::NoHost { text: text.into() })
        }
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

    /// The same, named so that it means the same in every directory.
    #[must_use]
    pub fn absolute(&self) -> Self {
        let mut place = self.clone();
        if let Self::Layout { dir: path, .. }
        | Self::OciArchive { file: path, .. }
        | Self::DockerArchive { file: path, .. } = &mut place
            && let Ok(absolute) = std::path::absolute(&*path)
        {
            *path = absolute;
        }
        place
    }

    /// The directory or file that it is on disk.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Layout { dir: path, .. }
            | Self::OciArchive { file: path, .. }
            | Self::DockerArchive { file: path, .. } => Some(path),
            Self::Registry(_) => None,
        }
    }

    /// The reference of an image in a registry.
    pub(super) fn reference(&self) -> Option<&Reference> {
        match self {
            Self::Registry(reference) => Some(reference),
            _ => None,
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

/// Whether the part before the first slash is a host, by docker's rule.
pub(crate) fn names_registry(text: &str) -> bool {
    text.split_once('/').is_some_and(|(host, rest)| {
        let is_host = host.contains(['.', ':']) || host == "localhost";
        is_host && !host.starts_with('.') && !rest.is_empty() && !rest.ends_with('/')
    })
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

impl From<&ImageRef> for Place {
    fn from(image: &ImageRef) -> Self {
        Self::Registry(reference_of(image))
    }
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
        check("docker://busybox", "docker.io/library/busybox:latest");
        let digest = format!("sha256:{}", "0".repeat(64));
        check(&format!("quay.io/example/bundle@{digest}"), &format!("quay.io/example/bundle@{digest}"));
    }

    #[test]
    fn places_that_do_not() {
        assert_snapshot!(refused(""), @r"
        `` is not an image reference: it is empty
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
        assert_snapshot!(refused("keda:v1"), @r"
        `keda:v1` has no registry host
        help: write `docker://keda:v1` for Docker Hub, `HOST/keda:v1` for another registry, or `oci:keda:v1` for a directory
        ");
        assert_snapshot!(refused("team/app"), @r"
        `team/app` has no registry host
        help: write `docker://team/app` for Docker Hub, `HOST/team/app` for another registry, or `oci:team/app` for a directory
        ");
        assert_snapshot!(refused("docker-daemon:bundle:v1"), @r"
        `docker-daemon:` is not a kind of place for images
        help: use `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE` or `docker://HOST/NAME:TAG`
        ");
        assert_snapshot!(refused("docker://"), @r"
        `` is not an image reference: it is empty
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("quay.io/Example/Bundle:v1"), @r"
        `quay.io/Example/Bundle:v1` is not an image reference: the repository has capital letters
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("./bundle"), @r"
        `./bundle` is not an image reference: its registry is not a host name
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("quay.io/example/bundle@sha256:12"), @r"
        `quay.io/example/bundle@sha256:12` is not an image reference: the digest has not the right number of lower case hexadecimal digits
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("x\u{1b}[31m"), @r"
        `x\u{1b}[31m` is not an image reference: the repository has something other than lower case letters and digits with `.`, `_` or `-` between
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
