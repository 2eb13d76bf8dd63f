use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::Step;

rule!("dependency-unreadable", Error, OLM, "dependency_unreadable.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for dependency in facts.dependencies() {
        let Err(unreadable) = &dependency.value else { continue };
        let path: Vec<_> = unreadable.path.iter().map(|key| Step::from(*key)).collect();
        let finding = dependency.finding(&RULE.code, unreadable.message.as_str(), &path);
        findings.push(finding.help("a dependency has a `type`, one of `olm.package`, `olm.gvk`, `olm.label` and `olm.constraint`, and a `value` that fits it"));
    }
}
