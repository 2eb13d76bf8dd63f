use crate::annotations::{METADATA, METADATA_DIR, is_directory};
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("annotation-metadata-unexpected", Warning, STRICT, "annotation_metadata_unexpected.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let value = annotations.get(METADATA).filter(|value| !is_directory(value, METADATA_DIR));
    let Some(value) = value else { return };
    let finding =
        Finding::new(&RULE.code, format!("the metadata directory is `{value}`, expected `{METADATA_DIR}`"))
            .at(annotations.place(METADATA))
            .subject(annotations.file.path);
    findings.push(finding.help(format!("write `{METADATA}: {METADATA_DIR}`")));
}
