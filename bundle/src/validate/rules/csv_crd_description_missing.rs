use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule, rule};
use crate::yaml::steps;

rule!("csv-crd-description-missing", Warning, GOOD_PRACTICES, "csv_crd_description_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let crds = &csv.typed.spec.custom_resource_definitions;
    for (list, crds) in [("owned", &crds.owned), ("required", &crds.required)] {
        for (index, crd) in crds.iter().enumerate().filter(|(_, crd)| crd.description.is_empty()) {
            let path = |field: &'static str| {
                steps!("spec", "customresourcedefinitions", list, index, field).to_owned()
            };
            let place = csv.object.place(&path("name")).made_by(csv.object.made_by(&path("description")));
            let finding = Finding::new(&RULE.code, format!("the {list} `{}` has no description", crd.name))
                .at(place)
                .subject(if crd.name.is_empty() { csv.object.id() } else { crd.name.clone() });
            findings.push(finding.help("add `description`, a sentence about the custom resource"));
        }
    }
}
