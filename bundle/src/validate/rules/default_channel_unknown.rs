use crate::annotations;
use crate::finding::{Code, Finding, Findings, Level};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "default-channel-unknown",
        level: Level::Warning,
        suite: INSTALL,
        docs: include_str!("default_channel_unknown.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let default = annotations.get(annotations::DEFAULT_CHANNEL).unwrap_or_default();
    let channels = annotations.channels();
    if default.is_empty() || channels.contains(&default) {
        return;
    }
    // Another version may be in it: that is said only where a channel of nearly that name is meant.
    let Some(help) = did_you_mean(&default, channels.iter().map(String::as_str)) else { return };
    let message =
        format!("the default channel `{}` is not among the bundle's channels", default.replace('`', "'"));
    let finding = Finding::new(&RULE.code, message).at(annotations.place(annotations::DEFAULT_CHANNEL));
    findings.push(finding.subject(annotations.file.path).help(help));
}
