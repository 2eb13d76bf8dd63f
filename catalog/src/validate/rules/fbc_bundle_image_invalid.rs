use olmkit_bundle::finding::Findings;
use olmkit_bundle::names::ImageRef;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-bundle-image-invalid", Error, OPM, "fbc_bundle_image_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for bundle in index.bundles() {
        let name = &bundle.blob.name;
        let related = bundle.blob.related_images.iter().map(|image| ("a related image", &image.image));
        for (what, image) in std::iter::once(("the image", &bundle.blob.image)).chain(related) {
            if image.is_empty() {
                continue;
            }
            if let Err(error) = image.parse::<ImageRef>() {
                let message = format!("{what} of `{name}`: {error}");
                let finding = index.finding(&RULE.code, bundle.at(image), message).subject(name.as_str());
                findings.push(finding.help(
                    "write `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`, without a scheme",
                ));
            }
        }
    }
}
