use crate::finding::Findings;
use crate::kinds;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("manifest-kind-unsupported", Error, OLM, "manifest_kind_unsupported.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.objects() {
        let kind = object.kind();
        if kind.is_empty() || kinds::supported(kind).is_some_and(|kind| kind.installed) {
            continue;
        }
        let finding = object.finding(
            &RULE.code,
            format!("`{kind}` is not a kind that bundles may contain"),
            steps!("kind"),
        );
        findings.push(finding.help("let the operator create the object, or have users create it"));
    }
}
