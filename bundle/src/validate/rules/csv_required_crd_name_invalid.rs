use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("csv-required-crd-name-invalid", Error, INSTALL, "csv_required_crd_name_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, required) in csv.typed.spec.custom_resource_definitions.required.iter().enumerate() {
        if required.group().is_none() {
            let path = steps!("spec", "customresourcedefinitions", "required", index, "name");
            let finding =
                csv.object.finding(&RULE.code, format!("`{}` is not `PLURAL.GROUP`", required.name), path);
            findings.push(
                finding.help("write the `metadata.name` of the CRD, such as `certificates.cert-manager.io`"),
            );
        }
    }
}
