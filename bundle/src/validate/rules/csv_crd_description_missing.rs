use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-crd-description-missing",
        level: Level::Warning,
        suite: GOOD_PRACTICES,
        docs: include_str!("csv_crd_description_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let crds = &csv.typed.spec.custom_resource_definitions;
    for (list, crds) in [("owned", &crds.owned), ("required", &crds.required)] {
        for (index, crd) in crds.iter().enumerate().filter(|(_, crd)| crd.description.is_empty()) {
            let path = steps!("spec", "customresourcedefinitions", list, index, "name");
            findings.push(
                csv.object
                    .finding(&RULE.code, format!("the {list} `{}` has no description", crd.name), path)
                    .subject(crd.name.as_str())
                    .help("add `description`, a sentence about the custom resource"),
            );
        }
    }
}
