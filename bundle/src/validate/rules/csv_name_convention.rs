use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-name-convention",
        level: Level::Warning,
        suite: GOOD_PRACTICES,
        docs: include_str!("csv_name_convention.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let name = csv.typed.name();
    if name.matches(".v").count() != 1 {
        let message = format!("`{name}` is not an operator's name, `.v` and a version");
        let help = "name it `NAME.vX.Y.Z`, such as `redis-operator.v0.1.0`";
        findings.push(csv.object.finding(&RULE.code, message, steps!("metadata", "name")).help(help));
    }
}
