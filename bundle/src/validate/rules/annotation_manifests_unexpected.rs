use crate::annotations::{MANIFESTS, MANIFESTS_DIR, is_directory};
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("annotation-manifests-unexpected", Error, OLM, "annotation_manifests_unexpected.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let value = annotations.get(MANIFESTS).filter(|value| !is_directory(value, MANIFESTS_DIR));
    let Some(value) = value else { return };
    let finding =
        Finding::new(&RULE.code, format!("the manifests directory is `{value}`, expected `{MANIFESTS_DIR}`"))
            .at(annotations.place(MANIFESTS))
            .subject(annotations.file.path);
    findings.push(finding.help(format!("write `{MANIFESTS}: {MANIFESTS_DIR}`")));
}
