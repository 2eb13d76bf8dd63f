use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-link-incomplete", Error, OPERATORHUB, "csv_link_incomplete.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, link) in csv.typed.spec.links.iter().enumerate() {
        let missing = match (link.name.is_empty(), link.url.is_empty()) {
            (true, true) => "neither `name` nor `url`",
            (true, false) => "no `name`",
            (false, true) => "no `url`",
            (false, false) => continue,
        };
        let finding =
            csv.object.finding(&RULE.code, format!("a link has {missing}"), steps!("spec", "links", index));
        findings.push(finding.help("give both, or leave the link out"));
    }
}
