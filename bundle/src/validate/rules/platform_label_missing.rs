use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::platforms::{HALVES, Platforms};
use crate::validate::{MULTIARCH, Rule, rule};
use crate::yaml::steps;

rule!("platform-label-missing", Warning, MULTIARCH, "platform_label_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(platforms)) = (facts.csv(), Platforms::of(facts)) else { return };
    for (half, what) in HALVES.into_iter().enumerate() {
        for word in platforms.of_manager[half].difference(&platforms.labelled[half]) {
            let label = format!("operatorframework.io/{}.{word}", ["os", "arch"][half]);
            let finding = csv.object.finding(
                &RULE.code,
                format!("the operator supports the {what} `{word}`, but no label says so"),
                steps!("metadata", "labels"),
            );
            findings.push(finding.help(format!("add the label `{label}: supported`")));
        }
    }
}
