use crate::csv::annotation::PROPERTIES;
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::openshift::MaxVersion;
use crate::validate::{COMMUNITY, Rule, openshift};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "openshift-max-version-missing",
        level: Level::Error,
        suite: COMMUNITY,
        docs: include_str!("openshift_max_version_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if matches!(openshift::max_version(csv), MaxVersion::Absent) {
        findings.push(
            csv.object
                .finding(
                    &RULE.code,
                    "the property `olm.maxOpenShiftVersion` is not set, but the bundle uses APIs that OpenShift 4.9 removed",
                    steps!("metadata", "annotations", PROPERTIES),
                )
                .help("move to APIs that are served, or set the property to `4.8`"),
        );
    }
}
