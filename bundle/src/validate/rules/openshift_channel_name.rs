use crate::annotations;
use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "openshift-channel-name",
        level: Level::Warning,
        suite: OPENSHIFT,
        docs: include_str!("openshift_channel_name.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    for channel in annotations.channels() {
        if !["candidate", "fast", "stable"].iter().any(|start| channel.starts_with(start)) {
            findings.push(
                Finding::new(
                    &RULE.code,
                    format!(
                        "the name `{}` does not say what users can expect of the channel",
                        channel.replace('`', "'")
                    ),
                )
                .at(annotations.place(annotations::CHANNELS))
                .subject(format!("channel {channel}"))
                .help("start it with `candidate`, `fast` or `stable`"),
            );
        }
    }
}
