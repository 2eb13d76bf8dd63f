//! The operator verbs: which cluster, which catalogs, and what is kept of it.

mod bundles;
mod catalog_source;
pub mod channel_test;
mod failures;
mod held;
pub mod kind;
mod made;
mod simulated;
mod sources;
pub mod stock;
mod verb;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};
use crate::image::Access;
use crate::input::Input;
use crate::lifecycle::api::{Key, known};
use crate::lifecycle::cluster::{Cluster, Selection};
use crate::lifecycle::doctor::{self, Diagnosis, Scope};
use crate::lifecycle::engine::{Account, Engine, Options, Planned, Progress};
use crate::lifecycle::kubernetes::{self, Choice, ConnectError, Impersonation, Kubernetes};
use crate::lifecycle::look::Description;
use crate::lifecycle::observe::Row;
use crate::lifecycle::operator::Operator;
use crate::lifecycle::policy::Violation;
use crate::lifecycle::preview::Preview;
use crate::lifecycle::sources::{Add, Origin, Source};
use crate::lifecycle::uninstall::Removed;

use super::parallel::in_parallel;
use crate::limits::Limits;
use crate::sentence::{Help, Sentence};
use crate::shell::{Reach, command};
use catalog_source::served;
pub use catalog_source::{NewCatalog, SourceVerb, is_on_disk};
pub(super) use failures::failure;
use failures::{NOTHING_CHANGED, START_OVER, explained, is_unexplained};
pub use made::NewBundle;
use made::SingleBundleCatalog;
use sources::Sources;
pub use verb::Verb;

/// Which cluster it is about, and where what its catalogs hold is read.
#[derive(Debug, Default)]
pub struct Target {
    /// The contexts of clusters; none for the current one.
    pub contexts: Vec<String>,
    /// Whether a namespace that is not named is all of them, and not that of the context.
    pub all_namespaces: bool,
    /// The kubeconfig; none for the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// Who asks, where it is not the user of the context.
    pub impersonation: Impersonation,
    /// Files with the states of simulated clusters; none for real ones.
    pub simulate: Vec<PathBuf>,
    /// The catalog, where it is read from another place than the CatalogSource names.
    pub catalog_from: Option<Input>,
    /// A directory with the bundles of a simulated registry.
    pub bundles_from: Option<PathBuf>,
}

impl Target {
    /// The cluster of one of its contexts.
    fn choice(&self, context: Option<&String>) -> Choice {
        Choice {
            kubeconfig: self.kubeconfig.clone(),
            context: context.cloned(),
            impersonation: self.impersonation.clone(),
            ..Choice::default()
        }
    }

    /// Each cluster once: the same verb twice on one at the same time would be in its own way. The catalog is looked for.
    fn check(&self) -> Result<(), Failure> {
        self.catalog_from.as_ref().map_or(Ok(()), sources::exists)?;
        let mut seen = BTreeSet::new();
        for context in &self.contexts {
            if context.is_empty() {
                return Err(Failure::usage("a context without a name")
                    .help("separate the names in --contexts with one comma each"));
            }
            if !seen.insert(context.clone()) {
                return Err(Failure::usage(format!("the context `{context}` is given twice")));
            }
        }
        let mut files = BTreeSet::new();
        for file in &self.simulate {
            if !files.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
                return Err(Failure::usage(format!("`{}` is given twice", file.display())));
            }
        }
        Ok(())
    }
}

/// What came of a verb on one cluster.
#[derive(Debug)]
pub enum Outcome {
    /// An operator.
    Operator(Operator),
    /// An operator that something was asked about.
    Status(Operator),
    /// All about an operator.
    Description(Description),
    /// Operators.
    List(Vec<Operator>),
    /// How operators are, and why.
    Diagnosis(Diagnosis),
    /// What a plan will change, and what of it does not meet the policy, if there is one.
    Plan(Box<Preview>, Option<Vec<Violation>>),
    /// What was shown while it was watched.
    Watched,
    /// What was removed.
    Removed(Removed),
    /// A CatalogSource.
    Source(Source),
    /// CatalogSources.
    Sources(Vec<Source>),
    /// What would be written.
    Planned(Vec<Planned>),
}

/// A cluster's name with what came of a verb on it; the name of a single one is empty.
pub type ClusterOutcome = (String, Result<Outcome, Failure>);

/// What came of a verb, on one cluster or on each of several.
#[derive(Debug)]
pub struct Outcomes {
    /// In the order in which the clusters were given.
    pub outcomes: Vec<ClusterOutcome>,
}

/// Does a verb on every cluster that is meant: on real ones at the same time, on simulated ones one after another.
///
/// # Errors
/// On a single cluster, why it could not be done; of several, each tells its own.
pub fn run(
    target: &Target,
    verb: &Verb,
    options: &Options,
    access: &Access,
    progress: &(dyn Progress + Sync),
) -> Result<Outcomes, Failure> {
    let begun = Instant::now();
    target.check()?;
    if !target.simulate.is_empty() {
        if matches!(verb, Verb::Watch { .. }) {
            return Err(Failure::usage("a simulated cluster changes only while a command runs on it")
                .help(Sentence::from("see ") + command!("olmkit operator list"))
                .on(&Reach::simulated(target.simulate.first().map(PathBuf::as_path))));
        }
        verb.has_namespace()?;
    }
    let made = match verb {
        Verb::Install { bundle: Some(bundle), .. } => {
            Some(SingleBundleCatalog::of(bundle, !target.simulate.is_empty(), access)?)
        }
        _ => None,
    };
    let verb_context = VerbContext { verb, made: made.as_ref(), options, access, begun };
    let outcomes = match (&target.simulate[..], &target.contexts[..]) {
        ([], []) => {
            let done = real(Reached::of(target, None, &verb_context)?, target, None, &verb_context, progress);
            vec![(String::new(), done)]
        }
        ([], contexts) => at_once(target, contexts, &verb_context, progress)?,
        (files, _) => {
            let mut outcomes = Vec::new();
            if files.len() > 1 && verb_context.changes() {
                files.iter().try_for_each(|path| simulated::check(path, target, access, &verb_context))?;
            }
            for path in files {
                let name = path.display().to_string();
                let named = Within { context: name.clone(), progress };
                let progress: &dyn Progress = if files.len() == 1 { progress } else { &named };
                let reach = Reach::simulated(Some(path));
                let options = Options { reach: reach.clone(), ..options.clone() };
                let verb_context = VerbContext { options: &options, ..verb_context };
                let done = simulated::with(path, target, access, &verb_context, |cluster, sources| {
                    one(cluster, sources, &verb_context, progress, &name)
                });
                outcomes.push((name, on(&reach, done)));
            }
            outcomes
        }
    };
    let single = outcomes.len() == 1;
    let mut told = Vec::new();
    for (name, done) in outcomes {
        told.push(if single { (String::new(), Ok(done?)) } else { (name, done) });
    }
    Ok(Outcomes { outcomes: told })
}

/// What to do, wherever it is done.
#[derive(Clone, Copy)]
struct VerbContext<'e> {
    verb: &'e Verb,
    made: Option<&'e SingleBundleCatalog>,
    options: &'e Options,
    access: &'e Access,
    /// When the command began.
    begun: Instant,
}

impl VerbContext<'_> {
    /// Whether something is changed, and not only told.
    fn changes(&self) -> bool {
        self.verb.writes() && !self.options.dry_run
    }
}

/// Several clusters, each in a thread of its own. What changes something begins on none of them before all are found and answer.
fn at_once(
    target: &Target,
    contexts: &[String],
    verb_context: &VerbContext<'_>,
    progress: &(dyn Progress + Sync),
) -> Result<Vec<ClusterOutcome>, Failure> {
    let mut reached: Vec<Result<Reached, Failure>> =
        contexts.iter().map(|context| Reached::of(target, Some(context), verb_context)).collect();
    if contexts.len() > 1 && verb_context.changes() {
        let found = all_of(contexts, reached)?;
        let look = |(context, mut reached): (&String, Reached)| {
            let named = Within { context: context.clone(), progress };
            let reach = target.choice(Some(context)).reach();
            let options = Options { reach: reach.clone(), ..verb_context.options.clone() };
            let verb_context = &VerbContext { options: &options, ..*verb_context };
            let looked = reached.look(target, verb_context, &named);
            looked.map(|()| reached).map_err(|failure| failure.on(&reach))
        };
        let pairs: Vec<_> = contexts.iter().zip(found).collect();
        let answered = all_of(contexts, in_parallel(pairs, contexts.len(), look))?;
        reached = answered.into_iter().map(Ok).collect();
    }
    let within = |(context, reached): (&String, Result<Reached, Failure>)| {
        if contexts.len() == 1 {
            return real(reached?, target, Some(context), verb_context, progress);
        }
        let named = Within { context: context.clone(), progress };
        real(reached?, target, Some(context), verb_context, &named)
    };
    let pairs: Vec<_> = contexts.iter().zip(reached).collect();
    Ok(contexts.iter().cloned().zip(in_parallel(pairs, contexts.len(), within)).collect())
}

/// A cluster of several that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the context `{context}`")]
struct UnusableContext {
    context: String,
    source: Box<dyn Error + Send + Sync>,
}

/// All of several clusters, or why one of them cannot be used.
fn all_of(contexts: &[String], each: Vec<Result<Reached, Failure>>) -> Result<Vec<Reached>, Failure> {
    let unusable = |context: &String, failure: Failure| {
        let Failure { exit, error, place, help } = failure;
        Failure {
            exit,
            error: Box::new(UnusableContext { context: context.clone(), source: error }),
            place,
            help: help.and("nothing was changed on any cluster"),
        }
    };
    contexts
        .iter()
        .zip(each)
        .map(|(context, one)| one.map_err(|failure| unusable(context, failure)))
        .collect()
}

/// A cluster that was found, and the verb as it is meant there.
struct Reached {
    cluster: Kubernetes,
    verb: Verb,
    /// The namespace that the verb is about; none where it looks everywhere.
    namespace: Option<String>,
}

impl Reached {
    /// A client for a cluster; nothing is asked of it yet.
    fn of(
        target: &Target,
        context: Option<&String>,
        verb_context: &VerbContext<'_>,
    ) -> Result<Self, Failure> {
        let left = verb_context.options.timeout.saturating_sub(verb_context.begun.elapsed());
        let cluster = connect_to(target, context, left)?;
        let namespace = cluster.namespace().filter(|_| !target.all_namespaces);
        let (verb, namespace) = verb_context.verb.within(namespace);
        verb.has_namespace()?;
        Ok(Self { cluster, verb, namespace })
    }

    /// Looks at what the verb begins with, and changes nothing: that a cluster does not answer is told before another one is changed.
    fn look(
        &mut self,
        target: &Target,
        verb_context: &VerbContext<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Failure> {
        let kind = match self.verb {
            Verb::Source(_) => &known::CATALOG_SOURCE,
            _ => &known::SUBSCRIPTION,
        };
        let found = self.cluster.list(kind, self.namespace.as_deref());
        found.map_err(|error| failure(error.into(), &Account::default()))?;
        let verb_context = &VerbContext { verb: &self.verb, ..*verb_context };
        rehearse(&mut self.cluster, &Sources::of(target, verb_context), verb_context, progress)
    }
}

/// What cannot succeed is reported before anything is pushed.
fn rehearse(
    cluster: &mut Kubernetes,
    sources: &Sources,
    verb_context: &VerbContext<'_>,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let (Some(made), Verb::Install { request, .. }) = (verb_context.made, verb_context.verb) else {
        return Ok(());
    };
    if verb_context.options.wait {
        let runs = Engine::new(cluster, sources, progress, verb_context.options.clone()).olm_runs();
        runs.map_err(|error| failure(error, &Account::default()))?;
    }
    let rehearsal = Options { dry_run: true, ..verb_context.options.clone() };
    let checked = Engine::new(cluster, sources, progress, rehearsal).install(&made.install(request));
    checked.map(drop).map_err(|error| failure(error, &Account::default()))
}

/// One of several clusters, whose name stands before what it tells.
struct Within<'w> {
    context: String,
    progress: &'w (dyn Progress + Sync),
}

impl Progress for Within<'_> {
    fn state(&self, at: Duration, object: &str, state: &str) {
        self.progress.state(at, &format!("{}: {object}", self.context), state);
    }

    fn said(&self, at: Duration, text: &str) {
        self.progress.said(at, &format!("{}: {text}", self.context));
    }

    fn looked(&self, _: &str, rows: &[Row]) {
        self.progress.looked(&self.context, rows);
    }

    fn operators(&self, _: &str, operators: &[Operator]) -> bool {
        self.progress.operators(&self.context, operators)
    }

    fn is_watched(&self) -> bool {
        self.progress.is_watched()
    }
}

/// A client for a real cluster.
fn connect_to(target: &Target, context: Option<&String>, limit: Duration) -> Result<Kubernetes, Failure> {
    connect(&target.choice(context), ", or --simulate FILE", limit)
}

/// A verb on a real cluster.
fn real(
    reached: Reached,
    target: &Target,
    context: Option<&String>,
    verb_context: &VerbContext<'_>,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let reach = target.choice(context).reach();
    let options = Options { reach: reach.clone(), ..verb_context.options.clone() };
    let verb_context = &VerbContext { options: &options, ..*verb_context };
    on(&reach, on_real(reached, target, context, verb_context, progress))
}

/// What came of a verb, with commands that act on its cluster.
fn on(reach: &Reach, done: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
    match done {
        Ok(Outcome::Diagnosis(diagnosis)) => Ok(Outcome::Diagnosis(diagnosis.on(reach))),
        Ok(Outcome::Removed(removed)) => Ok(Outcome::Removed(removed.on(reach))),
        done => done.map_err(|failure| failure.on(reach)),
    }
}

fn on_real(
    reached: Reached,
    target: &Target,
    context: Option<&String>,
    verb_context: &VerbContext<'_>,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let Reached { mut cluster, verb, .. } = reached;
    let verb_context = &VerbContext { verb: &verb, ..*verb_context };
    let sources = Sources::of(target, verb_context);
    if let Some(made) = verb_context.made
        && !verb_context.options.dry_run
    {
        rehearse(&mut cluster, &sources, verb_context, progress)?;
        made.push(verb_context.access, progress)?;
    }
    let name = context.map_or("the current context", String::as_str);
    match one(&mut cluster, &sources, verb_context, progress, name) {
        Err(failure) if is_unexplained(&failure) && !verb_context.options.dry_run => {
            // The time of the command is over, and why is still to be said.
            let limit = cluster.now() + LAST_LOOK;
            Err(explained(&mut cluster.within(limit), verb_context.verb, failure))
        }
        done => done,
    }
}

/// A client for a cluster, which may take so long from now on. `otherwise` is the way out of those who have none.
pub(super) fn connect(choice: &Choice, otherwise: &str, limit: Duration) -> Result<Kubernetes, Failure> {
    Kubernetes::connect_within(choice, Limits::begin(limit)).map_err(|error| match error {
        ConnectError::Interrupted => Failure::interrupted().help(Help::from(NOTHING_CHANGED).and(START_OVER)),
        ConnectError::TimedOut { help, .. } => {
            Failure { exit: Exit::TimedOut, ..Failure::incomplete(error) }.help(help)
        }
        ConnectError::Credentials { what, hint } => Failure::incomplete(what).help(hint.unwrap_or_else(|| {
            "log in again, or run the plugin directly to see why: `kubectl config view --minify` shows how it is called".into()
        })),
        _ if choice.kubeconfig.is_none() && kubernetes::no_kubeconfig() => {
            Failure::incomplete("no kubeconfig: KUBECONFIG is not set and ~/.kube/config does not exist")
                .help(format!("pass --kubeconfig FILE{otherwise}"))
        }
        error => Failure::incomplete(error).help(format!(
            "name a kubeconfig with --kubeconfig, a context with --context{}",
            otherwise.replace("or --simulate", "or simulate with --simulate")
        )),
    })
}

/// How long the cluster is asked why a verb got stuck.
const LAST_LOOK: Duration = Duration::from_secs(3);

fn one(
    cluster: &mut dyn Cluster,
    sources: &Sources,
    verb_context: &VerbContext<'_>,
    progress: &dyn Progress,
    name: &str,
) -> Result<Outcome, Failure> {
    let VerbContext { verb, made, options, .. } = *verb_context;
    let mut engine = Engine::new(cluster, sources, progress, options.clone());
    let outcome = match verb {
        Verb::Install { request, .. } => match made {
            Some(made) => engine.install(&made.install(request)).map(Outcome::Operator),
            None => engine.install(request).map(Outcome::Operator),
        },
        Verb::Upgrade(request) => engine.upgrade(request).map(Outcome::Operator),
        Verb::Approve { name, namespace, accept, policy } => {
            engine.approve_if(name, namespace.as_deref(), accept, policy.as_ref()).map(Outcome::Operator)
        }
        Verb::Plan { name, namespace, policy } => {
            engine.preview(name, namespace.as_deref()).map(|(preview, csv)| {
                let violations = policy.as_ref().map(|policy| policy.check(&preview, &csv));
                Outcome::Plan(Box::new(preview), violations)
            })
        }
        Verb::Status { name, namespace } => engine.status(name, namespace.as_deref()).map(Outcome::Status),
        Verb::Describe { name, namespace } => {
            engine.describe(name, namespace.as_deref()).map(Outcome::Description)
        }
        Verb::Watch { namespace, interval } => {
            engine.watch(namespace.as_deref(), *interval).map(|()| Outcome::Watched)
        }
        Verb::List { namespace } => {
            let listed = engine.list(namespace.as_deref());
            if let (Some(namespace), Ok(rows)) = (namespace, &listed)
                && rows.is_empty()
            {
                check_namespace(engine.cluster, namespace)?;
            }
            listed.map(Outcome::List)
        }
        Verb::Doctor { name, namespace, fix } => {
            let mut diagnosis = examine(engine.cluster, name.clone(), namespace.clone())?;
            engine.look_ahead(&mut diagnosis).map_err(|error| failure(error, &engine.account()))?;
            if *fix {
                diagnosis.fixes =
                    engine.fix(&diagnosis).map_err(|error| failure(error, &engine.account()))?;
            }
            if diagnosis.fixes.iter().any(|fix| fix.done) {
                // The causes are those that were found; the states are those of now.
                let after = examine(engine.cluster, name.clone(), namespace.clone())?;
                (diagnosis.state, diagnosis.operators) = (after.state, after.operators);
            }
            return Ok(Outcome::Diagnosis(diagnosis));
        }
        Verb::Uninstall(request) => engine.uninstall(request).map(Outcome::Removed),
        Verb::Source(SourceVerb::Add { wanted, catalog }) => {
            let mut wanted = Add::clone(wanted);
            let checked = engine.catalog_sources_are_served(&wanted.namespace);
            checked.map_err(|error| failure(error, &Account::default()))?;
            if let Some(catalog) = catalog {
                let by_tag = wanted.poll.is_some();
                wanted.origin = if sources.simulated {
                    catalog.simulated()
                } else {
                    catalog.push(by_tag, options.dry_run, verb_context.access, progress)?
                };
            } else if let (Origin::Image(image), false) = (&wanted.origin, sources.simulated) {
                wanted.origin = served(image, verb_context.access);
            }
            engine.add_source(&wanted).map(Outcome::Source)
        }
        Verb::Source(SourceVerb::List { namespace }) => {
            engine.sources(namespace.as_deref()).map(Outcome::Sources)
        }
        Verb::Source(SourceVerb::Remove { name, namespace, force }) => {
            engine.remove_source(name, namespace.as_deref(), *force).map(Outcome::Removed)
        }
        Verb::Source(SourceVerb::Refresh { name, namespace }) => {
            engine.refresh_source(name, namespace.as_deref()).map(Outcome::Source)
        }
        Verb::Rollback { request, backup } => {
            let archive = sources::Backup { directory: backup, dry_run: options.dry_run, cluster: name };
            engine.rollback(request, &archive).map(Outcome::Operator)
        }
    };
    match outcome {
        // Its answer says itself what would be done, and what would be kept.
        Ok(Outcome::Removed(removed)) => Ok(Outcome::Removed(removed)),
        Ok(_) if options.dry_run => Ok(Outcome::Planned(engine.planned)),
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(failure(error, &engine.account())),
    }
}

/// Looks at a cluster, and says why operators are stuck.
fn examine(
    cluster: &mut dyn Cluster,
    name: Option<String>,
    namespace: Option<String>,
) -> Result<Diagnosis, Failure> {
    let scope = Scope { name, namespace };
    let now = cluster.time_of_day();
    let seen = doctor::observe(cluster, &scope, Some(now))
        .map_err(|error| failure(error.into(), &Account::default()))?;
    if let Some(namespace) = &scope.namespace
        && seen
            .within("Subscription", namespace)
            .chain(seen.within("ClusterServiceVersion", namespace))
            .next()
            .is_none()
    {
        check_namespace(cluster, namespace)?;
    }
    super::doctor::diagnosed(&seen, &scope)
}

/// Says so if a namespace without operators does not exist. Who may not read namespaces is told nothing; a simulated cluster makes
/// them as they are named.
fn check_namespace(cluster: &mut dyn Cluster, namespace: &str) -> Result<(), Failure> {
    if !cluster.has_pods() || !matches!(cluster.get(&known::NAMESPACE, "", namespace), Ok(None)) {
        return Ok(());
    }
    let mut names = Vec::new();
    let selection = Selection { metadata_only: true, ..Selection::default() };
    // Without them there is only no suggestion.
    let _ = cluster.each(&known::NAMESPACE, None, &selection, &mut |found| names.push(Key::of(&found).name));
    Err(super::doctor::no_namespace(namespace, "", names.iter().map(String::as_str)))
}
