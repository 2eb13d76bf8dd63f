use crate::csv;
use crate::finding::{Code, Findings, Level};
use crate::kinds;
use crate::validate::facts::Facts;
use crate::validate::metadata::Metadata;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "manifest-metadata-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("manifest_metadata_invalid.md"),
    },
    check,
};

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
