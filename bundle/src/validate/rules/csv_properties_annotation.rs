use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("csv-properties-annotation", Warning, OLM, "csv_properties_annotation.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.annotation(PROPERTIES).is_some() {
        let finding = csv.object.finding_at_key(
            &RULE.code,
            format!("properties are set in the annotation `{PROPERTIES}`"),
            &["metadata", "annotations"],
            PROPERTIES,
        );
        findings.push(finding.help("list them in `metadata/properties.yaml`, under `properties`"));
    }
}
