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
use crate::lifecycle::operator::Operator;
use crate::lifecycle::policy::Violation;
use crate::lifecycle::preview::Preview;
use crate::lifecycle::sources::{Add, Origin, Source};
use crate::lifecycle::uninstall::Removed;

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
    /// The context; none for the current one.
    pub context: Option<String>,
    /// Whether a namespace that is not named is all of them, and not that of the context.
    pub all_namespaces: bool,
    /// The kubeconfig; none for the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// The user to impersonate, if not the user of the context.
    pub impersonation: Impersonation,
    /// The file with the state of a simulated cluster; none for a real one.
    pub simulate: Option<PathBuf>,
    /// The catalog, where it is read from another place than the CatalogSource names.
    pub catalog_from: Option<Input>,
    /// A directory with the bundles of a simulated registry.
    pub bundles_from: Option<PathBuf>,
}

impl Target {
    fn choice(&self) -> Choice {
        Choice {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            impersonation: self.impersonation.clone(),
            ..Choice::default()
        }
    }
}

/// The result of a verb.
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

/// Does a verb on the cluster that is meant, a real or a simulated one.
///
/// # Errors
/// Why it could not be done.
pub fn run(
    target: &Target,
    verb: &Verb,
    options: &Options,
    access: &Access,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    target.catalog_from.as_ref().map_or(Ok(()), sources::exists)?;
    if let Some(path) = &target.simulate {
        if matches!(verb, Verb::Watch { .. }) {
            return Err(Failure::usage("a simulated cluster changes only while a command runs on it")
                .help(Sentence::from("see ") + command!("olmkit operator list"))
                .on(&Reach::simulated(Some(path))));
        }
        verb.has_namespace()?;
    }
    let made = match verb {
        Verb::Install { bundle: Some(bundle), .. } => {
            Some(SingleBundleCatalog::of(bundle, target.simulate.is_some(), access)?)
        }
        _ => None,
    };
    let reach = match &target.simulate {
        Some(path) => Reach::simulated(Some(path)),
        None => target.choice().reach(),
    };
    let options = Options { reach: reach.clone(), ..options.clone() };
    let verb_context = VerbContext { verb, made: made.as_ref(), options: &options, access, begun };
    let done = match &target.simulate {
        Some(path) => simulated::with(path, target, access, &verb_context, |cluster, sources| {
            one(cluster, sources, &verb_context, progress, &path.display().to_string())
        }),
        None => real(target, &verb_context, progress),
    };
    match done {
        Ok(Outcome::Diagnosis(diagnosis)) => Ok(Outcome::Diagnosis(diagnosis.on(&reach))),
        Ok(Outcome::Removed(removed)) => Ok(Outcome::Removed(removed.on(&reach))),
        done => done.map_err(|failure| failure.on(&reach)),
    }
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

/// A verb on a real cluster.
fn real(
    target: &Target,
    verb_context: &VerbContext<'_>,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let left = verb_context.options.timeout.saturating_sub(verb_context.begun.elapsed());
    let mut cluster = connect(&target.choice(), ", or --simulate FILE", left)?;
    let verb = verb_context.verb.within(cluster.namespace().filter(|_| !target.all_namespaces));
    verb.has_namespace()?;
    let verb_context = &VerbContext { verb: &verb, ..*verb_context };
    let sources = Sources::of(target, verb_context);
    if let Some(made) = verb_context.made
        && !verb_context.options.dry_run
    {
        rehearse(&mut cluster, &sources, verb_context, progress)?;
        made.push(verb_context.access, progress)?;
    }
    let name = target.context.as_deref().unwrap_or("the current context");
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
