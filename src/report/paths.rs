//! Each version's way to the head of its channel.

use std::io::{self, Write};

use olmkit_catalog::path::{UpgradePath, UpgradePaths};

use super::{Answer, pretty, printable};
use crate::exit::Exit;

impl Answer for UpgradePaths {
    fn json(&self) -> String {
        pretty(self)
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        // The ways of a long channel add up to the square of its length. Where all are shown, each goes on in the line of its next hop.
        let limit = if self.iter().nth(1).is_some() { MAX_HOPS } else { usize::MAX };
        let mut group = ("", "");
        for path in self.iter() {
            if (path.package, path.channel) != group {
                group = (path.package, path.channel);
                let head = match path.head {
                    "" => "gone".into(),
                    head => format!("head {}", one_line(short(head, path.package))),
                };
                writeln!(out, "{} in {}, {head}", one_line(path.package), one_line(path.channel))?;
            }
            writeln!(out, "  {}", way(&path, limit))?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        if self.all_reach_the_head() { Exit::Success } else { Exit::Failed }
    }
}

/// As many hops are shown of one of several ways.
pub(super) const MAX_HOPS: usize = 10;

fn way(path: &UpgradePath<'_>, limit: usize) -> String {
    let name = |name: &str| one_line(short(name, path.package));
    let mut way = name(path.from);
    if !path.hops.is_empty() {
        way += &format!(" → {}", hops(&path.hops, path.hops_left_out, limit, name));
    }
    if !path.reaches_head {
        way += "   does not reach the head";
    }
    way
}

/// Hops with arrows between: of more than a limit the first ones and the last, and how many lie between.
pub(super) fn hops<T: AsRef<str>>(
    hops: &[T],
    left_out: Option<usize>,
    limit: usize,
    name: impl Fn(&str) -> String,
) -> String {
    let left_out = left_out.unwrap_or(0) + hops.len().saturating_sub(limit);
    let mut names: Vec<String> = hops.iter().take(limit).map(|hop| name(hop.as_ref())).collect();
    if let Some(last) = hops.last().filter(|_| left_out > 0) {
        names.pop();
        names.extend([format!("… {left_out} more …"), name(last.as_ref())]);
    }
    names.join(" → ")
}

/// A name without control characters; a line break in it is no line break of the page.
pub(super) fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\r'], " ")).into_owned()
}

/// `redis-operator.v0.1.0` as `0.1.0`: the package stands above.
pub(super) fn short<'n>(name: &'n str, package: &str) -> &'n str {
    let version = name.strip_prefix(package).and_then(|rest| rest.strip_prefix(".v"));
    version.filter(|version| !version.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_way_the_start_and_the_end_are_shown() {
        let names: Vec<String> = (0..13).map(|number| format!("a.v{number}.0.0")).collect();
        let path = |hops: &[usize], hops_left_out| UpgradePath {
            package: "a",
            channel: "stable",
            from: &names[0],
            hops: hops.iter().map(|at| names[*at].as_str()).collect(),
            hops_left_out,
            head: &names[12],
            reaches_head: hops.last() == Some(&12),
        };
        let whole = "0.0.0 → 1.0.0 → 2.0.0 → 3.0.0";
        let all: Vec<usize> = (1..13).collect();
        assert_eq!(way(&path(&[1, 2, 3], None), 3), format!("{whole}   does not reach the head"));
        assert_eq!(way(&path(&all, None), 4), format!("{whole} → … 8 more … → 12.0.0"));
        assert_eq!(way(&path(&[1, 2, 3, 4, 12], Some(7)), 4), format!("{whole} → … 8 more … → 12.0.0"));
        assert_eq!(way(&path(&[1, 2, 3, 12], Some(8)), 4), format!("{whole} → … 8 more … → 12.0.0"));
        assert_eq!(way(&path(&[], None), 4), "0.0.0   does not reach the head");
        assert!(way(&path(&all, None), usize::MAX).ends_with("→ 11.0.0 → 12.0.0"));
    }
}
