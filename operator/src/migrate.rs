//! `redis-operator migrate-storage`: stores every RedisCluster as v1, so that older versions can leave the CRD.
//!
//! An object stays in etcd as it was last written, whatever the CRD says today. The API server writes it anew, as v1, for any
//! update, also for one that changes nothing. Once that has happened to all, older versions are dropped from
//! `status.storedVersions`; until then the API server, and OLM, refuse a CRD without them.
//!
//! It keeps nothing of its own: after an interruption it is run again. It has the rights of the user who runs it, not the operator's.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    core::PartialObjectMeta,
};
use operator_process::{RunError, connect};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::crd::RedisCluster;

/// The CRD.
const DEFINITION: &str = "redisclusters.cache.example.com";
/// The version at which objects are stored.
const STORED: &str = "v1";
/// Objects in one page of a list.
const PAGE: u32 = 100;
/// How often everything is begun anew when the CRD changes meanwhile.
const ATTEMPTS: usize = 5;

/// Store every RedisCluster as v1, and drop older versions from the CRD's status.storedVersions
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MigrateArgs {
    /// Only say what would be done, and whether the API server would refuse it
    #[arg(long)]
    pub dry_run: bool,

    /// Seconds that the whole command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

const EXAMPLES: &str = "\
It uses the current kubectl context, or in a pod its service account. The operator must be running:
it converts what is stored in another version. Run the command again after an interruption: it goes
on where it was.

Examples:
  See what would be done:
    redis-operator migrate-storage --dry-run

  Migrate:
    redis-operator migrate-storage";

/// Why objects were not migrated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// No cluster, or no client for it.
    #[error(transparent)]
    Connect(#[from] RunError),
    /// No threads or no signals.
    #[error("cannot set up the process")]
    Process(#[source] io::Error),
    /// The CRD is not there.
    #[error("customresourcedefinition/{DEFINITION} not found: this cluster has no RedisClusters")]
    NotInstalled,
    /// Objects are not stored as v1 today.
    #[error(
        "customresourcedefinition/{DEFINITION} stores objects as {found}, not as {STORED}: install the CRD of release 0.6.0 or later first"
    )]
    OtherStorage {
        /// The version that is stored.
        found: String,
    },
    /// The API server refused, or could not be reached.
    #[error("the API server refused to {what}")]
    Api {
        /// What was tried.
        what: String,
        /// What it said.
        source: Box<kube::Error>,
    },
    /// Some objects could not be written.
    #[error(
        "{refused} RedisClusters could not be rewritten, and status.storedVersions stays as it is: correct them, and run the command again"
    )]
    Refused {
        /// How many.
        refused: usize,
    },
    /// Somebody changes the CRD again and again.
    #[error(
        "customresourcedefinition/{DEFINITION} changed {ATTEMPTS} times meanwhile: run the command again once nobody changes it"
    )]
    Changing,
    /// The deadline.
    #[error(
        "timed out after {seconds} s; {rewritten} RedisClusters were rewritten: run the command again to resume, with a longer --timeout"
    )]
    TimedOut {
        /// The deadline.
        seconds: u64,
        /// What was done until then.
        rewritten: usize,
    },
    /// SIGINT or SIGTERM.
    #[error("interrupted; {rewritten} RedisClusters were rewritten: run the command again to resume")]
    Interrupted {
        /// What was done until then.
        rewritten: usize,
    },
    /// The answer could not be written.
    #[error("cannot write to standard output")]
    Stdout(#[source] io::Error),
}

impl MigrateError {
    /// The exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OtherStorage { .. } | Self::Refused { .. } => 1,
            Self::TimedOut { .. } => 4,
            Self::Interrupted { .. } => 130,
            _ => 3,
        }
    }
}

/// What became of all objects.
#[derive(Debug, Default)]
struct Counts {
    /// They were stored in another version, or changed by others meanwhile.
    rewritten: usize,
    /// They were stored as v1 already.
    current: usize,
    /// The API server refused to write them.
    refused: usize,
}

/// What became of one object.
enum Outcome {
    Rewritten,
    Current,
    Gone,
}

/// Migrates, on the cluster of the environment. What is done goes to `stdout`, line by line.
///
/// # Errors
/// When something is left to be done. What was done is kept, and the next run goes on from there.
pub fn run(args: &MigrateArgs, stdout: &mut dyn Write) -> Result<(), MigrateError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(MigrateError::Process)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(MigrateError::Process)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(MigrateError::Process)?;
        let mut rewritten = 0;
        let work = async {
            let (client, _) = connect().await?;
            attempts(&client, args.dry_run, &mut rewritten, stdout).await
        };
        let ended = tokio::select! {
            result = work => return result,
            () = tokio::time::sleep(Duration::from_secs(args.timeout)) => false,
            _ = interrupt.recv() => true,
            _ = terminate.recv() => true,
        };
        Err(match ended {
            true => MigrateError::Interrupted { rewritten },
            false => MigrateError::TimedOut { seconds: args.timeout, rewritten },
        })
    })
}

/// Migrates, on the cluster of `client`.
///
/// # Errors
/// As [`run`], but for the deadline and signals.
pub async fn migrate(client: &Client, dry_run: bool, out: &mut dyn Write) -> Result<(), MigrateError> {
    attempts(client, dry_run, &mut 0, out).await
}

async fn attempts(
    client: &Client,
    dry_run: bool,
    rewritten: &mut usize,
    out: &mut dyn Write,
) -> Result<(), MigrateError> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for _ in 0..ATTEMPTS {
        let definition = api("read the CRD", definitions.get_opt(DEFINITION)).await?;
        let definition = definition.ok_or(MigrateError::NotInstalled)?;
        let storage = definition.spec.versions.iter().find(|version| version.storage);
        let storage = storage.map(|version| version.name.as_str()).unwrap_or_default();
        if storage != STORED {
            return Err(MigrateError::OtherStorage { found: storage.into() });
        }
        let stored = definition.status.as_ref().and_then(|status| status.stored_versions.as_ref());
        let older: Vec<&str> =
            stored.into_iter().flatten().map(String::as_str).filter(|version| *version != STORED).collect();
        if older.is_empty() {
            return say(out, &format!("every RedisCluster is stored as {STORED}: nothing to migrate"));
        }
        let older = older.join(", ");
        say(out, &format!("RedisClusters may be stored as {older}"))?;
        let counts = rewrite_all(client, dry_run, rewritten, out).await?;
        let Counts { rewritten, current, refused: wrong } = counts;
        let all = rewritten + current + wrong;
        if dry_run {
            say(out, &format!("{all} RedisClusters: would rewrite {}, {wrong} refused", all - wrong))?;
        } else {
            say(
                out,
                &format!(
                    "{all} RedisClusters: {rewritten} rewritten as {STORED}, {current} stored as {STORED} already, {wrong} refused"
                ),
            )?;
        }
        if wrong > 0 {
            return Err(MigrateError::Refused { refused: wrong });
        }
        if dry_run {
            return say(out, &format!("would remove {older} from status.storedVersions (dry run)"));
        }
        // Only of the CRD that was looked at: another storage version could have come and gone meanwhile.
        let patch = json!({
            "metadata": {"resourceVersion": definition.resource_version(), "uid": definition.uid()},
            "status": {"storedVersions": [STORED]},
        });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        match definitions.patch_status(DEFINITION, &parameters, &patch).await {
            Ok(_) => {
                return say(
                    out,
                    &format!(
                        "removed {older} from status.storedVersions of customresourcedefinition/{DEFINITION}"
                    ),
                );
            }
            Err(error) if is(&error, 409) => say(out, "the CRD changed meanwhile: starting again")?,
            Err(source) => return Err(refused("update status.storedVersions of the CRD", source)),
        }
    }
    Err(MigrateError::Changing)
}

/// Writes every object once. Those that are refused are named, and the others are still written.
async fn rewrite_all(
    client: &Client,
    dry_run: bool,
    total: &mut usize,
    out: &mut dyn Write,
) -> Result<Counts, MigrateError> {
    let mut counts = Counts::default();
    let all: Api<RedisCluster> = Api::all(client.clone());
    let mut page = ListParams::default().limit(PAGE);
    let mut seen = BTreeSet::new();
    loop {
        let list = match all.list_metadata(&page).await {
            Ok(list) => list,
            // The list is too old to be continued. What was written is not written again.
            Err(error) if is(&error, 410) && page.continue_token.is_some() => {
                page.continue_token = None;
                continue;
            }
            Err(source) => {
                return Err(refused(
                    "list RedisClusters (the operator converts those that are stored in another version: is it running?)",
                    source,
                ));
            }
        };
        for object in &list.items {
            if !seen.insert(object.uid()) {
                continue;
            }
            let name = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
            match rewrite(client, object, dry_run).await {
                Ok(Outcome::Rewritten) => {
                    counts.rewritten += 1;
                    *total += 1;
                    say(out, &format!("rewrote {name}"))?;
                }
                Ok(Outcome::Current) => counts.current += 1,
                Ok(Outcome::Gone) => {}
                Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => {
                    counts.refused += 1;
                    say(out, &format!("cannot rewrite {name}: {}", status.message))?;
                }
                Err(source) => return Err(refused(&format!("rewrite {name}"), source)),
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page.continue_token = Some(token),
            None => return Ok(counts),
        }
    }
}

/// An update that changes nothing: the API server writes the object if it is not stored as it would store it today.
async fn rewrite(
    client: &Client,
    object: &PartialObjectMeta<RedisCluster>,
    dry_run: bool,
) -> Result<Outcome, kube::Error> {
    let api: Api<RedisCluster> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let parameters = PatchParams { dry_run, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": {"uid": object.uid()}}));
    match api.patch_metadata(&object.name_any(), &parameters, &patch).await {
        Ok(written) if written.resource_version() == object.resource_version() => Ok(Outcome::Current),
        Ok(_) => Ok(Outcome::Rewritten),
        Err(error) if is(&error, 404) => Ok(Outcome::Gone),
        // Another object has its name now: it was made after the list, and is stored as v1.
        Err(error) if is(&error, 409) => Ok(Outcome::Current),
        Err(error) => Err(error),
    }
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), MigrateError> {
    // A reader that has gone is told nothing more, and the work goes on.
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(MigrateError::Stdout(error)),
        _ => Ok(()),
    }
}

async fn api<T>(what: &str, work: impl Future<Output = Result<T, kube::Error>>) -> Result<T, MigrateError> {
    work.await.map_err(|source| refused(what, source))
}

fn refused(what: &str, source: kube::Error) -> MigrateError {
    MigrateError::Api { what: what.into(), source: Box::new(source) }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
