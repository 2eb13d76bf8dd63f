use olmkit_bundle::finding::Findings;

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-not-a-map", Error, OPM, "fbc_not_a_map.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::NotAMap(found) = &fault.kind {
            let message = format!("a blob of a catalog is a map, found {found}");
            findings.push(index.finding(&RULE.code, fault.at, message));
        }
    }
}
