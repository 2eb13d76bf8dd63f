//! OLM and the controllers of Kubernetes, played on a real API server by the rules of the simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use olmkit::lifecycle::api::{Key, Resource, known};
use olmkit::lifecycle::cluster::{Cluster as _, ClusterError};
use olmkit::lifecycle::kubernetes::Kubernetes;
use olmkit::lifecycle::offer::Offer;
use olmkit::lifecycle::simulate::{Registry, Served, Store, Write, rules};
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::{Value, json};

use crate::server::{Server, connect};

/// How much faster than OLM it is played.
const FASTER: u32 = 20;

/// The kinds that are played with.
fn kinds() -> Vec<&'static Resource> {
    vec![
        &known::SUBSCRIPTION,
        &known::INSTALL_PLAN,
        &known::CSV,
        &known::CATALOG_SOURCE,
        &known::OPERATOR_GROUP,
        &known::OPERATOR_CONDITION,
        &known::NAMESPACE,
        &known::SERVICE_ACCOUNT,
        &known::ROLE,
        &known::ROLE_BINDING,
        &known::CLUSTER_ROLE,
        &known::CLUSTER_ROLE_BINDING,
        &known::DEPLOYMENT,
        &known::CRD,
    ]
}

/// The registry that the recordings were made with; another cluster's may listen there, and does not have their images.
const RECORDED: &str = "127.0.0.1:5000/";
/// A port that nobody listens on.
const NOWHERE: &str = "127.0.0.1:1/";

/// Where the inputs of a recording are: a copy whose images are in a registry that cannot be asked for them.
pub(crate) fn inputs(number: &str) -> PathBuf {
    static COPIED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apiserver-inputs").join(number);
    if COPIED.lock().unwrap().insert(number.to_owned()) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces/inputs");
        copy(&from.join(number), &to);
    }
    to
}

pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        let text = fs::read_to_string(from).unwrap();
        return fs::write(to, text.replace(RECORDED, NOWHERE)).unwrap();
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

/// The catalog of a recording, its bundles inline: no Job can run here that would unpack them.
fn registry(number: &str) -> Registry {
    let files = CatalogFiles::load(&inputs(number).join("catalog-1")).unwrap();
    let mut offer = Offer::of(&Catalog::parse(&files));
    for package in offer.packages.values_mut() {
        for (name, bundle) in &mut package.bundles {
            let files = BundleFiles::load(&inputs(number).join("bundles").join(name)).unwrap();
            bundle.manifests = Bundle::parse(&files).objects().map(|object| object.root.to_json()).collect();
            bundle.image = String::new();
        }
    }
    let mut registry = Registry::default();
    registry.catalogs.insert("catalog".into(), Arc::new(offer));
    registry
}

/// The kinds of OLM and a catalog, put onto a server.
pub(crate) fn prepare(server: &Server) {
    let mut cluster = server.connect();
    let text = include_str!("../fixtures/olm-crds/crds.yaml");
    for document in olmkit_bundle::yaml::documents(text) {
        let crd = document.unwrap().root.to_json();
        if crd.is_object() {
            cluster.create(&known::CRD, &crd).unwrap();
        }
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "olm"}});
    cluster.create(&known::NAMESPACE, &namespace).unwrap();
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "catalog", "namespace": "olm"}, "spec": {"sourceType": "grpc", "image": "catalog"},
    });
    let begun = Instant::now();
    // A kind is served a moment after its CRD was taken.
    while cluster.create(&known::CATALOG_SOURCE, &source).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(90), "the CRDs are not served");
    }
}

/// OLM, until the value ends.
pub(crate) struct Olm {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Olm {
    pub(crate) fn start(server: &Server, number: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, kubeconfig) = (Arc::clone(&stop), server.kubeconfig(crate::server::ADMIN));
        let registry = registry(number);
        let thread = std::thread::spawn(move || {
            let mut player = Player {
                cluster: connect(&kubeconfig),
                registry,
                served: BTreeMap::new(),
                pending: BTreeMap::new(),
                begun: Instant::now(),
            };
            while !stopped.load(Ordering::Relaxed) {
                player.round();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Olm {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Player {
    cluster: Kubernetes,
    registry: Registry,
    served: BTreeMap<Key, Served>,
    /// Since when each change has been due.
    pending: BTreeMap<String, Instant>,
    begun: Instant,
}

impl Player {
    /// Looks at everything and does what is due; what the server refuses is due again in the next round.
    fn round(&mut self) {
        let Ok(documents) = self.look() else { return };
        self.collect_garbage(&documents);
        let store = Store::of(documents, self.begun.elapsed() * FASTER);
        let view = rules::View { store: &store, served: &self.served, registry: &self.registry };
        let due = rules::due(&view);
        self.pending.retain(|name, _| due.iter().any(|change| change.name == *name));
        for change in due {
            let since = *self.pending.entry(change.name.clone()).or_insert_with(Instant::now);
            if since.elapsed() * FASTER >= change.delay {
                self.pending.remove(&change.name);
                for write in change.writes {
                    let _ = self.write(write);
                }
            }
        }
    }

    fn look(&mut self) -> Result<Vec<Value>, ClusterError> {
        let mut documents = Vec::new();
        for kind in kinds() {
            documents.extend(self.cluster.list(kind, None)?);
        }
        Ok(documents)
    }

    fn write(&mut self, write: Write) -> Result<(), ClusterError> {
        let resource = |key: &Key| {
            known::all().into_iter().find(|kind| kind.kind == key.kind && kind.group == key.group)
        };
        match write {
            Write::Create(object) => match resource(&Key::of(&object)) {
                Some(resource) => self.cluster.create(resource, &object).map(drop),
                None => Ok(()),
            },
            Write::Patch { key, patch, status } => match resource(&key) {
                Some(resource) if status => self.cluster.patch_status(resource, &key, &patch),
                Some(resource) => self.cluster.patch(resource, &key, &patch).map(drop),
                None => Ok(()),
            },
            Write::Delete(key) => match resource(&key) {
                Some(resource) => self.cluster.delete(resource, &key),
                None => Ok(()),
            },
            Write::Serve { key, source } => {
                if let Some(offer) = self.registry.catalogs.get(&source) {
                    self.served.insert(key, Served { source, offer: Arc::clone(offer) });
                }
                Ok(())
            }
        }
    }

    /// What has owners that are all gone goes too; the controller manager would see to it.
    fn collect_garbage(&mut self, documents: &[Value]) {
        let uid = |object: &Value| object.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        let there: BTreeSet<String> = documents.iter().filter_map(uid).collect();
        for object in documents {
            let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let owners: Vec<&Value> = owners.into_iter().flatten().map(|owner| &owner["uid"]).collect();
            let orphan = !owners.is_empty()
                && owners.iter().all(|owner| !there.contains(owner.as_str().unwrap_or("")));
            if orphan && object.pointer("/metadata/deletionTimestamp").is_none() {
                let _ = self.write(Write::Delete(Key::of(object)));
            }
        }
    }
}
