use crate::annotations::{CHANNELS, DEFAULT_CHANNEL};
use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "annotation-empty",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("annotation_empty.md"),
    },
    check,
};

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
        findings.push(
            Finding::new(&RULE.code, format!("the annotation `{key}` is empty"))
                .at(annotations.place(key))
                .subject(annotations.file.path)
                .help(help),
        );
    }
}
