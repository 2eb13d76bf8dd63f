//! The file of a simulated cluster: one command at a time has it, as the others would lose its work.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::Failure;
use crate::files::{self, FileError};

/// How often to look whether another command has ended.
const POLL: Duration = Duration::from_millis(20);

/// A file that is ours until the value is gone.
pub(super) struct Held {
    /// None for a file that is not there yet.
    file: Option<File>,
}

impl Held {
    /// Waits until no other command has the file; says at once when it cannot be written, where that is needed.
    pub(super) fn take(path: &Path, is_kept: bool, wait: Duration) -> Result<Self, Failure> {
        if path.exists() {
            files::check_plain(path, u64::MAX)?;
        }
        if is_kept {
            files::writable(path).map_err(|source| {
                let error = FileError::Write { path: path.to_owned(), source };
                Failure::from(error)
                    .help("nothing was done; make the file and its directory writable, or name another")
            })?;
        }
        let deadline = Instant::now() + wait;
        loop {
            let file = match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { file: None }),
                file => file.map_err(|source| FileError::Read { path: path.to_owned(), source })?,
            };
            match file.try_lock() {
                // Its last holder has put a new file in its place.
                Ok(()) if !is_at(&file, path) => {}
                // Some file systems have no locks.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Self { file: Some(file) }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => return Err(FileError::Busy { path: path.to_owned() }.into()),
            }
        }
    }

    /// Writes the file, unless another command has made it meanwhile.
    pub(super) fn write(&self, path: &Path, text: &str) -> Result<(), Failure> {
        if self.file.is_some() {
            return Ok(files::write(path, text.as_bytes())?);
        }
        match files::create(path, text.as_bytes()) {
            Err(FileError::Exists { .. }) => {
                let what = format!("another command created `{}` in the meantime", path.display());
                Err(Failure::incomplete(what).help("nothing of this one was kept: run it again"))
            }
            made => Ok(made?),
        }
    }
}

/// Whether an open file is what a path leads to.
fn is_at(file: &File, path: &Path) -> bool {
    let both = file.metadata().and_then(|own| Ok((own, fs::metadata(path)?)));
    both.is_ok_and(|(own, found)| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_waited_for_and_read_as_the_other_has_left_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.json");
        fs::write(&path, "old").unwrap();
        let first = Held::take(&path, true, Duration::ZERO).unwrap();
        assert!(Held::take(&path, true, Duration::from_millis(50)).is_err());
        let second = thread::spawn({
            let path = path.clone();
            move || {
                let _held = Held::take(&path, true, Duration::from_secs(60)).unwrap();
                fs::read_to_string(&path).unwrap()
            }
        });
        first.write(&path, "new").unwrap();
        drop(first);
        assert_eq!(second.join().unwrap(), "new");
    }

    #[test]
    fn a_file_that_another_command_has_made_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.json");
        let held = Held::take(&path, true, Duration::ZERO).unwrap();
        assert!(!path.exists());
        fs::write(&path, "theirs").unwrap();
        let error = held.write(&path, "mine").unwrap_err();
        assert!(error.to_string().ends_with("in the meantime"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn of_several_commands_that_make_a_file_at_once_one_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = dir.path().join(format!("new/{round}.json"));
            let made: Vec<String> = thread::scope(|scope| {
                let write = |number: u32| {
                    let path = &path;
                    scope.spawn(move || {
                        let held = Held { file: None };
                        held.write(path, &number.to_string()).is_ok().then(|| number.to_string())
                    })
                };
                let running: Vec<_> = (0..4).map(write).collect();
                running.into_iter().filter_map(|one| one.join().unwrap()).collect()
            });
            assert_eq!(made, [fs::read_to_string(&path).unwrap()]);
        }
    }
}
