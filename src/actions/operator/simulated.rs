//! A simulated cluster between two commands: a file with its objects, and a CatalogSource that names a catalog on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::bundles::bundles_below;
use super::held::Held;
use super::sources::{CATALOG_FROM, Sources, offers_something};
use super::{SourceVerb, Target, Verb, VerbContext};
use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::{Input, absolute};
use crate::lifecycle::api::{CatalogSource, Key, Object, known};
use crate::lifecycle::cluster::Cluster;
use crate::lifecycle::simulate::{Registry, SavedError, Simulation};

/// The namespace of OLM, whose catalogs every other one sees.
const OLM: &str = "olm";
/// The CatalogSource that `--catalog-from` makes.
const CATALOG: &str = "catalog";
/// Where its bundles are.
const BUNDLES: &str = "olmkit.io/bundles-from";

/// How long another command may have the file.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much time passes in a simulated cluster between two commands that do not wait.
const BETWEEN: Duration = Duration::from_secs(60);

/// A file that is no simulated cluster.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{path}` as a simulated cluster")]
struct Unusable {
    path: PathBuf,
    source: SavedError,
}

/// Does something with a simulated cluster and keeps what it has become, also when that failed.
pub(super) fn with<T>(
    path: &Path,
    target: &Target,
    access: &Access,
    verb_context: &VerbContext<'_>,
    work: impl FnOnce(&mut dyn Cluster, &Sources) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Opened { held, before, mut cluster, sources } = open(path, target, access, verb_context)?;
    if verb_context.verb.writes() && !verb_context.options.wait {
        // After `--wait=false` the next command comes later, and finds what OLM has done meanwhile.
        let later = cluster.store().now() + BETWEEN;
        cluster.run_until(later);
    }
    let done = work(&mut cluster, &sources);
    if changes(verb_context) {
        cluster.give_up_plans();
    }
    let after = cluster.save();
    if changes(verb_context) && after != before {
        held.write(path, &after)?;
    }
    done
}

/// Whether something is changed, and not only told.
fn changes(verb_context: &VerbContext<'_>) -> bool {
    verb_context.verb.writes() && !verb_context.options.dry_run
}

/// A simulated cluster that is ours until the value is gone.
struct Opened {
    held: Held,
    /// What is in the file.
    before: String,
    cluster: Simulation,
    sources: Sources,
}

fn open(
    path: &Path,
    target: &Target,
    access: &Access,
    verb_context: &VerbContext<'_>,
) -> Result<Opened, Failure> {
    let made = verb_context.made;
    let held = Held::take(path, changes(verb_context), PATIENCE)?;
    let mut before = String::new();
    let mut cluster = if path.exists() {
        let text = files::read_text(path)?;
        before.clone_from(&text);
        Simulation::load(&text, Registry::default()).map_err(|error| {
            let help = match &error {
                SavedError::Json(_) => "it is damaged or something else: restore it, or name another file",
                _ => "name another file, or create it again with this version",
            };
            Failure::incomplete(Unusable { path: path.to_owned(), source: error }).help(help)
        })?
    } else if target.catalog_from.is_none() && made.is_none() && !verb_context.verb.is_first() {
        return Err(Failure::usage(format!("`{}` does not exist", path.display())).help(
            "check the file's name; `operator install … --catalog-from CATALOG` makes a new simulated cluster",
        ));
    } else {
        Simulation::new(Registry::default())
    };
    if let Some(made) = made {
        cluster.registry().pushed.insert(made.catalog.clone(), made.pushed());
    }
    if verb_context.verb.is_first() {
        has_namespace(&mut cluster, OLM)?;
    }
    let sources = match verb_context.verb {
        Verb::Source(verb) => of_source(&mut cluster, verb, target, access)?,
        verb => {
            // A catalog that was removed does not come back when somebody only looks.
            place(&mut cluster, target, verb.writes() || before.is_empty())?;
            if matches!(verb, Verb::Install { .. }) {
                has_catalog(&mut cluster)?;
            }
            serve(&mut cluster, target, access)?
        }
    };
    Ok(Opened { held, before, cluster, sources })
}

/// The catalogs of a cluster, and the one that is about to be added.
fn of_source(
    cluster: &mut Simulation,
    verb: &SourceVerb,
    target: &Target,
    access: &Access,
) -> Result<Sources, Failure> {
    place(cluster, target, false)?;
    let sources = serve(cluster, target, access)?;
    if let SourceVerb::Add { catalog: Some(new), .. } = verb {
        let input = new.input.absolute();
        let name = input.to_string();
        let offer = sources.offer_from(&name, &input)?;
        offers_something(
            &new.input,
            &offer,
            "name a directory or a file with a catalog, or an image of one",
        )?;
        cluster.registry().catalogs.insert(name, offer);
    }
    Ok(sources)
}

fn has_namespace(cluster: &mut Simulation, name: &str) -> Result<(), Failure> {
    if cluster.store().get(&Key::new(&known::NAMESPACE, "", name)).is_none() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.store().create(namespace).map_err(Failure::incomplete)?;
    }
    Ok(())
}

/// Puts the catalog that is named into the cluster, with its bundles; where it is not there, only if it may be created.
pub(super) fn place(cluster: &mut Simulation, target: &Target, creates: bool) -> Result<(), Failure> {
    let key = Key::new(&known::CATALOG_SOURCE, OLM, CATALOG);
    let is_there = cluster.store().get(&key).is_some();
    if !is_there && !creates {
        return Ok(());
    }
    if let Some(input) = &target.catalog_from {
        // The state is used from other directories too.
        let input = &input.absolute();
        if !is_there {
            has_namespace(cluster, OLM)?;
            let object = json!({
                "apiVersion": known::CATALOG_SOURCE.api_version(), "kind": known::CATALOG_SOURCE.kind,
                "metadata": {"name": CATALOG, "namespace": OLM},
                "spec": {"sourceType": "grpc", "image": input.to_string(), "displayName": "A catalog"},
            });
            cluster.store().create(object).map_err(Failure::incomplete)?;
        }
        let patch = json!({"spec": {"image": input.to_string()}});
        cluster.store().patch(&key, &patch).map_err(Failure::incomplete)?;
    }
    if let Some(bundles) = &target.bundles_from {
        let patch = json!({"metadata": {"annotations": {BUNDLES: absolute(bundles).display().to_string()}}});
        cluster.store().patch(&key, &patch).map_err(|error| {
            Failure::usage(error).help("name the catalog that the bundles belong to with --catalog-from")
        })?;
    }
    Ok(())
}

/// Whether there is anything to install from.
fn has_catalog(cluster: &mut Simulation) -> Result<(), Failure> {
    let has_source = cluster.store().list(&known::CATALOG_SOURCE, None).next().is_some();
    if has_source || !cluster.registry().pushed.is_empty() {
        return Ok(());
    }
    Err(Failure::usage("the simulated cluster has no catalog")
        .help("name one with --catalog-from: a directory, or an image"))
}

/// Puts what every CatalogSource names into the registry.
pub(super) fn serve(cluster: &mut Simulation, target: &Target, access: &Access) -> Result<Sources, Failure> {
    let mut sources = Sources { simulated: true, ..Sources::new(None, access.clone()) };
    let catalogs: Vec<Value> = cluster.store().list(&known::CATALOG_SOURCE, None).cloned().collect();
    let pushed = cluster.registry().pushed.clone();
    for (image, found) in &pushed {
        let offer = sources.keep(image, &found.catalog);
        cluster.registry().catalogs.insert(image.clone(), offer);
        sources.bundles.extend(found.bundles.clone());
    }
    for catalog in catalogs {
        let Ok(catalog) = Object::<CatalogSource>::read(catalog) else { continue };
        // One at an address has no server here, and OLM does not reach it.
        if catalog.spec.image.is_empty() || pushed.contains_key(&catalog.spec.image) {
            continue;
        }
        let input: Input = catalog.spec.image.parse().map_err(Failure::incomplete)?;
        let offer = sources.offer_from(&catalog.spec.image, &input).map_err(|failure| {
            if target.catalog_from.is_some() {
                return failure;
            }
            failure.help(format!(
                "it is the catalog of the simulated cluster: name it again with `--catalog-from CATALOG`, if it is \
                 elsewhere than `{input}` now"
            ))
        })?;
        if target.catalog_from.as_ref().is_some_and(|named| named.absolute() == input) {
            offers_something(&input, &offer, CATALOG_FROM)?;
        }
        cluster.registry().catalogs.insert(catalog.spec.image.clone(), Arc::clone(&offer));
        if let Some(directory) = catalog.metadata.annotations.as_ref().and_then(|all| all.get(BUNDLES)) {
            let found = bundles_below(Path::new(directory), access)?;
            sources.bundles.extend(found.into_iter().map(|(name, (_, manifests))| (name, manifests)));
        }
    }
    cluster.registry().bundles.clone_from(&sources.bundles);
    cluster.registry().is_complete = true;
    Ok(sources)
}
