use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{COMMUNITY, Rule, openshift, rule};
use crate::yaml::steps;

rule!("openshift-label-unchecked", Warning, COMMUNITY, "openshift_label_unchecked.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| openshift::needs_4_8(facts)) else { return };
    if facts.options.index_image.is_none() {
        findings.push(
            csv.object
                .finding(
                    &RULE.code,
                    "whether the image is kept off OpenShift 4.9, which removed APIs that the bundle uses, is not known",
                    steps!("metadata", "name"),
                )
                .help("name the Dockerfile of the bundle with `--index-path`, or move to APIs that are served"),
        );
    }
}
