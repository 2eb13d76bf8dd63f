use crate::csv::annotation::{ALM_EXAMPLES, OLM_EXAMPLES};
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-examples-ambiguous",
        level: Level::Warning,
        suite: OLM,
        docs: include_str!("csv_examples_ambiguous.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.annotation(ALM_EXAMPLES).is_none() || csv.typed.annotation(OLM_EXAMPLES).is_none() {
        return;
    }
    let message = format!("`{OLM_EXAMPLES}` is ignored, because there is also `{ALM_EXAMPLES}`");
    findings.push(
        csv.object
            .finding(&RULE.code, message, steps!("metadata", "annotations", OLM_EXAMPLES))
            .and(csv.object.place(steps!("metadata", "annotations", ALM_EXAMPLES)).label("this one counts"))
            .help("keep one of the two"),
    );
}
