//! Reading: plain files of a bounded size, and pipes where they are expected.

use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::{FileError, Pipe};
use crate::exit::Failure;
use crate::limits::Limits;

/// Inputs larger than this are not read.
const MAX_BYTES: u64 = 256 << 20;

/// The bytes of a plain file.
///
/// # Errors
/// When it is missing, not a plain file, unreadable or too large.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let size = check_plain(path, MAX_BYTES)?;
    let file = fs::File::open(path);
    let file = file.map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    up_to(path, file, size, MAX_BYTES)
}

/// The size of a plain file that is not larger than `most` bytes. A pipe would be waited for, a device may have no end, and who reads
/// files in a library has no other guard.
///
/// # Errors
/// It is missing, not a plain file, or too large.
pub fn check_plain(path: &Path, most: u64) -> Result<u64, FileError> {
    let fail = |source| FileError::Read { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        return Err(fail(not_plain(&metadata.file_type())));
    }
    if metadata.len() > most {
        return Err(FileError::TooLarge { path: path.to_owned(), most });
    }
    Ok(metadata.len())
}

/// Why something of this kind is not read.
pub(super) fn not_plain(kind: &FileType) -> io::Error {
    io::Error::other(match kind {
        kind if kind.is_dir() => "a directory, not a plain file",
        kind if kind.is_fifo() => "a named pipe, not a plain file",
        kind if kind.is_char_device() || kind.is_block_device() => "a device, not a plain file",
        kind if kind.is_socket() => "a socket, not a plain file",
        _ => "not a plain file",
    })
}

/// Whether a path names a pipe: `<(COMMAND)` of a shell, or one that was made with `mkfifo`.
pub fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// All that can be read, which is no more than `most` bytes.
fn up_to(path: &Path, reader: impl io::Read, size: u64, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let read = reader.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > most {
        return Err(FileError::TooLarge { path: path.to_owned(), most });
    }
    Ok(bytes)
}

/// The text of a plain file in UTF-8.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    text(path, read(path)?)
}

/// As [`read_text`], and of a pipe too, which is waited for no longer than the work may take.
///
/// # Errors
/// As [`read_text`], and when the time is over.
pub fn read_text_or_pipe(path: &Path, limits: Limits) -> Result<String, FileError> {
    match is_pipe(path) {
        true => text(path, up_to(path, Pipe::open(path, limits), 0, MAX_BYTES)?),
        false => read_text(path),
    }
}

/// The text that the bytes of a file are.
///
/// # Errors
/// They are not UTF-8.
pub fn text(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    if is_utf16(&bytes) {
        return Err(FileError::Utf16 { path: path.to_owned() });
    }
    String::from_utf8(bytes)
        .map_err(|error| FileError::NotText { path: path.to_owned(), at: error.utf8_error().valid_up_to() })
}

/// The text on standard input, which is refused if it is larger than `most` bytes: a part of it would be something else.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub fn read_stdin(most: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(most + 1).read_to_end(&mut bytes);
    let fail = |why: String| Failure::incomplete(format!("cannot read standard input: {why}"));
    read.map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(fail(format!("it is larger than {} MiB", most >> 20)));
    }
    if is_utf16(&bytes) {
        return Err(fail("it is in UTF-16, not in UTF-8".to_owned())
            .help("pipe it through `iconv -f UTF-16 -t UTF-8`"));
    }
    String::from_utf8(bytes)
        .map_err(|error| fail(format!("it is not text in UTF-8 (byte {})", error.utf8_error().valid_up_to())))
}

/// Whether bytes are text in UTF-16: by their byte order mark, or because every other of the first is zero.
pub fn is_utf16(bytes: &[u8]) -> bool {
    let starts = |first: usize| {
        let zeros = bytes.iter().skip(first).step_by(2).take(4);
        bytes.len() >= 8 && zeros.copied().eq([0; 4]) && bytes[1 - first] != 0
    };
    bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) || starts(0) || starts(1)
}

/// The plain files below a directory, sorted. Hidden files and links are skipped, and so is every directory that `skip`
/// names.
///
/// # Errors
/// When a directory cannot be listed.
pub fn below(directory: &Path, skip: impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                if !skip(&entry.path()) {
                    open.push(entry.path());
                }
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a plain file starts with these bytes. A file that cannot be read does not.
pub fn starts_with(path: &Path, bytes: &[u8]) -> bool {
    let mut start = Vec::with_capacity(bytes.len());
    let is_file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = || fs::File::open(path)?.take(bytes.len() as u64).read_to_end(&mut start);
    is_file && read().is_ok() && start == bytes
}

/// Whether a plain file has a mark in its first 4096 bytes. A file that cannot be read has none.
pub fn is_marked(path: &Path, mark: &str) -> bool {
    let mut start = Vec::new();
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = || fs::File::open(path)?.take(4096).read_to_end(&mut start);
    is_file && read().is_ok() && String::from_utf8_lossy(&start).contains(mark)
}

/// A file of a tree that is not on disk as it should be.
#[derive(Debug)]
pub struct Difference {
    /// The path below the tree, with `/` between.
    pub path: String,
    /// What is there.
    pub found: Option<String>,
    /// What should be there.
    pub expected: Option<String>,
}

/// How a directory differs from what it would be with exactly these `files` and no `stale` ones.
///
/// # Errors
/// When a file that is there cannot be read.
pub fn differences(
    directory: &Path,
    files: &BTreeMap<String, String>,
    stale: &[String],
) -> Result<Vec<Difference>, FileError> {
    let found = |path: &str| {
        let on_disk = directory.join(path);
        let text = || read(&on_disk).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        on_disk.exists().then(text).transpose()
    };
    let mut differences = Vec::new();
    for (path, expected) in files {
        let found = found(path)?;
        if found.as_ref() != Some(expected) {
            differences.push(Difference { path: path.clone(), found, expected: Some(expected.clone()) });
        }
    }
    for path in stale {
        differences.push(Difference { path: path.clone(), found: found(path)?, expected: None });
    }
    differences.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(differences)
}
