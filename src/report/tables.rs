//! What catalogs hold, as tables.

use std::io::{self, Write};

use olmkit_catalog::list::{BundleItem, ChannelItem, PackageItem};
use serde::Serialize;

use super::paths::short;
use super::{Answer, json, pretty, printable};

/// A list, as a table and for programs.
#[derive(Debug)]
pub struct ListAnswer {
    json: String,
    table: Vec<Vec<String>>,
}

impl ListAnswer {
    /// Packages.
    pub fn packages(items: &[PackageItem<'_>]) -> Self {
        let row = |item: &PackageItem<'_>| {
            vec![
                item.name.to_owned(),
                item.default_channel.to_owned(),
                item.channels.join(", "),
                note(item.deprecation),
            ]
        };
        Self::of(&["PACKAGE", "DEFAULT CHANNEL", "CHANNELS", ""], items, row)
    }

    /// Channels.
    pub fn channels(items: &[ChannelItem<'_>]) -> Self {
        let row = |item: &ChannelItem<'_>| {
            vec![
                item.package.to_owned(),
                item.name.to_owned(),
                item.head.as_deref().map_or("-", |head| short(head, item.package)).to_owned(),
                item.entries.len().to_string(),
                note(item.deprecation),
            ]
        };
        Self::of(&["PACKAGE", "CHANNEL", "HEAD", "ENTRIES", ""], items, row)
    }

    /// Bundles.
    pub fn bundles(items: &[BundleItem<'_>]) -> Self {
        let row = |item: &BundleItem<'_>| {
            let skips: Vec<_> = item.skips.iter().map(|skip| short(skip, item.package)).collect();
            vec![
                item.package.to_owned(),
                item.name.to_owned(),
                item.version.clone().unwrap_or_else(|| "-".into()),
                item.channels.join(", "),
                item.replaces.map(|old| short(old, item.package)).unwrap_or("-").to_owned(),
                if skips.is_empty() { "-".into() } else { skips.join(", ") },
                item.skip_range.unwrap_or("-").to_owned(),
                if item.image.is_empty() { "-".into() } else { item.image.to_owned() },
                note(item.deprecation),
            ]
        };
        let head =
            ["PACKAGE", "BUNDLE", "VERSION", "CHANNELS", "REPLACES", "SKIPS", "SKIP RANGE", "IMAGE", ""];
        Self::of(&head, items, row)
    }

    fn of<T: Serialize>(head: &[&str], items: &[T], row: impl Fn(&T) -> Vec<String>) -> Self {
        let json = pretty(&json::List { schema: "olmkit.list/v1", items });
        let head = head.iter().map(|word| (*word).to_owned()).collect();
        Self { json, table: std::iter::once(head).chain(items.iter().map(row)).collect() }
    }
}

fn note(deprecation: Option<&str>) -> String {
    deprecation.map_or(String::new(), |why| format!("deprecated: {}", why.lines().next().unwrap_or_default()))
}

impl Answer for ListAnswer {
    fn json(&self) -> String {
        self.json.clone()
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let cells =
            |row: &[String]| row.iter().map(|cell| printable(cell).replace(['\n', '\t'], " ")).collect();
        let rows: Vec<Vec<String>> = self.table.iter().map(|row| cells(row)).collect();
        let columns = rows.first().map_or(0, Vec::len);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            let line: Vec<_> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(out, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}
