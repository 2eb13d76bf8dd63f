use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("csv-strategy-unknown", Error, INSTALL, "csv_strategy_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let strategy = csv.typed.spec.install.strategy.as_str();
    // One that is missing is `csv-field-missing`.
    if strategy.is_empty() || strategy == STRATEGY {
        return;
    }
    let message = format!("there is no install strategy `{}`", strategy.replace('`', "'"));
    let finding = csv.object.finding(&RULE.code, message, steps!("spec", "install", "strategy"));
    findings.push(finding.help(format!("write `strategy: {STRATEGY}`")));
}

/// The only strategy that OLM knows.
const STRATEGY: &str = "deployment";
