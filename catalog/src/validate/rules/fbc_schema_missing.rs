use olmkit_bundle::finding::{Code, Findings, Level};

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "fbc-schema-missing",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("fbc_schema_missing.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if fault.kind == FaultKind::NoSchema {
            findings.push(
                index
                    .finding(&RULE.code, fault.at, "a blob has no `schema`")
                    .help("add `schema: olm.package`, `olm.channel`, `olm.bundle` or `olm.deprecations`, or one of your own"),
            );
        }
    }
}
