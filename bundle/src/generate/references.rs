//! What the Deployments need besides themselves: Secrets and ConfigMaps that something has to make.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::input::Objects;
use super::rbac::Rbac;
use super::workload::Workload;
use super::{Compat, codes, webhook};
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::pod;
use crate::yaml::steps;

/// By these annotations OpenShift makes a Secret for a Service.
const SERVING_CERT: [&str; 2] = [
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
];

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
    let mut said = BTreeSet::new();
    for deployment in &workload.deployments {
        let name = deployment.text("name");
        let Some(spec) = deployment.at(&["spec", "template", "spec"]) else { continue };
        for needed in pod::needed(&spec.to_json()) {
            let (kind, own) = (needed.kind, needed.name.as_str());
            let by_olm = serving.contains(name) && own == pod::certificate_of(name);
            if by_olm || is_made(objects, kind, own) || !said.insert((kind, own.to_owned())) {
                continue;
            }
            let message = format!(
                "the Deployment `{name}` needs the {kind} `{own}`, which nothing in the bundle creates"
            );
            let help = if kind == pod::PRIORITY {
                "add the PriorityClass to the manifests, or remove `priorityClassName`: the cluster refuses pods without it".to_owned()
            } else if kind == pod::CLAIM {
                "use `emptyDir` or `ephemeral.volumeClaimTemplate`, or tell users to create it before they install: a bundle cannot contain a PersistentVolumeClaim".to_owned()
            } else {
                help(objects, kind, own)
            };
            findings.push(spec.nearest(&needed.path).finding(&codes::REFERENCE_MISSING, message).help(help));
        }
    }
}

/// Who could make a Secret or ConfigMap that nothing in the bundle makes.
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

fn is_made(objects: &Objects<'_>, kind: &str, name: &str) -> bool {
    let by_service = |service: &Object<'_, '_>| {
        SERVING_CERT.iter().any(|key| service.text(steps!("metadata", "annotations", *key)) == name)
    };
    objects.others.iter().any(|object| object.kind() == kind && object.name() == name)
        || kind == "Secret" && objects.services.iter().any(by_service)
}
