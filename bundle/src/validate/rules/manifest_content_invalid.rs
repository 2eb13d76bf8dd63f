use crate::contents;
use crate::finding::{Finding, Findings, Level};
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::{Node, steps};

rule!("manifest-content-invalid", Error, INSTALL, "manifest_content_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    facts.objects().for_each(|object| of_object(object, findings));
}

/// What Kubernetes refuses of the content of an object.
pub(in crate::validate) fn of_object(object: Object<'_, '_>, findings: &mut Findings) {
    for refused in contents::refused(object) {
        findings.push(object.finding(&RULE.code, refused.message, &refused.path).help(refused.help));
    }
    if object.kind() == "PodDisruptionBudget"
        && object.root.at(steps!("spec", "selector")).is_none_or(Node::is_null)
    {
        let message = "the PodDisruptionBudget has no selector, so that it protects no pods";
        let finding = object.finding(&RULE.code, message, steps!("spec"));
        let finding = finding.help("set `spec.selector.matchLabels` to the labels of the pods");
        findings.push(Finding { level: Level::Warning, ..finding });
    }
}
