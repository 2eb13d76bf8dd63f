use olmkit_bundle::finding::Findings;
use olmkit_bundle::yaml::first_document;

use crate::base64::decode;
use crate::fbc::property;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-object-invalid", Error, OPM, "fbc_bundle_object_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        for (at, property) in bundle.blob.properties.iter().enumerate() {
            if property.kind.as_str() != property::BUNDLE_OBJECT {
                continue;
            }
            let data = property.value.as_ref().and_then(|value| value.text_of("data")).unwrap_or_default();
            let Some(why) = why_no_object(&data) else { continue };
            let message = format!("an object of the bundle `{}` cannot be read: {why}", bundle.blob.name);
            let finding = index.finding(&RULE.code, bundle.property_at(at), message);
            findings.push(finding.subject(bundle.blob.name.as_str()));
        }
    }
}

/// What does not start like JSON has to be YAML; what does is passed on as it is.
fn why_no_object(data: &str) -> Option<String> {
    let bytes = match decode(data) {
        Ok(bytes) => bytes,
        Err(error) => return Some(format!("it is not in base64: {error}")),
    };
    if bytes.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => first_document(text).err().map(|error| error.to_string()),
        Err(_) => Some("it is not text in UTF-8".into()),
    }
}
