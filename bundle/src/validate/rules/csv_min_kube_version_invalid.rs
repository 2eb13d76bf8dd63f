use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::version::Version;
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-min-kube-version-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_min_kube_version_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let version = csv.typed.spec.min_kube_version.as_str();
    let Err(error) = Version::parse(version) else { return };
    if version.trim().is_empty() {
        return;
    }
    findings.push(
        csv.object
            .finding(
                &RULE.code,
                format!("`{version}` is not a semantic version: {error}"),
                steps!("spec", "minKubeVersion"),
            )
            .help("write all three numbers and no `v`, such as `1.25.0`"),
    );
}
