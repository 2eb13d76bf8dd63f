use crate::csv::annotation::PROPERTIES;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::openshift::MaxVersion;
use crate::validate::{COMMUNITY, Rule, openshift, rule};
use crate::version::precedence;
use crate::yaml::steps;

rule!("openshift-max-version-too-high", Error, COMMUNITY, "openshift_max_version_too_high.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if let MaxVersion::Version(version) = openshift::max_version(csv)
        && openshift::is_major_minor(&version)
        && precedence(&version, &openshift::V4_9).is_ge()
    {
        let message = format!(
            "`olm.maxOpenShiftVersion` is `{version}`, but the bundle uses APIs that OpenShift 4.9 removed"
        );
        let finding = csv.object.finding(&RULE.code, message, steps!("metadata", "annotations", PROPERTIES));
        findings.push(finding.help("move to APIs that are served, or set the property to `4.8`"));
    }
}
