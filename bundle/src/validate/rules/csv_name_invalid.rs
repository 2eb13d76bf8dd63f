use crate::finding::{Code, Findings, Level};
use crate::names::why_not_csv_name;
use crate::parse::Bundle;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-name-invalid",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("csv_name_invalid.md"),
    },
    check,
};

fn check(bundle: &Bundle<'_>, findings: &mut Findings) {
    let Some(csv) = bundle.csv() else { return };
    let name = csv.typed.name();
    if let Some(why) = why_not_csv_name(name) {
        let message = format!("`{name}` cannot name a ClusterServiceVersion: {why}");
        findings.push(
            csv.object
                .finding(&RULE.code, message, &["metadata".into(), "name".into()])
                .help("use `PACKAGE.vVERSION`, such as `redis-operator.v1.2.3`"),
        );
    }
}
