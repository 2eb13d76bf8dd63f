use std::collections::BTreeSet;

use crate::csv::GroupVersionKind;
use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-example-without-api",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_example_without_api.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    let Ok(list) = &examples.list else { return };
    let provided: BTreeSet<&GroupVersionKind> = facts.provided_apis().iter().map(|api| &api.gvk).collect();
    for example in list.iter().filter(|example| !provided.contains(&example.gvk)) {
        let gvk = &example.gvk;
        findings.push(
            Finding::new(&RULE.code, format!("`{gvk}` has an example but is not an owned API"))
                .at(examples.place(csv, example.span))
                .subject(gvk.to_string())
                .help("list it under `spec.customresourcedefinitions.owned`, or remove the example"),
        );
    }
}
