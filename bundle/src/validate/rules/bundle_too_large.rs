use crate::finding::{Finding, Findings};
use crate::validate::facts::{Facts, MAX_PACKED_BYTES};
use crate::validate::{OLM, Rule, rule};

rule!("bundle-too-large", Error, OLM, "bundle_too_large.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(packed) = facts.packed_above(MAX_PACKED_BYTES) else { return };
    let (total, (path, share)) = (packed.total, packed.largest);
    // A bundle of a few files is too large because of one of them, one of thousands because it has thousands.
    let files = facts.manifests().count();
    let help = if share * MAX_SHARE < total {
        format!(
            "leave some of its {files} manifests out: none takes more than {share} bytes, and what the operator can create itself need \
             not be in the bundle"
        )
    } else {
        format!(
            "shorten the largest, `{path}` ({share} bytes); descriptions in CRDs take most room, and `controller-gen crd:maxDescLen=0` leaves them out"
        )
    };
    let message = format!("the manifests take {total} bytes when packed, more than {MAX_PACKED_BYTES}");
    findings.push(Finding::new(&RULE.code, message).at(facts.place()).subject(facts.name).help(help));
}

/// A manifest that takes less than this part of the bundle is not what makes it too large.
const MAX_SHARE: u64 = 100;
