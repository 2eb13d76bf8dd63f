use olmkit_bundle::finding::Findings;

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-syntax", Error, OPM, "fbc_syntax.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::Syntax(message) = &fault.kind {
            findings.push(index.finding(&RULE.code, fault.at, message.clone()));
        }
    }
}
