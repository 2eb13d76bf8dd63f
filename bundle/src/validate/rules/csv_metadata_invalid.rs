use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::metadata::Metadata;
use crate::validate::{INSTALL, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-metadata-invalid",
        level: Level::Error,
        suite: INSTALL,
        docs: include_str!("csv_metadata_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(object) = facts.csv_object() else { return };
    Metadata { object, code: &RULE.code, typed: true, findings }.check_keys();
}
