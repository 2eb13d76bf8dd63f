//! The lock that writers of one file or directory take turns by: waited for, but not for ever.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for somebody who writes an archive, which may be a large one.
pub(super) const MAX_WAIT_FOR_ARCHIVE: Duration = Duration::from_secs(300);
/// How long to wait for somebody who writes into a layout: the images were fetched before.
pub(super) const MAX_WAIT_FOR_LAYOUT: Duration = Duration::from_secs(30);
/// How often to look whether it has finished.
const POLL: Duration = Duration::from_millis(20);

/// Somebody who writes did not finish.
#[derive(Debug, thiserror::Error)]
#[error("{holder} is writing to it")]
pub(crate) struct Held {
    holder: String,
}

/// Waits until nobody else has the lock of a file, at most so long.
///
/// # Errors
/// The file system has no locks, or the other writer does not finish: [`io::ErrorKind::TimedOut`], with the name of who it is.
pub(super) fn exclusive(file: &File, max_wait: Duration) -> io::Result<()> {
    wait(file, max_wait, File::try_lock)
}

/// Waits until nobody writes, at most so long.
///
/// # Errors
/// As [`exclusive`].
pub(super) fn shared(file: &File, max_wait: Duration) -> io::Result<()> {
    wait(file, max_wait, File::try_lock_shared)
}

fn wait(
    file: &File,
    max_wait: Duration,
    try_lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match try_lock(file) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < max_wait => thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                let holder = holder(file).unwrap_or_else(|| "another process".to_owned());
                return Err(io::Error::new(io::ErrorKind::TimedOut, Held { holder }));
            }
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The process that has the lock, where the system tells.
fn holder(file: &File) -> Option<String> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF`; waiting ones have an arrow after the number.
    let held = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut held = held.filter(|words| words.len() >= 6 && words[1] == "FLOCK" && words[5].ends_with(&inode));
    let process = held.next()?[4].parse::<u32>().ok()?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.trim();
    Some(if name.is_empty() {
        format!("process {process}")
    } else {
        format!("{} (process {process})", name.escape_debug())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_never_released_ends_the_wait_and_names_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = File::create(&path).unwrap();
        exclusive(&first, Duration::ZERO).unwrap();
        let second = File::open(&path).unwrap();
        let error = exclusive(&second, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        if fs::metadata("/proc/locks").is_ok() {
            let own = format!("(process {}) is writing to it", std::process::id());
            assert!(error.to_string().ends_with(&own), "{error}");
        }
        drop(first);
        exclusive(&second, Duration::ZERO).unwrap();
    }
}
