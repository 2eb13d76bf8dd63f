//! What a pod needs of its namespace before its containers can start, and what is there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::installed::{self, CERTIFICATE_KEYS};
use crate::yaml::{Step, steps};

/// A ConfigMap, Secret, PersistentVolumeClaim or PriorityClass that a pod cannot start without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// `ConfigMap`, `Secret`, [`CLAIM`] or [`PRIORITY`].
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The keys that it has to have.
    pub keys: BTreeSet<String>,
    /// Where the pod's `spec` names it.
    pub path: Vec<Step<'static>>,
}

/// The kind of claims of storage, which no bundle can carry.
pub const CLAIM: &str = "PersistentVolumeClaim";

/// The kind of what `priorityClassName` names.
pub const PRIORITY: &str = "PriorityClass";

/// The PriorityClasses of every cluster, and the one of OpenShift for what users need.
const PRIORITIES_OF_CLUSTERS: [&str; 3] =
    ["system-cluster-critical", "system-node-critical", "openshift-user-critical"];

/// ConfigMaps that clusters put into every namespace.
const IN_EVERY_NAMESPACE: [&str; 2] = ["kube-root-ca.crt", "openshift-service-ca.crt"];

/// By these annotations OpenShift makes a Secret with a certificate for a Service.
const SERVING_CERT: [&str; 2] = [
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
];

/// Everything that the `spec` of a pod mounts or reads and does not call optional, each object once. The kubelet does not look at
/// a volume that no container mounts; the scheduler looks at all claims.
///
/// ```
/// use olmkit_bundle::pod::needed;
/// use serde_json::json;
///
/// let pod = json!({
///     "containers": [{"volumeMounts": [{"name": "cert"}, {"name": "extra"}]}],
///     "volumes": [
///         {"name": "cert", "secret": {"secretName": "serving-cert"}},
///         {"name": "extra", "configMap": {"name": "extra", "optional": true}},
///         {"name": "unused", "configMap": {"name": "unused"}},
///     ],
/// });
/// let needed = needed(&pod);
/// assert_eq!((needed[0].kind, needed[0].name.as_str(), needed.len()), ("Secret", "serving-cert", 1));
/// ```
pub fn needed(pod: &Value) -> Vec<Needed> {
    let mut needs = Needs::default();
    needs.add(pod, "priorityClassName", PRIORITY, &[]);
    let mounted = mounted(pod);
    for (at, volume) in list(pod, "volumes") {
        let claim = steps!("volumes", at, "persistentVolumeClaim");
        needs.add(&volume["persistentVolumeClaim"], "claimName", CLAIM, claim);
        if !volume.get("name").and_then(Value::as_str).is_some_and(|name| mounted.contains(name)) {
            continue;
        }
        needs.add(&volume["secret"], "secretName", "Secret", steps!("volumes", at, "secret"));
        needs.add(&volume["configMap"], "name", "ConfigMap", steps!("volumes", at, "configMap"));
        for (index, source) in list(&volume["projected"], "sources") {
            let path = |key| {
                [steps!("volumes", at, "projected", "sources", index) as &[_], &[Step::Key(key)]].concat()
            };
            needs.add(&source["secret"], "name", "Secret", &path("secret"));
            needs.add(&source["configMap"], "name", "ConfigMap", &path("configMap"));
        }
    }
    for containers in ["initContainers", "containers"] {
        for (at, container) in list(pod, containers) {
            for (index, variable) in list(container, "env") {
                let path = |key| {
                    [steps!(containers, at, "env", index, "valueFrom") as &[_], &[Step::Key(key)]].concat()
                };
                let from = &variable["valueFrom"];
                needs.add(&from["secretKeyRef"], "name", "Secret", &path("secretKeyRef"));
                needs.add(&from["configMapKeyRef"], "name", "ConfigMap", &path("configMapKeyRef"));
            }
            for (index, from) in list(container, "envFrom") {
                let path =
                    |key| [steps!(containers, at, "envFrom", index) as &[_], &[Step::Key(key)]].concat();
                needs.add(&from["secretRef"], "name", "Secret", &path("secretRef"));
                needs.add(&from["configMapRef"], "name", "ConfigMap", &path("configMapRef"));
            }
        }
    }
    needs.0
}

/// What a pod needs, as far as it is known.
#[derive(Default)]
struct Needs(Vec<Needed>);

impl Needs {
    /// Adds what a reference names under a key.
    fn add(&mut self, reference: &Value, key: &'static str, kind: &'static str, path: &[Step<'static>]) {
        let name = reference.get(key).and_then(Value::as_str).unwrap_or("");
        let everywhere = match kind {
            "ConfigMap" => IN_EVERY_NAMESPACE.contains(&name),
            PRIORITY => PRIORITIES_OF_CLUSTERS.contains(&name),
            _ => false,
        };
        if name.is_empty() || everywhere || reference.get("optional") == Some(&Value::Bool(true)) {
            return;
        }
        let of_items = list(reference, "items").filter_map(|(_, item)| item["key"].as_str());
        let keys = of_items.chain(reference["key"].as_str()).map(str::to_owned);
        match self.0.iter_mut().find(|own| own.kind == kind && own.name == name) {
            Some(known) => known.keys.extend(keys),
            None => {
                let path = path.iter().copied().chain([Step::Key(key)]).collect();
                self.0.push(Needed { kind, name: name.to_owned(), keys: keys.collect(), path });
            }
        }
    }
}

/// The volumes that a container mounts.
fn mounted(pod: &Value) -> BTreeSet<&str> {
    let containers = ["initContainers", "containers"].into_iter().flat_map(|key| list(pod, key));
    let mounts = containers.flat_map(|(_, own)| list(own, "volumeMounts").chain(list(own, "volumeDevices")));
    mounts.filter_map(|(_, mount)| mount["name"].as_str()).collect()
}

/// The Secrets, ConfigMaps and PriorityClasses of a bundle or a namespace, and what OLM and OpenShift make for it.
#[derive(Clone, Debug, Default)]
pub struct Available(BTreeMap<(String, String), Keys>);

/// The keys of an object; none where something else fills it in.
type Keys = Option<BTreeSet<String>>;

/// Why a pod cannot have what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The object does not exist.
    Object,
    /// It exists without a key.
    Key {
        /// The missing key.
        key: String,
        /// The keys that it has.
        found: Vec<String>,
    },
}

/// Whether objects of a kind are of use to pods, or become so.
pub(crate) fn is_of_use(kind: &str) -> bool {
    matches!(kind, "Secret" | "ConfigMap" | PRIORITY | CLAIM | "Service")
}

impl Available {
    /// Adds an object, if it is of use to pods, and what OpenShift makes for it.
    pub fn add(&mut self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let kind = text("/kind");
        let name = text("/metadata/name").to_owned();
        match kind {
            "Secret" | "ConfigMap" => drop(self.0.insert((kind.to_owned(), name), keys(object))),
            PRIORITY | CLAIM => drop(self.0.insert((kind.to_owned(), name), None)),
            "Service" => {
                for annotation in SERVING_CERT {
                    if let Some(secret) = object["metadata"]["annotations"][annotation].as_str() {
                        self.secret(secret.to_owned(), &["tls.crt", "tls.key"]);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the certificate that OLM makes for a Deployment.
    pub fn add_certificate_of(&mut self, deployment: &str) {
        self.secret(installed::certificate_of(deployment), &CERTIFICATE_KEYS);
    }

    fn secret(&mut self, name: String, keys: &[&str]) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        self.0.insert(("Secret".to_owned(), name), Some(keys));
    }

    /// What is missing of something that a pod needs, if anything is.
    ///
    /// ```
    /// use olmkit_bundle::pod::{Available, Lack, needed};
    /// let pod = serde_json::json!({
    ///     "containers": [{"volumeMounts": [{"name": "cert"}]}],
    ///     "volumes": [{"name": "cert", "secret": {"secretName": "redis-service-cert", "items": [{"key": "ca.crt"}]}}],
    /// });
    /// let mut available = Available::default();
    /// assert_eq!(available.lacks(&needed(&pod)[0]), Some(Lack::Object));
    /// available.add_certificate_of("redis");
    /// assert!(matches!(available.lacks(&needed(&pod)[0]), Some(Lack::Key { key, .. }) if key == "ca.crt"));
    /// ```
    pub fn lacks(&self, needed: &Needed) -> Option<Lack> {
        let Some(keys) = self.0.get(&(needed.kind.to_owned(), needed.name.clone())) else {
            return Some(Lack::Object);
        };
        let keys = keys.as_ref()?;
        let key = needed.keys.iter().find(|key| !keys.contains(*key))?;
        Some(Lack::Key { key: key.clone(), found: keys.iter().cloned().collect() })
    }
}

/// The keys of a Secret or a ConfigMap, if the manifest has all of them: an empty one is filled in by the operator, and some by a
/// controller of the cluster.
fn keys(object: &Value) -> Keys {
    const INJECTED: [&str; 3] = [
        "/metadata/labels/config.openshift.io~1inject-trusted-cabundle",
        "/metadata/annotations/service.beta.openshift.io~1inject-cabundle",
        "/metadata/annotations/kubernetes.io~1service-account.name",
    ];
    let maps = ["data", "stringData", "binaryData"].map(|key| object.get(key).and_then(Value::as_object));
    let keys: BTreeSet<String> = maps.into_iter().flatten().flat_map(|map| map.keys().cloned()).collect();
    let is_injected = INJECTED.iter().any(|pointer| object.pointer(pointer).is_some());
    (!keys.is_empty() && !is_injected).then_some(keys)
}

impl Lack {
    /// The sentence about a Deployment that needs something.
    pub(crate) fn message(&self, deployment: &str, needed: &Needed) -> String {
        let plain = crate::refused::plain;
        let (kind, name) = (needed.kind, plain(&needed.name));
        match self {
            Self::Object => format!(
                "the Deployment `{deployment}` needs the {kind} `{name}`, which nothing in the bundle creates"
            ),
            Self::Key { key, found } => format!(
                "the Deployment `{deployment}` needs the key `{}` of the {kind} `{name}`, which has only `{}`",
                plain(key),
                found.iter().map(|own| plain(own)).collect::<Vec<_>>().join("`, `")
            ),
        }
    }
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
}
