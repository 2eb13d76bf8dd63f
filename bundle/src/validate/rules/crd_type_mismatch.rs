use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "crd-type-mismatch",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("crd_type_mismatch.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, fit) in facts.crd_fits() {
        for misfit in &fit.misfits {
            findings.push(
                Finding::new(&RULE.code, format!("`{}`: {}", misfit.path, misfit.message))
                    .at(object.place_at(misfit.span))
                    .subject(object.subject())
                    .help("use the type that Kubernetes expects for the field"),
            );
        }
    }
}
