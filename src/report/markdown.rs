//! Findings as Markdown, for comments on pull requests and release notes.

use std::fmt::Write as _;
use std::io::{self, Write};

use olmkit_bundle::finding::{Finding, Level, Place};

use super::findings::{FindingsAnswer, plural};
use super::{Answer, printable};

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

/// Release notes of an upgrade, in Markdown.
#[derive(Debug)]
pub struct ChangelogAnswer {
    text: String,
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

impl ChangelogAnswer {
    /// The notes for what comparing two versions has found.
    pub fn of(answer: &FindingsAnswer) -> Self {
        let mut text = format!("# {}\n", one_line(&answer.inputs.join(", ")));
        let section = |finding: &Finding| match finding.code.name {
            "crd-version-deprecated" => 1,
            _ if finding.level == Level::Error => 0,
            name if MANUAL_STEPS.contains(&name) => 2,
            _ => 3,
        };
        for (number, title) in ["Breaking", "Deprecated", "Manual steps", "Changes"].into_iter().enumerate() {
            // A break that is told already is not told again by what OLM v1 has to say about it.
            let mine =
                |finding: &&Finding| section(finding) == number && finding.code.name != "crd-upgrade-refused";
            let mut lines: Vec<_> =
                answer.findings.iter().filter(mine).map(|one| one_line(&one.message)).collect();
            lines.sort();
            lines.dedup();
            if !lines.is_empty() {
                let _ = writeln!(text, "\n## {title}\n");
                lines.iter().for_each(|line| text += &format!("- {line}\n"));
            }
        }
        if answer.findings.iter().any(|finding| finding.v1.is_some()) {
            text += "\nOLM v1 refuses this upgrade unless CRD upgrade safety is turned off \
                     (`install.preflight.crdUpgradeSafety.enforcement: None`).\n";
        }
        Self { text }
    }
}

impl Answer for ChangelogAnswer {
    fn json(&self) -> String {
        self.text.clone()
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())
    }

    fn verbatim(&self) -> Option<&str> {
        Some(&self.text)
    }
}

/// A text that cannot end the item it stands in.
pub(super) fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\r'], " ").replace('<', "&lt;")
}
