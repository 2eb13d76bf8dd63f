//! The servers that the tests run on: Debian's redis-server, and those that `tests/servers` keeps in the user's cache.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use crate::support::Part;

/// A server, and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    Redis7,
    Redis8,
    Valkey9,
}

tokio::task_local! {
    /// The flavour of the test that runs.
    static PRESENT: Flavour;
}

static REDIS_8: LazyLock<Option<PathBuf>> = LazyLock::new(|| kept("redis-server", "Redis server v=8."));
static VALKEY_9: LazyLock<Option<PathBuf>> = LazyLock::new(|| kept("valkey-server", "Valkey server v=9."));

/// A program in the cache that says this version.
fn kept(name: &str, version: &str) -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
    let places = fs::read_dir(cache.join("olmkit/servers")).ok()?;
    let is_that = |program: &Path| {
        let said = Command::new(program).arg("--version").output();
        said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).starts_with(version))
    };
    places.flatten().map(|place| place.path().join(name)).find(|program| is_that(program))
}

impl Flavour {
    /// All but the one that most tests run on.
    pub(crate) const OTHERS: [Self; 2] = [Self::Redis8, Self::Valkey9];

    /// The flavour of the test that runs.
    pub(crate) fn present() -> Self {
        PRESENT.try_with(|flavour| *flavour).unwrap_or(Self::Redis7)
    }

    /// Runs a test on this flavour.
    pub(crate) async fn run(self, test: impl Future<Output = ()>) {
        PRESENT.scope(self, test).await;
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis7 => "Redis 7",
            Self::Redis8 => "Redis 8",
            Self::Valkey9 => "Valkey 9",
        }
    }

    /// What a machine must have for it.
    pub(crate) fn part(self) -> Part {
        let fetched = |name, program: &Option<PathBuf>| {
            let missing = program
                .is_none()
                .then(|| format!("{} is not there (`tests/servers` fetches it)", self.name()));
            Part::new(name, missing)
        };
        match self {
            Self::Redis7 => Part::program("redis-server"),
            Self::Redis8 => fetched("redis-8", &REDIS_8),
            Self::Valkey9 => fetched("valkey-9", &VALKEY_9),
        }
    }

    /// The program to start.
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Redis7 => None,
            Self::Redis8 => REDIS_8.clone(),
            Self::Valkey9 => VALKEY_9.clone(),
        }
        .unwrap_or_else(|| PathBuf::from("redis-server"))
    }
}
