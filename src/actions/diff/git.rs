//! A bundle or a file as a revision of a git repository has it, read by git itself.

use std::fmt;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use olmkit_bundle::load::{BundleFile, BundleFiles, Content, MAX_BUNDLE_BYTES, MAX_FILES};

use super::{Loaded, single};
use crate::exit::Failure;

/// `git:REV:PATH`.
#[derive(Clone, Debug)]
pub struct Revision {
    revision: String,
    path: String,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git:{}:{}", self.revision, self.path)
    }
}

impl Revision {
    /// Reads `git:REV:PATH`; none when the text is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (revision, path) = text.strip_prefix("git:")?.split_once(':')?;
        // An option is no revision.
        let sound = !revision.is_empty() && !revision.starts_with('-') && !path.is_empty();
        sound.then(|| Self { revision: revision.to_owned(), path: path.trim_end_matches('/').to_owned() })
    }

    /// Reads the path: below the current directory, else from the top of the repository.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
        let path = if self.path.is_empty() { "." } else { &self.path };
        let here = format!("{}:./{path}", self.revision);
        let top = format!("{}:{path}", self.revision);
        let (object, kind) = match git(&["cat-file", "-t", &here], None) {
            Ok(kind) => (here, kind),
            Err(failure) if !failure.said => return Err(failure.at(self)),
            Err(_) => {
                let kind = git(&["cat-file", "-t", &top], None).map_err(|failure| failure.at(self))?;
                (top, kind)
            }
        };
        let name = self.to_string();
        if kind.trim_ascii() == b"blob" {
            let bytes = git(&["cat-file", "blob", &object], None).map_err(|failure| failure.at(self))?;
            let text = String::from_utf8(bytes)
                .map_err(|_| Failure::unknown(format!("`{name}` is not text in UTF-8")))?;
            return Ok(Loaded::File(single(&name, text)));
        }
        let listed = git(&["ls-tree", "-r", "-z", &object], None).map_err(|failure| failure.at(self))?;
        let mut files = Vec::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let Some((about, path)) = line.split_once('\t') else { continue };
            let mut words = about.split(' ');
            let (mode, id) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
            files.push((mode.to_owned(), id.to_owned(), path.to_owned()));
        }
        if files.len() > MAX_FILES {
            return Err(Failure::unknown(format!("`{name}` holds more than {MAX_FILES} files")));
        }
        self.contents(name, files)
    }

    /// The files by their ids, all in one call.
    fn contents(&self, name: String, files: Vec<(String, String, String)>) -> Result<Loaded, Failure> {
        let is_plain = |mode: &str| mode.starts_with("100");
        let ids: String =
            files.iter().filter(|(mode, ..)| is_plain(mode)).map(|(_, id, _)| format!("{id}\n")).collect();
        let bytes = git(&["cat-file", "--batch"], Some(ids)).map_err(|failure| failure.at(self))?;
        if bytes.len() as u64 > MAX_BUNDLE_BYTES {
            return Err(Failure::unknown(format!("`{name}` is larger than {} MiB", MAX_BUNDLE_BYTES >> 20)));
        }
        let broken = || Failure::unknown(format!("cannot read `{name}`: invalid response of git cat-file"));
        let mut rest = bytes.as_slice();
        let mut read = Vec::new();
        for (mode, _, path) in files {
            if !is_plain(&mode) {
                let why = if mode == "120000" { "it is a symbolic link" } else { "it is not a plain file" };
                read.push(BundleFile { path, content: Content::Unread(why.into()) });
                continue;
            }
            // `ID blob SIZE`, the bytes, and a line break.
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(broken)?;
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            let size: usize =
                header.rsplit(' ').next().and_then(|size| size.parse().ok()).ok_or_else(broken)?;
            let content = rest.get(end + 1..end + 1 + size).ok_or_else(broken)?;
            read.push(BundleFile { path, content: Content::from_bytes(content.to_vec()) });
            rest = rest.get(end + size + 2..).ok_or_else(broken)?;
        }
        read.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Loaded::Bundle(BundleFiles { name, files: read }))
    }
}

/// Why git did not answer.
struct GitFailure {
    /// Whether git itself says so.
    said: bool,
    message: String,
}

impl GitFailure {
    fn at(self, revision: &Revision) -> Failure {
        let failure = Failure::unknown(format!("cannot read `{revision}`: {}", self.message));
        let help = match self.said {
            true => "check the revision and the path with `git ls-tree REV PATH`",
            false => "install git, or name a directory",
        };
        failure.help(help)
    }
}

fn git(arguments: &[&str], input: Option<String>) -> Result<Vec<u8>, GitFailure> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let run = || -> io::Result<std::process::Output> {
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
            Err(GitFailure { said: true, message: message.trim_start_matches("fatal: ").to_owned() })
        }
        Err(error) => Err(GitFailure { said: false, message: format!("cannot run git: {error}") }),
    }
}
