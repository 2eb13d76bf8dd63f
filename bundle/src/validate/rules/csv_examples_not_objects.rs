use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::examples::Unreadable;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-examples-not-objects",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_examples_not_objects.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    let Err(Unreadable::NotObjects(problems)) = &examples.list else { return };
    for problem in problems {
        findings.push(
            Finding::new(&RULE.code, format!("`{}` cannot be read: {}", examples.key, problem.message))
                .at(examples.place(csv, problem.span))
                .subject(csv.object.subject())
                .help("the annotation is a JSON list of custom resources, each with `apiVersion` and `kind`"),
        );
    }
}
