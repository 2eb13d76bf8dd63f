//! What tests need of the machine, and how one that lacks it is reported.
//!
//! A test that needs something the machine lacks is listed as not run, with the reason; it counts as neither passed nor
//! failed. Where `OLMKIT_REQUIRE` lists the part, the test fails instead: `.ci/run` lists what its machine must have.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

/// The names that `OLMKIT_REQUIRE` may list. ARCHITECTURE.md says what each one stands for.
const PARTS: [&str; 31] = [
    "advisories",
    "apiserver",
    "awk",
    "bash",
    "catalog-server",
    "chromium",
    "cluster",
    "corpus",
    "crates",
    "docker-registry",
    "etcd",
    "flock",
    "grpcio",
    "helm",
    "ip",
    "kustomize",
    "make",
    "memcached",
    "mounts",
    "netns",
    "nodes",
    "olm",
    "operator-sdk",
    "opm",
    "redis-8",
    "redis-server",
    "registry-collect",
    "skopeo",
    "taskset",
    "valgrind",
    "valkey-9",
];

/// Tests that are not run, by the reason.
static NOT_RUN: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Tests that took longer than [`LONG`], and how long.
static SLOW: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());
const LONG: Duration = Duration::from_secs(20);
/// The most slow tests that are named.
const MOST_SLOW: usize = 5;

/// Something that a machine has or lacks.
#[derive(Clone)]
pub(crate) struct Part {
    name: &'static str,
    /// Why it is missing; `None` if it is there.
    missing: Option<String>,
}

impl Part {
    /// A part by its name in [`PARTS`]; `missing` says why tests cannot have it.
    pub(crate) fn new(name: &'static str, missing: Option<String>) -> Self {
        assert!(PARTS.contains(&name), "`{name}` is not in PARTS");
        Self { name, missing }
    }

    /// A program on `PATH`.
    pub(crate) fn program(name: &'static str) -> Self {
        Self::new(name, find(name).is_none().then(|| format!("{name} is not installed")))
    }
}

/// Where a program is, if it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// The parts that must be there.
fn required() -> Vec<String> {
    let words = env::var("OLMKIT_REQUIRE").unwrap_or_default();
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    for word in &words {
        assert!(PARTS.contains(&word.as_str()), "OLMKIT_REQUIRE lists `{word}`; expected any of {PARTS:?}");
    }
    words
}

/// A test that needs these programs.
#[allow(dead_code, reason = "not every program that includes this file has such tests")]
pub(crate) fn trial(
    name: &str,
    programs: &[&'static str],
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let parts: Vec<Part> = programs.iter().map(|program| Part::program(program)).collect();
    trial_with(name, &parts, test)
}

/// A test that needs these parts.
pub(crate) fn trial_with(
    name: &str,
    parts: &[Part],
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let missing = parts.iter().find_map(|part| Some((part.name, part.missing.clone()?)));
    let Some((part, reason)) = missing else { return Trial::test(name, timed(name, test)) };
    if required().iter().any(|required| required == part) {
        return Trial::test(name, move || Err(format!("{reason}; OLMKIT_REQUIRE lists `{part}`").into()));
    }
    *NOT_RUN.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    Trial::test(name, timed(name, test)).with_ignored_flag(true)
}

fn timed(
    name: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> impl FnOnce() -> Result<(), Failed> + Send + 'static {
    let name = name.to_owned();
    move || {
        let begun = Instant::now();
        let outcome = test();
        if begun.elapsed() > LONG {
            SLOW.lock().unwrap_or_else(PoisonError::into_inner).push((begun.elapsed(), name));
        }
        outcome
    }
}

/// Runs the tests of a program, and says which are not run and why, and which take longest. `tests/counts` reads these lines.
#[expect(clippy::print_stderr, reason = "the caller is told which tests are not run")]
pub(crate) fn run(arguments: &Arguments, trials: Vec<Trial>) -> Conclusion {
    required();
    if !arguments.list {
        for (reason, tests) in NOT_RUN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            eprintln!("not run: {reason}: {tests} {}", if *tests == 1 { "test" } else { "tests" });
        }
    }
    let conclusion = libtest_mimic::run(arguments, trials);
    let mut slow = SLOW.lock().unwrap_or_else(PoisonError::into_inner);
    slow.sort_by(|one, other| other.cmp(one));
    for (time, name) in slow.iter().take(MOST_SLOW) {
        eprintln!("{:5.0} s  {name}", time.as_secs_f64());
    }
    conclusion
}
