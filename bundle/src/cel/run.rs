//! What the rules of `x-kubernetes-validations` say of an object. They are run by the crate `kube-cel`, with the feature `cel`.
//!
//! Only rules are run that clusters take too: their cost is bounded, and so is the depth of their brackets, which the
//! evaluator does not look after. Rules about the old value (`oldSelf`) are left out: an object that does not change has none.

use serde_json::Value as Json;

use crate::schema::Schema;

/// The message about rules that are not run.
pub(crate) const NOT_RUN: &str = "rules in CEL";

/// A rule that an object breaks, or that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where: a path such as `spec.replicas`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// Whether the rule was run.
    pub is_decided: bool,
}

/// The rules of a schema, ready to be run.
#[derive(Default)]
pub struct Rules {
    #[cfg(feature = "cel")]
    ready: Option<by_kube_cel::Ready>,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// The rules of the schema of a resource.
    #[cfg_attr(not(feature = "cel"), expect(unused_variables, reason = "nothing can be run"))]
    pub fn new(schema: Schema<'_, '_>) -> Self {
        Self {
            #[cfg(feature = "cel")]
            ready: by_kube_cel::Ready::new(schema),
        }
    }

    /// What an object, with its defaults, breaks; none when the rules are not run.
    #[cfg_attr(not(feature = "cel"), expect(unused_variables, reason = "nothing can be run"))]
    pub fn check(&self, object: &Json) -> Option<Vec<Broken>> {
        #[cfg(feature = "cel")]
        {
            self.ready.as_ref().map(|ready| ready.check(object))
        }
        #[cfg(not(feature = "cel"))]
        {
            None
        }
    }
}

/// Whether a new rule admits every object that has none of the fields that are new with it: it looks at no others, and holds
/// without them. `false` too where that cannot be found out.
#[cfg_attr(not(feature = "cel"), expect(unused_variables, reason = "nothing can be run"))]
pub(crate) fn is_about_new_fields(rule: &str, old: Schema<'_, '_>, new: Schema<'_, '_>) -> bool {
    #[cfg(feature = "cel")]
    {
        by_kube_cel::is_about_new_fields(rule, old, new)
    }
    #[cfg(not(feature = "cel"))]
    {
        false
    }
}

#[cfg(feature = "cel")]
mod by_kube_cel {
    use std::sync::LazyLock;

    use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
    use regex::Regex;
    use serde_json::{Value as Json, json};

    use super::Broken;
    use crate::cel::rule::{MAX_COST, MAX_COST_OF_ALL, Old, Scope, Wanted, check_rule};
    use crate::schema::defaults::defaulted;
    use crate::schema::{Additional, At, Schema};
    use crate::yaml::first_document;

    /// The evaluator's parser needs stack for each bracket.
    const MAX_BRACKETS: usize = 40;

    pub(super) struct Ready {
        validator: Validator,
        rules: CompiledSchema,
    }

    impl Ready {
        /// None where there are no rules, or some that clusters refuse.
        pub(super) fn new(schema: Schema<'_, '_>) -> Option<Self> {
            are_sound(schema)
                .then(|| Self { validator: Validator::new(), rules: compile_schema(&schema.0.to_json()) })
        }

        pub(super) fn check(&self, object: &Json) -> Vec<Broken> {
            let Err(errors) = self.validator.validate_compiled(&self.rules, object, None) else {
                return Vec::new();
            };
            let broken = |error: &kube_cel::ValidationError| {
                let is_decided = error.kind == ErrorKind::ValidationFailure;
                let message = match is_decided {
                    true => error.message.clone(),
                    false => format!("the rule `{}` cannot be run here", error.rule),
                };
                Broken { path: error.field_path.clone(), message, is_decided }
            };
            errors.iter().map(broken).collect()
        }
    }

    /// Whether clusters would take all rules.
    fn are_sound(schema: Schema<'_, '_>) -> bool {
        let (mut sound, mut cost_of_all) = (true, 0u64);
        schema.each_described(At::ROOT, &mut |schema, at| {
            for rule in schema.list("x-kubernetes-validations").iter().map(Schema) {
                let optional = rule.get("optionalOldSelf").and_then(crate::yaml::Node::as_bool);
                let old = Old { can_correlate: at.can_correlate, optional };
                for (keyword, wanted) in [("rule", Wanted::Truth), ("messageExpression", Wanted::Text)] {
                    let text = rule.text(keyword);
                    if text.is_empty() {
                        continue;
                    }
                    let cost = Scope::new(schema, at.is_resource, old).and_then(|scope| {
                        let cost = check_rule(&text, &scope, wanted).ok()?;
                        Some(cost.saturating_mul(scope.most_times(at)))
                    });
                    cost_of_all = cost_of_all.saturating_add(cost.unwrap_or(u64::MAX));
                    sound &= cost.is_some_and(|cost| cost <= MAX_COST) && brackets(&text) <= MAX_BRACKETS;
                }
            }
        });
        sound && cost_of_all <= MAX_COST_OF_ALL
    }

    fn brackets(text: &str) -> usize {
        text.matches(['(', '[', '{', '?', '!', '-']).count()
    }

    /// What a rule looks at. Within texts too, which errs on the safe side.
    static SELF: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(?:self|oldSelf)\b(?:\.([A-Za-z_]\w*))?").ok());

    pub(super) fn is_about_new_fields(rule: &str, old: Schema<'_, '_>, new: Schema<'_, '_>) -> bool {
        let is_open =
            old.flag("x-kubernetes-preserve-unknown-fields") || !matches!(old.additional(), Additional::None);
        let Some(names) = SELF.as_ref().filter(|_| !is_open) else { return false };
        let mut fields = serde_json::Map::new();
        for found in names.captures_iter(rule) {
            let Some(name) = found.get(1).map(|name| name.as_str()) else { return false };
            let (None, Some(field)) = (old.property(name), new.property(name)) else { return false };
            fields.insert(name.to_owned(), field.0.to_json());
        }
        if fields.is_empty() {
            return false;
        }
        let schema = json!({
            "type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule}],
        });
        let (text, nothing) = (schema.to_string(), json!({}));
        let Ok(document) = first_document(&text) else { return false };
        let part = Schema(&document.root);
        if !are_sound(part) {
            return false;
        }
        let object = defaulted(&crate::yaml::Node::from(&nothing), part);
        Validator::new().validate(&schema, &object, Some(&object)).is_ok()
    }
}

#[cfg(all(test, feature = "cel"))]
mod tests {
    use super::*;
    use crate::yaml::first_document;

    const SCHEMA: &str = "{type: object, properties: {spec: {type: object, properties: {low: {type: integer}, high: {type: integer, default: 5}, \
        hosts: {type: array, maxItems: 9, items: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: self != 'a'}]}}}, \
        x-kubernetes-validations: [{rule: self.low < self.high, message: low first}, {rule: self.low == oldSelf.low}]}}}";

    #[track_caller]
    fn check(schema: &str, object: Json, expected: Option<&[&str]>) {
        let document = first_document(schema).expect("it is YAML");
        let found = Rules::new(Schema(&document.root)).check(&object);
        let lines = |found: Vec<Broken>| -> Vec<String> {
            found.into_iter().map(|one| format!("{}: {}", one.path, one.message)).collect()
        };
        let expected = expected.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect());
        assert_eq!(found.map(lines), expected);
    }

    #[test]
    fn rules_are_run_with_their_paths() {
        use serde_json::json;
        check(SCHEMA, json!({"spec": {"low": 1, "high": 2, "hosts": ["b"]}}), Some(&[]));
        let broken = json!({"spec": {"low": 5, "high": 5, "hosts": ["b", "a"]}});
        let expected = ["spec: low first", "spec.hosts[1]: failed rule: self != 'a'"];
        check(SCHEMA, broken, Some(&expected));
    }

    #[test]
    fn rules_that_clusters_refuse_are_not_run() {
        let deep = format!(
            "{{type: object, x-kubernetes-validations: [{{rule: '{}true{}'}}]}}",
            "(".repeat(5000),
            ")".repeat(5000)
        );
        check(&deep, Json::Object(serde_json::Map::new()), None);
        // Any number of items three times over.
        let all = "self.a.all(x, self.a.all(y, self.a.all(z, x + y + z > 0)))";
        let dear = format!(
            "{{type: object, properties: {{a: {{type: array, items: {{type: integer}}}}}}, x-kubernetes-validations: [{{rule: '{all}'}}]}}"
        );
        check(&dear, Json::Object(serde_json::Map::new()), None);
    }

    #[test]
    fn rules_about_new_fields_admit_what_has_none_of_them() {
        let old = first_document("{type: object, properties: {size: {type: integer}}}").unwrap();
        let new = "{type: object, properties: {size: {type: integer}, disk: {type: string, maxLength: 9}, pots: {type: integer, default: 3}}}";
        let new = first_document(new).unwrap();
        for (rule, expected) in [
            ("has(self.disk) == has(oldSelf.disk)", true),
            ("!has(self.disk) || self.disk != 'x'", true),
            ("has(self.disk)", false),
            ("self.pots > 2", true),
            ("self.pots > 3", false),
            ("!has(self.disk) || self.size > 1", false),
            ("[self].all(x, true)", false),
            ("true", false),
        ] {
            assert_eq!(is_about_new_fields(rule, Schema(&old.root), Schema(&new.root)), expected, "{rule}");
        }
    }
}
