use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::version::parse_tolerant;
use crate::yaml::steps;

rule!("csv-version-invalid", Error, OLM, "csv_version_invalid.md");

const HELP: &str = "write all three numbers and no `v`, such as `1.2.3`";

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    // The document, not the typed value: there a number would already be text.
    let Some(csv) = facts.csv_object() else { return };
    let path = steps!("spec", "version");
    let Some(node) = csv.root.at_folded(path).filter(|node| !node.is_null()) else {
        let message = "`spec.version` is missing, and catalogs take no bundle without a version";
        return findings.push(csv.finding(&RULE.code, message, path).help(HELP));
    };
    let (message, help) = match node.as_str().map(|text| (text, parse_tolerant(text))) {
        Some((_, Ok(_))) => return,
        Some(("", _)) => ("`spec.version` is empty".into(), HELP),
        Some((text, Err(error))) => {
            let message = format!("`{text}` is not a semantic version: {error}");
            (message, HELP)
        }
        None => {
            let message = format!("`spec.version` is {}, expected a string", node.value);
            (message, "put the version in quotes")
        }
    };
    findings.push(csv.finding(&RULE.code, message, path).help(help));
}
