use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::metadata::Metadata;
use crate::validate::{OLM, Rule, rule};

rule!("crd-metadata-invalid", Error, OLM, "crd_metadata_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, _) in facts.readable_crds() {
        Metadata { object, code: &RULE.code, typed: true, findings }.check();
    }
}
