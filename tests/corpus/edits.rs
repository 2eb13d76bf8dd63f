//! Edits of real catalogs and templates: each result is valid, each undo gives the first bytes back, and nothing else changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::parallel::in_parallel;
use olmkit_catalog::add::Policy;
use olmkit_catalog::diff::{Kind, diff};
use olmkit_catalog::edit::{self, Change, EditError, Init, Keep, Request, Target, TextError};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::fbc::write::{Format, to_text};
use olmkit_catalog::load::CatalogFiles;
use serde_json::Value;

use crate::catalogs::rows;
use crate::support::{self, Part};

/// Versions and channels of each package that are edited: what is special about catalogs shows in the first ones.
const MOST: usize = 6;
/// Larger catalogs are only deprecated and pruned.
const LARGE: usize = 400_000;

/// Numbers are those of the edits: fewer would be a fault of the test.
pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let (catalogs, all_templates) = (corpus.to_owned(), corpus.to_owned());
    vec![
        Trial::test("catalogs::edits", move || edits(&catalogs, "opm-validate", 2500, None)),
        Trial::test("catalogs::edits_of_templates", move || templates(&all_templates, 500)),
    ]
}

/// What opm itself says of every result.
pub(crate) fn by_opm(corpus: &Path, parts: &[Part]) -> Trial {
    let (corpus, opm) = (corpus.to_owned(), opm());
    let missing = opm
        .is_none()
        .then(|| "opm is not installed, and `tests/cluster/build olm` has not built it".to_owned());
    let parts: Vec<Part> = parts.iter().cloned().chain([Part::new("opm", missing)]).collect();
    support::trial_with("catalogs::edits_by_opm", &parts, move || {
        edits(&corpus, "opm-validate", 2500, opm.as_deref())
    })
}

/// opm on `PATH`, or as the test cluster with OLM has it.
fn opm() -> Option<PathBuf> {
    support::find("opm").or_else(|| {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/build");
        let built = Command::new(build).args(["--check", "olm"]).output().ok()?;
        let directory = built.status.success().then(|| String::from_utf8(built.stdout).ok())??;
        Some(Path::new(directory.trim()).join("opm"))
    })
}

/// The same edits of catalogs that were made up: the project keeps these.
pub(crate) fn kept(answers: &Path) -> Vec<Trial> {
    let answers = answers.to_owned();
    vec![Trial::test("kept::catalogs::edits", move || edits(&answers, "opm-validate", 500, None))]
}

fn edits(corpus: &Path, answers: &str, least: usize, opm: Option<&Path>) -> Result<(), Failed> {
    let (mut made, mut refused, mut judged) = (0, 0, 0);
    // What the next catalog is merged with: another package of it, or the same with other bundles.
    let mut last: Option<CatalogFiles> = None;
    for row in rows(corpus, &format!("{answers}.jsonl"))? {
        if row["passed"] != true {
            continue;
        }
        let name = row["catalog"].as_str().unwrap_or_default();
        let files = CatalogFiles::load(&corpus.join(name))?;
        let mut tried = Tried::new(name, &files);
        tried.keeps_results = opm.is_some();
        tried.all()?;
        tried.merges(last.as_ref())?;
        (made, refused) = (made + tried.made, refused + tried.refused);
        if let Some(opm) = opm {
            judged += tried.judge(opm)?;
        }
        last = Some(files);
    }
    eprintln!("{made} edits made, {refused} refused, {judged} results validated by opm");
    if made >= least { Ok(()) } else { Err(format!("{made} edits made, expected {least}").into()) }
}

/// Every edit of every template.
fn templates(corpus: &Path, least: usize) -> Result<(), Failed> {
    let (mut made, mut refused, mut seen) = (0, 0, 0);
    let mut packages: Vec<PathBuf> = fs::read_dir(corpus.join("catalogs"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, Failed>>()?;
    packages.sort();
    for directory in packages.iter().map(|path| path.join("templates")).filter(|path| path.is_dir()) {
        for file in fs::read_dir(&directory)? {
            let path = file?.path();
            let package = directory.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            let files = CatalogFiles::load(&path)?;
            let name = path.display().to_string();
            let mut tried = Tried::new(&name, &files);
            tried.template(&package)?;
            (made, refused, seen) = (made + tried.made, refused + tried.refused, seen + 1);
        }
    }
    eprintln!("{made} edits of {seen} templates made, {refused} refused");
    if made >= least && seen >= 20 { Ok(()) } else { Err(format!("{made} edits of {seen} templates").into()) }
}

/// A catalog that edits are tried on.
struct Tried<'t> {
    name: &'t str,
    files: &'t CatalogFiles,
    made: usize,
    refused: usize,
    keeps_results: bool,
    /// What came of edits, and of which.
    results: Vec<(String, CatalogFiles)>,
}

impl<'t> Tried<'t> {
    fn new(name: &'t str, files: &'t CatalogFiles) -> Self {
        Self { name, files, made: 0, refused: 0, keeps_results: false, results: Vec::new() }
    }
}

impl Tried<'_> {
    /// Has opm validate every result that is not like another.
    fn judge(&self, opm: &Path) -> Result<usize, Failed> {
        let verdict = |(request, files): &(String, CatalogFiles)| -> Result<(), String> {
            let fail = |error: std::io::Error| format!("{}: {request}: {error}", self.name);
            let directory = tempfile::tempdir().map_err(fail)?;
            for file in &files.files {
                let name = if file.path.is_empty() { "catalog.yaml" } else { file.path.as_str() };
                let path = directory.path().join(name);
                fs::create_dir_all(path.parent().unwrap_or(directory.path())).map_err(fail)?;
                fs::write(path, file.content.text().unwrap_or_default()).map_err(fail)?;
            }
            let output = Command::new(opm).arg("validate").arg(directory.path()).output().map_err(fail)?;
            let said = String::from_utf8_lossy(&output.stderr);
            if output.status.success() { Ok(()) } else { Err(format!("{}: {request}: {said}", self.name)) }
        };
        let verdicts = in_parallel(&self.results, verdict);
        let count = verdicts.len();
        verdicts.into_iter().collect::<Result<Vec<()>, String>>()?;
        Ok(count)
    }

    /// The edits of a template, of which only some mean something in each kind.
    fn template(&mut self, package: &str) -> Result<(), Failed> {
        let files = self.files;
        let catalog = Catalog::parse(files);
        let template: Value = serde_json::from_str(&to_text(&catalog, Format::Json)?)?;
        let name = || package.to_owned();
        let (channels, versions) = contents(&template);
        for version in versions.iter().take(MOST) {
            let target = || Target::Version(version.clone());
            let there = Request::Deprecate { package: name(), target: target(), message: "a: b".into() };
            self.there_and_back(&there, &Request::Undeprecate { package: name(), target: target() })?;
            let remove = |channel: Option<&String>| Request::Remove {
                package: name(),
                channel: channel.cloned(),
                version: Some(version.clone()),
                keep_path: false,
                strand: true,
            };
            self.edit(&remove(None))?;
            for channel in channels.iter().take(MOST) {
                self.edit(&remove(Some(channel)))?;
                let there = Request::Promote {
                    package: name(),
                    version: version.clone(),
                    to: channel.parse()?,
                    policy: None,
                };
                self.there_and_back(&there, &remove(Some(channel)))?;
            }
            if let Ok(least) =
                version.rsplit_once(".v").map_or(version.as_str(), |(_, version)| version).parse()
            {
                self.edit(&Request::Prune(Keep {
                    packages: vec![name()],
                    min_version: Some(least),
                    ..Keep::default()
                }))?;
            }
        }
        for channel in channels.iter().take(MOST) {
            let keep = Keep { packages: vec![name()], channels: vec![channel.clone()], ..Keep::default() };
            self.edit(&Request::Prune(keep))?;
            let whole = |channel: &str| Request::Remove {
                package: name(),
                channel: Some(channel.to_owned()),
                version: None,
                keep_path: false,
                strand: true,
            };
            self.edit(&whole(channel))?;
            let rename = |from: &str, to: &str| -> Result<Request, Failed> {
                Ok(Request::RenameChannel { package: name(), channel: from.into(), to: to.parse()? })
            };
            self.there_and_back(&rename(channel, "of-a-test")?, &rename("of-a-test", channel)?)?;
            self.edit(&Request::SetDefault { package: name(), channel: channel.clone() })?;
        }
        for target in [Target::Package].into_iter().chain(channels.first().cloned().map(Target::Channel)) {
            let there =
                Request::Deprecate { package: name(), target: target.clone(), message: "a: b".into() };
            self.there_and_back(&there, &Request::Undeprecate { package: name(), target })?;
        }
        self.edit(&Request::Prune(Keep { packages: vec![name()], heads_only: true, ..Keep::default() }))?;
        self.edit(&Request::Format)?;
        Ok(())
    }

    fn all(&mut self) -> Result<(), Failed> {
        let files = self.files;
        let catalog = Catalog::parse(files);
        let is_large =
            files.files.iter().filter_map(|file| file.content.text()).map(str::len).sum::<usize>() > LARGE;
        for request in [Request::Format, Request::Migrate, Request::Split] {
            self.edit(&request)?;
        }
        for package in catalog.packages.iter().take(if is_large { 1 } else { usize::MAX }) {
            let name = || package.name.to_string();
            let channels: Vec<String> = catalog
                .channels
                .iter()
                .filter(|channel| channel.package == package.name)
                .map(|channel| channel.name.to_string())
                .collect();
            let bundles: Vec<String> = catalog
                .bundles
                .iter()
                .filter(|bundle| bundle.package == package.name)
                .map(|bundle| bundle.name.to_string())
                .take(MOST)
                .collect();
            let mut targets = vec![Target::Package];
            targets.extend(channels.first().cloned().map(Target::Channel));
            targets.extend(bundles.first().cloned().map(Target::Version));
            for target in targets {
                let there =
                    Request::Deprecate { package: name(), target: target.clone(), message: "a: b".into() };
                let back = Request::Undeprecate { package: name(), target };
                self.there_and_back(&there, &back)?;
            }
            let described = Init {
                package: name(),
                default_channel: package.default_channel.parse()?,
                description: Some("# Of a test\n\nTwo: lines.\n".into()),
                icon: None,
                format: Format::Yaml,
            };
            self.edit(&Request::Init(described))?;
            let prune = Keep { packages: vec![name()], with_dependencies: true, ..Keep::default() };
            self.edit(&Request::Prune(prune))?;
            let heads =
                Keep { packages: vec![name()], heads_only: true, with_dependencies: true, ..Keep::default() };
            self.edit(&Request::Prune(heads))?;
            if is_large {
                continue;
            }
            for bundle in &bundles {
                let remove = |channel: Option<String>, keep_path| Request::Remove {
                    package: name(),
                    channel,
                    version: Some(bundle.clone()),
                    keep_path,
                    strand: true,
                };
                self.edit(&remove(None, false))?;
                self.edit(&remove(None, true))?;
                for channel in channels.iter().take(MOST) {
                    let there = Request::Promote {
                        package: name(),
                        version: bundle.clone(),
                        to: channel.parse()?,
                        policy: None,
                    };
                    if self.edit(&there)?.is_some_and(|change| !change.files.is_empty()) {
                        self.there_and_back(&there, &remove(Some(channel.clone()), false))?;
                    }
                }
            }
            for (bundle, policy) in
                bundles.iter().flat_map(|bundle| Policy::ALL.map(|policy| (bundle, policy)))
            {
                for to in channels.iter().take(1).map(String::as_str).chain(["of-a-test"]) {
                    let (version, to) = (bundle.clone(), to.parse()?);
                    self.edit(&Request::Promote { package: name(), version, to, policy: Some(policy) })?;
                }
            }
            for channel in channels.iter().take(MOST) {
                let keep =
                    Keep { packages: vec![name()], channels: vec![channel.clone()], ..Keep::default() };
                self.edit(&Request::Prune(keep))?;
                self.edit(&Request::Remove {
                    package: name(),
                    channel: Some(channel.clone()),
                    version: None,
                    keep_path: false,
                    strand: true,
                })?;
                let rename = |from: &str, to: &str| -> Result<Request, Failed> {
                    Ok(Request::RenameChannel { package: name(), channel: from.into(), to: to.parse()? })
                };
                self.there_and_back(&rename(channel, "of-a-test")?, &rename("of-a-test", channel)?)?;
                let default =
                    |channel: &str| Request::SetDefault { package: name(), channel: channel.into() };
                self.there_and_back(&default(channel), &default(&package.default_channel))?;
            }
            self.edit(&Request::Remove {
                package: name(),
                channel: None,
                version: None,
                keep_path: false,
                strand: true,
            })?;
        }
        Ok(())
    }

    /// Makes an edit, whose result has been validated. None when it is refused, which must have a reason.
    fn edit(&mut self, request: &Request) -> Result<Option<Change>, Failed> {
        let change = match edit::edit(self.files, request) {
            Ok(change) => change,
            Err(error)
                if matches!(
                    error,
                    EditError::Text(TextError::Document { .. } | TextError::Documents { .. })
                        | EditError::Unreadable { .. }
                        | EditError::Invalid { .. }
                ) =>
            {
                return Err(format!("{}: {request:?}: {error}", self.name).into());
            }
            Err(_) => {
                self.refused += 1;
                return Ok(None);
            }
        };
        self.made += 1;
        let after = edit::changed(self.files, &change.files);
        let again =
            edit::edit(&after, request).map_err(|error| format!("{}: {request:?}: {error}", self.name))?;
        if !again.files.is_empty() {
            return Err(format!("{}: {request:?} changes something again", self.name).into());
        }
        if let Request::Format | Request::Split = request {
            self.same_blobs(request, &after)?;
        }
        if self.keeps_results && !change.files.is_empty() {
            self.results.push((format!("{request:?}"), after.clone()));
        }
        if let Some(package) = request.package() {
            let (before, after) = (Catalog::parse(self.files), Catalog::parse(&after));
            let other = diff(&before, &after).packages.into_iter().find(|found| found.name != package);
            if let Some(other) = other {
                return Err(format!("{}: {request:?} changes `{}`", self.name, other.name).into());
            }
        }
        Ok(Some(change))
    }

    /// Merges of the catalog: with itself, into nothing, and with another one.
    fn merges(&mut self, other: Option<&CatalogFiles>) -> Result<(), Failed> {
        let files = self.files;
        let fail = |what: &str| Failed::from(format!("{}: merge {what}", self.name));
        let itself = edit::merge(files, std::slice::from_ref(files))?;
        if !itself.files.is_empty() {
            return Err(fail("with itself changes something"));
        }
        let empty = CatalogFiles { name: "new".into(), files: Vec::new() };
        let whole = edit::changed(&empty, &edit::merge(&empty, std::slice::from_ref(files))?.files);
        let texts = |files: &CatalogFiles| -> BTreeSet<String> {
            files.files.iter().filter_map(|file| Some(file.content.text()?.to_owned())).collect()
        };
        if texts(&whole) != texts(files) {
            return Err(fail("into nothing writes other texts"));
        }
        self.made += 2;
        let Some(other) = other else { return Ok(()) };
        let others = std::slice::from_ref(other);
        let change = match edit::merge(files, others) {
            Ok(change) => change,
            Err(EditError::Conflicts { .. } | EditError::Invalid { .. } | EditError::Stranded { .. }) => {
                self.refused += 1;
                return Ok(());
            }
            Err(error) => return Err(format!("{}: merge with `{}`: {error}", self.name, other.name).into()),
        };
        self.made += 1;
        let after = edit::changed(files, &change.files);
        if !edit::merge(&after, others)?.files.is_empty() {
            return Err(fail("changes something again"));
        }
        let (parsed, old, new) = (Catalog::parse(&after), Catalog::parse(files), Catalog::parse(other));
        let (from_old, from_new) = (diff(&old, &parsed), diff(&new, &parsed));
        let mut packages = from_old.packages.iter().chain(&from_new.packages);
        // Nothing of either is lost: a package of one is that of the result, or has got more from the other.
        if packages.any(|found| {
            !found.paths_lost.is_empty() || found.bundles.iter().any(|bundle| bundle.change != Kind::Added)
        }) {
            return Err(fail("loses something"));
        }
        // The files of the first stay as they are, but for what is added at their ends.
        let is_kept = |file: &edit::ChangedFile| {
            let (old, new) =
                (file.old.as_deref().unwrap_or_default(), file.new.as_deref().unwrap_or_default());
            new.starts_with(old.trim_end())
        };
        if !change.files.iter().all(is_kept) {
            return Err(fail("changes what is there"));
        }
        if self.keeps_results && !change.files.is_empty() {
            self.results.push((format!("merge with {}", other.name), after));
        }
        Ok(())
    }

    /// Refuses an edit after which a catalog has other blobs than before.
    fn same_blobs(&self, request: &Request, after: &CatalogFiles) -> Result<(), Failed> {
        let values = |files: &CatalogFiles| -> Result<Vec<Value>, Failed> {
            let text = to_text(&Catalog::parse(files), Format::Json)?;
            let stream = serde_json::Deserializer::from_str(&text).into_iter();
            Ok(stream.collect::<Result<_, _>>()?)
        };
        match values(self.files)? == values(after)? {
            true => Ok(()),
            false => Err(format!("{}: {request:?} changes the meaning", self.name).into()),
        }
    }

    /// Makes an edit and its undo, which must give the first bytes back.
    fn there_and_back(&mut self, there: &Request, back: &Request) -> Result<(), Failed> {
        // What the undo would change already cannot be told from what it undoes.
        let is_done = edit::edit(self.files, back).is_ok_and(|change| !change.files.is_empty());
        let Some(change) = self.edit(there)? else { return Ok(()) };
        if is_done || change.files.is_empty() {
            return Ok(());
        }
        let after = edit::changed(self.files, &change.files);
        let undo = edit::edit(&after, back).map_err(|error| format!("{}: {back:?}: {error}", self.name))?;
        let undone = edit::changed(&after, &undo.files);
        let texts = |files: &CatalogFiles| -> Vec<(String, Option<String>)> {
            let text = |file: &olmkit_catalog::load::CatalogFile| file.content.text().map(str::to_owned);
            files.files.iter().map(|file| (file.path.clone(), text(file))).collect()
        };
        if texts(&undone) == texts(self.files) {
            return Ok(());
        }
        Err(format!("{}: {there:?}, then {back:?}, is not what it was", self.name).into())
    }
}

/// The channels and the bundles or versions of a template.
fn contents(template: &Value) -> (Vec<String>, Vec<String>) {
    let of = |value: &Value, wanted: &str| -> Value {
        let map = value.as_object();
        let found = map.and_then(|map| map.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted)));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let list = |value: Value| value.as_array().cloned().unwrap_or_default();
    let (mut channels, mut versions) = (Vec::new(), BTreeSet::new());
    for entry in list(of(template, "entries")).iter().filter(|entry| entry["schema"] == "olm.channel") {
        channels.extend(entry["name"].as_str().map(str::to_owned));
        let names = list(entry["entries"].clone());
        versions.extend(names.iter().filter_map(|entry| Some(entry["name"].as_str()?.to_owned())));
    }
    let is_semver = of(template, "schema") == "olm.semver";
    for maturity in ["candidate", "fast", "stable"].into_iter().filter(|_| is_semver) {
        channels.push(maturity.to_owned());
        for bundle in list(of(&of(template, maturity), "bundles")) {
            let image = of(&bundle, "image");
            let tag =
                image.as_str().and_then(|image| Some(image.rsplit_once(':')?.1.trim_start_matches('v')));
            versions.extend(tag.map(str::to_owned));
        }
    }
    (channels, versions.into_iter().collect())
}
