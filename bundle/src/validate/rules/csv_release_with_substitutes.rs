use crate::csv::annotation::SUBSTITUTES_FOR;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::yaml::steps;

rule!("csv-release-with-substitutes", Warning, STRICT, "csv_release_with_substitutes.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let substitutes = csv.typed.annotation(SUBSTITUTES_FOR).unwrap_or("");
    if csv.typed.spec.release.is_empty() || substitutes.is_empty() {
        return;
    }
    let message = format!("`spec.release` and the annotation `{SUBSTITUTES_FOR}` exclude each other");
    let finding = csv
        .object
        .finding(&RULE.code, message, steps!("spec", "release"))
        .and(csv.object.place(steps!("metadata", "annotations", SUBSTITUTES_FOR)));
    findings.push(finding.help("keep `spec.release`, which is the newer way to publish a version again"));
}
