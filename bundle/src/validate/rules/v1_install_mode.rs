use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule, rule};
use crate::yaml::steps;

rule!("v1-install-mode", Warning, OLM_V1, "v1_install_mode.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let modes = &csv.typed.spec.install_modes;
    if !modes.is_empty() && !modes.iter().any(|mode| mode.supported && mode.kind == "AllNamespaces") {
        let finding = csv.object.finding(
            &RULE.code,
            "the operator cannot watch all namespaces, as OLM v1 wants it to",
            steps!("spec", "installModes"),
        );
        findings.push(finding.help("support `AllNamespaces`"));
    }
}
