use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::version::{Version, parse_tolerant};
use crate::yaml::steps;

rule!("csv-version-missing", Error, OPERATORHUB, "csv_version_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let version = csv.typed.spec.version.as_str();
    let is_zero = || {
        parse_tolerant(version).is_ok_and(|version| version.cmp_precedence(&Version::new(0, 0, 0)).is_eq())
    };
    if version.is_empty() || is_zero() {
        let finding = csv.object.finding(&RULE.code, "`spec.version` is not set", steps!("spec", "version"));
        findings.push(finding.help("set it to the version of the operator, such as `0.1.0`"));
    }
}
