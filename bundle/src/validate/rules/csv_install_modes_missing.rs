use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-install-modes-missing",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_install_modes_missing.md"),
    },
    check,
};

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
