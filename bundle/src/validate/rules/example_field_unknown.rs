use crate::finding::{Finding, Findings};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::schemas::each_example;
use crate::validate::{Rule, SCHEMA, rule};

rule!("example-field-unknown", Warning, SCHEMA, "example_field_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    each_example(facts, |csv, examples, gvk, checked| {
        for (problem, names) in checked.unknown {
            let key = problem.message.split('`').nth(1).unwrap_or_default();
            let help = did_you_mean(key, names.iter().map(String::as_str));
            let at = problem.place();
            findings.push(
                Finding::new(&RULE.code, format!("the example of `{gvk}`{at}: {}", problem.message))
                    .at(examples.place(csv, problem.span))
                    .subject(gvk.to_string())
                    .help(help.unwrap_or_else(|| "remove the field, or add it to the schema".into())),
            );
        }
    });
}
