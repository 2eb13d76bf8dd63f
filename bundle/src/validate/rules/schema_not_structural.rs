use crate::crd::Crd;
use crate::finding::{Code, Finding, Findings, Level};
use crate::schema::{Schema, structural};
use crate::validate::facts::Facts;
use crate::validate::{Rule, SCHEMA};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "schema-not-structural",
        level: Level::Warning,
        suite: SCHEMA,
        docs: include_str!("schema_not_structural.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    // Clusters ask it of CRDs of the older API only where unknown fields are dropped.
    let asked = |crd: Crd<'_, '_>| crd.is_v1() || !crd.preserves_unknown_fields();
    for (object, crd) in facts.readable_crds().filter(|(_, crd)| asked(*crd)) {
        for (index, version) in crd.versions().iter().enumerate() {
            let Some(schema) = crd.schema(version) else {
                let path = steps!("spec", "versions", index, "name");
                let message = format!("the version `{}` has no schema", version.name);
                findings.push(object.finding(&RULE.code, message, path).help("add `schema.openAPIV3Schema`"));
                continue;
            };
            let subresources = crd.of_version(version, "subresources");
            let has_status =
                subresources.and_then(|of| of.get("status")).is_some_and(|status| !status.is_null());
            let beside_status = structural::problem_beside_status(Schema(schema)).filter(|_| has_status);
            for problem in structural::problems(Schema(schema)).into_iter().chain(beside_status) {
                let at = if problem.path.is_empty() {
                    String::new()
                } else {
                    format!("`{}`: ", problem.path.replace('`', "'"))
                };
                findings.push(
                    Finding::new(&RULE.code, format!("{at}{}", problem.message))
                        .at(object.place_at(problem.span))
                        .subject(object.subject())
                        .help("see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/"),
                );
            }
        }
    }
}
