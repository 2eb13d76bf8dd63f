use crate::csv;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("csv-api-version-unknown", Warning, INSTALL, "csv_api_version_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let found = csv.typed.api_version.as_str();
    if found.is_empty() || found == csv::API_VERSION {
        return;
    }
    let message = format!("there are no ClusterServiceVersions in `{}`", found.replace('`', "'"));
    let finding = csv.object.finding(&RULE.code, message, steps!("apiVersion"));
    findings.push(finding.help(format!("write `apiVersion: {}`", csv::API_VERSION)));
}
