use crate::finding::{Finding, Findings};
use crate::validate::examples::Unreadable;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("csv-examples-not-json", Error, OLM, "csv_examples_not_json.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    let Err(Unreadable::NotJson(problem)) = &examples.list else { return };
    let message = format!("`{}` is not JSON: {}", examples.key, problem.message);
    let finding =
        Finding::new(&RULE.code, message).at(examples.place(csv, problem.span)).subject(csv.object.subject());
    findings.push(
        finding.help("JSON wants double quotes around keys and strings, and no comma after the last entry"),
    );
}
