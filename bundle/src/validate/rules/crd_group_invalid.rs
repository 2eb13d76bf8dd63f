use crate::finding::Findings;
use crate::names::check_subdomain;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-group-invalid", Error, OLM, "crd_group_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        let group = crd.group();
        let message = match check_subdomain(&group) {
            _ if group.is_empty() => "the CustomResourceDefinition has no group".to_owned(),
            Err(why) => format!("`{group}` cannot be a group: {why}"),
            Ok(()) if !group.contains('.') => format!("`{group}` has no dot, expected a domain"),
            Ok(()) => continue,
        };
        let finding = object.finding(&RULE.code, message, steps!("spec", "group"));
        findings.push(finding.help("use a domain that you own, such as `cache.example.com`"));
    }
}
