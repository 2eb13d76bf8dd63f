//! Findings as commands that make GitHub's workflows mark lines of a pull request.

use std::fmt::Write as _;

use olmkit_bundle::finding::Level;

use crate::actions::results::Checked;

/// One line for each finding.
pub(super) fn annotations(answer: &Checked) -> String {
    let mut text = String::new();
    for finding in answer.shown() {
        let command = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "notice",
        };
        let mut properties = Vec::new();
        if let Some(place) = &finding.place {
            properties.push(format!("file={}", property(&place.path)));
            if let Some(position) = place.position {
                let columns = place.marked_columns();
                properties.push(format!("line={},endLine={}", position.line, position.line));
                properties.push(format!("col={},endColumn={}", position.column, position.column + columns));
            }
        }
        properties.push(format!("title={}", property(finding.code.name)));
        let help = finding.advice().map(|help| format!("\n{help}")).unwrap_or_default();
        let message = data(&format!("{}{help}", finding.message));
        // A text takes everything.
        let _ = writeln!(text, "::{command} {}::{message}", properties.join(","));
    }
    if let Some(more) = answer.left_out_text() {
        let _ = writeln!(text, "::notice title=findings::{}", data(&more));
    }
    text
}

fn data(text: &str) -> String {
    super::printable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
