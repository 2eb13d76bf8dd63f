use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::openshift::MaxVersion;
use crate::validate::{COMMUNITY, Rule, openshift, rule};
use crate::yaml::steps;

rule!("openshift-max-version-patch", Warning, COMMUNITY, "openshift_max_version_patch.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if let MaxVersion::Version(version) = openshift::max_version(csv)
        && !openshift::is_major_minor(&version)
    {
        let message = format!(
            "`olm.maxOpenShiftVersion` is `{version}`, of which `{}.{}` counts",
            version.major, version.minor
        );
        let finding = csv.object.finding(&RULE.code, message, steps!("metadata", "annotations", PROPERTIES));
        findings.push(finding.help("write two numbers"));
    }
}
