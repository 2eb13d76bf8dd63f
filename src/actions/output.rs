//! Which directories are bundles, or a verb's output, and so never input; and what is in them besides what a verb writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use olmkit_bundle::annotations::{self, MANIFESTS_DIR, METADATA_DIR};
use olmkit_bundle::generate::HEADER;
use olmkit_bundle::yaml;

use crate::exit::Failure;
use crate::files::{self, FileError};
use crate::input::SCORECARD_DIR;
use crate::shell::argument;

/// The directories of a bundle.
const BUNDLE_DIRS: [&str; 3] = [MANIFESTS_DIR, METADATA_DIR, SCORECARD_DIR];
/// How the name of a ClusterServiceVersion's file ends.
const CSV_ENDING: &str = ".clusterserviceversion.yaml";
/// The file of a Helm chart that says what it is.
pub(super) const CHART_FILE: &str = "Chart.yaml";
/// Where the templates of a chart are.
const CHART_TEMPLATES: &str = "templates";
/// How an action of a template begins, which no YAML has.
const TEMPLATE_ACTION: &str = "{{";
/// What the root of a source tree or of a Helm chart holds, and a bundle does not.
const SOURCE_MARKS: [&str; 5] = [".git", "Cargo.toml", "go.mod", "PROJECT", CHART_FILE];

/// An output directory.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// Without links, and where it is going to be when it is not there yet.
    real: Option<PathBuf>,
    /// What else is no input, without links.
    others: Vec<PathBuf>,
}

/// The files in the directories of a bundle that a verb does not write.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Those that carry our mark.
    pub(super) stale: Vec<String>,
    /// The rest.
    pub(super) kept: Vec<String>,
}

impl Output {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), real: real(path), others: Vec::new() }
    }

    /// The same, with other files and directories that are no manifests either.
    pub(super) fn and(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.others.extend(paths.into_iter().filter_map(|path| path.canonicalize().ok()));
        self
    }

    /// Whether something below an input is no input: it is the output directory, one of the directories of its bundle,
    /// another bundle, or was named as something else.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let is_other = |other: &PathBuf| {
            other.file_name() == path.file_name() && path.canonicalize().is_ok_and(|real| real == *other)
        };
        self.others.iter().any(is_other) || path.is_dir() && (self.is_output(path) || is_of_bundle(path))
    }

    fn is_output(&self, path: &Path) -> bool {
        let (Some(output), Ok(path)) = (&self.real, path.canonicalize()) else { return false };
        path == *output || BUNDLE_DIRS.iter().any(|below| path.starts_with(output.join(below)))
    }

    /// Refuses an input that is in the output directory's bundle, or is that bundle and nothing else.
    pub(super) fn check_is_not(&self, input: &Path) -> Result<(), Failure> {
        let is_whole = input.canonicalize().ok().is_some_and(|input| self.real == Some(input));
        if !self.is_output(input) || is_whole && !holds_only_bundle(input) {
            return Ok(());
        }
        let error = format!("`{}` is the output, and cannot be input too", input.display());
        Err(Failure::usage(error).help("name the operator's own manifests, or choose another --output-dir"))
    }

    /// Refuses a directory that plainly is something else than a bundle.
    pub(super) fn check_is_for_bundle(&self) -> Result<(), Failure> {
        let Some(other) = self.something_else().filter(|_| !is_bundle(&self.path)) else { return Ok(()) };
        let error = format!("`{}` is not a bundle: {other}", self.path.display());
        let help = "choose a separate directory for the bundle, such as `--output-dir bundle`, or pass --force to write \
                    `manifests/` and `metadata/` there; other files stay as they are";
        Err(Failure::usage(error).help(help))
    }

    /// What the directory plainly is, if it was not made for a bundle.
    fn something_else(&self) -> Option<String> {
        let is = |directory: Option<PathBuf>| {
            directory
                .and_then(|directory| directory.canonicalize().ok())
                .is_some_and(|own| self.real == Some(own))
        };
        if is(Some("/".into())) {
            return Some("it is the root directory".to_owned());
        }
        if is(std::env::home_dir()) {
            return Some("it is your home directory".to_owned());
        }
        let mark = SOURCE_MARKS.iter().find(|mark| fs::symlink_metadata(self.path.join(mark)).is_ok())?;
        Some(format!("it contains `{mark}`"))
    }

    /// Refuses an output directory with manifests that an input would be expected to have: they are below the input, and nothing
    /// in the output directory is read.
    pub(super) fn check_hides_none(&self, input: &Path) -> Result<(), Failure> {
        let (Some(output), Ok(input)) = (&self.real, input.canonicalize()) else { return Ok(()) };
        if !output.starts_with(&input) || is_bundle(output) {
            return Ok(());
        }
        let unread = |directory: &Path| {
            files::below(directory, is_bundle).unwrap_or_default().into_iter().find(|file| is_manifest(file))
        };
        let found = if *output == input {
            BUNDLE_DIRS.iter().find_map(|dir| unread(&output.join(dir)))
        } else {
            unread(output)
        };
        let Some(found) = found else { return Ok(()) };
        let found = self.path.join(found.strip_prefix(output).unwrap_or(&found));
        let error = format!(
            "`{}` would not be read: `{}` is the output directory, and the bundle is written there",
            found.display(),
            self.path.display()
        );
        let help =
            "choose a separate --output-dir for the bundle, or pass --force to leave these manifests out";
        Err(Failure::usage(error).help(help))
    }

    /// If the directory holds a bundle of another package: which one, and where the bundle of this one could go instead.
    pub(super) fn beside_other(&self, package: &str) -> Option<(String, PathBuf)> {
        let other = package_of(&self.path).filter(|other| other != package)?;
        Some((other, self.path.with_file_name(format!("{package}-bundle"))))
    }

    /// Refuses to replace the bundle of another package.
    pub(super) fn check_is_of_package(&self, package: &str) -> Result<(), Failure> {
        let Some((other, beside)) = self.beside_other(package) else { return Ok(()) };
        let directory = self.path.display();
        let error = format!(
            "`{directory}` holds a bundle of the package `{other}`, which the bundle of `{package}` would replace"
        );
        let help = format!(
            "choose another directory, such as `--output-dir {}`; or pass --force to replace the bundle of `{other}`",
            argument(beside.display())
        );
        Err(Failure::usage(error).help(help))
    }

    /// Refuses to replace files that somebody else wrote, unless they say the same already.
    pub(super) fn check_replaces_ours(&self, files: &BTreeMap<String, String>) -> Result<(), Failure> {
        let is_foreign = |(path, text): &(&String, &String)| {
            files::read(&self.path.join(path)).is_ok_and(|old| {
                let same = old == text.as_bytes()
                    || text.strip_prefix(HEADER).is_some_and(|text| old == text.as_bytes());
                !same && !old.starts_with(HEADER.trim_end().as_bytes())
            })
        };
        let foreign: Vec<&String> = files.iter().filter(is_foreign).map(|(path, _)| path).collect();
        let Some(first) = foreign.first() else { return Ok(()) };
        let more = match foreign.len() - 1 {
            0 => String::new(),
            1 => " and another file".to_owned(),
            more => format!(" and {more} other files"),
        };
        let (was, them) = if foreign.len() == 1 { ("was", "it") } else { ("were", "them") };
        let error = format!(
            "`{}`{more} {was} not written by olmkit, and would be replaced",
            self.path.join(first).display()
        );
        let csv = foreign.iter().find(|path| path.ends_with(CSV_ENDING));
        let base = csv.map(|path| {
            let path = self.path.join(path);
            let path = argument(path.display());
            format!("to keep its contents, move `{path}` elsewhere and pass it with --base; ")
        });
        let help = format!(
            "{}to replace {them}, pass --force; or choose another --output-dir",
            base.unwrap_or_default()
        );
        Err(Failure::usage(error).help(help))
    }

    /// Refuses to write the bundle if the directory holds another ClusterServiceVersion that olmkit did not write: a bundle may have
    /// only one.
    pub(super) fn check_is_only_csv(&self, files: &BTreeMap<String, String>) -> Result<(), Failure> {
        let others = self.others(files)?;
        let Some(other) = others.kept.iter().find(|path| path.ends_with(CSV_ENDING)) else { return Ok(()) };
        let other = self.path.join(other);
        let error = format!(
            "`{}` is another ClusterServiceVersion, and olmkit did not write it: a bundle has only one",
            other.display()
        );
        let help = "remove it with the other manifests of its bundle, or choose another --output-dir";
        Err(Failure::usage(error).help(help))
    }

    /// What the directories that these files go to, and those that bundles have, hold besides.
    pub(super) fn others(&self, files: &BTreeMap<String, String>) -> Result<Others, FileError> {
        let above = |path: &String| path.rsplit_once('/').map(|(above, _)| above.to_owned());
        let mut directories: BTreeSet<String> = files.keys().filter_map(above).collect();
        directories.extend(BUNDLE_DIRS.map(|dir| dir.trim_end_matches('/').to_owned()));
        directories.extend(self.something_else().is_none().then(String::new));
        let mut others = Others::default();
        for directory in directories {
            let on_disk = self.path.join(&directory);
            let list = |source| FileError::List { path: on_disk.clone(), source };
            // Nothing is removed through a link that leads out.
            let real = on_disk.canonicalize().ok().zip(self.path.canonicalize().ok());
            if !on_disk.is_dir() || !real.is_some_and(|(below, output)| below.starts_with(output)) {
                continue;
            }
            for path in files::below(&on_disk, |_| true).map_err(list)? {
                let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
                let name = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
                if files.contains_key(&name) {
                    continue;
                }
                let is_ours = !directory.is_empty() && files::starts_with(&path, HEADER.as_bytes());
                if is_ours { others.stale.push(name) } else { others.kept.push(name) }
            }
        }
        others.kept.sort();
        Ok(others)
    }
}

/// A path without links. What is not there yet has none: another process may make it at any time.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (above, real) = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
    let below = path.strip_prefix(above).ok()?;
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| real.join(below))
}

/// Whether a directory is a bundle, by whatever tool.
pub(super) fn is_bundle(directory: &Path) -> bool {
    let metadata = directory.join(METADATA_DIR).join("annotations.yaml");
    let is_annotated = || {
        files::read_text(&metadata).is_ok_and(|text| text.contains("operators.operatorframework.io.bundle."))
    };
    let manifests = directory.join(MANIFESTS_DIR);
    let has_ours = || {
        let files = files::below(&manifests, |_| true).unwrap_or_default();
        files.iter().any(|file| files::starts_with(file, HEADER.as_bytes()))
    };
    manifests.is_dir() && (is_annotated() || has_ours())
}

/// The package of the bundle in a directory: that of its annotations, else that of its ClusterServiceVersion's file.
fn package_of(directory: &Path) -> Option<String> {
    let annotated = || {
        let text = files::read_text(&directory.join(METADATA_DIR).join("annotations.yaml")).ok()?;
        let document = yaml::first_document(&text).ok()?;
        let package = document.root.get("annotations")?.get(annotations::PACKAGE)?.to_text()?;
        Some(package.into_owned()).filter(|package| !package.is_empty())
    };
    let named = || {
        let files = files::below(&directory.join(MANIFESTS_DIR), |_| true).ok()?;
        let ours = files.iter().filter(|file| files::starts_with(file, HEADER.as_bytes()));
        let mut names = ours.filter_map(|file| file.file_name()?.to_str()?.strip_suffix(CSV_ENDING));
        names.next().map(str::to_owned)
    };
    annotated().or_else(named)
}

/// Refuses an input that is a bundle and nothing else, whole or its manifests: what a bundle is made from is not in it.
pub(super) fn check_is_no_bundle(input: &Path) -> Result<(), Failure> {
    let name = MANIFESTS_DIR.trim_end_matches('/');
    let above = input.canonicalize().ok().filter(|real| real.ends_with(name));
    let above = above.as_deref().and_then(Path::parent).filter(|above| is_bundle(above));
    let bundle = match above {
        Some(_) if input.file_name().is_none() => Path::new(".."),
        Some(_) => input.parent().filter(|above| *above != Path::new("")).unwrap_or(Path::new(".")),
        None if is_bundle(input) && !holds_objects(input) => input,
        None => return Ok(()),
    };
    let files = files::below(&bundle.join(name), |_| true).unwrap_or_default();
    let csv = files.iter().find(|file| file.to_string_lossy().ends_with(CSV_ENDING));
    let csv = csv.map_or_else(|| bundle.join(name).join("NAME.clusterserviceversion.yaml"), Clone::clone);
    let [shown, csv] = [bundle, &csv].map(|path| path.display().to_string());
    let help = format!(
        "run `olmkit bundle validate {}` to check it; to generate the next version, give the operator's own manifests, and \
         `--base {}` to keep what its ClusterServiceVersion says",
        argument(&shown),
        argument(&csv)
    );
    Err(Failure::usage(format!(
        "`{}` is a bundle already, not the manifests of an operator",
        input.display()
    ))
    .help(help))
}

/// Refuses an input that is a Helm chart with templates: only helm can read those.
pub(super) fn check_is_no_chart(input: &Path) -> Result<(), Failure> {
    let templates = input.join(CHART_TEMPLATES);
    if !input.join(CHART_FILE).is_file() || !templates.is_dir() {
        return Ok(());
    }
    let files = files::below(&templates, |_| false).unwrap_or_default();
    let is_template = |file: &&PathBuf| {
        is_manifest(file) && files::read_text(file).is_ok_and(|text| text.contains(TEMPLATE_ACTION))
    };
    if !files.iter().any(|file| is_template(&file)) {
        return Ok(());
    }
    let help = format!(
        "run `olmkit bundle generate --helm {}`, which renders it, or list it under `helm` in the package file",
        argument(input.display())
    );
    Err(Failure::usage(format!("`{}` is a Helm chart, not rendered manifests", input.display())).help(help))
}

/// Whether a directory is a bundle with manifests that another tool wrote, or a person.
pub(super) fn is_bundle_of_others(directory: &Path) -> bool {
    let files = || files::below(&directory.join(MANIFESTS_DIR), |_| true).unwrap_or_default();
    is_bundle(directory) && files().iter().any(|file| !files::starts_with(file, HEADER.as_bytes()))
}

/// Whether objects of Kubernetes stand in a directory outside of its bundles.
fn holds_objects(directory: &Path) -> bool {
    let is_bundle_dir = |below: &Path| BUNDLE_DIRS.iter().any(|dir| below == directory.join(dir));
    let files = files::below(directory, |below| is_bundle_dir(below) || is_bundle(below)).unwrap_or_default();
    let mut texts =
        files.iter().filter(|file| is_manifest(file)).filter_map(|file| files::read_text(file).ok());
    texts.any(|text| text.starts_with("kind:") || text.contains("\nkind:") || text.contains("\"kind\""))
}

/// Whether a directory is a bundle and nothing else, or the part of one in a directory that holds other manifests too: what is
/// in it was made, and is nobody's source.
pub(super) fn is_of_bundle(directory: &Path) -> bool {
    let is_part = |dir: &&str| {
        let above = directory.ancestors().nth(Path::new(dir).components().count());
        directory.ends_with(dir) && above.is_some_and(is_bundle)
    };
    BUNDLE_DIRS.iter().any(is_part) || is_bundle(directory) && !holds_objects(directory)
}

/// Whether a bundle is all that a directory holds: no manifest is outside of it.
fn holds_only_bundle(directory: &Path) -> bool {
    let is_bundle_dir = |below: &Path| BUNDLE_DIRS.iter().any(|dir| below == directory.join(dir));
    is_bundle(directory)
        && files::below(directory, |below| is_bundle_dir(below) || is_bundle(below))
            .is_ok_and(|files| !files.iter().any(|file| is_manifest(file)))
}

/// Whether a file in a directory of manifests is one of them, by its name.
pub(super) fn is_manifest(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json")
}
