//! `operator test`: which cluster, which catalog, and what the bundles hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use olmkit_catalog::fbc::Catalog;
use serde_json::Value;

use super::sources::Sources;
use super::{Target, connect_to, failure, held, simulated};
use crate::actions::catalog_diff;
use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Side;
use crate::lifecycle::channel_test::{Samples, Settings, Spectator, prepare, run as run_tests};
use crate::lifecycle::cluster::Cluster;
use crate::lifecycle::engine::{Catalogs as _, ContentError};
use crate::lifecycle::offer::Offer;
use crate::lifecycle::simulate::{Registry, Simulation};
use crate::report::ChannelTestAnswer;

/// What to test, where, and what to write.
#[derive(Debug)]
pub struct ChannelTest {
    /// What, and how.
    pub settings: Settings,
    /// Whether OLM is simulated.
    pub simulate: bool,
    /// The cluster, where it is not; and where the catalog and the bundles are read.
    pub target: Target,
    /// An older catalog, to test only what has changed.
    pub against: Option<Side>,
    /// A file or directory of custom resources, in place of those of the bundles.
    pub samples: Option<PathBuf>,
    /// A file for the report as JUnit's XML.
    pub junit: Option<PathBuf>,
    /// Whether only the plan is told.
    pub dry_run: bool,
    /// How long all of it may take.
    pub timeout: Duration,
}

/// A bundle that has to be read and cannot be.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the bundle `{name}`")]
struct Unread {
    name: String,
    source: ContentError,
}

/// Tests the channels of a package.
///
/// # Errors
/// The cluster is not free for it, or something that is needed cannot be read; nothing was changed then. What ends a run that has
/// begun is part of the answer.
pub fn run(
    mut request: ChannelTest,
    access: &Access,
    spectator: &dyn Spectator,
) -> Result<ChannelTestAnswer, Failure> {
    let begun = Instant::now();
    if let Some(path) = &request.junit {
        held::writable(path).map_err(|source| files::FileError::Write { path: path.clone(), source })?;
    }
    if let Some(path) = &request.samples {
        request.settings.samples = Samples::Given(objects(path)?);
    }
    if let Some(side) = &request.against {
        let files = catalog_diff::load(side, access)?;
        request.settings.against = Some(Arc::new(Offer::of(&Catalog::parse(&files))));
    }
    let answer = if request.simulate {
        let mut cluster = Simulation::new(Registry::default());
        let mut sources = simulated::serve(&mut cluster, &request.target, access)?;
        read_bundles(&mut cluster, &mut sources, &request, access)?;
        test(&mut cluster, &sources, &request, spectator)?
    } else {
        let cluster = connect_to(&request.target, request.target.contexts.first())?;
        let mut cluster = cluster.within(request.timeout.saturating_sub(begun.elapsed()));
        let sources = Sources::new(request.target.catalog_from.clone(), access.clone());
        test(&mut cluster, &sources, &request, spectator)?
    };
    if let Some(path) = &request.junit {
        files::write(path, answer.junit().as_bytes())?;
    }
    Ok(answer)
}

fn test(
    cluster: &mut dyn Cluster,
    sources: &Sources,
    request: &ChannelTest,
    spectator: &dyn Spectator,
) -> Result<ChannelTestAnswer, Failure> {
    let settings = &request.settings;
    let prepared =
        prepare(cluster, sources, spectator, settings).map_err(|error| failure(error, &[], "", None))?;
    if request.dry_run {
        return Ok(ChannelTestAnswer { report: prepared.dry_run(settings), ended: None });
    }
    let (report, ended) = run_tests(cluster, sources, spectator, settings, &prepared);
    let ended = ended.map(|error| failure(error, &[], "", None));
    Ok(ChannelTestAnswer { report, ended })
}

/// Reads the bundles that a simulated registry has to have. What is not in the directory of bundles, or not in its registry, is
/// missing in the simulation as well.
fn read_bundles(
    cluster: &mut Simulation,
    sources: &mut Sources,
    request: &ChannelTest,
    access: &Access,
) -> Result<(), Failure> {
    let reader = Sources::new(None, access.clone());
    let offers: Vec<Arc<Offer>> = cluster.registry().catalogs.values().cloned().collect();
    for (name, bundle) in offers.iter().flat_map(|offer| offer.packages.values()).flat_map(|one| &one.bundles)
    {
        if !bundle.manifests.is_empty() || sources.bundles.contains_key(name) {
            continue;
        }
        if request.target.bundles_from.is_some() {
            sources.missing.insert(bundle.image.clone());
            continue;
        }
        match reader.manifests(name, bundle) {
            Ok(manifests) => drop(sources.bundles.insert(name.clone(), manifests)),
            Err(ContentError::NotFound { reference }) => drop(sources.missing.insert(reference)),
            Err(ContentError::Interrupted) => {
                return Err(failure(
                    crate::lifecycle::cluster::ClusterError::Interrupted.into(),
                    &[],
                    "",
                    None,
                ));
            }
            Err(source) => {
                return Err(Failure::unknown(Unread { name: name.clone(), source })
                    .help("name a directory that has the bundles with --bundles-from"));
            }
        }
    }
    cluster.registry().bundles.clone_from(&sources.bundles);
    Ok(())
}

/// The objects in a YAML or JSON file, or in those of a directory.
fn objects(path: &Path) -> Result<Vec<Value>, Failure> {
    let is_manifest = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
    };
    let paths = if path.is_dir() {
        let failed = |source| files::FileError::Read { path: path.to_owned(), source };
        let found = files::below(path, |_| false).map_err(failed)?;
        let mut found: Vec<PathBuf> =
            found.into_iter().filter(is_manifest).map(|found| path.join(found)).collect();
        found.sort();
        found
    } else {
        vec![path.to_owned()]
    };
    let mut objects = Vec::new();
    for path in paths {
        let text = files::read_text(&path)?;
        for document in olmkit_bundle::yaml::documents(&text) {
            let document = document.map_err(|error| {
                Failure::misuse(error).help(format!("`{}` is one of the samples", path.display()))
            })?;
            let object = document.root.to_json();
            if object.is_null() {
                continue;
            }
            if object["kind"].as_str().is_none() || object["metadata"]["name"].as_str().is_none() {
                return Err(Failure::misuse(format!(
                    "`{}` has an object without kind or name",
                    path.display()
                ))
                .help("write samples as `kubectl apply` takes them"));
            }
            objects.push(object);
        }
    }
    if objects.is_empty() {
        return Err(Failure::misuse(format!("`{}` has no sample", path.display()))
            .help("put custom resources into it as YAML or JSON, or pass --no-samples"));
    }
    Ok(objects)
}
