//! What several tests of this crate need: channels written as tables, differences of texts.

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

/// The lines that differ, with what they had been.
pub(crate) fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut lengths = vec![vec![0; new.len() + 1]; old.len() + 1];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            lengths[a][b] = match old[a] == new[b] {
                true => lengths[a + 1][b + 1] + 1,
                false => lengths[a + 1][b].max(lengths[a][b + 1]),
            };
        }
    }
    let (mut a, mut b, mut out) = (0, 0, Vec::new());
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            out.push(format!(" {}", old[a]));
            (a, b) = (a + 1, b + 1);
        } else if a < old.len() && (b == new.len() || lengths[a + 1][b] >= lengths[a][b + 1]) {
            out.push(format!("-{}", old[a]));
            a += 1;
        } else {
            out.push(format!("+{}", new[b]));
            b += 1;
        }
    }
    // What stays is shown beside what changes only.
    let near = |at: usize| {
        out[at.saturating_sub(1)..(at + 2).min(out.len())].iter().any(|line| !line.starts_with(' '))
    };
    (0..out.len()).filter(|at| near(*at)).map(|at| out[at].as_str()).collect::<Vec<_>>().join("\n")
}
