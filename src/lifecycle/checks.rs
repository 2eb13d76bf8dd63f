//! What has to hold after a hop before the next one: OLM says that a version succeeded as soon as its deployments are up.

use serde_json::Value;

use super::api::{ClusterServiceVersion, Key, Named as _, Object, Resource, known, label};
use super::cluster::{Cluster, ClusterError, Said};
use super::observe::Observed;

/// A check, and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is checked, as a row says it.
    pub what: &'static str,
    /// What is wrong; none when it holds.
    pub fault: Option<String>,
}

/// Checks an operator's version that has come up.
///
/// # Errors
/// The cluster does not answer or does not allow it.
pub fn after_hop(
    cluster: &mut dyn Cluster,
    observed: &Observed,
    csv: &Object<ClusterServiceVersion>,
) -> Result<Vec<Check>, ClusterError> {
    let check = |what, fault| Check { what, fault };
    Ok(vec![
        check("the ClusterServiceVersion succeeded", phase(csv)),
        check("its requirements are met", requirements(csv)),
        check("its deployments run its images", deployments(observed, csv)),
        check("its webhooks are registered", webhooks(cluster, csv)?),
        check("its APIs are served", api_services(cluster, csv)?),
        check("custom resources can be read", custom_resources(cluster, csv)?),
        check("the Subscription reports it as installed", subscription(observed, csv)),
        check("its predecessor is gone", orphans(observed, csv)),
    ])
}

fn phase(csv: &ClusterServiceVersion) -> Option<String> {
    (!csv.succeeded()).then(|| format!("`{}` is {}", csv.name(), csv.status.phase))
}

/// What OLM says is missing. It looks again at each change and leaves the phase `Succeeded` when something is, but does not renew the
/// list on its way back: rights that came a moment late are listed as missing for ever.
fn requirements(csv: &ClusterServiceVersion) -> Option<String> {
    if csv.succeeded() {
        return None;
    }
    let unmet = csv.unmet().next()?;
    Some(format!("{} `{}` is {}", unmet.kind, unmet.name, unmet.status))
}

fn deployments(observed: &Observed, csv: &ClusterServiceVersion) -> Option<String> {
    csv.spec.install.spec.deployments.iter().find_map(|wanted| {
        let name = &wanted.name;
        let Some(found) = observed.deployments.iter().find(|found| found.name == *name) else {
            return Some(format!("deployment/{name} does not exist"));
        };
        if found.owner != csv.name() {
            return Some(format!("deployment/{name} belongs to `{}`", found.owner));
        }
        let pod = wanted.spec.template.spec.as_ref();
        let containers = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
        let images = containers.iter().filter_map(|container| container.image.as_deref());
        if let Some(image) = images.into_iter().find(|image| !found.images.iter().any(|own| own == image)) {
            return Some(format!("deployment/{name} does not run `{image}`"));
        }
        let (available, count) = (found.available, found.wanted);
        (!found.is_well()).then(|| format!("{available} of {count} pods of deployment/{name} are available"))
    })
}

fn webhooks(cluster: &mut dyn Cluster, csv: &ClusterServiceVersion) -> Result<Option<String>, ClusterError> {
    for webhook in &csv.spec.webhook_definitions {
        let resource = match webhook.kind.as_str() {
            "ValidatingAdmissionWebhook" => &*known::VALIDATING_WEBHOOK,
            "MutatingAdmissionWebhook" => &*known::MUTATING_WEBHOOK,
            _ => {
                for name in &webhook.conversion_crds {
                    let crd = cluster.get(&known::CRD, "", name)?;
                    let strategy = crd.as_ref().and_then(|crd| crd.pointer("/spec/conversion/strategy"));
                    if strategy != Some(&Value::from("Webhook")) {
                        return Ok(Some(format!("`{name}` is not converted by the webhook")));
                    }
                }
                continue;
            }
        };
        let registered = cluster.list(resource, None)?.iter().any(|found| {
            let labels = found.pointer("/metadata/labels");
            labels.is_some_and(|labels| {
                labels[label::OWNER] == csv.name()
                    && labels["olm.webhook-description-generate-name"] == webhook.generate_name.as_str()
            })
        });
        if !registered {
            return Ok(Some(format!("the webhook `{}` is not registered", webhook.generate_name)));
        }
    }
    Ok(None)
}

fn api_services(
    cluster: &mut dyn Cluster,
    csv: &ClusterServiceVersion,
) -> Result<Option<String>, ClusterError> {
    for owned in &csv.spec.api_service_definitions.owned {
        let name = format!("{}.{}", owned.version, owned.group);
        let found = cluster.get(&known::API_SERVICE, "", &name)?;
        let conditions = found.as_ref().and_then(|found| found.pointer("/status/conditions")?.as_array());
        let mut conditions = conditions.into_iter().flatten();
        if !conditions.any(|one| one["type"] == "Available" && one["status"] == "True") {
            return Ok(Some(format!("apiservice/{name} is not available")));
        }
    }
    Ok(None)
}

/// Reads the custom resources of every owned CRD at every version that is served.
fn custom_resources(
    cluster: &mut dyn Cluster,
    csv: &ClusterServiceVersion,
) -> Result<Option<String>, ClusterError> {
    for owned in &csv.spec.custom_resource_definitions.owned {
        let Some(crd) = cluster.get(&known::CRD, "", &owned.name)? else {
            return Ok(Some(format!("the CRD `{}` does not exist", owned.name)));
        };
        if !has_its_names(&crd) {
            return Ok(Some(format!("`{}` is not served, because another CRD has its names", owned.name)));
        }
        for resource in served(&crd) {
            match cluster.list(&resource, None) {
                Ok(_) => {}
                // An account that may install an operator need not be allowed to read custom resources.
                Err(ClusterError::Forbidden { .. }) => {}
                Err(
                    ClusterError::Refused { message, .. }
                    | ClusterError::Failed { source: Said(message), .. },
                ) => {
                    let name = resource.full_name();
                    return Ok(Some(format!("`{name}` cannot be read at {}: {message}", resource.version)));
                }
                Err(ClusterError::NotServed { resource }) => {
                    return Ok(Some(format!("`{resource}` is not served yet")));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

/// Whether no other CRD has the names of this one, as far as Kubernetes has looked.
fn has_its_names(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    !conditions.into_iter().flatten().any(|one| one["type"] == "NamesAccepted" && one["status"] == "False")
}

/// The custom resources of a CRD, at each version that is served.
pub fn served(crd: &Value) -> Vec<Resource> {
    let text = |path: &str| crd.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    let versions = crd.pointer("/spec/versions").filter(|_| has_its_names(crd)).and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
    served
        .map(|version| Resource {
            group: text("/spec/group"),
            version: version["name"].as_str().unwrap_or("").to_owned(),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            namespaced: text("/spec/scope") != "Cluster",
        })
        .collect()
}

fn subscription(observed: &Observed, csv: &ClusterServiceVersion) -> Option<String> {
    let subscription = observed.subscription.as_ref()?;
    let installed = &subscription.status.installed_csv;
    (installed != csv.name()).then(|| format!("{} reports `{installed}`", Key::of(subscription.document())))
}

fn orphans(observed: &Observed, csv: &ClusterServiceVersion) -> Option<String> {
    let old = csv.spec.replaces.as_str();
    if old.is_empty() {
        return None;
    }
    if observed.csv(old).is_some() {
        return Some(format!("clusterserviceversion/{old} is still there"));
    }
    let orphan = observed.deployments.iter().find(|found| found.owner == old)?;
    Some(format!("deployment/{} still belongs to `{old}`", orphan.name))
}
