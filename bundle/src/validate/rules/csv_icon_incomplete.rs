use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-icon-incomplete", Error, OPERATORHUB, "csv_icon_incomplete.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let Some(icon) = csv.typed.spec.icon.first() else { return };
    let missing = match (icon.data.is_empty(), icon.media_type.is_empty()) {
        (true, true) => "neither `base64data` nor `mediatype`",
        (true, false) => "no `base64data`",
        (false, true) => "no `mediatype`",
        (false, false) => return,
    };
    let finding =
        csv.object.finding(&RULE.code, format!("the icon has {missing}"), steps!("spec", "icon", 0));
    findings.push(finding.help("give both, or remove `icon` as a whole"));
}
