use std::collections::BTreeSet;

use crate::csv::GroupVersionKind;
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("csv-example-without-api", Error, OLM, "csv_example_without_api.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    let Ok(list) = &examples.list else { return };
    let provided: BTreeSet<&GroupVersionKind> = facts.provided_apis().iter().map(|api| &api.gvk).collect();
    for example in list.iter().filter(|example| !provided.contains(&example.gvk)) {
        // An `apiVersion` with more than one slash names no API at all.
        let (message, subject) = match &example.gvk {
            gvk if gvk.kind.is_empty() => {
                ("an example has a malformed `apiVersion`".into(), csv.object.subject())
            }
            gvk => (format!("`{gvk}` has an example but is not an owned API"), gvk.to_string()),
        };
        let finding =
            Finding::new(&RULE.code, message).at(examples.place(csv, example.span)).subject(subject);
        findings.push(
            finding.help("list it under `spec.customresourcedefinitions.owned`, or remove the example"),
        );
    }
}
