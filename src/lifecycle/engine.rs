//! Observe, decide, act, and wait for a change: the loop that every verb drives an operator with.

mod attempt;
mod reach;
mod rights;

pub(super) use reach::holding;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use olmkit_bundle::suggest::{did_you_mean, some_of};
use serde_json::Value;

use super::api::{CatalogSource, Key, Named as _, Object, Resource, Subscription, known};
use super::blockers::Blocker;
use super::cluster::{Cluster, ClusterError};
use super::decide::Stuck;
use super::doctor::{self, Cause};
use super::observe::{Observed, Row};
use super::offer::{Offer, OfferedBundle};
use super::operator::Operator;
use super::rights::Right;
use crate::limits::span;
use crate::sentence::{Help, Sentence};
use crate::shell::{Reach, command};

/// How long a check after an upgrade has to fail before it is believed. A catalog needs up to half a minute to be reached.
pub(super) const GRACE: Duration = Duration::from_secs(60);
/// How often an object is looked at that nobody tells about.
pub(super) const UNWATCHED: Duration = Duration::from_millis(500);
/// What is said when a new Subscription has the status of the one before it.
pub(super) const INHERITED: &str =
    "OLM has given the new Subscription the status of the deleted one; creating the Subscription again";

/// Whether a Subscription that was just created records a version that is gone. OLM writes by name: what it was resolving for a Subscription
/// when that was deleted, it writes into the one that was created meanwhile, and then installs nothing for it. One that is
/// created after that stays as it is.
pub(super) fn is_inherited(error: &EngineError) -> bool {
    matches!(error, EngineError::Stuck(stuck) if stuck.code == doctor::CSV_DELETED)
}

/// The most writes of others in a row that may come in between before a write is given up: about a quarter of a minute.
const MOST_OVERTAKEN: u32 = 12;
/// The pauses after writes of others begin with this and double.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longer than this no such pause gets.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Shows what happens as it happens.
pub trait Progress {
    /// An object has a new state; `at` is the time since the verb began.
    fn state(&self, at: Duration, object: &str, state: &str);
    /// Something was done, or is to be said.
    fn said(&self, at: Duration, text: &str);
    /// How the operators of the cluster are now, changed or not. Says whether anybody still looks.
    fn operators(&self, _operators: &[Operator]) -> bool {
        true
    }
    /// Whether anybody still looks at operators that do not change.
    fn is_watched(&self) -> bool {
        true
    }
    /// How everything of an operator is now, changed or not.
    fn looked(&self, _rows: &[Row]) {}
}

/// Where offers come from: the contents of CatalogSources.
pub trait Catalogs {
    /// What a CatalogSource offers.
    ///
    /// # Errors
    /// It cannot be read.
    fn offer(
        &self,
        source: &Object<CatalogSource>,
    ) -> Result<Arc<Offer>, Box<dyn std::error::Error + Send + Sync>>;

    /// The manifests of a bundle.
    ///
    /// # Errors
    /// They are nowhere, or cannot be read from here.
    fn manifests(&self, name: &str, bundle: &OfferedBundle) -> Result<Vec<Value>, ContentError>;

    /// Whether an image is in its registry.
    ///
    /// # Errors
    /// It is not, or it cannot be found out from here.
    fn image(&self, reference: &str) -> Result<(), ContentError>;

    /// What to do about an image that is not in its registry.
    fn help_missing(&self) -> &'static str {
        "push it first; if the nodes pull it from elsewhere, such as a mirror, pass --accept-missing-images"
    }
}

/// Why something that should be in a registry could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The registry does not have it.
    #[error("the image `{reference}` does not exist")]
    NotFound {
        /// The image.
        reference: String,
    },
    /// The registry did not answer, or not to us.
    #[error("cannot read `{reference}`")]
    Unreadable {
        /// The image, or the bundle.
        reference: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// What a look at something that is waited for has shown.
pub(super) enum Seen<T> {
    /// It is there.
    Done(T),
    /// It is not there yet, and this may be why.
    NotYet(Option<Stuck>),
}

/// A write that was done, or would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// `create`, `patch` or `delete`.
    pub verb: &'static str,
    /// The object.
    pub key: Key,
    /// The object as it is created, or what is merged into it; null for a deletion.
    pub document: Value,
}

/// How far a verb has come when it ends before its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// What was written.
    pub done: Vec<Planned>,
    /// What was waited for at the last look; empty when nothing was.
    pub awaited: String,
    /// What would have come after that, in its order.
    pub left: Vec<String>,
    /// What is to be done, where it is not to run the same command again.
    pub resume: Option<Sentence>,
}

/// Why a verb did not get where it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The cluster did not do what was asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Nothing will come of waiting.
    #[error("{}", .0.sentence)]
    Stuck(Stuck),
    /// The input asks for something that is not there or must not be.
    #[error("{what}")]
    Refused {
        /// What.
        what: String,
        /// The way out.
        help: Help,
    },
    /// OLM would not install a version; nothing was changed.
    #[error("{}", .blocker.sentence)]
    Blocked {
        /// What keeps it from that.
        blocker: Blocker,
        /// The version that an upgrade can go to all the same.
        stop: Option<String>,
    },
    /// Rights are missing that the verb needs later on.
    #[error("not allowed to {}", words(.missing))]
    Rights {
        /// These.
        missing: Vec<Right>,
    },
    /// Custom resources could not be kept.
    #[error("cannot keep the custom resources")]
    Backup {
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A bundle cannot be read.
    #[error("cannot read the bundle `{name}`")]
    Bundle {
        /// Its name.
        name: String,
        /// Why, with its image.
        #[source]
        source: ContentError,
    },
    /// A catalog cannot be read.
    #[error("cannot read what the CatalogSource `{name}` offers")]
    Catalog {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It took too long.
    #[error("timed out after {} waiting for {awaited}", span(*.after))]
    TimedOut {
        /// How long.
        after: Duration,
        /// For what.
        awaited: String,
        /// What may be wrong.
        #[source]
        suspicion: Option<Stuck>,
    },
}

fn words(missing: &[Right]) -> String {
    missing.iter().map(Right::words).collect::<Vec<_>>().join(", ")
}

impl EngineError {
    pub(super) fn refused(what: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), help: Help::default() }
    }

    pub(super) fn refused_help(what: impl Into<String>, help: impl Into<Help>) -> Self {
        Self::Refused { what: what.into(), help: help.into() }
    }
}

/// How long to wait and what to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a verb may take; none of it is spent when `wait` is false.
    pub timeout: Duration,
    /// How long the final version must stay healthy.
    pub settle: Duration,
    /// Whether to wait for the goal at all.
    pub wait: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// How commands that are printed reach the cluster.
    pub reach: Reach,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            settle: Duration::from_secs(10),
            wait: true,
            dry_run: false,
            reach: Reach::default(),
        }
    }
}

/// A verb at work on one cluster.
pub struct Engine<'e> {
    /// The cluster.
    pub cluster: &'e mut dyn Cluster,
    /// What catalogs offer.
    pub catalogs: &'e dyn Catalogs,
    /// Is told about progress.
    pub progress: &'e dyn Progress,
    /// How long, and what.
    pub options: Options,
    /// What was written, or would be.
    pub planned: Vec<Planned>,
    begun: Duration,
    told: Option<Vec<Row>>,
    /// The lines that were told since something was done last: OLM repeats itself while it tries the same again and again.
    told_lines: BTreeSet<(String, String)>,
    /// What is waited for; empty when nothing is.
    awaited: String,
    /// What is to be done after that.
    left: VecDeque<String>,
    /// What is to be done after the verb has failed half-way, where it is not to run the same command again.
    resume: Option<Sentence>,
    /// How many writes of others came in between, one after another.
    overtaken: u32,
    /// What the doctor found last, and when.
    examined: Option<(Duration, Option<Cause>)>,
    /// The code of the cause that was told last.
    told_cause: &'static str,
}

impl<'e> Engine<'e> {
    /// An engine that begins now.
    pub fn new(
        cluster: &'e mut dyn Cluster,
        catalogs: &'e dyn Catalogs,
        progress: &'e dyn Progress,
        options: Options,
    ) -> Self {
        let begun = cluster.now();
        Self {
            cluster,
            catalogs,
            progress,
            options,
            planned: Vec::new(),
            begun,
            told: None,
            told_lines: BTreeSet::new(),
            awaited: String::new(),
            left: VecDeque::new(),
            resume: None,
            overtaken: 0,
            examined: None,
            told_cause: "",
        }
    }

    /// The time since the verb began.
    pub fn elapsed(&self) -> Duration {
        self.cluster.now().saturating_sub(self.begun)
    }

    /// How far the verb has come, as the last look has shown it.
    pub fn account(&self) -> Account {
        Account {
            done: if self.options.dry_run { Vec::new() } else { self.planned.clone() },
            awaited: self.awaited.clone(),
            left: self.left.iter().cloned().collect(),
            resume: self.resume.clone(),
        }
    }

    /// Says what is waited for.
    pub(super) fn waits_for(&mut self, what: String) {
        self.awaited = what;
    }

    /// Says that nothing is waited for any more.
    pub(super) fn waits_no_more(&mut self) {
        self.awaited.clear();
    }

    /// Says what is to be done from now on, in its order.
    pub(super) fn still_to_do(&mut self, left: impl IntoIterator<Item = String>) {
        self.left = left.into_iter().collect();
    }

    /// Says that the first of what was to be done is done.
    pub(super) fn one_is_done(&mut self) {
        self.left.pop_front();
    }

    /// Says that the verb resumes with another name, since the one that was given goes.
    pub(super) fn resume_as(&mut self, name: &str, namespace: &str) {
        self.resume = Some(format!("run the command again with `{name} -n {namespace}` to resume").into());
    }

    /// Says that OLM resumes by itself, and with which command to see it.
    pub(super) fn olm_resumes(&mut self, name: &str, namespace: &str) {
        self.resume = Some(
            Sentence::from("approving it again does nothing: see how far OLM is with ")
                + command!("olmkit operator doctor {} -n {}", name, namespace),
        );
    }

    /// When the verb has to be over: there is one deadline for all that it does.
    pub(super) fn deadline(&self) -> Duration {
        let own = self.begun + self.options.timeout;
        self.cluster.deadline().map_or(own, |deadline| deadline.min(own))
    }

    pub(super) fn say(&self, text: impl Into<Sentence>) {
        self.progress.said(self.elapsed(), &text.into().on(&self.options.reach).to_string());
    }

    /// Creates an object, unless this is a dry run.
    pub(super) fn create(&mut self, resource: &Resource, document: Value) -> Result<(), EngineError> {
        if !self.options.dry_run {
            match self.cluster.create(resource, &document) {
                // Somebody was faster, or an earlier run of this command: what is there is looked at next.
                Ok(_) | Err(ClusterError::Exists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.planned.push(Planned { verb: "create", key: Key::of(&document), document });
        Ok(())
    }

    /// Makes an object what a document says, unless this is a dry run. `is_new` is for the account of what was done.
    pub(super) fn apply(
        &mut self,
        resource: &Resource,
        document: Value,
        is_new: bool,
    ) -> Result<(), EngineError> {
        if !self.options.dry_run {
            self.cluster.apply(resource, &document)?;
        }
        let verb = if is_new { "create" } else { "patch" };
        self.planned.push(Planned { verb, key: Key::of(&document), document });
        Ok(())
    }

    /// Merges a patch into an object, unless this is a dry run.
    pub(super) fn patch(&mut self, resource: &Resource, key: &Key, patch: Value) -> Result<(), EngineError> {
        while !self.options.dry_run {
            match self.cluster.patch(resource, key, &patch) {
                // A patch that names a resource version is computed again by its caller.
                Err(error @ ClusterError::Conflict { .. })
                    if patch.pointer("/metadata/resourceVersion").is_none() =>
                {
                    self.overtaken(error)?;
                }
                Err(error) => return Err(error.into()),
                Ok(_) => break,
            }
        }
        self.overtaken = 0;
        self.planned.push(Planned { verb: "patch", key: key.clone(), document: patch });
        Ok(())
    }

    /// Deletes an object, unless this is a dry run.
    pub(super) fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), EngineError> {
        while !self.options.dry_run {
            match self.cluster.delete(resource, key) {
                Err(error @ ClusterError::Conflict { .. }) => self.overtaken(error)?,
                Err(error) => return Err(error.into()),
                Ok(()) => break,
            }
        }
        self.overtaken = 0;
        self.planned.push(Planned { verb: "delete", key: key.clone(), document: Value::Null });
        Ok(())
    }

    /// Deletes an object if it is still the one that was looked at, unless this is a dry run.
    pub(super) fn delete_exactly(&mut self, resource: &Resource, object: &Value) -> Result<(), EngineError> {
        if !self.options.dry_run {
            self.cluster.delete_exactly(resource, object)?;
        }
        self.planned.push(Planned { verb: "delete", key: Key::of(object), document: Value::Null });
        Ok(())
    }

    /// Merges a patch with a resource version into the status of an object, unless this is a dry run.
    pub(super) fn patch_status(
        &mut self,
        resource: &Resource,
        key: &Key,
        patch: Value,
    ) -> Result<(), EngineError> {
        if !self.options.dry_run {
            self.cluster.patch_status(resource, key, &patch)?;
        }
        self.planned.push(Planned { verb: "patch", key: key.clone(), document: patch });
        Ok(())
    }

    /// Somebody else was faster: waits a moment before what is there now is looked at again. Not for ever.
    pub(super) fn overtaken(&mut self, error: ClusterError) -> Result<(), EngineError> {
        if self.overtaken >= MOST_OVERTAKEN {
            return Err(error.into());
        }
        let pause = (FIRST_PAUSE * 2_u32.pow(self.overtaken)).min(LONGEST_PAUSE);
        self.overtaken += 1;
        self.cluster.wait(pause)?;
        Ok(())
    }

    /// Looks at a namespace and tells what has changed.
    pub fn look(&mut self, namespace: &str, subscription: &str) -> Result<Observed, EngineError> {
        let observed = Observed::look(self.cluster, namespace, subscription)?;
        let rows = observed.rows();
        self.progress.looked(&rows);
        let same = |one: &Row, other: &Row| one.object == other.object && one.state == other.state;
        // What was there before is no change.
        if let Some(told) = self.told.replace(rows) {
            let rows = self.told.as_deref().unwrap_or_default();
            for row in rows.iter().filter(|row| !told.iter().any(|told| same(told, row))) {
                if self.told_lines.insert((row.object.clone(), row.state.clone())) {
                    self.progress.state(self.elapsed(), &row.object, &row.state);
                }
            }
            // Pods are lost sight of with their Deployment, and take a while longer to end.
            let gone = told.iter().filter(|told| told.level < Row::POD);
            for gone in gone.filter(|told| rows.iter().all(|row| row.object != told.object)) {
                self.progress.state(self.elapsed(), &gone.object, "gone");
            }
        }
        Ok(observed)
    }

    /// Looks again and again until it gives a value. What may be wrong is believed once it has stood for [`GRACE`].
    ///
    /// # Errors
    /// It cannot be looked at, it is stuck, or the time is over.
    pub(super) fn until<T>(
        &mut self,
        awaited: impl Into<String>,
        mut look: impl FnMut(&mut Self) -> Result<Seen<T>, EngineError>,
    ) -> Result<T, EngineError> {
        self.awaited = awaited.into();
        let deadline = self.deadline();
        let mut suspected: Option<(&'static str, Duration)> = None;
        let mut seen = None;
        loop {
            let suspicion = match look(self) {
                Ok(Seen::Done(value)) => {
                    self.waits_no_more();
                    return Ok(value);
                }
                Ok(Seen::NotYet(suspicion)) => suspicion,
                Err(error) => return Err(self.while_waiting(error, seen)),
            };
            seen.clone_from(&suspicion);
            let now = self.cluster.now();
            suspected = suspicion.as_ref().map(|stuck| match suspected {
                Some((code, since)) if code == stuck.code => (code, since),
                _ => (stuck.code, now),
            });
            if now >= deadline {
                let (after, awaited) = (self.options.timeout, self.awaited.clone());
                return Err(EngineError::TimedOut { after, awaited, suspicion });
            }
            if let (Some((_, since)), Some(stuck)) = (suspected, suspicion)
                && now - since >= GRACE
            {
                return Err(EngineError::Stuck(stuck));
            }
            // It may be of a kind that is not watched.
            self.cluster.wait((deadline - now).min(UNWATCHED))?;
        }
    }

    /// Waits until an object is gone.
    pub(super) fn gone(&mut self, resource: &Resource, key: &Key) -> Result<(), EngineError> {
        let deadline = self.deadline();
        let mut finalizers = None;
        if !self.options.dry_run {
            self.awaited = format!("{} to be deleted", key.placed());
        }
        while !self.options.dry_run {
            let found = match self.cluster.get(resource, &key.namespace, &key.name) {
                Err(error) => return Err(self.while_waiting(error.into(), finalizers)),
                Ok(found) => found,
            };
            let Some(found) = found else { break };
            finalizers = waits_for_finalizers(&found);
            let now = self.cluster.now();
            if now >= deadline {
                let (after, awaited) = (self.options.timeout, self.awaited.clone());
                return Err(EngineError::TimedOut { after, awaited, suspicion: finalizers });
            }
            // It may be of a kind that is not watched.
            self.cluster.wait((deadline - now).min(UNWATCHED))?;
        }
        self.waits_no_more();
        Ok(())
    }

    /// The Subscription that a name means: one of that name, the only one of the package, or the one that has the version of this name.
    pub fn find(
        &mut self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Option<Object<Subscription>>, EngineError> {
        let documents = self.cluster.list(&known::SUBSCRIPTION, namespace)?;
        let all: Vec<Object<Subscription>> =
            documents.into_iter().filter_map(|document| Object::read(document).ok()).collect();
        let meant = MEANINGS.iter().find_map(|is_meant| {
            let meant: Vec<_> = all.iter().filter(|found| is_meant(found, name)).collect();
            (!meant.is_empty()).then_some(meant)
        });
        match meant.as_deref() {
            None | Some([]) => Ok(None),
            Some([one]) => Ok(Some((*one).clone())),
            Some(several) => {
                let names: Vec<String> =
                    several.iter().map(|found| format!("{}/{}", found.namespace(), found.name())).collect();
                let named = some_of(name, names.iter().map(String::as_str));
                Err(EngineError::refused_help(
                    format!("`{name}` means {} Subscriptions: {named}", several.len()),
                    "name one of them as NAMESPACE/NAME",
                ))
            }
        }
    }

    /// As [`Engine::find`]; that there is none is an error with the nearest names.
    pub fn expect(
        &mut self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Object<Subscription>, EngineError> {
        if let Some(found) = self.find(name, namespace)? {
            return Ok(found);
        }
        let documents = self.cluster.list(&known::SUBSCRIPTION, namespace)?;
        let all: Vec<Object<Subscription>> =
            documents.into_iter().filter_map(|document| Object::read(document).ok()).collect();
        let names: Vec<&str> = all.iter().map(|found| found.name()).collect();
        let place = namespace.map(|namespace| format!(" in the namespace `{namespace}`")).unwrap_or_default();
        let what = format!("there is no Subscription `{name}`{place}");
        let away = self.rolling_back(namespace)?;
        if let Some(away) = away.iter().find(|away| [away.name(), away.spec.package.as_str()].contains(&name))
        {
            let (name, namespace, to) = (away.name(), away.namespace(), &away.spec.starting_csv);
            return Err(EngineError::refused_help(
                format!("{what}: its rollback to `{to}` was interrupted"),
                Sentence::from("run ")
                    + command!("olmkit operator rollback {} -n {} --to {}", name, namespace, to)
                    + " to resume",
            ));
        }
        if let Some((why, help)) = self.lone_version(name, namespace, &all)? {
            return Err(EngineError::refused_help(format!("{what}: {why}"), help));
        }
        let is_of_package = |found: &&Object<Subscription>| {
            name.strip_prefix(&found.spec.package).is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(found) = all.iter().find(is_of_package) {
            let installed = match found.status.installed_csv.as_str() {
                "" => "nothing installed".to_owned(),
                csv => format!("`{csv}` installed"),
            };
            return Err(EngineError::refused_help(
                format!("{what}: it is the name of a version of `{}`", found.spec.package),
                format!(
                    "name the Subscription, `{}/{}`, which has {installed}",
                    found.namespace(),
                    found.name()
                ),
            ));
        }
        let nearest = did_you_mean(name, names.iter().copied());
        let help = match (nearest, namespace) {
            (None, Some(_)) => {
                (command!("olmkit operator list -A") + " shows those of all namespaces").into()
            }
            (None, None) => (command!("olmkit operator list -A") + " shows those that there are").into(),
            (nearest, _) => nearest.into(),
        };
        Err(EngineError::Refused { what, help })
    }

    /// What a Subscription's catalog offers.
    pub fn offer(&mut self, subscription: &Subscription) -> Result<Arc<Offer>, EngineError> {
        let spec = &subscription.spec;
        let document = self.cluster.get(&known::CATALOG_SOURCE, &spec.source_namespace, &spec.source)?;
        let source = document.and_then(|document| Object::<CatalogSource>::read(document).ok());
        let Some(source) = source else {
            return Err(EngineError::refused_help(
                format!(
                    "the CatalogSource `{}` is not in the namespace `{}`",
                    spec.source, spec.source_namespace
                ),
                Sentence::from("add it again: ")
                    + command!("olmkit source add {} CATALOG -n {}", spec.source, spec.source_namespace),
            ));
        };
        self.offer_of(&source)
    }

    pub(super) fn offer_of(&self, source: &Object<CatalogSource>) -> Result<Arc<Offer>, EngineError> {
        self.catalogs
            .offer(source)
            .map_err(|error| EngineError::Catalog { name: source.name().to_owned(), source: error })
    }
}

/// What a name may mean, the first first: a Subscription, its package, or the version that it has installed or is about to install.
const MEANINGS: [fn(&Object<Subscription>, &str) -> bool; 3] = [
    |found, name| found.name() == name,
    |found, name| found.spec.package == name,
    |found, name| found.status.installed_csv == name || found.status.current_csv == name,
];

/// What an object that was deleted waits for.
pub(super) fn waits_for_finalizers(object: &Value) -> Option<Stuck> {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array)?;
    let names: Vec<String> =
        finalizers.iter().filter_map(|name| Some(format!("`{}`", name.as_str()?))).collect();
    let sentence = match &names[..] {
        [] => return None,
        [one] => format!("its finalizer {one} has to be removed by its controller"),
        several => format!("its finalizers {} have to be removed by their controllers", several.join(", ")),
    };
    Some(Stuck { code: "finalizers", sentence, help: Help::default() })
}
