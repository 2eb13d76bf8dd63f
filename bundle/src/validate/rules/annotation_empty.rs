use crate::annotations::{CHANNELS, DEFAULT_CHANNEL};
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("annotation-empty", Error, OLM, "annotation_empty.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    for key in [CHANNELS, DEFAULT_CHANNEL] {
        if annotations.get(key).as_deref() != Some("") {
            continue;
        }
        let help = match key {
            CHANNELS => "list the channels of the bundle, separated by commas",
            _ => "name a channel, or remove the annotation: it may be left out, but not empty",
        };
        let finding = Finding::new(&RULE.code, format!("the annotation `{key}` is empty"))
            .at(annotations.place(key))
            .subject(annotations.file.path);
        findings.push(finding.help(help));
    }
}
