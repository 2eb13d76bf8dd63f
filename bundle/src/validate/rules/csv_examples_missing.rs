use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-examples-missing", Warning, OLM, "csv_examples_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let annotations = csv.typed.metadata.annotations.as_ref();
    if facts.examples().is_none() && annotations.is_some_and(|annotations| !annotations.is_empty()) {
        let finding = csv.object.finding(
            &RULE.code,
            "there are no examples of custom resources",
            steps!("metadata", "annotations", "alm-examples"),
        );
        findings.push(finding.help(
            "add the annotation `alm-examples`: a JSON list with one example of each owned custom resource",
        ));
    }
}
