//! A catalog of a single bundle: served for one operator, changed for its next version, gone with it.

use std::sync::Arc;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::engine::EngineError;
use olmkit::lifecycle::install::Install;
use olmkit::lifecycle::offer::Offer;
use olmkit::lifecycle::operator::Operator;
use olmkit::lifecycle::throw_away::SingleBundleOffer;
use olmkit::lifecycle::uninstall::Uninstall;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::{Value, json};

use crate::world::{NS, World, told};

/// The catalog of one version of the demo operator. `digest` tells apart what was built at different times.
fn made(version: &str, replaces: &str, digest: &str) -> SingleBundleOffer {
    let image = format!("r/demo@{digest}");
    let text = json!([
        {"schema": "olm.package", "name": "demo", "defaultChannel": "stable"},
        {"schema": "olm.channel", "name": "stable", "package": "demo",
         "entries": [{"name": format!("demo.v{version}"), "replaces": replaces}]},
        {"schema": "olm.bundle", "name": format!("demo.v{version}"), "package": "demo", "image": format!("r/bundle@{digest}"),
         "properties": [
            {"type": "olm.package", "value": {"packageName": "demo", "version": version}},
            {"type": "olm.gvk", "value": {"group": "t01.example.com", "version": "v1", "kind": "Demo"}},
         ]},
    ]);
    let text: String = text.as_array().unwrap().iter().map(Value::to_string).collect();
    let files = CatalogFiles::from_text(image.clone(), text);
    SingleBundleOffer { image, offer: Arc::new(Offer::of(&Catalog::parse(&files))) }
}

fn install(world: &mut World, made: SingleBundleOffer) -> Result<Operator, EngineError> {
    world.cluster.registry().catalogs.insert(made.image.clone(), Arc::clone(&made.offer));
    let request = Install {
        throw_away: Some(made),
        package: "demo".into(),
        namespace: NS.into(),
        ..Install::default()
    };
    world.install(request)
}

/// The CatalogSource of it, as it is there.
fn source(world: &mut World) -> Option<Value> {
    world.cluster.store().get(&Key::new(&known::CATALOG_SOURCE, NS, "olmkit-demo")).cloned()
}

#[test]
fn a_bundle_is_installed_upgraded_by_the_next_one_and_leaves_nothing() {
    let mut world = World::of("01");
    let operator = install(&mut world, made("0.1.0", "", "a")).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.csv_phase.as_str()), ("demo.v0.1.0", "Succeeded"));
    assert_eq!(operator.catalog, "ns/olmkit-demo");
    let extract =
        source(&mut world).unwrap().pointer("/spec/grpcPodConfig/extractContent/catalogDir").cloned();
    assert_eq!(extract, Some("/configs".into()));

    let operator = install(&mut world, made("0.2.0", "demo.v0.1.0", "b")).unwrap();
    assert_eq!((operator.installed_csv.as_str(), operator.csv_phase.as_str()), ("demo.v0.2.0", "Succeeded"));
    assert_eq!(world.names(&known::CSV), ["demo.v0.2.0"]);
    // Once more, it is done already.
    install(&mut world, made("0.2.0", "demo.v0.1.0", "b")).unwrap();

    let request = Uninstall { name: "demo".into(), namespace: Some(NS.into()), ..Uninstall::default() };
    world.run(|engine, _| engine.uninstall(&request)).unwrap();
    assert_eq!(source(&mut world), None);
    assert_eq!(world.names(&known::SUBSCRIPTION), [""; 0]);
    assert_eq!(world.names(&known::CATALOG_SOURCE), ["catalog"]);
}

#[test]
fn what_olm_would_not_take_is_refused() {
    let mut world = World::of("01");
    install(&mut world, made("0.1.0", "", "a")).unwrap();
    let before = world.cluster.store().clone();
    let said = [
        told(install(&mut world, made("0.1.0", "", "changed")).unwrap_err()),
        told(install(&mut world, made("0.3.0", "demo.v0.2.0", "c")).unwrap_err()),
    ];
    assert_eq!(serde_json::to_value(world.cluster.store()).unwrap(), serde_json::to_value(&before).unwrap());
    insta::assert_snapshot!(said.join("\n\n"), @"
    `demo.v0.1.0` is already installed, and OLM does not reinstall a bundle with the same name
    give the bundle a new version that replaces this one, or run `olmkit operator uninstall demo -n ns` first

    OLM stays at `demo.v0.1.0`: the channel has no edge from there to its head `demo.v0.3.0`
    ask its publisher for an edge (`replaces`, `skips` or `olm.skipRange`), or choose another channel
    ");

    let theirs = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "olmkit-demo", "namespace": NS}, "spec": {"sourceType": "grpc", "image": "theirs"},
    });
    let mut world = World::of("01").with(theirs);
    insta::assert_snapshot!(told(install(&mut world, made("0.1.0", "", "a")).unwrap_err()), @"
    catalogsource/olmkit-demo already exists and was not created by olmkit
    install into another namespace
    ");
}
