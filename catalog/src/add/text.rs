//! A plan to the texts of files: edits where blobs stand, documents behind the others, new files for new packages.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::finding::{Finding, Level};
use olmkit_bundle::load::Content;

use super::plan::{ChannelPlan, Plan};
use super::report::{AddReport, FileChange};
use super::{AddError, Change, ChangedFile};
use crate::fbc::write::Format;
use crate::fbc::{Catalog, Channel, Entry};
use crate::load::{CatalogFile, CatalogFiles};
use crate::texts::{self, Texts};
use crate::validate;

/// The change that a plan comes to.
pub(super) fn change(plan: &Plan<'_, '_, '_>, format: Format) -> Result<Change, AddError> {
    let new_channels: Vec<Channel<'_>> = plan
        .channels
        .iter()
        .filter(|channel| channel.blob.is_none())
        .map(|channel| Channel {
            name: channel.name.clone().into(),
            package: plan.package.clone().into(),
            entries: channel.entries.clone(),
            ..Channel::default()
        })
        .collect();
    let mut files = Texts::new(plan.index.catalog, format);
    let package = plan.blobs();
    let home =
        files.home(&plan.package, package.and_then(|package| package.blobs.first()).map(|blob| blob.at));
    match (&plan.new_package, &plan.new_default_channel, package.and_then(|package| package.blobs.first())) {
        (Some(new), ..) => files.append(&home, new.tree()),
        (None, Some(channel), Some(blob)) => {
            let mut new = (*blob).clone();
            new.default_channel.value = channel.as_str().into();
            files.set(blob.at, &blob.to_json(), &new.to_json())?;
        }
        _ => {}
    }
    let last_channel = package.and_then(|package| package.channels.last()).map(|channel| channel.blob.at);
    let channels = files.target(last_channel, &home);
    for channel in &plan.channels {
        let Some(blob) = channel.blob.filter(|_| channel.changes().next().is_some()) else { continue };
        let new = Channel { entries: channel.entries.clone(), ..blob.clone() };
        files.set(blob.at, &blob.to_json(), &new.to_json())?;
    }
    for channel in &new_channels {
        files.append(&channels, channel.tree());
    }
    let last_bundle = package.and_then(|package| package.bundles.last()).map(|bundle| bundle.blob.at);
    let bundles = files.target(last_bundle, &home);
    for bundle in &plan.new {
        files.append(&bundles, bundle.blob.tree());
    }
    let created = |file: texts::ChangedFile| {
        Some(ChangedFile { path: file.path, text: file.new?, created: file.old.is_none() })
    };
    let changed: Vec<_> = files.finish()?.into_iter().filter_map(created).collect();
    let report =
        changed.iter().map(|file| FileChange { path: file.path.clone(), added: file.created }).collect();
    check(plan, &changed)?;
    Ok(Change { report: AddReport::of(plan, report), files: changed, notes: plan.differences() })
}

/// Refuses what opm would refuse of the files afterwards, and did not before. Only files with blobs of the package are looked at.
fn check(plan: &Plan<'_, '_, '_>, changed: &[ChangedFile]) -> Result<(), AddError> {
    let catalog = plan.index.catalog;
    let mut paths: BTreeSet<&str> = changed.iter().map(|file| file.path.as_str()).collect();
    if let Some(package) = plan.blobs() {
        let blobs = package.blobs.iter().map(|blob| blob.at);
        let blobs = blobs.chain(package.channels.iter().map(|channel| channel.blob.at));
        let blobs = blobs.chain(package.bundles.iter().map(|bundle| bundle.blob.at));
        paths.extend(blobs.filter_map(|at| Some(catalog.files.get(at.file as usize)?.path)));
    }
    let errors = |changed: &[ChangedFile]| {
        let old = catalog.files.iter().filter(|file| paths.contains(file.path));
        let mut texts: BTreeMap<_, _> = old.map(|file| (file.path, file.source.text())).collect();
        texts.extend(changed.iter().map(|file| (file.path.as_str(), file.text.as_str())));
        let file = |(path, text): (&str, &str)| CatalogFile {
            path: path.into(),
            content: Content::Text(text.into()),
        };
        let files = CatalogFiles { name: catalog.name.into(), files: texts.into_iter().map(file).collect() };
        let mut findings = validate::validate(&Catalog::parse(&files));
        findings.retain(|finding| finding.level == Level::Error);
        findings
    };
    let mut findings = errors(changed);
    if !findings.is_empty() {
        let known = errors(&[]);
        let is_same = |a: &Finding, b: &Finding| a.code.name == b.code.name && a.message == b.message;
        findings.retain(|new| !known.iter().any(|old| is_same(old, new)));
    }
    if findings.is_empty() { Ok(()) } else { Err(AddError::Invalid { findings }) }
}

impl<'c, 'a> ChannelPlan<'c, 'a> {
    /// The entries that are new or have new edges: where they stand now, and whether they are new.
    pub(super) fn changes(&self) -> impl Iterator<Item = (usize, &Entry<'a>, bool)> {
        let old: BTreeMap<&str, &Entry<'_>> = self
            .blob
            .into_iter()
            .flat_map(|blob| &blob.entries)
            .map(|entry| (entry.name.as_str(), entry))
            .collect();
        self.entries.iter().enumerate().filter_map(move |(at, entry)| match old.get(entry.name.as_str()) {
            None => Some((at, entry, true)),
            Some(old) => (old.replaces != entry.replaces
                || old.skips != entry.skips
                || old.skip_range != entry.skip_range)
                .then_some((at, entry, false)),
        })
    }
}
