use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule, rule};
use crate::yaml::{Node, steps};
use serde_json::Value;

rule!("openshift-max-version-twice", Error, OPENSHIFT, "openshift_max_version_twice.md");

const MAX_VERSION: &str = "olm.maxOpenShiftVersion";

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let text = csv.typed.annotation(PROPERTIES).unwrap_or("[]");
    let in_csv: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let in_files = facts.metadata().filter_map(|file| file.root()?.get("properties")?.as_sequence());
    let in_files = in_files.flatten().map(Node::to_json);
    let mut values: Vec<String> = in_csv
        .into_iter()
        .chain(in_files)
        .filter(|property| property["type"] == MAX_VERSION)
        .map(|property| property["value"].to_string())
        .collect();
    values.sort();
    // The same property of two places is one.
    values.dedup();
    if values.len() < 2 {
        return;
    }
    let message =
        format!("`{MAX_VERSION}` is set {} times: {}", values.len(), values.join(", ").replace('`', "'"));
    let finding = csv.object.finding(&RULE.code, message, steps!("metadata", "annotations", PROPERTIES));
    findings
        .push(finding.help("keep one of them: OpenShift cannot be upgraded while an operator has several"));
}
