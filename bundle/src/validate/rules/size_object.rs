use crate::crd::Crd;
use crate::finding::Findings;
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};

rule!("size-object", Error, INSTALL, "size_object.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, bytes) in facts.object_sizes() {
        of_object(*object, *bytes, findings);
    }
}

/// What is too large of an object that takes so many bytes in JSON.
pub(in crate::validate) fn of_object(object: Object<'_, '_>, bytes: u64, findings: &mut Findings) {
    if bytes <= MAX_OBJECT_BYTES {
        return;
    }
    let is_crd = object.kind() == "CustomResourceDefinition";
    let bytes = if is_crd { bytes - repeated(object) } else { bytes };
    if bytes <= MAX_OBJECT_BYTES {
        return;
    }
    let message =
        format!("the object takes {bytes} bytes in JSON, and clusters store {MAX_OBJECT_BYTES} at most");
    let help = match is_crd {
        true => {
            "shorten the descriptions of the schema, or leave them out: `controller-gen crd:maxDescLen=0` does that"
        }
        false => "make the object smaller, or split it",
    };
    findings.push(object.finding(&RULE.code, message, &[]).help(help));
}

/// What the schemas of further versions take where every version has the same one: clusters store that once.
fn repeated(object: Object<'_, '_>) -> u64 {
    let crd = Crd::from(object);
    let versions = crd.versions();
    let schemas: Vec<_> = versions.iter().filter_map(|version| crd.schema(version)).collect();
    let Some((first, others)) = schemas.split_first().filter(|_| crd.is_v1()) else { return 0 };
    let same = schemas.len() == versions.len()
        && others
            .iter()
            .all(|other| other.json_bytes() == first.json_bytes() && other.to_json() == first.to_json());
    if same { others.len() as u64 * first.json_bytes() } else { 0 }
}

/// What etcd takes in one request unless it is told otherwise (`--max-request-bytes`).
const MAX_OBJECT_BYTES: u64 = 3 << 19;
