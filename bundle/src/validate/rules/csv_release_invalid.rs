use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT};
use crate::version::Release;
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-release-invalid",
        level: Level::Warning,
        suite: STRICT,
        docs: include_str!("csv_release_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let release = csv.typed.spec.release.as_str();
    let Err(error) = Release::parse(release) else { return };
    findings.push(
        csv.object
            .finding(&RULE.code, error.to_string(), steps!("spec", "release"))
            .help("write what could follow `-` in a semantic version, such as `1` or `rc.2`"),
    );
}
