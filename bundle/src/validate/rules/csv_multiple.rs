use crate::csv;
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-multiple",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_multiple.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let mut csvs = facts.objects().filter(|object| object.kind() == csv::KIND);
    let Some(first) = csvs.next() else { return };
    for csv in csvs {
        findings.push(
            csv.finding(
                &RULE.code,
                "a bundle has one ClusterServiceVersion, this is another",
                steps!("kind"),
            )
            .and(first.place(steps!("kind")).label("the first one"))
            .help("keep the ClusterServiceVersion of this version, and remove the others"),
        );
    }
}
