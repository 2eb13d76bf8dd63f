//! Blobs that were fetched, kept by their digest for the next time, within a bound.
//!
//! Safe for several processes at once without locks: a blob is written under another name and renamed when it is whole
//! and checked, so a name only ever stands for one content; who has opened a file keeps it when another process removes
//! it. What is read is checked again: a disk may have gone bad since.
//!
//! Blobs are removed only from a directory that carries our mark, and only files that are named like blobs: an OCI layout has its
//! blobs at the same paths.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::files;
use crate::image::TEMPORARY;
use crate::image::digest::{Digest, Hashing};

/// How many bytes are kept unless the user says otherwise: 2 GiB.
pub const DEFAULT_LIMIT: u64 = 2 << 30;
/// What is still being written after this long belongs to a process that is gone.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The file that marks a directory as ours, as the Cache Directory Tagging Specification (<https://bford.info/cachedir/>) has
/// it: programs that make backups leave such directories out.
const MARK: &str = "CACHEDIR.TAG";
const MARK_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# This directory holds image blobs that olmkit has fetched.\n";

/// A directory that holds something else than a cache of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotACache(pub(super) PathBuf);

/// How the directory of a cache was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    /// It is the default, whose name is ours: it may be a cache from before there was a mark.
    ByDefault,
    /// The user; it may be any directory.
    ByUser,
}

/// A directory with blobs, or none: then they live in unnamed temporary files.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    dir: Option<PathBuf>,
    limit: u64,
}

/// A blob that is arriving.
pub(super) enum Incoming {
    Named(NamedTempFile),
    Unnamed(File),
}

impl Write for Incoming {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Named(file) => file.write(bytes),
            Self::Unnamed(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The user's cache directory for images, as the XDG specification has it.
pub(super) fn default_dir(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = path("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
    base.or_else(|| Some(path("HOME")?.join(".cache"))).map(|dir| dir.join("olmkit"))
}

impl Cache {
    /// A cache at a directory, which is made and marked where it is new or empty. With no directory, no room, or where it
    /// cannot be made, nothing is kept.
    ///
    /// # Errors
    /// The directory holds something else.
    pub(super) fn new(dir: Option<PathBuf>, chosen: Chosen, limit: u64) -> Result<Self, NotACache> {
        let dir = match dir.filter(|_| limit > 0) {
            Some(dir) => blobs_dir(&dir, chosen)?,
            None => None,
        };
        Ok(Self { dir, limit })
    }

    /// Where blobs are written while they arrive.
    pub(super) fn temporary_dir(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// A blob that is kept. Damaged ones are removed.
    pub(super) fn get(&self, digest: Digest, size: u64) -> Option<File> {
        let path = self.dir.as_ref()?.join(digest.hex());
        // Opening a FIFO would wait for ever.
        fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let mut file = File::open(&path).ok()?;
        let mut content = Hashing::new((&mut file).take(size + 1));
        let read = io::copy(&mut content, &mut io::sink());
        let (_, found, length) = content.finish();
        if read.is_err() || found != digest || length != size {
            let _ = fs::remove_file(&path);
            return None;
        }
        file.seek(SeekFrom::Start(0)).ok()?;
        // So that what is in use goes last.
        let _ = File::open(&path)
            .and_then(|file| file.set_times(FileTimes::new().set_modified(SystemTime::now())));
        Some(file)
    }

    /// A file for a blob that arrives.
    ///
    /// # Errors
    /// No file can be made.
    pub(super) fn incoming(&self) -> io::Result<Incoming> {
        match &self.dir {
            // A cache that somebody else made may be read and not written.
            Some(dir) => match tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(dir) {
                Ok(file) => Ok(Incoming::Named(file)),
                Err(_) => tempfile::tempfile().map(Incoming::Unnamed),
            },
            None => tempfile::tempfile().map(Incoming::Unnamed),
        }
    }

    /// Keeps a blob that has arrived and was checked. What cannot be kept is still there to be read.
    pub(super) fn keep(&self, incoming: Incoming, digest: Digest) -> File {
        match (incoming, &self.dir) {
            (Incoming::Unnamed(file), _) => file,
            (Incoming::Named(file), None) => file.into_file(),
            (Incoming::Named(file), Some(dir)) => {
                let file =
                    file.persist(dir.join(digest.hex())).unwrap_or_else(|error| error.file.into_file());
                self.trim(dir);
                file
            }
        }
    }

    /// Removes what was not used for the longest time until the rest fits, and what dead processes left.
    fn trim(&self, dir: &Path) {
        let mut kept = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(used) = metadata.modified() else { continue };
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    let _ = fs::remove_file(entry.path());
                }
                continue;
            }
            if !metadata.is_file() || !is_blob_name(&entry.file_name()) {
                continue;
            }
            total += metadata.len();
            kept.push((used, metadata.len(), entry.path()));
        }
        kept.sort();
        for (_, length, path) in kept {
            if total <= self.limit {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= length;
            }
        }
    }
}

/// The directory for the blobs of a cache; none where it cannot be made.
fn blobs_dir(dir: &Path, chosen: Chosen) -> Result<Option<PathBuf>, NotACache> {
    if fs::create_dir_all(dir).is_err() {
        return if dir.exists() { Err(NotACache(dir.to_owned())) } else { Ok(None) };
    }
    if !is_marked(dir) {
        let Ok(entries) = fs::read_dir(dir) else { return Ok(None) };
        let is_other = |name: OsString| !name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        let is_empty = !entries.flatten().any(|entry| is_other(entry.file_name()));
        let is_from_before = chosen == Chosen::ByDefault && !dir.join("oci-layout").exists();
        // Asked again after the listing: another process may have marked and filled it meanwhile.
        if !is_empty && !is_from_before && !is_marked(dir) {
            return Err(NotACache(dir.to_owned()));
        }
        if mark(dir).is_err() {
            return Ok(None);
        }
    }
    let blobs = dir.join("blobs").join("sha256");
    // Nothing is written or removed where a link leads.
    if [&dir.join("blobs"), &blobs].into_iter().any(|part| !files::is_inside(dir, part)) {
        return Err(NotACache(dir.to_owned()));
    }
    Ok(fs::create_dir_all(&blobs).is_ok().then_some(blobs))
}

fn is_marked(dir: &Path) -> bool {
    let path = dir.join(MARK);
    // Opening a FIFO would wait for ever.
    let is_small = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() < 4096);
    is_small && fs::read(&path).is_ok_and(|text| text.starts_with(MARK_TEXT.as_bytes()))
}

/// Marks a directory, at once: another process sees the whole mark or none.
fn mark(dir: &Path) -> io::Result<()> {
    let readable = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).permissions(readable).tempfile_in(dir)?;
    file.write_all(MARK_TEXT.as_bytes())?;
    file.persist(dir.join(MARK)).map_err(|error| error.error)?;
    Ok(())
}

/// Whether a file is named by a digest, as the files of a cache are.
fn is_blob_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == 64 && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_in(dir: &Path, limit: u64) -> Cache {
        Cache::new(Some(dir.into()), Chosen::ByUser, limit).unwrap()
    }

    fn keep(cache: &Cache, content: &str) -> Digest {
        let mut incoming = cache.incoming().unwrap();
        incoming.write_all(content.as_bytes()).unwrap();
        let digest = Digest::of(content.as_bytes());
        cache.keep(incoming, digest);
        digest
    }

    fn get(cache: &Cache, digest: Digest, size: u64) -> Option<String> {
        let mut text = String::new();
        cache.get(digest, size)?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    fn age(cache: &Cache, digest: Digest, seconds: u64) {
        let file = File::open(cache.dir.as_ref().unwrap().join(digest.hex())).unwrap();
        let time = SystemTime::now() - Duration::from_secs(seconds);
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }

    #[test]
    fn what_is_kept_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 100);
        let digest = keep(&cache, "content");
        assert_eq!(get(&cache, digest, 7).unwrap(), "content");
        assert_eq!(get(&cache, Digest::of(b"other"), 5), None);
    }

    #[test]
    fn what_is_damaged_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 100);
        let digest = keep(&cache, "content");
        let path = cache.dir.as_ref().unwrap().join(digest.hex());
        fs::write(&path, "c0ntent").unwrap();
        assert_eq!(get(&cache, digest, 7), None);
        assert!(!path.exists());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_blob_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 100);
        let digest = Digest::of(b"content");
        let path = cache.dir.as_ref().unwrap().join(digest.hex());
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        assert_eq!(get(&cache, digest, 7), None);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_done_without() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 100);
        // For root every directory can be written, unless it is gone.
        fs::remove_dir_all(cache.dir.as_ref().unwrap()).unwrap();
        let digest = keep(&cache, "content");
        assert_eq!(get(&cache, digest, 7), None);
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 10);
        let (one, two) = (keep(&cache, "11111"), keep(&cache, "22222"));
        age(&cache, one, 200);
        age(&cache, two, 100);
        assert!(get(&cache, one, 5).is_some(), "now it is the latest in use");
        let three = keep(&cache, "33333");
        let found = [one, two, three].map(|digest| get(&cache, digest, 5).is_some());
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn files_of_dead_processes_go_and_those_of_living_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 100);
        let blobs = cache.dir.clone().unwrap();
        for (name, hours) in [(".olmkit-old", 25), (".olmkit-new", 1)] {
            let file = File::create(blobs.join(name)).unwrap();
            let time = SystemTime::now() - Duration::from_secs(hours * 3600);
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        }
        keep(&cache, "content");
        assert!(!blobs.join(".olmkit-old").exists() && blobs.join(".olmkit-new").exists());
    }

    #[test]
    fn an_image_layout_given_as_the_cache_is_refused_and_keeps_its_blobs() {
        for chosen in [Chosen::ByUser, Chosen::ByDefault] {
            let dir = tempfile::tempdir().unwrap();
            let blobs = dir.path().join("blobs/sha256");
            fs::create_dir_all(&blobs).unwrap();
            fs::write(dir.path().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
            let blob = blobs.join(Digest::of(b"content").hex());
            // Damaged, so that a cache would remove it at once.
            fs::write(&blob, "c0ntent").unwrap();
            let refused = Cache::new(Some(dir.path().into()), chosen, 10).unwrap_err();
            assert_eq!(refused, NotACache(dir.path().into()));
            assert!(blob.exists() && !dir.path().join(MARK).exists());
        }
    }

    /// Nothing is written or removed where the link leads.
    #[test]
    fn a_cache_whose_blobs_are_a_link_that_leads_out_of_it_is_refused() {
        for part in ["blobs", "blobs/sha256"] {
            let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            keep(&cache_in(dir.path(), 100), "content");
            let path = dir.path().join(part);
            fs::remove_dir_all(&path).unwrap();
            std::os::unix::fs::symlink(outside.path(), &path).unwrap();
            fs::write(outside.path().join(".olmkit-foreign"), "").unwrap();
            let refused = Cache::new(Some(dir.path().into()), Chosen::ByUser, 100).unwrap_err();
            assert_eq!(refused, NotACache(dir.path().into()));
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "{part}");
        }
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        for (path, content) in [
            ("blobs/sha256/x", ""),
            ("notes.txt", ""),
            (
                MARK,
                "Signature: 8a477f597d28d172789f06886806bc55\n# This file is a cache directory tag created by cargo.\n",
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            let new = |dir: &Path| Cache::new(Some(dir.into()), Chosen::ByUser, 10);
            assert!(new(dir.path()).is_err(), "{path}");
            assert!(new(&file).is_err(), "{path} is a file");
            assert_eq!(fs::read_to_string(file).unwrap(), content);
        }
    }

    #[test]
    fn a_cache_is_marked_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        // What another process is marking just now is no reason to refuse it.
        fs::write(dir.path().join(".olmkit-x"), "").unwrap();
        let digest = keep(&cache_in(dir.path(), 100), "content");
        assert!(fs::read_to_string(dir.path().join(MARK)).unwrap().starts_with("Signature: 8a477f59"));
        assert!(get(&cache_in(dir.path(), 100), digest, 7).is_some());
        // The default one may be from before there was a mark.
        fs::remove_file(dir.path().join(MARK)).unwrap();
        let adopted = Cache::new(Some(dir.path().into()), Chosen::ByDefault, 100).unwrap();
        assert!(get(&adopted, digest, 7).is_some() && is_marked(dir.path()));
    }

    #[test]
    fn files_that_are_not_blobs_stay_in_a_cache() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache_in(dir.path(), 5);
        let notes = cache.dir.as_ref().unwrap().join("notes.txt");
        fs::write(&notes, "more than the cache may hold").unwrap();
        let digest = keep(&cache, "11111");
        assert!(get(&cache, digest, 5).is_some() && notes.exists());
        let other = keep(&cache, "22222");
        assert!(get(&cache, digest, 5).is_none() && get(&cache, other, 5).is_some() && notes.exists());
    }

    #[test]
    fn without_a_directory_nothing_is_kept_and_all_works() {
        for dir in [None, Some("/proc/nowhere".into())] {
            let cache = Cache::new(dir, Chosen::ByUser, 100).unwrap();
            let mut incoming = cache.incoming().unwrap();
            incoming.write_all(b"content").unwrap();
            let digest = Digest::of(b"content");
            let mut file = cache.keep(incoming, digest);
            file.seek(SeekFrom::Start(0)).unwrap();
            assert_eq!(io::read_to_string(file).unwrap(), "content");
            assert_eq!(get(&cache, digest, 7), None);
        }
    }
}
