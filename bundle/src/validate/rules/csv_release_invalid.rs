use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT};
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
    let Some(why) = release_problem(release).filter(|_| !release.is_empty()) else { return };
    findings.push(
        csv.object
            .finding(&RULE.code, format!("`{release}` is not a release: {why}"), steps!("spec", "release"))
            .help("write what could follow `-` in a semantic version, such as `1` or `rc.2`"),
    );
}

fn release_problem(release: &str) -> Option<&'static str> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_padded =
        |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit());
    if release.len() > 20 {
        Some("it is longer than 20 characters")
    } else if release.split('.').any(|part| part.is_empty() || !part.chars().all(is_inner)) {
        Some("its parts between dots are letters, digits and `-`")
    } else if release.split('.').any(is_padded) {
        Some("a number in it starts with zero")
    } else {
        None
    }
}
