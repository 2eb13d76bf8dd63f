//! `bundle validate`: reads bundles, runs the rules over them, several bundles at a time, and weighs what was found.

mod baseline;
pub(super) mod external;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use olmkit_bundle::finding::{Finding, Level, Levels};
use olmkit_bundle::generate::package_file::FILE_NAME as PACKAGE_FILE;
use olmkit_bundle::generate::{self, PackageFile, PackageSettings};
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::{Bundle, Texts};
use olmkit_bundle::source::Source;
use olmkit_bundle::suggest::did_you_mean;
use olmkit_bundle::validate::{self as rules, Answers, Options, SUITES, validate_with};
use olmkit_bundle::version::{Version, parse_tolerant};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;

use super::findings::codes;
use super::output::is_bundle;
use super::parallel::in_parallel;
use crate::actions::results::Checked;
use crate::exit::Failure;
use crate::files;
use crate::image::{Access, Place, PlaceError, platforms};
use crate::input::Input;
use crate::progress;
use crate::shell;
use baseline::Baseline;
use indicatif::ProgressBar;
use olmkit_bundle::finding::Code;

/// The suite that runs when none is named: the verdict of OLM's own tools.
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
    /// How long each of them may take for a bundle.
    pub check_limit: Duration,
    /// The oldest Kubernetes that the bundles are meant for.
    pub kubernetes_version: Option<Version>,
    /// The Dockerfile of the bundle's image.
    pub index_path: Option<PathBuf>,
    /// A file with categories.
    pub categories: Option<PathBuf>,
}

/// How long a check of the user's own may take for a bundle where nobody says otherwise.
pub const CHECK_LIMIT: Duration = Duration::from_secs(60);

/// A request that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such suite.
    #[error("unknown suite `{name}`")]
    Suite {
        /// What was given.
        name: String,
    },
    /// There is no such code.
    #[error("unknown finding code `{code}`")]
    Code {
        /// What was given.
        code: String,
    },
    /// A file with categories is not one.
    #[error("`{}` contains no categories", .path.display())]
    Categories {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A baseline is not one.
    #[error("`{}` contains no findings", .path.display())]
    Baseline {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Kinds of findings by suite.
#[derive(Debug)]
pub struct Codes {
    /// The suites with their codes.
    pub suites: Vec<(&'static str, Vec<&'static Code>)>,
}

/// One kind of finding with its documentation.
#[derive(Debug)]
pub struct ExplainedCode {
    /// The kind.
    pub code: &'static Code,
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
                return Err(Failure::usage(RequestError::Suite { name: name.clone() }).help(help));
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
    let is_minor = text.trim_start_matches('v').split('.').nth(1).is_some();
    parse_tolerant(text).ok().filter(|_| is_minor).ok_or_else(|| "expected a version such as 1.25".into())
}

/// Every kind of finding of some suites.
pub fn list(suites: &[&'static str]) -> Codes {
    let of =
        |suite: &&'static str| (*suite, codes().into_iter().filter(|code| code.suite == *suite).collect());
    let chosen = if suites == [DEFAULT_SUITE] { SUITES } else { suites };
    Codes { suites: chosen.iter().map(of).collect() }
}

/// A kind of finding with its documentation.
///
/// # Errors
/// When there is no code of that name.
pub fn explain(name: &str) -> Result<ExplainedCode, Failure> {
    let codes = codes();
    match codes.iter().find(|code| code.name == name) {
        Some(code) => Ok(ExplainedCode { code }),
        None => {
            let failure = Failure::usage(RequestError::Code { code: name.to_owned() });
            let help = did_you_mean(name, codes.iter().map(|code| code.name));
            Err(failure.help(help.unwrap_or_else(|| "`--list` shows all kinds of findings".into())))
        }
    }
}

/// Validates every bundle, and answers with all findings in the order of the bundles.
///
/// # Errors
/// When the only bundle, or a file that the request names, cannot be read. A directory that is no bundle is a finding.
pub fn run(request: Request, access: &Access) -> Result<Checked, Failure> {
    let mut options = Options::default();
    options.kubernetes.clone_from(&request.kubernetes_version);
    options.categories = request.categories.clone().map(read_categories).transpose()?;
    options.index_image = request.index_path.as_deref().map(files::read_text).transpose()?;
    let mut baseline = request.baseline.as_ref().map(|path| Baseline::read(path)).transpose()?;
    let bundles = &request.bundles;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let bar = progress::counted(bundles.len());
    let stretches = bundles.chunks(NEIGHBOURS.min(bundles.len().div_ceil(threads)).max(1));
    let results =
        in_parallel(stretches, threads, |bundles| several(bundles, &request, &options, access, &bar));
    bar.finish_and_clear();

    let mut answer = Checked::new("bundle");
    for (bundle, result) in bundles.iter().zip(results.into_iter().flatten()) {
        match result {
            Ok(findings) => {
                answer.inputs.push(bundle.to_string());
                let findings = request.levels.apply(findings);
                let new = |finding: &Finding| baseline.as_mut().is_none_or(|known| !known.take(finding));
                let before = findings.len();
                let findings: Vec<_> = findings.into_iter().filter(new).collect();
                answer.known += before - findings.len();
                answer.findings.extend(findings);
            }
            Err(failure) => answer.unread.push(failure),
        }
    }
    answer.next = next(&answer, bundles);
    match answer.unread.pop_if(|_| bundles.len() == 1) {
        Some(failure) => Err(failure),
        None => Ok(answer),
    }
}

/// The next command: for a bundle without errors what ships it, for a directory above bundles the bundles.
fn next(answer: &Checked, bundles: &[Input]) -> Option<String> {
    let [Input::Disk(path)] = bundles else { return None };
    let quoted = |path: &Path| shell::argument(path.display());
    let (shown, has_errors) = (quoted(path), answer.findings.iter().any(|own| own.level == Level::Error));
    if !has_errors {
        return Some(format!(
            "run `olmkit bundle build {shown} --to HOST/NAME:TAG`, then `olmkit catalog add CATALOG HOST/NAME:TAG`"
        ));
    }
    if !is_bundle(path) && is_catalog(path) {
        return Some(format!("did you mean `olmkit catalog validate {shown}`?"));
    }
    let entries = std::fs::read_dir(path).ok().filter(|_| !is_bundle(path))?;
    let below: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_bundle(path)).collect();
    match below.as_slice() {
        [] => None,
        [only] => Some(format!("did you mean `olmkit bundle validate {}`?", quoted(only))),
        _ => Some(format!("did you mean `olmkit bundle validate {}/*`?", shown.trim_end_matches('/'))),
    }
}

/// Whether a directory holds packages of a catalog.
fn is_catalog(path: &Path) -> bool {
    CatalogFiles::load(path).is_ok_and(|files| !Catalog::parse(&files).packages.is_empty())
}

/// How many neighbours in the list of bundles go to one thread: versions of one operator, which share files.
const NEIGHBOURS: usize = 8;
/// With more text than this at hand what is there is worked off before more is read.
const MOST_TEXT_BYTES: usize = 2 << 20;

/// Everything that there is to say about each of some bundles. They are read together, so that no text is read twice.
fn several(
    bundles: &[Input],
    request: &Request,
    options: &Options,
    access: &Access,
    progress: &ProgressBar,
) -> Vec<Result<Vec<Finding>, Failure>> {
    let mut results = Vec::new();
    while results.len() < bundles.len() {
        let (mut loaded, mut bytes) = (Vec::new(), 0);
        for bundle in &bundles[results.len()..] {
            let files = bundle.bundle(access);
            bytes += files.as_ref().map_or(0, BundleFiles::text_bytes);
            loaded.push((bundle, files));
            if bytes >= MOST_TEXT_BYTES {
                break;
            }
        }
        let mut texts = Texts::default();
        let mut checked = Vec::new();
        for (bundle, files) in &loaded {
            if let Ok(files) = files {
                let parsed = Bundle::parse_sharing(files, &mut texts);
                checked.push(check(bundle, files, &parsed, request, options, access));
            }
            progress.inc(1);
        }
        drop(texts);
        let mut checked = checked.into_iter();
        let of = |(_, files): (&Input, Result<BundleFiles, Failure>)| {
            files.and_then(|_| checked.next().unwrap_or(Ok(Vec::new())))
        };
        results.extend(loaded.into_iter().map(of));
    }
    results
}

/// Everything that there is to say about a bundle.
fn check(
    input: &Input,
    files: &BundleFiles,
    bundle: &Bundle<'_>,
    request: &Request,
    options: &Options,
    access: &Access,
) -> Result<Vec<Finding>, Failure> {
    let mut findings = if request.suites.iter().any(|suite| rules::needs_network(suite)) {
        let mut options = options.clone();
        options.platforms = Some(ask(&rules::images(bundle), access));
        validate_with(bundle, &request.suites, &options)
    } else {
        validate_with(bundle, &request.suites, options)
    };
    for program in &request.checks {
        findings.extend(external::run(program, input, files, request.check_limit)?);
    }
    if let Input::Disk(path) = input {
        trace(path, bundle, &mut findings);
    }
    Ok(findings)
}

/// Says what the package file beside a generated bundle makes the lines of findings from, if it is of the same package.
fn trace(path: &Path, bundle: &Bundle<'_>, findings: &mut [Finding]) {
    let is_made = |finding: &Finding| finding.place.as_ref().is_some_and(|place| place.made_by.is_known());
    let Some(directory) = path.parent().filter(|_| findings.iter().any(is_made)) else { return };
    let read = |path: PathBuf| Some((path.display().to_string(), files::read_text(&path).ok()?));
    let Some((name, text)) = read(directory.join(PACKAGE_FILE)) else { return };
    let Ok((file, _)) = PackageFile::parse_part(Source::new(&name, &text)) else { return };
    let PackageSettings { package, base, .. } = &file.settings;
    if package.is_empty() || bundle.annotations().is_some_and(|own| own.package() == *package) {
        let base = (!base.is_empty()).then(|| read(directory.join(base))).flatten();
        generate::trace(findings, &file, base.as_ref().map(|(path, text)| (path.as_str(), text.as_str())));
    }
}

/// Asks registries what images are made for.
fn ask(images: &BTreeSet<String>, access: &Access) -> Answers {
    let places: Vec<_> = images.iter().map(|image| format!("docker://{image}").parse::<Place>()).collect();
    let known: Vec<_> = places.iter().flatten().cloned().collect();
    let (mut answers, all) = match platforms(&known, access) {
        Ok(answers) => (answers.into_iter(), None),
        Err(error) => (Vec::new().into_iter(), Some(error.to_string())),
    };
    let answer = |place: Result<Place, PlaceError>| match place {
        Err(error) => Err(error.to_string()),
        Ok(_) => match answers.next() {
            Some(Ok(platforms)) => {
                Ok(platforms.iter().map(|on| (on.os().to_owned(), on.architecture().to_owned())).collect())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err(all.clone().unwrap_or_default()),
        },
    };
    images.iter().cloned().zip(places.into_iter().map(answer)).collect()
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
        Err(source) => Err(Failure::usage(RequestError::Categories { path, source })
            .help("write `{\"categories\": [\"Database\"]}`")),
    }
}
