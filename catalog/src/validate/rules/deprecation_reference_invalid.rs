use olmkit_bundle::finding::Findings;

use crate::fbc::schema;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("deprecation-reference-invalid", Error, OPM, "deprecation_reference_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for blob in index.catalog.deprecations.iter().filter(|blob| !index.is_faulty(blob.at)) {
        for entry in &blob.entries {
            let (span, message, help) = match entry.reference.schema.as_str() {
                schema::CHANNEL | schema::BUNDLE => continue,
                schema::PACKAGE if entry.reference.name.is_empty() => continue,
                schema::PACKAGE => (
                    entry.reference.name.span,
                    format!("the package is deprecated without a name, found `{}`", entry.reference.name),
                    "remove `name`; `package` says which one",
                ),
                "" => (
                    entry.span,
                    "a deprecation does not say what it is about".to_owned(),
                    "add `reference` with `schema` and `name`",
                ),
                other => (
                    entry.reference.schema.span,
                    format!("`{other}` cannot be deprecated"),
                    "use `olm.package`, `olm.channel` or `olm.bundle`",
                ),
            };
            let finding =
                index.finding(&RULE.code, blob.at.with(span), message).subject(blob.package.as_str());
            findings.push(finding.help(help));
        }
    }
}
