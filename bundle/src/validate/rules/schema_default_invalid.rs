use crate::finding::{Code, Finding, Findings, Level};
use crate::schema::{Schema, value};
use crate::validate::facts::Facts;
use crate::validate::{Rule, SCHEMA};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "schema-default-invalid",
        level: Level::Warning,
        suite: SCHEMA,
        docs: include_str!("schema_default_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        for schema in crd.versions().iter().filter_map(|version| crd.schema(version)) {
            Schema(schema).each_with_default(&mut |schema| {
                let Some(default) = schema.get("default") else { return };
                let checked = value::check(default, schema, schema.flag("x-kubernetes-embedded-resource"));
                let unknown = checked.unknown.into_iter().map(|(problem, _)| problem);
                for problem in checked.problems.into_iter().chain(unknown) {
                    let at = if problem.path.is_empty() {
                        String::new()
                    } else {
                        format!(" at `{}`", problem.path.replace('`', "'"))
                    };
                    findings.push(
                        Finding::new(
                            &RULE.code,
                            format!("the default does not fit its schema{at}: {}", problem.message),
                        )
                        .at(object.place_at(problem.span))
                        .subject(object.subject())
                        .help("correct the default or the schema"),
                    );
                }
            });
        }
    }
}
