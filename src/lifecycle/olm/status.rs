//! How OLM is: its programs, its CRDs, its API of packages, and the catalogs that it serves.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    CATALOG_OPERATOR, GROUP, OLM_OPERATOR, PACKAGE_SERVER, condition, is_own, manifests, probe, text,
};
use crate::lifecycle::api::{Key, known, label};
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::decide::Stuck;
use crate::sentence::{Help, Sentence};
use crate::shell::command;

/// How OLM is on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OlmStatus {
    /// Whether anything of OLM is there.
    pub installed: bool,
    /// Whether olmkit installed it, so that `olm uninstall` may remove it.
    pub installed_by_olmkit: bool,
    /// Where it runs; empty where it does not.
    pub namespace: String,
    /// Its version; empty where it is not known.
    pub version: String,
    /// Its programs.
    pub components: Vec<Component>,
    /// Its CustomResourceDefinitions.
    pub crds: Vec<Crd>,
    /// Whether the API of packages answers, which `kubectl get packagemanifests` asks.
    pub packages_served: bool,
    /// The CatalogSources of all namespaces.
    pub catalogs: Vec<Catalog>,
    /// How many operators are installed: ClusterServiceVersions that are no copies, without OLM's own.
    pub operators: usize,
    /// What is wrong, a sentence each; empty when OLM is healthy.
    pub problems: Vec<String>,
}

/// A program of OLM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Component {
    /// The Deployment.
    pub name: String,
    /// The image that it runs.
    pub image: String,
    /// How many pods there should be.
    pub wanted: u64,
    /// How many are available.
    pub available: u64,
}

/// A CustomResourceDefinition of OLM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Crd {
    /// Its name.
    pub name: String,
    /// The versions that it serves.
    pub versions: Vec<String>,
    /// Whether the cluster serves it.
    pub established: bool,
}

/// A CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Catalog {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The image, or the address, that it is served from; empty for neither.
    pub source: String,
    /// The state of the connection, such as READY; empty before OLM has tried.
    pub state: String,
}

/// Looks at OLM.
///
/// # Errors
/// The cluster does not answer, or does not allow it.
pub fn look(cluster: &mut dyn Cluster) -> Result<OlmStatus, ClusterError> {
    let deployments = cluster.list(&known::DEPLOYMENT, None)?;
    let namespace = deployments
        .iter()
        .map(Key::of)
        .find(|key| key.name == OLM_OPERATOR)
        .map(|key| key.namespace)
        .unwrap_or_default();
    let suffix = format!(".{GROUP}");
    let crds = cluster.list(&known::CRD, None)?;
    let crds: Vec<&Value> = crds.iter().filter(|crd| Key::of(crd).name.ends_with(&suffix)).collect();
    let csvs = served(cluster.list(&known::CSV, None))?;
    let catalogs = served(cluster.list(&known::CATALOG_SOURCE, None))?;
    let own: Vec<&Value> = deployments.iter().filter(|found| is_component(found, &namespace)).collect();
    let packages = packages(cluster, &namespace)?;
    let all: Vec<&Value> = own.iter().copied().chain(&csvs).collect();
    let mut status = OlmStatus {
        installed: !own.is_empty() || !crds.is_empty(),
        installed_by_olmkit: own.iter().copied().chain(crds.iter().copied()).any(is_own),
        version: manifests::version(all.iter().copied()),
        components: own.iter().map(|found| component(found)).collect(),
        crds: crds.iter().map(|found| crd(found)).collect(),
        packages_served: packages.is_ok(),
        catalogs: catalogs.iter().map(catalog).collect(),
        operators: csvs.iter().filter(|csv| is_operator(csv)).count(),
        problems: Vec::new(),
        namespace,
    };
    status.problems = problems(&status, &csvs, packages.err());
    Ok(status)
}

/// Whether the API of packages answers; why not, where somebody says so. Where the cluster knows that nobody serves it, it is not asked:
/// it would be asked again for a minute.
fn packages(cluster: &mut dyn Cluster, namespace: &str) -> Result<Result<(), String>, ClusterError> {
    let kind = &known::PACKAGE_MANIFEST;
    let name = format!("{}.{}", kind.version, kind.group);
    let service = match cluster.get(&known::API_SERVICE, "", &name) {
        Err(error @ (ClusterError::Interrupted | ClusterError::TimedOut { .. })) => return Err(error),
        service => service.ok().flatten(),
    };
    let down = service.as_ref().and_then(|service| condition(service, "Available"));
    if let Some(down) = down.filter(|found| found["status"] == "False") {
        let (reason, message) = (text(down, "/reason"), text(down, "/message"));
        return Ok(Err(format!(": apiservice/{name} is not available ({reason}): {message}")));
    }
    match cluster.list(kind, Some(namespace)) {
        Ok(_) => Ok(Ok(())),
        Err(ClusterError::Interrupted) => Err(ClusterError::Interrupted),
        Err(ClusterError::NotServed { .. }) => {
            Ok(Err(format!(": the cluster does not serve `{}`", kind.full_name())))
        }
        Err(error) => Ok(Err(format!(": {error}"))),
    }
}

/// What a cluster without the kind has: nothing.
pub(super) fn served(listed: Result<Vec<Value>, ClusterError>) -> Result<Vec<Value>, ClusterError> {
    match listed {
        Err(ClusterError::NotServed { .. }) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Whether a ClusterServiceVersion is an operator's: no copy, and not OLM's own.
pub(super) fn is_operator(csv: &Value) -> bool {
    let labels = csv.pointer("/metadata/labels");
    let is_copy = labels.is_some_and(|labels| !labels[label::COPIED_FROM].is_null());
    !is_copy && !super::is_package_server(&Key::of(csv))
}

fn is_component(deployment: &Value, namespace: &str) -> bool {
    let key = Key::of(deployment);
    key.namespace == namespace
        && [OLM_OPERATOR, CATALOG_OPERATOR, PACKAGE_SERVER].contains(&key.name.as_str())
}

fn component(deployment: &Value) -> Component {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64);
    Component {
        name: Key::of(deployment).name,
        image: text(deployment, "/spec/template/spec/containers/0/image").to_owned(),
        wanted: number("/spec/replicas").unwrap_or(1),
        available: number("/status/availableReplicas").unwrap_or(0),
    }
}

fn crd(crd: &Value) -> Crd {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
    Crd {
        name: Key::of(crd).name,
        versions: served.filter_map(|version| Some(version["name"].as_str()?.to_owned())).collect(),
        established: condition(crd, "Established").is_some_and(|found| found["status"] == "True"),
    }
}

fn catalog(source: &Value) -> Catalog {
    let Key { namespace, name, .. } = Key::of(source);
    let image = text(source, "/spec/image");
    let from = if image.is_empty() { text(source, "/spec/address") } else { image };
    Catalog { namespace, name, source: from.to_owned(), state: text(source, probe::CONNECTION).to_owned() }
}

/// Whether a Deployment is up, all of its pods, in its newest form.
pub(super) fn is_available(deployment: &Value) -> bool {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let wanted = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    number("/status/observedGeneration") >= number("/metadata/generation")
        && number("/status/updatedReplicas") >= wanted
        && number("/status/availableReplicas") >= wanted
}

fn problems(status: &OlmStatus, csvs: &[Value], packages: Option<String>) -> Vec<String> {
    if !status.installed {
        return vec!["OLM is not installed".to_owned()];
    }
    let mut problems = Vec::new();
    for name in [OLM_OPERATOR, CATALOG_OPERATOR] {
        if !status.components.iter().any(|found| found.name == name) {
            problems.push(format!("deployment/{name} does not exist"));
        }
    }
    let down = status.components.iter().filter(|found| found.available < found.wanted);
    problems.extend(down.map(|found| {
        format!("deployment/{}: {} of {} pods are available", found.name, found.available, found.wanted)
    }));
    let missing = manifests::CRDS.iter().map(|name| format!("{name}.{GROUP}"));
    let missing = missing.filter(|name| !status.crds.iter().any(|crd| crd.name == *name));
    problems.extend(missing.map(|name| format!("the CustomResourceDefinition `{name}` does not exist")));
    let unserved = status.crds.iter().filter(|crd| !crd.established);
    problems.extend(
        unserved.map(|crd| format!("the CustomResourceDefinition `{}` is not established", crd.name)),
    );
    let has_package_server = csvs.iter().any(|csv| super::is_package_server(&Key::of(csv)))
        || status.components.iter().any(|found| found.name == PACKAGE_SERVER);
    if let Some(why) = packages.filter(|_| has_package_server) {
        problems.push(format!("the API of packages does not answer{why}"));
    }
    let idle = status.catalogs.iter().filter(|catalog| catalog.state != "READY");
    problems.extend(idle.map(|catalog| {
        let state = if catalog.state.is_empty() { "not connected yet" } else { &catalog.state };
        format!("catalogsource/{} in {}: {state}", catalog.name, catalog.namespace)
    }));
    problems
}

/// Why a pod does not run, where it says so.
pub(super) fn pod_fault(pod: &Value) -> Option<Stuck> {
    let name = Key::of(pod).to_string();
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let statuses = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    let waiting = statuses.filter_map(|status| Some((status, status.pointer("/state/waiting")?)));
    for (status, waiting) in waiting {
        let (reason, message) = (text(waiting, "/reason"), text(waiting, "/message"));
        let (code, help) = match reason {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" => (
                "image-pull",
                Help::from("push the image where nodes can pull it, and name it with --image FROM=TO"),
            ),
            "CrashLoopBackOff" => {
                let namespace = Key::of(pod).namespace;
                let pod = Key::of(pod).name;
                let logs = command!("kubectl logs {} -n {} --previous", pod, namespace);
                ("crash", (Sentence::from("look at its log: ") + logs).into())
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                ("container", "correct the manifests".into())
            }
            _ => continue,
        };
        let image = text(status, "/image");
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        let sentence = format!("{name} cannot run `{image}`: {reason}{message}");
        return Some(Stuck { code, sentence, help });
    }
    let scheduled = condition(pod, "PodScheduled").filter(|found| found["reason"] == "Unschedulable")?;
    Some(Stuck {
        code: "unschedulable",
        sentence: format!("{name} finds no node: {}", text(scheduled, "/message")),
        help: Help::default(),
    })
}
