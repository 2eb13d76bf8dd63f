use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-install-modes-missing", Error, OLM, "csv_install_modes_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.spec.install_modes.is_empty() {
        findings.push(
            csv.object
                .finding(&RULE.code, "there are no install modes", steps!("spec", "installModes"))
                .help(
                    "list the install modes under `spec.installModes`, at least one with `supported: true`",
                ),
        );
    }
}
