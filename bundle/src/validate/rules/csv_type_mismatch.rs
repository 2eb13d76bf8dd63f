use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-type-mismatch",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_type_mismatch.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some((csv, error)) = facts.csv_error() else { return };
    findings.push(
        Finding::new(&RULE.code, format!("the ClusterServiceVersion cannot be read: {error}"))
            .at(csv.place_at(error.span.unwrap_or(csv.root.span)))
            .subject(csv.subject())
            .help("give the field the type that OLM knows it by; until then no other rule can look at the file"),
    );
}
