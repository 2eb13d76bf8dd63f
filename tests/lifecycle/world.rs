//! A simulated cluster with a catalog of the recordings' inputs, which the tests of the verbs share.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use olmkit::lifecycle::api::{CatalogSource, Key, Object, Resource, known};
use olmkit::lifecycle::decide::Accept;
use olmkit::lifecycle::engine::{Catalogs, ContentError, Engine, EngineError, Options, Progress};
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::offer::{Offer, OfferedBundle};
use olmkit::lifecycle::operator::Operator;
use olmkit::lifecycle::rollback::Archive;
use olmkit::lifecycle::simulate::{Registry, Simulation};
use olmkit::lifecycle::upgrade::Upgrade;
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::{Value, json};

pub(crate) const NS: &str = "ns";

pub(crate) fn inputs(number: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces/inputs").join(number)
}

/// A cluster with a catalog of the recordings' inputs, and a namespace.
pub(crate) struct World {
    pub(crate) cluster: Simulation,
    pub(crate) offer: Arc<Offer>,
    pub(crate) said: RefCell<Vec<String>>,
    pub(crate) kept: RefCell<Vec<Value>>,
    /// What registries have: bundles, and images that are not there or cannot be asked for.
    pub(crate) bundles: BTreeMap<String, Vec<Value>>,
    pub(crate) missing: BTreeSet<String>,
    pub(crate) unreachable: BTreeSet<String>,
}

impl Catalogs for World {
    fn offer(&self, _: &Object<CatalogSource>) -> Result<Arc<Offer>, Box<dyn Error + Send + Sync>> {
        Ok(Arc::clone(&self.offer))
    }

    fn manifests(&self, name: &str, bundle: &OfferedBundle) -> Result<Vec<Value>, ContentError> {
        self.image(&bundle.image)?;
        let reference = bundle.image.clone();
        self.bundles.get(name).cloned().ok_or(ContentError::NotFound { reference })
    }

    fn image(&self, reference: &str) -> Result<(), ContentError> {
        let reference = reference.to_owned();
        if self.unreachable.contains(&reference) {
            return Err(ContentError::Unreadable { reference, source: "cannot reach `registry`".into() });
        }
        if self.missing.contains(&reference) { Err(ContentError::NotFound { reference }) } else { Ok(()) }
    }
}

impl Progress for World {
    fn state(&self, _: Duration, object: &str, state: &str) {
        self.said.borrow_mut().push(format!("{object}: {state}"));
    }

    fn said(&self, _: Duration, text: &str) {
        self.said.borrow_mut().push(text.to_owned());
    }
}

/// Keeps in memory.
pub(crate) struct Memory<'m>(pub(crate) &'m World);

impl Archive for Memory<'_> {
    fn keep(&self, name: &str, objects: &[Value]) -> Result<String, Box<dyn Error + Send + Sync>> {
        self.0.kept.borrow_mut().extend(objects.iter().cloned());
        Ok(name.to_owned())
    }
}

impl World {
    pub(crate) fn of(number: &str) -> Self {
        let files = CatalogFiles::load(&inputs(number).join("catalog-1")).unwrap();
        let offer = Arc::new(Offer::of(&Catalog::parse(&files)));
        let mut registry = Registry::default();
        registry.catalogs.insert("catalog".into(), Arc::clone(&offer));
        for directory in std::fs::read_dir(inputs(number).join("bundles")).unwrap() {
            let directory = directory.unwrap();
            let files = BundleFiles::load(&directory.path()).unwrap();
            let manifests = Bundle::parse(&files).objects().map(|object| object.root.to_json()).collect();
            registry.bundles.insert(directory.file_name().to_string_lossy().into_owned(), manifests);
        }
        let bundles = registry.bundles.clone();
        let mut cluster = Simulation::new(registry);
        for document in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}),
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
                "metadata": {"name": "catalog", "namespace": "olm"}, "spec": {"sourceType": "grpc", "image": "catalog"},
            }),
        ] {
            cluster.store().create(document).unwrap();
        }
        Self {
            cluster,
            offer,
            said: RefCell::default(),
            kept: RefCell::default(),
            bundles,
            missing: BTreeSet::new(),
            unreachable: BTreeSet::new(),
        }
    }

    /// Changes the objects of a kind in a bundle, wherever it is.
    pub(crate) fn change(&mut self, bundle: &str, kind: &str, change: impl Fn(&mut Value)) {
        for bundles in [&mut self.bundles, &mut self.cluster.registry().bundles] {
            let objects = bundles.get_mut(bundle).unwrap().iter_mut();
            objects.filter(|object| object["kind"] == kind).for_each(&change);
        }
    }

    /// Changes the CRD of a bundle, wherever it is.
    pub(crate) fn change_crd(&mut self, bundle: &str, change: impl Fn(&mut Value)) {
        self.change(bundle, "CustomResourceDefinition", change);
    }

    /// Changes the ClusterServiceVersion of a bundle, wherever it is.
    pub(crate) fn change_csv(&mut self, bundle: &str, change: impl Fn(&mut Value)) {
        self.change(bundle, "ClusterServiceVersion", change);
    }

    /// One more object in a bundle, wherever it is.
    pub(crate) fn add_manifest(&mut self, bundle: &str, object: Value) {
        for bundles in [&mut self.bundles, &mut self.cluster.registry().bundles] {
            bundles.get_mut(bundle).unwrap().push(object.clone());
        }
    }

    /// Plans that wait for approval were never made, and their Subscriptions are where they are installed.
    pub(crate) fn forget_open_plans(&mut self) {
        let plans: Vec<Value> = self.cluster.store().list(&known::INSTALL_PLAN, None).cloned().collect();
        for plan in plans.iter().filter(|plan| plan["spec"]["approved"] != true) {
            self.cluster.store().delete(&Key::of(plan));
        }
        let subscription = self.subscription();
        let installed = subscription["status"]["installedCSV"].clone();
        let status = json!({"status": {"currentCSV": installed, "state": "AtLatestKnown"}});
        self.cluster.store().patch(&Key::of(&subscription), &status).unwrap();
    }

    /// Changes the largest `size` that a bundle allows.
    pub(crate) fn limit_size(&mut self, bundle: &str, maximum: i64) {
        let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
        self.change_crd(bundle, |crd| crd.pointer_mut(size).unwrap()["maximum"] = json!(maximum));
    }

    /// Something that is there from the start.
    pub(crate) fn with(mut self, document: Value) -> Self {
        self.cluster.store().create(document).unwrap();
        self
    }

    /// Does something with an engine on the cluster.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce(&mut Engine<'_>, &World) -> T) -> T {
        self.run_with(Options::default(), work)
    }

    pub(crate) fn run_with<T>(
        &mut self,
        options: Options,
        work: impl FnOnce(&mut Engine<'_>, &World) -> T,
    ) -> T {
        let mut cluster = std::mem::take(&mut self.cluster);
        let done = work(&mut Engine::new(&mut cluster, self, self, options), self);
        self.cluster = cluster;
        done
    }

    pub(crate) fn install(&mut self, request: Install) -> Result<Operator, EngineError> {
        self.run(|engine, _| engine.install(&request))
    }

    pub(crate) fn upgrade(
        &mut self,
        to: Option<&str>,
        channel: Option<&str>,
    ) -> Result<Operator, EngineError> {
        let request = Upgrade {
            name: "demo".into(),
            namespace: Some(NS.into()),
            to: to.map(Into::into),
            channel: channel.map(Into::into),
            ..Upgrade::default()
        };
        self.run(|engine, _| engine.upgrade(&request))
    }

    pub(crate) fn names(&mut self, resource: &Resource) -> Vec<String> {
        self.cluster.store().list(resource, None).map(|object| Key::of(object).name).collect()
    }

    pub(crate) fn subscription(&mut self) -> Value {
        self.cluster.store().get(&Key::new(&known::SUBSCRIPTION, NS, "demo")).unwrap().clone()
    }

    /// A second Subscription of the namespace, with Manual approval.
    pub(crate) fn subscribe_to_cache_db(&mut self) {
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "cache-db", "namespace": NS},
            "spec": {
                "name": "cache-db", "channel": "stable", "source": "catalog", "sourceNamespace": "olm",
                "installPlanApproval": "Manual",
            },
        });
        self.cluster.store().create(subscription).unwrap();
    }

    /// A custom resource at the only version of its CRD.
    pub(crate) fn make_demo(&mut self, number: &str, size: i64) {
        let document = json!({
            "apiVersion": format!("t{number}.example.com/v1"), "kind": "Demo",
            "metadata": {"name": "example", "namespace": NS}, "spec": {"size": size},
        });
        self.cluster.store().create(document).unwrap();
    }
}

pub(crate) fn demo(version: Option<&str>) -> Install {
    Install {
        package: "demo".into(),
        namespace: NS.into(),
        version: version.map(Into::into),
        ..Install::default()
    }
}

/// ClusterServiceVersions that a plan may carry as well.
pub(crate) fn accept(csvs: &[&str]) -> Accept {
    Accept::named(csvs.iter().map(|csv| (*csv).to_owned()))
}

pub(crate) fn group(name: &str, targets: &[&str]) -> Value {
    let spec = if targets.is_empty() { json!({}) } else { json!({"targetNamespaces": targets}) };
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": NS}, "spec": spec,
    })
}

/// What an error says, and its way out.
pub(crate) fn told(error: EngineError) -> String {
    let help = match &error {
        EngineError::Stuck(stuck) => stuck.help.clone(),
        EngineError::Refused { help, .. } => help.clone(),
        EngineError::Blocked { blocker, stop } => blocker.ways_out(stop.as_deref()),
        _ => Default::default(),
    };
    format!("{error}\n{help}").trim_end().to_owned()
}

/// A message without the random part of a plan's name.
pub(crate) fn without_random(text: &str) -> String {
    let at = text.find("install-").map(|at| at + "install-".len());
    at.map_or_else(|| text.to_owned(), |at| format!("{}RANDOM{}", &text[..at], &text[at + 5..]))
}

/// With 0.1.0 installed, and a plan for 0.2.0 that waits.
pub(crate) fn waiting() -> World {
    let mut world = World::of("01");
    world.install(demo(Some("0.1.0"))).unwrap();
    let later = world.cluster.store().now() + Duration::from_secs(120);
    world.cluster.run_until(later);
    world
}
