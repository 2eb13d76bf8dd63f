use crate::csv::{self, GroupVersionKind};
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-api-version-missing", Error, OLM, "csv_api_version_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv_object() else { return };
    let node = csv.root.at_folded(steps!("apiVersion")).filter(|node| !node.is_null());
    let message = match node.map(|node| (node.as_str(), &node.value)) {
        None | Some((Some(""), _)) => "the ClusterServiceVersion has no `apiVersion`".to_owned(),
        Some((None, value)) => format!("`apiVersion` is {value}, expected a string"),
        // More than one slash is `manifest-kind-missing`.
        Some((Some(text), _)) => match GroupVersionKind::parse(text, csv::KIND) {
            Some(gvk) if gvk.version.is_empty() => format!("`{text}` has no version"),
            _ => return,
        },
    };
    let finding = csv.finding(&RULE.code, message, steps!("apiVersion"));
    findings.push(finding.help(format!("write `apiVersion: {}`", csv::API_VERSION)));
}
