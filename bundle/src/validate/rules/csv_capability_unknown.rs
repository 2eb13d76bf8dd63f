use crate::csv::annotation::CAPABILITIES as KEY;
use crate::finding::Findings;
use crate::suggest::nearest;
use crate::validate::facts::Facts;
use crate::validate::{CAPABILITIES, Rule, rule};
use crate::yaml::steps;

rule!("csv-capability-unknown", Error, CAPABILITIES, "csv_capability_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let Some(level) = csv.typed.annotation(KEY).filter(|level| !LEVELS.contains(level)) else { return };
    let help = match nearest(level, LEVELS) {
        Some(level) => format!("did you mean `{level}`?"),
        None => format!("write `{}`", LEVELS.join("`, `")),
    };
    let message = format!("`{}` is not a capability level", level.replace('`', "'"));
    findings.push(csv.object.finding(&RULE.code, message, steps!("metadata", "annotations", KEY)).help(help));
}

const LEVELS: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
