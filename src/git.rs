//! What a revision of a git repository has at a path, read by git itself.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use crate::exit::Failure;
use crate::limits;
use crate::program::{self, CommandLine, Ended};
use crate::shell::argument;

/// How long git may take for one answer. It reads this machine alone.
const PATIENCE: Duration = Duration::from_secs(120);
/// What git may print on average of each file of a revision, besides its content: the path, and what is said of it.
const MAX_LINE: u64 = 1 << 10;
/// The most of a short answer, in bytes.
const MAX_WORD: u64 = 1 << 10;

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

    /// What is at the path. Sizes are looked at before anything is read.
    ///
    /// # Errors
    /// Git is not installed or does not find it, or it is larger than the limits.
    pub(crate) fn read(&self, limits: Limits) -> Result<Object, Failure> {
        let here = format!("{}:./{}", self.revision, self.path);
        let top = format!("{}:{}", self.revision, self.path);
        let kind_of = |object: &str| cat_file(&["-t"]).value(object);
        let (object, kind) = match git(kind_of(&here), None, MAX_WORD) {
            Ok(kind) => (here, kind),
            Err(failure) if !failure.is_of_git => return Err(failure.at(self)),
            Err(_) => {
                let kind = self.ask(kind_of(&top), None, MAX_WORD)?;
                (top, kind)
            }
        };
        if kind.trim_ascii() == b"blob" {
            let size = self.ask(cat_file(&["-s"]).value(&object), None, MAX_WORD)?;
            let size = str::from_utf8(size.trim_ascii()).ok().and_then(|size| size.parse().ok());
            self.check_size(size.unwrap_or(u64::MAX), limits)?;
            return Ok(Object::File(self.ask(cat_file(&["blob"]).value(&object), None, limits.bytes)?));
        }
        let mut listed = self.list(&object, limits)?;
        if listed.len() > limits.files {
            return Err(self.too_many(limits));
        }
        self.check_size(listed.iter().fold(0, |sum, one| sum.saturating_add(one.size)), limits)?;
        // All contents in one call.
        let read = |one: &&mut Listed| one.entry.kind != Kind::Other;
        let ids = listed.iter_mut().filter(read).map(|one| format!("{}\n", one.id)).collect();
        let most = limits.bytes + limits.files as u64 * MAX_LINE;
        let bytes = self.ask(cat_file(&["--batch"]), Some(ids), most)?;
        let mut rest = bytes.as_slice();
        for one in listed.iter_mut().filter(read) {
            let invalid =
                || Failure::incomplete(format!("cannot read `{self}`: invalid response of git cat-file"));
            let (content, after) = next_content(rest).ok_or_else(invalid)?;
            one.entry.content = content.to_vec();
            rest = after;
        }
        let mut entries: Vec<Entry> = listed.into_iter().map(|one| one.entry).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Object::Directory(entries))
    }

    /// The files below a directory, without contents. Paths that could lead out of it are left out.
    fn list(&self, object: &str, limits: Limits) -> Result<Vec<Listed>, Failure> {
        // Without --full-tree, git looks for the current directory within the tree. A tree of a few objects can name any number of
        // files, so the list has a bound of its own.
        let line = git_line(&["ls-tree", "-r", "-z", "--long", "--full-tree"]).value(object);
        let bytes =
            git(line, None, limits.files as u64 * MAX_LINE).map_err(|failure| match failure.is_too_much {
                true => self.too_many(limits),
                false => failure.at(self),
            })?;
        let entry = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let (about, path) = line.split_once('\t')?;
            // The mode, the type, the id and the size, which a submodule has not.
            let mut words = about.split_ascii_whitespace();
            let (mode, id) = (words.next()?, words.nth(1)?);
            let size = words.next()?.parse().unwrap_or(0);
            let kind = match mode {
                "120000" => Kind::Link,
                mode if mode.starts_with("100") => Kind::File,
                _ => Kind::Other,
            };
            let is_below = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
            let entry = Entry { path: path.to_owned(), kind, content: Vec::new() };
            is_below.then(|| Listed { id: id.to_owned(), size, entry })
        };
        Ok(bytes.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    fn too_many(&self, limits: Limits) -> Failure {
        Failure::incomplete(format!("`{self}` contains more than {} files", limits.files))
    }

    fn check_size(&self, bytes: u64, limits: Limits) -> Result<(), Failure> {
        if bytes <= limits.bytes {
            return Ok(());
        }
        Err(Failure::incomplete(format!("`{self}` is larger than {} MiB", limits.bytes >> 20)))
    }

    fn ask(&self, line: CommandLine, input: Option<String>, most: u64) -> Result<Vec<u8>, Failure> {
        git(line, input, most).map_err(|failure| failure.at(self))
    }
}

/// A file of a directory, before it is read.
struct Listed {
    id: String,
    size: u64,
    entry: Entry,
}

/// A command of git that starts no other program and contacts nobody: the checkout may be a stranger's, and its configuration names
/// programs for objects that are elsewhere (`core.sshCommand` of a promisor remote).
fn git_line(words: &[&'static str]) -> CommandLine {
    CommandLine::new("git")
        .words(words)
        .env("GIT_NO_LAZY_FETCH", "1")
        // Of older versions, which do not know the one above: no way of transport is allowed.
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
}

fn cat_file(words: &[&'static str]) -> CommandLine {
    git_line(&["cat-file"]).words(words)
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
    /// Whether it was ended because it printed too much.
    is_too_much: bool,
    is_interrupted: bool,
    message: String,
}

impl GitFailure {
    fn ours(message: impl Into<String>) -> Self {
        let (is_of_git, is_too_much, is_interrupted) = (false, false, false);
        Self { is_of_git, is_too_much, is_interrupted, message: message.into() }
    }

    fn at(self, revision: &Revision) -> Failure {
        if self.is_interrupted {
            return Failure::interrupted();
        }
        let failure = Failure::incomplete(format!("cannot read `{revision}`: {}", self.message));
        if self.is_of_git {
            // A partial clone has the rest of its objects elsewhere.
            if ["lazy fetch", "promisor", "transport '"].iter().any(|sign| self.message.contains(sign)) {
                return failure.help("fetch the missing objects first, such as with `git fetch --refetch`");
            }
            if self.message.contains("not a git repository") {
                return failure.help("run the command in a git repository, or name a directory");
            }
            let (name, path) = (argument(&revision.revision), argument(&revision.path));
            return failure.help(format!("check the revision and the path: `git ls-tree {name} {path}`"));
        }
        if self.message.starts_with("cannot run git") {
            return failure.help("install git, or name a directory");
        }
        failure
    }
}

/// The output of a git command.
fn git(line: CommandLine, input: Option<String>, most: u64) -> Result<Vec<u8>, GitFailure> {
    let mut command = line.command().map_err(|error| GitFailure::ours(error.to_string()))?;
    let command = command.stderr(Stdio::piped());
    let limits = limits::Limits::begin(PATIENCE);
    let ended = match input {
        Some(input) => program::run_with_input(command, input, limits, most),
        None => program::run(command, limits, most),
    };
    match ended {
        Ok(Ended::Itself(output)) if output.status.success() => Ok(output.stdout),
        Ok(Ended::Itself(output)) => {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let message = message.strip_prefix("fatal: ").unwrap_or(&message).to_owned();
            Err(GitFailure { is_of_git: true, ..GitFailure::ours(message) })
        }
        Ok(Ended::TooMuch) => {
            let message = format!("git printed more than {most} bytes");
            Err(GitFailure { is_too_much: true, ..GitFailure::ours(message) })
        }
        Ok(Ended::TimedOut) => {
            Err(GitFailure::ours(format!("git did not answer within {} s", PATIENCE.as_secs())))
        }
        Ok(Ended::Interrupted) => Err(GitFailure { is_interrupted: true, ..GitFailure::ours("interrupted") }),
        Err(error) => Err(GitFailure::ours(format!("cannot run git: {error}"))),
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
