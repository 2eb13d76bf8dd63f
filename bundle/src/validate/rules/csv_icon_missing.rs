use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-icon-missing",
        level: Level::Warning,
        suite: OPERATORHUB,
        docs: include_str!("csv_icon_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let path = steps!("spec", "icon");
    if csv.object.root.at_folded(path).is_none_or(|icon| icon.is_null()) {
        let help = "add one icon with `base64data` and `mediatype`";
        findings.push(csv.object.finding(&RULE.code, "`spec.icon` is not set", path).help(help));
    }
}
