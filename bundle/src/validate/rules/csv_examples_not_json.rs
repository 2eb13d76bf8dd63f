use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::examples::Unreadable;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-examples-not-json",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_examples_not_json.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    let Err(Unreadable::NotJson(problem)) = &examples.list else { return };
    let message = format!("`{}` is not JSON: {}", examples.key, problem.message);
    findings.push(
        Finding::new(&RULE.code, message)
            .at(examples.place(csv, problem.span))
            .subject(csv.object.subject())
            .help("JSON wants double quotes around keys and strings, and no comma after the last entry"),
    );
}
