use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-annotations-missing",
        level: Level::Warning,
        suite: OLM,
        docs: include_str!("csv_annotations_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if csv.typed.metadata.annotations.as_ref().is_none_or(|annotations| annotations.is_empty()) {
        findings.push(
            csv.object
                .finding(
                    &RULE.code,
                    "the ClusterServiceVersion has no annotations",
                    steps!("metadata", "annotations"),
                )
                .help(
                    "add `metadata.annotations`; `alm-examples` is the one that OLM's tools look for first",
                ),
        );
    }
}
