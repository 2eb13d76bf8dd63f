use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::platforms::{HALVES, Platforms};
use crate::validate::{MULTIARCH, Rule, rule};
use crate::yaml::steps;

rule!("image-platform-missing", Error, MULTIARCH, "image_platform_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(platforms)) = (facts.csv(), Platforms::of(facts)) else { return };
    for (image, of) in platforms.images() {
        for (half, what) in HALVES.into_iter().enumerate() {
            for word in platforms.lacking(half, &platforms.labelled[half], of) {
                let message = format!(
                    "`{}` has no image for the {what} `{word}`, which the bundle supports",
                    image.replace('`', "'")
                );
                let finding =
                    csv.object.finding(&RULE.code, message, steps!("metadata", "labels")).subject(image);
                findings.push(
                    finding.help("build the image for it, or change the labels `operatorframework.io/…`"),
                );
            }
        }
    }
}
