//! Where an image is or should go: a layout directory, an archive or a registry.
//!
//! The words are those of skopeo and podman, so that what works there works here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use oci_spec::distribution::Reference;
use olmkit_bundle::names::{ImageRef, NameError};

use super::layout::{Tag, TagError};
use super::reference::{reference_from, reference_of};

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
        /// The tag; without it the layout's own rules choose, see [`Layout`](super::Layout).
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

impl Place {
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
        `quay.io/example/bundle@sha256:12` is not an image reference: the digest has to be 64 (sha256), 96 (sha384) or 128 (sha512) lower case hexadecimal digits
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
        assert_snapshot!(refused("x\u{1b}[31m"), @r"
        `x\u{1b}[31m` is not an image reference: the repository has something other than lower case letters and digits with `.`, `_` or `-` between
        help: write it like `quay.io/example/operator:v1.0.0`, in lower case
        ");
    }
}
