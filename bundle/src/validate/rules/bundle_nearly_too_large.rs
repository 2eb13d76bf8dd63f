use crate::finding::{Finding, Findings};
use crate::validate::facts::{Facts, MAX_PACKED_BYTES, NEAR_MAX_PACKED_BYTES};
use crate::validate::{OLM, Rule, rule};

rule!("bundle-nearly-too-large", Warning, OLM, "bundle_nearly_too_large.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(packed) = facts.packed_above(NEAR_MAX_PACKED_BYTES) else { return };
    let (total, (path, share)) = (packed.total, packed.largest);
    if total > MAX_PACKED_BYTES {
        return;
    }
    let message =
        format!("the manifests take {total} bytes when packed, of {MAX_PACKED_BYTES} that are allowed");
    let finding = Finding::new(&RULE.code, message).at(facts.place()).subject(facts.name);
    findings.push(
        finding.help(format!("the largest is `{path}` ({share} bytes); descriptions in CRDs take most room")),
    );
}
