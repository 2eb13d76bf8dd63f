//! Findings as Markdown, for comments on pull requests and release notes.

use std::fmt::Write as _;

use olmkit_bundle::finding::{Finding, Level, Place};

use super::{plural, printable};
use crate::actions::diff::Upgrade;
use crate::actions::results::{Checked, FileText};

/// A section for each level, worst first.
pub(super) fn page(answer: &Checked) -> String {
    let count = |level: Level| answer.count(level);
    let mut text =
        format!("{}, {}\n", plural(count(Level::Error), "error"), plural(count(Level::Warning), "warning"));
    let shown = answer.shown();
    for (level, title) in [(Level::Error, "Errors"), (Level::Warning, "Warnings"), (Level::Info, "Changes")] {
        let findings: Vec<_> = shown.iter().filter(|finding| finding.level == level).collect();
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n## {title}\n");
        for finding in findings {
            text += &line(finding);
        }
    }
    if let Some(more) = answer.left_out_text() {
        let _ = writeln!(text, "\n{more}.");
    }
    text
}

fn line(finding: &Finding) -> String {
    let mut text = format!("- {} (`{}`", one_line(&finding.message), finding.code.name);
    let place = |place: &Place| match place.position {
        Some(position) => one_line(&format!("{}:{}", place.path, position.line)),
        None => one_line(&place.path),
    };
    if let Some(new) = &finding.place {
        let _ = write!(text, ", {}", place(new));
    }
    text += ")";
    if let Some(help) = finding.advice() {
        let _ = write!(text, ": {}", one_line(&help));
    }
    text + "\n"
}

/// Codes of what users have to do something about.
const MANUAL_STEPS: [&str; 6] = [
    "crd-conversion-added",
    "crd-storage-version-changed",
    "dependency-added",
    "min-kube-version-raised",
    "permission-escalates",
    "permission-gained",
];

/// Codes of what is no news to those who install a version.
const NO_NEWS: [&str; 3] = ["crd-upgrade-refused", "version-bump-too-small", "version-not-higher"];

/// Release notes in Markdown for what comparing versions has found: one page for one upgrade, else a section for each.
pub fn changelog(answer: &Checked, upgrades: &[Upgrade]) -> FileText {
    let mut text = String::new();
    if let [upgrade] = upgrades {
        notes(&mut text, "#", upgrade, &answer.findings.iter().collect::<Vec<_>>());
        return FileText { text };
    }
    let mut package = None;
    for upgrade in upgrades {
        if package != Some(&upgrade.package) {
            let gap = if package.is_some() { "\n" } else { "" };
            let _ = writeln!(text, "{gap}# {}", one_line(&upgrade.package));
            package = Some(&upgrade.package);
        }
        text.push('\n');
        let findings: Vec<_> =
            answer.findings.iter().filter(|finding| finding.input == upgrade.input).collect();
        notes(&mut text, "##", upgrade, &findings);
    }
    FileText { text }
}

/// The notes of one upgrade, below a heading.
fn notes(text: &mut String, heading: &str, upgrade: &Upgrade, findings: &[&Finding]) {
    let package = one_line(&upgrade.package);
    let _ = match &upgrade.versions {
        Some((from, to)) if heading == "#" => {
            writeln!(text, "{heading} {package} {}\n\nChanges since {}.", one_line(to), one_line(from))
        }
        Some((from, to)) => writeln!(text, "{heading} {}\n\nChanges since {}.", one_line(to), one_line(from)),
        None => writeln!(text, "{heading} {package}"),
    };
    let section = |finding: &Finding| match finding.code.name {
        "crd-version-deprecated" => 1,
        // OLM v1 may refuse it all the same, which is said below.
        "schema-widened" => 3,
        _ if finding.level == Level::Error => 0,
        name if MANUAL_STEPS.contains(&name) => 2,
        _ => 3,
    };
    let mut is_empty = true;
    for (number, title) in ["Breaking", "Deprecated", "Manual steps", "Changes"].into_iter().enumerate() {
        // A break that is told already is not told again by what OLM v1 has to say about it.
        let is_mine = |finding: &&&Finding| {
            let name = finding.code.name;
            section(finding) == number && !NO_NEWS.contains(&name) && !name.starts_with("policy-")
        };
        let mut lines: Vec<_> =
            findings.iter().filter(is_mine).map(|one| one_line(&one.message_with_crd())).collect();
        lines.sort();
        lines.dedup();
        if !lines.is_empty() {
            is_empty = false;
            let _ = writeln!(text, "\n{heading}# {title}\n");
            lines.iter().for_each(|line| *text += &format!("- {line}\n"));
        }
    }
    if findings.iter().any(|finding| finding.v1.is_some()) {
        *text += "\nOLM v1 refuses this upgrade unless CRD upgrade safety is turned off \
                 (`install.preflight.crdUpgradeSafety.enforcement: None`).\n";
    } else if is_empty {
        *text += "\nNothing changes for users.\n";
    }
}

/// A text that cannot end the item it stands in, and does nothing in it: what stands between backticks stays code, and any other word
/// that Markdown or GitHub would act on becomes code: links, images, tags, addresses, names of people, numbers of issues.
pub(super) fn one_line(text: &str) -> String {
    let text = printable(text).replace(['\n', '\r'], " ");
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::with_capacity(text.len());
    for (number, part) in parts.iter().enumerate() {
        // Without an end, a backtick begins no code.
        let is_code = number % 2 == 1 && number + 1 < parts.len();
        if is_code {
            code(&mut out, part);
            continue;
        }
        for (at, word) in part.split(' ').enumerate() {
            out += if at > 0 { " " } else { "" };
            if acts(word) { code(&mut out, word) } else { out += word }
        }
    }
    out
}

/// Adds a span of code. Two backticks side by side would mean something else.
fn code(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    if out.ends_with('`') {
        out.push(' ');
    }
    *out += &format!("`{text}`");
}

/// Whether a word does something in Markdown as GitHub shows it.
pub(super) fn acts(word: &str) -> bool {
    let is_issue = word.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    word.contains(['<', '[', ']', '@', '&']) || word.contains("://") || word.contains("www.") || is_issue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_acts() {
        for (text, expected) in [
            ("`a.b` is gone; use x", "`a.b` is gone; use x"),
            ("see https://example.com or [x](y)", "see `https://example.com` or `[x](y)`"),
            ("a\n# b @c #1 <d>", "a # b `@c` `#1` `<d>`"),
            ("`x`[l](m)`y` z", "`x` `[l](m)` `y` z"),
            ("one ` alone @c", "one  alone `@c`"),
            ("an empty `` name", "an empty  name"),
            ("\u{202e}", "\\u{202e}"),
        ] {
            assert_eq!(one_line(text), expected);
        }
    }
}
