use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::go;
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
        Ok(Value::Array(items)) if items.iter().all(is_property) => return,
        Ok(Value::Array(_)) => "an entry is no map with a `type`, which is text".to_owned(),
        Ok(_) => "it is no list".to_owned(),
    };
    let message = format!("the annotation `{PROPERTIES}` cannot be read: {why}");
    let finding = csv.object.finding_at_key(&RULE.code, message, &["metadata", "annotations"], PROPERTIES);
    findings
        .push(finding.help("list the properties in `metadata/properties.yaml`, and remove the annotation"));
}

/// Whether a value is a property as Go reads it.
fn is_property(item: &Value) -> bool {
    item.is_object() && matches!(go::value_of(item, "type"), None | Some(Value::String(_) | Value::Null))
}
