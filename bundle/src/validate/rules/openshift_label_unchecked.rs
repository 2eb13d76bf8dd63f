use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{COMMUNITY, Rule, openshift};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "openshift-label-unchecked",
        level: Level::Warning,
        suite: COMMUNITY,
        docs: include_str!("openshift_label_unchecked.md"),
    },
    check,
};

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
