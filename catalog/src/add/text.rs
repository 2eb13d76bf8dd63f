//! A plan to the texts of files: edits where blobs stand, documents behind the others, new files for new packages.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::account::{Account, FileChange};
use super::edit::{Editor, Edits};
use super::{AddError, Change, ChangedFile, ChannelPlan, Plan};
use crate::fbc::write::Format;
use crate::fbc::{At, Catalog, Channel, Entry, Package};
use crate::json::{Layout, Tree};
use crate::load::CatalogFiles;

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
    let mut files =
        Files { catalog: plan.index.catalog, format, edits: BTreeMap::new(), more: BTreeMap::new() };
    let home = files.home(plan);
    let package = plan.blobs();
    match (&plan.new_package, &plan.new_default_channel, package.and_then(|package| package.blobs.first())) {
        (Some(new), ..) => files.append(&home, new.tree()),
        (None, Some(channel), Some(blob)) => {
            let mut new = (*blob).clone();
            new.default_channel.value = channel.as_str().into();
            files
                .edit(blob.at, &new.to_json(), |editor| editor.set(&[], "defaultChannel", &json!(channel)))?;
        }
        _ => {}
    }
    let last_channel = package.and_then(|package| package.channels.last()).map(|channel| channel.blob.at);
    let channels = files.target(last_channel, &home);
    for channel in &plan.channels {
        let Some(blob) = channel.blob else { continue };
        let new = Channel { entries: channel.entries.clone(), ..blob.clone() };
        files.edit(blob.at, &new.to_json(), |editor| edit_entries(editor, blob, channel))?;
    }
    for channel in &new_channels {
        files.append(&channels, channel.tree());
    }
    let last_bundle = package.and_then(|package| package.bundles.last()).map(|bundle| bundle.blob.at);
    let bundles = files.target(last_bundle, &home);
    for bundle in &plan.new {
        files.append(&bundles, bundle.blob.tree());
    }
    let changed = files.texts()?;
    let account =
        changed.iter().map(|file| FileChange { path: file.path.clone(), added: file.created }).collect();
    Ok(Change { account: Account::of(plan, account), files: changed })
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

/// The edits that make a channel's document what it is going to be.
fn edit_entries(editor: &mut Editor<'_>, blob: &Channel<'_>, channel: &ChannelPlan<'_, '_>) -> Option<()> {
    // How many of the entries before a new one are old: that is where it goes in the document as it is.
    let mut new_before = 0;
    for (at, entry, added) in channel.changes() {
        if added {
            editor.insert(&["entries".into()], at - new_before, &entry.tree())?;
            new_before += 1;
            continue;
        }
        let (number, old) = blob.entries.iter().enumerate().find(|(_, old)| old.name == entry.name)?;
        let path = ["entries".into(), number.into()];
        if old.replaces != entry.replaces {
            editor.set(&path, "replaces", &json!(entry.replaces.as_str()))?;
        }
        if old.skip_range != entry.skip_range {
            editor.set(&path, "skipRange", &json!(entry.skip_range.as_str()))?;
        }
        if old.skips.is_empty() && !entry.skips.is_empty() {
            let skips: Vec<&str> = entry.skips.iter().map(|skip| skip.as_str()).collect();
            editor.set(&path, "skips", &json!(skips))?;
            continue;
        }
        let new = entry.skips.iter().enumerate().filter(|(_, skip)| !old.skips.contains(skip));
        for (before, (at, skip)) in new.enumerate() {
            editor.insert(&[path[0], path[1], "skips".into()], at - before, &skip.as_str().into())?;
        }
    }
    Some(())
}

/// The files of a catalog with what is to be changed in them and written behind them.
struct Files<'c, 'a, 'p> {
    catalog: &'c Catalog<'a>,
    format: Format,
    edits: BTreeMap<u32, Edits>,
    /// By path.
    more: BTreeMap<String, Vec<Tree<'p>>>,
}

impl<'p> Files<'_, '_, 'p> {
    /// The file that a package's blobs go to: that of its `olm.package`, or a file of its own, as opm lays catalogs out.
    fn home(&self, plan: &Plan<'_, '_, '_>) -> String {
        let blob = plan.blobs().and_then(|package| package.blobs.first()).map(|blob| blob.at);
        let single = self.catalog.files.iter().find(|file| file.path.is_empty()).map(|_| String::new());
        let own = || format!("{}/catalog{}", plan.package, self.format.extension());
        self.path(blob).or(single).unwrap_or_else(own)
    }

    /// The file that more blobs of a kind go to: where the last of them stands.
    fn target(&self, last: Option<At>, home: &str) -> String {
        self.path(last).unwrap_or_else(|| home.to_owned())
    }

    fn path(&self, at: Option<At>) -> Option<String> {
        Some(self.catalog.files.get(at?.file as usize)?.path.to_owned())
    }

    fn append(&mut self, path: &str, tree: Tree<'p>) {
        self.more.entry(path.to_owned()).or_default().push(tree);
    }

    /// Edits a blob's document in place. It is read again, and has to be what it should: a change to a value that has
    /// aliases is refused, rather than the document written anew without its comments.
    fn edit(
        &mut self,
        at: At,
        wanted: &Json,
        edit: impl Fn(&mut Editor<'_>) -> Option<()>,
    ) -> Result<(), AddError> {
        let Some(file) = self.catalog.files.get(at.file as usize) else { return Ok(()) };
        let text = file.source.text();
        let (from, to) = document(text, at);
        let part = &text[from..to];
        let edited = Editor::open(part).and_then(|mut editor| {
            edit(&mut editor)?;
            reads_as(&editor.edits.apply(part), wanted).then_some(editor.edits)
        });
        let Some(edits) = edited else {
            return Err(AddError::Edit { place: Box::new(self.catalog.place(at)) });
        };
        self.edits.entry(at.file).or_default().extend(edits, from);
        Ok(())
    }

    /// The files that are new or different.
    fn texts(self) -> Result<Vec<ChangedFile>, AddError> {
        let mut texts: BTreeMap<String, ChangedFile> = BTreeMap::new();
        for (number, edits) in &self.edits {
            let Some(file) = self.catalog.files.get(*number as usize) else { continue };
            let (path, text) = (file.path.to_owned(), edits.apply(file.source.text()));
            texts.insert(path.clone(), ChangedFile { path, text, created: false });
        }
        for (path, trees) in self.more {
            let there = self.catalog.files.iter().find(|file| file.path == path);
            let file = texts.entry(path.clone()).or_insert_with(|| ChangedFile {
                path,
                text: there.map(|file| file.source.text().to_owned()).unwrap_or_default(),
                created: there.is_none(),
            });
            let wanted = blobs_in(self.catalog, &file.path) + trees.len();
            append(&mut file.text, trees, self.format).map_err(AddError::Write)?;
            let files = CatalogFiles::from_text(file.path.as_str(), file.text.as_str());
            let read = Catalog::parse(&files);
            if !read.faults.is_empty() || blobs_in(&read, "") != wanted {
                return Err(AddError::Append { path: file.path.clone() });
            }
        }
        Ok(texts.into_values().collect())
    }
}

/// The bytes of the document that a blob stands in. In block style that is from its first line, so that its indentation is
/// seen, up to the next document, since an alias at the end does not tell where it stands.
fn document(text: &str, at: At) -> (usize, usize) {
    let (start, end) = (at.span.start as usize, at.span.end as usize);
    if text[start..].starts_with('{') {
        return (start, end);
    }
    let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[start..].find("\n---").map_or(text.len(), |newline| start + newline + 1);
    (line, end)
}

/// How many blobs a catalog has in one of its files.
fn blobs_in(catalog: &Catalog<'_>, path: &str) -> usize {
    let packages = catalog.packages.iter().map(|blob| blob.at);
    let channels = catalog.channels.iter().map(|blob| blob.at);
    let bundles = catalog.bundles.iter().map(|blob| blob.at);
    let deprecations = catalog.deprecations.iter().map(|blob| blob.at);
    let all = packages
        .chain(channels)
        .chain(bundles)
        .chain(deprecations)
        .chain(catalog.others.iter().map(|blob| blob.at));
    all.filter(|at| catalog.files.get(at.file as usize).is_some_and(|file| file.path == path)).count()
}

/// Whether a text is one blob, and this one.
fn reads_as(text: &str, wanted: &Json) -> bool {
    let files = CatalogFiles::from_text("", text);
    let catalog = Catalog::parse(&files);
    let read = match (&catalog.channels[..], &catalog.packages[..]) {
        ([channel], []) => channel.to_json(),
        ([], [package]) => Package::to_json(package),
        _ => return false,
    };
    catalog.faults.is_empty() && read == *wanted
}

/// Writes blobs behind a text, in the way the text is written.
fn append(
    text: &mut String,
    trees: Vec<Tree<'_>>,
    format: Format,
) -> Result<(), olmkit_bundle::yaml::write::WriteError> {
    let crlf = text.contains("\r\n");
    let newline = if crlf { "\r\n" } else { "\n" };
    if !text.is_empty() && !text.ends_with('\n') {
        *text += newline;
    }
    let layout = match text.trim_start().starts_with('{') && !text.contains("\n---") {
        true => Some(layout_of(text)),
        false if text.is_empty() && format == Format::Json => Some(Layout::OPM),
        false => None,
    };
    for tree in trees {
        let blob = match &layout {
            Some(layout) => tree.to_text(layout) + "\n",
            None => Format::Yaml.text(tree)?,
        };
        *text += &if crlf { blob.replace('\n', newline) } else { blob };
    }
    Ok(())
}

/// The white space that JSON has: a line for each blob, or lines for all, as the first of them.
fn layout_of(text: &str) -> Layout<'static> {
    let text = text.trim_start();
    match text.as_bytes().get(1) {
        Some(b'\n' | b'\r') => {
            match text.find('"').map(|quote| quote - text[..quote].rfind('\n').map_or(0, |at| at + 1)) {
                Some(2) => Layout::Lines { unit: "  ", margin: "" },
                _ => Layout::OPM,
            }
        }
        _ if text.find("\":").is_some_and(|at| text[at + 2..].starts_with(' ')) => {
            Layout::Line { space: " " }
        }
        _ => Layout::COMPACT,
    }
}
