use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::Step;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "dependency-unreadable",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("dependency_unreadable.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for dependency in facts.dependencies() {
        let Err(unreadable) = &dependency.value else { continue };
        let path: Vec<_> = unreadable.path.iter().map(|key| Step::from(*key)).collect();
        findings.push(
            dependency
                .finding(&RULE.code, unreadable.message.as_str(), &path)
                .help("a dependency has a `type`, one of `olm.package`, `olm.gvk`, `olm.label` and `olm.constraint`, and a `value` that fits it"),
        );
    }
}
