use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "manifests-missing",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("manifests_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    if facts.manifests().next().is_none() {
        findings.push(
            Finding::new(&RULE.code, "there are no files in `manifests/`")
                .at(facts.place())
                .subject(facts.name)
                .help("put the ClusterServiceVersion and the CRDs into `manifests/`, right below the bundle's directory"),
        );
    }
}
