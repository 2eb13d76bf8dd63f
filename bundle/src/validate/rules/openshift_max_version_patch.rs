use crate::csv::annotation::PROPERTIES;
use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::openshift::MaxVersion;
use crate::validate::{COMMUNITY, Rule, openshift};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "openshift-max-version-patch",
        level: Level::Warning,
        suite: COMMUNITY,
        docs: include_str!("openshift_max_version_patch.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if let MaxVersion::Version(version) = openshift::max_version(csv)
        && !openshift::is_major_minor(&version)
    {
        let message = format!(
            "`olm.maxOpenShiftVersion` is `{version}`, of which `{}.{}` counts",
            version.major, version.minor
        );
        findings.push(
            csv.object
                .finding(&RULE.code, message, steps!("metadata", "annotations", PROPERTIES))
                .help("write two numbers"),
        );
    }
}
