use olmkit_bundle::finding::{Code, Findings, Level};

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code { name: "fbc-syntax", level: Level::Error, suite: OPM, docs: include_str!("fbc_syntax.md") },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::Syntax(message) = &fault.kind {
            findings.push(index.finding(&RULE.code, fault.at, message.clone()));
        }
    }
}
