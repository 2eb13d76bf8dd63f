//! `bundle validate`: reads bundles, runs the rules over them, several bundles at a time, and weighs what was found.

mod baseline;
mod external;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use olmkit_bundle::finding::{Finding, Levels};
use olmkit_bundle::load::{BundleFiles, LoadError};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::suggest::did_you_mean;
use olmkit_bundle::validate::{self as rules, Options, SUITES, validate_with};
use olmkit_bundle::version::{Version, parse_tolerant};

use super::findings::codes;
use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Input;
use crate::report::{self, CodeAnswer, CodesAnswer, FindingsAnswer};
use baseline::Baseline;

pub use external::CUSTOM_CHECK;

/// The suite that runs when none is named.
pub const DEFAULT_SUITE: &str = rules::OLM;

/// What to validate, and how.
#[derive(Debug)]
pub struct Request {
    /// The bundles.
    pub bundles: Vec<Input>,
    /// The suites of rules.
    pub suites: Vec<&'static str>,
    /// What findings weigh.
    pub levels: Levels,
    /// A file with findings that are known.
    pub baseline: Option<PathBuf>,
    /// Programs with further checks.
    pub checks: Vec<PathBuf>,
    /// The oldest Kubernetes that the bundles are meant for.
    pub kubernetes_version: Option<Version>,
    /// The Dockerfile of the bundle's image.
    pub index_path: Option<PathBuf>,
    /// A file with categories.
    pub categories: Option<PathBuf>,
}

/// A request that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such suite.
    #[error("there is no suite `{name}`")]
    Suite {
        /// What was given.
        name: String,
    },
    /// There is no such code.
    #[error("there is no kind of finding `{code}`")]
    Code {
        /// What was given.
        code: String,
    },
    /// A file with categories is not one.
    #[error("`{}` holds no categories", .path.display())]
    Categories {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A baseline is not one.
    #[error("`{}` holds no findings", .path.display())]
    Baseline {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// The suites that names stand for; `all` is every one that needs no network.
///
/// # Errors
/// When there is no suite of a name.
pub fn suites(names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let mut suites = BTreeSet::new();
    for name in names {
        match SUITES.iter().position(|suite| suite == name) {
            Some(at) => drop(suites.insert(at)),
            None if name == "all" => {
                suites.extend((0..SUITES.len()).filter(|at| !rules::needs_network(SUITES[*at])));
            }
            None => {
                let help = did_you_mean(name, SUITES.iter().copied().chain(["all"]));
                let help = help.unwrap_or_else(|| format!("the suites are {}, and all", SUITES.join(", ")));
                return Err(Failure::misuse(RequestError::Suite { name: name.clone() }).help(help));
            }
        }
    }
    Ok(suites.into_iter().map(|at| SUITES[at]).collect())
}

/// Reads a version of Kubernetes, with or without a patch number.
///
/// # Errors
/// Says what a version looks like.
pub fn kubernetes_version(text: &str) -> Result<Version, String> {
    parse_tolerant(text).map_err(|_| "a version such as 1.25 is needed".into())
}

/// Every kind of finding of some suites.
pub fn list(suites: &[&'static str]) -> CodesAnswer {
    let of =
        |suite: &&'static str| (*suite, codes().into_iter().filter(|code| code.suite == *suite).collect());
    let chosen = if suites == [DEFAULT_SUITE] { SUITES } else { suites };
    CodesAnswer { suites: chosen.iter().map(of).collect() }
}

/// A kind of finding with its documentation.
///
/// # Errors
/// When there is none of that name.
pub fn explain(name: &str) -> Result<CodeAnswer, Failure> {
    let codes = codes();
    match codes.iter().find(|code| code.name == name) {
        Some(code) => Ok(CodeAnswer { code }),
        None => {
            let failure = Failure::misuse(RequestError::Code { code: name.to_owned() });
            let help = did_you_mean(name, codes.iter().map(|code| code.name));
            Err(failure.help(help.unwrap_or_else(|| "`--list` shows all kinds of findings".into())))
        }
    }
}

/// Validates every bundle, and answers with all findings in the order of the bundles.
///
/// # Errors
/// When no bundle can be read, or a file that the request names. A directory that is no bundle is a finding.
pub fn run(request: Request, access: &Access) -> Result<FindingsAnswer, Failure> {
    let options = Options {
        kubernetes: request.kubernetes_version.clone(),
        categories: request.categories.clone().map(read_categories).transpose()?,
        index_image: request.index_path.as_deref().map(files::read_text).transpose()?,
    };
    let mut baseline = request.baseline.as_ref().map(|path| Baseline::read(path)).transpose()?;
    let bundles = &request.bundles;
    let mut results: Vec<Option<Result<Vec<Finding>, Failure>>> = Vec::new();
    results.resize_with(bundles.len(), || None);
    for_each(
        bundles,
        |bundle| one(bundle, &request, &options, access),
        |at, result| results[at] = Some(result),
    );

    let mut answer = FindingsAnswer::new("bundle");
    for (bundle, result) in bundles.iter().zip(results) {
        match result {
            Some(Ok(findings)) => {
                answer.inputs.push(bundle.to_string());
                let findings = request.levels.apply(findings);
                let new = |finding: &Finding| baseline.as_mut().is_none_or(|known| !known.take(finding));
                let before = findings.len();
                let findings: Vec<_> = findings.into_iter().filter(new).collect();
                answer.known += before - findings.len();
                answer.findings.extend(findings);
            }
            Some(Err(failure)) => answer.unread.push(failure),
            // Every bundle has its turn, unless a thread was killed.
            None => {}
        }
    }
    match answer.unread.pop() {
        Some(failure) if answer.inputs.is_empty() => Err(failure),
        last => {
            answer.unread.extend(last);
            Ok(answer)
        }
    }
}

/// Does the work for every item on as many threads as there are processors, and hands over results as they come.
fn for_each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync, mut done: impl FnMut(usize, R)) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let progress = report::counted(items.len());
    let (send, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody to hear the results is nobody to work for.
                    let Some(item) = items.get(at) else { break };
                    if send.send((at, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (at, result) in results {
            progress.inc(1);
            done(at, result);
        }
    });
    progress.finish_and_clear();
}

/// Everything that there is to say about one bundle.
fn one(
    bundle: &Input,
    request: &Request,
    options: &Options,
    access: &Access,
) -> Result<Vec<Finding>, Failure> {
    let files = match bundle.bundle(access) {
        Ok(files) => files,
        // A file can be read, and is no bundle: the rules say what is missing.
        Err(failure) if matches!(failure.error.downcast_ref(), Some(LoadError::NotADirectory { .. })) => {
            BundleFiles { name: bundle.to_string(), files: Vec::new() }
        }
        Err(failure) => return Err(failure),
    };
    let mut findings = validate_with(&Bundle::parse(&files), &request.suites, options);
    for check in &request.checks {
        findings.extend(external::run(check, bundle, &files)?);
    }
    Ok(findings)
}

fn read_categories(path: PathBuf) -> Result<BTreeSet<String>, Failure> {
    /// What operator-sdk reads such a file as.
    #[derive(serde::Deserialize)]
    struct Categories {
        #[serde(default)]
        categories: BTreeSet<String>,
    }
    let text = files::read_text(&path)?;
    match serde_json::from_str::<Categories>(&text) {
        Ok(file) => Ok(file.categories),
        Err(source) => Err(Failure::misuse(RequestError::Categories { path, source })
            .help("write `{\"categories\": [\"Database\"]}`")),
    }
}
