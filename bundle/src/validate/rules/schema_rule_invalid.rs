use crate::finding::{Code, Finding, Findings, Level};
use crate::schema::Schema;
use crate::schema::rule::why_not_rule;
use crate::validate::{Rule, SCHEMA};
use crate::validate::facts::Facts;
use crate::yaml::Node;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "schema-rule-invalid",
        level: Level::Warning,
        suite: SCHEMA,
        docs: include_str!("schema_rule_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        for schema in crd.versions().iter().filter_map(|version| crd.schema(version)) {
            Schema(schema).each(&mut |schema| {
                for rule in schema.list("x-kubernetes-validations") {
                    for keyword in ["rule", "messageExpression"] {
                        let node = rule.as_mapping().and_then(|rule| rule.get_folded(keyword));
                        let Some((node, text)) = node.and_then(|node| Some((node, Node::as_str(node)?))) else { continue };
                        let Some(why) = why_not_rule(text) else { continue };
                        findings.push(
                            Finding::new(&RULE.code, format!("the expression under `{keyword}` cannot be compiled: {why}"))
                                .at(object.place_at(node.span))
                                .subject(object.subject())
                                .help("see https://kubernetes.io/docs/reference/using-api/cel/"),
                        );
                    }
                }
            });
        }
    }
}
