//! `olmkit olm …`: OLM itself is installed, looked at and removed.

mod download;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::operator::{connect, failure};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::lifecycle::cluster::Cluster as _;
use crate::lifecycle::engine::{Account, Engine, Options, Planned, Progress};
use crate::lifecycle::kubernetes::Choice;
use crate::lifecycle::olm::NoCatalogs;
use crate::lifecycle::olm::install::Install;
use crate::lifecycle::olm::manifests::{Override, Release, ReleaseError};
use crate::lifecycle::olm::status::{self, OlmStatus};
use crate::lifecycle::olm::uninstall::Uninstall;
use crate::lifecycle::uninstall::Removed;
use crate::sentence::Sentence;
use crate::shell::command;

pub use download::{Download, RELEASES};

/// How long removing what a failed installation has made may take, after the time of the command.
const UNDOING: Duration = Duration::from_secs(90);
/// The largest manifests that are read from standard input, in bytes.
const MAX_STDIN: u64 = 64 << 20;

/// What to do.
#[derive(Clone, Debug)]
pub enum Verb {
    /// `olm install`
    Install(Request),
    /// `olm status`
    Status,
    /// `olm uninstall`
    Uninstall(Uninstall),
}

/// What to install, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where the manifests are.
    pub source: Source,
    /// Images that are pulled from elsewhere.
    pub images: Vec<Override>,
    /// Whether the CatalogSources of the manifests are left out.
    pub without_catalogs: bool,
    /// Whether objects of others are taken over.
    pub adopt: bool,
    /// Whether what was made stays when the installation fails.
    pub keep: bool,
}

/// Where manifests are.
#[derive(Clone, Debug)]
pub enum Source {
    /// Files and directories; `-` is standard input.
    Disk(Vec<PathBuf>),
    /// A release.
    Release(Download),
}

/// How `olm install` ended.
#[derive(Debug)]
pub enum Outcome {
    /// OLM works.
    Installed(OlmStatus),
    /// How OLM is.
    Status(OlmStatus),
    /// What was removed.
    Removed(Removed),
    /// What would be written.
    Planned(Vec<Planned>),
}

/// Does a verb on a cluster.
///
/// # Errors
/// Why it could not be done.
pub fn run(
    choice: &Choice,
    verb: &Verb,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let reach = choice.reach();
    let options = Options { reach: reach.clone(), ..options.clone() };
    match done(choice, verb, &options, progress) {
        Ok(Outcome::Removed(removed)) => Ok(Outcome::Removed(removed.on(&reach))),
        done => done.map_err(|failure| failure.on(&reach)),
    }
}

fn done(
    choice: &Choice,
    verb: &Verb,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let release = match verb {
        Verb::Install(request) => Some(release(request, options.timeout)?),
        _ => None,
    };
    let mut cluster = connect(choice, "", options.timeout.saturating_sub(begun.elapsed()))?;
    let mut engine = Engine::new(&mut cluster, &NoCatalogs, progress, options.clone());
    let done = match (verb, release) {
        (Verb::Install(request), Some(release)) => {
            progress.said(Duration::ZERO, &what(&release));
            engine.install_olm(&Install { release, adopt: request.adopt }).map(Outcome::Installed)
        }
        (Verb::Uninstall(request), _) => engine.uninstall_olm(request).map(Outcome::Removed),
        (_, _) => status::look(engine.cluster).map(Outcome::Status).map_err(Into::into),
    };
    let error = match done {
        Ok(Outcome::Removed(removed)) => return Ok(Outcome::Removed(removed)),
        Ok(Outcome::Installed(_)) if options.dry_run => return Ok(Outcome::Planned(engine.planned)),
        Ok(outcome) => return Ok(outcome),
        Err(error) => error,
    };
    let account = engine.account();
    let Verb::Install(Request { keep, .. }) = verb else {
        return Err(failure(error, &account));
    };
    let has_made = account.done.iter().any(|one| one.verb == "create");
    let is_interrupted = failure_exit(&error) == Exit::Interrupted;
    if *keep || is_interrupted || !has_made {
        let failure = failure(error, &account);
        return Err(if has_made {
            also(failure, command!("olmkit olm uninstall") + " removes what was installed")
        } else {
            failure
        });
    }
    let failure = failure(error, &Account::default());
    progress.said(cluster.now(), "the installation failed; removing what it created");
    let limit = cluster.now() + UNDOING;
    let mut cluster = cluster.within(limit);
    let options = Options { timeout: UNDOING, ..options.clone() };
    let mut engine = Engine::new(&mut cluster, &NoCatalogs, progress, options);
    Err(match engine.undo_olm(&account.done) {
        Ok(removed) => also(
            failure,
            format!(
                "the {} objects that were created are removed; pass --keep to keep them for inspection",
                removed.len()
            ),
        ),
        Err(error) => also(
            failure,
            Sentence::from(format!("not everything that was created could be removed: {error}; run "))
                + command!("olmkit olm uninstall"),
        ),
    })
}

/// Whether a request can be done as far as its manifests go.
///
/// # Errors
/// They cannot be read, or are no release of OLM.
pub(super) fn check(request: &Request, timeout: Duration) -> Result<(), Failure> {
    match request.source {
        Source::Disk(_) => release(request, timeout).map(drop),
        Source::Release(_) => Ok(()),
    }
}

/// What a release is, in a line.
fn what(release: &Release) -> String {
    let version = if release.version.is_empty() { "of unknown version" } else { &release.version };
    format!("OLM {version}, {} objects, namespace {}", release.objects.len(), release.namespace)
}

fn failure_exit(error: &crate::lifecycle::engine::EngineError) -> Exit {
    use crate::lifecycle::cluster::ClusterError;
    use crate::lifecycle::engine::EngineError;
    match error {
        EngineError::Cluster(ClusterError::Interrupted) => Exit::Interrupted,
        _ => Exit::Incomplete,
    }
}

fn also(failure: Failure, more: impl Into<Sentence>) -> Failure {
    Failure { help: failure.help.and(more.into()), ..failure }
}

/// The manifests of a request.
fn release(request: &Request, timeout: Duration) -> Result<Release, Failure> {
    let files = match &request.source {
        Source::Disk(paths) => read(paths)?,
        Source::Release(release) => download::fetch(release, timeout)?,
    };
    let mut release = Release::parse(&files).map_err(refused)?;
    if request.without_catalogs {
        release = release.without_catalogs();
    }
    release.replace_images(&request.images).map_err(refused)?;
    Ok(release)
}

fn refused(error: ReleaseError) -> Failure {
    let help = error.help();
    let failure = Failure::failed(error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// Reads manifests: files, those in directories, and standard input.
fn read(paths: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    let mut texts = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            texts.push(("standard input".to_owned(), files::read_stdin(MAX_STDIN)?));
            continue;
        }
        let found = if path.is_dir() {
            let found = files::below(path, |_| false).map_err(|error| {
                Failure::incomplete(format!("cannot read the directory `{}`: {error}", path.display()))
            })?;
            let is_manifest = |file: &PathBuf| {
                file.extension()
                    .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
            };
            found.into_iter().filter(is_manifest).collect()
        } else {
            vec![path.clone()]
        };
        if found.is_empty() {
            return Err(Failure::failed(format!(
                "no manifests (*.yaml, *.yml, *.json) in `{}`",
                path.display()
            )));
        }
        for file in found {
            texts.push((file.display().to_string(), files::read_text(&file)?));
        }
    }
    Ok(texts)
}
