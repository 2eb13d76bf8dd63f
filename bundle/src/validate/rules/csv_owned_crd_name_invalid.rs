use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-owned-crd-name-invalid", Error, OLM, "csv_owned_crd_name_invalid.md");

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
