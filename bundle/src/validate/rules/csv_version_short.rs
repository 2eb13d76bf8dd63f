use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::version::{Version, parse_tolerant};
use crate::yaml::steps;

rule!("csv-version-short", Error, OLM, "csv_version_short.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let text = csv.typed.spec.version.as_str();
    let (Err(error), Ok(meant)) = (Version::parse(text), parse_tolerant(text)) else { return };
    let finding = csv.object.finding(
        &RULE.code,
        format!("`{text}` is not a full semantic version: {error}"),
        steps!("spec", "version"),
    );
    findings.push(finding.help(format!("write `{meant}`: catalogs accept no other form")));
}
