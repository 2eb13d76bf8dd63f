//! What an InstallPlan will change: each version with what is new in it, then the objects, then the policy.

use std::io::{self, Write};

use olmkit_bundle::finding::Level;

use super::printable;
use crate::lifecycle::policy::Violation;
use crate::lifecycle::preview::{Change, PlannedCsv, Preview};

/// Of each list, text shows so many: nobody reads on before the first ones are settled.
const MOST_SHOWN: usize = 20;
/// The letters of a line that text shows.
const MOST_OF_A_LINE: usize = 1_000;

pub(super) fn text(
    preview: &Preview,
    violations: Option<&[Violation]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let state = if preview.approved { "approved" } else { "waits for approval" };
    line(out, 0, &format!("installplan/{} in {}: {state}", preview.name, preview.namespace))?;
    for csv in preview.csvs.iter().take(MOST_SHOWN) {
        version(csv, out)?;
    }
    more(out, 1, preview.csvs.len())?;
    for change in [Change::Create, Change::Change, Change::Unknown] {
        let of = preview.steps.iter().filter(|step| step.change == change);
        let lines = of.map(|step| {
            let place =
                if step.namespace.is_empty() { String::new() } else { format!(" in {}", step.namespace) };
            format!("{} {}/{}{place}", change.as_str(), step.kind.to_lowercase(), step.name)
        });
        some(out, 1, lines)?;
    }
    let kept = preview.steps.iter().filter(|step| step.change == Change::Keep).count();
    if kept > 0 {
        let objects =
            if kept == 1 { "1 object as it is".to_owned() } else { format!("{kept} objects as they are") };
        line(out, 1, &format!("keep {objects}"))?;
    }
    some(out, 0, preview.not_read.iter().map(|why| format!("not read: {why}")))?;
    some(out, 0, preview.not_checked.iter().map(|what| format!("not checked: {what}")))?;
    let Some(violations) = violations else { return Ok(()) };
    if violations.is_empty() {
        return line(out, 0, "the plan meets the policy");
    }
    line(out, 0, "the plan does not meet the policy:")?;
    some(out, 1, violations.iter().map(|one| format!("{} [{}]", one.sentence, one.rule)))
}

fn version(csv: &PlannedCsv, out: &mut dyn Write) -> io::Result<()> {
    let whose = match csv.subscription.as_str() {
        "" => "dependency".to_owned(),
        name => format!("subscription/{name}"),
    };
    let way = match csv.replaces.as_str() {
        "" => format!("install {}", csv.name),
        replaces => format!("upgrade {replaces} -> {}", csv.name),
    };
    line(out, 1, &format!("{way} ({whose})"))?;
    some(out, 2, csv.new_images.iter().map(|image| format!("new image {image}")))?;
    some(out, 2, csv.new_cluster_rules.iter().map(|rule| format!("new rights: {rule}")))?;
    some(out, 2, csv.lost_cluster_rules.iter().map(|rule| format!("lost rights: {rule}")))?;
    some(out, 2, csv.new_webhooks.iter().map(|webhook| format!("new webhook {webhook}")))?;
    // Errors first where some are left out; else in the order of `bundle diff`.
    let mut findings: Vec<_> = csv.findings.iter().collect();
    if findings.len() > MOST_SHOWN {
        findings.sort_by_key(|one| one.level != Level::Error.to_string());
    }
    some(out, 2, findings.into_iter().map(|one| format!("{}[{}]: {}", one.level, one.code, one.message)))?;
    some(out, 2, csv.blockers.iter().map(|one| format!("blocked: {one}")))
}

/// The first lines of a list, and how many more there are.
fn some(out: &mut dyn Write, level: usize, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut count = 0;
    for text in lines {
        count += 1;
        if count <= MOST_SHOWN {
            line(out, level, &text)?;
        }
    }
    more(out, level, count)
}

/// How many of so many text leaves out.
fn more(out: &mut dyn Write, level: usize, count: usize) -> io::Result<()> {
    match count.saturating_sub(MOST_SHOWN) {
        0 => Ok(()),
        more => line(out, level, &format!("and {more} more; `--output json` shows all")),
    }
}

fn line(out: &mut dyn Write, level: usize, text: &str) -> io::Result<()> {
    let (text, dots) = match text.char_indices().nth(MOST_OF_A_LINE) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    };
    writeln!(out, "{}{}{dots}", "  ".repeat(level), printable(&text.replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::preview::PlannedFinding;

    #[test]
    fn long_lists_and_lines_are_cut_and_errors_come_first() {
        let finding = |level: &str| PlannedFinding {
            code: "odd",
            level: level.into(),
            message: "x".repeat(3_000),
            subject: None,
        };
        let mut findings = vec![finding("warning"); 30];
        findings.push(finding("error"));
        let csv = PlannedCsv {
            name: "demo.v1".into(),
            new_images: (0..25).map(|number| format!("image{number}")).collect(),
            findings,
            ..PlannedCsv::default()
        };
        let preview = Preview { csvs: vec![csv; 40], ..Preview::default() };
        let mut out = Vec::new();
        text(&preview, None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().take(45).collect();
        assert_eq!(lines[21], "    new image image19");
        assert_eq!(lines[22], "    and 5 more; `--output json` shows all");
        assert_eq!(lines[23], format!("    error[odd]: {}…", "x".repeat(MOST_OF_A_LINE - 12)));
        assert_eq!(lines[43], "    and 11 more; `--output json` shows all");
        assert!(text.ends_with("\n  and 20 more; `--output json` shows all\n"), "{text}");
    }
}
