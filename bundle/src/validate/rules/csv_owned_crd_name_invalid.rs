use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-owned-crd-name-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_owned_crd_name_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        if owned.group().is_none() {
            let path = steps!("spec", "customresourcedefinitions", "owned", index, "name");
            findings.push(
                csv.object
                    .finding(&RULE.code, format!("`{}` is not `PLURAL.GROUP`", owned.name), path)
                    .help("write the `metadata.name` of the CRD, such as `redisclusters.cache.example.com`"),
            );
        }
    }
}
