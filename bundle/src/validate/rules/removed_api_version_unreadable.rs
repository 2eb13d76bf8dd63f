use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{REMOVED_APIS, Rule};
use crate::version::parse_tolerant;
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "removed-api-version-unreadable",
        level: Level::Error,
        suite: REMOVED_APIS,
        docs: include_str!("removed_api_version_unreadable.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let version = csv.typed.spec.min_kube_version.as_str();
    if !version.is_empty() && parse_tolerant(version).is_err() {
        let message = format!(
            "`{}` is not a version, so that removed APIs cannot be weighed",
            version.replace('`', "'")
        );
        findings.push(
            csv.object
                .finding(&RULE.code, message, steps!("spec", "minKubeVersion"))
                .help("write all three numbers, such as `1.25.0`"),
        );
    }
}
