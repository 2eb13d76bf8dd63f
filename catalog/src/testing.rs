//! What several tests of this crate need: channels written as tables.

use crate::fbc::Entry;

/// Entries from lines of `name replaces skips skipRange`, with `-` for nothing and `,` between skips; a range has `_` for
/// its spaces.
pub(crate) fn entries(table: &str) -> Vec<Entry<'_>> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(entry).collect()
}

fn entry(line: &str) -> Entry<'_> {
    let mut fields = line.split_whitespace().map(|field| if field == "-" { "" } else { field });
    let mut field = || fields.next().unwrap_or("");
    let (name, replaces, skips, range) = (field(), field(), field(), field());
    let skips = if skips.is_empty() { Vec::new() } else { skips.split(',').map(Into::into).collect() };
    Entry {
        name: name.into(),
        replaces: replaces.into(),
        skips,
        skip_range: range.replace('_', " ").into(),
        ..Entry::default()
    }
}
