use crate::csv::annotation::{ALM_EXAMPLES, OLM_EXAMPLES};
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-examples-ambiguous", Warning, OLM, "csv_examples_ambiguous.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.annotation(ALM_EXAMPLES).is_none() || csv.typed.annotation(OLM_EXAMPLES).is_none() {
        return;
    }
    let message = format!("`{OLM_EXAMPLES}` is ignored, because there is also `{ALM_EXAMPLES}`");
    let finding = csv
        .object
        .finding(&RULE.code, message, steps!("metadata", "annotations", OLM_EXAMPLES))
        .and(csv.object.place(steps!("metadata", "annotations", ALM_EXAMPLES)).label("this one counts"));
    findings.push(finding.help("keep one of the two"));
}
