//! A file that the user names for a report. It is looked at before the work begins: work that took hours is not lost since its report
//! cannot be written, and no file of another kind is replaced.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::FileError;

/// Where a report goes, which could be written when it was looked at.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
}

impl ReportFile {
    /// Looks at the place. An old file is replaced later if `is_report` says that it is an earlier report, which `what` names.
    ///
    /// # Errors
    /// It is a stream, it is a file of another kind, or it cannot be written. Nothing was changed.
    pub fn check(
        path: &Path,
        what: &'static str,
        is_report: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, FileError> {
        let path = path.to_owned();
        if is_stream(&path) {
            return Err(FileError::Stream { path });
        }
        super::writable(&path).map_err(|source| FileError::Write { path: path.clone(), source })?;
        if path.exists() && !is_report(&super::read(&path)?) {
            return Err(FileError::Foreign { path, what });
        }
        Ok(Self { path })
    }

    /// Writes the report; a reader sees the old one or the new one.
    ///
    /// # Errors
    /// It cannot be written any more; an old file is then as it was.
    pub fn write(&self, bytes: &[u8]) -> Result<(), FileError> {
        super::write(&self.path, bytes)
    }
}

/// Whether a path means a stream: standard output as other programs name it, a device, or the file that this process prints to,
/// which a new file would take away from whatever else is printed there.
fn is_stream(path: &Path) -> bool {
    if path == Path::new("-") || ["/dev", "/proc"].iter().any(|place| path.starts_with(place)) {
        return true;
    }
    let Ok(found) = fs::metadata(path) else { return false };
    let is_it = |stream: BorrowedFd<'_>| {
        let own = stream.try_clone_to_owned().and_then(|stream| File::from(stream).metadata());
        own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
    };
    is_it(io::stdout().as_fd()) || is_it(io::stderr().as_fd())
}
