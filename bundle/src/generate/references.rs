//! What the Deployments need besides themselves: Secrets and ConfigMaps that something has to make.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::input::Objects;
use super::rbac::Rbac;
use super::workload::Workload;
use super::{Compat, codes, webhook};
use crate::finding::{Finding, Findings};
use crate::installed;
use crate::parse::Object;
use crate::pod::{self, Available, Lack};
use crate::yaml::steps;

/// Reports each Secret, ConfigMap and the like once that a Deployment cannot start without and that nothing makes. `serving` are the
/// Deployments that OLM issues certificates for.
pub(super) fn report(
    objects: &Objects<'_>,
    workload: &Workload<'_>,
    serving: &BTreeSet<String>,
    rbac: &Rbac<'_>,
    compat: Option<Compat>,
    is_chart: bool,
    findings: &mut Findings,
) {
    if compat.is_some() {
        return;
    }
    if objects.crds.is_empty() && objects.api_services.is_empty() {
        findings.extend(no_api(rbac).or_else(|| plain(objects).filter(|_| is_chart)));
    }
    for sample in &objects.samples {
        // Many things are called like the operator; a namespace is the most common of them.
        let reads = |own: &&Object<'_, '_>| {
            !workload.namespaces.contains(sample.name()) && is_value(own, sample.name())
        };
        let Some(deployment) = objects.deployments.iter().find(reads) else { continue };
        let message = format!(
            "`{}` names the custom resource `{}`, which OLM does not create",
            deployment.id(),
            sample.id()
        );
        let finding = sample.finding(&codes::CUSTOM_RESOURCE_NEEDED, message, steps!("metadata", "name"));
        findings
            .push(finding.help("have the operator create it, or tell users to create it after they install"));
    }
    lacking(objects, workload, serving, findings);
}

/// What the pods need and would not have, as OLM makes them.
fn lacking(
    objects: &Objects<'_>,
    workload: &Workload<'_>,
    serving: &BTreeSet<String>,
    findings: &mut Findings,
) {
    let mut in_bundle = Available::default();
    let kept = objects.others.iter().filter(|object| pod::is_of_use(object.kind()));
    kept.chain(&objects.services).for_each(|object| in_bundle.add(&object.root.to_json()));
    let mut said = BTreeSet::new();
    for deployment in &workload.deployments {
        let name = deployment.text("name");
        let Some(spec) = deployment.at(&["spec", "template", "spec"]) else { continue };
        let mut available = in_bundle.clone();
        let mut pod = spec.to_json();
        if serving.contains(name) {
            available.add_certificate_of(name);
            if let Ok(mut typed) = serde_json::from_value(pod.clone()) {
                installed::mount_certificates(&mut typed, &installed::certificate_of(name));
                pod = serde_json::to_value(&typed).unwrap_or(pod);
            }
        }
        for needed in pod::needed(&pod) {
            let (kind, own) = (needed.kind, needed.name.as_str());
            let Some(lack) = available.lacks(&needed) else { continue };
            // `webhook` tells what of OLM's certificate is missing.
            let is_certificate = own == installed::certificate_of(name) && serving.contains(name);
            if is_certificate || !said.insert((kind, own.to_owned())) {
                continue;
            }
            let help = match (&lack, kind) {
                (Lack::Key { .. }, _) => {
                    format!("add the key to the {kind}, or set `optional: true`: the pods wait until it is there")
                }
                (_, pod::PRIORITY) => {
                    "add the PriorityClass to the manifests, or remove `priorityClassName`: the cluster refuses pods without it".to_owned()
                }
                (_, pod::CLAIM) => {
                    "use `emptyDir` or `ephemeral.volumeClaimTemplate`, or tell users to create it before they install: a bundle cannot contain a PersistentVolumeClaim".to_owned()
                }
                _ => help(objects, kind, own),
            };
            let message = lack.message(name, &needed);
            findings.push(spec.nearest(&needed.path).finding(&codes::REFERENCE_MISSING, message).help(help));
        }
    }
}

/// Where a Secret or ConfigMap can come from that nothing in the bundle creates.
fn help(objects: &Objects<'_>, kind: &str, name: &str) -> String {
    let issued = |certificate: &&Object<'_, '_>| {
        certificate.kind() == "Certificate" && certificate.text(steps!("spec", "secretName")) == name
    };
    match objects.certificates.iter().find(issued).filter(|_| kind == "Secret") {
        Some(certificate) => format!(
            "`{}` would create it, but a bundle cannot contain that: tell users to create it before they install, or set `optional: true`",
            certificate.id()
        ),
        None => format!(
            "add the {kind} to the manifests, set `optional: true` where the operator makes it, or tell users to create it before they install"
        ),
    }
}

/// Whether the value of a flag or a variable of a Deployment is this name, alone or behind a namespace.
fn is_value(deployment: &Object<'_, '_>, name: &str) -> bool {
    webhook::words(deployment).iter().any(|text| {
        let value = text.split_once('=').map_or(text.as_str(), |(_, value)| value);
        value.rsplit('/').next() == Some(name) && value.matches('/').count() < 2
    })
}

/// The finding about an operator that works with custom resources and brings no definition of any.
fn no_api(rbac: &Rbac<'_>) -> Option<Finding> {
    let entries = rbac.permissions.iter().chain(&rbac.cluster_permissions);
    for rule in entries.flat_map(|entry| entry.items_of("rules")) {
        // The groups of Kubernetes have no dot, or end in `k8s.io`.
        let custom = |group: &&Draft<'_>| {
            group.as_str().is_some_and(|name| name.contains('.') && !name.ends_with("k8s.io"))
        };
        if let Some(group) = rule.items_of("apiGroups").iter().find(custom) {
            let message = format!(
                "the operator has rights on `{}`, and there is no CustomResourceDefinition among the manifests: the bundle owns no API",
                group.as_str().unwrap_or("")
            );
            let finding = group.finding(&codes::NO_API, message);
            return Some(
                finding.help(
                    "give the CRDs of the operator too; many projects keep them in a file of their own",
                ),
            );
        }
    }
    None
}

/// The finding about a chart that has nothing to do with custom resources: most charts are no operators.
fn plain(objects: &Objects<'_>) -> Option<Finding> {
    let message = "the chart has no CustomResourceDefinition: the bundle owns no API";
    let finding = objects.deployments.first()?.finding(&codes::NO_API, message, steps!("kind"));
    Some(finding.help("give the CRDs of the operator too, which many charts leave out by default; if it has none, pass `--allow generate-no-api`"))
}
