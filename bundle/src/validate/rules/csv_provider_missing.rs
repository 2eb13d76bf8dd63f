use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-provider-missing",
        level: Level::Error,
        suite: OPERATORHUB,
        docs: include_str!("csv_provider_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.spec.provider.name.trim().is_empty() {
        findings.push(
            csv.object
                .finding(&RULE.code, "`spec.provider.name` is not set", steps!("spec", "provider", "name"))
                .help("name the person or company that provides the operator"),
        );
    }
}
