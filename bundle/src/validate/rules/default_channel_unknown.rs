use crate::annotations;
use crate::finding::{Finding, Findings};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};

rule!("default-channel-unknown", Warning, INSTALL, "default_channel_unknown.md");

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
