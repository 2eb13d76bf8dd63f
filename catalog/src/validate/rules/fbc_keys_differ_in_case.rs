use olmkit_bundle::finding::Findings;

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-keys-differ-in-case", Error, OPM, "fbc_keys_differ_in_case.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::DuplicateKeys { first, second } = &fault.kind {
            let message = format!("the keys `{first}` and `{second}` of one blob differ in nothing but case");
            findings.push(index.finding(&RULE.code, fault.at, message).help("keep one of them"));
        }
    }
}
