//! Findings as Markdown, for comments on pull requests and release notes.

use std::fmt::Write as _;

use olmkit_bundle::finding::{Finding, Level, Place};

use super::findings::{FindingsAnswer, plural};
use super::printable;

/// A section for each level, worst first.
pub(super) fn page(answer: &FindingsAnswer) -> String {
    let count = |level: Level| answer.findings.iter().filter(|finding| finding.level == level).count();
    let mut text =
        format!("{}, {}\n", plural(count(Level::Error), "error"), plural(count(Level::Warning), "warning"));
    for (level, title) in [(Level::Error, "Errors"), (Level::Warning, "Warnings"), (Level::Info, "Changes")] {
        let findings: Vec<_> = answer.findings.iter().filter(|finding| finding.level == level).collect();
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n## {title}\n");
        for finding in findings {
            text += &line(finding);
        }
    }
    text
}

fn line(finding: &Finding) -> String {
    let mut text = format!("- {} (`{}`", one_line(&finding.message), finding.code.name);
    let place = |place: &Place| match place.position {
        Some(position) => format!("{}:{}", printable(&place.path), position.line),
        None => printable(&place.path).into_owned(),
    };
    if let Some(new) = &finding.place {
        let _ = write!(text, ", {}", place(new));
    }
    text += ")";
    if let Some(help) = &finding.help {
        let _ = write!(text, ": {}", one_line(help));
    }
    text + "\n"
}

/// A text that cannot end the item it stands in.
fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\r'], " ").replace('<', "&lt;")
}
