use crate::annotations;
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule, rule};

rule!("openshift-channel-name", Warning, OPENSHIFT, "openshift_channel_name.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    for channel in annotations.channels() {
        if !["candidate", "fast", "stable"].iter().any(|start| channel.starts_with(start)) {
            let finding = Finding::new(
                &RULE.code,
                format!(
                    "the name `{}` does not say what users can expect of the channel",
                    channel.replace('`', "'")
                ),
            )
            .at(annotations.place(annotations::CHANNELS))
            .subject(format!("channel {channel}"));
            findings.push(finding.help("start it with `candidate`, `fast` or `stable`"));
        }
    }
}
