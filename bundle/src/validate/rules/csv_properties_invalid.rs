use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::property::why_unreadable;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use serde_json::Value;

rule!("csv-properties-invalid", Error, INSTALL, "csv_properties_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let text = csv.typed.annotation(PROPERTIES).unwrap_or("");
    if text.is_empty() {
        return;
    }
    let why = match serde_json::from_str::<Value>(text) {
        Err(error) => format!("it is not JSON: {}", error.to_string().replace('`', "'")),
        Ok(Value::Null) => return,
        Ok(Value::Array(items)) => match items.iter().find_map(why_unreadable) {
            Some(why) => why,
            None => return,
        },
        Ok(_) => "it is no list".to_owned(),
    };
    let message = format!("the annotation `{PROPERTIES}` cannot be read: {why}");
    let finding = csv.object.finding_at_key(&RULE.code, message, &["metadata", "annotations"], PROPERTIES);
    findings
        .push(finding.help("list the properties in `metadata/properties.yaml`, and remove the annotation"));
}
