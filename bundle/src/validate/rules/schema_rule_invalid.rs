use crate::finding::{Code, Finding, Findings, Level};
use crate::parse::Object;
use crate::schema::rule::{Old, Scope, Wanted, why_not_rule};
use crate::schema::{At, Schema};
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
            Schema(schema).each_described(At::ROOT, &mut |schema, at| {
                for rule in schema.list("x-kubernetes-validations") {
                    check_rule(Schema(rule), schema, at, object, findings);
                }
            });
        }
    }
}

fn check_rule(rule: Schema<'_, '_>, schema: Schema<'_, '_>, at: At, object: Object<'_, '_>, findings: &mut Findings) {
    let mut report = |node: &Node<'_>, message: String| {
        findings.push(
            Finding::new(&RULE.code, message)
                .at(object.place_at(node.span))
                .subject(object.subject())
                .help("see https://kubernetes.io/docs/reference/using-api/cel/"),
        );
    };
    let optional = rule.get("optionalOldSelf").and_then(Node::as_bool);
    let old = Old { can_correlate: at.can_correlate, optional };
    let Some(scope) = Scope::new(schema, at.is_resource, old) else { return };
    for (keyword, wanted) in [("rule", Wanted::Truth), ("messageExpression", Wanted::Text)] {
        let Some((node, text)) = rule.get(keyword).and_then(|node| Some((node, node.as_str()?))) else { continue };
        if let Some(why) = why_not_rule(text, &scope, wanted) {
            report(node, format!("the expression under `{keyword}` cannot be compiled: {why}"));
        }
    }
    let (text, message) = (rule.text("rule"), rule.text("message"));
    if text.trim().is_empty() && rule.get("rule").is_none() {
        report(rule.0, "there is no `rule`".into());
    } else if message.trim().contains(['\n', '\r']) {
        report(rule.get("message").unwrap_or(rule.0), "a `message` is one line".into());
    } else if text.trim().contains(['\n', '\r']) && message.trim().is_empty() {
        report(rule.0, "a `rule` of several lines has a `message`".into());
    }
    let reason = rule.text("reason");
    if rule.get("reason").is_some() && !REASONS.contains(&reason.as_ref()) {
        let node = rule.get("reason").unwrap_or(rule.0);
        report(node, format!("a `reason` is one of {}", REASONS.map(|reason| format!("`{reason}`")).join(", ")));
    }
}

/// The reasons that clusters know for refusing a value.
const REASONS: [&str; 4] = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
