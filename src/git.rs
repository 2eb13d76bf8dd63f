//! What a revision of a git repository has at a path, read by git itself.

use std::fmt;
use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};

use crate::exit::Failure;
use crate::shell::argument;

/// `git:REV:PATH`. The path is below the current directory, else below the top of the repository.
#[derive(Clone, Debug)]
pub struct Revision {
    revision: String,
    path: String,
}

/// What a revision has at a path.
pub(crate) enum Object {
    /// The bytes of a file.
    File(Vec<u8>),
    /// The files of a directory, in the order of their paths.
    Directory(Vec<Entry>),
}

/// A file of a directory.
pub(crate) struct Entry {
    /// The path below the directory.
    pub(crate) path: String,
    /// What it is.
    pub(crate) kind: Kind,
    /// The bytes of a file, the destination of a link; empty for anything else.
    pub(crate) content: Vec<u8>,
}

/// What a file of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A submodule.
    Other,
}

/// The most that is read of a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many files.
    pub(crate) files: usize,
    /// How many bytes.
    pub(crate) bytes: u64,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git:{}:{}", self.revision, self.path)
    }
}

impl Revision {
    /// Reads `git:REV:PATH`; none when the text is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (revision, path) = text.strip_prefix("git:")?.split_once(':')?;
        // Git would take it for an option.
        let is_option = revision.starts_with('-');
        let path = path.trim_end_matches('/').trim_start_matches("./");
        (!revision.is_empty() && !is_option)
            .then(|| Self { revision: revision.to_owned(), path: path.to_owned() })
    }

    /// What is at the path.
    ///
    /// # Errors
    /// Git is not installed or does not find it, or it is larger than the limits.
    pub(crate) fn read(&self, limits: Limits) -> Result<Object, Failure> {
        let here = format!("{}:./{}", self.revision, self.path);
        let top = format!("{}:{}", self.revision, self.path);
        let (object, kind) = match git(&["cat-file", "-t", &here], None) {
            Ok(kind) => (here, kind),
            Err(failure) if !failure.is_of_git => return Err(failure.at(self)),
            Err(_) => {
                let kind = self.ask(&["cat-file", "-t", &top], None)?;
                (top, kind)
            }
        };
        if kind.trim_ascii() == b"blob" {
            let bytes = self.ask(&["cat-file", "blob", &object], None)?;
            self.check_size(bytes.len(), limits)?;
            return Ok(Object::File(bytes));
        }
        let mut listed = self.list(&object)?;
        if listed.len() > limits.files {
            return Err(Failure::incomplete(format!("`{self}` contains more than {} files", limits.files)));
        }
        // All contents in one call.
        let ids =
            listed.iter().filter(|(_, entry)| entry.kind != Kind::Other).map(|(id, _)| format!("{id}\n"));
        let bytes = self.ask(&["cat-file", "--batch"], Some(ids.collect()))?;
        self.check_size(bytes.len(), limits)?;
        let mut rest = bytes.as_slice();
        for (_, entry) in listed.iter_mut().filter(|(_, entry)| entry.kind != Kind::Other) {
            let invalid =
                || Failure::incomplete(format!("cannot read `{self}`: invalid response of git cat-file"));
            let (content, after) = next_content(rest).ok_or_else(invalid)?;
            entry.content = content.to_vec();
            rest = after;
        }
        let mut entries: Vec<Entry> = listed.into_iter().map(|(_, entry)| entry).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Object::Directory(entries))
    }

    /// The files below a directory with their ids, without contents. Paths that could lead out of it are left out.
    fn list(&self, object: &str) -> Result<Vec<(String, Entry)>, Failure> {
        // Without --full-tree, git looks for the current directory within the tree.
        let bytes = self.ask(&["ls-tree", "-r", "-z", "--full-tree", object], None)?;
        let entry = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let (about, path) = line.split_once('\t')?;
            // The mode, the type and the id.
            let mut words = about.split(' ');
            let (mode, id) = (words.next()?, words.nth(1)?);
            let kind = match mode {
                "120000" => Kind::Link,
                mode if mode.starts_with("100") => Kind::File,
                _ => Kind::Other,
            };
            let is_below = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
            is_below.then(|| (id.to_owned(), Entry { path: path.to_owned(), kind, content: Vec::new() }))
        };
        Ok(bytes.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    fn check_size(&self, bytes: usize, limits: Limits) -> Result<(), Failure> {
        if bytes as u64 <= limits.bytes {
            return Ok(());
        }
        Err(Failure::incomplete(format!("`{self}` is larger than {} MiB", limits.bytes >> 20)))
    }

    fn ask(&self, arguments: &[&str], input: Option<String>) -> Result<Vec<u8>, Failure> {
        git(arguments, input).map_err(|failure| failure.at(self))
    }
}

/// The next content of `git cat-file --batch`, and what comes after it: `ID blob SIZE`, the bytes, and a line break.
fn next_content(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let size: usize = str::from_utf8(&bytes[..end]).ok()?.rsplit(' ').next()?.parse().ok()?;
    let content = bytes.get(end + 1..)?.get(..size)?;
    Some((content, bytes.get(end + size + 2..)?))
}

/// Why git did not answer.
struct GitFailure {
    /// Whether git itself reports it.
    is_of_git: bool,
    message: String,
}

impl GitFailure {
    fn at(self, revision: &Revision) -> Failure {
        let is_outside = self.message.contains("not a git repository");
        let help = match self.is_of_git {
            true if is_outside => "run the command in a git repository, or name a directory".to_owned(),
            true => {
                let (name, path) = (argument(&revision.revision), argument(&revision.path));
                format!("check the revision and the path: `git ls-tree {name} {path}`")
            }
            false => "install git, or name a directory".to_owned(),
        };
        Failure::incomplete(format!("cannot read `{revision}`: {}", self.message)).help(help)
    }
}

/// The output of a git command.
fn git(arguments: &[&str], input: Option<String>) -> Result<Vec<u8>, GitFailure> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let run = || -> io::Result<Output> {
        let mut child = Command::new("git")
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // Both pipes would fill up if the answer were read only after everything is asked.
        let asked = child.stdin.take().zip(input);
        let writer =
            asked.map(|(mut stdin, input)| std::thread::spawn(move || stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output()?;
        // Where it could not be written, git says why.
        drop(writer.map(std::thread::JoinHandle::join));
        Ok(output)
    };
    match run() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let message = message.strip_prefix("fatal: ").unwrap_or(&message).to_owned();
            Err(GitFailure { is_of_git: true, message })
        }
        Err(error) => Err(GitFailure { is_of_git: false, message: format!("cannot run git: {error}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_revisions_are_revisions() {
        let check = |text| Revision::parse(text).map(|revision| revision.to_string());
        assert_eq!(check("git:HEAD~1:bundle/").as_deref(), Some("git:HEAD~1:bundle"));
        assert_eq!(check("git:v1.0:./a/b").as_deref(), Some("git:v1.0:a/b"));
        assert_eq!(check("git:HEAD:").as_deref(), Some("git:HEAD:"));
        for text in ["bundle", "git:HEAD", "git::bundle", "git:--output=x:bundle"] {
            assert_eq!(check(text), None, "{text}");
        }
    }

    #[test]
    fn contents_are_taken_by_their_size() {
        let bytes = b"id blob 3\na\nb\nid blob 0\n\n";
        let (first, rest) = next_content(bytes).unwrap();
        let (second, rest) = next_content(rest).unwrap();
        assert_eq!((first, second, rest), (b"a\nb".as_slice(), b"".as_slice(), b"".as_slice()));
        for broken in
            [b"id missing\n".as_slice(), b"id blob 9\nabc\n", b"id blob 18446744073709551615\n", b""]
        {
            assert_eq!(next_content(broken), None);
        }
    }
}
