//! Differences between two texts as `diff -u` and git show them.

use std::fmt::Write as _;
use std::io;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::printable;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Of more lines, Myers would take time in the square of those that moved.
const FEW: usize = 10_000;

/// The unified diff from one text to another, with `a/NAME` and `b/NAME` in its header; `/dev/null` for a file that is absent. Empty when they
/// are the same.
pub(super) fn unified<'t>(name: &str, old: Option<&'t str>, new: Option<&'t str>) -> String {
    if old == new {
        return String::new();
    }
    let lines =
        |text: Option<&'t str>| -> Vec<&'t str> { text.unwrap_or_default().split_inclusive('\n').collect() };
    let (a, b) = (lines(old), lines(new));
    // Most lines are the same, before and after the change: only those between are compared.
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - same;
    let same_after = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(CONTEXT);
    let after = same_after.saturating_sub(CONTEXT);
    let (left, right) = (&a[from..a.len() - after], &b[from..b.len() - after]);
    let side = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let mut out = format!("--- {}\n+++ {}\n", side("a", old), side("b", new));
    let algorithm = if left.len() + right.len() <= FEW { Algorithm::Myers } else { Algorithm::Patience };
    for group in group_diff_ops(capture_diff_slices(algorithm, left, right), CONTEXT) {
        write_hunk(&mut out, &group, left, right, from);
    }
    out
}

/// Writes a difference. Carriage returns at the end of lines stay, so that it can be applied; what a terminal must not get is escaped.
/// Tells whether something was.
pub(super) fn write_unified(diff: &str, out: &mut dyn io::Write) -> io::Result<bool> {
    let mut is_escaped = false;
    for line in diff.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let (text, end) = text.strip_suffix('\r').map_or((text, "\n"), |text| (text, "\r\n"));
        let shown = printable(text);
        is_escaped |= shown != text;
        write!(out, "{shown}{end}")?;
    }
    Ok(is_escaped)
}

/// The note below a difference that cannot be applied as it is shown.
pub(super) const ESCAPED: &str = "note: control characters are shown as `\\r` or `\\u{1b}`: to apply the diff, take it from `--output json`";

fn write_hunk(out: &mut String, group: &[DiffOp], left: &[&str], right: &[&str], offset: usize) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let range = |from: usize, to: usize| match to - from {
        0 => format!("{},0", from + offset),
        1 => format!("{}", from + offset + 1),
        lines => format!("{},{lines}", from + offset + 1),
    };
    let old = range(first.old_range().start, last.old_range().end);
    let new = range(first.new_range().start, last.new_range().end);
    // Writing to a string does not fail.
    let _ = writeln!(out, "@@ -{old} +{new} @@");
    let mut line = |mark: char, text: &str| {
        out.push(mark);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    };
    for op in group {
        if op.tag() == DiffTag::Equal {
            left[op.old_range()].iter().for_each(|text| line(' ', text));
        } else {
            left[op.old_range()].iter().for_each(|text| line('-', text));
            right[op.new_range()].iter().for_each(|text| line('+', text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_shown_with_its_line_numbers() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("10\n", "ten\n").replace("20\n", "20");
        insta::assert_snapshot!(unified("x/y.yaml", Some(&old), Some(&new)), @r"
        --- a/x/y.yaml
        +++ b/x/y.yaml
        @@ -7,7 +7,7 @@
         7
         8
         9
        -10
        +ten
         11
         12
         13
        @@ -17,4 +17,4 @@
         17
         18
         19
        -20
        +20
        \ No newline at end of file
        ");
    }

    #[test]
    fn a_lone_carriage_return_is_shown_plainly() {
        let diff = unified("f", Some("a\r\n"), Some("a\rb\r\n\u{1b}[2J\n"));
        let mut out = Vec::new();
        assert!(write_unified(&diff, &mut out).unwrap());
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.ends_with("-a\r\n+a\\rb\r\n+\\u{1b}[2J\n"), "{shown:?}");
        assert!(!write_unified(&unified("f", None, Some("a\r\n")), &mut Vec::new()).unwrap());
    }

    #[test]
    fn files_that_come_and_go() {
        assert_eq!(unified("f", None, Some("a\n")), "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("f", Some("a\n"), None), "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
        assert_eq!(unified("f", Some("a\n"), Some("a\n")), "");
    }
}
