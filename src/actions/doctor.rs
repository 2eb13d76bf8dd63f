//! `operator doctor --from`: recorded traces, what `kubectl` printed, must-gathers and archives of these, read into one observation.
//!
//! Nothing is unpacked to disk, links are not followed, and every size and count is bounded. What cannot be read is named in the
//! diagnosis, as long as something could be.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

mod stream;

use crate::exit::Failure;
use crate::files::{self, FileError};
use crate::image::{MAX_RECORD, Records, is_record};
use crate::lifecycle::doctor::{self, Diagnosis, NotSeen, Observation, Scope, diagnose_with_required};
use crate::limits::{Limits, Over};
use crate::sentence::Sentence;
use crate::shell::{command, quoted};
use stream::{Compression, Stream, damaged, read_most};

/// The largest file in an archive or a directory that is read, in bytes.
const MAX_FILE: u64 = 256 << 20;
/// The same where it was compressed: then a small file may hold a large one.
const MAX_PACKED: u64 = 128 << 20;
/// The most files that are looked at.
const MAX_FILES: usize = 500_000;
/// The problems that are told.
const MAX_PROBLEMS: usize = 20;

/// Nothing that could be diagnosed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// No object of OLM.
    #[error("no Subscription and no ClusterServiceVersion in {what}")]
    Nothing {
        /// What was read.
        what: String,
    },
    /// A name that means nothing in it.
    #[error("no Subscription `{name}`{place}")]
    NotFound {
        /// The name.
        name: String,
        /// Where, as a phrase; empty for everywhere.
        place: String,
    },
    /// A namespace that is not there.
    #[error("there is no namespace `{namespace}`{place}")]
    NoNamespace {
        /// The namespace.
        namespace: String,
        /// Where, as a phrase; empty on a cluster.
        place: &'static str,
    },
    /// A time for what has none.
    #[error("`{path}` is not a recorded trace, so it has no moment to stop at")]
    NoTrace {
        /// The file.
        path: PathBuf,
    },
    /// A moment that no recording has.
    #[error("a recorded trace has no moment {at} ms: the events of `{path}` are at {first} to {last} ms")]
    NoMoment {
        /// The file.
        path: PathBuf,
        /// The moment, in milliseconds.
        at: i64,
        /// The first event, in milliseconds.
        first: i64,
        /// The last event, in milliseconds.
        last: i64,
    },
    /// Standard input, more than once.
    #[error("standard input can be read only once")]
    Twice,
    /// Several recordings, or one with other files.
    #[error("a recorded trace cannot be combined with other files")]
    Mixed,
    /// A line that is no event.
    #[error("cannot read `{path}`")]
    Recording {
        /// The file.
        path: PathBuf,
        /// Why.
        source: doctor::RecordingError,
    },
    /// An archive of a format that is not read.
    #[error("`{path}` is a {format} archive: only tar, gzip and zstd are read")]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// It would take too much memory.
    #[error("`{path}` is larger than {} MiB", MAX_FILE >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error("cannot read `{path}`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The first bytes of a file.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(256).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether a file is what `--simulate` writes.
fn is_simulation(path: &Path) -> bool {
    let is_plain = !is_pipe(path) && path.is_file();
    is_plain
        && start_of(path).is_ok_and(|start| String::from_utf8_lossy(&start).contains("olmkit.simulation/"))
}

/// How to collect what the doctor reads.
fn collect() -> String {
    format!("collect with `{}`", doctor::COLLECT)
}

/// Diagnoses what files hold.
///
/// # Errors
/// A file cannot be read, or none of them holds anything of OLM.
pub fn from_files(
    paths: &[PathBuf],
    at: Option<i64>,
    scope: &Scope,
    limits: Limits,
) -> Result<Diagnosis, Failure> {
    let seen = match paths {
        [path] if is_pipe(path) || path.is_file() => alone(path, at, limits)?,
        paths if paths.iter().filter(|path| is_stdin(path)).count() > 1 => {
            return Err(Failure::usage(DoctorError::Twice).help("pass `--from -` once"));
        }
        paths if paths.iter().any(|path| !is_pipe(path) && is_named_trace(path)) => {
            return Err(Failure::usage(DoctorError::Mixed).help("pass one `--from`"));
        }
        paths => collected(paths, None, at, limits)?,
    };
    if let Err(Over::Interrupted) = limits.check() {
        return Err(Failure::interrupted());
    }
    if let Some(namespace) = scope.namespace.as_deref().filter(|namespace| !mentions(&seen, namespace)) {
        return Err(no_namespace(namespace, " in what was collected", seen.namespaces()));
    }
    diagnosed(&seen, scope)
}

/// What is found out about what was seen.
///
/// # Errors
/// There is no operator of the name that was asked for.
pub fn diagnosed(seen: &Observation, scope: &Scope) -> Result<Diagnosis, Failure> {
    found(seen, scope)?;
    let diagnosis = diagnose_with_required(seen, scope);
    match &scope.name {
        // A version without a Subscription, which runs, is no operator that OLM looks after.
        Some(name) if diagnosis.operators.is_empty() => Err(not_found(seen, scope, name)),
        _ => Ok(diagnosis),
    }
}

/// What one file or pipe holds, which may be a recording.
fn alone(path: &Path, at: Option<i64>, limits: Limits) -> Result<Observation, Failure> {
    let stream = open(path, limits)?;
    if is_named_trace(path) && stream.compression == Compression::None && !is_pipe(path) {
        return trace(path, &text_of(path)?, at);
    }
    if stream.is_tar() && at.is_some() {
        let tar = if is_stdin(path) { command!("tar -x") } else { command!("tar -xf {}", path.display()) };
        return Err(no_trace(path).help(
            Sentence::from("unpack it with ")
                + tar
                + ", and pass --at with a recorded trace (.jsonl) from it",
        ));
    }
    if stream.is_tar() || stream.compression == Compression::None && !is_pipe(path) {
        return collected(&[path.to_owned()], Some(Content::Stream(stream)), at, limits);
    }
    let is_plain = stream.compression == Compression::None;
    let (bytes, read) = stream.into_bytes();
    match bytes.as_deref().map(std::str::from_utf8) {
        None if is_plain => Err(too_large(path)),
        Some(Ok(text)) if is_recording(text) => trace(path, text, at),
        _ => collected(&[path.to_owned()], Some(Content::Bytes(bytes, read)), at, limits),
    }
}

/// What was read of a file already.
enum Content {
    Stream(Stream),
    /// As [`Stream::into_bytes`] has it.
    Bytes(Option<Vec<u8>>, io::Result<()>),
}

/// Opens a file or a pipe of a format that is read.
fn open(path: &Path, limits: Limits) -> Result<Stream, Failure> {
    if !is_stdin(path) && is_endless(path) {
        files::check_plain(path, u64::MAX)?;
    }
    let stream = Stream::open(path, limits)
        .map_err(|source| Failure::from(FileError::Read { path: path.to_owned(), source }))?;
    refused(path, &stream.raw)?;
    Ok(stream)
}

/// Whether a file is called as a recording is, compressed or not.
fn is_named_trace(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    name.ends_with(".jsonl")
}

/// A moment for what is no recording.
fn no_trace(path: &Path) -> Failure {
    Failure::usage(DoctorError::NoTrace { path: path.to_owned() })
}

/// Whether anything is in a namespace.
fn mentions(seen: &Observation, namespace: &str) -> bool {
    seen.get("Namespace", "", namespace).is_some() || seen.namespaces().contains(namespace)
}

/// That a namespace does not exist, and which one may be meant.
pub fn no_namespace<'n>(
    namespace: &str,
    place: &'static str,
    known: impl IntoIterator<Item = &'n str>,
) -> Failure {
    let help = olmkit_bundle::suggest::did_you_mean(namespace, known);
    let failure = Failure::failed(DoctorError::NoNamespace { namespace: namespace.to_owned(), place });
    failure.help(help.unwrap_or_else(|| "pass -A to search all namespaces".into()))
}

/// Whether a path means standard input.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a path means something that can be read only once, from its beginning: standard input, or a pipe such as `/dev/fd/63`.
fn is_pipe(path: &Path) -> bool {
    let is_stream = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    is_stdin(path) || std::fs::metadata(path).is_ok_and(is_stream)
}

/// Whether a path means a device that is no terminal: most of them have no end.
fn is_endless(path: &Path) -> bool {
    let is_device = std::fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_char_device() || kind.is_block_device()
    });
    is_device && !File::open(path).is_ok_and(|file| file.is_terminal())
}

/// An archive that is not read, and the command that turns it into what is.
fn refused(path: &Path, start: &[u8]) -> Result<(), Failure> {
    let name = if is_stdin(path) { String::new() } else { format!(" {}", quoted(&path.to_string_lossy())) };
    let piped = |program: &str| format!("`{program} -dc{name} | olmkit operator doctor --from -`");
    let (format, command) = match start {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => ("xz", piped("xz")),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => ("bzip2", piped("bzip2")),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => {
            let name = if name.is_empty() { " ARCHIVE.zip" } else { &name };
            ("zip", format!("`unzip -d unpacked{name}`, then pass `--from unpacked`"))
        }
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => {
            let name = if name.is_empty() { " ARCHIVE.7z" } else { &name };
            ("7z", format!("`7z x -ounpacked{name}`, then pass `--from unpacked`"))
        }
        _ => return Ok(()),
    };
    let error = DoctorError::Compressed { path: path.to_owned(), format };
    Err(Failure::incomplete(error).help(format!("unpack it: {command}")))
}

/// A line of a recording, as far as it has to be known whether it is one.
#[derive(serde::Deserialize)]
struct Moment {
    #[serde(rename = "t")]
    _at: i64,
}

/// Whether a text is a recording: a file says so by its name. Its first line may be cut off.
fn is_recording(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(2);
    // Nothing else of it is kept: a list of a million objects may be one line.
    lines.any(|line| line.trim_start().starts_with('{') && serde_json::from_str::<Moment>(line).is_ok())
}

/// The text of a recording.
fn text_of(path: &Path) -> Result<String, Failure> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > MAX_FILE) {
        return Err(too_large(path));
    }
    Ok(whole_letters(path)?)
}

/// The text of a file. One that was cut off may end in the middle of a letter, which is left out.
fn whole_letters(path: &Path) -> Result<String, files::FileError> {
    let mut bytes = files::read(path)?;
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    files::text(path, bytes)
}

/// Whether there is what was asked for.
fn found(seen: &Observation, scope: &Scope) -> Result<(), Failure> {
    let Some(name) = &scope.name else { return Ok(()) };
    let within =
        |one: &doctor::Doc<'_>| scope.namespace.as_ref().is_none_or(|namespace| one.namespace() == namespace);
    let mut all = seen.of("Subscription").filter(within);
    let mut csvs = seen.of("ClusterServiceVersion").filter(within);
    match all.any(|one| doctor::is_named(one, name)) || csvs.any(|one| doctor::is_version(one, name)) {
        true => Ok(()),
        false => Err(not_found(seen, scope, name)),
    }
}

/// That there is no operator of a name, and which one may be meant.
fn not_found(seen: &Observation, scope: &Scope, name: &str) -> Failure {
    let within =
        |one: &doctor::Doc<'_>| scope.namespace.as_ref().is_none_or(|namespace| one.namespace() == namespace);
    let all: Vec<doctor::Doc<'_>> = seen.of("Subscription").filter(within).collect();
    let place = scope
        .namespace
        .as_ref()
        .map(|namespace| format!(" in the namespace `{namespace}`"))
        .unwrap_or_default();
    let failure = Failure::failed(DoctorError::NotFound { name: name.to_owned(), place });
    let is_of_package = |one: &&doctor::Doc<'_>| {
        name.strip_prefix(one.text("/spec/name")).is_some_and(|rest| rest.starts_with('.'))
    };
    if let Some(one) = all.iter().find(is_of_package) {
        let (namespace, own) = (one.namespace(), one.name());
        return failure
            .help(format!("`{name}` is the name of a version: name its Subscription, `{namespace}/{own}`"));
    }
    let mut csvs = seen.of("ClusterServiceVersion").filter(within);
    if let Some(csv) = csvs.find(|one| doctor::is_version(*one, name)) {
        return failure.help(format!(
            "clusterserviceversion/{} in `{}` has none: run it without a name to diagnose all operators",
            csv.name(),
            csv.namespace()
        ));
    }
    let help = olmkit_bundle::suggest::did_you_mean(name, all.iter().map(|one| one.name()));
    failure.help(help.unwrap_or_else(|| "run it without a name to diagnose all operators".into()))
}

/// A file that would take too much memory.
fn too_large(path: &Path) -> Failure {
    let error = DoctorError::TooLarge { path: path.to_owned() };
    Failure::incomplete(error)
        .help("collect fewer kinds, or one namespace, or write several files and pass each with --from")
}

fn trace(path: &Path, text: &str, at: Option<i64>) -> Result<Observation, Failure> {
    if text.trim().is_empty() {
        let what = format!("`{}`, which is empty", path.display());
        return Err(Failure::incomplete(DoctorError::Nothing { what }).help("record the cluster again"));
    }
    if let Some(at) = at.filter(|at| *at < 0)
        && let Some((first, last)) = doctor::moments(text.lines())
    {
        let error = DoctorError::NoMoment { path: path.to_owned(), at, first, last };
        return Err(Failure::usage(error)
            .help(format!("pass --at {first} to --at {last}, or leave it out for the end")));
    }
    doctor::replay(text.lines(), at).map_err(|source| {
        Failure::incomplete(DoctorError::Recording { path: path.to_owned(), source })
            .help("a recorded trace has a JSON object with `t`, `type` and `object` in each line")
    })
}

/// What some files hold together; `first` is what was read of the only one already.
fn collected(
    paths: &[PathBuf],
    mut first: Option<Content>,
    at: Option<i64>,
    limits: Limits,
) -> Result<Observation, Failure> {
    if let Some(path) = paths.first().filter(|_| at.is_some()) {
        return Err(no_trace(path).help("pass --at with a recorded trace (.jsonl) only"));
    }
    let mut gathered = Gathered::default();
    for path in paths {
        let unreadable = |source| Failure::incomplete(DoctorError::Unreadable { path: path.clone(), source });
        if path.is_dir() {
            gathered.directory(path).map_err(unreadable)?;
            continue;
        }
        let name = name_of(path);
        let stream = match first.take() {
            Some(Content::Bytes(bytes, read)) => {
                gathered.bytes(&name, bytes, read);
                continue;
            }
            Some(Content::Stream(stream)) => stream,
            None => open(path, limits)?,
        };
        let is_plain = stream.compression == Compression::None;
        if stream.is_tar() || is_named_tar(path) {
            gathered.tar(&name, stream.most(), stream.into_reader());
        } else if !is_plain || is_pipe(path) {
            let (bytes, read) = stream.into_bytes();
            if bytes.is_none() && is_plain {
                return Err(too_large(path));
            }
            gathered.bytes(&name, bytes, read);
        } else if is_named_gzip(path) {
            let error = io::Error::other("it is not a gzip archive, whatever its name says");
            return Err(unreadable(error).help(collect()));
        } else if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE {
            return Err(too_large(path));
        } else {
            gathered.given(&path.display().to_string(), &whole_letters(path)?);
        }
    }
    let Gathered { mut seen, problems, more, .. } = gathered;
    let is_empty =
        seen.of("Subscription").next().is_none() && seen.of("ClusterServiceVersion").next().is_none();
    if is_empty {
        let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        let failure = Failure::incomplete(DoctorError::Nothing { what: names.join(", ") });
        if let Some(path) = paths.iter().find(|path| is_simulation(path)) {
            return Err(
                failure.help(format!("this is a simulated cluster: pass --simulate {}", path.display()))
            );
        }
        // If only a part of an input is read, what is missing there may be in the rest.
        let is_input = |problem: &&NotSeen| paths.iter().any(|path| problem.what == name_of(path));
        if let Some(NotSeen { what, why }) = problems.iter().find(is_input) {
            let source = io::Error::other(why.clone());
            let error = DoctorError::Unreadable { path: what.into(), source };
            return Err(Failure::incomplete(error).help(collect()));
        }
        let first = problems
            .first()
            .map(|problem| format!("{}: {}\n", problem.what, problem.why))
            .unwrap_or_default();
        return Err(failure.help(format!("{first}{}", collect())));
    }
    for NotSeen { what, why } in problems {
        seen.miss(what, why);
    }
    if more > 0 {
        seen.miss(format!("{more} more files"), "they cannot be read either");
    }
    seen.collected();
    Ok(seen)
}

/// What messages call an input.
fn name_of(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether a file is called as a tar is.
fn is_named_tar(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tar"))
}

/// Whether a file is called as an archive is that was compressed.
fn is_named_gzip(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    [".tar.gz", ".tgz", ".gz"].iter().any(|ending| name.ends_with(ending))
}

/// What was read from files.
#[derive(Default)]
struct Gathered {
    seen: Observation,
    problems: Vec<NotSeen>,
    /// Problems that are not told one by one.
    more: usize,
    files: usize,
}

/// Whether a file of a collection may hold objects; logs and scripts do not.
fn holds_objects(name: &str) -> bool {
    let name = name.to_lowercase();
    [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending))
}

impl Gathered {
    fn problem(&mut self, what: &str, why: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(NotSeen { what: what.to_owned(), why: why.into() });
        } else {
            self.more += 1;
        }
    }

    /// A problem that keeps objects of some kinds from being read; of any kind, if none is named.
    fn lost(&mut self, name: &str, why: impl Into<String>, kinds: &BTreeSet<String>) {
        self.problem(name, why);
        self.seen.cut_off(name, kinds);
    }

    /// A file of many that is not read: what it holds is in its name, or nothing that matters.
    fn skipped(&mut self, name: &str, why: impl Into<String>) {
        let kinds = doctor::kinds_in_path(name);
        match kinds.is_empty() {
            true => self.problem(name, why),
            false => self.lost(name, why, &kinds),
        }
    }

    /// Reads a text that was given itself, and not as one of many: what it does not hold is missing.
    fn given(&mut self, name: &str, text: &str) {
        let before = self.problems.len() + self.more;
        self.text(name, text);
        if self.problems.len() + self.more > before {
            self.seen.cut_off(name, &BTreeSet::new());
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        // A must-gather has a directory of OLM's objects in each namespace, with a file for each kind that there is.
        if name.contains("/operators.coreos.com/") {
            for kind in [
                "Subscription",
                "OperatorGroup",
                "CatalogSource",
                "InstallPlan",
                "ClusterServiceVersion",
                "OperatorCondition",
            ] {
                self.seen.look_at(kind);
            }
        }
        let read = doctor::read(&mut self.seen, text);
        if let Some(problem) = read.problem {
            let kinds = &read.kinds | &doctor::kinds_in_path(name);
            match kinds.is_empty() {
                true => self.problem(name, problem),
                false => self.lost(name, problem, &kinds),
            }
        }
    }

    fn directory(&mut self, directory: &Path) -> io::Result<()> {
        let mut recordings = 0;
        for path in files::below(directory, |_| false)? {
            let name = path.display().to_string();
            recordings += usize::from(name.ends_with(".jsonl"));
            if !holds_objects(&name) {
                continue;
            }
            self.files += 1;
            if self.files > MAX_FILES {
                let why = format!("it has more than {MAX_FILES} files");
                self.lost(&directory.display().to_string(), why, &BTreeSet::new());
                return Ok(());
            }
            if std::fs::metadata(&path).is_ok_and(|found| found.len() > MAX_FILE) {
                self.skipped(&name, format!("it is larger than {} MiB", MAX_FILE >> 20));
                continue;
            }
            match whole_letters(&path) {
                Ok(text) => self.text(&name, &text),
                Err(error) => self.skipped(&name, error.to_string()),
            }
        }
        if recordings > 0 {
            self.problem(
                &format!("recorded traces ({recordings} file{})", if recordings == 1 { "" } else { "s" }),
                "traces cannot be combined: pass one with --from",
            );
        }
        Ok(())
    }

    /// Reads what [`Stream::into_bytes`] gave.
    fn bytes(&mut self, name: &str, bytes: Option<Vec<u8>>, read: io::Result<()>) {
        if let Err(error) = read {
            self.lost(name, damaged(&error), &BTreeSet::new());
        }
        match bytes {
            None => {
                let why = format!("it is larger than {} MiB when it is decompressed", MAX_PACKED >> 20);
                self.lost(name, why, &BTreeSet::new());
            }
            Some(bytes) if files::is_utf16(&bytes) => self.problem(name, "it is UTF-16: write it as UTF-8"),
            Some(bytes) => self.given(name, &String::from_utf8_lossy(&bytes)),
        }
    }

    /// Reads the files of a tar in memory, up to so many bytes each; links, devices and paths that lead elsewhere are of no concern.
    fn tar(&mut self, name: &str, most: u64, reader: impl io::Read) {
        let mut tar = tar::Archive::new(reader);
        // Raw: the library would read records of any size into memory.
        let entries = match tar.entries() {
            Ok(entries) => entries.raw(true),
            Err(error) => return self.problem(name, format!("it is not an archive: {error}")),
        };
        let mut recordings = 0;
        let mut records = Records::default();
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    return self.lost(name, damaged(&error), &BTreeSet::new());
                }
            };
            self.files += 1;
            if self.files > MAX_FILES {
                return self.lost(name, format!("it has more than {MAX_FILES} files"), &BTreeSet::new());
            }
            let kind = entry.header().entry_type();
            if is_record(kind) {
                if let Err(error) = read_record(&mut records, kind, &mut entry) {
                    return self.lost(name, damaged(&error), &BTreeSet::new());
                }
                continue;
            }
            let records = std::mem::take(&mut records);
            if records.size.is_some_and(|size| size != entry.size()) {
                let error = io::Error::other("a pax record contradicts an entry's size");
                return self.lost(name, damaged(&error), &BTreeSet::new());
            }
            let path = records.path.unwrap_or_else(|| entry.path_bytes().into_owned());
            let inner = String::from_utf8_lossy(&path).into_owned();
            recordings += usize::from(inner.ends_with(".jsonl"));
            if !entry.header().entry_type().is_file() || !holds_objects(&inner) {
                continue;
            }
            let within = format!("{name}: {inner}");
            let size = entry.header().size().unwrap_or(u64::MAX);
            if size > most {
                self.skipped(&within, format!("it is larger than {} MiB", most >> 20));
                continue;
            }
            let (bytes, read) = read_most(&mut entry, size);
            // What was read of it is an object, or several.
            self.text(&within, &String::from_utf8_lossy(&bytes));
            if let Err(error) = read {
                return self.lost(name, damaged(&error), &BTreeSet::new());
            }
        }
        if recordings > 0 {
            self.problem(
                &format!("recorded traces ({recordings} file{})", if recordings == 1 { "" } else { "s" }),
                "traces cannot be combined: unpack them with `tar -xf`, and pass one with --from",
            );
        }
    }
}

/// Reads what an archive says of its next file, which is little.
fn read_record(
    records: &mut Records,
    kind: tar::EntryType,
    entry: &mut tar::Entry<'_, impl io::Read>,
) -> io::Result<()> {
    if entry.size() > MAX_RECORD {
        let why =
            format!("the record before a file has {} bytes; at most {MAX_RECORD} are read", entry.size());
        return Err(io::Error::other(why));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    records.take(kind, &bytes)
}
