//! Images in one file: a tar of an OCI layout, or what `docker save` writes.
//!
//! Files are read by position, so that an image of any size is opened in flat memory. What is written is an OCI layout in
//! a tar; for `docker load`, with docker's own list of contents in it, which new dockers write as well.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use oci_spec::distribution::Reference;
use oci_spec::image::{ANNOTATION_REF_NAME, Descriptor, ImageIndex, MediaType};
use serde::Deserialize;
use serde_json::{Map, json};
use tar::{Archive as Tar, Builder, EntryType, Header};

use super::blob::{Blob, BlobError, Local};
use super::digest::{Digest, Hashing};
use super::json::canonical;
use super::layout::{self, Layout, LayoutError, Tag};
use super::lock;
use super::manifest::{Image, ImageError, Root};
use super::media_types::MAX_CONFIGURATION;
use super::reference::reference_from;
use super::unpack::{max_unpacked, plain_words};
use super::without_path;
use crate::files;
use crate::shell::argument;

/// The most files of an archive that are looked at.
const MAX_ENTRIES: usize = 20_000;
/// The largest archive after decompression, in bytes.
const MAX_UNPACKED: u64 = 32 << 30;
/// The start of the name of an archive that is being written, by the process that has the directory's lock.
const UNFINISHED: &str = ".olmkit-archive-";
/// Where an archive that was made by docker lists its images.
const DOCKER_LIST: &str = "manifest.json";

/// An archive that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The disk refused.
    #[error("cannot {action} `{}`", .path.display())]
    Io {
        /// What was tried: "read", "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is no archive of images.
    #[error("`{}` is not an archive of images: {problem}", .path.display())]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// What is missing or different.
        problem: String,
    },
    /// What would be overwritten is not an archive.
    #[error("`{}` exists and is not {what}", .path.display())]
    NotReplaced {
        /// The file.
        path: PathBuf,
        /// What it would have to be.
        what: &'static str,
    },
    /// Another process writes an archive in the directory, and does not finish.
    #[error("timed out waiting for another writer in the directory of `{}`", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// Which process writes.
        source: io::Error,
    },
    /// Another image would be lost.
    #[error("`{}` already has {}, which would be lost", .path.display(), .found.words())]
    OtherImage {
        /// The file.
        path: PathBuf,
        /// The image in it.
        found: FoundImage,
    },
    /// It has several images, and none was named.
    #[error("the archive `{}` has {count} images; it has {available}", .path.display())]
    Several {
        /// The file.
        path: PathBuf,
        /// How many there are.
        count: usize,
        /// Their names.
        available: String,
    },
    /// The image that was asked for is not there, or it is not clear which is meant.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// It has no image of that name.
    #[error("the archive `{}` has no image `{name}`; it has {available}", .path.display())]
    NoSuchName {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// What is there.
        available: String,
    },
    /// The image is damaged, not whole or not an image.
    #[error("the archive `{}` has an image that cannot be used", .path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ImageError,
    },
    /// A blob of the image cannot be had.
    #[error("cannot write `{}`", .path.display())]
    Blob {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BlobError,
    },
}

impl ArchiveError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Layout(error) => error.help(),
            Self::Image { source, .. } => source.help(),
            Self::Blob { source, .. } => source.help(),
            Self::NotReplaced { .. } => Some("choose a new file".into()),
            Self::Io { action: "write", path, source } if source.kind() == io::ErrorKind::NotFound => {
                let directory = path.parent().filter(|above| !above.exists())?;
                Some(format!("make its directory first: `mkdir -p {}`", argument(directory.display())))
            }
            Self::Busy { .. } => Some("end the other process, then run the command again".into()),
            Self::OtherImage { path, found: FoundImage { again: Some(tag), .. } } => {
                let place = argument(format!("oci-archive:{}:{tag}", path.display()));
                Some(format!(
                    "to replace it, name its tag: `{place}`; otherwise choose a new file, or `oci:DIR:TAG`, which holds several images"
                ))
            }
            Self::OtherImage { .. } => Some(
                "choose a new file, remove this one, or use `oci:DIR:TAG`, which holds several images".into(),
            ),
            Self::Several { path, .. } => {
                let place = argument(format!("docker-archive:{}:NAME", path.display()));
                Some(format!("name one: `{place}`"))
            }
            Self::NotAnArchive { .. } => Some(
                "archives are made by `docker save`, `podman save`, `skopeo copy` and `olmkit image copy`"
                    .into(),
            ),
            _ => None,
        }
    }
}

/// Reads the image of a tag from a tar of an OCI layout.
///
/// # Errors
/// As [`Layout::read`].
pub(super) fn read_oci(path: &Path, tag: Option<&Tag>) -> Result<Root, ArchiveError> {
    let files = Files::open(path)?;
    if !files.is_layout() {
        return Err(files.unusable("it has no `oci-layout` and `index.json`"));
    }
    let index = files.index()?;
    let chosen = Layout::new(path).choose("oci-archive", index.manifests(), tag)?;
    files.load(chosen)
}

/// The tag of the image in a tar of an OCI layout, if it has only one image and that has a tag.
///
/// # Errors
/// It is not an archive that can be read.
pub(super) fn only_tag(path: &Path) -> Result<Option<String>, ArchiveError> {
    Ok(match Files::open(path)?.images().as_slice() {
        [(tag, _)] => tag.clone(),
        _ => None,
    })
}

/// The name of the image in what `docker save` writes, if it has only one image and that has one name.
///
/// # Errors
/// As [`only_tag`].
pub(super) fn only_docker_name(path: &Path) -> Result<Option<String>, ArchiveError> {
    let listed = Files::open(path)?.docker_list()?;
    let mut names = listed.iter().flat_map(DockerImage::names);
    let only = names.next().filter(|_| listed.len() == 1);
    Ok(only.filter(|_| names.next().is_none()).map(str::to_owned))
}

/// Reads an image from what `docker save` writes, old or new.
///
/// # Errors
/// As [`read_oci`].
pub(super) fn read_docker(path: &Path, name: Option<&Reference>) -> Result<Root, ArchiveError> {
    let files = Files::open(path)?;
    let listed = files.docker_list()?;
    let is_named = |image: &DockerImage, name: &Reference| {
        image.names().any(|listed| reference_from(listed).is_ok_and(|listed| listed == *name))
    };
    let chosen = match name {
        Some(name) => listed.iter().find(|image| is_named(image, name)),
        None if listed.len() == 1 => listed.first(),
        None => None,
    };
    let Some(chosen) = chosen else {
        let names: Vec<String> = listed
            .iter()
            .flat_map(DockerImage::names)
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        let available = if names.is_empty() { "no names".to_owned() } else { names.join(", ") };
        let Some(name) = name else {
            return Err(ArchiveError::Several { path: path.into(), count: listed.len(), available });
        };
        return Err(ArchiveError::NoSuchName { path: path.into(), name: name.whole(), available });
    };
    // New dockers put an OCI layout into the same file, which has the digests that registries know.
    if files.is_layout()
        && let [only] = files.index()?.manifests().as_slice()
        && listed.len() == 1
    {
        return files.load(only);
    }
    files.assemble(chosen)
}

/// An image of an archive that is there already.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundImage {
    /// Its name, or its digest where that tells it better.
    named: String,
    is_digest: bool,
    /// The tag to name so that it is replaced.
    again: Option<String>,
}

impl FoundImage {
    fn words(&self) -> String {
        match (self.named.as_str(), self.is_digest) {
            ("", _) => "another image".to_owned(),
            (digest, true) => format!("another image, `{digest}`"),
            (name, false) => format!("the image `{}`", name.escape_debug()),
        }
    }
}

/// What an archive holds, and under which names.
#[derive(Clone, Copy)]
pub(super) struct Content<'i> {
    /// The tag in the layout; the default where none was given.
    pub(super) tag: &'i Tag,
    /// Docker's list of contents is added, with a name or none.
    pub(super) docker: Option<Option<&'i Reference>>,
    /// Whether somebody gave the image a name: then it may take the place of another of that name.
    pub(super) is_named: bool,
    /// The image.
    pub(super) root: &'i Root,
}

/// Checks that a file may be replaced by an archive: there is none, it is empty, or it is an archive of the same image, or of one that
/// has the name which this one was given.
///
/// # Errors
/// It is something else, which would be lost.
pub(super) fn check_target(path: &Path, content: &Content<'_>) -> Result<(), ArchiveError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let refused = |what| ArchiveError::NotReplaced { path: path.into(), what };
    if !metadata.is_file() {
        return Err(refused("a regular file"));
    }
    if metadata.len() == 0 {
        return Ok(());
    }
    let files = Files::open(path).map_err(|_| refused("an archive of images"))?;
    if !files.is_layout() && !files.places.contains_key(DOCKER_LIST) {
        return Err(refused("an archive of images"));
    }
    let lost = |found| Err(ArchiveError::OtherImage { path: path.into(), found });
    let reference = content.docker.flatten().map(Reference::whole);
    let is_own = |name: &str| name == content.tag.as_str() || reference.as_deref() == Some(name);
    if let Some(named) = files.names().into_iter().find(|name| !is_own(name)) {
        return lost(FoundImage { named, is_digest: false, again: None });
    }
    let own = content.root.digest().to_string();
    for (name, digest) in files.images() {
        let may_replace = content.is_named && name.is_some();
        if !may_replace && digest.as_ref() != Some(&own) {
            let again = name.filter(|_| content.docker.is_none());
            return lost(FoundImage { named: digest.unwrap_or_default(), is_digest: true, again });
        }
    }
    Ok(())
}

/// Writes an image as a tar of an OCI layout, with docker's list of contents where that is wanted.
///
/// # Errors
/// The disk refuses, a blob of the image cannot be had, or another image would be lost.
pub(super) fn write(path: &Path, content: &Content<'_>) -> Result<(), ArchiveError> {
    let Content { tag, docker, root, .. } = *content;
    let failed = |source| ArchiveError::Io { action: "write", path: path.into(), source };
    let target = files::target(path).map_err(failed)?;
    let old = fs::metadata(&target).ok();
    let mut index = Map::new();
    layout::list(&mut index, tag, root);
    let mut documents = BTreeMap::from([
        ("oci-layout", layout::VERSION.as_bytes().to_vec()),
        ("index.json", canonical(&index)),
    ]);
    if let Some(name) = docker {
        let image = root.image(None).map_err(|source| ArchiveError::Image { path: path.into(), source })?;
        documents.insert(DOCKER_LIST, docker_list(image, name));
    }
    Blob::fetch_all(root.blobs()).map_err(|source| ArchiveError::Blob { path: path.into(), source })?;

    let directory = target.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let _exclusive = lock_directory(path, directory)?;
    // Somebody else may have written it meanwhile.
    check_target(path, content)?;
    let file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(|error| failed(without_path(error)))?;
    let mut tar = Builder::new(io::BufWriter::with_capacity(256 << 10, file.as_file()));
    for directory in ["blobs/", "blobs/sha256/"] {
        tar.append(&header(directory, EntryType::Directory, 0).map_err(failed)?, io::empty())
            .map_err(failed)?;
    }
    let mut blobs = root.blobs();
    blobs.sort_by_key(|blob| blob.digest());
    for blob in blobs {
        let head = header(&format!("blobs/sha256/{}", blob.digest().hex()), EntryType::Regular, blob.size());
        let writer = tar.get_mut();
        writer.write_all(head.map_err(failed)?.as_bytes()).map_err(failed)?;
        blob.copy_to(writer).map_err(|source| ArchiveError::Blob { path: path.into(), source })?;
        let padding = blob.size().next_multiple_of(512) - blob.size();
        io::copy(&mut io::repeat(0).take(padding), writer).map_err(failed)?;
    }
    for (name, bytes) in documents {
        let head = header(name, EntryType::Regular, bytes.len() as u64).map_err(failed)?;
        tar.append(&head, bytes.as_slice()).map_err(failed)?;
    }
    tar.into_inner().and_then(|writer| Ok(writer.into_inner()?)).map_err(failed)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Waits until nobody else writes an archive in the directory, and removes what killed writers left there; no lock where the
/// file system has none.
fn lock_directory(path: &Path, directory: &Path) -> Result<Option<File>, ArchiveError> {
    let Ok(file) = File::open(directory) else { return Ok(None) };
    match lock::exclusive(&file, lock::MAX_WAIT_FOR_ARCHIVE) {
        Ok(()) => {}
        Err(source) if source.kind() == io::ErrorKind::TimedOut => {
            return Err(ArchiveError::Busy { path: path.into(), source });
        }
        Err(_) => return Ok(None),
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(Some(file))
}

fn header(name: &str, kind: EntryType, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_entry_type(kind);
    header.set_mode(if kind.is_dir() { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    Ok(header)
}

fn docker_list(image: &Image, name: Option<&Reference>) -> Vec<u8> {
    let at = |blob: &Blob| format!("blobs/sha256/{}", blob.digest().hex());
    canonical(&json!([{
        "Config": at(image.configuration()),
        "RepoTags": name.map(Reference::whole).into_iter().collect::<Vec<_>>(),
        "Layers": image.layers().iter().map(at).collect::<Vec<_>>(),
    }]))
}

/// An image in docker's list.
#[derive(Deserialize)]
struct DockerImage {
    #[serde(rename = "Config")]
    config: String,
    #[serde(rename = "RepoTags")]
    names: Option<Vec<String>>,
    #[serde(rename = "Layers")]
    layers: Vec<String>,
}

impl DockerImage {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().flatten().map(String::as_str)
    }
}

/// The files of an archive by path: where their bytes begin, and how many there are.
struct Files {
    path: PathBuf,
    file: Arc<File>,
    places: HashMap<String, (u64, u64)>,
    /// What old dockers write for a layer that is there already.
    links: HashMap<String, String>,
}

impl Files {
    fn open(path: &Path) -> Result<Self, ArchiveError> {
        let failed = |source| ArchiveError::Io { action: "read", path: path.into(), source };
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let mut file = File::open(path).map_err(failed)?;
        let mut magic = Vec::new();
        (&mut file).take(2).read_to_end(&mut magic).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        if magic == [0x1f, 0x8b] {
            file = decompress(file).map_err(failed)?;
        }
        let mut files =
            Self { path: path.into(), file: Arc::new(file), places: HashMap::new(), links: HashMap::new() };
        files.list()?;
        Ok(files)
    }

    fn list(&mut self) -> Result<(), ArchiveError> {
        let unusable = |error: io::Error| ArchiveError::NotAnArchive {
            path: self.path.clone(),
            problem: plain_words(error).to_string(),
        };
        let length = self.file.metadata().map_err(unusable)?.len();
        let mut tar = Tar::new(&*self.file);
        // Raw: the library would read records of any size into memory. No file here needs one.
        for (count, entry) in tar.entries_with_seek().map_err(unusable)?.raw(true).enumerate() {
            let entry = entry.map_err(unusable)?;
            if count == MAX_ENTRIES {
                return Err(self.unusable(&format!("it has more than {MAX_ENTRIES} entries")));
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
            let (start, size) = (entry.raw_file_position(), entry.size());
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => {
                    if start.checked_add(size).is_none_or(|end| end > length) {
                        return Err(self.unusable("it ends in the middle of a file"));
                    }
                    if self.places.insert(name.clone(), (start, size)).is_some() {
                        return Err(self.unusable(&format!("it has `{}` twice", name.escape_debug())));
                    }
                }
                EntryType::Symlink | EntryType::Link => {
                    let target = entry.header().link_name_bytes().unwrap_or_default();
                    self.links.insert(name, String::from_utf8_lossy(&target).into_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn unusable(&self, problem: &str) -> ArchiveError {
        ArchiveError::NotAnArchive { path: self.path.clone(), problem: problem.into() }
    }

    fn broken(&self) -> impl Fn(ImageError) -> ArchiveError {
        let path = self.path.clone();
        move |source| ArchiveError::Image { path: path.clone(), source }
    }

    fn is_layout(&self) -> bool {
        ["oci-layout", "index.json"].iter().all(|name| self.places.contains_key(*name))
    }

    /// Where a file is; a link leads to another one in the directory above its own, as old dockers write it.
    fn place(&self, name: &str) -> Option<(u64, u64)> {
        let target = self.links.get(name).map(|target| target.trim_start_matches("../"));
        self.places.get(target.unwrap_or(name)).copied()
    }

    fn reader(&self, (start, size): (u64, u64)) -> impl Read {
        Section { file: Arc::clone(&self.file), position: start }.take(size)
    }

    fn document(&self, name: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        let place =
            self.place(name).ok_or_else(|| self.unusable(&format!("it has no `{}`", name.escape_debug())))?;
        if place.1 > limit {
            return Err(self.unusable(&format!("`{}` has more than {limit} bytes", name.escape_debug())));
        }
        let mut bytes = Vec::new();
        let read = self.reader(place).read_to_end(&mut bytes);
        read.map_err(|source| ArchiveError::Io { action: "read", path: self.path.clone(), source })?;
        Ok(bytes)
    }

    fn index(&self) -> Result<ImageIndex, ArchiveError> {
        let bytes = self.document("index.json", layout::MAX_INDEX)?;
        serde_json::from_slice(&bytes).map_err(|error| self.unusable(&format!("`index.json`: {error}")))
    }

    /// What its images are called. An archive that cannot be read has no image that could be lost.
    fn names(&self) -> Vec<String> {
        let index = self.is_layout().then(|| self.index().ok()).flatten();
        let manifests = index.iter().flat_map(|index| index.manifests());
        let tags =
            manifests.filter_map(|found| found.annotations().as_ref()?.get(ANNOTATION_REF_NAME).cloned());
        let listed = self.docker_list().unwrap_or_default();
        tags.chain(listed.iter().flat_map(DockerImage::names).map(str::to_owned)).collect()
    }

    /// Its images: the name of each, if it has one, and its digest where the archive knows that.
    fn images(&self) -> Vec<(Option<String>, Option<String>)> {
        if let Some(index) = self.is_layout().then(|| self.index().ok()).flatten() {
            let name = |found: &Descriptor| found.annotations().as_ref()?.get(ANNOTATION_REF_NAME).cloned();
            return index
                .manifests()
                .iter()
                .map(|found| (name(found), Some(found.digest().to_string())))
                .collect();
        }
        let listed = self.docker_list().unwrap_or_default();
        listed.iter().map(|image| (image.names().next().map(str::to_owned), None)).collect()
    }

    fn docker_list(&self) -> Result<Vec<DockerImage>, ArchiveError> {
        let bytes = self.document(DOCKER_LIST, layout::MAX_INDEX)?;
        serde_json::from_slice(&bytes).map_err(|error| self.unusable(&format!("`{DOCKER_LIST}`: {error}")))
    }

    /// The image that a descriptor of the layout names.
    fn load(&self, descriptor: &Descriptor) -> Result<Root, ArchiveError> {
        let mut find = |wanted: &Descriptor| {
            let digest = Digest::try_from(wanted.digest())?;
            let place = self.place(&format!("blobs/sha256/{}", digest.hex()));
            let (start, size) = place.ok_or(BlobError::Missing { digest })?;
            if size != wanted.size() {
                return Err(BlobError::Size { digest, expected: wanted.size(), found: size });
            }
            let local = Local::File(Arc::clone(&self.file), start);
            Ok(Blob::from_parts(wanted.media_type().clone(), digest, size, local))
        };
        Root::load(descriptor, &mut find).map_err(self.broken())
    }

    /// The image of docker's list: it has no manifest, so one is made of what is there.
    fn assemble(&self, listed: &DockerImage) -> Result<Root, ArchiveError> {
        let configuration =
            Blob::from_bytes(MediaType::ImageConfig, self.document(&listed.config, MAX_CONFIGURATION)?);
        let expected = diff_ids(&configuration);
        if let Some(expected) = expected.filter(|expected| *expected != listed.layers.len()) {
            let found = listed.layers.len();
            return Err(self.unusable(&format!("it lists {found} layers, and its configuration {expected}")));
        }
        let mut layers = Vec::new();
        // An image may have a layer more than once; it is read once.
        let mut known = HashMap::new();
        for name in &listed.layers {
            let missing = || self.unusable(&format!("it has no layer `{}`", name.escape_debug()));
            let place = self.place(name).ok_or_else(missing)?;
            let (media_type, digest) = match known.get(&place) {
                Some(known) => Clone::clone(known),
                None => {
                    let layer = self.layer(place)?;
                    known.insert(place, layer.clone());
                    layer
                }
            };
            let (start, size) = place;
            layers.push(Blob::from_parts(
                media_type,
                digest,
                size,
                Local::File(Arc::clone(&self.file), start),
            ));
        }
        Image::assemble(configuration, layers).map(Root::from).map_err(self.broken())
    }

    /// What kind of layer is at a place, and its digest.
    fn layer(&self, place: (u64, u64)) -> Result<(MediaType, Digest), ArchiveError> {
        let failed = |source| ArchiveError::Io { action: "read", path: self.path.clone(), source };
        let mut content = Hashing::new(self.reader(place));
        let mut magic = [0; 4];
        let read = content.read(&mut magic).map_err(failed)?;
        io::copy(&mut content, &mut io::sink()).map_err(failed)?;
        let (_, digest, found) = content.finish();
        if found != place.1 {
            return Err(self.unusable("it ends in the middle of a file"));
        }
        let media_type = match magic {
            [0x1f, 0x8b, ..] if read >= 2 => MediaType::ImageLayerGzip,
            [0x28, 0xb5, 0x2f, 0xfd] if read == 4 => MediaType::ImageLayerZstd,
            _ => MediaType::ImageLayer,
        };
        Ok((media_type, digest))
    }
}

/// How many layers a configuration has, if it says so.
fn diff_ids(configuration: &Blob) -> Option<usize> {
    let bytes = configuration.read(MAX_CONFIGURATION).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    value.pointer("/rootfs/diff_ids")?.as_array().map(Vec::len)
}

/// A gzipped archive as a plain one, in a file without a name.
fn decompress(file: File) -> io::Result<File> {
    let mut plain = tempfile::tempfile()?;
    let packed = file.metadata()?.len();
    let most = MAX_UNPACKED.min(max_unpacked(packed));
    let copied = io::copy(&mut MultiGzDecoder::new(io::BufReader::new(file)).take(most + 1), &mut plain)?;
    if copied > most {
        return Err(io::Error::other(format!("it has {packed} bytes and unpacks to more than {most}")));
    }
    plain.seek(SeekFrom::Start(0))?;
    Ok(plain)
}

/// Reads from a position on.
struct Section {
    file: Arc<File>,
    position: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt as _;
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
