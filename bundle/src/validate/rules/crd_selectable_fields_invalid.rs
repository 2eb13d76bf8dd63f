use std::collections::BTreeSet;

use crate::crd::Crd;
use crate::finding::Findings;
use crate::parse::Object;
use crate::schema::Schema;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Node, Step, steps};

rule!("crd-selectable-fields-invalid", Error, OLM, "crd_selectable_fields_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        for (index, version) in crd.versions().iter().enumerate() {
            let own: &[_] = steps!("spec", "versions", index, "selectableFields");
            let whole: &[_] = steps!("spec", "selectableFields");
            let path = if crd.get(own).is_some() || crd.is_v1() { own } else { whole };
            check_fields(object, crd.list(path), crd.schema(version), path, findings);
        }
    }
}

fn check_fields(
    object: Object<'_, '_>,
    fields: &[Node<'_>],
    schema: Option<&Node<'_>>,
    path: &[Step<'_>],
    findings: &mut Findings,
) {
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let json_path = Crd(field).text(steps!("jsonPath"));
        let is_new = seen.insert(json_path.clone());
        let at = schema.and_then(|schema| Schema(schema).at_path(&json_path, false));
        let why = match (schema, at) {
            _ if json_path.is_empty() => "it is empty",
            _ if !is_new => "it is listed twice",
            (None, _) => "the version has no schema",
            (_, None) => "the schema has no such field",
            _ if json_path == ".metadata" || json_path.starts_with(".metadata.") => {
                "it points into `metadata`"
            }
            (_, Some(Some(at))) if matches!(at.text("type").as_ref(), "string" | "boolean" | "integer") => {
                continue;
            }
            _ => "the field is not of type string, boolean or integer",
        };
        let path: Vec<_> = path.iter().copied().chain([Step::Index(index), Step::Key("jsonPath")]).collect();
        let finding =
            object.finding(&RULE.code, format!("`{json_path}` cannot be a selectable field: {why}"), &path);
        findings.push(finding.help("name a field of the schema, such as `.spec.zone`"));
    }
    if seen.len() > MOST {
        let message = format!("there are {} selectable fields, at most {MOST} are allowed", seen.len());
        findings.push(object.finding(&RULE.code, message, path).help("remove some"));
    }
}

/// What clusters allow.
const MOST: usize = 8;
