use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-link-incomplete",
        level: Level::Error,
        suite: OPERATORHUB,
        docs: include_str!("csv_link_incomplete.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, link) in csv.typed.spec.links.iter().enumerate() {
        let missing = match (link.name.is_empty(), link.url.is_empty()) {
            (true, true) => "neither `name` nor `url`",
            (true, false) => "no `name`",
            (false, true) => "no `url`",
            (false, false) => continue,
        };
        findings.push(
            csv.object
                .finding(&RULE.code, format!("a link has {missing}"), steps!("spec", "links", index))
                .help("give both, or leave the link out"),
        );
    }
}
