use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-min-kube-version-missing", Warning, OLM, "csv_min_kube_version_missing.md");

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
