//! A recording's actions, done again to the simulation at the times they were done.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::offer::Offer;
use olmkit::lifecycle::simulate::{EventKind, Registry, Simulation};
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::{Value, json};

use crate::sequences::Sequences;
use crate::trace::{Trace, What};

/// How long the simulation may go on after the recording's end, to come to rest.
const REST: Duration = Duration::from_secs(60);

/// What the recording shows.
pub(crate) fn recorded(trace: &Trace) -> Sequences {
    let mut seen = Sequences::default();
    for entry in &trace.entries {
        match &entry.what {
            What::Added(object) | What::Modified(object) => seen.saw(object, false),
            What::Deleted(object) => seen.saw(object, true),
            What::Action(_) | What::Log => {}
        }
    }
    seen
}

/// What the simulation does when the same is done to it.
pub(crate) fn simulated(trace: &Trace) -> Sequences {
    let mut world = World { trace, olm: Simulation::new(registry(trace)), stopped: None };
    world.olm.keep_events();
    let mut seen = Sequences::default();
    let mut end = 0;
    for (at, entry) in trace.entries.iter().enumerate() {
        end = entry.at;
        if let What::Action(action) = &entry.what {
            world.olm.run_until(Duration::from_millis(entry.at));
            watch(&mut world.olm, &mut seen);
            world.act(action, at);
            watch(&mut world.olm, &mut seen);
        }
    }
    world.olm.run_until(Duration::from_millis(end) + REST);
    watch(&mut world.olm, &mut seen);
    seen
}

fn watch(olm: &mut Simulation, seen: &mut Sequences) {
    for event in olm.events() {
        seen.saw(&event.object, event.kind == EventKind::Deleted);
    }
}

/// The bundles of the inputs, and no catalog yet.
fn registry(trace: &Trace) -> Registry {
    let mut registry = Registry::default();
    for directory in std::fs::read_dir(trace.inputs().join("bundles")).unwrap() {
        let directory = directory.unwrap();
        let files = BundleFiles::load(&directory.path()).unwrap();
        let manifests = Bundle::parse(&files).objects().map(|object| object.root.to_json()).collect();
        registry.bundles.insert(directory.file_name().to_string_lossy().into_owned(), manifests);
    }
    registry
}

fn offer(directory: &Path) -> Arc<Offer> {
    let files = CatalogFiles::load(directory).unwrap();
    Arc::new(Offer::of(&Catalog::parse(&files)))
}

struct World<'t> {
    trace: &'t Trace,
    olm: Simulation,
    /// A catalog whose server does not run, and where it would be.
    stopped: Option<(String, Arc<Offer>)>,
}

impl World<'_> {
    /// Does what an action says; one that is not understood is a failure of the test.
    fn act(&mut self, action: &str, at: usize) {
        let action = action
            .split_once(": ")
            .map_or(action, |(repair, rest)| if repair.starts_with("repair") { rest } else { action });
        let words: Vec<&str> = action.split_whitespace().collect();
        match words[..] {
            ["repair", _, "delete", "the", "Subscription", "..."]
            | ["delete", "the", "Subscription", "..."] => self.delete("Subscription", "demo"),
            ["create", kind, name, ..] => self.create(kind, name, at),
            ["patch", kind, name, ..] => {
                let patch = serde_json::from_str(&action[action.find('{').unwrap()..]).unwrap();
                let key = self.key(kind, name);
                self.olm.store().patch(&key, &patch).unwrap();
                if kind == "CatalogSource" {
                    self.serve(&key.name);
                }
            }
            ["approve", "InstallPlan", name, ..] => {
                let key = self.key("InstallPlan", name);
                self.olm.store().patch(&key, &json!({"spec": {"approved": true}})).unwrap();
            }
            ["delete", "the", "referenced", kind, name] | ["delete", kind, name] => self.delete(kind, name),
            ["push", .., "(adds", _] => {
                let offer = offer(&self.trace.inputs().join("catalog-latest"));
                let images: Vec<String> = self.olm.registry().catalogs.keys().cloned().collect();
                let image = images.into_iter().find(|image| image.ends_with("catalog:latest")).unwrap();
                self.olm.registry().catalogs.insert(image, offer);
            }
            ["serve", catalog, .., "at", address] => {
                let offer = offer(&self.trace.inputs().join(catalog));
                self.olm.registry().catalogs.insert(address.to_owned(), offer);
            }
            ["stop", "the", "server", "at", address] => {
                let offer = self.olm.registry().catalogs.remove(address).unwrap();
                self.stopped = Some((address.to_owned(), offer));
            }
            ["start", "it", "again"] => {
                let (address, offer) = self.stopped.take().unwrap();
                self.olm.registry().catalogs.insert(address, offer);
            }
            ["(gave", "up", ..] | ["...", "and", "create", "it", "again"] => {}
            _ => panic!("{}: an action that is not understood: {action}", self.trace.name),
        }
    }

    /// An object as the recording shows that it was made.
    fn create(&mut self, kind: &str, name: &str, at: usize) {
        if kind == "Namespace" {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.olm.store().create(namespace).unwrap();
            return;
        }
        let made = self.trace.entries[at..].iter().find_map(|entry| match &entry.what {
            What::Added(object) if object["kind"] == kind && object["metadata"]["name"] == name => {
                Some(object)
            }
            _ => None,
        });
        let made = made.unwrap_or_else(|| panic!("{}: {kind} {name} is never made", self.trace.name));
        let metadata = &made["metadata"];
        self.olm
            .store()
            .create(json!({
                "apiVersion": made["apiVersion"], "kind": kind, "spec": made["spec"],
                "metadata": {
                    "name": name, "namespace": metadata["namespace"], "annotations": metadata.get("annotations"),
                },
            }))
            .unwrap();
        if kind == "CatalogSource" {
            self.serve(name);
        }
    }

    /// What is in the image of a catalog: its tag says which of the inputs; of a tag that moves later, what it is before.
    fn serve(&mut self, name: &str) {
        let key = self.key("CatalogSource", name);
        let source = self.olm.store().get(&key).unwrap().clone();
        let Some(image) = source.pointer("/spec/image").and_then(Value::as_str) else { return };
        let tag = image.rsplit(':').next().unwrap();
        let inputs = self.trace.inputs();
        let moved = inputs.join(format!("catalog-{tag}-before"));
        let offer = offer(&if moved.exists() { moved } else { inputs.join(format!("catalog-{tag}")) });
        self.olm.registry().catalogs.insert(image.to_owned(), offer);
    }

    fn delete(&mut self, kind: &str, name: &str) {
        let key = self.key(kind, name);
        assert!(self.olm.store().get(&key).is_some(), "{}: {key} does not exist", self.trace.name);
        self.olm.store().delete(&key);
    }

    /// An object of the simulation; plans have other names there, but the same generation.
    fn key(&mut self, kind: &str, name: &str) -> Key {
        let resource = known::all().into_iter().find(|resource| resource.kind == kind).unwrap();
        let names = |object: &Value| object["metadata"]["name"] == name;
        if kind == "InstallPlan" {
            let generation = self.trace.entries.iter().find_map(|entry| match &entry.what {
                What::Added(object) if object["kind"] == kind && names(object) => {
                    object.pointer("/spec/generation").cloned()
                }
                _ => None,
            });
            let plans = self.olm.store().list(resource, None);
            let plan = plans.into_iter().find(|plan| plan.pointer("/spec/generation") == generation.as_ref());
            return Key::of(
                plan.unwrap_or_else(|| panic!("{}: no plan {generation:?} yet", self.trace.name)),
            );
        }
        let found = self.olm.store().list(resource, None).find(|object| names(object)).map(Key::of);
        found.unwrap_or_else(|| panic!("{}: {kind} {name} is not there", self.trace.name))
    }
}
