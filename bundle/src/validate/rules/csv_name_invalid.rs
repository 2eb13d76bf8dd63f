use crate::finding::Findings;
use crate::names::check_csv_name;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-name-invalid", Error, OLM, "csv_name_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let name = csv.typed.name();
    let Err(why) = check_csv_name(name) else { return };
    let message = format!("`{name}` cannot name a ClusterServiceVersion: {why}");
    let finding = csv.object.finding(&RULE.code, message, steps!("metadata", "name"));
    findings.push(finding.help("use `PACKAGE.vVERSION`, such as `redis-operator.v1.2.3`"));
}
