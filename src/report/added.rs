//! What `catalog add` has done.

use std::io::{self, Write};

use olmkit_catalog::add::{AddReport, ChangedEntry};

use super::paths::short;
use super::{Answer, pretty, printable};
use crate::actions::catalog_add::Added;
use crate::shell::argument;

impl Answer for Added {
    fn json(&self) -> String {
        pretty(&self.account)
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let AddReport { package, channels, bundles, files, .. } = &self.account;
        if files.is_empty() {
            let bundles: Vec<_> =
                bundles.iter().map(|bundle| printable(short(&bundle.name, package))).collect();
            let channels: Vec<_> = channels.iter().map(|channel| printable(&channel.name)).collect();
            let exist = if bundles.len() == 1 { "exists" } else { "exist" };
            let (bundles, channels) = (bundles.join(", "), channels.join(", "));
            let package = printable(package);
            return writeln!(out, "{package} in {channels}: {bundles} already {exist}, nothing changed");
        }
        for channel in channels {
            let head = printable(short(&channel.head, package));
            writeln!(out, "{} in {}, head {head}", printable(package), printable(&channel.name))?;
            channel.entries.iter().try_for_each(|entry| writeln!(out, "  {}", line(entry, package)))?;
        }
        Ok(())
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn next(&self) -> Option<String> {
        let catalog = argument(self.catalog.display());
        let changed = !self.account.files.is_empty();
        changed.then(|| format!("run `olmkit catalog build {catalog} --to HOST/NAME:TAG`"))
    }
}

/// An entry and its edges, such as `0.3.0 replaces 0.2.1, skips 0.2.2`.
fn line(entry: &ChangedEntry, package: &str) -> String {
    let name = |name: &str| printable(short(name, package)).into_owned();
    let mut edges = Vec::new();
    edges.extend(entry.replaces.as_deref().map(|replaces| format!("replaces {}", name(replaces))));
    if !entry.skips.is_empty() {
        edges.push(format!(
            "skips {}",
            entry.skips.iter().map(|skip| name(skip)).collect::<Vec<_>>().join(" ")
        ));
    }
    edges.extend(entry.skip_range.as_deref().map(|range| format!("skips all of {}", printable(range))));
    let mark = if entry.added { "+" } else { "~" };
    format!("{mark} {} {}", name(&entry.name), edges.join(", ")).trim_end().to_owned()
}
