use std::collections::BTreeSet;

use crate::finding::Findings;
use crate::installed;
use crate::pod::{self, Available, Lack};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("pod-reference-missing", Warning, OLM, "pod_reference_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv().filter(|_| facts.all_manifests_are_read()) else { return };
    let mut in_bundle = Available::default();
    for object in facts.objects().filter(|object| pod::is_of_use(object.kind())) {
        in_bundle.add(&object.root.to_json());
    }
    let serving = installed::serving(&csv.typed.spec);
    let mut said = BTreeSet::new();
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let path = steps!("spec", "install", "spec", "deployments", index, "spec", "template", "spec");
        let name = deployment.name.as_str();
        let is_serving = serving.contains(name);
        let Some(pod) = installed::pod(deployment, is_serving) else { continue };
        let mut available = in_bundle.clone();
        if is_serving {
            available.add_certificate_of(name);
        }
        for needed in pod::needed(&serde_json::to_value(&pod).unwrap_or_default()) {
            let Some(lack) = available.lacks(&needed) else { continue };
            if !said.insert((needed.kind, needed.name.clone())) {
                continue;
            }
            let (kind, own) = (needed.kind, &needed.name);
            let path: Vec<_> = path.iter().chain(&needed.path).copied().collect();
            let way_out = match (&lack, kind) {
                (Lack::Key { .. }, _) => format!("add the key to the {kind}, or set `optional: true`"),
                (_, pod::CLAIM) => "use `emptyDir` or `ephemeral.volumeClaimTemplate`".to_owned(),
                (_, pod::PRIORITY) => {
                    "add the PriorityClass to `manifests/`, or remove `priorityClassName`".to_owned()
                }
                _ => format!("add the {kind} to `manifests/`, or set `optional: true`"),
            };
            let message = lack.message(name, &needed);
            let finding = csv.object.finding(&RULE.code, message, &path).subject(format!("{kind}/{own}"));
            let until = if lack == Lack::Object { "it is created" } else { "it has the key" };
            findings.push(finding.help(format!("{way_out}; otherwise the pods wait until {until}")));
        }
    }
}
