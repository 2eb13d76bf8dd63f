use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-min-kube-version-missing",
        level: Level::Warning,
        suite: OLM,
        docs: include_str!("csv_min_kube_version_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.spec.min_kube_version.trim().is_empty() {
        findings.push(
            csv.object
                .finding(&RULE.code, "`spec.minKubeVersion` is not set", steps!("spec", "minKubeVersion"))
                .help(
                    "name the oldest Kubernetes that the operator runs on, such as `minKubeVersion: 1.25.0`",
                ),
        );
    }
}
