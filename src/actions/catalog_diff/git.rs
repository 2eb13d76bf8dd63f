//! A catalog as a revision of a git repository has it, read by git itself.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use olmkit_catalog::load::{CatalogFiles, MAX_BYTES, MAX_FILES};

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

/// A file of a revision, as `git ls-tree` lists it.
struct Listed {
    is_link: bool,
    id: String,
    path: String,
}

impl Revision {
    /// Reads `git:REV:PATH`; none when the text is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (revision, path) = text.strip_prefix("git:")?.split_once(':')?;
        // An option is no revision.
        let is_sound = !revision.is_empty() && !revision.starts_with('-');
        let path = path.trim_end_matches('/').trim_start_matches("./");
        is_sound.then(|| Self { revision: revision.to_owned(), path: path.to_owned() })
    }

    /// The catalog: the path is below the current directory, else below the top of the repository.
    pub(super) fn catalog(&self) -> Result<CatalogFiles, Failure> {
        let here = format!("{}:./{}", self.revision, self.path);
        let top = format!("{}:{}", self.revision, self.path);
        let (object, kind) = match git(&["cat-file", "-t", &here], None) {
            Ok(kind) => (here, kind),
            Err(failure) if !failure.is_of_git => return Err(failure.at(self)),
            Err(_) => {
                let kind = git(&["cat-file", "-t", &top], None).map_err(|failure| failure.at(self))?;
                (top, kind)
            }
        };
        // By way of a directory: which files count is the catalog's own business.
        let dir = tempfile::tempdir().map_err(Failure::unknown)?;
        let root = dir.path().join("catalog");
        if kind.trim_ascii() == b"blob" {
            let bytes = git(&["cat-file", "blob", &object], None).map_err(|failure| failure.at(self))?;
            fs::write(&root, bytes).map_err(Failure::unknown)?;
        } else {
            fs::create_dir(&root).map_err(Failure::unknown)?;
            self.unpack(&object, &root)?;
        }
        let files = CatalogFiles::load(&root).map_err(Failure::unknown)?;
        Ok(CatalogFiles { name: self.to_string(), ..files })
    }

    fn unpack(&self, object: &str, root: &Path) -> Result<(), Failure> {
        let listed = git(&["ls-tree", "-r", "-z", object], None).map_err(|failure| failure.at(self))?;
        let mut files = Vec::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let Some((about, path)) = line.split_once('\t') else { continue };
            let words: Vec<&str> = about.split(' ').collect();
            // Neither submodules nor what could lead out of the directory.
            let ["100644" | "100755" | "120000", _, id] = words[..] else { continue };
            if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
                continue;
            }
            files.push(Listed { is_link: words[0] == "120000", id: id.to_owned(), path: path.to_owned() });
        }
        if files.len() > MAX_FILES {
            return Err(Failure::unknown(format!("`{self}` holds more than {MAX_FILES} files")));
        }
        let ids: String = files.iter().map(|file| format!("{}\n", file.id)).collect();
        let bytes = git(&["cat-file", "--batch"], Some(ids)).map_err(|failure| failure.at(self))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Failure::unknown(format!("`{self}` is larger than {} MiB", MAX_BYTES >> 20)));
        }
        let broken = || Failure::unknown(format!("cannot read `{self}`: invalid response of git cat-file"));
        let mut rest = bytes.as_slice();
        let mut links = Vec::new();
        for file in &files {
            // `ID blob SIZE`, the bytes, and a line break.
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(broken)?;
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            let size = header.rsplit(' ').next().and_then(|size| size.parse().ok());
            let size: usize = size.ok_or_else(broken)?;
            let content = rest.get(end + 1..end + 1 + size).ok_or_else(broken)?;
            rest = rest.get(end + size + 2..).ok_or_else(broken)?;
            let target = root.join(&file.path);
            if file.is_link {
                links.push((target, content));
                continue;
            }
            let parent = target.parent().unwrap_or(root);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&target, content))
                .map_err(Failure::unknown)?;
        }
        // Last, so that nothing is written through one; the reader follows none that leads out.
        for (target, content) in links {
            let parent = target.parent().unwrap_or(root);
            let link = String::from_utf8_lossy(content).into_owned();
            fs::create_dir_all(parent)
                .and_then(|()| std::os::unix::fs::symlink(link, &target))
                .map_err(Failure::unknown)?;
        }
        Ok(())
    }
}

/// Why git did not answer.
struct GitFailure {
    /// Whether git itself says so.
    is_of_git: bool,
    message: String,
}

impl GitFailure {
    fn at(self, revision: &Revision) -> Failure {
        let help = match self.is_of_git {
            true => "check the revision and the path with `git ls-tree REV PATH`",
            false => "install git, or name a directory",
        };
        Failure::unknown(format!("cannot read `{revision}`: {}", self.message)).help(help)
    }
}

/// The output of a git command.
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
        let writer = child
            .stdin
            .take()
            .zip(input)
            .map(|(mut stdin, input)| std::thread::spawn(move || stdin.write_all(input.as_bytes())));
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
