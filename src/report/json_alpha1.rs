//! Findings as `operator-sdk bundle validate --output json-alpha1` prints them.

use olmkit_bundle::finding::{Finding, Level};
use serde::Serialize;

use super::printable;
use crate::actions::results::Checked;

#[derive(Serialize)]
struct Result {
    passed: bool,
    outputs: Vec<Output>,
}

#[derive(Serialize)]
struct Output {
    #[serde(rename = "type")]
    level: &'static str,
    message: String,
}

/// One result for all inputs. A message starts with its place and ends with its code.
pub(super) fn result(answer: &Checked) -> String {
    let output = |finding: &Finding| {
        let place = finding.place.as_ref().map(|place| format!("{place}: "));
        let text = format!("{}{} [{}]", place.unwrap_or_default(), finding.message, finding.code.name);
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
        };
        Output { level, message: printable(&text).into_owned() }
    };
    let mut outputs: Vec<_> = answer.shown().into_iter().map(output).collect();
    outputs.extend(answer.left_out_text().map(|message| Output { level: "info", message }));
    super::pretty(&Result { passed: outputs.iter().all(|output| output.level != "error"), outputs })
}
