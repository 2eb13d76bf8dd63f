use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::platforms::{Platforms, affinity};
use crate::validate::{MULTIARCH, Rule, rule};
use crate::yaml::steps;
use std::collections::BTreeSet;

rule!("node-affinity-platforms", Warning, MULTIARCH, "node_affinity_platforms.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(platforms)) = (facts.csv(), Platforms::of(facts)) else { return };
    let mut seen = BTreeSet::new();
    for (image, _, pod) in &platforms.deployed {
        let Some(of) = platforms.of_image(image).filter(|_| seen.insert(*image)) else { continue };
        let (wanted, made_for) = (affinity(pod), of.iter().cloned().collect::<BTreeSet<_>>());
        if wanted == made_for {
            continue;
        }
        let list = |platforms: &BTreeSet<_>| {
            platforms.iter().map(|(os, arch)| format!("`{os}/{arch}`")).collect::<Vec<_>>().join(", ")
        };
        let found =
            if wanted.is_empty() { "names no platform".into() } else { format!("names {}", list(&wanted)) };
        let message = format!(
            "`{}` supports {}, but the node affinity of its pod {found}",
            image.replace('`', "'"),
            list(&made_for)
        );
        findings.push(
            csv.object
                .finding(&RULE.code, message, steps!("spec", "install", "spec", "deployments"))
                .subject(*image)
                .help("name `kubernetes.io/os` and `kubernetes.io/arch` in a required node affinity"),
        );
    }
}
