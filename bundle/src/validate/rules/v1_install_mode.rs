use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM_V1, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "v1-install-mode",
        level: Level::Warning,
        suite: OLM_V1,
        docs: include_str!("v1_install_mode.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let modes = &csv.typed.spec.install_modes;
    if !modes.is_empty() && !modes.iter().any(|mode| mode.supported && mode.kind == "AllNamespaces") {
        findings.push(
            csv.object
                .finding(
                    &RULE.code,
                    "the operator cannot watch all namespaces, as OLM v1 wants it to",
                    steps!("spec", "installModes"),
                )
                .help("support `AllNamespaces`"),
        );
    }
}
