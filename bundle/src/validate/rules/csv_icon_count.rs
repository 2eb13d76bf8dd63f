use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::{Node, steps};

rule!("csv-icon-count", Error, OPERATORHUB, "csv_icon_count.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let path = steps!("spec", "icon");
    let Some(icons) = csv.object.root.at_folded(path).and_then(Node::as_sequence) else { return };
    if icons.len() != 1 {
        let message = format!("`spec.icon` has {} icons, expected one", icons.len());
        let finding = csv.object.finding(&RULE.code, message, path);
        findings.push(finding.help("keep one, or remove `icon` as a whole"));
    }
}
