//! No repair that is printed, and none that `--fix` applies, takes down what serves.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use olmkit::lifecycle::api::{CatalogSource, Key, Object, known};
use olmkit::lifecycle::doctor::{
    Cause, Diagnosis, FIXABLE, Observation, Outage, Recorder, Repair, Scope, diagnose, outage, replay,
};
use olmkit::lifecycle::engine::{Catalogs, ContentError, Engine, Options, Progress};
use olmkit::lifecycle::offer::{Offer, OfferedBundle};
use olmkit::lifecycle::simulate::{Registry, Simulation, Store};
use olmkit::shell::command;
use serde_json::{Value, json};

use crate::doctor::{events_of, recording, recordings};

/// Calls `look` with the states of a recording, one every five seconds, in which something is wrong that was not wrong before, or not in
/// the same words.
fn at_every_new_cause(text: &str, mut look: impl FnMut(&Observation, &Diagnosis)) {
    const STEP: i64 = 5_000;
    let text = events_of(text);
    let step = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["t"].as_i64().unwrap() / STEP;
    let mut recorder = Recorder::new();
    let mut told = BTreeSet::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        recorder.feed(line, None).unwrap();
        if lines.peek().map(step) == Some(step(&line)) {
            continue;
        }
        let seen = recorder.observation();
        let diagnosis = diagnose(seen, &Scope::default());
        let words = |cause: &Cause| {
            let commands = cause.repair.iter().map(|repair| repair.command.to_string());
            (cause.code, commands.collect::<Vec<_>>())
        };
        let words: Vec<_> = diagnosis.causes.iter().map(words).collect();
        if !words.is_empty() && told.insert(words) {
            look(seen, &diagnosis);
        }
    }
}

#[test]
fn every_repair_of_every_recording_keeps_up_what_serves() {
    let (mut repairs, mut passing, mut codes) = (0, 0, BTreeSet::new());
    for (name, text) in recordings() {
        at_every_new_cause(&text, |seen, diagnosis| {
            for cause in &diagnosis.causes {
                codes.insert(cause.code);
                assert!(!cause.repair.is_empty(), "{name}: {} has no repair", cause.code);
                for Repair { command, effect, .. } in &cause.repair {
                    repairs += 1;
                    let place = format!("{name}: {}: {command}: {effect}", cause.code);
                    match outage(seen, command) {
                        Outage::None => {}
                        Outage::Passing => {
                            passing += 1;
                            assert!(effect.to_string().contains("down"), "the outage is not told: {place}");
                        }
                        Outage::Lasting => panic!("{place}"),
                    }
                }
            }
        });
    }
    assert!(
        repairs > 80 && passing > 5 && codes.len() > 20,
        "{repairs} repairs, {passing} with an outage, of {codes:?}"
    );
}

#[test]
fn the_way_back_to_a_version_that_still_runs_comes_first() {
    for (number, at, code) in [
        ("11a", 400_000, "image-pull"),
        ("11c", 400_000, "image-pull"),
        ("11e", 310_000, "image-pull"),
        ("22a", 150_000, "crd-invalidates-resources"),
    ] {
        let seen = replay(events_of(&recording(number)).lines(), Some(at)).unwrap();
        let diagnosis = diagnose(&seen, &Scope::default());
        let cause = &diagnosis.causes[0];
        assert_eq!(cause.code, code, "{number}");
        let commands: Vec<String> = cause.repair.iter().map(|repair| repair.command.to_string()).collect();
        assert_eq!(commands[0], format!("olmkit operator rollback demo -n t{number} --to 0.1.0"));
        let is_deletion =
            |command: &&String| command.contains("delete") && command.contains("clusterserviceversion");
        assert_eq!(commands.iter().find(is_deletion), None, "{number}");
        // A reinstallation is a way to the broken head of the channel.
        let subscription = seen.objects().find(|object| object["kind"] == "Subscription").unwrap();
        let mut again = subscription.clone();
        again["metadata"] = json!({"name": "demo", "namespace": format!("t{number}")});
        again.as_object_mut().unwrap().remove("status");
        again["spec"].as_object_mut().unwrap().remove("startingCSV");
        let reinstall = command!(
            "kubectl -n {} delete subscription/demo clusterserviceversion/demo.v0.2.0 clusterserviceversion/demo.v0.1.0 && \
             echo {} | kubectl create -f -",
            format!("t{number}"),
            again
        );
        assert_eq!(outage(&seen, &reinstall), Outage::Lasting, "{number}");
    }
}

/// Registries that nobody can ask.
struct Unreachable;

impl Catalogs for Unreachable {
    fn offer(&self, _: &Object<CatalogSource>) -> Result<Arc<Offer>, Box<dyn Error + Send + Sync>> {
        Err("no registry".into())
    }

    fn manifests(&self, _: &str, bundle: &OfferedBundle) -> Result<Vec<Value>, ContentError> {
        Err(ContentError::NotFound { reference: bundle.image.clone() })
    }

    fn image(&self, _: &str) -> Result<(), ContentError> {
        Ok(())
    }
}

impl Progress for Unreachable {
    fn state(&self, _: Duration, _: &str, _: &str) {}

    fn said(&self, _: Duration, _: &str) {}
}

/// The Deployments with a pod that is available.
fn serving(cluster: &mut Simulation) -> BTreeSet<Key> {
    let all = cluster.store().list(&known::DEPLOYMENT, None);
    all.filter(|found| found.pointer("/status/availableReplicas").and_then(Value::as_u64) > Some(0))
        .map(Key::of)
        .collect()
}

#[test]
fn what_fix_does_in_every_recording_keeps_up_what_serves() {
    let (mut done, mut kept) = (0, 0);
    for (name, text) in recordings() {
        let mut fixed = BTreeSet::new();
        at_every_new_cause(&text, |seen, diagnosis| {
            let mut codes = diagnosis.causes.iter().map(|cause| cause.code);
            if !codes.any(|code| FIXABLE.contains(&code) && !fixed.contains(code)) {
                return;
            }
            let mut cluster = Simulation::new(Registry::default());
            *cluster.store() = Store::of(seen.objects().cloned(), Duration::ZERO);
            let before = serving(&mut cluster);
            let options = Options { wait: false, ..Options::default() };
            let fixes =
                Engine::new(&mut cluster, &Unreachable, &Unreachable, options).fix(diagnosis).unwrap();
            let codes: Vec<_> = fixes.iter().filter(|fix| fix.done).map(|fix| fix.code).collect();
            done += codes.len();
            if codes.is_empty() || before.is_empty() {
                return;
            }
            fixed.extend(codes);
            kept += before.len();
            cluster.run_until(Duration::from_secs(120));
            let after = serving(&mut cluster);
            assert!(before.is_subset(&after), "{name}: {fixes:?}: {before:?} became {after:?}");
        });
    }
    assert!(done > 2 && kept > 0, "{done} repairs were applied, beside {kept} that served");
}
