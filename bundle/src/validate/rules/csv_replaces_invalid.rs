use crate::finding::{Code, Findings, Level};
use crate::names::check_csv_name;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-replaces-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_replaces_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let replaces = csv.typed.spec.replaces.as_str();
    let Some(why) = check_csv_name(replaces).err().filter(|_| !replaces.is_empty()) else { return };
    let message = format!("`{replaces}` cannot name a ClusterServiceVersion: {why}");
    findings.push(
        csv.object
            .finding(&RULE.code, message, steps!("spec", "replaces"))
            .help("`spec.replaces` takes the `metadata.name` of the ClusterServiceVersion before this one"),
    );
}
