use crate::finding::Findings;
use crate::kinds;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, removals, rule};
use crate::yaml::steps;

rule!("manifest-api-removed", Error, INSTALL, "manifest_api_removed.md");

/// OLM reads these as the types that it knows and creates them in today's version, whatever version they have
/// (operator-lifecycle-manager `pkg/controller/operators/catalog/operator.go`).
const TYPED: &str = "rbac.authorization.k8s.io";

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.objects() {
        let (api_version, kind) = (object.api_version(), object.kind());
        let is_installed = kinds::supported(kind).is_some_and(|kind| kind.installed);
        let Some(removal) = removals::find(api_version, kind).filter(|_| is_installed) else { continue };
        if removal.group != TYPED {
            let finding = object.finding(&RULE.code, removal.message(), steps!("apiVersion"));
            findings.push(finding.help(removal.help()));
        }
    }
}
