//! What users name where a bundle, a catalog or an image is expected, and what is in it.
//!
//! Everything that exists on disk is taken as that. Otherwise a name with a transport (`oci:`, `oci-archive:`,
//! `docker-archive:`, `docker://`) is an image there, and a bare one an image in a registry, if it names the registry:
//! `quay.io/example/bundle:v1`. A word such as `bundle` stays a directory that is missing; nobody who mistypes one wants
//! to hear from Docker Hub.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use olmkit_bundle::annotations::{MANIFESTS_DIR, METADATA_DIR};
use olmkit_bundle::load::{BundleFile, BundleFiles, Content, LoadError, MAX_FILES};
use olmkit_catalog::load::CatalogFiles;

use crate::exit::Failure;
use crate::files;
use crate::image::{
    Access, FileTree, Image, Layout, Limits, Place, PlaceError, Root, TreePath, Unpack, UnpackError,
    names_registry,
};
use crate::progress;
use crate::shell::argument;

/// The label of bundle images that names the directory with the manifests, and its sister for the metadata.
const MANIFESTS_LABEL: &str = "operators.operatorframework.io.bundle.manifests.v1";
const METADATA_LABEL: &str = "operators.operatorframework.io.bundle.metadata.v1";
/// The label of catalog images that names the directory with the catalog.
pub const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// The label of bundle images with a configuration for operator-sdk's scorecard, and the directory that it is in.
pub const SCORECARD_LABEL: &str = "operators.operatorframework.io.test.config.v1";
/// Where the scorecard's configuration is.
pub const SCORECARD_DIR: &str = "tests/scorecard";
/// The bytes of files in the image of a bundle: ample, for OLM takes a mebibyte of compressed manifests.
const MAX_BUNDLE_IMAGE: u64 = 64 << 20;

/// A bundle, a catalog or an image as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A directory or a file.
    Disk(PathBuf),
    /// An image.
    Image(Place),
}

/// What the images of OLM hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bundle.
    Bundle,
    /// A catalog.
    Catalog,
}

impl Kind {
    /// What commands call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Catalog => "catalog",
        }
    }

    /// The label that every image of the kind has.
    fn label(self) -> &'static str {
        match self {
            Self::Bundle => MANIFESTS_LABEL,
            Self::Catalog => CONFIGS_LABEL,
        }
    }

    /// Refuses images of something else; the other kind is named.
    ///
    /// # Errors
    /// The image is not of this kind.
    pub fn check(self, place: &Place, root: &Root) -> Result<(), Failure> {
        let image = root.image(None)?;
        if image.label(self.label()).is_some() {
            return Ok(());
        }
        let what = self.name();
        let other = if self == Self::Bundle { Self::Catalog } else { Self::Bundle };
        let named = argument(place);
        let place = place.to_string();
        let as_it_is = format!("to copy an image as it is, run `olmkit image copy {named} HOST/NAME:TAG`");
        Err(if image.label(other.label()).is_some() {
            let other = other.name();
            Failure::failed(InputError::OtherKind { place: place.clone(), what, other })
                .help(format!("run `olmkit {other} push {named} HOST/NAME:TAG`; {as_it_is}"))
        } else {
            Failure::failed(InputError::NoLabel { place, what, label: self.label() }).help(as_it_is)
        })
    }
}

/// An image that is not what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// It has not the label that such images have.
    #[error("`{place}` is not the image of a {what}: it has no label `{label}`")]
    NoLabel {
        /// The image.
        place: String,
        /// What it should be.
        what: &'static str,
        /// The label.
        label: &'static str,
    },
    /// It is the image of something else.
    #[error("`{place}` is the image of a {other}, not of a {what}")]
    OtherKind {
        /// The image.
        place: String,
        /// What it should be.
        what: &'static str,
        /// What it is.
        other: &'static str,
    },
    /// A label names no directory.
    #[error("`{place}` has a label `{label}` that names no directory: `{}`", .value.escape_debug())]
    Label {
        /// The image.
        place: String,
        /// The label.
        label: &'static str,
        /// What it says.
        value: String,
    },
    /// There is no end to the files.
    #[error("`{place}` contains more than {MAX_FILES} files")]
    TooManyFiles {
        /// The image.
        place: String,
    },
    /// What is in it cannot be had.
    #[error("cannot unpack `{place}`")]
    Unpack {
        /// The image.
        place: String,
        /// Why.
        source: Box<UnpackError>,
    },
    /// It has the labels, and nothing where they say.
    #[error("`{place}` contains no files of a bundle")]
    Empty {
        /// The image.
        place: String,
    },
    /// It has no files that could be a catalog's.
    #[error("`{catalog}` contains no files of a catalog")]
    NoCatalogFiles {
        /// The directory or image.
        catalog: String,
    },
    /// It is a directory with a bundle.
    #[error("`{}` is a bundle, not a catalog", .path.display())]
    BundleDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// An image is needed, and this is something on disk.
    #[error("`{}` is not an image", .path.display())]
    NotAnImage {
        /// The path.
        path: PathBuf,
    },
}

impl InputError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        if let Self::Unpack { source, .. } = self { source.help() } else { None }
    }
}

impl FromStr for Input {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let path = Path::new(text);
        let on_disk = path.exists();
        if on_disk && reads_like_image(text) {
            progress::say(&format!(
                "note: `{text}` is read from the disk; `docker://{text}` names the image"
            ));
        }
        if on_disk || !(names_transport(text) || names_registry(text)) {
            return Ok(Self::Disk(path.into()));
        }
        text.parse().map(Self::Image)
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(path) => path.display().fmt(f),
            Self::Image(place) => place.fmt(f),
        }
    }
}

/// A path that means the same in every directory.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether people would take a path for an image: it begins with a host, which has a port or a domain of letters. `1.0.0/bundle` has none.
fn reads_like_image(text: &str) -> bool {
    let host = text.split('/').next().unwrap_or("");
    let domain = host.rsplit('.').next().unwrap_or("");
    let is_domain = domain.len() > 1 && domain.bytes().all(|byte| byte.is_ascii_alphabetic());
    names_registry(text) && (is_domain || host.contains(':'))
}

fn names_transport(text: &str) -> bool {
    let mut transports = ["oci:", "oci-archive:", "docker-archive:", "docker:", "http:", "https:"].iter();
    transports.any(|transport| text.starts_with(transport))
}

impl Input {
    /// The same, named so that it means the same in every directory.
    #[must_use]
    pub fn absolute(&self) -> Self {
        match self {
            Self::Disk(path) => Self::Disk(absolute(path)),
            Self::Image(place) => Self::Image(place.absolute()),
        }
    }

    /// The files of a bundle, as text where they are text.
    ///
    /// # Errors
    /// It cannot be read, or it is an image of something else.
    pub fn bundle(&self, access: &Access) -> Result<BundleFiles, Failure> {
        match self {
            Self::Disk(path) => BundleFiles::load(path).map_err(|error: LoadError| {
                let help = match error {
                    LoadError::TooManyFiles { .. } => {
                        "name the directory of a bundle; OLM accepts at most 1 MiB of packed manifests, which is far fewer files"
                    }
                    _ => "give the directory that holds `manifests/` and `metadata/`",
                };
                Failure::incomplete(error).help(help)
            }),
            Self::Image(place) => {
                let tree = unpack_bundle(place, &place.load(access)?)?;
                let with_children: BTreeSet<TreePath> =
                    tree.iter().filter_map(|(path, _)| path.parent()).collect();
                let mut files = Vec::new();
                for (path, content) in tree.into_contents().map_err(Failure::incomplete)? {
                    let content = match content {
                        None if with_children.contains(path.as_str()) => continue,
                        None => Content::Directory,
                        Some(bytes) => Content::from_bytes(bytes),
                    };
                    files.push(BundleFile { path, content });
                }
                if files.len() > MAX_FILES {
                    return Err(Failure::incomplete(InputError::TooManyFiles { place: place.to_string() }));
                }
                Ok(BundleFiles { name: place.to_string(), files })
            }
        }
    }

    /// What belongs into the image of a bundle: `manifests`, `metadata`, and `tests/scorecard` if it is there.
    ///
    /// # Errors
    /// As [`Input::bundle`].
    pub fn bundle_tree(&self, access: &Access) -> Result<FileTree, Failure> {
        match self {
            Self::Disk(path) => {
                let mut tree = FileTree::new();
                for dir in [MANIFESTS_DIR, METADATA_DIR, SCORECARD_DIR] {
                    let dir = dir.trim_end_matches('/');
                    let below = path.join(dir);
                    if below.is_dir() {
                        tree.add_dir(dir, &below)?;
                    }
                }
                Ok(tree)
            }
            Self::Image(place) => unpack_bundle(place, &place.load(access)?),
        }
    }

    /// The files of a catalog, as text where they are text.
    ///
    /// # Errors
    /// It cannot be read, has no files, or is an image of something else.
    pub fn catalog(&self, access: &Access) -> Result<CatalogFiles, Failure> {
        if let Self::Disk(path) = self
            && path.join(METADATA_DIR).join("annotations.yaml").is_file()
            && path.join(MANIFESTS_DIR).is_dir()
        {
            let help = format!(
                "to put it into a catalog, run `olmkit catalog add CATALOG {}`",
                argument(path.display())
            );
            return Err(Failure::failed(InputError::BundleDirectory { path: path.clone() }).help(help));
        }
        let files = self.catalog_files(access)?;
        if files.files.is_empty() {
            let help = match self {
                Self::Disk(path) => {
                    let catalog = argument(path.display());
                    format!("run `olmkit catalog add {catalog} BUNDLE` to start a catalog there")
                }
                Self::Image(_) => "name the image of a catalog".to_owned(),
            };
            return Err(Failure::failed(InputError::NoCatalogFiles { catalog: self.to_string() }).help(help));
        }
        Ok(files)
    }

    fn catalog_files(&self, access: &Access) -> Result<CatalogFiles, Failure> {
        let load = |path: &Path| {
            CatalogFiles::load(path).map_err(|error| {
                Failure::incomplete(error).help("give the directory that holds the catalog's files")
            })
        };
        match self {
            Self::Disk(path) => load(path),
            Self::Image(place) => {
                // By way of a directory: which files count is the catalog's own business.
                let dir = tempfile::tempdir().map_err(Failure::incomplete)?;
                let path = dir.path().join("catalog");
                files::fill(
                    &path,
                    &self.catalog_tree(access)?.into_contents().map_err(Failure::incomplete)?,
                )?;
                Ok(CatalogFiles { name: place.to_string(), ..load(&path)? })
            }
        }
    }

    /// What belongs into the image of a catalog, below its directory.
    ///
    /// # Errors
    /// It cannot be read, or it is an image of something else.
    pub fn catalog_tree(&self, access: &Access) -> Result<FileTree, Failure> {
        match self {
            Self::Disk(path) if path.is_file() => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let mut tree = FileTree::new();
                tree.add_file(&name, files::read(path)?)?;
                Ok(tree)
            }
            Self::Disk(path) => Ok(FileTree::from_dir(path)?),
            Self::Image(place) => {
                let root = place.load(access)?;
                let image = root.image(None)?;
                let dir = directory(place, image, CONFIGS_LABEL, "catalog")?;
                let only = dir.iter().cloned().collect();
                let tree = unpack(place, image, &Unpack { only, ..Unpack::default() })?;
                Ok(match dir {
                    Some(dir) => tree.moved(dir.as_str(), "")?,
                    None => tree,
                })
            }
        }
    }

    /// The image, for verbs that copy images as they are.
    ///
    /// # Errors
    /// It is not an image, or cannot be read.
    pub fn image(&self, access: &Access) -> Result<(Place, Root), Failure> {
        match self {
            Self::Disk(path) => {
                // Nothing is there: then it was meant for the name of an image.
                if !path.exists()
                    && let Some(Err(error)) = path.to_str().map(str::parse::<Place>)
                {
                    let help = error.help();
                    return Err(Failure::usage(error).help(help));
                }
                let error = InputError::NotAnImage { path: path.clone() };
                Err(Failure::usage(error).help(image_help(path)))
            }
            Self::Image(place) => Ok((place.clone(), place.load(access)?)),
        }
    }
}

/// How to name the image that is at a path.
fn image_help(path: &Path) -> String {
    let named = |kind: &str, tag: &str| argument(format!("{kind}:{}{tag}", path.display()));
    if path.is_file() {
        return format!(
            "name the archive: `{}` or `{}`",
            named("oci-archive", ""),
            named("docker-archive", "")
        );
    }
    let tags = Layout::new(path).tags().unwrap_or_default();
    let tags: Vec<String> = tags.iter().map(|(tag, _)| format!("`{}`", tag.escape_debug())).collect();
    match tags.as_slice() {
        [] => "name an image: `oci:DIR:TAG`, `oci-archive:FILE`, `docker-archive:FILE` or `HOST/NAME:TAG`"
            .to_owned(),
        tags => format!(
            "name an image of the layout: `{}`; its tags are {}",
            named("oci", ":TAG"),
            tags.join(", ")
        ),
    }
}

/// The files of a bundle's image, in the directories that they have on disk.
fn unpack_bundle(place: &Place, root: &Root) -> Result<FileTree, Failure> {
    let image = root.image(None)?;
    let mut moves = Vec::new();
    for (label, name) in [(MANIFESTS_LABEL, MANIFESTS_DIR), (METADATA_LABEL, METADATA_DIR)] {
        let name = name.trim_end_matches('/');
        // The root itself cannot be one of two directories.
        let Some(dir) = directory(place, image, label, "bundle")? else {
            return Err(bad_label(place, image, label));
        };
        moves.push((dir, name));
    }
    if image.label(SCORECARD_LABEL).is_some()
        && let Ok(dir) = SCORECARD_DIR.parse()
    {
        moves.push((dir, SCORECARD_DIR));
    }
    let only = moves.iter().map(|(dir, _)| dir.clone()).collect();
    let limits = Limits { kept: MAX_BUNDLE_IMAGE, ..Limits::default() };
    let unpacked = unpack(place, image, &Unpack { only, limits })?;
    let mut tree = FileTree::new();
    for (from, to) in moves {
        tree.add_tree(unpacked.clone().moved(from.as_str(), to)?)?;
    }
    if tree.is_empty() {
        return Err(Failure::failed(InputError::Empty { place: place.to_string() }));
    }
    Ok(tree)
}

fn unpack(place: &Place, image: &Image, options: &Unpack) -> Result<FileTree, InputError> {
    image
        .unpack(options)
        .map_err(|source| InputError::Unpack { place: place.to_string(), source: Box::new(source) })
}

/// The directory that a label of an image names; `None` is the root.
fn directory(
    place: &Place,
    image: &Image,
    label: &'static str,
    what: &'static str,
) -> Result<Option<TreePath>, Failure> {
    let Some(value) = image.label(label) else {
        let named = argument(place);
        let (other, help) = match what {
            "bundle" => (Kind::Catalog, format!("to print the catalog, run `olmkit catalog render {named}`")),
            _ => (Kind::Bundle, format!("to get its files, run `olmkit bundle unpack {named}`")),
        };
        let place = place.to_string();
        return Err(match image.label(other.label()) {
            Some(_) => Failure::failed(InputError::OtherKind { place, what, other: other.name() }).help(help),
            None => Failure::failed(InputError::NoLabel { place, what, label }),
        });
    };
    match value.trim_matches('/').trim_start_matches("./") {
        "" | "." => Ok(None),
        path => path.parse().map(Some).map_err(|_| bad_label(place, image, label)),
    }
}

fn bad_label(place: &Place, image: &Image, label: &'static str) -> Failure {
    let value = image.label(label).unwrap_or_default().to_owned();
    Failure::failed(InputError::Label { place: place.to_string(), label, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match text.parse() {
            Ok(Input::Disk(path)) => format!("disk {}", path.display()),
            Ok(Input::Image(place)) => format!("image {place}"),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn what_exists_is_on_disk() {
        check("src", "disk src");
        check(".", "disk .");
    }

    #[test]
    fn paths_that_people_take_for_images_have_a_host() {
        for (path, expected) in [
            ("quay.io/example/bundle:v1", true),
            ("localhost:5000/x", true),
            ("1.0.0/bundle", false),
            ("conf.d/bundle", false),
            ("bundle/quay.io/x", false),
            ("./quay.io/x", false),
        ] {
            assert_eq!(reads_like_image(path), expected, "{path}");
        }
    }

    #[test]
    fn what_names_a_registry_is_an_image() {
        check("quay.io/example/bundle:v1", "image quay.io/example/bundle:v1");
        check("localhost/x", "image localhost/x:latest");
        check("127.0.0.1:5000/x:v1", "image 127.0.0.1:5000/x:v1");
        check("docker://busybox", "image docker.io/library/busybox:latest");
        check("oci:no-such-dir:v1", "image oci:no-such-dir:v1");
        check("docker-archive:f.tar", "image docker-archive:f.tar");
    }

    #[test]
    fn what_does_not_is_a_directory_that_is_missing() {
        for text in ["nowhere", "no/where", "./no.where/x", "../x/y", "/no/where", "no.where/", "bundle:v1"] {
            check(text, &format!("disk {text}"));
        }
    }
}
