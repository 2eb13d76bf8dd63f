use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("csv-replaces-itself", Error, INSTALL, "csv_replaces_itself.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let (name, spec) = (csv.typed.name(), &csv.typed.spec);
    if name.is_empty() {
        return;
    }
    let shown = name.replace('`', "'");
    if spec.replaces == name {
        let finding =
            csv.object.finding(&RULE.code, format!("`{shown}` replaces itself"), steps!("spec", "replaces"));
        findings.push(finding.help("name the version before it, or remove `spec.replaces`"));
    }
    if let Some(at) = spec.skips.iter().position(|skipped| skipped == name) {
        let path = steps!("spec", "skips", at);
        let finding = csv.object.finding(&RULE.code, format!("`{shown}` skips itself"), path);
        findings.push(finding.help("remove it from `spec.skips`"));
    }
}
