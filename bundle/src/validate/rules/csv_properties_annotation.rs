use crate::csv::annotation::PROPERTIES;
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-properties-annotation",
        level: Level::Warning,
        suite: OLM,
        docs: include_str!("csv_properties_annotation.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.annotation(PROPERTIES).is_some() {
        findings.push(
            csv.object
                .finding_at_key(
                    &RULE.code,
                    format!("properties are set in the annotation `{PROPERTIES}`"),
                    &["metadata", "annotations"],
                    PROPERTIES,
                )
                .help("list them in `metadata/properties.yaml`, under `properties`"),
        );
    }
}
