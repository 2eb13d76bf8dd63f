use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::version::Release;
use crate::yaml::steps;

rule!("csv-release-invalid", Warning, STRICT, "csv_release_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let release = csv.typed.spec.release.as_str();
    let Err(error) = Release::parse(release) else { return };
    let finding = csv.object.finding(&RULE.code, error.to_string(), steps!("spec", "release"));
    findings.push(finding.help("write what could follow `-` in a semantic version, such as `1` or `rc.2`"));
}
