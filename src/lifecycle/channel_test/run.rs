//! The tests, one walk after another, with the engine that the other verbs use.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::cleanup::Cleanup;
use super::marker::{self, Marker};
use super::plan::{Kind, Walk, short};
use super::prepare::{Prepared, Samples, Settings};
use super::result::{Outcome, Report, TestFailure, TestResult, seconds};
use super::samples::{self, Patience, Sample, SampleFault};
use crate::lifecycle::api::{
    Approval, CatalogSource, ClusterServiceVersion, InstallModeKind, Key, Object, known, label, made_here,
};
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::decide::{Accept, Stuck};
use crate::lifecycle::doctor::{self, Cause, Level, diagnose};
use crate::lifecycle::engine::{Catalogs, Engine, EngineError, Progress};
use crate::lifecycle::install::Install;
use crate::lifecycle::observe::Row;
use crate::lifecycle::operator::Operator;
use crate::lifecycle::upgrade::Upgrade;
use crate::sentence::{Help, Sentence};
use crate::shell::command;

/// How long cleaning up may take once the command is over.
const CLEANUP: Duration = Duration::from_secs(300);
/// How long a namespace of an earlier run may take to go.
const NAMESPACE: Duration = Duration::from_secs(120);
/// How often a fresh install is tried, and how long OLM gets before the next time.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(10);
/// What happened that is kept of a failed test at most.
const MOST_LOGGED: usize = 200;

/// Is told how the tests go.
pub trait Spectator: Progress {
    /// A test begins: its number, and how many there are.
    fn begins(&self, number: usize, count: usize, channel: &str, name: &str);
    /// A test is over.
    fn ends(&self, result: &TestResult);
}

/// Does the tests. What ended them early comes beside the report, which says how far they got.
pub fn run(
    cluster: &mut dyn Cluster,
    catalogs: &dyn Catalogs,
    spectator: &dyn Spectator,
    settings: &Settings,
    prepared: &Prepared,
) -> (Report, Option<EngineError>) {
    let begun = cluster.now();
    let recorder = Recorder { spectator, lines: RefCell::default() };
    let mut runner = Runner {
        cluster,
        catalogs,
        recorder: &recorder,
        settings,
        prepared,
        marker: Marker {
            package: settings.package.clone(),
            holder: marker::new_holder(),
            ..Marker::default()
        },
        results: Vec::new(),
        broken: BTreeMap::new(),
        samples: Vec::new(),
        since: begun,
        is_begun: false,
        is_noted: false,
        kept: None,
    };
    let mut ended = runner.all();
    let mut left = Vec::new();
    let is_kept = runner.kept.is_some() || settings.keep_failed && ended.is_some();
    if runner.is_begun && !is_kept {
        if ended.is_some() {
            runner.cluster.begin_cleanup(CLEANUP);
        }
        match runner.finish() {
            Ok(more) => left = more,
            Err(error) => {
                // A signal, or the end of the time, while the last walk was cleaned up.
                runner.cluster.begin_cleanup(CLEANUP);
                match runner.finish() {
                    Ok(more) => left = more,
                    Err(_) => left.push(format!("the namespace `{}` and what is in it", settings.namespace)),
                }
                ended.get_or_insert(error);
            }
        }
    }
    let mut report = prepared.report(settings);
    report.seconds = seconds(runner.cluster.now().saturating_sub(begun));
    report.tests = std::mem::take(&mut runner.results);
    report.left = left;
    report.count();
    (report, ended)
}

/// Keeps what happens beside telling it.
struct Recorder<'r> {
    spectator: &'r dyn Spectator,
    lines: RefCell<Vec<String>>,
}

impl Recorder<'_> {
    fn keep(&self, at: Duration, text: &str) {
        let mut lines = self.lines.borrow_mut();
        if lines.len() < MOST_LOGGED {
            lines.push(format!("{:>4} s  {text}", at.as_secs()));
        }
    }
}

impl Progress for Recorder<'_> {
    fn state(&self, at: Duration, object: &str, state: &str) {
        self.keep(at, &format!("{object}: {state}"));
        self.spectator.state(at, object, state);
    }

    fn said(&self, at: Duration, text: &str) {
        self.keep(at, text);
        self.spectator.said(at, text);
    }

    fn looked(&self, rows: &[Row]) {
        self.spectator.looked(rows);
    }
}

struct Runner<'r> {
    cluster: &'r mut dyn Cluster,
    catalogs: &'r dyn Catalogs,
    recorder: &'r Recorder<'r>,
    settings: &'r Settings,
    prepared: &'r Prepared,
    marker: Marker,
    results: Vec<TestResult>,
    /// Hops that failed on their own, by where they lead and in which mode, with the name of the test.
    broken: BTreeMap<(String, String, String, Option<InstallModeKind>), String>,
    samples: Vec<Sample>,
    /// When the last test was decided.
    since: Duration,
    /// Whether there may be something to clean up.
    is_begun: bool,
    /// Whether the note is there, and ours.
    is_noted: bool,
    /// The failed test as which everything is left.
    kept: Option<String>,
}

/// A failure of a step, or nothing.
type Step = Option<TestFailure>;

impl Runner<'_> {
    /// All walks; what ended them early.
    fn all(&mut self) -> Option<EngineError> {
        let count = self.prepared.plan.count();
        let needs_cluster = self.prepared.plan.walks.iter().any(|walk| walk.last().is_some());
        let mut ended = if needs_cluster { self.begin().err() } else { None };
        for walk in &self.prepared.plan.walks {
            if ended.is_none() && self.kept.is_none() {
                ended = self.walk(walk, count).err();
            }
            let kept = self.kept.iter().map(|name| format!("the cluster is kept as `{name}` has left it"));
            let why = ended.iter().map(|error| format!("the run ended: {error}")).chain(kept).next();
            if let Some(why) = why {
                let done = self.results.iter().filter(|result| result.channel == walk.channel);
                let done: BTreeSet<String> = done.map(|result| result.name.clone()).collect();
                for test in &walk.tests {
                    let result = TestResult::not_run(walk, test, &self.settings.package);
                    if !done.contains(&result.name) {
                        self.push(TestResult { reason: Some(why.clone()), ..result });
                    }
                }
            }
        }
        ended
    }

    /// Makes the namespace and leaves the note; removes what an earlier run has left.
    fn begin(&mut self) -> Result<(), EngineError> {
        let namespace = self.settings.namespace.clone();
        let note = self.cluster.get(&known::CONFIG_MAP, &namespace, marker::NAME)?;
        let left = note.as_ref().and_then(Marker::read);
        let holder = |marker: Option<&Marker>| marker.map(|marker| marker.holder.clone());
        if holder(left.as_ref()) != holder(self.prepared.note.as_ref()) {
            // It has begun since this one has looked.
            return Err(marker::at_work(&namespace));
        }
        if let (Some(note), Some(left)) = (note, left) {
            self.marker =
                Marker { package: self.marker.package.clone(), holder: self.marker.holder.clone(), ..left };
            self.take_over(&note)?;
            self.is_begun = true;
            self.recorder
                .said(Duration::ZERO, &format!("removing leftovers of an earlier run in `{namespace}`"));
            let left = self.clean()?;
            self.cleanup().catalog_sources()?;
            if let Some(left) = left.first() {
                return Err(EngineError::refused_help(
                    format!("cannot remove leftovers of an earlier run: {left}"),
                    "remove it, then run the command again",
                ));
            }
        }
        self.make_namespace(&namespace)?;
        let crds = self.cluster.list(&known::CRD, None)?;
        self.marker.kept = crds.iter().map(|crd| Key::of(crd).name).collect();
        self.write_note()?;
        self.settings.catalog_source().map_or(Ok(()), |document| self.serve(&document))
    }

    /// Makes the CatalogSource of the run, and waits until OLM reaches it.
    fn serve(&mut self, document: &Value) -> Result<(), EngineError> {
        let key = Key::of(document);
        self.recorder.said(Duration::ZERO, &format!("creating {}", key.placed()));
        self.cluster.create(&known::CATALOG_SOURCE, document)?;
        let begun = self.cluster.now();
        loop {
            let found = self.cluster.get(&known::CATALOG_SOURCE, &key.namespace, &key.name)?;
            let found = found.and_then(|found| Object::<CatalogSource>::read(found).ok());
            let state = match &found {
                Some(found) if found.is_ready() => return Ok(()),
                Some(found) if !found.connection().is_empty() => found.connection().to_owned(),
                _ => "not established yet".to_owned(),
            };
            if self.cluster.now().saturating_sub(begun) >= self.settings.step.timeout {
                let scope = doctor::Scope { name: None, namespace: Some(key.namespace.clone()) };
                let today = self.cluster.time_of_day();
                let seen = doctor::observe(self.cluster, &scope, Some(today))?;
                if let Some(cause) = doctor::catalog_fault(&seen, &key.namespace, &key.name) {
                    return Err(EngineError::Stuck(Stuck::of(&cause, &key.namespace)));
                }
                return Err(EngineError::refused_help(
                    format!("OLM does not reach the catalog: its connection is {state}"),
                    Sentence::from("see ")
                        + command!("kubectl get pods -n {} -l olm.catalogSource={}", key.namespace, key.name),
                ));
            }
            self.cluster.wait(Duration::from_secs(1))?;
        }
    }

    fn make_namespace(&mut self, name: &str) -> Result<(), EngineError> {
        let begun = self.cluster.now();
        while let Some(found) = self.cluster.get(&known::NAMESPACE, "", name)? {
            if found.pointer("/metadata/deletionTimestamp").is_none() {
                return Ok(());
            }
            // An earlier run has just ended.
            if !made_here(&found) || self.cluster.now().saturating_sub(begun) >= NAMESPACE {
                return Err(EngineError::refused_help(
                    format!("the namespace `{name}` is being deleted"),
                    "wait until it is gone, or name another one with -n",
                ));
            }
            self.cluster.wait(Duration::from_secs(1))?;
        }
        let document = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {label::CREATED_BY: label::OLMKIT}},
        });
        self.is_begun = true;
        self.marker.namespaces.insert(name.to_owned());
        self.cluster.create(&known::NAMESPACE, &document)?;
        Ok(())
    }

    /// Makes the note of a run that was killed its own, unless somebody else was faster.
    fn take_over(&mut self, note: &Value) -> Result<(), EngineError> {
        let namespace = &self.settings.namespace;
        self.marker.renewed = self.cluster.time_of_day();
        let patch = serde_json::json!({
            "metadata": {"resourceVersion": note["metadata"]["resourceVersion"]},
            "data": self.marker.document(namespace)["data"],
        });
        match self.cluster.patch(&known::CONFIG_MAP, &Marker::key(namespace), &patch) {
            Err(ClusterError::Conflict { .. } | ClusterError::NotFound { .. }) => {
                return Err(marker::at_work(namespace));
            }
            done => drop(done?),
        }
        self.is_noted = true;
        self.cluster.renew(&Marker::key(namespace), &self.marker.holder, marker::RENEW);
        Ok(())
    }

    /// Writes what the run has made so far into its note. Where that is the note of another one, nothing here is ours any more.
    fn write_note(&mut self) -> Result<(), EngineError> {
        let namespace = &self.settings.namespace;
        let key = Marker::key(namespace);
        self.marker.renewed = self.cluster.time_of_day();
        let document = self.marker.document(namespace);
        if !self.is_noted {
            self.is_begun = true;
            match self.cluster.create(&known::CONFIG_MAP, &document) {
                Err(ClusterError::Exists { .. }) => {
                    self.is_begun = false;
                    return Err(marker::at_work(namespace));
                }
                done => drop(done?),
            }
            self.is_noted = true;
            self.cluster.renew(&key, &self.marker.holder, marker::RENEW);
            return Ok(());
        }
        let found = self.cluster.get(&known::CONFIG_MAP, namespace, marker::NAME)?;
        let holder = found.as_ref().and_then(Marker::read).map(|found| found.holder);
        if holder.as_ref() != Some(&self.marker.holder) {
            self.is_begun = false;
            return Err(EngineError::refused_help(
                format!("another run of `operator test` has taken over the namespace `{namespace}`"),
                "nothing was removed, since that run does it; name another namespace with -n",
            ));
        }
        let patch = serde_json::json!({"data": document["data"]});
        self.cluster.patch(&known::CONFIG_MAP, &key, &patch)?;
        Ok(())
    }

    /// One walk, up to its last test or its first failure.
    fn walk(&mut self, walk: &Walk, count: usize) -> Result<(), EngineError> {
        self.since = self.cluster.now();
        let mut tests = walk.tests.iter().peekable();
        let mut blocked: Option<String> = None;
        if let Some(last) = walk.last() {
            for at in 0..=last {
                let Some(test) = tests.peek() else { break };
                let name = walk.name(test, &self.settings.package);
                if at == 0 || walk.tests.iter().any(|test| test.at + 1 == at) {
                    let number = self.results.len() + 1;
                    self.recorder.spectator.begins(number, count, &walk.channel, &name);
                }
                if at > 0
                    && let Some(other) = self.broken.get(&hop(walk, at))
                {
                    blocked = Some(format!("`{other}` failed"));
                    break;
                }
                self.write_note()?;
                let failure = if at == 0 { self.install(walk)? } else { self.hop(walk, at)? };
                let is_failed = failure.is_some();
                if is_failed || test.at == at {
                    let mut result = TestResult::not_run(walk, test, &self.settings.package);
                    result.outcome = if is_failed { Outcome::Failed } else { Outcome::Passed };
                    result.failure = failure;
                    self.decide(result);
                    tests.next();
                }
                if is_failed {
                    if at == 1 {
                        self.broken.insert(hop(walk, at), name.clone());
                    }
                    blocked = Some(format!("`{name}` failed"));
                    break;
                }
            }
            if self.settings.keep_failed && blocked.is_some() {
                let failed = self.results.iter().rev().find(|result| result.outcome == Outcome::Failed);
                self.kept = failed.map(|result| result.name.clone());
                return Ok(());
            }
            let left = self.clean()?;
            if let Some(left) = left.first() {
                return Err(EngineError::refused_help(
                    format!("a walk cannot be cleaned up: {left} is still there"),
                    "remove it, then run the command again",
                ));
            }
        }
        for test in tests {
            let mut result = TestResult::not_run(walk, test, &self.settings.package);
            match (&walk.stranded, &blocked) {
                (Some(why), _) => {
                    let step = walk.way.last().map(|csv| short(csv, &self.settings.package).to_owned());
                    result.outcome = Outcome::Failed;
                    result.failure = Some(TestFailure {
                        code: "stranded".to_owned(),
                        sentence: why.clone(),
                        step: step.unwrap_or_default(),
                        help: vec!["give a later entry of the channel an edge from it".into()],
                        ..TestFailure::default()
                    });
                }
                (None, Some(why)) => result.reason = Some(why.clone()),
                (None, None) if test.kind == Kind::Withdrawn => result.outcome = Outcome::Passed,
                (None, None) => result.reason = Some("the walk ended before it".to_owned()),
            }
            self.push(result);
        }
        Ok(())
    }

    /// Keeps a result with its time, its samples and, where it failed, what happened.
    fn decide(&mut self, mut result: TestResult) {
        let now = self.cluster.now();
        result.seconds = seconds(now.saturating_sub(self.since));
        self.since = now;
        result.samples = self.samples.len();
        let lines = self.recorder.lines.take();
        if result.outcome == Outcome::Failed {
            result.log = lines;
        }
        self.push(result);
    }

    fn push(&mut self, result: TestResult) {
        self.recorder.spectator.ends(&result);
        self.results.push(result);
    }

    fn engine(&mut self) -> Engine<'_> {
        Engine::new(self.cluster, self.catalogs, self.recorder, self.settings.step.clone())
    }

    /// The namespaces that an operator watches in a mode; none for what it prefers.
    fn watched(&self, mode: Option<InstallModeKind>) -> Option<Vec<String>> {
        let own = &self.settings.namespace;
        Some(match mode? {
            InstallModeKind::AllNamespaces => Vec::new(),
            InstallModeKind::OwnNamespace => vec![own.clone()],
            InstallModeKind::SingleNamespace => vec![beside(own, "watched")],
            InstallModeKind::MultiNamespace => vec![beside(own, "watched"), beside(own, "watched-2")],
        })
    }

    /// Where samples are applied: where the operator sees them.
    fn samples_namespace(&self, mode: Option<InstallModeKind>) -> String {
        let watched = self.watched(mode).unwrap_or_default();
        watched.first().unwrap_or(&self.settings.namespace).clone()
    }

    /// A fresh install of a walk's first version, with samples.
    fn install(&mut self, walk: &Walk) -> Result<Step, EngineError> {
        let watch = self.watched(walk.mode);
        for name in watch.iter().flatten().filter(|name| **name != self.settings.namespace) {
            self.make_namespace(name)?;
        }
        let (namespace, name) = &self.prepared.catalog;
        let request = Install {
            package: self.settings.package.clone(),
            namespace: self.settings.namespace.clone(),
            catalog: Some((name.clone(), Some(namespace.clone()))),
            channel: Some(walk.channel.clone()),
            version: walk.way.first().cloned(),
            approval: Some(Approval::Manual),
            watch,
            accept: Accept { dependencies: true, ..Accept::default() },
            accept_missing_images: self.settings.accept_missing_images,
            ..Install::default()
        };
        let step = format!("install {}", short(&walk.way[0], &self.settings.package));
        for attempt in 1.. {
            let done = self.engine().install(&request);
            match self.outcome(done, &walk.way[0], &step)? {
                Some(failure) if failure.code == doctor::CSV_DELETED && attempt < ATTEMPTS => {
                    self.forget()?
                }
                Some(failure) => return Ok(Some(failure)),
                None => break,
            }
        }
        self.apply_samples(walk, 0, &step)
    }

    /// Removes an install that OLM took for one of the walk before: it had not seen yet that all of that is gone.
    fn forget(&mut self) -> Result<(), EngineError> {
        self.clean()?;
        self.recorder
            .said(Duration::ZERO, "OLM has not seen yet that the last test was cleaned up; installing again");
        let begun = self.cluster.now();
        while self.cluster.now().saturating_sub(begun) < PAUSE {
            self.cluster.wait(Duration::from_secs(1))?;
        }
        Ok(())
    }

    /// The hop to a place of a walk; samples are compared, and new ones applied.
    fn hop(&mut self, walk: &Walk, at: usize) -> Result<Step, EngineError> {
        let short = |csv: &str| short(csv, &self.settings.package).to_owned();
        let step = format!("{} → {}", short(&walk.way[at - 1]), short(&walk.way[at]));
        let request = Upgrade {
            name: self.settings.package.clone(),
            namespace: Some(self.settings.namespace.clone()),
            to: Some(walk.way[at].clone()),
            accept: Accept { dependencies: true, ..Accept::default() },
            accept_missing_images: self.settings.accept_missing_images,
            ..Upgrade::default()
        };
        let done = self.engine().upgrade(&request);
        if let Some(failure) = self.outcome(done, &walk.way[at], &step)? {
            return Ok(Some(failure));
        }
        let patience = self.patience();
        if let Some(fault) = samples::compare(self.cluster, &mut self.samples, patience)? {
            return Ok(Some(of_sample(fault, &step)));
        }
        self.apply_samples(walk, at, &step)
    }

    fn patience(&self) -> Patience {
        Patience { limit: self.settings.sample_timeout, settle: self.settings.step.settle }
    }

    fn apply_samples(&mut self, walk: &Walk, at: usize, step: &str) -> Result<Step, EngineError> {
        let given = match &self.settings.samples {
            Samples::None => return Ok(None),
            Samples::Given(objects) => Some(objects.as_slice()),
            Samples::Examples => None,
        };
        let namespace = &self.settings.namespace;
        let csv = self.cluster.get(&known::CSV, namespace, &walk.way[at])?;
        let Some(csv) = csv.and_then(|csv| Object::<ClusterServiceVersion>::read(csv).ok()) else {
            return Ok(None);
        };
        let placed = self.samples_namespace(walk.mode);
        let before = self.samples.len();
        if let Some(fault) = samples::apply(self.cluster, &csv, given, &placed, &mut self.samples)? {
            return Ok(Some(of_sample(fault, step)));
        }
        if self.samples.len() > before {
            let patience = self.patience();
            samples::settle(self.cluster, &mut self.samples, patience)?;
        }
        Ok(None)
    }

    /// The result of a verb: nothing, a failure of the test, or the end of the run.
    fn outcome(
        &mut self,
        done: Result<Operator, EngineError>,
        csv: &str,
        step: &str,
    ) -> Result<Step, EngineError> {
        let Err(error) = done else { return Ok(None) };
        let is_over = self.cluster.deadline().is_some_and(|deadline| self.cluster.now() >= deadline);
        let ends = match &error {
            EngineError::Cluster(error) => !matches!(
                error,
                ClusterError::Refused { .. }
                    | ClusterError::Failed { .. }
                    | ClusterError::Conflict { .. }
                    | ClusterError::NotFound { .. }
            ),
            EngineError::Rights { .. }
            | EngineError::Bundle { .. }
            | EngineError::Catalog { .. }
            | EngineError::Backup { .. } => true,
            EngineError::Stuck(_) | EngineError::Refused { .. } | EngineError::Blocked { .. } => false,
            EngineError::TimedOut { .. } => is_over,
        };
        if ends {
            return Err(match (error, self.cluster.deadline()) {
                // Not the time of a step is over, but that of the command.
                (EngineError::TimedOut { awaited, suspicion, .. }, Some(after)) => {
                    EngineError::TimedOut { after, awaited, suspicion }
                }
                (error, _) => error,
            });
        }
        // Nothing was begun, so there is nothing that the doctor could see.
        if matches!(error, EngineError::Refused { .. } | EngineError::Blocked { .. }) {
            return Ok(Some(failure(&error, None, step)));
        }
        let cause = self.root_cause()?;
        if let (None, Some(unmet)) = (&cause, self.unmet(csv)?) {
            return Ok(Some(TestFailure { step: step.to_owned(), ..unmet }));
        }
        Ok(Some(failure(&error, cause, step)))
    }

    /// That OLM does not come to a version since a dependency is missing, which it does not say of upgrades: it stays where it is.
    fn unmet(&mut self, csv: &str) -> Result<Option<TestFailure>, EngineError> {
        let Some(unmet) = self.prepared.unmet.get(csv) else { return Ok(None) };
        if self.cluster.get(&known::CSV, &self.settings.namespace, csv)?.is_some() {
            return Ok(None);
        }
        let (namespace, name) = &self.prepared.catalog;
        Ok(Some(TestFailure {
            code: "dependency-missing".to_owned(),
            sentence: format!(
                "{unmet}, which the catalog `{namespace}/{name}` does not offer, so OLM does not install it"
            ),
            help: vec!["add the dependency to the catalog, or to another one on the cluster".into()],
            ..TestFailure::default()
        }))
    }

    /// What the doctor says of the operator as it is now.
    fn root_cause(&mut self) -> Result<Option<Cause>, EngineError> {
        let scope = doctor::Scope {
            name: Some(self.settings.package.clone()),
            namespace: Some(self.settings.namespace.clone()),
        };
        let now = Some(self.cluster.time_of_day());
        let seen = doctor::observe(self.cluster, &scope, now)?;
        Ok(diagnose(&seen, &scope).causes.into_iter().find(|cause| cause.level == Level::Error))
    }

    fn cleanup(&mut self) -> Cleanup<'_> {
        Cleanup {
            cluster: self.cluster,
            catalogs: self.catalogs,
            progress: &Silent,
            namespace: &self.settings.namespace,
            marker: &self.marker,
            provided: &self.prepared.provided,
        }
    }

    /// Removes what a walk has made; what is still there after that.
    fn clean(&mut self) -> Result<Vec<String>, EngineError> {
        let mut samples = std::mem::take(&mut self.samples);
        let done = self.cleanup().operators(&mut samples);
        self.samples = samples;
        self.recorder.lines.take();
        done
    }

    /// Removes everything that the run has made.
    fn finish(&mut self) -> Result<Vec<String>, EngineError> {
        let left = self.clean()?;
        self.cleanup().the_rest()?;
        Ok(left)
    }
}

/// Cleaning up says nothing as long as it works.
struct Silent;

impl Progress for Silent {
    fn state(&self, _: Duration, _: &str, _: &str) {}

    fn said(&self, _: Duration, _: &str) {}
}

/// A hop of a walk, as the key of what is known to fail.
fn hop(walk: &Walk, at: usize) -> (String, String, String, Option<InstallModeKind>) {
    (walk.channel.clone(), walk.way[at - 1].clone(), walk.way[at].clone(), walk.mode)
}

/// The name of a namespace beside another one; names end at 63 characters.
fn beside(namespace: &str, what: &str) -> String {
    let stem: String = namespace.chars().take(62 - what.len()).collect();
    format!("{stem}-{what}")
}

fn of_sample(fault: SampleFault, step: &str) -> TestFailure {
    TestFailure {
        code: fault.code.to_owned(),
        sentence: fault.sentence,
        step: step.to_owned(),
        ..TestFailure::default()
    }
}

/// Why a step failed: the doctor's sentence where there is one, else what the engine said.
fn failure(error: &EngineError, cause: Option<Cause>, step: &str) -> TestFailure {
    let step = step.to_owned();
    if let Some(cause) = cause {
        let evidence = cause
            .evidence
            .iter()
            .map(|one| format!("{} {}: {}", Key::from(&one.object).placed(), one.field, one.message));
        let help = cause.repair.iter().map(super::super::doctor::Repair::step);
        return TestFailure {
            code: cause.code.to_owned(),
            sentence: cause.sentence.clone(),
            step,
            evidence: evidence.collect(),
            help: help.collect(),
        };
    }
    let (code, help) = match error {
        EngineError::Stuck(stuck) => (stuck.code, stuck.help.clone()),
        EngineError::Refused { help, .. } => ("preflight", help.clone()),
        EngineError::Blocked { blocker, stop } => (blocker.code, blocker.until(stop.as_deref())),
        EngineError::TimedOut { suspicion, .. } => {
            ("timed-out", suspicion.as_ref().map(|stuck| stuck.sentence.clone()).into())
        }
        EngineError::Cluster(error) => ("cluster", error.help().into()),
        _ => ("cluster", Help::default()),
    };
    TestFailure {
        code: code.to_owned(),
        sentence: error.to_string(),
        step,
        help: help.into_sentences(),
        ..TestFailure::default()
    }
}
