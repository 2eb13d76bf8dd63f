use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule, rule};
use crate::yaml::steps;

rule!("openshift-feature-annotation", Warning, OPENSHIFT, "openshift_feature_annotation.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (key, value) in csv.typed.metadata.annotations.iter().flatten() {
        let Some(feature) = key.strip_prefix(PREFIX) else { continue };
        let (message, help) = if !FEATURES.contains(&feature) {
            let help = crate::suggest::did_you_mean(feature, FEATURES);
            (format!("`{}` is not a known OpenShift feature", feature.replace('`', "'")), help)
        } else if !matches!(value.as_str(), "true" | "false") {
            (format!("`{}` is neither `true` nor `false`", value.replace('`', "'")), None)
        } else {
            continue;
        };
        let help =
            help.unwrap_or_else(|| "write `\"true\"` or `\"false\"` for a known OpenShift feature".into());
        let finding =
            csv.object.finding(&RULE.code, message, steps!("metadata", "annotations", key.as_str()));
        findings.push(finding.help(help));
    }
}

const PREFIX: &str = "features.operators.openshift.io/";
const FEATURES: [&str; 10] = [
    "cnf",
    "cni",
    "csi",
    "disconnected",
    "fips-compliant",
    "proxy-aware",
    "tls-profiles",
    "token-auth-aws",
    "token-auth-azure",
    "token-auth-gcp",
];
