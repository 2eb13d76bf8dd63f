use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-icon-missing", Warning, OPERATORHUB, "csv_icon_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let path = steps!("spec", "icon");
    if csv.object.root.at_folded(path).is_none_or(|icon| icon.is_null()) {
        let help = "add one icon with `base64data` and `mediatype`";
        findings.push(csv.object.finding(&RULE.code, "`spec.icon` is not set", path).help(help));
    }
}
