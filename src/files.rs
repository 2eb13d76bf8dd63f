//! Files on disk: reading with errors that name the path, and writing that touches nothing else ([`OutputDir`]).

mod output;
mod pipe;
mod report;

use std::collections::BTreeMap;
use std::fs::{self, FileType, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::limits::{Limits, Over};
use crate::shell::argument;

pub use output::OutputDir;
pub use pipe::Pipe;
pub use report::ReportFile;

/// Inputs larger than this are not read.
const MAX_BYTES: u64 = 256 << 20;

/// A file or directory that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory cannot be listed.
    #[error("cannot list `{path}`")]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not text.
    #[error("`{path}` is not text in UTF-8 (byte {at})")]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is not.
        at: usize,
    },
    /// It is text of another kind.
    #[error("`{path}` is in UTF-16, not in UTF-8")]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("`{path}` already exists")]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// A directory that is to be filled holds something else.
    #[error("the directory `{path}` is not empty")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A link in an output directory leads out of it.
    #[error("`{path}` points outside `{directory}`")]
    LeadsOut {
        /// The link.
        path: PathBuf,
        /// The output directory.
        directory: PathBuf,
    },
    /// Another process writes into the directory, and does not finish.
    #[error("timed out waiting for another olmkit that is writing to `{path}`")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// It is a device, a pipe, or what this command prints to.
    #[error("cannot write a report to `{path}`: it is not a file of its own")]
    Stream {
        /// The path.
        path: PathBuf,
    },
    /// There is a file that somebody else needs.
    #[error("`{path}` exists and is not {what}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What may be replaced.
        what: &'static str,
    },
    /// It is too large.
    #[error("`{path}` is larger than {} MiB", .most >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size that is read, in bytes.
        most: u64,
    },
}

/// How a command ends that could not read something: also because its time was over meanwhile.
pub fn exit_of(error: &io::Error) -> Exit {
    match error.get_ref().and_then(|error| error.downcast_ref::<Over>()) {
        Some(Over::Interrupted) => Exit::Interrupted,
        Some(Over::TimedOut(_)) => Exit::TimedOut,
        None => Exit::Incomplete,
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let help = match &error {
            FileError::Utf16 { path } => {
                let path = argument(path.display());
                Some(format!("convert it: `iconv -f UTF-16 -t UTF-8 {path} > utf8.yaml`"))
            }
            FileError::Exists { .. } => Some("choose another name, or move it away first".to_owned()),
            FileError::NotEmpty { .. } => Some("choose a new or an empty directory".to_owned()),
            FileError::LeadsOut { .. } => {
                Some("replace the link with what it leads to, or choose another directory".to_owned())
            }
            FileError::Stream { .. } => Some("name a file, or print the report with --output".to_owned()),
            FileError::Foreign { .. } => Some("name another file, or remove it first".to_owned()),
            FileError::Busy { .. } => Some("end the other olmkit, then run the command again".to_owned()),
            FileError::Read { source, .. } if exit_of(source) == Exit::TimedOut => {
                Some("check that something writes to it and then closes it".to_owned())
            }
            _ => None,
        };
        let exit = match &error {
            FileError::Busy { .. } => Exit::TimedOut,
            FileError::Read { source, .. } => exit_of(source),
            FileError::Stream { .. } | FileError::Foreign { .. } => Exit::Usage,
            _ => Exit::Incomplete,
        };
        Self { help: help.into(), exit, ..Self::incomplete(error) }
    }
}

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
fn not_plain(kind: &FileType) -> io::Error {
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

/// Writes a file and the directories above it; a reader sees the old file or the new one. A link is followed.
///
/// # Errors
/// When it cannot be written; an old file is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let fail = |source| FileError::Write { path: path.to_owned(), source };
    let target = target(path).map_err(fail)?;
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    };
    let parent = target.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    OutputDir::open(parent)?.write(&BTreeMap::from([(name.to_owned(), Some(bytes))]))
}

/// The file that is written when a path is named: that of a link, since its user named it.
///
/// # Errors
/// The link leads nowhere.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Ok(path.to_owned());
    }
    fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("it is a link that leads nowhere"),
        _ => error,
    })
}

/// Tries whether [`write()`] could make or replace a file, and changes nothing.
///
/// # Errors
/// It could not: a link leads nowhere, something else has the name, or the directory takes no files.
pub fn writable(path: &Path) -> io::Result<()> {
    let real = std::path::absolute(target(path)?)?;
    match fs::metadata(&real) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Err(not_plain(&found.file_type())),
        Ok(_) => drop(OpenOptions::new().write(true).open(&real)?),
        Err(_) => {}
    }
    // Those that are missing are made. A new file takes the place of the old one, so the directory counts either way.
    let above = real.ancestors().skip(1).find(|above| fs::symlink_metadata(above).is_ok());
    let above = above.unwrap_or(Path::new("/"));
    // Without the name of the temporary file, which says nothing to a user.
    let made = tempfile::Builder::new().prefix(".olmkit-").tempfile_in(above);
    made.map(drop).map_err(|error| error.kind().into())
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

/// Fills a directory of our own, such as a temporary one, with these paths (with `/` between, parents first): files with
/// their content, and directories. It must not exist. For directories of users there is [`OutputDir`].
///
/// # Errors
/// When it cannot be written.
pub fn fill(directory: &Path, contents: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), FileError> {
    let fail = |path: &Path, source| FileError::Write { path: path.to_owned(), source };
    fs::create_dir(directory).map_err(|error| fail(directory, error))?;
    for (path, content) in contents {
        let path = directory.join(path);
        let written = match content {
            None => fs::create_dir(&path),
            Some(bytes) => fs::File::create_new(&path).and_then(|mut file| file.write_all(bytes)),
        };
        written.map_err(|error| fail(&path, error))?;
    }
    Ok(())
}
