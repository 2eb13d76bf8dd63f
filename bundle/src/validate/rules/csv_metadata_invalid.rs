use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::metadata::Metadata;
use crate::validate::{INSTALL, Rule, rule};

rule!("csv-metadata-invalid", Error, INSTALL, "csv_metadata_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(object) = facts.csv_object() else { return };
    Metadata { object, code: &RULE.code, typed: true, findings }.check_keys();
}
