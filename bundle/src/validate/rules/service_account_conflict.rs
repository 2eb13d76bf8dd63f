use std::collections::BTreeMap;

use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("service-account-conflict", Error, OLM, "service_account_conflict.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let mut accounts = BTreeMap::new();
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let pod = deployment.spec.template.spec.as_ref();
        if let Some(name) = pod.and_then(|pod| pod.service_account_name.as_deref()) {
            accounts.entry(name).or_insert(index);
        }
    }
    for object in facts.objects() {
        if (object.api_version(), object.kind()) != ("v1", "ServiceAccount") {
            continue;
        }
        let Some(index) = accounts.get(object.name()) else { continue };
        let pod = steps!(
            "spec",
            "install",
            "spec",
            "deployments",
            *index,
            "spec",
            "template",
            "spec",
            "serviceAccountName"
        );
        let message = format!(
            "the service account `{}` is also a deployment's in the ClusterServiceVersion",
            object.name()
        );
        let finding = object
            .finding(&RULE.code, message, steps!("metadata", "name"))
            .and(csv.object.place(pod).label("OLM creates this one"));
        findings.push(finding.help("remove the manifest, or give one of the two another name"));
    }
}
