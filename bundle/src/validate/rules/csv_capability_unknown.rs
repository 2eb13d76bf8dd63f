use crate::csv::annotation::CAPABILITIES as KEY;
use crate::finding::{Code, Findings, Level};
use crate::suggest::nearest;
use crate::validate::facts::Facts;
use crate::validate::{CAPABILITIES, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-capability-unknown",
        level: Level::Error,
        suite: CAPABILITIES,
        docs: include_str!("csv_capability_unknown.md"),
    },
    check,
};

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
