use crate::finding::{Code, Findings, Level};
use crate::names::ImageRef;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "related-image-invalid",
        level: Level::Warning,
        suite: STRICT,
        docs: include_str!("related_image_invalid.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, related) in csv.typed.spec.related_images.iter().enumerate() {
        let Err(error) = related.image.parse::<ImageRef>() else { continue };
        let message = match related.image.as_str() {
            "" => format!("the related image `{}` has no `image`", related.name),
            _ => error.to_string(),
        };
        findings.push(
            csv.object
                .finding(&RULE.code, message, steps!("spec", "relatedImages", index, "image"))
                .help("write `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@DIGEST`"),
        );
    }
}
