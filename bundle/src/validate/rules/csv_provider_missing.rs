use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-provider-missing", Error, OPERATORHUB, "csv_provider_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.spec.provider.name.trim().is_empty() {
        findings.push(
            csv.object
                .finding(&RULE.code, "`spec.provider.name` is not set", steps!("spec", "provider", "name"))
                .help("name the person or company that provides the operator"),
        );
    }
}
