use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{REMOVED_APIS, Rule, rule};
use crate::version::parse_tolerant;
use crate::yaml::steps;

rule!("removed-api-version-unreadable", Error, REMOVED_APIS, "removed_api_version_unreadable.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let version = csv.typed.spec.min_kube_version.as_str();
    if !version.is_empty() && parse_tolerant(version).is_err() {
        let message = format!(
            "`{}` is not a version, so that removed APIs cannot be weighed",
            version.replace('`', "'")
        );
        let finding = csv.object.finding(&RULE.code, message, steps!("spec", "minKubeVersion"));
        findings.push(finding.help("write all three numbers, such as `1.25.0`"));
    }
}
