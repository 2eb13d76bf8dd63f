//! Gives the files of a catalog one layout: that of opm and `catalog render`, with the comments that they had.
//!
//! YAML has block style, sorted keys and no needless quotes; JSON has opm's order of fields and four spaces. What a file is stays:
//! YAML or JSON, its line breaks, the order of its documents and of every list. Numbers, booleans and nulls stay as they were
//! written, see [`spelling`].

use super::comments::{self, Comment};
use super::spelling;
use super::{Change, ChangedFile, EditError};
use crate::fbc::write::Format;
use crate::fbc::{At, Catalog};
use crate::json::{Layout, Tree};
use crate::load::CatalogFiles;
use crate::texts::TextError;
use crate::texts::documents::{cut, head, is_json};

/// Formats every file.
pub(super) fn format(catalog: &Catalog<'_>) -> Result<Change, EditError> {
    let mut blobs: Vec<(At, Tree<'_>)> = catalog.trees().collect();
    blobs.sort_by_key(|(at, _)| *at);
    let mut change = Change::default();
    for (number, file) in (0..).zip(&catalog.files) {
        let from = blobs.partition_point(|(at, _)| at.file < number);
        let to = blobs.partition_point(|(at, _)| at.file <= number);
        let old = file.source.text();
        if from == to {
            continue;
        }
        let mut notes = Vec::new();
        let new = formatted(old, &blobs[from..to], |at| {
            notes.push(format!(
                "`{}` stays as it is: it has anchors, tags, duplicate keys or values that would change",
                catalog.place(at)
            ));
        });
        let new = new.map_err(TextError::Write)?;
        let new = if old.contains("\r\n") { new.replace('\n', "\r\n") } else { new };
        if new != old {
            if !same_blobs(&new, &blobs[from..to]) {
                return Err(TextError::Documents { path: file.path.to_owned() }.into());
            }
            change.summary.push(format!("formatted `{}`", file.source.path()));
            let path = file.path.to_owned();
            change.files.push(ChangedFile { path, old: Some(old.to_owned()), new: Some(new) });
        }
        change.summary.extend(notes);
    }
    if change.files.is_empty() {
        change.summary.insert(0, "everything is formatted: nothing to change".to_owned());
    }
    Ok(change)
}

/// Whether a text has these blobs, in this order.
fn same_blobs(text: &str, blobs: &[(At, Tree<'_>)]) -> bool {
    let files = CatalogFiles::from_text("", text);
    let catalog = Catalog::parse(&files);
    let mut places: Vec<At> = catalog.places().collect();
    places.sort();
    // One by one: all of them would take many times the text.
    let same = |(at, tree): (At, Tree<'_>)| {
        let blob = places.binary_search(&at).ok().and_then(|number| blobs.get(number));
        blob.is_some_and(|(_, blob)| tree.into_json() == blob.clone().into_json())
    };
    catalog.faults.is_empty() && places.len() == blobs.len() && catalog.trees().all(same)
}

/// The text of a file with these blobs. Tells which documents it leaves as they are.
fn formatted(
    text: &str,
    blobs: &[(At, Tree<'_>)],
    mut left_alone: impl FnMut(At),
) -> Result<String, olmkit_bundle::yaml::write::WriteError> {
    if is_json(text) {
        let mut out = String::new();
        for (at, tree) in blobs {
            let old = &text[at.span.start as usize..at.span.end as usize];
            let new = tree.to_text(&Layout::OPM);
            let is_faithful = values(old) == values(&new);
            if !is_faithful {
                left_alone(*at);
            }
            out += if is_faithful { new.as_str() } else { old };
            out.push('\n');
        }
        return Ok(out);
    }
    let places: Vec<At> = blobs.iter().map(|(at, _)| *at).collect();
    let cut = cut(text, &places);
    let mut out = String::new();
    for (number, ((at, tree), part)) in blobs.iter().zip(cut.documents).enumerate() {
        out += "---\n";
        if number == 0 {
            out += &head(cut.head);
        }
        match document(part.document, tree)? {
            Some(new) => {
                out += &head(part.before);
                out += &new;
            }
            None => {
                left_alone(*at);
                out += &part.text();
            }
        }
    }
    Ok(out)
}

/// The texts, numbers and words of a JSON text as they are written, sorted, those of keys and empty ones left out.
fn values(text: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| !c.is_whitespace() && !"{}[],:".contains(c)) {
        rest = &rest[at..];
        let end = match rest.strip_prefix('"') {
            Some(inner) => {
                let mut is_escaped = false;
                let close = inner.find(|c: char| {
                    let closes = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    closes
                });
                close.map_or(rest.len(), |close| close + 2)
            }
            None => rest.find(|c: char| c.is_whitespace() || "{}[],:".contains(c)).unwrap_or(rest.len()),
        };
        let (value, behind) = rest.split_at(end);
        rest = behind;
        if !behind.trim_start().starts_with(':') && !matches!(value, "\"\"" | "null") {
            // Texts may be escaped in several ways; those that cannot be read differ from all others.
            values.push(serde_json::from_str::<String>(value).unwrap_or_else(|_| format!("={value}")));
        }
    }
    values.sort();
    values
}

/// A document anew, with its comments; none when something of it would be lost.
fn document(text: &str, tree: &Tree<'_>) -> Result<Option<String>, olmkit_bundle::yaml::write::WriteError> {
    let Some(comments) = comments::extract(text) else { return Ok(None) };
    let plain = Format::Yaml.text(tree.clone())?;
    let plain = plain.strip_prefix("---\n").unwrap_or(&plain);
    let Some(plain) = spelling::keep(text, plain) else { return Ok(None) };
    if comments.is_empty() {
        return Ok(Some(plain));
    }
    let new = comments::insert(&plain, &comments);
    Ok(new.filter(|new| {
        let sorted = |comments: &[Comment]| {
            let mut texts: Vec<_> = comments.iter().map(|comment| comment.text.clone()).collect();
            texts.sort();
            texts
        };
        comments::extract(new).is_some_and(|read| sorted(&read) == sorted(&comments))
    }))
}
