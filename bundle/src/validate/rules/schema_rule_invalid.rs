use crate::cel::rule::{MAX_COST, MAX_COST_OF_ALL, Old, Scope, Wanted, check_rule};
use crate::crd::Crd;
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::schema::{At, Schema};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, crds, rule};
use crate::yaml::Node;

rule!("schema-rule-invalid", Error, INSTALL, "schema_rule_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    crds::each_crd(facts, of_crd, findings);
}

/// What is wrong with the rules of a CRD.
pub(in crate::validate) fn of_crd(object: Object<'_, '_>, crd: Crd<'_, '_>, findings: &mut Findings) {
    for schema in crd.versions().iter().filter_map(|version| crd.schema(version)) {
        let mut cost = 0u64;
        Schema(schema).each_described(At::ROOT, &mut |schema, at| {
            for rule in schema.list("x-kubernetes-validations") {
                cost = cost.saturating_add(check_one(Schema(rule), schema, at, object, findings));
            }
        });
        if cost > MAX_COST_OF_ALL {
            let message = format!("the rules of the version may cost {}", times(cost, MAX_COST_OF_ALL));
            let finding = Finding::new(&RULE.code, message)
                .at(object.place_at(schema.locate(&[])))
                .subject(object.subject());
            findings.push(finding.help(COST_HELP));
        }
    }
}

const COST_HELP: &str =
    "set `maxItems`, `maxProperties` and `maxLength` for what the rule goes through, or simplify it";

/// How many times as much as clusters allow something costs.
fn times(cost: u64, most: u64) -> String {
    match cost as f64 / most as f64 {
        factor @ ..=100.0 => format!("{factor:.1} times what clusters allow"),
        _ => "more than 100 times what clusters allow".into(),
    }
}

/// Checks a rule, and says what it costs at most.
fn check_one(
    rule: Schema<'_, '_>,
    schema: Schema<'_, '_>,
    at: At,
    object: Object<'_, '_>,
    findings: &mut Findings,
) -> u64 {
    let mut cost_of_all = 0u64;
    let mut report = |node: &Node<'_>, message: String| {
        let finding =
            Finding::new(&RULE.code, message).at(object.place_at(node.span)).subject(object.subject());
        findings.push(finding.help("correct the rule; https://kubernetes.io/docs/reference/using-api/cel/ has the language and its functions"));
    };
    let optional = rule.get("optionalOldSelf").and_then(Node::as_bool);
    let old = Old { can_correlate: at.can_correlate, optional };
    let Some(scope) = Scope::new(schema, at.is_resource, old) else { return 0 };
    for (keyword, wanted) in [("rule", Wanted::Truth), ("messageExpression", Wanted::Text)] {
        let Some((node, text)) = rule.get(keyword).and_then(|node| Some((node, node.as_str()?))) else {
            continue;
        };
        if wanted == Wanted::Text && text.is_empty() {
            continue;
        }
        let cost = match check_rule(text, &scope, wanted) {
            // Whether a message costs too much is asked of one value.
            Ok(cost) if wanted == Wanted::Text => cost,
            Ok(cost) => cost.saturating_mul(scope.most_times(at)),
            Err(why) => {
                report(node, format!("the expression under `{keyword}` cannot be compiled: {why}"));
                continue;
            }
        };
        cost_of_all = cost_of_all.saturating_add(cost);
        if cost > MAX_COST {
            let message =
                format!("the expression under `{keyword}` may cost {}; {COST_HELP}", times(cost, MAX_COST));
            report(node, message);
        }
    }
    let (text, message) = (rule.text("rule"), rule.text("message"));
    if text.trim().is_empty() && rule.get("rule").is_none() {
        report(rule.0, "there is no `rule`".into());
    } else if !message.is_empty() && message.trim().is_empty() {
        report(rule.get("message").unwrap_or(rule.0), "the `message` is blank".into());
    } else if message.trim().contains(['\n', '\r']) {
        report(rule.get("message").unwrap_or(rule.0), "a `message` is one line".into());
    } else if text.trim().contains(['\n', '\r']) && message.trim().is_empty() {
        report(rule.0, "a `rule` of several lines has a `message`".into());
    }
    let path = rule.text("fieldPath");
    if path.contains(['\n', '\r']) || !path.is_empty() && schema.at_path(&path, true).is_none() {
        let message =
            format!("the `fieldPath` `{}` is not that of a field of the schema", path.replace('`', "'"));
        report(rule.get("fieldPath").unwrap_or(rule.0), message);
    }
    let reason = rule.text("reason");
    if rule.get("reason").is_some() && !REASONS.contains(&reason.as_ref()) {
        let node = rule.get("reason").unwrap_or(rule.0);
        report(
            node,
            format!("a `reason` is one of {}", REASONS.map(|reason| format!("`{reason}`")).join(", ")),
        );
    }
    cost_of_all
}

/// The reasons that clusters know for refusing a value.
const REASONS: [&str; 4] =
    ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
