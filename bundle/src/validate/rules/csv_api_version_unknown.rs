use crate::csv;
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-api-version-unknown",
        level: Level::Warning,
        suite: INSTALL,
        docs: include_str!("csv_api_version_unknown.md"),
    },
    check,
};

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
