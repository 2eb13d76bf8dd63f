use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::platforms::{HALVES, Platforms};
use crate::validate::{MULTIARCH, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "image-platform-missing",
        level: Level::Error,
        suite: MULTIARCH,
        docs: include_str!("image_platform_missing.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(platforms)) = (facts.csv(), Platforms::of(facts)) else { return };
    for (image, of) in platforms.images() {
        for (half, what) in HALVES.into_iter().enumerate() {
            for word in platforms.lacking(half, &platforms.labelled[half], of) {
                let message = format!(
                    "`{}` has no image for the {what} `{word}`, which the bundle supports",
                    image.replace('`', "'")
                );
                findings.push(
                    csv.object
                        .finding(&RULE.code, message, steps!("metadata", "labels"))
                        .subject(image)
                        .help("build the image for it, or change the labels `operatorframework.io/…`"),
                );
            }
        }
    }
}
