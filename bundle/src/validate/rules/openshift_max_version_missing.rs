use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::openshift::MaxVersion;
use crate::validate::{COMMUNITY, Rule, openshift, rule};
use crate::yaml::steps;

rule!("openshift-max-version-missing", Error, COMMUNITY, "openshift_max_version_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if matches!(openshift::max_version(csv), MaxVersion::Absent) {
        let finding = csv.object
                .finding(
                    &RULE.code,
                    "the property `olm.maxOpenShiftVersion` is not set, but the bundle uses APIs that OpenShift 4.9 removed",
                    steps!("metadata", "annotations", PROPERTIES),
                );
        findings.push(finding.help("move to APIs that are served, or set the property to `4.8`"));
    }
}
