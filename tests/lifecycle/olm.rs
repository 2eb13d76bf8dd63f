//! OLM itself, installed on a cluster in memory and removed from it: what is made, what is refused, and what is left when it fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use olmkit::lifecycle::api::{Key, Resource, known};
use olmkit::lifecycle::cluster::{Cluster, ClusterError};
use olmkit::lifecycle::engine::{Engine, EngineError, Options, Planned, Progress};
use olmkit::lifecycle::olm::NoCatalogs;
use olmkit::lifecycle::olm::install::Install;
use olmkit::lifecycle::olm::manifests::Release;
use olmkit::lifecycle::olm::status;
use olmkit::lifecycle::olm::uninstall::Uninstall;
use olmkit::lifecycle::patch::merge;
use serde_json::{Value, json};

use crate::release::{GROUP, manifests};

/// A cluster without OLM, and the controllers that an installation waits for.
#[derive(Default)]
struct Bare {
    objects: BTreeMap<Key, Value>,
    now: Duration,
    /// Whether pods cannot pull their images.
    broken: bool,
    /// Whether OLM does not answer Subscriptions.
    deaf: bool,
    /// Deletions, in their order.
    deleted: Vec<String>,
}

impl Bare {
    fn put(&mut self, object: Value) {
        self.objects.insert(Key::of(&object), object);
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        self.objects.keys().any(|key| key.kind == kind && key.name == name)
    }

    fn serves(&self, resource: &Resource) -> bool {
        resource.group != GROUP || self.has("CustomResourceDefinition", &resource.full_name())
    }

    fn runs(&self, deployment: &str) -> bool {
        !self.broken && self.has("Deployment", deployment)
    }

    /// What controllers do in a while.
    fn play(&mut self) {
        let (operator, catalog) = (self.runs("olm-operator"), self.runs("catalog-operator") && !self.deaf);
        let broken = self.broken;
        for (key, object) in &mut self.objects {
            match key.kind.as_str() {
                "CustomResourceDefinition" => {
                    object["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
                }
                "Deployment" if !broken => {
                    object["status"] = json!({"updatedReplicas": 1, "availableReplicas": 1});
                }
                "ClusterServiceVersion" if operator && object["status"].is_null() => {
                    object["status"] = json!({"phase": "Succeeded"});
                    object["metadata"]["finalizers"] = json!([format!("{GROUP}/csv-cleanup")]);
                }
                "OperatorGroup" if operator => {
                    object["status"] = json!({"namespaces": [key.namespace]});
                }
                "Subscription" if catalog => {
                    let message = "no operators found";
                    object["status"] =
                        json!({"conditions": [{"type": "ResolutionFailed", "message": message}]});
                }
                _ => {}
            }
            if operator && !object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["finalizers"] = Value::Null;
            }
        }
        if broken && self.has("Deployment", "olm-operator") {
            let waiting = json!({"reason": "ImagePullBackOff", "message": "not found"});
            self.put(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "olm-operator-1", "namespace": "olm", "labels": {"app": "olm-operator"}},
                "status": {"containerStatuses": [{"image": "olm:v1", "state": {"waiting": waiting}}]},
            }));
        }
        self.collect();
    }

    /// Removes what is on its way out and waits for nobody, with what is in a namespace or of a kind that goes.
    fn collect(&mut self) {
        let gone = |object: &Value| {
            let finalizers = object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
            !object["metadata"]["deletionTimestamp"].is_null() && finalizers == 0
        };
        self.objects.retain(|_, object| !gone(object));
    }
}

impl Cluster for Bare {
    fn context(&self) -> &str {
        ""
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        if !self.serves(resource) {
            return Err(ClusterError::NotServed { resource: resource.full_name() });
        }
        let is_meant = |key: &Key| {
            key.kind == resource.kind
                && key.group == resource.group
                && namespace.is_none_or(|namespace| key.namespace == namespace)
        };
        Ok(self.objects.iter().filter(|(key, _)| is_meant(key)).map(|(_, object)| object.clone()).collect())
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        Ok(self.objects.get(&Key::new(resource, namespace, name)).cloned())
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        if !self.serves(resource) {
            return Err(ClusterError::NotFound { key: Key::of(object) });
        }
        self.put(object.clone());
        Ok(object.clone())
    }

    fn patch(&mut self, _: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        let object = self.objects.get_mut(key).ok_or(ClusterError::NotFound { key: key.clone() })?;
        merge(object, patch);
        Ok(object.clone())
    }

    fn delete(&mut self, _: &Resource, key: &Key) -> Result<(), ClusterError> {
        if let Some(object) = self.objects.get_mut(key) {
            self.deleted.push(key.to_string());
            object["metadata"]["deletionTimestamp"] = json!("now");
        }
        if key.kind == "Namespace" {
            self.objects.retain(|other, _| other.namespace != key.name);
        }
        self.collect();
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        self.now += timeout;
        self.play();
        Ok(true)
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn time_of_day(&self) -> i64 {
        i64::try_from(self.now.as_millis()).unwrap()
    }
}

/// What was said.
#[derive(Default)]
struct Told(RefCell<Vec<String>>);

impl Progress for Told {
    fn state(&self, _: Duration, object: &str, state: &str) {
        self.0.borrow_mut().push(format!("{object}: {state}"));
    }

    fn said(&self, _: Duration, text: &str) {
        self.0.borrow_mut().push(text.to_owned());
    }
}

fn request(version: &str) -> Install {
    let release = Release::parse(&[("olm.yaml".to_owned(), manifests(version))]).unwrap();
    Install { release, adopt: false }
}

/// Does something, and says what was told and written.
fn run<T>(
    cluster: &mut Bare,
    options: Options,
    work: impl FnOnce(&mut Engine<'_>) -> Result<T, EngineError>,
) -> (Result<T, EngineError>, Vec<String>, Vec<Planned>) {
    let told = Told::default();
    let mut engine = Engine::new(cluster, &NoCatalogs, &told, options);
    let done = work(&mut engine);
    let planned = engine.planned;
    (done, told.0.into_inner(), planned)
}

fn install(cluster: &mut Bare, request: &Install) -> Result<status::OlmStatus, EngineError> {
    run(cluster, Options::default(), |engine| engine.install_olm(request)).0
}

#[test]
fn olm_is_installed_and_answers_before_it_is_called_installed() {
    let mut cluster = Bare::default();
    let (done, told, _) =
        run(&mut cluster, Options::default(), |engine| engine.install_olm(&request("0.46.0")));
    let olm = done.unwrap();
    assert_eq!((olm.version.as_str(), olm.namespace.as_str()), ("0.46.0", "olm"));
    assert!(olm.installed_by_olmkit && olm.problems.is_empty(), "{olm:?}");
    assert_eq!(told.last().unwrap(), "olm: resolves Subscriptions");
    assert!(!cluster.has("Namespace", "olmkit-probe"), "the probe is still there");
    // Again: nothing new.
    let (done, _, planned) =
        run(&mut cluster, Options::default(), |engine| engine.install_olm(&request("0.46.0")));
    done.unwrap();
    assert!(
        planned.iter().all(|one| one.verb != "create" || one.key.placed().contains("probe")),
        "{planned:?}"
    );
    // A newer one goes over it, an older one does not.
    assert_eq!(install(&mut cluster, &request("0.47.0")).unwrap().version, "0.47.0");
    let refused = install(&mut cluster, &request("0.46.0")).unwrap_err().to_string();
    assert_eq!(refused, "OLM 0.47.0 is installed, which is newer than 0.46.0");
}

#[test]
fn a_dry_run_writes_nothing() {
    let mut cluster = Bare::default();
    let options = Options { dry_run: true, ..Options::default() };
    let (done, _, planned) = run(&mut cluster, options, |engine| engine.install_olm(&request("0.46.0")));
    done.unwrap();
    assert!(cluster.objects.is_empty());
    assert_eq!(planned.len(), request("0.46.0").release.objects.len());
}

#[test]
fn objects_of_others_are_not_changed_unless_they_are_taken_over() {
    let mut cluster = Bare::default();
    for object in request("0.45.0").release.objects {
        cluster.put(object.document);
    }
    let error = install(&mut cluster, &request("0.46.0")).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("objects of OLM exist that olmkit did not create: "), "{said}");
    assert!(said.ends_with(" and 7 more"), "{said}");
    let error = run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default())).0;
    assert_eq!(error.unwrap_err().to_string(), "olmkit did not install the OLM in the namespace `olm`");
    let taken = Install { adopt: true, ..request("0.46.0") };
    assert!(install(&mut cluster, &taken).unwrap().installed_by_olmkit);
}

#[test]
fn a_second_olm_is_refused() {
    let mut cluster = Bare::default();
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "olm-operator", "namespace": "openshift"},
    }));
    let error = install(&mut cluster, &request("0.46.0")).unwrap_err().to_string();
    assert_eq!(error, "OLM is already installed in the namespace `openshift`");
}

#[test]
fn a_failed_installation_names_the_cause_and_removes_only_what_it_made() {
    let mut cluster = Bare { broken: true, ..Bare::default() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "operators"}});
    cluster.put(namespace.clone());
    let (done, _, planned) =
        run(&mut cluster, Options::default(), |engine| engine.install_olm(&request("0.46.0")));
    let error = done.unwrap_err().to_string();
    assert_eq!(error, "pod/olm-operator-1 cannot run `olm:v1`: ImagePullBackOff: not found");
    assert!(cluster.now < Duration::from_secs(100), "{:?}", cluster.now);
    cluster.objects.retain(|key, _| key.kind != "Pod");
    run(&mut cluster, Options::default(), |engine| engine.undo_olm(&planned)).0.unwrap();
    assert_eq!(cluster.objects.into_values().collect::<Vec<_>>(), [namespace]);
}

#[test]
fn an_olm_that_does_not_answer_is_not_installed() {
    let mut cluster = Bare { deaf: true, ..Bare::default() };
    let error = install(&mut cluster, &request("0.46.0")).unwrap_err().to_string();
    assert_eq!(error, "timed out after 10m waiting for catalog-operator to answer a Subscription");
    assert!(!cluster.has("Namespace", "olmkit-probe"));
}

#[test]
fn what_an_interrupted_installation_left_is_gone_on_with() {
    let mut cluster = Bare::default();
    let mut request = request("0.46.0");
    let all = request.release.objects.clone();
    for count in [1, 5, 9, all.len()] {
        cluster.objects.clear();
        // As if it had been killed after so many objects.
        for part in request.release.labelled().into_iter().take(count) {
            cluster.put(part.document);
        }
        request.release.objects.clone_from(&all);
        let olm = install(&mut cluster, &request).unwrap();
        assert_eq!(olm.problems, Vec::<String>::new(), "after {count} objects");
    }
}

#[test]
fn olm_is_removed_after_those_whose_finalizers_it_serves() {
    let mut cluster = Bare::default();
    install(&mut cluster, &request("0.46.0")).unwrap();
    let done = run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default())).0;
    let removed = done.unwrap();
    assert_eq!(removed.kept, []);
    assert_eq!(cluster.objects, BTreeMap::new());
    let at =
        |name: &str| cluster.deleted.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name}"));
    assert!(at("clusterserviceversion/packageserver") < at("deployment/olm-operator"));
    assert!(at("deployment/olm-operator") < at(&format!("customresourcedefinition/subscriptions.{GROUP}")));
    assert!(at(&format!("customresourcedefinition/subscriptions.{GROUP}")) < at("namespace/olm"));
    let again = run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default())).0;
    assert_eq!(again.unwrap_err().to_string(), "OLM is not installed");
}

#[test]
fn a_finalizer_whose_owner_is_dead_does_not_keep_olm() {
    let mut cluster = Bare::default();
    install(&mut cluster, &request("0.46.0")).unwrap();
    // Neither controller works any more.
    cluster.broken = true;
    let (done, told, _) =
        run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default()));
    done.unwrap();
    assert!(told.iter().any(|line| line.contains("OLM did not remove its finalizer")), "{told:?}");
    cluster.objects.retain(|key, _| key.kind != "Pod");
    assert_eq!(cluster.objects, BTreeMap::new());
}

#[test]
fn olm_with_operators_stays_unless_they_are_to_go_too() {
    let mut cluster = Bare::default();
    install(&mut cluster, &request("0.46.0")).unwrap();
    for (kind, name) in [("Subscription", "redis"), ("ClusterServiceVersion", "redis.v1.0.0")] {
        let api_version = format!("{GROUP}/v1alpha1");
        cluster.put(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "redis"}}));
    }
    let refused =
        run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default())).0;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "operators are installed: subscription/redis in redis, clusterserviceversion/redis.v1.0.0 in redis"
    );
    assert!(cluster.has("Deployment", "olm-operator"));
    let request = Uninstall { with_operators: true };
    run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&request)).0.unwrap();
    assert_eq!(cluster.objects, BTreeMap::new());
    assert_eq!(cluster.deleted[1], "subscription/redis", "after the probe");
}

#[test]
fn a_namespace_that_others_use_stays() {
    let mut cluster = Bare::default();
    install(&mut cluster, &request("0.46.0")).unwrap();
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "operators"},
    }));
    let done = run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default())).0;
    let kept = done.unwrap().kept;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].name.as_str(), &*kept[0].reason.to_string()),
        ("operators", "deployment/web is in it, which is not part of OLM")
    );
    assert!(cluster.get(&known::NAMESPACE, "", "operators").unwrap().is_some());
}

/// What a user has put into a namespace that OLM's manifests made.
fn of_users(cluster: &mut Bare) {
    cluster.put(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "echos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Echo", "plural": "echos"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    }));
    for (api_version, kind, name) in [
        ("example.com/v1", "Echo", "prod-db"),
        ("v1", "Secret", "db-password"),
        ("v1", "ConfigMap", "kube-root-ca.crt"),
    ] {
        let metadata = json!({"name": name, "namespace": "operators"});
        cluster.put(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}));
    }
}

#[test]
fn custom_resources_and_secrets_of_others_are_not_deleted_with_their_namespace() {
    for dry_run in [true, false] {
        let mut cluster = Bare::default();
        install(&mut cluster, &request("0.46.0")).unwrap();
        of_users(&mut cluster);
        // The operator and its Deployment go; what belongs to them keeps nothing.
        cluster.put(json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ClusterServiceVersion",
            "metadata": {"name": "echo.v1", "namespace": "operators"},
        }));
        let owner = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ClusterServiceVersion", "name": "echo.v1"});
        cluster.put(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "echo", "namespace": "operators", "ownerReferences": [owner]},
        }));
        let options = Options { dry_run, ..Options::default() };
        let request = Uninstall { with_operators: true };
        let removed = run(&mut cluster, options, |engine| engine.uninstall_olm(&request)).0.unwrap();
        let kept: Vec<_> =
            removed.kept.iter().map(|one| (one.name.as_str(), one.reason.to_string())).collect();
        assert_eq!(
            kept,
            [(
                "operators",
                "secret/db-password, echo/prod-db are in it, which are not part of OLM".to_owned()
            )],
            "dry run: {dry_run}"
        );
        assert!(cluster.has("Echo", "prod-db") && cluster.has("Secret", "db-password"));
        assert_eq!(cluster.has("Namespace", "olm"), dry_run, "that of OLM goes");
    }
}

#[test]
fn a_failed_installation_keeps_what_others_have_put_into_its_namespaces_meanwhile() {
    let mut cluster = Bare { broken: true, ..Bare::default() };
    let (done, _, planned) =
        run(&mut cluster, Options::default(), |engine| engine.install_olm(&request("0.46.0")));
    done.unwrap_err();
    of_users(&mut cluster);
    let (done, told, _) = run(&mut cluster, Options::default(), |engine| engine.undo_olm(&planned));
    done.unwrap();
    assert!(cluster.has("Echo", "prod-db") && !cluster.has("Namespace", "olm"));
    assert!(told.iter().any(|line| line.starts_with("namespace/operators is kept: ")), "{told:?}");
}

#[test]
fn a_failed_installation_keeps_the_crds_of_which_others_have_made_objects_meanwhile() {
    let mut cluster = Bare { broken: true, ..Bare::default() };
    let (done, _, planned) =
        run(&mut cluster, Options::default(), |engine| engine.install_olm(&request("0.46.0")));
    done.unwrap_err();
    let metadata = json!({"name": "mine", "namespace": "operators"});
    cluster.put(
        json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": metadata}),
    );
    let (done, told, _) = run(&mut cluster, Options::default(), |engine| engine.undo_olm(&planned));
    done.unwrap();
    assert!(cluster.has("CatalogSource", "mine") && cluster.has("Namespace", "operators"));
    assert!(cluster.has("CustomResourceDefinition", "catalogsources.operators.coreos.com"));
    assert!(!cluster.has("Deployment", "olm-operator"));
    let kept = "catalogsource/mine in operators would go with them, and was not created here";
    assert!(told.iter().any(|line| line.ends_with(kept)), "{told:?}");
}

/// A cluster that stops answering when its time is over, as an API server's client does.
struct Timed(Bare);

const LIMIT: Duration = Duration::from_secs(10);

impl Timed {
    fn check(&self) -> Result<(), ClusterError> {
        if self.0.now < LIMIT {
            return Ok(());
        }
        let server = "http://127.0.0.1:1".to_owned();
        Err(ClusterError::TimedOut {
            server,
            limit: LIMIT,
            doing: "get".into(),
            is_answering: false,
            last: None,
        })
    }
}

impl Cluster for Timed {
    fn context(&self) -> &str {
        ""
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        self.check()?;
        self.0.list(resource, namespace)
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        self.check()?;
        self.0.get(resource, namespace, name)
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        self.0.create(resource, object)
    }

    fn patch(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        self.0.patch(resource, key, patch)
    }

    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), ClusterError> {
        self.0.delete(resource, key)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        // Deployments are not brought up; a question takes a moment longer than the time that is left.
        self.0.now += timeout + Duration::from_millis(1);
        for (key, object) in &mut self.0.objects {
            if key.kind == "CustomResourceDefinition" {
                object["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
            }
        }
        Ok(true)
    }

    fn now(&self) -> Duration {
        self.0.now
    }

    fn time_of_day(&self) -> i64 {
        self.0.time_of_day()
    }
}

#[test]
fn an_olm_that_does_not_come_up_is_not_blamed_on_the_network() {
    let mut cluster = Timed(Bare::default());
    let told = Told::default();
    let options = Options { timeout: Duration::from_secs(60), ..Options::default() };
    let mut engine = Engine::new(&mut cluster, &NoCatalogs, &told, options);
    let error = engine.install_olm(&request("0.46.0")).unwrap_err().to_string();
    let of_deployment = error.strip_prefix("timed out after 1m waiting for deployment/");
    assert!(of_deployment.is_some_and(|rest| rest.ends_with("-operator in olm to be available")), "{error}");
}

#[test]
fn a_namespace_that_is_being_deleted_is_refused_before_anything_is_made() {
    for dry_run in [false, true] {
        let mut cluster = Bare::default();
        cluster.put(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "olm", "deletionTimestamp": "now", "finalizers": ["example.com/keep"]},
        }));
        let before = cluster.objects.clone();
        let options = Options { dry_run, ..Options::default() };
        let request = request("0.46.0");
        let error = run(&mut cluster, options, |engine| engine.install_olm(&request)).0.unwrap_err();
        let EngineError::Refused { what, help } = error else { panic!("{error}") };
        assert_eq!(what, "the namespace `olm` is being deleted");
        assert_eq!(
            help.to_string(),
            "wait until it is gone, then run the same command again\n\
             `kubectl get namespace olm -o yaml` shows what blocks it"
        );
        assert_eq!(cluster.objects, before);
    }
}

#[test]
fn the_operators_that_keep_olm_are_uninstalled_by_name() {
    let mut cluster = Bare::default();
    install(&mut cluster, &request("0.46.0")).unwrap();
    for number in 1..=7 {
        cluster.put(json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Subscription",
            "metadata": {"name": format!("redis-{number}"), "namespace": "redis"},
            "spec": {"name": "redis", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
            "status": {"installedCSV": format!("redis-{number}.v1.0.0")},
        }));
    }
    cluster.put(json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ClusterServiceVersion",
        "metadata": {"name": "redis-1.v1.0.0", "namespace": "redis"},
    }));
    let refused = run(&mut cluster, Options::default(), |engine| engine.uninstall_olm(&Uninstall::default()));
    let EngineError::Refused { help, .. } = refused.0.unwrap_err() else { panic!("it is refused") };
    let help = help.to_string();
    assert!(help.starts_with("run `olmkit operator uninstall redis-1 -n redis`\n"), "{help}");
    assert!(
        help.contains("uninstall redis-5 -n redis`\nand 2 more: `olmkit operator list -A` shows them"),
        "{help}"
    );
    assert!(help.ends_with("and their CRDs and custom resources stay"), "{help}");
}

#[test]
fn a_catalog_on_a_cluster_without_olm_says_that_olm_is_missing() {
    let wanted = crate::sources::add("mine", "r/catalog:v1");
    let mut cluster = Bare::default();
    let add = run(&mut cluster, Options::default(), |engine| engine.add_source(&wanted)).0.unwrap_err();
    let list = run(&mut cluster, Options::default(), |engine| engine.sources(None)).0.unwrap_err();
    assert_eq!(add.to_string(), list.to_string());
    let EngineError::Cluster(error) = add else { panic!("{add}") };
    assert_eq!(error.help().unwrap(), "there is no OLM on this cluster: `olmkit olm install` installs it");
}
