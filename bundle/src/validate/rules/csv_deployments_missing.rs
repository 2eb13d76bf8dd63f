use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-deployments-missing",
        level: Level::Error,
        suite: GOOD_PRACTICES,
        docs: include_str!("csv_deployments_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let path = steps!("spec", "install", "spec", "deployments");
    if csv.object.root.at_folded(path).is_none_or(|list| list.is_null()) {
        let help = "add the Deployment of the operator";
        findings.push(csv.object.finding(&RULE.code, "there is no deployment to install", path).help(help));
    }
}
