//! What a test is: a function that gets a namespace of its own, is timed, and leaves its diagnostics when it fails.

use std::any::Any;
use std::env;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use crate::cluster::{Cluster, Namespace, message};
use crate::support::{self, Part};
use crate::{diagnostics, junit};

/// Who may run at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// Whatever happens in other namespaces does not matter.
    Any,
    /// Brings the CRD of this operator, or namespaces that its page names. One such test at a time.
    Of(Operator),
    /// Changes what all namespaces share: nodes, catalogs of all namespaces, the registry's disk. Runs alone.
    Alone,
}

/// An operator whose tests do not run side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Echo,
    Etcd,
    Memcached,
    Redis,
}

impl Operator {
    const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Etcd => "etcd",
            Self::Memcached => "memcached",
            Self::Redis => "redis",
        }
    }
}

/// A test that has ended.
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) time: Duration,
    pub(crate) failure: Option<String>,
}

static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());

/// A test that is alone has it for itself, all others share it.
static SHARED: RwLock<()> = RwLock::new(());

/// Who tests an operator has its place in it.
static OPERATORS: [Mutex<()>; 4] = [const { Mutex::new(()) }; 4];

/// Whether there is to be a cluster.
pub(crate) fn enabled() -> bool {
    env::var_os("E2E").is_some_and(|value| value == "1")
}

/// Where diagnostics and the JUnit file go.
pub(crate) fn results() -> PathBuf {
    env::var_os("E2E_RESULTS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/e2e"), PathBuf::from)
}

/// The directory of a cluster from parts, if the tests run on one.
pub(crate) fn cluster_from_parts() -> Option<PathBuf> {
    let owner = env::var_os("CLUSTER_OWNER").filter(|owner| !owner.is_empty())?;
    Some(Path::new(&owner).parent()?.to_path_buf())
}

/// Keeps the tests of other programs on this cluster from running at the same time, as [`SHARED`] and [`OPERATORS`] do it
/// within one.
fn shared_with_others(company: Company) -> Result<Vec<File>, Failed> {
    let Some(dir) = cluster_from_parts() else { return Ok(Vec::new()) };
    let open = |name: &str| File::options().create(true).append(true).open(dir.join(name));
    let mut locks = vec![open("tests.lock")?];
    match company {
        Company::Any => locks[0].lock_shared()?,
        Company::Of(operator) => {
            locks[0].lock_shared()?;
            let own = open(&format!("tests-of-{}.lock", operator.name()))?;
            own.lock()?;
            locks.push(own);
        }
        Company::Alone => locks[0].lock()?,
    }
    Ok(locks)
}

/// A test on the cluster.
pub(crate) fn trial(
    name: &'static str,
    company: Company,
    test: impl FnOnce(&Namespace) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    trial_with(name, company, None, test)
}

/// A test on the cluster that needs more parts of the machine.
pub(crate) fn trial_with(
    name: &'static str,
    company: Company,
    needed: impl IntoIterator<Item = Part>,
    test: impl FnOnce(&Namespace) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let run = move || {
        // Another test's panic does not make the cluster worse.
        let _own = match company {
            Company::Of(operator) => {
                Some(OPERATORS[operator as usize].lock().unwrap_or_else(PoisonError::into_inner))
            }
            Company::Any | Company::Alone => None,
        };
        let _shared =
            (company != Company::Alone).then(|| SHARED.read().unwrap_or_else(PoisonError::into_inner));
        let _alone =
            (company == Company::Alone).then(|| SHARED.write().unwrap_or_else(PoisonError::into_inner));
        let _others = shared_with_others(company)?;
        part(name, test)
    };
    let missing = (!enabled()).then(|| "E2E is not set (`make e2e` runs the tests on a cluster)".to_owned());
    let parts: Vec<Part> = [Part::new("cluster", missing)].into_iter().chain(needed).collect();
    support::trial_with(name, &parts, run)
}

/// Runs a test, or a part of one that has a namespace and a record of its own.
pub(crate) fn part(
    name: &'static str,
    test: impl FnOnce(&Namespace) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let started = Instant::now();
    let outcome = isolated(name, env::var_os("E2E_KEEP").is_some_and(|value| value == "1"), test);
    let failure = outcome.as_ref().err().map(message);
    let record = Record { name: name.to_owned(), time: started.elapsed(), failure };
    RECORDS.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    outcome
}

/// Runs a test in a new namespace, which is gone afterwards, unless the test has failed and it is to be kept.
fn isolated(
    name: &str,
    keep: bool,
    test: impl FnOnce(&Namespace) -> Result<(), Failed>,
) -> Result<(), Failed> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let cluster = Cluster::get()?;
    let dir = results().join(name);
    if dir.exists() {
        // Of an earlier run.
        std::fs::remove_dir_all(&dir)?;
    }
    let short: String =
        name.chars().take(36).map(|letter| if letter == '_' { '-' } else { letter }).collect();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let namespace = Namespace {
        cluster,
        name: format!("e2e-{}-{}-{number}", short.trim_end_matches('-'), process::id()),
    };
    cluster.kubectl(&["create", "namespace", &namespace.name])?;

    let outcome = catch_unwind(AssertUnwindSafe(|| test(&namespace)))
        .unwrap_or_else(|panic| Err(said(panic.as_ref()).into()))
        .map_err(|failed| format!("{}\n{}", message(&failed), diagnostics::collect(&namespace, &dir)));
    if outcome.is_err() && keep {
        eprintln!("{name}: namespace {} is kept", namespace.name);
        return Ok(outcome?);
    }
    // What stays in a namespace when its test is over is a fault as well: the deletion has to come to an end.
    let deleted =
        cluster.kubectl(&["delete", "namespace", &namespace.name, "--ignore-not-found", "--timeout=120s"]);
    outcome?;
    deleted?;
    Ok(())
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

/// Says how long every test took and, last and in short, what failed; writes the JUnit file.
pub(crate) fn report() {
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    records.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.name.cmp(&other.name)));
    for Record { name, time, failure } in records.iter() {
        eprintln!("{:7.1} s  {name}{}", time.as_secs_f64(), if failure.is_some() { "  failed" } else { "" });
    }
    for Record { name, failure, .. } in records.iter() {
        if let Some(failure) = failure {
            // What follows are the diagnostics.
            eprintln!("{name}: {}", failure.split("\n---").next().unwrap_or(failure));
        }
    }
    let file = results().join("junit.xml");
    let written =
        std::fs::create_dir_all(results()).and_then(|()| std::fs::write(&file, junit::document(&records)));
    match written {
        Ok(()) => eprintln!("JUnit: {}", file.display()),
        Err(error) => eprintln!("{} cannot be written: {error}", file.display()),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        // Needs no cluster, and is here for the code that it looks at.
        Trial::test("junit_survives_what_tests_say", junit::check),
        trial("a_failed_test_leaves_its_diagnostics_and_no_namespace", Company::Any, |_| {
            let mut name = String::new();
            let outcome = isolated("failed_on_purpose", false, |namespace| {
                name.clone_from(&namespace.name);
                namespace
                    .run("speaker", "containers: [{name: main, image: '{probe}', command: [/probe, say]}]")?;
                Ok(())
            });
            let said = message(&outcome.expect_err("the pod fails"));
            assert!(said.contains("pod speaker has failed; it said:\nprobe pause"), "{said}");
            assert!(said.contains("Pulled"), "no events: {said}");
            let dir = results().join("failed_on_purpose");
            let read = |file: &str| std::fs::read_to_string(dir.join(file));
            assert!(read("objects.yaml")?.contains("name: speaker"));
            assert!(read("pods/speaker.log")?.contains("probe serve PORT TEXT"));
            assert!(read("events.txt")?.contains("Pulled"));
            assert!(
                Cluster::get()?.kubectl(&["get", "namespace", &name]).is_err(),
                "namespace {name} is still there"
            );
            std::fs::remove_dir_all(dir)?;
            Ok(())
        }),
    ]
}
