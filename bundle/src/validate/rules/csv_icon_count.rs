use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule};
use crate::yaml::{Node, steps};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-icon-count",
        level: Level::Error,
        suite: OPERATORHUB,
        docs: include_str!("csv_icon_count.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let path = steps!("spec", "icon");
    let Some(icons) = csv.object.root.at_folded(path).and_then(Node::as_sequence) else { return };
    if icons.len() != 1 {
        let message = format!("`spec.icon` has {} icons, expected one", icons.len());
        findings.push(
            csv.object.finding(&RULE.code, message, path).help("keep one, or remove `icon` as a whole"),
        );
    }
}
