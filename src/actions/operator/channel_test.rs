//! `operator test`: which cluster, which catalog, and what the bundles hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use olmkit_bundle::names::check_subdomain;
use olmkit_catalog::fbc::Catalog;
use serde_json::Value;

use super::catalog_source::data_directory;
use super::kind::{Kind, Made, on_cluster};
use super::sources::{Sources, exists, registry_image};
use super::stock::Stocked;
use super::{Target, connect, failure, simulated};
use crate::actions::catalog_diff;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::image::Access;
use crate::lifecycle::channel_test::Report;
use crate::lifecycle::channel_test::{Samples, Settings, Spectator, Unprepared, prepare, run as run_tests};
use crate::lifecycle::cluster::{Cluster, ClusterError};
use crate::lifecycle::engine::{Account, Catalogs as _, ContentError, Progress};
use crate::lifecycle::offer::{Offer, OfferedBundle, OfferedPackage};
use crate::lifecycle::simulate::{Registry, Simulation};
use crate::sentence::Sentence;
use crate::shell::Reach;
use crate::side::Side;

/// What to test, where, and what to write.
#[derive(Debug)]
pub struct ChannelTest {
    /// What, and how.
    pub settings: Settings,
    /// Whether OLM is simulated.
    pub simulate: bool,
    /// The cluster, where it is not; and where the catalog and the bundles are read.
    pub target: Target,
    /// A cluster that is made for the test and deleted after it.
    pub kind: Option<Kind>,
    /// An older catalog, to test only what has changed.
    pub against: Option<Side>,
    /// A file or directory of custom resources, in place of those of the bundles.
    pub samples: Option<PathBuf>,
    /// Whether only the plan is told.
    pub dry_run: bool,
    /// How long all of it may take; none for [`TIMEOUT`] by our clock, however long that is on a simulated one.
    pub timeout: Option<Duration>,
}

/// How long all of it may take where nobody says.
pub const TIMEOUT: Duration = Duration::from_secs(2 * 3_600);

/// A bundle that has to be read and cannot be.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the bundle `{name}`")]
struct Unread {
    name: String,
    source: ContentError,
}

/// What `operator test` answers.
#[derive(Debug)]
pub struct Tested {
    /// The tests.
    pub report: Report,
    /// What ended the run early.
    pub ended: Option<Failure>,
    /// Why the report is not in the file where it should be.
    pub unwritten: Option<Failure>,
}

/// Tests the channels of a package. `making` hears what comes before the tests, such as how a cluster is made for them.
///
/// # Errors
/// The cluster is not free for it, or something that is needed cannot be read; nothing was changed then. What ends a run that has
/// begun is part of the answer.
pub fn run(
    mut request: ChannelTest,
    access: &Access,
    spectator: &dyn Spectator,
    making: &dyn Progress,
) -> Result<Tested, Failure> {
    let begun = Instant::now();
    request.target.catalog_from.as_ref().map_or(Ok(()), exists)?;
    if let Some(path) = &request.samples {
        request.settings.samples = Samples::Given(objects(path)?);
    }
    if let Some(side) = &request.against {
        let files = catalog_diff::load(side, access)?;
        let offer = Offer::of(&Catalog::parse(&files));
        if offer.packages.is_empty() {
            return Err(Failure::usage(format!("`{side}` is not a catalog: it has no package"))
                .help("name an older catalog with --against, or leave it out to test everything"));
        }
        request.settings.against = Some(Arc::new(offer));
    }
    let left = request.timeout.unwrap_or(TIMEOUT).saturating_sub(begun.elapsed());
    let tested = if request.simulate {
        let mut cluster = Simulation::new(Registry::default()).within(left, request.timeout);
        simulated::place(&mut cluster, &request.target, true)?;
        let mut sources = simulated::serve(&mut cluster, &request.target, access)?;
        read_bundles(&mut cluster, &mut sources, &request, access)?;
        test(&mut cluster, &sources, &request, spectator, making, &Reach::simulated(None))?
    } else {
        if let Some(image) = &request.settings.catalog_image {
            registry_image(image).map_err(Failure::usage)?;
            request.settings.catalog_dir = data_directory(image, access);
        }
        match request.kind.clone() {
            Some(kind) => on_cluster(&kind, left, access, making, |made| {
                let Made { kubeconfig, reach, stocked, left } = made;
                request.target.kubeconfig = Some((*kubeconfig).to_owned());
                request.settings.keep_failed = kind.keep;
                if let Some((image, directory)) = stocked.catalog.clone() {
                    // It is read where it was pushed to.
                    request.target.catalog_from = None;
                    request.settings.catalog_image = Some(image);
                    request.settings.catalog_dir = Some(directory);
                }
                on_real_cluster(&request, stocked, access, spectator, making, *left, Some(reach))
            })?,
            None => on_real_cluster(&request, &Stocked::default(), access, spectator, making, left, None)?,
        }
    };
    Ok(tested)
}

fn on_real_cluster(
    request: &ChannelTest,
    stocked: &Stocked,
    access: &Access,
    spectator: &dyn Spectator,
    making: &dyn Progress,
    left: Duration,
    reach: Option<&Reach>,
) -> Result<Tested, Failure> {
    let choice = request.target.choice();
    let mut cluster = connect(&choice, ", or --simulate", left)?;
    let sources = Sources::new(request.target.catalog_from.clone(), access.clone()).with(stocked);
    let own = choice.reach();
    let tested = test(&mut cluster, &sources, request, spectator, making, reach.unwrap_or(&own));
    match &request.kind {
        Some(Kind { keep, .. }) => {
            tested.map(|tested| tested.on_kind(*keep)).map_err(|failure| on_kind(failure, *keep))
        }
        None => tested,
    }
}

/// What a failure calls for on a cluster that kind made for the test.
fn advice(sentence: &str) -> Option<Sentence> {
    let is_pull = ["pulled", "pull", "no image"].iter().any(|word| sentence.contains(word));
    is_pull.then(|| {
        "for an image that is not pushed yet, pass --push-image REFERENCE=IMAGE: the nodes find it in the registry of the test".into()
    })
}

/// How the cluster can be looked at after a failure.
const KEEP: &str = "pass --keep to leave the cluster as the first failure left it";

/// A failure on a cluster that kind made for the test.
fn on_kind(mut failure: Failure, keep: bool) -> Failure {
    if failure.exit == Exit::Interrupted {
        return failure;
    }
    let advice = advice(&failure.to_string());
    failure.help = advice.into_iter().fold(failure.help, |help, advice| help.and(advice));
    if !keep {
        failure.help = failure.help.and(KEEP);
    }
    failure
}

impl Tested {
    /// The same, with what to do on a cluster that kind made for the test.
    fn on_kind(mut self, keep: bool) -> Self {
        let failures = self.report.tests.iter_mut().filter_map(|test| test.failure.as_mut());
        for (at, failure) in failures.enumerate() {
            failure.help.extend(advice(&failure.sentence));
            if at == 0 && !keep {
                failure.help.push(KEEP.into());
            }
        }
        self.ended = self.ended.map(|ended| on_kind(ended, keep));
        self
    }
}

fn test(
    cluster: &mut dyn Cluster,
    sources: &Sources,
    request: &ChannelTest,
    spectator: &dyn Spectator,
    making: &dyn Progress,
    reach: &Reach,
) -> Result<Tested, Failure> {
    let settings = &request.settings;
    let prepared = prepare(cluster, sources, making, settings).map_err(|Unprepared { error, awaited }| {
        let failure = failure(*error, &Account { awaited, ..Account::default() }).on(reach);
        // No test has failed: none was begun.
        let exit = if failure.exit == Exit::Failed { Exit::Usage } else { failure.exit };
        Failure { exit, ..failure }
    })?;
    if request.dry_run {
        return Ok(Tested { report: prepared.dry_run(settings), ended: None, unwritten: None });
    }
    let (report, ended) = run_tests(cluster, sources, spectator, settings, &prepared);
    let ended = ended.map(|error| failure(error, &Account::default()).on(reach));
    Ok(Tested { report: report.on(reach), ended, unwritten: None })
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
                return Err(failure(ClusterError::Interrupted.into(), &Account::default()));
            }
            Err(source) => {
                return Err(Failure::incomplete(Unread { name: name.clone(), source })
                    .help("name a directory that has the bundles with --bundles-from"));
            }
        }
    }
    if let Some(directory) = &request.target.bundles_from {
        let package = &request.settings.package;
        let mut own = offers.iter().filter_map(|offer| offer.packages.get(package));
        let is_there = |offer: &OfferedPackage| {
            let has = |(name, bundle): (&String, &OfferedBundle)| {
                !bundle.manifests.is_empty() || sources.bundles.contains_key(name)
            };
            offer.bundles.iter().any(has)
        };
        if own.next().is_some_and(|first| !is_there(first) && !own.any(is_there)) {
            let what = format!("`{}` has no bundle of `{package}`", directory.display());
            return Err(Failure::usage(what)
                .help("name the directory that has a subdirectory for each of its bundles"));
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
        found.into_iter().filter(is_manifest).collect()
    } else {
        vec![path.to_owned()]
    };
    let mut objects = Vec::new();
    for path in paths {
        let text = files::read_text(&path)?;
        for document in olmkit_bundle::yaml::documents(&text) {
            let document = document.map_err(|error| {
                Failure::usage(error).help(format!("`{}` is one of the samples", path.display()))
            })?;
            let object = document.root.to_json();
            if object.is_null() {
                continue;
            }
            for object in listed(object) {
                check_sample(&object).map_err(|why| {
                    Failure::usage(format!("`{}` has an object {why}", path.display()))
                        .help("each sample needs apiVersion, kind, and a name that an API server accepts")
                })?;
                objects.push(object);
            }
        }
    }
    if objects.is_empty() {
        return Err(Failure::usage(format!("`{}` has no sample", path.display()))
            .help("put custom resources into it as YAML or JSON, or pass --no-samples"));
    }
    Ok(objects)
}

/// The objects of a List, such as kubectl prints it, or the object itself.
fn listed(object: Value) -> Vec<Value> {
    match (&object["apiVersion"], &object["kind"], &object["items"]) {
        (version, kind, Value::Array(items)) if version == "v1" && kind == "List" => items.clone(),
        _ => vec![object],
    }
}

/// What keeps an object from being applied to any cluster.
fn check_sample(object: &Value) -> Result<(), String> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("/kind").is_none() || text("/apiVersion").is_none() {
        return Err("without kind or apiVersion".to_owned());
    }
    let Some(name) = text("/metadata/name") else {
        return Err(match text("/metadata/generateName") {
            Some(_) => "with metadata.generateName, which cannot be applied twice".to_owned(),
            None => "without a name".to_owned(),
        });
    };
    check_subdomain(name).map_err(|why| format!("named `{name}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_on_a_cluster_of_kind_says_how_images_get_there_and_how_to_look_at_it() {
        let help = |what: &str, keep: bool| on_kind(Failure::incomplete(what), keep).help.to_string();
        let pull = help("the image `r.example.com/a:v1` cannot be pulled", false);
        assert!(pull.contains("--push-image REFERENCE=IMAGE") && pull.contains("--keep"), "{pull}");
        let other = help("a container crashes", false);
        assert!(!other.contains("--push-image") && other.contains("--keep"), "{other}");
        assert_eq!(help("a container crashes", true), "");
        assert!(on_kind(Failure::interrupted(), false).help.is_empty());
    }
}
