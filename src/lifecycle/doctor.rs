//! Why an operator is stuck: one root cause in a sentence, what shows it, and how to repair it.
//!
//! [`diagnose`] is pure: it looks at an [`Observation`], which may come from a cluster, from a file that `kubectl` wrote, or from
//! a recording. It follows the way of an operator from its OperatorGroup and CatalogSource through the unpack Job, the
//! InstallPlan and the ClusterServiceVersion to its pods, and stops at the first thing that cannot pass by itself. What follows
//! from that cause is no cause of its own.
//!
//! Conditions that OLM leaves stale are believed only where the objects that they name still say the same.
//!
//! Where to start: `subject.rs` walks; `groups.rs` to `workloads.rs` each know the causes of one kind of object; `codes.rs` lists
//! every cause with its page.

#[cfg(test)]
mod cases;
mod catalogs;
mod clock;
mod cluster;
mod codes;
mod deletions;
mod doc;
mod documents;
mod groups;
mod lean;
mod namespaces;
mod observation;
mod order;
mod plans;
mod pods;
mod recording;
mod refusals;
mod rehearsal;
mod relations;
mod required;
mod resolution;
mod step;
mod stored;
mod subject;
mod uncollected;
mod unpack;
mod versions;
mod workloads;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::api::Key;

pub use crate::moment::{format as format_time, parse as parse_time};
pub use cluster::{complete, list, observe, olm_fault};
pub use codes::{CODES, Code};
pub use doc::Doc;
pub use documents::{Read, kinds_in_path, read};
pub use observation::{NotSeen, Observation};
pub(super) use pods::refusal;
pub use recording::{Recorder, RecordingError, moments, replay};
pub use rehearsal::{Outage, outage};
pub use required::diagnose_with_required;
pub use uncollected::COLLECT;
pub use versions::is_of_olm;

use crate::sentence::Sentence;
use crate::shell::{Command, Reach, command};
use rehearsal::Rehearsals;
use step::Step;
use subject::{Subject, Verdict};

/// The codes of causes that `--fix` knows a repair of, which it applies where it does no harm.
pub const FIXABLE: [&str; 7] = [
    "bundle-image-pull",
    "bundle-invalid",
    "unpack-failed",
    "crd-invalidates-resources",
    "crd-stored-version",
    "csv-orphaned",
    CSV_DELETED,
];

/// The code of a plan that waits for approval.
pub const APPROVAL_REQUIRED: &str = "approval-required";
/// What deleting a plan does that OLM cannot carry out, or that nobody wants.
pub(super) const DELETES: &str = "deletes the plan: wait with it until the catalog offers another version, which OLM plans then; before, it makes no new plan. Nothing that runs stops";
/// The code of a version that is gone although its Subscription records it.
pub const CSV_DELETED: &str = "csv-deleted";
/// The codes of causes that let no verb succeed, and that none of them removes.
pub const BLOCKING: [&str; 3] = ["namespace-terminating", "several-operator-groups", CSV_DELETED];

/// As many versions of a namespace that have no Subscription are examined: people begin with the first few.
const MOST_ALONE: usize = 50;

/// How operators are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Installed, running, and free to be upgraded.
    Healthy,
    /// OLM has something to do and is doing it.
    Progressing,
    /// Somebody has to approve a plan or lift a condition.
    Waiting,
    /// It does not go on by itself.
    Broken,
}

impl State {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Progressing => "progressing",
            Self::Waiting => "waiting",
            Self::Broken => "broken",
        }
    }
}

/// How bad a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It is broken.
    Error,
    /// It waits for somebody.
    Warning,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// The worst state of all operators.
    pub state: State,
    /// The causes, the root cause first.
    pub causes: Vec<Cause>,
    /// The state of each operator.
    pub operators: Vec<OperatorState>,
    /// What `--fix` has done about each cause, or why it has not.
    pub fixes: Vec<Fix>,
    /// What could not be looked at; causes that only it shows are not found.
    pub not_seen: Vec<NotSeen>,
}

/// The state of one operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorState {
    /// The Subscription; empty for a ClusterServiceVersion without one.
    pub subscription: String,
    /// The ClusterServiceVersion without a Subscription; empty for a Subscription.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The namespace.
    pub namespace: String,
    /// The state.
    pub state: State,
    /// The sentence of its root cause, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The code of its root cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
}

/// An object that is named.
///
/// ```
/// use olmkit::lifecycle::doctor::ObjectRef;
/// let pod = ObjectRef { kind: "Pod".into(), name: "x".into(), ..ObjectRef::default() };
/// assert_eq!(pod.short(), "pod/x");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// `pod/x`, in lower case as `kubectl` prints it.
    pub fn short(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }
}

impl From<&ObjectRef> for Key {
    fn from(object: &ObjectRef) -> Self {
        Self {
            group: object.api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        }
    }
}

/// Why something is stuck.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The code; `docs/doctor.md` has a section for each.
    pub code: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What failed, where, and why.
    pub sentence: String,
    /// The object at fault.
    pub object: ObjectRef,
    /// The Subscription that it keeps from going on; empty where there is none.
    pub subscription: String,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// What follows from it, and is repaired with it.
    pub consequences: Vec<String>,
    /// What to do, the mildest first.
    pub repair: Vec<Repair>,
    /// Whether it is a fact that only somebody can change, and needs no second look.
    #[serde(skip)]
    is_final: bool,
}

/// Something that shows a cause.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The object.
    pub object: ObjectRef,
    /// The field, as a path.
    pub field: String,
    /// What it says.
    pub message: String,
    /// Since when, as far as it is known: milliseconds since 1970, or since the beginning of a recording.
    pub since_ms: Option<i64>,
}

/// A repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// The command, as it can be run.
    pub command: Command,
    /// What it does and what it costs.
    pub effect: Sentence,
    /// Whether it interrupts nothing and loses nothing: `--fix` applies those that it can.
    pub safe: bool,
}

impl Repair {
    /// One that costs something. A [`Command`] has every name in it quoted.
    fn of(command: impl Into<Command>, effect: impl Into<Sentence>) -> Self {
        Self { command: command.into(), effect: effect.into(), safe: false }
    }

    /// The command with its effect.
    pub fn step(&self) -> Sentence {
        Sentence::step(self.command.clone(), self.effect.clone())
    }

    /// The same on a cluster. Where kubectl does not reach it, `fix` is the command that applies a safe repair; none where it was applied,
    /// which is not named again.
    fn on(self, reach: &Reach, is_fixable: bool, fix: Option<&Command>) -> Option<Self> {
        let (command, effect) = (self.command.on(reach), self.effect.on(reach));
        if command.is_possible() {
            return Some(Self { command, effect, ..self });
        }
        match self.safe && is_fixable {
            true => fix.map(|fix| Self { command: fix.clone(), effect, ..self }),
            false => Some(Self { command, effect: Sentence::from("on a real cluster: ") + effect, ..self }),
        }
    }
}

/// What `--fix` has done about a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// The code of the cause.
    pub code: &'static str,
    /// The object at fault.
    pub object: ObjectRef,
    /// Whether a repair was applied; with `--dry-run` it never is.
    pub done: bool,
    /// What was done or would be, or why nothing was.
    pub what: Sentence,
    /// Whether a repair fits.
    pub fits: bool,
}

impl Cause {
    fn new(code: &'static Code, object: ObjectRef, sentence: impl Into<String>) -> Self {
        Self {
            code: code.name,
            level: code.level,
            sentence: sentence.into(),
            object,
            subscription: String::new(),
            evidence: Vec::new(),
            consequences: Vec::new(),
            repair: Vec::new(),
            is_final: false,
        }
    }

    /// How long it has to stand before a wait is given up because of it. With the seconds until it is named, and those until a wait
    /// looks again, that is at most ten seconds after the cluster shows it, or thirty for what may pass by itself.
    pub fn patience(&self) -> Duration {
        match self.is_final {
            true => Duration::ZERO,
            false if codes::may_pass(self.code) => Duration::from_secs(22),
            false => Duration::from_secs(4),
        }
    }

    /// How soon after the cluster shows it a wait ends that fails because of it.
    pub fn promised_within(&self) -> Duration {
        Duration::from_secs(if codes::may_pass(self.code) && !self.is_final { 30 } else { 10 })
    }

    /// Whether it is about finding and unpacking the next version, and not about what is installed.
    pub fn is_upstream(&self) -> bool {
        codes::is_upstream(self.code)
    }

    fn finally(mut self, is_final: bool) -> Self {
        self.is_final = is_final;
        self
    }

    fn shown(mut self, object: Doc<'_>, field: &str, message: impl Into<String>, since: Option<i64>) -> Self {
        self.evidence.push(Evidence {
            object: object.reference(),
            field: field.to_owned(),
            message: message.into(),
            since_ms: since,
        });
        self
    }

    fn repair(mut self, command: impl Into<Command>, effect: impl Into<Sentence>) -> Self {
        self.repair.push(Repair::of(command, effect));
        self
    }

    fn safe_repair(mut self, command: impl Into<Command>, effect: impl Into<Sentence>) -> Self {
        self.repair.push(Repair { safe: true, ..Repair::of(command, effect) });
        self
    }

    /// Another way, besides the repairs that it has.
    fn instead(mut self, repair: Repair) -> Self {
        let effect = match self.repair.is_empty() {
            true => repair.effect,
            false => Sentence::from("instead, ") + repair.effect,
        };
        self.repair.push(Repair { effect, ..repair });
        self
    }

    /// Deletes a plan that waits for approval instead of approving it, once.
    fn unapprove(&mut self, why: String, deletion: &str) {
        self.consequences.push(why);
        let command = command!(
            "kubectl -n {} delete installplan.operators.coreos.com {}",
            self.object.namespace,
            self.object.name
        );
        if self.repair.iter().all(|repair| repair.command != command) {
            // The first one lists what it carries.
            self.repair.truncate(1);
            self.repair.push(Repair::of(command, deletion));
        }
    }

    /// The command that shows all about it.
    pub fn doctor(&self, namespace: &str) -> Command {
        let name = Some(&self.subscription).filter(|name| !name.is_empty());
        command!("olmkit operator doctor").words(name).then(" -n {}", &[&namespace])
    }

    fn state(&self) -> State {
        match self.level {
            Level::Error => State::Broken,
            Level::Warning => State::Waiting,
        }
    }
}

impl Diagnosis {
    /// Adds that OLM leaves an operator that is well at its version, though the channel has a newer one.
    pub(super) fn stays(&mut self, subscription: &serde_json::Value, why: &str) {
        let subscription = Doc(subscription);
        let (name, namespace) = (subscription.name(), subscription.namespace());
        let installed = subscription.text("/status/installedCSV");
        let text = format!("the Subscription `{name}` stays at `{installed}`: {why}");
        let mut cause = Cause::new(&codes::UPGRADE_BLOCKED, subscription.reference(), text)
            .shown(subscription, "status.installedCSV", installed, None)
            .repair(
                command!("olmkit operator upgrade {} -n {} --dry-run", name, namespace),
                "says what is missing and changes nothing; once the catalog has it, OLM resolves within a minute, and what is installed runs on",
            );
        name.clone_into(&mut cause.subscription);
        let is_it = |one: &&mut OperatorState| (&*one.subscription, &*one.namespace) == (name, namespace);
        if let Some(operator) = self.operators.iter_mut().find(is_it) {
            operator.state = cause.state();
            operator.code = Some(cause.code);
            operator.sentence = Some(cause.sentence.clone());
            self.state = self.state.max(operator.state);
        }
        self.causes.push(cause);
    }

    /// Adds what speaks against approving a plan that waits for it, and what comes of deleting that plan.
    pub(super) fn advises_against(&mut self, plan: &Key, why: String, deletion: &str) {
        // Several operators may wait for it: their cause is told once.
        let mut own = self.causes.iter_mut().filter(|cause| cause.code == APPROVAL_REQUIRED);
        let own =
            own.find(|cause| (&cause.object.name, &cause.object.namespace) == (&plan.name, &plan.namespace));
        if let Some(cause) = own {
            cause.unapprove(why, deletion);
        }
    }

    /// The same, with its commands on a cluster.
    #[must_use]
    pub fn on(mut self, reach: &Reach) -> Self {
        let mut namespaces: BTreeMap<(Option<&str>, &str), &str> = BTreeMap::new();
        for one in &self.operators {
            namespaces.entry((one.code, &one.subscription)).or_insert(&one.namespace);
        }
        for cause in &mut self.causes {
            let namespace = namespaces.get(&(Some(cause.code), cause.subscription.as_str()));
            let fix = namespace.map(|namespace| cause.doctor(namespace).then(" --fix", &[]).on(reach));
            let is_fixable = FIXABLE.contains(&cause.code);
            let repairs = std::mem::take(&mut cause.repair).into_iter();
            cause.repair = repairs.filter_map(|repair| repair.on(reach, is_fixable, fix.as_ref())).collect();
            cause.repair.dedup_by(|one, other| one.command == other.command);
        }
        for fix in &mut self.fixes {
            fix.what = std::mem::take(&mut fix.what).on(reach);
        }
        self
    }
}

/// What to diagnose.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// A Subscription, its package, or a version; none for all.
    pub name: Option<String>,
    /// A namespace; none for all.
    pub namespace: Option<String>,
}

impl Scope {
    fn holds(&self, object: Doc<'_>) -> bool {
        let is_named = |name: &String| is_named(object, name);
        self.namespace.as_ref().is_none_or(|namespace| object.namespace() == namespace)
            && self.name.as_ref().is_none_or(is_named)
    }

    /// As [`Scope::holds`], of a version without a Subscription.
    fn holds_version(&self, csv: Doc<'_>) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| csv.namespace() == namespace)
            && self.name.as_ref().is_none_or(|name| is_version(csv, name))
    }
}

/// Whether a name means a Subscription: its own, that of its package, or that of a version which it has installed or is about to install.
pub fn is_named(subscription: Doc<'_>, name: &str) -> bool {
    let names = ["/metadata/name", "/spec/name", "/status/installedCSV", "/status/currentCSV"];
    names.iter().any(|path| subscription.text(path) == name)
}

/// Whether a name means a version: its own, or that of its package.
pub fn is_version(csv: Doc<'_>, name: &str) -> bool {
    csv.name() == name || versions::package_of(csv).as_deref() == Some(name)
}

/// Finds out how the operators of an observation are doing, and why.
///
/// ```
/// use olmkit::lifecycle::doctor::{Observation, Scope, State, diagnose};
/// let objects = [serde_json::json!({
///     "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
///     "metadata": {"name": "demo", "namespace": "here", "creationTimestamp": "2026-01-01T00:00:00Z"},
///     "spec": {"name": "demo", "source": "catalog", "sourceNamespace": "here"},
/// })];
/// let observation = Observation::complete(objects, "2026-01-01T00:05:00Z");
/// let diagnosis = diagnose(&observation, &Scope::default());
/// assert_eq!(diagnosis.state, State::Broken);
/// assert_eq!(diagnosis.causes[0].code, "no-operator-group");
/// ```
pub fn diagnose(seen: &Observation, scope: &Scope) -> Diagnosis {
    let mut told = Told::of(seen);
    let mut operators = Vec::new();
    for subscription in seen.of("Subscription").filter(|found| scope.holds(*found)) {
        let subject = Subject { seen, subscription };
        operators.push(told.judge(subject.examine(), subscription.name(), subscription.namespace()));
    }
    // Operators that are left after their Subscription was deleted.
    let mut not_seen = seen.not_seen();
    for (namespace, alone) in alone(seen, scope) {
        let (first, rest) = alone.split_at(alone.len().min(MOST_ALONE));
        for csv in first {
            let verdict = match versions::examine_alone(seen, *csv) {
                Step::Done => continue,
                Step::Progressing => Verdict::Progressing,
                Step::Found(cause) => Verdict::Found(vec![*cause]),
            };
            let state = told.judge(verdict, "", namespace);
            operators.push(OperatorState { version: csv.name().to_owned(), ..state });
        }
        not_seen.extend(unexamined(namespace, rest));
    }
    // A namespace that does not go, though nothing of an operator is left in it that says so.
    if let (None, Some(namespace)) = (&scope.name, &scope.namespace) {
        let is_silent = operators.iter().all(|one| one.namespace != *namespace);
        if let Some(cause) = namespaces::overdue(seen, namespace).filter(|_| is_silent) {
            operators.push(told.judge(Verdict::Found(vec![cause]), "", namespace));
        }
    }
    let mut causes = told.causes;
    order::sort(&mut causes);
    let state = operators.iter().map(|one| one.state).max().unwrap_or(State::Healthy);
    Diagnosis { state, causes, operators, fixes: Vec::new(), not_seen }
}

/// The versions without a Subscription by their namespace.
fn alone<'o>(seen: &'o Observation, scope: &Scope) -> BTreeMap<&'o str, Vec<Doc<'o>>> {
    let mut alone: BTreeMap<&str, Vec<Doc<'_>>> = BTreeMap::new();
    for csv in versions::without_subscription(seen).filter(|csv| scope.holds_version(*csv)) {
        alone.entry(csv.namespace()).or_default().push(csv);
    }
    alone
}

/// Versions that nobody looks at before others of their namespace are repaired, by their phases.
fn unexamined(namespace: &str, rest: &[Doc<'_>]) -> Option<NotSeen> {
    let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
    for csv in rest {
        *phases.entry(csv.text("/status/phase")).or_default() += 1;
    }
    let phases: Vec<String> = phases.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    let why = format!(
        "only the first {MOST_ALONE} without a Subscription in the namespace `{namespace}` are examined, and {} more are there ({}): \
         repair those, and run the command again",
        rest.len(),
        phases.join(", ")
    );
    (!rest.is_empty()).then(|| NotSeen { what: "ClusterServiceVersion".to_owned(), why })
}

/// What keeps OLM from doing anything in a namespace, whether it has operators yet or not.
pub fn blocked_namespace(seen: &Observation, namespace: &str) -> Option<Cause> {
    let mut cause = namespaces::terminating(seen, namespace).or_else(|| groups::several(seen, namespace))?;
    Rehearsals::of(seen).choose("", namespace, &mut cause);
    Some(cause)
}

/// What is wrong with a CatalogSource.
pub fn catalog_fault(seen: &Observation, namespace: &str, name: &str) -> Option<Cause> {
    catalogs::fault(seen, seen.get("CatalogSource", namespace, name)?)
}

/// The causes that were found.
struct Told<'o> {
    seen: &'o Observation,
    rehearsals: Rehearsals<'o>,
    causes: Vec<Cause>,
    /// The position of each cause, by its code and its object.
    places: BTreeMap<(&'static str, ObjectRef), usize>,
}

impl<'o> Told<'o> {
    fn of(seen: &'o Observation) -> Self {
        Self { seen, rehearsals: Rehearsals::of(seen), causes: Vec::new(), places: BTreeMap::new() }
    }

    /// Takes the causes of one operator over, and says how it is.
    fn judge(&mut self, verdict: Verdict, subscription: &str, namespace: &str) -> OperatorState {
        let of = |state, cause: Option<&Cause>| OperatorState {
            subscription: subscription.to_owned(),
            version: String::new(),
            namespace: namespace.to_owned(),
            state,
            sentence: cause.map(|cause| cause.sentence.clone()),
            code: cause.map(|cause| cause.code),
        };
        match verdict {
            Verdict::Healthy => of(State::Healthy, None),
            Verdict::Progressing => of(State::Progressing, None),
            Verdict::Found(found) => {
                let Some(mut cause) = order::folded(found) else { return of(State::Progressing, None) };
                let answer = of(cause.state(), Some(&cause));
                subscription.clone_into(&mut cause.subscription);
                self.tell(cause, namespace);
                answer
            }
        }
    }

    /// One cause of several operators is told once.
    fn tell(&mut self, mut cause: Cause, namespace: &str) {
        let name = (cause.code, cause.object.clone());
        let known = self.places.get(&name).copied();
        if known.is_some_and(|at| self.causes[at].consequences.len() >= cause.consequences.len()) {
            return;
        }
        let subscription = cause.subscription.clone();
        self.rehearsals.choose(&subscription, namespace, &mut cause);
        for one in &mut cause.evidence {
            one.since_ms = one.since_ms.map(|at| self.seen.relative(at));
        }
        match known {
            Some(at) => self.causes[at] = cause,
            None => {
                self.places.insert(name, self.causes.len());
                self.causes.push(cause);
            }
        }
    }
}
