use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::platforms::{HALVES, Platforms};
use crate::validate::{MULTIARCH, Rule, rule};
use crate::yaml::steps;

rule!("image-platform-narrower", Warning, MULTIARCH, "image_platform_narrower.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(platforms)) = (facts.csv(), Platforms::of(facts)) else { return };
    for (image, of) in platforms.images() {
        for (half, what) in HALVES.into_iter().enumerate() {
            for word in platforms.lacking(half, &platforms.of_manager[half], of) {
                let message = format!(
                    "`{}` has no image for the {what} `{word}`, which the operator's own image supports",
                    image.replace('`', "'")
                );
                let finding =
                    csv.object.finding(&RULE.code, message, steps!("spec", "relatedImages")).subject(image);
                findings.push(finding.help("build the image for it, if users may need it there"));
            }
        }
    }
}
