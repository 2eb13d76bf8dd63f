use std::collections::BTreeSet;

use crate::finding::{Code, Findings, Level};
use crate::pod;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};
use crate::yaml::{Node, steps};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "pod-reference-missing",
        level: Level::Warning,
        suite: OLM,
        docs: include_str!("pod_reference_missing.md"),
    },
    check,
};

/// By this annotation OpenShift makes a Secret for a Service.
const SERVING_CERT: [&str; 2] = [
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
];

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| facts.all_manifests_are_read()) else { return };
    let mut made: BTreeSet<(&str, &str)> = BTreeSet::new();
    for object in facts.objects() {
        match object.kind() {
            "Secret" | "ConfigMap" | pod::PRIORITY => drop(made.insert((object.kind(), object.name()))),
            "Service" => {
                let named = SERVING_CERT.map(|key| object.text(steps!("metadata", "annotations", key)));
                made.extend(named.map(|name| ("Secret", name)));
            }
            _ => {}
        }
    }
    let install = steps!("spec", "install", "spec", "deployments");
    let deployments = csv.object.root.at_folded(install).and_then(Node::as_sequence).unwrap_or(&[]);
    let mut said = BTreeSet::new();
    for (index, deployment) in deployments.iter().enumerate() {
        let path = steps!("spec", "install", "spec", "deployments", index, "spec", "template", "spec");
        let Some(pod) = deployment.at_folded(steps!("spec", "template", "spec")) else { continue };
        let name = deployment.get("name").and_then(Node::as_str).unwrap_or("");
        for needed in pod::needed(&pod.to_json()) {
            let is_made = made.contains(&(needed.kind, needed.name.as_str()));
            let by_olm = needed.name == pod::certificate_of(name);
            if is_made || by_olm || !said.insert((needed.kind, needed.name.clone())) {
                continue;
            }
            let (kind, own) = (needed.kind, &needed.name);
            let message = format!(
                "the Deployment `{name}` needs the {kind} `{own}`, which nothing in the bundle creates"
            );
            let path: Vec<_> = path.iter().chain(&needed.path).copied().collect();
            let way_out = match kind {
                pod::CLAIM => "use `emptyDir` or `ephemeral.volumeClaimTemplate`".to_owned(),
                pod::PRIORITY => {
                    "add the PriorityClass to `manifests/`, or remove `priorityClassName`".to_owned()
                }
                _ => format!("add the {kind} to `manifests/`, or set `optional: true`"),
            };
            let finding = csv.object.finding(&RULE.code, message, &path).subject(format!("{kind}/{own}"));
            let help = format!("{way_out}; otherwise the pods wait until it is created");
            findings.push(finding.help(help));
        }
    }
}
