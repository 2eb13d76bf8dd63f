use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::property;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-property-invalid", Error, OPM, "fbc_bundle_property_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        for (at, property) in bundle.blob.properties.iter().enumerate() {
            let why = match &property.value {
                None => Some("it has no value".to_owned()),
                Some(value) => property::type_mismatch(&property.kind, value),
            };
            let Some(why) = why.filter(|_| !index.is_faulty(bundle.property_at(at))) else { continue };
            let message = format!("the property `{}` of `{}`: {why}", property.kind, bundle.blob.name);
            let finding = index.finding(&RULE.code, bundle.property_at(at), message);
            findings.push(finding.subject(bundle.blob.name.as_str()));
        }
    }
}
