//! CatalogSources on a simulated cluster: added, changed, mirrored, removed.

use std::time::Duration;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::engine::{EngineError, Options};
use olmkit::lifecycle::sources::{Add, Origin, Source};
use serde_json::json;

use crate::world::{World, demo, told};

pub(crate) fn add(name: &str, image: &str) -> Add {
    Add {
        name: name.into(),
        namespace: "ns".into(),
        origin: Origin::Image(image.into()),
        poll: None,
        priority: None,
        secrets: Vec::new(),
        display_name: None,
        publisher: None,
        pod: None,
        accept_missing_image: false,
    }
}

fn added(world: &mut World, wanted: &Add) -> Result<Source, EngineError> {
    world.run(|engine, _| engine.add_source(wanted))
}

fn submitted(world: &mut World, wanted: &Add) -> Result<Source, EngineError> {
    let options = Options { wait: false, ..Options::default() };
    world.run_with(options, |engine, _| engine.add_source(wanted))
}

#[test]
fn a_catalog_is_added_once_changed_where_it_differs_and_waited_for() {
    let mut world = World::of("01");
    let wanted = Add {
        poll: Some(Duration::from_secs(600)),
        priority: Some(-3),
        secrets: vec!["pull".into()],
        pod: Some(json!({"nodeSelector": {"kubernetes.io/os": "linux"}})),
        ..add("mine", "catalog")
    };
    let source = added(&mut world, &wanted).unwrap();
    assert_eq!((source.state.as_str(), source.poll.as_str(), source.priority), ("READY", "10m", -3));
    let key = Key::new(&known::CATALOG_SOURCE, "ns", "mine");
    let made = world.cluster.store().get(&key).unwrap().clone();
    assert_eq!(
        made["spec"],
        json!({
            "sourceType": "grpc", "image": "catalog", "priority": -3, "secrets": ["pull"],
            "updateStrategy": {"registryPoll": {"interval": "10m"}},
            "grpcPodConfig": {"nodeSelector": {"kubernetes.io/os": "linux"}},
        })
    );
    let before = made["metadata"]["resourceVersion"].clone();
    world.said.borrow_mut().clear();
    added(&mut world, &wanted).unwrap();
    assert!(world.said.borrow().contains(&"catalogsource/mine in ns is up to date".to_owned()));
    assert_eq!(world.cluster.store().get(&key).unwrap()["metadata"]["resourceVersion"], before);
}

#[test]
fn a_second_add_with_other_flags_keeps_what_the_first_one_set() {
    let mut world = World::of("01");
    let pod = json!({"nodeSelector": {"kubernetes.io/os": "linux"}});
    let first =
        Add { priority: Some(5), secrets: vec!["pull".into()], pod: Some(pod), ..add("mine", "catalog") };
    added(&mut world, &first).unwrap();
    let poll = Some(Duration::from_secs(600));
    let mut spec = |wanted: Add| {
        submitted(&mut world, &wanted).unwrap();
        world.cluster.store().get(&Key::new(&known::CATALOG_SOURCE, "ns", "mine")).unwrap()["spec"].clone()
    };
    assert_eq!(
        spec(Add { poll, ..add("mine", "catalog") }),
        json!({
            "sourceType": "grpc", "image": "catalog", "priority": 5, "secrets": ["pull"],
            "updateStrategy": {"registryPoll": {"interval": "10m"}},
            "grpcPodConfig": {"nodeSelector": {"kubernetes.io/os": "linux"}},
        })
    );
    // How the image is served comes and goes with the image; what a server at an address has no use for goes, and is named.
    let data = Add {
        origin: Origin::Data { image: "r/data:v1".into(), directory: "/configs".into() },
        ..add("mine", "")
    };
    assert_eq!(
        spec(data)["grpcPodConfig"],
        json!({"nodeSelector": {"kubernetes.io/os": "linux"}, "extractContent": {"catalogDir": "/configs"}})
    );
    assert_eq!(
        spec(add("mine", "catalog"))["grpcPodConfig"],
        json!({"nodeSelector": {"kubernetes.io/os": "linux"}})
    );
    let address = Add { origin: Origin::Address("host:50051".into()), ..add("mine", "") };
    assert_eq!(spec(address), json!({"sourceType": "grpc", "address": "host:50051", "priority": 5}));
    let said = world.said.borrow().join("\n");
    let removed = "removing grpcPodConfig, image, secrets, updateStrategy from catalogsource/mine in ns";
    assert!(said.contains(removed), "{said}");
}

#[test]
fn a_catalog_without_a_pod_is_touched_so_that_olm_makes_one() {
    // A cluster that has pods, but none of the catalog.
    let mut world = World::of("01").with(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "ns"},
    }));
    let source = world.run(|engine, _| engine.refresh_source("catalog", Some("olm"))).unwrap();
    assert_eq!(source.state, "READY");
    let said = world.said.borrow().join("\n");
    assert!(said.contains("catalogsource/catalog in olm has no pod; triggering OLM to create one"), "{said}");
}

#[test]
fn the_pod_of_an_image_that_is_named_by_its_digest_is_restarted() {
    let mut world = World::of("01").with(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "catalog-x", "namespace": "olm", "labels": {"olm.catalogSource": "catalog"}},
    }));
    let image = json!({"spec": {"image": "catalog@sha256:0"}});
    let key = Key::new(&known::CATALOG_SOURCE, "olm", "catalog");
    let offer = world.offer.clone();
    world.cluster.registry().catalogs.insert("catalog@sha256:0".into(), offer);
    world.cluster.store().patch(&key, &image).unwrap();
    world.cluster.run_until(Duration::from_secs(60));
    let options = Options { wait: false, ..Options::default() };
    world.run_with(options, |engine, _| engine.refresh_source("catalog", Some("olm"))).unwrap();
    assert_eq!(world.names(&known::POD), Vec::<String>::new());
    let said = "the image is named by its digest: the new pod serves the same content";
    assert!(world.said.borrow().iter().any(|line| line == said), "{:?}", world.said);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_changed() {
    let mut world = World::of("01");
    world.missing.insert("r/lost:v1".into());
    let before = world.cluster.save();
    let address = |wanted: Add| Add { origin: Origin::Address("host:50051".into()), ..wanted };
    let poll = Some(Duration::from_secs(60));
    let refused = [
        Add { poll, ..add("a", "r/c@sha256:0") },
        address(Add { poll, ..add("a", "") }),
        address(Add { secrets: vec!["pull".into()], ..add("a", "") }),
        Add { namespace: "nowhere".into(), ..add("a", "catalog") },
        Add { namespace: "olm".into(), ..add("catalog", "r/other:v1") },
        add("a", "r/lost:v1"),
    ];
    let said: Vec<String> =
        refused.iter().map(|wanted| told(submitted(&mut world, wanted).unwrap_err())).collect();
    assert_eq!(world.cluster.save(), before);
    insta::assert_snapshot!(said.join("\n\n"), @"
    an image that is named by its digest never changes, so there is nothing to poll
    omit --poll, or name the image by a tag

    a catalog at an address has no image to poll
    omit --poll

    a catalog at an address has no pod
    omit --secret and --pod-config: they apply only to catalogs that OLM runs

    the namespace `nowhere` does not exist
    create it first; catalogs in OLM's own namespace are visible in every namespace

    catalogsource/catalog in olm already exists and was not created by olmkit
    choose another name, or remove it first with `olmkit source remove catalog -n olm`

    the image `r/lost:v1` does not exist
    push it first; if the nodes pull it from elsewhere, pass --accept-missing-images
    ");
}

#[test]
fn an_image_that_is_not_there_is_looked_for_at_its_mirrors() {
    let image = "quay.io/team/catalog@sha256:0";
    let mut world = World::of("01").with(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": {"name": "all"},
        "spec": {"imageDigestMirrors": [{"source": "quay.io/team", "mirrors": ["mirror.example.com/team"]}]},
    }));
    world.unreachable.insert(image.into());
    submitted(&mut world, &add("one", image)).unwrap();
    world.missing.insert("mirror.example.com/team/catalog@sha256:0".into());
    submitted(&mut world, &add("two", image)).unwrap();
    world.unreachable.clear();
    world.missing.insert(image.into());
    let refused = told(submitted(&mut world, &add("three", image)).unwrap_err());
    submitted(&mut world, &Add { accept_missing_image: true, ..add("three", image) }).unwrap();
    insta::assert_snapshot!(format!("{}\n{refused}", world.said.borrow().join("\n")), @"
    `quay.io/team/catalog@sha256:0` cannot be read from here; the cluster pulls it from its mirror `mirror.example.com/team/catalog@sha256:0`
    not checked: cannot read `quay.io/team/catalog@sha256:0`: cannot reach `registry`; nor at its mirrors mirror.example.com/team/catalog@sha256:0
    not checked: the image `quay.io/team/catalog@sha256:0` does not exist; nor at its mirrors mirror.example.com/team/catalog@sha256:0
    the image `quay.io/team/catalog@sha256:0` does not exist; nor at its mirrors mirror.example.com/team/catalog@sha256:0
    push it first; if the nodes pull it from elsewhere, pass --accept-missing-images
    ");
}

#[test]
fn a_catalog_that_is_used_is_removed_only_when_told() {
    let mut world = World::of("01");
    world.install(demo(None)).unwrap();
    let refused = world.run(|engine, _| engine.remove_source("catalog", None, false)).unwrap_err();
    let misspelt = world.run(|engine, _| engine.remove_source("katalog", None, false)).unwrap_err();
    insta::assert_snapshot!(format!("{}\n{}", told(refused), told(misspelt)), @"
    a Subscription uses catalogsource/catalog in olm: ns/demo
    uninstall those operators first, or pass --force: they keep running but get no upgrades
    there is no CatalogSource `katalog`
    did you mean `catalog`?
    ");
    let listed = world.run(|engine, _| engine.sources(None)).unwrap();
    assert_eq!(listed[0].subscriptions, ["ns/demo"]);
    let removed = world.run(|engine, _| engine.remove_source("catalog", Some("olm"), true)).unwrap();
    assert_eq!(removed.removed.len(), 1);
    assert!(world.names(&known::CATALOG_SOURCE).is_empty());
}
