use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::version::Version;
use crate::yaml::steps;

rule!("csv-min-kube-version-invalid", Error, OLM, "csv_min_kube_version_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let version = csv.typed.spec.min_kube_version.as_str();
    let Err(error) = Version::parse(version) else { return };
    if version.trim().is_empty() {
        return;
    }
    let finding = csv.object.finding(
        &RULE.code,
        format!("`{version}` is not a semantic version: {error}"),
        steps!("spec", "minKubeVersion"),
    );
    findings.push(finding.help("write all three numbers and no `v`, such as `1.25.0`"));
}
