use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-install-modes-unsupported",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_install_modes_unsupported.md"),
    },
    check,
};

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
