use crate::cel::constraint::Expression;
use crate::finding::Findings;
use crate::validate::dependencies::CONSTRAINT;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("dependency-constraint-invalid", Error, OLM, "dependency_constraint_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (dependency, fields) in facts.dependencies_of(CONSTRAINT) {
        let (message, help) = match fields.text(&["cel", "rule"]) {
            "" => (
                "a constraint has no `cel.rule`".to_owned(),
                "write the constraint as an expression; `all`, `any` and `not` belong into `metadata/properties.yaml`",
            ),
            rule => match Expression::parse(rule) {
                Ok(_) => continue,
                Err(error) => (
                    format!("`cel.rule` is not a constraint: {error}"),
                    "write an expression that is true or false, such as `properties.exists(p, p.type == 'certified')`",
                ),
            },
        };
        findings.push(dependency.finding(&RULE.code, message, steps!("value", "cel", "rule")).help(help));
    }
}
