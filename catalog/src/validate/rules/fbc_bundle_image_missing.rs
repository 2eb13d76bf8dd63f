use olmkit_bundle::finding::Findings;

use crate::fbc::property;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-image-missing", Error, OPM, "fbc_bundle_image_missing.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles().filter(|bundle| !index.is_faulty(bundle.blob.at)) {
        let objects =
            bundle.blob.properties.iter().any(|found| found.kind.as_str() == property::BUNDLE_OBJECT);
        if bundle.blob.image.is_empty() && !objects {
            let message = format!("the bundle `{}` has no image", bundle.blob.name);
            let finding = index
                .finding(&RULE.code, bundle.at(&bundle.blob.name), message)
                .subject(bundle.blob.name.as_str());
            findings.push(finding.help("add `image`, or the manifests as `olm.bundle.object` properties"));
        }
    }
}
