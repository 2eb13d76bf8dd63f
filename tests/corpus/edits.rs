//! Edits of real catalogs: each result is valid, each undo gives the first bytes back, and nothing else changes.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use olmkit_catalog::diff::diff;
use olmkit_catalog::edit::{self, Change, EditError, Keep, Request, Target, TextError};
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::fbc::write::{Format, to_text};
use olmkit_catalog::load::CatalogFiles;

use crate::catalogs::rows;

/// Versions and channels of each package that are edited: what is special about catalogs shows in the first ones.
const MOST: usize = 6;
/// Larger catalogs are only deprecated and pruned.
const LARGE: usize = 400_000;

/// Numbers are those of the edits: fewer would be a fault of the test.
pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let corpus = corpus.to_owned();
    vec![Trial::test("catalogs::edits", move || edits(&corpus, "opm-validate", 2000))]
}

/// The same edits of catalogs that were made up: the project keeps these.
pub(crate) fn kept(answers: &Path) -> Vec<Trial> {
    let answers = answers.to_owned();
    vec![Trial::test("kept::catalogs::edits", move || edits(&answers, "opm-validate", 500))]
}

fn edits(corpus: &Path, answers: &str, least: usize) -> Result<(), Failed> {
    let (mut made, mut refused) = (0, 0);
    for row in rows(corpus, &format!("{answers}.jsonl"))? {
        if row["passed"] != true {
            continue;
        }
        let name = row["catalog"].as_str().unwrap_or_default();
        let files = CatalogFiles::load(&corpus.join(name))?;
        let mut tried = Tried { name, files: &files, made: 0, refused: 0 };
        tried.all()?;
        (made, refused) = (made + tried.made, refused + tried.refused);
    }
    eprintln!("{made} edits made, {refused} refused");
    if made >= least { Ok(()) } else { Err(format!("{made} edits made, expected {least}").into()) }
}

/// A catalog that edits are tried on.
struct Tried<'t> {
    name: &'t str,
    files: &'t CatalogFiles,
    made: usize,
    refused: usize,
}

impl Tried<'_> {
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
            for channel in channels.iter().take(MOST) {
                self.edit(&Request::Remove {
                    package: name(),
                    channel: Some(channel.clone()),
                    version: None,
                    keep_path: false,
                })?;
                let rename = |from: &str, to: &str| -> Result<Request, Failed> {
                    Ok(Request::RenameChannel { package: name(), channel: from.into(), to: to.parse()? })
                };
                self.there_and_back(&rename(channel, "of-a-test")?, &rename("of-a-test", channel)?)?;
                let default =
                    |channel: &str| Request::SetDefault { package: name(), channel: channel.into() };
                self.there_and_back(&default(channel), &default(&package.default_channel))?;
            }
            self.edit(&Request::Remove { package: name(), channel: None, version: None, keep_path: false })?;
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
        if let Some(package) = request.package() {
            let (before, after) = (Catalog::parse(self.files), Catalog::parse(&after));
            let other = diff(&before, &after).packages.into_iter().find(|found| found.name != package);
            if let Some(other) = other {
                return Err(format!("{}: {request:?} changes `{}`", self.name, other.name).into());
            }
        }
        Ok(Some(change))
    }

    /// Refuses an edit after which a catalog has other blobs than before.
    fn same_blobs(&self, request: &Request, after: &CatalogFiles) -> Result<(), Failed> {
        let texts = |files: &CatalogFiles| to_text(&Catalog::parse(files), Format::Json);
        match texts(self.files)? == texts(after)? {
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
