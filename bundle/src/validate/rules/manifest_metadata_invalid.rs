use crate::csv;
use crate::finding::Findings;
use crate::kinds;
use crate::validate::facts::Facts;
use crate::validate::metadata::Metadata;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("manifest-metadata-invalid", Error, OLM, "manifest_metadata_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.objects() {
        let judged = !matches!(object.kind(), csv::KIND | "CustomResourceDefinition");
        if !judged || kinds::supported(object.kind()).is_none() {
            continue;
        }
        if object.name().is_empty() {
            let path = steps!("metadata", "name");
            let finding = object.finding(&RULE.code, "the object has no name", path);
            findings.push(finding.help("set `metadata.name`"));
        }
        Metadata { object, code: &RULE.code, typed: false, findings }.check();
    }
}
