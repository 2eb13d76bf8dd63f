use crate::finding::{Finding, Findings, Level};
use crate::names::ImageRef;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("related-image-invalid", Error, INSTALL, "related_image_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, related) in csv.typed.spec.related_images.iter().enumerate() {
        let Err(error) = related.image.parse::<ImageRef>() else { continue };
        // opm skips an entry without an image.
        let (level, message) = match related.image.as_str() {
            "" => (Level::Warning, format!("the related image `{}` has no `image`", related.name)),
            _ => (Level::Error, error.to_string()),
        };
        let finding =
            csv.object.finding(&RULE.code, message, steps!("spec", "relatedImages", index, "image"));
        let finding = finding.help("write `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`");
        findings.push(Finding { level, ..finding });
    }
}
