use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("crd-type-mismatch", Error, OLM, "crd_type_mismatch.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, fit) in facts.crd_fits() {
        for misfit in &fit.misfits {
            let finding = Finding::new(&RULE.code, format!("`{}`: {}", misfit.path, misfit.message))
                .at(object.place_at(misfit.span))
                .subject(object.subject());
            findings.push(finding.help("use the type that Kubernetes expects for the field"));
        }
    }
}
