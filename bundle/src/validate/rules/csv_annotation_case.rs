use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("csv-annotation-case", Error, OLM, "csv_annotation_case.md");

/// Annotations whose case OLM's tools check, all of them read by OLM itself.
const KEYS: [&str; 5] = [
    "olm.operatorGroup",
    "olm.operatorNamespace",
    "olm.providedAPIs",
    "olm.skipRange",
    "olm.targetNamespaces",
];

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for key in csv.typed.metadata.annotations.iter().flatten().map(|(key, _)| key) {
        let lower = key.to_lowercase();
        let Some(right) = KEYS.into_iter().find(|known| known.to_lowercase() == lower && known != key) else {
            continue;
        };
        let message = format!("`{key}` is not `{right}`: the key is case-sensitive");
        let finding = csv.object.finding_at_key(&RULE.code, message, &["metadata", "annotations"], key);
        findings.push(finding.help(format!("write `{right}`")));
    }
}
