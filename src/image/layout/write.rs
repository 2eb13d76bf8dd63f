//! Into a layout: blobs first, then the tag, then what the old tag leaves behind.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use oci_spec::image::{ANNOTATION_REF_NAME, Descriptor, ImageIndex, MediaType, SCHEMA_VERSION};
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;

use super::super::TEMPORARY;
use super::super::blob::{Blob, BlobError};
use super::super::digest::Digest;
use super::super::json::canonical;
use super::super::lock;
use super::super::manifest::Root;
use super::super::without_path;
use super::read::tag_of;
use super::{Layout, LayoutError, MAX_INDEX, Tag, VERSION, io_error, open_file, read_file};
use crate::files;

/// How often to make a layout again that another writer removed.
const MAX_LOST: u32 = 20;

impl Layout {
    /// Stores an image or an index under a tag, and creates the layout if it is not there.
    ///
    /// Waits for other writers. Whoever holds no lock on the layout, such as another tool, should not write to it at the
    /// same time.
    ///
    /// # Errors
    /// The directory holds something else, the disk refuses, or a blob of the image cannot be read or is damaged.
    pub fn write(&self, tag: &Tag, root: &Root) -> Result<(), LayoutError> {
        let failed = |source: BlobError| LayoutError::Blob { dir: self.dir.clone(), source };
        Blob::fetch_all(root.blobs()).map_err(failed)?;
        let mut writer = Writer { layout: self, lock: None, made: self.missing_directories(), is_new: false };
        writer.lock()?;
        let blobs = self.blobs_path();
        fs::create_dir_all(&blobs).map_err(io_error("create", &blobs))?;
        self.remove_temporary_files();

        let (mut index, listed) = self.index_for_update()?;
        let mut added = Added::default();
        for blob in root.blobs() {
            self.store(blob, &mut added)?;
        }
        // An index on disk names blobs that are on disk, whenever the power fails.
        sync(&blobs);
        list(&mut index, tag, root);
        let path = self.index_path();
        let mut file = self.temporary_file()?;
        file.as_file_mut().write_all(&canonical(&index)).map_err(io_error("write", &path))?;
        persist(file, &path)?;
        added.keep();
        writer.keep();
        sync(&self.dir);

        let (replaced, kept) = listed.iter().partition(|descriptor| tag_of(descriptor) == Some(tag.as_str()));
        self.remove_unreachable(replaced, kept, root);
        Ok(())
    }

    /// The directories that are to be made, outermost first.
    fn missing_directories(&self) -> Vec<PathBuf> {
        let above = self.dir.ancestors().take_while(|above| *above != Path::new("") && !above.exists());
        let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
        missing.reverse();
        missing
    }

    /// Creates the directory and `oci-layout` as needed, and opens that.
    fn open_version(&self) -> Result<File, LayoutError> {
        fs::create_dir_all(&self.dir).map_err(io_error("create", &self.dir))?;
        let path = self.version_path();
        self.check_links()?;
        self.check_is_ours_to_fill()?;
        // `oci-layout` is made before anything else and never replaced, which makes it fit to be the lock.
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        options.open(&path).map_err(io_error("create", &path))
    }

    /// The layout may be reached through a link; inside of it, none leads out.
    fn check_links(&self) -> Result<(), LayoutError> {
        let blobs = self.blobs_path();
        let parts = [self.version_path(), self.index_path(), self.dir.join("blobs"), blobs];
        match parts.iter().find(|part| !files::is_inside(&self.dir, part)) {
            Some(part) => {
                let name = part.strip_prefix(&self.dir).unwrap_or(part).display().to_string();
                let problem = format!("`{}` is a link that leads out of it", name.escape_debug());
                Err(LayoutError::NotALayout { dir: self.dir.clone(), problem })
            }
            None => Ok(()),
        }
    }

    /// A directory with other things in it must not become a layout by a typing error.
    fn check_is_ours_to_fill(&self) -> Result<(), LayoutError> {
        let mut entries = fs::read_dir(&self.dir).map_err(io_error("read", &self.dir))?;
        let is_empty = entries.next().is_none();
        // Asked after the listing: another writer, whose files it may have met, makes this one first.
        if is_empty || self.version_path().is_file() {
            return Ok(());
        }
        let problem = "it has files, but no file `oci-layout`".into();
        Err(LayoutError::NotALayout { dir: self.dir.clone(), problem })
    }

    /// `index.json` as it is, with all that other tools noted in it, and what it lists.
    fn index_for_update(&self) -> Result<(Map<String, Value>, Vec<Descriptor>), LayoutError> {
        let path = self.index_path();
        let bytes = match open_file(&path).and_then(|mut file| read_file(&mut file, MAX_INDEX)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Map::new(), Vec::new())),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let parse = || Ok((serde_json::from_slice(&bytes)?, serde_json::from_slice::<ImageIndex>(&bytes)?));
        let (index, typed) = parse().map_err(|source| LayoutError::Index { path, source })?;
        Ok((index, typed.manifests().clone()))
    }

    /// Copies a blob into the layout and checks it on the way. One that is there already is replaced by the same bytes,
    /// which mends it if it was damaged.
    fn store(&self, blob: &Blob, added: &mut Added) -> Result<(), LayoutError> {
        let failed = |source: BlobError| LayoutError::Blob { dir: self.dir.clone(), source };
        let path = self.blob_path(blob.digest());
        let is_new = fs::symlink_metadata(&path).is_err();
        let mut file = self.temporary_file()?;
        blob.copy_to(file.as_file_mut()).map_err(failed)?;
        persist(file, &path)?;
        if is_new {
            added.0.push(path);
        }
        Ok(())
    }

    fn temporary_file(&self) -> Result<NamedTempFile, LayoutError> {
        let dir = self.blobs_path();
        tempfile::Builder::new()
            .prefix(TEMPORARY)
            // Less whatever the umask takes away: images are there to be read by others.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&dir)
            .map_err(|error| io_error("write to", &dir)(without_path(error)))
    }

    /// Every living writer waits for the lock, so temporary files were left by a dead one. What cannot be removed harms
    /// nobody.
    fn remove_temporary_files(&self) {
        for entry in fs::read_dir(self.blobs_path()).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes the blobs that only the replaced images led to. If any document cannot be read, all stay: a blob too many
    /// is better than one too few.
    fn remove_unreachable(&self, replaced: Vec<&Descriptor>, kept: Vec<&Descriptor>, new: &Root) {
        if replaced.iter().all(|descriptor| new.top().is_named_by(descriptor)) {
            return;
        }
        let (Some(old), Some(mut needed)) = (self.reachable(replaced), self.reachable(kept)) else { return };
        needed.extend(new.blobs().into_iter().map(Blob::digest));
        for digest in old.difference(&needed) {
            let _ = fs::remove_file(self.blob_path(*digest));
        }
    }

    /// The digests of all blobs that these descriptors lead to; `None` when that cannot be told.
    fn reachable(&self, from: Vec<&Descriptor>) -> Option<HashSet<Digest>> {
        let mut found = HashSet::new();
        for descriptor in from {
            let root = Root::load(descriptor, &mut |wanted| self.open_blob(wanted)).ok()?;
            found.extend(root.blobs().into_iter().map(Blob::digest));
        }
        Some(found)
    }
}

/// Gives a file its name when its content is on disk.
fn persist(file: NamedTempFile, path: &Path) -> Result<(), LayoutError> {
    file.as_file().sync_all().map_err(io_error("write", path))?;
    file.persist(path).map_err(|error| io_error("write", path)(error.error))?;
    Ok(())
}

/// Makes renames in a directory last. Some file systems cannot, and need not.
fn sync(directory: &Path) {
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
}

/// Makes the tag name the image, in an index that may list anything else.
pub(in crate::image) fn list(index: &mut Map<String, Value>, tag: &Tag, root: &Root) {
    let mut descriptor = root.top().descriptor();
    descriptor.set_annotations(Some([(ANNOTATION_REF_NAME.to_owned(), tag.to_string())].into()));
    let name = |entry: &Value| entry["annotations"][ANNOTATION_REF_NAME].as_str().map(str::to_owned);

    let mut manifests = match index.remove("manifests") {
        Some(Value::Array(manifests)) => manifests,
        _ => Vec::new(),
    };
    manifests.retain(|entry| name(entry).as_deref() != Some(tag.as_str()));
    manifests.push(json!(descriptor));
    manifests.sort_by_key(name);

    index.entry("schemaVersion").or_insert(json!(SCHEMA_VERSION));
    index.entry("mediaType").or_insert(json!(MediaType::ImageIndex));
    index.insert("manifests".into(), Value::Array(manifests));
}

/// The one writer of a layout. Where there was none before, the layout goes again unless the write succeeds.
struct Writer<'l> {
    layout: &'l Layout,
    /// `oci-layout`, which keeps others waiting until everything is done or undone.
    lock: Option<File>,
    /// The directories that were not there, outermost first.
    made: Vec<PathBuf>,
    /// Whether nothing was in the layout.
    is_new: bool,
}

impl Writer<'_> {
    /// Waits until nobody else reads or writes.
    fn lock(&mut self) -> Result<(), LayoutError> {
        let (layout, path) = (self.layout, self.layout.version_path());
        let mut lost = 0;
        let file = loop {
            let file = match layout.open_version() {
                // Another writer failed meanwhile, and removed what it had made.
                Err(LayoutError::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && lost < MAX_LOST =>
                {
                    lost += 1;
                    continue;
                }
                file => file?,
            };
            lock::exclusive(&file, lock::MAX_WAIT_FOR_LAYOUT).map_err(|error| match error.kind() {
                ErrorKind::TimedOut => LayoutError::Busy { dir: layout.dir.clone(), source: error },
                _ => io_error("lock", &path)(error),
            })?;
            let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            let is_there = file.metadata().map(id).ok() == fs::metadata(&path).map(id).ok();
            if is_there || lost >= MAX_LOST {
                break file;
            }
            lost += 1;
        };
        let file = self.lock.insert(file);
        let version = read_file(file, MAX_INDEX).map_err(io_error("read", &path))?;
        if !version.is_empty() {
            return layout.check_version(&version);
        }
        // New, or left by a writer that was killed just here.
        self.is_new = true;
        file.write_all(VERSION.as_bytes()).map_err(io_error("write", &path))?;
        file.sync_all().map_err(io_error("write", &path))
    }

    /// Keeps what was written.
    fn keep(&mut self) {
        self.is_new = false;
        self.made.clear();
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // Directories that hold something stay, and with them the file that says what they are.
            for directory in self.layout.blobs_path().ancestors().take(2) {
                let _ = fs::remove_dir(directory);
            }
            let entries = fs::read_dir(&self.layout.dir).map(Iterator::count);
            if entries.is_ok_and(|entries| entries == 1) {
                let _ = fs::remove_file(self.layout.version_path());
            }
        }
        self.made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory)));
    }
}

/// Blobs that were not in the layout before. They go again unless the write succeeds.
#[derive(Default)]
struct Added(Vec<PathBuf>);

impl Added {
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
