use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::schemas::each_example;
use crate::validate::{Rule, SCHEMA, rule};

rule!("example-against-schema", Warning, SCHEMA, "example_against_schema.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    each_example(facts, |csv, examples, gvk, checked| {
        for problem in checked.problems {
            let at = problem.place();
            let finding = Finding::new(
                &RULE.code,
                format!("the example of `{gvk}` does not fit its schema{at}: {}", problem.message),
            )
            .at(examples.place(csv, problem.span))
            .subject(gvk.to_string());
            findings.push(finding.help("correct the example, or the schema"));
        }
    });
}
