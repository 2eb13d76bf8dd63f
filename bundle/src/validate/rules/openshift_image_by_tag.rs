use std::collections::BTreeSet;

use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule, rule};
use crate::yaml::steps;

rule!("openshift-image-by-tag", Warning, OPENSHIFT, "openshift_image_by_tag.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    // An image that several lists name is one finding.
    let mut said = BTreeSet::new();
    let mut report = |path: &[crate::yaml::Step<'_>], image: &str| {
        if !image.is_empty() && !image.contains("@sha256:") && said.insert(image.to_owned()) {
            let message =
                format!("`{}` is named by tag, which mirrors do not support", image.replace('`', "'"));
            let finding = csv.object.finding(&RULE.code, message, path);
            findings.push(finding.help("name it by digest: `NAME@sha256:…`"));
        }
    };
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let Some(pod) = &deployment.spec.template.spec else { continue };
        for (at, container) in pod.containers.iter().enumerate() {
            let path = steps!(
                "spec",
                "install",
                "spec",
                "deployments",
                index,
                "spec",
                "template",
                "spec",
                "containers",
                at,
                "image"
            );
            report(path, container.image.as_deref().unwrap_or_default());
        }
    }
    for (index, image) in csv.typed.spec.related_images.iter().enumerate() {
        report(steps!("spec", "relatedImages", index, "image"), &image.image);
    }
}
