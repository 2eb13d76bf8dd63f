use std::collections::BTreeSet;

use crate::csv::GroupVersionKind;
use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-api-without-example", Warning, OLM, "csv_api_without_example.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    let Ok(list) = &examples.list else { return };
    let mut seen: BTreeSet<&GroupVersionKind> = list.iter().map(|example| &example.gvk).collect();
    for api in facts.provided_apis() {
        // Inserting tells whether it is new, so an API that is listed twice is reported once.
        if !seen.insert(&api.gvk) {
            continue;
        }
        let place = csv.object.place(steps!("spec", api.list, "owned", api.index, "kind"));
        let finding = Finding::new(&RULE.code, format!("`{}` has no example", api.gvk))
            .at(place.made_by(csv.object.made_by(steps!("metadata", "annotations", examples.key))))
            .subject(api.gvk.to_string());
        findings.push(finding.help(format!("add one to the annotation `{}`", examples.key)));
    }
}
