use crate::annotations::{MEDIA_TYPE, REGISTRY_V1};
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("annotation-mediatype-unexpected", Error, OLM, "annotation_mediatype_unexpected.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let Some(value) = annotations.get(MEDIA_TYPE).filter(|value| value != REGISTRY_V1) else { return };
    let finding = Finding::new(&RULE.code, format!("the media type is `{value}`, expected `{REGISTRY_V1}`"))
        .at(annotations.place(MEDIA_TYPE))
        .subject(annotations.file.path);
    findings.push(finding.help(format!("write `{MEDIA_TYPE}: {REGISTRY_V1}`")));
}
