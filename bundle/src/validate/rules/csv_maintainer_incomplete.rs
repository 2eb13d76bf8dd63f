use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-maintainer-incomplete", Error, OPERATORHUB, "csv_maintainer_incomplete.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, maintainer) in csv.typed.spec.maintainers.iter().enumerate() {
        let missing = match (maintainer.name.is_empty(), maintainer.email.is_empty()) {
            (true, true) => "neither `name` nor `email`",
            (true, false) => "no `name`",
            (false, true) => "no `email`",
            (false, false) => continue,
        };
        let finding = csv.object.finding(
            &RULE.code,
            format!("a maintainer has {missing}"),
            steps!("spec", "maintainers", index),
        );
        findings.push(finding.help("give both, or leave the maintainer out"));
    }
}
