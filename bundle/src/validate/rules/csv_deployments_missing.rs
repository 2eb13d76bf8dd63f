use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule, rule};
use crate::yaml::steps;

rule!("csv-deployments-missing", Error, GOOD_PRACTICES, "csv_deployments_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let path = steps!("spec", "install", "spec", "deployments");
    if csv.object.root.at_folded(path).is_none_or(|list| list.is_null()) {
        let help = "add the Deployment of the operator";
        findings.push(csv.object.finding(&RULE.code, "there is no deployment to install", path).help(help));
    }
}
