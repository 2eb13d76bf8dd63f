use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{COMMUNITY, Rule, openshift, rule};
use crate::yaml::steps;

rule!("openshift-label-invalid", Error, COMMUNITY, "openshift_label_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    let Some(text) = &facts.options.index_image else { return };
    if let Some(why) = openshift::reason_not_kept_off_4_9(text) {
        findings.push(csv.object.finding(&RULE.code, why, steps!("metadata", "name")).help(
            "write `LABEL com.redhat.openshift.versions=\"v4.6-v4.8\"`, or move to APIs that are served",
        ));
    }
}
