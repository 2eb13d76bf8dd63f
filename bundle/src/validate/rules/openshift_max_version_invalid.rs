use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::openshift::MaxVersion;
use crate::validate::{COMMUNITY, Rule, openshift, rule};
use crate::yaml::steps;

rule!("openshift-max-version-invalid", Error, COMMUNITY, "openshift_max_version_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if let MaxVersion::Invalid(why) = openshift::max_version(csv) {
        let finding = csv.object.finding(&RULE.code, why, steps!("metadata", "annotations", PROPERTIES));
        findings.push(finding.help("write `[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": \"4.8\"}]`"));
    }
}
