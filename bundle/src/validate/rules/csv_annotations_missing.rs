use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-annotations-missing", Warning, OLM, "csv_annotations_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.metadata.annotations.as_ref().is_none_or(|annotations| annotations.is_empty()) {
        let finding = csv.object.finding(
            &RULE.code,
            "the ClusterServiceVersion has no annotations",
            steps!("metadata", "annotations"),
        );
        findings.push(
            finding.help(
                "add `metadata.annotations`; `alm-examples` is the one that OLM's tools look for first",
            ),
        );
    }
}
