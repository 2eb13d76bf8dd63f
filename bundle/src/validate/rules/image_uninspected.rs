use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{MULTIARCH, Rule, rule};
use crate::yaml::steps;

rule!("image-uninspected", Warning, MULTIARCH, "image_uninspected.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (image, answer) in facts.options.platforms.iter().flatten() {
        if let Err(why) = answer {
            let message = format!(
                "cannot determine the platforms of `{}`: {}",
                image.replace('`', "'"),
                why.replace('`', "'")
            );
            let finding = csv.object.finding(&RULE.code, message, steps!("spec", "relatedImages"));
            findings.push(finding.help("push the image, or log in to its registry"));
        }
    }
}
