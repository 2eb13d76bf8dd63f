use olmkit_bundle::finding::Findings;

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-field-type", Error, OPM, "fbc_field_type.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::WrongType { field, expected, found } = &fault.kind {
            let message = format!("`{field}` must be {expected}, found {found}");
            let finding = index.finding(&RULE.code, fault.at, message);
            findings.push(match *expected {
                "a string" => finding.help("put it in quotes"),
                _ => finding,
            });
        }
    }
}
