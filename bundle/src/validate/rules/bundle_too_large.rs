use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::{Facts, MAX_PACKED_BYTES};
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "bundle-too-large",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("bundle_too_large.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(packed) = facts.packed_above(MAX_PACKED_BYTES) else { return };
    let (total, (path, share)) = (packed.total, packed.largest);
    let message = format!("the manifests take {total} bytes when packed, more than {MAX_PACKED_BYTES}");
    findings.push(
        Finding::new(&RULE.code, message).at(facts.place()).subject(facts.name).help(format!(
            "shorten the largest, `{path}` ({share} bytes); descriptions in CRDs take most room"
        )),
    );
}
