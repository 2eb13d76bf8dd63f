//! From a layout: its tags, and an image with every document checked.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;

use oci_spec::image::{ANNOTATION_REF_NAME, Descriptor, ImageIndex};

use super::super::blob::{Blob, BlobError};
use super::super::digest::Digest;
use super::super::lock;
use super::super::manifest::Root;
use super::{Layout, LayoutError, MAX_INDEX, Tag, io_error, open_file, read_file};

impl Layout {
    /// Reads the image of a tag, or the one that is meant without a tag (see [`Layout`]).
    ///
    /// Manifests and configurations are read and checked. Layers are opened and their sizes checked; their content is
    /// checked when it is read. The image stays readable when the layout changes or is removed.
    ///
    /// # Errors
    /// There is no layout or no such image, a blob is missing, or a document is damaged.
    pub fn read(&self, tag: Option<&Tag>) -> Result<Root, LayoutError> {
        let _shared = self.lock_shared()?;
        let index = self.index()?;
        let descriptor = self.choose("oci", index.manifests(), tag)?;
        let mut opened: HashMap<Digest, Blob> = HashMap::new();
        let mut find = |wanted: &Descriptor| {
            // Images of one index share layers: one open file is enough for all of them.
            let digest = Digest::try_from(wanted.digest())?;
            if let Some(blob) = opened.get(&digest).filter(|blob| blob.is_named_by(wanted)) {
                return Ok(blob.clone());
            }
            let blob = self.open_blob(wanted)?;
            opened.insert(digest, blob.clone());
            Ok(blob)
        };
        Root::load(descriptor, &mut find)
            .map_err(|source| LayoutError::Image { dir: self.dir.clone(), source })
    }

    /// The tags of the layout's images, sorted, each with the digest of what it names.
    ///
    /// # Errors
    /// There is no layout, or its index is damaged.
    pub fn tags(&self) -> Result<Vec<(String, Digest)>, LayoutError> {
        let _shared = self.lock_shared()?;
        let index = self.index()?;
        let named =
            |descriptor| Some((tag_of(descriptor)?.to_owned(), Digest::try_from(descriptor.digest()).ok()?));
        let mut tags: Vec<(String, Digest)> = index.manifests().iter().filter_map(named).collect();
        tags.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(tags)
    }

    /// The tag of the layout's image, if it has only one image and that has a tag.
    ///
    /// # Errors
    /// As [`Layout::tags`].
    pub(in crate::image) fn only_tag(&self) -> Result<Option<String>, LayoutError> {
        let _shared = self.lock_shared()?;
        let index = self.index()?;
        Ok(match index.manifests().as_slice() {
            [only] => tag_of(only).map(str::to_owned),
            _ => None,
        })
    }

    /// Waits until nobody writes, and keeps writers waiting while the file is held. Where there are no locks, reading
    /// goes on without.
    fn lock_shared(&self) -> Result<File, LayoutError> {
        let path = self.version_path();
        let mut file = match open_file(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound && !self.dir.exists() => {
                return Err(LayoutError::Missing { dir: self.dir.clone() });
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                let problem = "it has no file `oci-layout`".into();
                return Err(LayoutError::NotALayout { dir: self.dir.clone(), problem });
            }
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        match lock::shared(&file, lock::MAX_WAIT_FOR_LAYOUT) {
            Err(source) if source.kind() == ErrorKind::TimedOut => {
                return Err(LayoutError::Busy { dir: self.dir.clone(), source });
            }
            Err(_) | Ok(()) => {}
        }
        let version = read_file(&mut file, MAX_INDEX).map_err(io_error("read", &path))?;
        if version.is_empty() {
            // A writer is about to fill it, and nothing is in the layout yet.
            return Err(LayoutError::Missing { dir: self.dir.clone() });
        }
        self.check_version(&version)?;
        Ok(file)
    }

    fn index(&self) -> Result<ImageIndex, LayoutError> {
        let path = self.index_path();
        let mut file = match open_file(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let problem = "it has no file `index.json`".into();
                return Err(LayoutError::NotALayout { dir: self.dir.clone(), problem });
            }
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let bytes = read_file(&mut file, MAX_INDEX).map_err(io_error("read", &path))?;
        serde_json::from_slice(&bytes).map_err(|source| LayoutError::Index { path, source })
    }

    /// The descriptor of a tag, or of the image that is meant without one. `transport` is the kind of place, as people write it.
    pub(in crate::image) fn choose<'d>(
        &self,
        transport: &'static str,
        descriptors: &'d [Descriptor],
        tag: Option<&Tag>,
    ) -> Result<&'d Descriptor, LayoutError> {
        let tagged =
            |tag: &Tag| descriptors.iter().find(|descriptor| tag_of(descriptor) == Some(tag.as_str()));
        let available = || {
            let mut tags: Vec<String> = descriptors
                .iter()
                .filter_map(tag_of)
                .map(|tag| format!("`{}`", tag.escape_debug()))
                .collect();
            tags.sort();
            if tags.is_empty() { "no tags".to_owned() } else { crate::sentence::first_of(&tags, 10) }
        };
        let dir = || self.dir.clone();
        match (tag, descriptors) {
            (Some(tag), _) => tagged(tag).ok_or_else(|| LayoutError::NoSuchTag {
                dir: dir(),
                tag: tag.clone(),
                available: available(),
            }),
            (None, [only]) => Ok(only),
            (None, several) => tagged(&Tag::default()).ok_or_else(|| LayoutError::Ambiguous {
                transport,
                dir: dir(),
                count: several.len(),
                available: available(),
            }),
        }
    }

    /// Opens a blob and checks its size.
    pub(super) fn open_blob(&self, descriptor: &Descriptor) -> Result<Blob, BlobError> {
        let digest = Digest::try_from(descriptor.digest())?;
        match open_file(&self.blob_path(digest)) {
            Ok(file) => Blob::from_file(descriptor, file),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(BlobError::Missing { digest }),
            Err(source) => Err(BlobError::Read { digest, source }),
        }
    }
}

/// The tag under which an index lists something.
pub(super) fn tag_of(descriptor: &Descriptor) -> Option<&str> {
    descriptor.annotations().as_ref()?.get(ANNOTATION_REF_NAME).map(String::as_str)
}
