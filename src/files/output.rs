//! A user's directory that a verb writes into.
//!
//! - Only the files that the verb names are created, replaced or removed, each by one rename: a reader finds the
//!   old file or the new one, also after a kill or a crash. Nothing else in the directory is touched, and the
//!   directory itself stays.
//! - Everything is written to a staging directory first, so a full disk is noticed before the first file changes.
//! - One writer at a time: a lock on the directory makes the others wait. What a killed writer leaves in the staging
//!   directory is removed by the next one. Where the files of a directory and of those below it belong together, as a catalog's do,
//!   writers of a directory below it wait too ([`OutputDir::open_tree`]).
//! - A replaced file keeps its mode and owner. A file that has the wanted content already is not written.
//! - The directory may be reached through a link. Inside it, a link is followed if it stays inside, and refused if not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::FileError;

/// The start of a staging directory's name. Files that other code is writing start with `.olmkit-` too, but are not
/// protected by the directory's lock.
pub(super) const STAGING: &str = ".olmkit-new-";
/// How long to wait for another writer.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How often to make a directory again that another writer removed.
const MAX_LOST: u32 = 20;
/// The modes of new files, before the umask takes from them.
const EVERYBODY: u32 = 0o666;
const OWNER_ONLY: u32 = 0o600;
/// How often to look whether it has finished.
const POLL: Duration = Duration::from_millis(20);

/// A directory that this process alone writes into, until the value is dropped.
#[derive(Debug)]
pub struct OutputDir {
    /// As the user named it.
    path: PathBuf,
    /// Without links.
    real: PathBuf,
    /// None on a file system without locks.
    lock: Option<fs::File>,
    /// The directories above, which nobody else locks meanwhile; for [`OutputDir::open_tree`].
    above: Vec<fs::File>,
    /// The directories that were made for it, outermost first.
    made: Vec<PathBuf>,
    /// Paths of files that only their owner may read.
    private: BTreeSet<String>,
}

/// A file to be written.
struct Pending<'b> {
    target: PathBuf,
    old: Option<fs::Metadata>,
    bytes: &'b [u8],
    is_private: bool,
}

impl OutputDir {
    /// Makes the directory if it is not there, and waits until nobody else writes into it.
    ///
    /// # Errors
    /// It cannot be made or read, or another writer does not finish.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let fail = |source| FileError::Write { path: path.to_owned(), source };
        let deadline = Instant::now() + MAX_WAIT;
        let mut lost = 0;
        loop {
            let opened = create_dirs(path).and_then(|made| {
                let real = fs::canonicalize(path)?;
                let file = fs::File::open(&real)?;
                Ok((made, real, file))
            });
            let (made, real, file) = match opened {
                Ok(opened) => opened,
                // A writer that failed removed the empty directories that it had made, while this one was on its way.
                Err(error) if error.kind() == io::ErrorKind::NotFound && lost < MAX_LOST => {
                    lost += 1;
                    thread::sleep(POLL);
                    continue;
                }
                Err(error) => return Err(fail(error)),
            };
            let locked = lock(&file, deadline).map_err(|_| FileError::Busy { path: path.to_owned() })?;
            // A writer that failed may have removed the empty directory while this one waited.
            let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            if file.metadata().map(id).ok() != fs::metadata(&real).map(id).ok() {
                continue;
            }
            let lock = locked.then_some(file);
            let (path, private) = (path.to_owned(), BTreeSet::new());
            let directory = Self { path, real, lock, above: Vec::new(), made, private };
            directory.remove_leftovers();
            return Ok(directory);
        }
    }

    /// The same, and waits until nobody writes into a directory above: what it holds of this one would be changed behind its back.
    ///
    /// # Errors
    /// As [`OutputDir::open`].
    pub fn open_tree(path: &Path) -> Result<Self, FileError> {
        let deadline = Instant::now() + MAX_WAIT;
        let real = path.ancestors().find_map(|above| match above {
            empty if empty == Path::new("") => fs::canonicalize(".").ok(),
            above => fs::canonicalize(above).ok(),
        });
        let mut all: Vec<&Path> = real.iter().flat_map(|real| real.ancestors()).collect();
        // What is locked below: the directory itself.
        if fs::canonicalize(path).is_ok() && !all.is_empty() {
            all.remove(0);
        }
        let mut above = Vec::new();
        // From above to below, so that no two writers wait for each other. What cannot be opened, nobody like us writes into.
        for directory in all.into_iter().rev() {
            let Ok(file) = fs::File::open(directory) else { continue };
            wait_for(deadline, || file.try_lock_shared())
                .map_err(|_| FileError::Busy { path: directory.to_owned() })?;
            above.push(file);
        }
        let mut directory = Self::open(path)?;
        directory.above = above;
        Ok(directory)
    }

    /// The same, with files among those that it will write that only their owner may read.
    #[must_use]
    pub fn with_private(mut self, paths: BTreeSet<String>) -> Self {
        self.private = paths;
        self
    }

    /// Makes files have this content, and makes directories where there is none. Paths have `/` between.
    ///
    /// # Errors
    /// A link leads out of the directory, something else is where a file should be, or it cannot be written. Unless the
    /// disk fails between two renames, nothing has changed then.
    pub fn write<B: AsRef<[u8]>>(&mut self, files: &BTreeMap<String, Option<B>>) -> Result<(), FileError> {
        let mut made = Vec::new();
        let written = self.stage(files, &mut made);
        if written.is_err() {
            // Those that hold something stay.
            made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory)));
        }
        written
    }

    fn stage<B: AsRef<[u8]>>(
        &self,
        files: &BTreeMap<String, Option<B>>,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), FileError> {
        let fail = |path: &Path, source| FileError::Write { path: self.shown(path), source };
        let mut pending = Vec::new();
        let mut directories = BTreeSet::new();
        for (path, content) in files {
            let target = self.resolve(path)?;
            let old = fs::symlink_metadata(&target).ok();
            let is_private = self.private.contains(path);
            match (content, &old) {
                (None, Some(old)) if old.is_dir() => {}
                (None, None) => drop(directories.insert(target)),
                (Some(bytes), Some(old)) if old.is_file() => {
                    let bytes = bytes.as_ref();
                    let same =
                        old.len() == bytes.len() as u64 && fs::read(&target).is_ok_and(|old| old == bytes);
                    if !same {
                        pending.push(Pending { target, old: Some(old.clone()), bytes, is_private });
                    }
                }
                (Some(bytes), None) => {
                    pending.push(Pending { target, old: None, bytes: bytes.as_ref(), is_private });
                }
                (_, Some(_)) => {
                    let what = if content.is_none() { "not a directory" } else { "not a plain file" };
                    return Err(fail(&target, io::Error::other(what)));
                }
            }
        }
        if pending.is_empty() && directories.is_empty() {
            return Ok(());
        }
        let staging = tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(&self.real)
            // Without the name of the staging directory, which says nothing to a user.
            .map_err(|error| fail(&self.real, error.kind().into()))?;
        for (number, file) in pending.iter().enumerate() {
            let staged = staging.path().join(number.to_string());
            file.write(&staged).map_err(|error| fail(&file.target, error))?;
        }
        let mut changed = BTreeSet::new();
        directories.extend(pending.iter().filter_map(|file| file.target.parent()).map(Path::to_owned));
        for directory in directories {
            let new = create_dirs(&directory).map_err(|error| fail(&directory, error))?;
            changed.extend(new.iter().filter_map(|new| new.parent()).map(Path::to_owned));
            made.extend(new);
            changed.insert(directory);
        }
        for (number, file) in pending.iter().enumerate() {
            let staged = staging.path().join(number.to_string());
            fs::rename(staged, &file.target).map_err(|error| fail(&file.target, error))?;
        }
        drop(staging);
        changed.iter().for_each(|directory| sync(directory));
        Ok(())
    }

    /// Fills the directory, which must be empty or hold what a killed writer of the same files left.
    ///
    /// # Errors
    /// It holds anything else, or [`OutputDir::write`] fails.
    pub fn fill(&mut self, contents: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), FileError> {
        let list = |source| FileError::List { path: self.path.clone(), source };
        let found = walk(&self.real).map_err(list)?;
        let is_ours = |path: &PathBuf| {
            let name = path.strip_prefix(&self.real).ok().and_then(Path::to_str);
            match (name.and_then(|name| contents.get(name)), fs::symlink_metadata(path)) {
                (Some(None), Ok(metadata)) => metadata.is_dir(),
                (Some(Some(bytes)), Ok(metadata)) => {
                    metadata.is_file() && fs::read(path).is_ok_and(|found| found == *bytes)
                }
                _ => false,
            }
        };
        if !found.is_empty() && (found.len() >= contents.len() || !found.iter().all(is_ours)) {
            return Err(FileError::NotEmpty { path: self.path.clone() });
        }
        self.write(contents)
    }

    /// Removes files, and the directories that are empty then.
    /// A link is removed, and what it leads to stays.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove(&mut self, paths: &[String]) -> Result<(), FileError> {
        for path in paths {
            let link = self.real.join(path);
            let is_link = fs::symlink_metadata(&link).is_ok_and(|metadata| metadata.is_symlink());
            // What a link leads to may have other readers.
            let target = if is_link { link } else { self.resolve(path)? };
            fs::remove_file(&target)
                .map_err(|source| FileError::Write { path: self.shown(&target), source })?;
            let above = target.ancestors().skip(1).take_while(|above| *above != self.real);
            // The first that holds something ends it.
            let _ = above.take_while(|above| fs::remove_dir(above).is_ok()).count();
            target.ancestors().skip(1).find(|above| above.is_dir()).into_iter().for_each(sync);
        }
        Ok(())
    }

    /// The place of a path without links, which must be in the directory.
    fn resolve(&self, path: &str) -> Result<PathBuf, FileError> {
        let leads_out =
            |at: &Path| FileError::LeadsOut { path: self.shown(at), directory: self.path.clone() };
        let mut at = self.real.clone();
        for name in path.split('/') {
            if matches!(name, "" | "." | "..") {
                return Err(leads_out(&self.real.join(path)));
            }
            let next = at.join(name);
            at = match fs::symlink_metadata(&next) {
                Ok(metadata) if metadata.is_symlink() => match fs::canonicalize(&next) {
                    Ok(target) if target.starts_with(&self.real) => target,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        let target = fs::read_link(&next).unwrap_or_default();
                        return Err(FileError::BrokenLink { path: self.shown(&next), target });
                    }
                    _ => return Err(leads_out(&next)),
                },
                _ => next,
            };
        }
        Ok(at)
    }

    /// A path as the user would write it.
    fn shown(&self, real: &Path) -> PathBuf {
        match real.strip_prefix(&self.real) {
            Ok(below) if below == Path::new("") => self.path.clone(),
            Ok(below) => self.path.join(below),
            Err(_) => real.to_owned(),
        }
    }

    /// Every living writer has the lock, so what is there belonged to a dead one.
    fn remove_leftovers(&self) {
        if self.lock.is_none() {
            return;
        }
        for entry in fs::read_dir(&self.real).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(STAGING.as_bytes()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Whether a path of a directory is in it, links included; what is not there yet is where it says.
pub(crate) fn is_inside(directory: &Path, path: &Path) -> bool {
    let Ok(real) = fs::canonicalize(directory) else { return true };
    match fs::canonicalize(path) {
        Ok(path) => path.starts_with(real),
        // A link that leads nowhere yet leads out of it as well as any.
        Err(_) => fs::symlink_metadata(path).is_err(),
    }
}

impl Drop for OutputDir {
    /// A directory that was made and not used goes again.
    fn drop(&mut self) {
        let mut unused = self.made.iter().rev().map(fs::remove_dir);
        let _ = unused.try_for_each(|removed| removed);
    }
}

impl Pending<'_> {
    fn write(&self, path: &Path) -> io::Result<()> {
        let mode = if self.is_private { OWNER_ONLY } else { EVERYBODY };
        let mut file = fs::File::options().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(self.bytes)?;
        if let Some(old) = &self.old {
            // Only root can give files away; anybody else owns the new one.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            if !self.is_private {
                file.set_permissions(old.permissions())?;
            }
        }
        file.sync_all()
    }
}

/// Makes a directory and those above it; the ones that were not there, outermost first.
fn create_dirs(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_dir() {
        return Ok(Vec::new());
    }
    let missing = path.ancestors().take_while(|above| *above != Path::new("") && !above.exists());
    let mut missing: Vec<&Path> = missing.collect();
    if missing.is_empty() {
        // Another process may have made it meanwhile.
        return if path.is_dir() { Ok(Vec::new()) } else { Err(no_directory(path)) };
    }
    if missing.iter().any(|above| above.is_symlink()) {
        return Err(io::Error::other("it is a link that leads nowhere"));
    }
    missing.reverse();
    let mut made = Vec::new();
    for directory in missing {
        match fs::create_dir(directory) {
            Ok(()) => made.push(directory.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            Err(error) => {
                made.iter().rev().for_each(|made| drop(fs::remove_dir(made)));
                let is_there = error.kind() == io::ErrorKind::AlreadyExists;
                return Err(if is_there { no_directory(directory) } else { error });
            }
        }
    }
    Ok(made)
}

/// Why a path that was there is no directory: it is something else, or another process removed it.
fn no_directory(path: &Path) -> io::Error {
    let kind = if fs::symlink_metadata(path).is_ok() {
        io::ErrorKind::NotADirectory
    } else {
        io::ErrorKind::NotFound
    };
    kind.into()
}

/// Everything below a directory, links and hidden files too.
fn walk(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Another writer holds the lock, and does not let go.
struct Held;

/// Locks an open directory; false where the file system has no locks.
fn lock(directory: &fs::File, deadline: Instant) -> Result<bool, Held> {
    wait_for(deadline, || directory.try_lock())
}

fn wait_for(deadline: Instant, attempt: impl Fn() -> Result<(), TryLockError>) -> Result<bool, Held> {
    loop {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Err(Held),
            Err(TryLockError::Error(_)) => return Ok(false),
        }
    }
}

/// Makes renames in a directory last. Some file systems cannot, and need not.
fn sync(directory: &Path) {
    let _ = fs::File::open(directory).and_then(|directory| directory.sync_all());
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn contents(files: &[(&str, &str)]) -> BTreeMap<String, Option<Vec<u8>>> {
        files.iter().map(|(path, text)| ((*path).to_owned(), Some(text.as_bytes().to_vec()))).collect()
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = walk(directory)
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(directory).unwrap().display().to_string())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn everything_else_in_the_directory_stays() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at(".git/empty")).unwrap();
        fs::write(at("run.sh"), "#!").unwrap();
        fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("nowhere", at("link")).unwrap();
        fs::write(at("old"), "old").unwrap();
        fs::set_permissions(at("old"), fs::Permissions::from_mode(0o640)).unwrap();
        let inode = fs::metadata(root.path()).unwrap().ino();
        OutputDir::open(root.path()).unwrap().write(&contents(&[("a/b", "new"), ("old", "new")])).unwrap();
        assert_eq!(names(root.path()), [".git", ".git/empty", "a", "a/b", "link", "old", "run.sh"]);
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "new");
        let mode = |path| fs::metadata(at(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("old"), mode("run.sh")), (0o640, 0o755));
        assert_eq!(fs::metadata(root.path()).unwrap().ino(), inode);
    }

    #[test]
    fn a_failure_leaves_the_directory_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("bundle");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("a"), "before").unwrap();
        let impossible = contents(&[("a", "after"), ("a/b", ""), ("c/d", "")]);
        assert!(OutputDir::open(&directory).unwrap().write(&impossible).is_err());
        assert_eq!(names(root.path()), ["bundle", "bundle/a"]);
        assert_eq!(fs::read_to_string(directory.join("a")).unwrap(), "before");
    }

    #[test]
    fn a_directory_that_was_made_and_not_used_goes_again() {
        let root = tempfile::tempdir().unwrap();
        drop(OutputDir::open(&root.path().join("a/b")).unwrap());
        assert_eq!(names(root.path()), [""; 0]);
        OutputDir::open(&root.path().join("a/b")).unwrap().write(&contents(&[("c", "")])).unwrap();
        assert_eq!(names(root.path()), ["a", "a/b", "a/b/c"]);
    }

    #[test]
    fn what_a_killed_writer_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".olmkit-new-x")).unwrap();
        fs::write(root.path().join(".olmkit-new-x/0"), "ha").unwrap();
        OutputDir::open(root.path()).unwrap().write(&contents(&[("a", "")])).unwrap();
        assert_eq!(names(root.path()), ["a"]);
    }

    #[test]
    fn a_directory_filled_in_part_is_filled_and_a_full_one_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let all = contents(&[("a", "1"), ("b", "2")]);
        fs::write(root.path().join("a"), "1").unwrap();
        OutputDir::open(root.path()).unwrap().fill(&all).unwrap();
        assert_eq!(names(root.path()), ["a", "b"]);
        let again = OutputDir::open(root.path()).unwrap().fill(&all);
        assert!(matches!(again, Err(FileError::NotEmpty { .. })), "{again:?}");
        fs::remove_file(root.path().join("b")).unwrap();
        fs::write(root.path().join("a"), "mine").unwrap();
        let other = OutputDir::open(root.path()).unwrap().fill(&all);
        assert!(matches!(other, Err(FileError::NotEmpty { .. })), "{other:?}");
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "mine");
    }

    #[test]
    fn a_link_is_followed_inside_and_not_outside() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("real/kept")).unwrap();
        fs::write(at("outside"), "mine").unwrap();
        symlink("real", at("linked")).unwrap();
        symlink("kept", at("real/inside")).unwrap();
        symlink("../outside", at("real/out")).unwrap();
        symlink("..", at("real/up")).unwrap();
        let write = |path: &str| OutputDir::open(&at("linked")).unwrap().write(&contents(&[(path, "ours")]));
        write("inside/a").unwrap();
        assert_eq!(fs::read_to_string(at("real/kept/a")).unwrap(), "ours");
        for path in ["out", "up/outside", "../outside"] {
            let refused = write(path);
            assert!(matches!(refused, Err(FileError::LeadsOut { .. })), "{refused:?}");
        }
        assert_eq!(fs::read_to_string(at("outside")).unwrap(), "mine");
        assert!(fs::symlink_metadata(at("linked")).unwrap().is_symlink());
        symlink("nowhere", at("dangling")).unwrap();
        let dangling = OutputDir::open(&at("dangling/a")).unwrap_err();
        assert_eq!(
            std::error::Error::source(&dangling).unwrap().to_string(),
            "it is a link that leads nowhere"
        );
    }

    #[test]
    fn writers_that_make_one_directory_at_once_all_get_it() {
        let root = tempfile::tempdir().unwrap();
        for round in 0..300 {
            let path = root.path().join(format!("{round}/a/b"));
            let start = std::sync::Barrier::new(4);
            thread::scope(|scope| {
                for writer in 0..4 {
                    let (path, start) = (&path, &start);
                    scope.spawn(move || {
                        start.wait();
                        let mut directory = OutputDir::open(path).unwrap();
                        // One of them writes nothing, and so removes what it made.
                        if writer > 0 {
                            directory.write(&contents(&[("c", "")])).unwrap();
                        }
                    });
                }
            });
            assert_eq!(names(&path), ["c"], "round {round}");
        }
    }

    #[test]
    fn writers_take_turns() {
        let root = tempfile::tempdir().unwrap();
        let first = OutputDir::open(root.path()).unwrap();
        let file = fs::File::open(root.path()).unwrap();
        assert!(lock(&file, Instant::now()).is_err());
        drop(first);
        assert!(lock(&file, Instant::now()).is_ok_and(|locked| locked));
    }

    #[test]
    fn stale_files_go_with_the_directories_that_only_they_kept() {
        let root = tempfile::tempdir().unwrap();
        let mut directory = OutputDir::open(root.path()).unwrap();
        directory.write(&contents(&[("a/b/c", ""), ("a/d", ""), ("e/f", "")])).unwrap();
        directory.remove(&["a/b/c".into(), "e/f".into()]).unwrap();
        assert_eq!(names(root.path()), ["a", "a/d"]);
    }
}
