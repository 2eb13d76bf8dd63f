use crate::finding::{Finding, Findings};
use crate::validate::examples::Unreadable;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("csv-examples-not-objects", Error, OLM, "csv_examples_not_objects.md");

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
