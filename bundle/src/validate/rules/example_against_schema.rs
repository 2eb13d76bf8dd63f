use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::schemas::each_example;
use crate::validate::{Rule, SCHEMA};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "example-against-schema",
        level: Level::Warning,
        suite: SCHEMA,
        docs: include_str!("example_against_schema.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    each_example(facts, |csv, examples, gvk, checked| {
        for problem in checked.problems {
            let at = problem.place();
            findings.push(
                Finding::new(
                    &RULE.code,
                    format!("the example of `{gvk}` does not fit its schema{at}: {}", problem.message),
                )
                .at(examples.place(csv, problem.span))
                .subject(gvk.to_string())
                .help("correct the example, or the schema"),
            );
        }
    });
}
