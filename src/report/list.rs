//! What catalogs hold, as tables.

use std::io::{self, Write};

use olmkit_catalog::list::{BundleItem, ChannelItem, PackageItem};
use serde::Serialize;

use super::paths::short;
use super::table::Table;
use super::{Answer, json, pretty};
use crate::actions::catalog::Items;

/// A list, as a table and for programs.
#[derive(Debug)]
pub struct ListAnswer {
    json: String,
    table: Table,
}

impl ListAnswer {
    /// Takes the items over.
    pub fn of(items: &Items<'_>) -> Self {
        match items {
            Items::Packages(items) => Self::packages(items),
            Items::Channels(items) => Self::channels(items),
            Items::Bundles(items) => Self::bundles(items),
        }
    }

    fn packages(items: &[PackageItem<'_>]) -> Self {
        let row = |item: &PackageItem<'_>| {
            vec![
                item.name.to_owned(),
                item.default_channel.to_owned(),
                item.channels.join(", "),
                note(item.deprecation),
            ]
        };
        Self::table(&["PACKAGE", "DEFAULT CHANNEL", "CHANNELS", ""], items, row)
    }

    fn channels(items: &[ChannelItem<'_>]) -> Self {
        let row = |item: &ChannelItem<'_>| {
            vec![
                item.package.to_owned(),
                item.name.to_owned(),
                item.head.as_deref().map_or("-", |head| short(head, item.package)).to_owned(),
                item.entries.len().to_string(),
                note(item.deprecation),
            ]
        };
        Self::table(&["PACKAGE", "CHANNEL", "HEAD", "ENTRIES", ""], items, row)
    }

    fn bundles(items: &[BundleItem<'_>]) -> Self {
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
        Self::table(&head, items, row)
    }

    fn table<T: Serialize>(head: &[&str], items: &[T], row: impl Fn(&T) -> Vec<String>) -> Self {
        let json = pretty(&json::List { schema: "olmkit.list/v1", items });
        let mut table = Table::titled(head);
        items.iter().for_each(|item| table.row(row(item)));
        Self { json, table }
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
        self.table.print(out)
    }
}
