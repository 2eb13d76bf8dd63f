//! The catalog's life: opened, checked, made anew when it is stale or damaged, replaced when its files change.
//!
//! What is being served is never taken away: a catalog that cannot be opened or compiled leaves the old one in its place, and says so.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use olmkit_catalog::load::{self, CatalogFiles, Found};
use tokio::signal::unix::Signal;
use tokio::time::sleep;
use tracing::{error, info, warn};

use crate::compiled::{self, Compiled, FILE_NAME, Fingerprint};
use crate::tls::Tls;
use crate::{Config, ServeError, Serving, Shared, chain};

/// Files from before this time are those of an image, where all have the same: 2000-01-01.
const NO_TIME: Duration = Duration::from_secs(946_684_800);
/// How long the first clients have the processors for themselves.
const FIRST_CLIENTS: Duration = Duration::from_millis(300);
/// The most that is kept of what a failing compiler says, in bytes.
const MAX_MESSAGE: usize = 4 << 10;

/// Looks after the catalog.
pub(super) struct Reloader {
    shared: Arc<Shared>,
    source: Arc<Source>,
    interval: Duration,
    /// What the files looked like when they were last acted on, and at the last look.
    acted: Look,
    last: Look,
}

/// Where the catalog comes from.
struct Source {
    catalog: Option<PathBuf>,
    index: Option<PathBuf>,
    enforce: bool,
    builder: Vec<OsString>,
}

/// What files look like from outside, to see whether they have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look {
    index: Option<FileStamp>,
    /// The catalog's files, if it can be listed.
    catalog: Option<Vec<(String, Option<FileStamp>)>>,
}

impl Look {
    /// What names and sizes tell of the catalog, as [`Fingerprint`] has it.
    fn shape(&self) -> Option<[u8; 32]> {
        let files = self.catalog.as_ref()?.iter();
        Some(Fingerprint::shape(files.map(|(path, seen)| (path.as_str(), seen.map_or(0, |seen| seen.size)))))
    }
}

/// A file and its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileStamp {
    fn of(file: &fs::Metadata) -> Self {
        let (device, inode, size) = (file.dev(), file.ino(), file.size());
        Self { device, inode, size, changed: (file.mtime(), file.mtime_nsec()) }
    }
}

impl Reloader {
    pub(super) fn new(config: &Config, shared: Arc<Shared>) -> Self {
        let source = Arc::new(Source {
            catalog: config.catalog.clone(),
            index: config.index.clone(),
            enforce: config.enforce,
            builder: config.builder.clone(),
        });
        let interval = config.reload_interval;
        Self { shared, source, interval, acted: Look::default(), last: Look::default() }
    }

    /// Opens the catalog for the first time.
    pub(super) async fn open(&mut self) -> Result<Arc<Serving>, ServeError> {
        let source = self.source.clone();
        // Nobody is waiting yet, and to look takes less time than to ask another thread to. Before it is opened: what changes from
        // here on is seen.
        self.acted = source.look();
        self.last = self.acted.clone();
        let compiled = match source.open_sound(&self.acted) {
            Some(compiled) => compiled,
            None => blocking(move || source.open()).await?,
        };
        Ok(self.serve(compiled, "opened"))
    }

    /// Keeps the catalog as its files are; does not return.
    pub(super) async fn keep(&mut self, tls: Option<Arc<Tls>>, mut hangup: Signal) {
        let shared = self.shared.clone();
        // Names and sizes fit; whether the contents do takes longer to find out than the first clients should wait.
        sleep(FIRST_CLIENTS).await;
        self.act(false).await;
        loop {
            let at_once = tokio::select! {
                () = sleep(self.interval), if !self.interval.is_zero() => false,
                _ = hangup.recv() => true,
                () = shared.damaged.notified() => {
                    self.act(true).await;
                    continue;
                }
            };
            if let Some(tls) = tls.clone() {
                blocking(move || tls.refresh()).await;
            }
            let look = self.look().await;
            // Files that are still being written are left alone until two looks see the same.
            let settled = at_once || look == self.last;
            self.last = look;
            if settled && self.last != self.acted {
                self.act(false).await;
            }
        }
    }

    /// Refreshes as of the last look: what has changed since is seen by the next one, but for the index, which this may write.
    async fn act(&mut self, damaged: bool) {
        self.refresh(damaged).await;
        self.last.index = self.look().await.index;
        self.acted = self.last.clone();
    }

    async fn look(&self) -> Look {
        let source = self.source.clone();
        blocking(move || source.look()).await
    }

    /// Opens what the files say now, unless that is what is served; `damaged` when that cannot be relied on.
    async fn refresh(&mut self, damaged: bool) {
        let current = self.shared.catalog();
        let source = self.source.clone();
        let found = blocking(move || {
            let current = current.as_ref().filter(|_| !damaged).map(|serving| &serving.compiled);
            source.renew(current, damaged)
        });
        match found.await {
            Ok(None) => {
                self.shared.metrics.stale.set(0);
            }
            Ok(Some(compiled)) => {
                self.serve(compiled, "reloaded");
            }
            Err(error) => {
                self.shared.metrics.reloaded("failed");
                self.shared.metrics.stale.set(1);
                error!(msg = "not reloaded; the old catalog stays", error = chain(&error));
            }
        }
    }

    fn serve(&self, compiled: Compiled, what: &'static str) -> Arc<Serving> {
        let now = SystemTime::now();
        let since =
            compiled.modified().filter(|time| *time > SystemTime::UNIX_EPOCH + NO_TIME).unwrap_or(now);
        let (packages, bundles) = compiled.counts();
        if what == "reloaded" {
            let digest = compiled.fingerprint().to_hex();
            info!(msg = what, packages, bundles, digest);
        }
        let metrics = &self.shared.metrics;
        metrics.reloaded("succeeded");
        metrics.packages.set(packages.into());
        metrics.bundles.set(bundles.into());
        metrics.stale.set(0);
        let serving = Arc::new(Serving { compiled, since });
        self.shared.catalog.send_replace(Some(serving.clone()));
        serving
    }
}

/// Runs what may wait for a disk where nobody else has to.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => match panic.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Blocking work is only cancelled when the runtime ends, and then nobody is here to be told.
            Err(_) => std::process::exit(1),
        },
    }
}

impl Source {
    /// The compiled catalog, if it is there and of the files that are there, as far as names and sizes tell.
    fn open_sound(&self, look: &Look) -> Option<Compiled> {
        let compiled = Compiled::open(self.index.as_ref()?).ok()?;
        let is_sound = self.catalog().is_none() || look.shape() == Some(compiled.fingerprint().shape);
        is_sound.then_some(compiled)
    }

    /// The compiled catalog, where it is not sound: made anew if that can be done.
    fn open(&self) -> Result<Compiled, ServeError> {
        let Some(index) = &self.index else {
            return self.build(self.catalog().ok_or(ServeError::Nothing)?);
        };
        match (Compiled::open(index), self.catalog()) {
            (Ok(compiled), None) => Ok(compiled),
            (Ok(_), Some(catalog)) => {
                if self.enforce {
                    return Err(ServeError::Stale { index: index.clone(), catalog: catalog.to_owned() });
                }
                warn!(msg = "the compiled catalog is stale; compiling", index = %index.display());
                self.build(catalog)
            }
            (Err(error), None) => Err(error.into()),
            (Err(error), Some(catalog)) => {
                if index.exists() {
                    if self.enforce {
                        return Err(error.into());
                    }
                    warn!(msg = "the compiled catalog cannot be used; compiling", error = chain(&error));
                } else {
                    info!(msg = "compiling", index = %index.display());
                }
                self.build(catalog)
            }
        }
    }

    /// What is to be served instead of `current`; nothing when that is what the files say.
    fn renew(&self, current: Option<&Compiled>, damaged: bool) -> Result<Option<Compiled>, ServeError> {
        let now = self.catalog().map(Fingerprint::read).transpose()?;
        let serves = |fingerprint| current.is_some_and(|current| current.fingerprint() == fingerprint);
        if let (Some(now), Some(catalog)) = (now, self.catalog()) {
            if serves(now) {
                return Ok(None);
            }
            // Perhaps somebody has compiled it already.
            let index = self.index.as_ref().filter(|_| !damaged).and_then(|index| Compiled::open(index).ok());
            return match index.filter(|index| index.fingerprint() == now) {
                Some(index) => Ok(Some(index)),
                None => self.build(catalog).map(Some),
            };
        }
        let index = Compiled::open(self.index.as_ref().ok_or(ServeError::Nothing)?)?;
        Ok((!serves(index.fingerprint())).then_some(index))
    }

    /// The catalog's directory, if it is there.
    fn catalog(&self) -> Option<&Path> {
        self.catalog.as_deref().filter(|catalog| self.index.is_none() || catalog.exists())
    }

    /// Compiles the catalog to where the compiled one belongs, or to a temporary file that goes when it is closed.
    fn build(&self, catalog: &Path) -> Result<Compiled, ServeError> {
        if let Some(index) = &self.index {
            match self.build_to(catalog, index) {
                Ok(()) => return Ok(Compiled::open(index)?),
                Err(ServeError::Build(
                    error @ (compiled::BuildError::Write { .. } | compiled::BuildError::NotReplaced { .. }),
                )) => {
                    warn!(msg = "compiling to a temporary file", error = chain(&error));
                }
                Err(error) => return Err(error),
            }
        }
        let write = |source| compiled::BuildError::Write { path: std::env::temp_dir(), source };
        let dir = tempfile::Builder::new().prefix("olmkit-").tempdir().map_err(write)?;
        let index = dir.path().join(FILE_NAME);
        self.build_to(catalog, &index)?;
        // Open, it outlives its name.
        Ok(Compiled::open(&index)?)
    }

    fn build_to(&self, catalog: &Path, index: &Path) -> Result<(), ServeError> {
        let Some((program, words)) = self.builder.split_first() else {
            compiled::build(&CatalogFiles::load(catalog)?, index)?;
            return Ok(());
        };
        if !compiled::may_replace(index) {
            return Err(compiled::BuildError::NotReplaced { path: index.to_owned() }.into());
        }
        // Another program finds out that it cannot write, and says so in words; which it is decides what is done.
        let parent = index.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)
            .and_then(|()| tempfile::tempfile_in(parent))
            .map_err(|source| compiled::BuildError::Write { path: index.to_owned(), source })?;
        let fail = |message: String| ServeError::Builder { catalog: catalog.to_owned(), message };
        // No path is read as an option.
        let is_option = |path: &Path| path.as_os_str().as_encoded_bytes().starts_with(b"-");
        let path = |path: &Path| if is_option(path) { Path::new(".").join(path) } else { path.to_owned() };
        let (catalog, index) = (path(catalog), path(index));
        let output = Command::new(program).args(words).arg(&catalog).arg("--to").arg(index).output();
        let output = output.map_err(|error| fail(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = &output.stderr[..output.stderr.len().min(MAX_MESSAGE)];
        let said = String::from_utf8_lossy(said);
        let said = said.trim();
        let said = said.strip_prefix("error: ").unwrap_or(said);
        let own = format!("cannot compile `{}`: ", catalog.display());
        Err(fail(said.strip_prefix(&own).unwrap_or(said).to_owned()))
    }

    fn look(&self) -> Look {
        let look = |catalog: &Path| {
            let (root, files) = load::list(catalog).ok()?;
            let seen = |(path, found): (String, Found)| {
                let seen = match &found {
                    Found::File(file) => load::metadata(&root, file).ok().and_then(Result::ok),
                    Found::Unread(_) => None,
                };
                (path, seen.as_ref().map(FileStamp::of))
            };
            Some(files.into_iter().map(seen).collect())
        };
        let index = self.index.as_deref().and_then(|index| fs::metadata(index).ok());
        Look { index: index.as_ref().map(FileStamp::of), catalog: self.catalog.as_deref().and_then(look) }
    }
}
