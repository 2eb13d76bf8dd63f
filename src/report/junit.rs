//! Findings as a report of tests in JUnit's XML: a suite for each input, a failed test for each kind of finding in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use olmkit_bundle::finding::{Finding, Level};

use super::printable;
use crate::actions::results::Checked;

/// Whether a file is a report in JUnit's XML, or empty, and so may be replaced by another one.
pub fn is_junit(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    text.is_empty() || text.starts_with('<') && text.contains("<testsuite")
}

/// The whole report. Warnings do not fail a test: they stand in its output.
pub(super) fn report(answer: &Checked) -> String {
    let mut by_input: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in answer.shown() {
        by_input.entry(&finding.input).or_default().push(finding);
    }
    let (mut suites, mut tests, mut failures) = (String::new(), 0, 0);
    for input in &answer.inputs {
        let findings = by_input.get(input.as_str()).map_or(&[][..], Vec::as_slice);
        let (cases, failed) = cases(input, findings);
        let count = cases.matches("<testcase ").count();
        // A text takes everything.
        let _ = writeln!(
            suites,
            "  <testsuite name=\"{}\" tests=\"{count}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\">\n{cases}  </testsuite>",
            escape(input)
        );
        (tests, failures) = (tests + count, failures + failed);
    }
    if let Some(text) = answer.left_out_text() {
        let _ = writeln!(suites, "  <!-- {text} -->");
    }
    let errors = answer.unread.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"olmkit {}\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\">\n{suites}</testsuites>\n",
        match answer.what {
            "upgrade" => "bundle diff".to_owned(),
            what => format!("{what} validate"),
        }
    )
}

/// The tests of one input, and how many failed.
fn cases(input: &str, findings: &[&Finding]) -> (String, usize) {
    let mut by_code: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_code.entry(finding.code.name).or_default().push(finding);
    }
    let class = escape(input);
    if by_code.is_empty() {
        return (format!("    <testcase classname=\"{class}\" name=\"every rule\"/>\n"), 0);
    }
    let (mut text, mut failed) = (String::new(), 0);
    for (code, findings) in by_code {
        let (errors, others): (Vec<_>, Vec<_>) =
            findings.into_iter().partition(|finding| finding.level == Level::Error);
        let _ = writeln!(text, "    <testcase classname=\"{class}\" name=\"{code}\">");
        if let Some(first) = errors.first() {
            failed += 1;
            let message = escape(&first.message);
            let _ = writeln!(
                text,
                "      <failure message=\"{message}\" type=\"{code}\">{}</failure>",
                lines(&errors)
            );
        }
        if !others.is_empty() {
            let _ = writeln!(text, "      <system-out>{}</system-out>", lines(&others));
        }
        text += "    </testcase>\n";
    }
    (text, failed)
}

/// `PATH:LINE:COLUMN: LEVEL: MESSAGE` for each.
fn lines(findings: &[&Finding]) -> String {
    let line = |finding: &&Finding| {
        let place = finding.place.as_ref().map(|place| format!("{place}: "));
        escape(&format!("{}{}: {}", place.unwrap_or_default(), finding.level, finding.message))
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Text in XML: nothing that XML 1.0 cannot hold, and nothing that ends the text.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped += "&#10;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
