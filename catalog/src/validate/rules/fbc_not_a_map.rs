use olmkit_bundle::finding::{Code, Findings, Level};

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "fbc-not-a-map",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("fbc_not_a_map.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::NotAMap(found) = &fault.kind {
            let message = format!("a blob of a catalog is a map, found {found}");
            findings.push(index.finding(&RULE.code, fault.at, message));
        }
    }
}
