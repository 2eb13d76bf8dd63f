//! The operator verbs: which cluster, which catalogs, and what is kept of it.

mod made;
mod simulated;
mod sources;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use crate::exit::{Exit, Failure};
use crate::image::Access;
use crate::input::Input;
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::engine::{Engine, EngineError, Options, Planned, Progress};
use crate::lifecycle::install::Install;
use crate::lifecycle::kubernetes::{Choice, Kubernetes};
use crate::lifecycle::look::{Description, Operator};
use crate::lifecycle::observe::Row;
use crate::lifecycle::rollback::Rollback;
use crate::lifecycle::uninstall::{Removed, Uninstall};
use crate::lifecycle::upgrade::Upgrade;
use crate::report::OperatorAnswer;

use made::Made;
pub use made::NewBundle;
use sources::Sources;

/// Which cluster it is about, and where what its catalogs hold is read.
#[derive(Debug, Default)]
pub struct Target {
    /// The contexts of clusters; none for the current one.
    pub contexts: Vec<String>,
    /// The kubeconfig; none for the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// Files with the states of simulated clusters; none for real ones.
    pub simulate: Vec<PathBuf>,
    /// The catalog, where it is read from another place than the CatalogSource names.
    pub catalog_from: Option<Input>,
    /// A directory with the bundles of a simulated registry.
    pub bundles_from: Option<PathBuf>,
}

/// What to do.
#[derive(Clone, Debug)]
pub enum Verb {
    /// `operator install`
    Install {
        /// What, and where.
        request: Box<Install>,
        /// A bundle that no catalog has yet.
        bundle: Option<NewBundle>,
    },
    /// `operator upgrade`
    Upgrade(Upgrade),
    /// `operator approve`
    Approve {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
        /// Bundles of others that the plan may carry.
        accept: BTreeSet<String>,
    },
    /// `operator status`
    Status {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
    },
    /// `operator describe`
    Describe {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
    },
    /// `operator list`
    List {
        /// The namespace; none for all.
        namespace: Option<String>,
    },
    /// `operator uninstall`
    Uninstall(Uninstall),
    /// `operator rollback`
    Rollback {
        /// What, and how far.
        request: Rollback,
        /// Where custom resources are kept.
        backup: PathBuf,
    },
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
    /// What was removed.
    Removed(Removed),
    /// What would be written.
    Planned(Vec<Planned>),
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
) -> Result<OperatorAnswer, Failure> {
    let made = match verb {
        Verb::Install { bundle: Some(bundle), .. } => {
            Some(Made::of(bundle, !target.simulate.is_empty(), access)?)
        }
        _ => None,
    };
    let errand = Errand { verb, made: made.as_ref(), options, access };
    let outcomes = match (&target.simulate[..], &target.contexts[..]) {
        ([], []) => vec![(String::new(), real(target, None, &errand, progress))],
        ([], contexts) => at_once(target, contexts, &errand, progress),
        (files, _) => {
            let mut outcomes = Vec::new();
            for path in files {
                let keep = !options.dry_run;
                let done = simulated::with(path, target, access, errand.made, keep, |cluster, sources| {
                    one(cluster, sources, &errand, progress)
                });
                outcomes.push((path.display().to_string(), done));
            }
            outcomes
        }
    };
    let single = outcomes.len() == 1;
    let mut told = Vec::new();
    for (name, done) in outcomes {
        told.push(if single { (String::new(), Ok(done?)) } else { (name, done) });
    }
    Ok(OperatorAnswer { outcomes: told })
}

/// What to do, wherever it is done.
struct Errand<'e> {
    verb: &'e Verb,
    made: Option<&'e Made>,
    options: &'e Options,
    access: &'e Access,
}

/// Several clusters, each in a thread of its own.
fn at_once(
    target: &Target,
    contexts: &[String],
    errand: &Errand<'_>,
    progress: &(dyn Progress + Sync),
) -> Vec<(String, Result<Outcome, Failure>)> {
    let within = |context: &String| -> Result<Outcome, Failure> {
        if contexts.len() == 1 {
            return real(target, Some(context), errand, progress);
        }
        let named = Within { context: context.clone(), progress };
        real(target, Some(context), errand, &named)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = contexts.iter().map(|context| scope.spawn(move || within(context))).collect();
        let outcomes = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::unknown("the thread of this cluster has died")))
        });
        contexts.iter().cloned().zip(outcomes).collect()
    })
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
}

/// A verb on a real cluster.
fn real(
    target: &Target,
    context: Option<&String>,
    errand: &Errand<'_>,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let choice = Choice { kubeconfig: target.kubeconfig.clone(), context: context.cloned() };
    let mut cluster = Kubernetes::connect(&choice).map_err(|error| {
        Failure::unknown(error).help(
            "name a kubeconfig with --kubeconfig, a context with --context, or simulate with --simulate FILE",
        )
    })?;
    let sources = Sources::new(target.catalog_from.clone(), errand.access.clone());
    if let (Some(made), Verb::Install { request, .. }) = (errand.made, errand.verb) {
        sources.keep(&made.catalog, &made.text);
        if !errand.options.dry_run {
            // What cannot come to a good end is said before anything is pushed.
            let rehearsal = Options { dry_run: true, ..errand.options.clone() };
            let checked =
                Engine::new(&mut cluster, &sources, progress, rehearsal).install(&made.install(request));
            checked.map_err(|error| failure(error, false))?;
            made.push(errand.access, progress)?;
        }
    }
    one(&mut cluster, &sources, errand, progress)
}

fn one(
    cluster: &mut dyn Cluster,
    sources: &Sources,
    errand: &Errand<'_>,
    progress: &dyn Progress,
) -> Result<Outcome, Failure> {
    let Errand { verb, made, options, access } = *errand;
    let mut engine = Engine::new(cluster, sources, progress, options.clone());
    let outcome = match verb {
        Verb::Install { request, .. } => match made {
            Some(made) => engine.install(&made.install(request)).map(Outcome::Operator),
            None => engine.install(request).map(Outcome::Operator),
        },
        Verb::Upgrade(request) => engine.upgrade(request).map(Outcome::Operator),
        Verb::Approve { name, namespace, accept } => {
            engine.approve(name, namespace.as_deref(), accept).map(Outcome::Operator)
        }
        Verb::Status { name, namespace } => engine.status(name, namespace.as_deref()).map(Outcome::Status),
        Verb::Describe { name, namespace } => {
            engine.describe(name, namespace.as_deref()).map(Outcome::Description)
        }
        Verb::List { namespace } => engine.list(namespace.as_deref()).map(Outcome::List),
        Verb::Uninstall(request) => engine.uninstall(request).map(Outcome::Removed),
        Verb::Rollback { request, backup } => {
            let archive = sources::Backup { sources, access, directory: backup, dry_run: options.dry_run };
            engine.rollback(request, &archive).map(Outcome::Operator)
        }
    };
    let changed = !engine.planned.is_empty();
    match outcome {
        // Its answer says itself what would be done, and what would be kept.
        Ok(Outcome::Removed(removed)) => Ok(Outcome::Removed(removed)),
        Ok(_) if options.dry_run => Ok(Outcome::Planned(engine.planned)),
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(failure(error, changed && !options.dry_run)),
    }
}

/// What is said when a verb did something and did not get to its end.
const LEFT: &str = "what was done is left as it is; the same command, run again, goes on from there";

/// How a verb's failure ends the command, and the way out.
fn failure(error: EngineError, changed: bool) -> Failure {
    let (exit, mut help) = match &error {
        EngineError::Stuck(stuck) => (Exit::No, stuck.help.clone()),
        EngineError::Refused { help, .. } => (Exit::No, help.clone()),
        EngineError::TimedOut { suspicion, .. } => {
            let why = suspicion.as_ref().map(|stuck| match &stuck.help {
                Some(help) => format!("{}: {help}", stuck.sentence),
                None => stuck.sentence.clone(),
            });
            (Exit::TimedOut, why)
        }
        EngineError::Cluster(ClusterError::Interrupted) => (Exit::Interrupted, None),
        EngineError::Cluster(error) => (Exit::Unknown, error.help()),
        EngineError::Catalog { .. } => {
            (Exit::Unknown, Some("say where the catalog can be read with --catalog-from".into()))
        }
    };
    if changed {
        help = Some(help.map_or_else(|| LEFT.to_owned(), |help| format!("{help}\n{LEFT}")));
    }
    Failure { exit, error: Box::<dyn Error + Send + Sync>::from(error), place: None, help }
}
