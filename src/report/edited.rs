//! What an edit of a catalog has changed, or would change.

use std::io::{self, Write};

use olmkit_catalog::edit::ChangedFile;

use super::unified::{ESCAPED, unified, write_unified};
use super::{Answer, json, pretty, printable};
use crate::actions::edit::Edited;
use crate::exit::Exit;

impl Edited {
    /// A file's name below the catalog.
    fn name<'f>(&'f self, file: &'f ChangedFile) -> std::borrow::Cow<'f, str> {
        if file.path.is_empty() {
            return self.catalog.file_name().unwrap_or_default().to_string_lossy();
        }
        file.path.as_str().into()
    }

    /// A file's difference, by the name that the user can open it with.
    fn diff(&self, file: &ChangedFile) -> String {
        let catalog = self.base.as_ref().map_or(&self.catalog, |base| &base.path);
        let name = if self.is_file || file.path.is_empty() {
            catalog.display().to_string()
        } else {
            catalog.join(&file.path).display().to_string()
        };
        unified(
            name.trim_start_matches("./").trim_start_matches('/'),
            file.old.as_deref(),
            file.new.as_deref(),
        )
    }
}

impl Answer for Edited {
    fn json(&self) -> String {
        let file = |file| json::EditedFile { path: self.name(file).into_owned(), diff: self.diff(file) };
        pretty(&json::Edited {
            schema: "olmkit.edit/v1",
            changed: !self.change.files.is_empty(),
            files: self.change.files.iter().map(file).collect(),
            summary: self.change.summary.clone(),
        })
    }

    fn text(&self, out: &mut dyn Write, talk: &mut dyn Write) -> io::Result<()> {
        if !self.dry_run {
            return self.change.summary.iter().try_for_each(|line| writeln!(out, "{}", printable(line)));
        }
        let mut is_escaped = false;
        for file in &self.change.files {
            is_escaped |= write_unified(&self.diff(file), out)?;
        }
        self.change.summary.iter().try_for_each(|line| writeln!(talk, "{}", printable(line)))?;
        if is_escaped {
            writeln!(talk, "{ESCAPED}")?;
        }
        if let Some(root) =
            self.base.as_ref().and_then(|base| base.root.as_ref()).filter(|_| !self.change.files.is_empty())
        {
            writeln!(talk, "apply the diff in `{}`", printable(&root.display().to_string()))?;
        }
        match (self.change.files.is_empty(), self.must_be_unchanged) {
            (true, _) => Ok(()),
            (false, false) => writeln!(talk, "nothing was written (--dry-run)"),
            (false, true) => writeln!(talk, "nothing was written (--check)"),
        }
    }

    fn exit(&self) -> Exit {
        if self.must_be_unchanged && !self.change.files.is_empty() { Exit::Failed } else { Exit::Success }
    }
}
