use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("annotations-not-text", Error, OLM, "annotations_not_text.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    for entry in annotations.map.iter().filter(|entry| entry.value.to_text().is_none()) {
        findings.push(
            Finding::new(&RULE.code, format!("`{}` is {}, expected a string", entry.key, entry.value.value))
                .at(annotations.file.place_at(entry.key_span))
                .subject(annotations.file.path)
                .help("write the value as one text; lists such as the channels have commas between"),
        );
    }
}
