//! Pipes with a name, and standard input: opening one that nobody writes to takes for ever, and so may reading from it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::limits::Limits;

/// How much is read at once, in bytes.
const PIECE: u64 = 1 << 20;
/// The most pieces that are read ahead of the reader.
const AHEAD: usize = 4;
/// How often to look whether the time is over.
const POLL: Duration = Duration::from_millis(20);

/// What comes from a pipe, as long as the work may go on. A thread of its own reads it, and is not waited for.
#[derive(Debug)]
pub struct Pipe {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// What was received and not read yet.
    piece: io::Cursor<Vec<u8>>,
    limits: Limits,
}

impl Pipe {
    /// Opens the one at a path. That it cannot be opened is told by the first read.
    pub fn open(path: &Path, limits: Limits) -> Self {
        let path = path.to_owned();
        Self::of(limits, || File::open(path))
    }

    /// Standard input, which nobody else may read.
    pub fn stdin(limits: Limits) -> Self {
        Self::of(limits, || Ok(io::stdin()))
    }

    fn of<R: Read>(limits: Limits, open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Self {
        let (sender, pieces) = sync_channel(AHEAD);
        thread::spawn(move || {
            let mut file = match open() {
                Ok(file) => file,
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut piece = Vec::new();
                let read = file.by_ref().take(PIECE).read_to_end(&mut piece);
                let is_end = read.is_err() || piece.is_empty();
                // The reader is gone: nobody needs the error.
                let is_heard = sender.send(read.map(|_| piece)).is_ok();
                if is_end || !is_heard {
                    return;
                }
            }
        });
        Self { pieces, piece: io::Cursor::default(), limits }
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.pieces.recv_timeout(POLL) {
                Ok(piece) => self.piece = io::Cursor::new(piece?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => self.limits.check().map_err(io::Error::other)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::limits::Over;

    #[test]
    fn a_pipe_that_nobody_writes_to_is_not_waited_for_longer_than_the_work_may_take() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let limit = Duration::from_millis(50);
        let error = Pipe::open(&path, Limits::begin(limit)).read(&mut [0]).unwrap_err();
        let over = error.get_ref().and_then(|error| error.downcast_ref::<Over>());
        assert_eq!(over, Some(&Over::TimedOut(limit)));
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let text = "olm".repeat(1 << 20);
        let writer = thread::spawn({
            let (path, text) = (path.clone(), text.clone());
            move || std::fs::write(path, text).unwrap()
        });
        let mut read = String::new();
        Pipe::open(&path, Limits::default()).read_to_string(&mut read).unwrap();
        writer.join().unwrap();
        assert!(read == text, "{} of {} bytes", read.len(), text.len());
    }
}
