use crate::csv::{API_VERSION, GroupVersionKind};
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-api-version-missing",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_api_version_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let api_version = csv.typed.api_version.as_str();
    if GroupVersionKind::parse(api_version, "").is_some_and(|gvk| !gvk.version.is_empty()) {
        return;
    }
    let message = match api_version {
        "" => "the ClusterServiceVersion has no `apiVersion`".to_owned(),
        text => format!("`{text}` is not an API version"),
    };
    findings.push(
        csv.object
            .finding(&RULE.code, message, steps!("apiVersion"))
            .help(format!("write `apiVersion: {API_VERSION}`")),
    );
}
