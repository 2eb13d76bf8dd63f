use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule, rule};

rule!("openshift-versions-label", Warning, OPENSHIFT, "openshift_versions_label.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let Some(text) = annotations.get(KEY) else { return };
    let is_version = |text: &str| {
        let text = text.strip_prefix('v').unwrap_or(text);
        text.split_once('.')
            .is_some_and(|(major, minor)| major.parse::<u8>().is_ok() && minor.parse::<u8>().is_ok())
    };
    let is_sound = match text.split_once('-') {
        Some((first, last)) => is_version(first) && is_version(last),
        None => is_version(text.strip_prefix('=').unwrap_or(&text)),
    };
    // The older form: versions with commas between.
    if !is_sound && !text.split(',').all(|version| is_version(version.trim())) {
        let finding = Finding::new(
            &RULE.code,
            format!("`{}` does not name versions of OpenShift", text.replace('`', "'")),
        )
        .at(annotations.place(KEY))
        .subject(KEY);
        findings.push(finding.help("write `v4.12`, `=v4.12` or `v4.12-v4.16`"));
    }
}

const KEY: &str = "com.redhat.openshift.versions";
