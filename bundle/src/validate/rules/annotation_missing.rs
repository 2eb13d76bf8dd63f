use crate::annotations::{self, CHANNELS, MANIFESTS, MEDIA_TYPE, METADATA, PACKAGE};
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("annotation-missing", Error, OLM, "annotation_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    for key in annotations::REQUIRED.into_iter().filter(|key| annotations.map.get(key).is_none()) {
        let value = match key {
            MEDIA_TYPE => annotations::REGISTRY_V1,
            MANIFESTS => annotations::MANIFESTS_DIR,
            METADATA => annotations::METADATA_DIR,
            PACKAGE => "PACKAGE",
            CHANNELS => "CHANNEL,CHANNEL",
            _ => "VALUE",
        };
        let finding = Finding::new(&RULE.code, format!("the annotation `{key}` is missing"))
            .at(annotations.place(key))
            .subject(annotations.file.path);
        findings.push(finding.help(format!("add `{key}: {value}`")));
    }
}
