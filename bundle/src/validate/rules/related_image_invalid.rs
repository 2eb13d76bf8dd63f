use crate::finding::Findings;
use crate::names::ImageRef;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::yaml::steps;

rule!("related-image-invalid", Warning, STRICT, "related_image_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, related) in csv.typed.spec.related_images.iter().enumerate() {
        let Err(error) = related.image.parse::<ImageRef>() else { continue };
        let message = match related.image.as_str() {
            "" => format!("the related image `{}` has no `image`", related.name),
            _ => error.to_string(),
        };
        let finding =
            csv.object.finding(&RULE.code, message, steps!("spec", "relatedImages", index, "image"));
        findings.push(finding.help("write `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`"));
    }
}
