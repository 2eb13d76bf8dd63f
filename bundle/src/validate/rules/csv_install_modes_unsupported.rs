use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-install-modes-unsupported", Error, OLM, "csv_install_modes_unsupported.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let modes = &csv.typed.spec.install_modes;
    if !modes.is_empty() && !modes.iter().any(|mode| mode.supported) {
        findings.push(
            csv.object
                .finding(&RULE.code, "no install mode is supported", steps!("spec", "installModes"))
                .help("set `supported: true` for the sets of namespaces that the operator can watch"),
        );
    }
}
