use olmkit_bundle::finding::Findings;
use olmkit_bundle::version::Version;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-version-invalid", Error, OPM, "fbc_bundle_version_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        for (at, package) in &bundle.packages {
            if let Err(error) = package.version.parse::<Version>() {
                let message = format!(
                    "the version `{}` of `{}` is not semantic: {error}",
                    package.version, bundle.blob.name
                );
                let finding = index
                    .finding(&RULE.code, bundle.property_at(*at), message)
                    .subject(bundle.blob.name.as_str());
                findings.push(finding.help("write it as `MAJOR.MINOR.PATCH`, without `v`"));
            }
        }
    }
}
