use crate::crd::Crd;
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::schema::{Schema, value};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, crds, rule};

rule!("schema-default-invalid", Error, INSTALL, "schema_default_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    crds::each_crd(facts, of_crd, findings);
}

/// What is wrong with the defaults of a CRD.
pub(in crate::validate) fn of_crd(object: Object<'_, '_>, crd: Crd<'_, '_>, findings: &mut Findings) {
    for schema in crd.versions().iter().filter_map(|version| crd.schema(version)) {
        Schema(schema).each_with_default(&mut |schema| {
            let Some(default) = schema.get("default") else { return };
            let checked = value::check(default, schema, schema.flag("x-kubernetes-embedded-resource"));
            let unknown = checked.unknown.into_iter().map(|(problem, _)| problem);
            for problem in checked.problems.into_iter().chain(unknown) {
                let at = problem.place();
                let finding = Finding::new(
                    &RULE.code,
                    format!("the default does not fit its schema{at}: {}", problem.message),
                )
                .at(object.place_at(problem.span))
                .subject(object.subject());
                findings.push(finding.help("correct the default or the schema"));
            }
        });
    }
}
