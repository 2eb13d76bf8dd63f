//! What catalogs and bundles hold: read where the cluster reads it, or where the command line says.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use olmkit_bundle::parse::Bundle;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::image::{Access, LoadError, Patience, Place, PlaceError, RegistryError, present};
use crate::input::Input;
use crate::lifecycle::api::{CatalogSource, Object};
use crate::lifecycle::engine::{Catalogs, ContentError};
use crate::lifecycle::offer::{Offer, OfferedBundle};
use crate::lifecycle::rollback::Archive;

/// Offers by the image or address that a CatalogSource names. What was read once is not read again.
pub(super) struct Sources {
    /// Read instead of what CatalogSources name.
    pub(super) instead: Option<Input>,
    /// How registries are reached.
    pub(super) access: Access,
    /// Bundles by name, where they are at hand.
    pub(super) bundles: BTreeMap<String, Vec<Value>>,
    pub(super) read: Mutex<BTreeMap<String, Arc<Offer>>>,
    /// Whether the registries are simulated, and nothing is asked of real ones.
    pub(super) simulated: bool,
    /// The same access with less patience, for questions about images.
    pub(super) quick: OnceLock<Access>,
    /// Images that were looked for.
    pub(super) asked: Mutex<BTreeSet<String>>,
    /// Registries that did not answer, with the reason: they are asked once.
    pub(super) silent: Mutex<BTreeMap<String, String>>,
}

/// How long a registry is asked about images at most: what it does not say keeps nobody from installing.
const PATIENCE: Patience = Patience {
    attempts: 1,
    first_pause: Duration::ZERO,
    longest_pause: Duration::ZERO,
    silence: Duration::from_secs(10),
    connect: Duration::from_secs(5),
};

/// A simulated registry without a bundle.
#[derive(Debug, thiserror::Error)]
#[error("the simulated registry does not have it: name the directory of the bundles with --bundles-from")]
struct NoBundle;

/// A CatalogSource that is served from an address: nobody but OLM can read it.
#[derive(Debug, thiserror::Error)]
#[error("it is served from `{0}`, not from an image")]
struct NoImage(String);

/// A failure as the cause of another one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Because(pub(super) Failure);

impl Sources {
    pub(super) fn new(instead: Option<Input>, access: Access) -> Self {
        Self {
            instead,
            access,
            bundles: BTreeMap::new(),
            read: Mutex::default(),
            simulated: false,
            quick: OnceLock::new(),
            asked: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// Asks a registry whether it has an image.
    fn present(&self, image: &str) -> Result<(), ContentError> {
        let unreadable = |source: Box<dyn Error + Send + Sync>| ContentError::Unreadable {
            reference: image.to_owned(),
            source,
        };
        let name = image.trim_start_matches("docker://");
        let place: Place =
            format!("docker://{name}").parse().map_err(|error: PlaceError| unreadable(error.into()))?;
        let Place::Registry(reference) = &place else { return Ok(()) };
        let host = reference.registry().to_owned();
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = silent.get(&host) {
            return Err(unreadable(reason.as_str().into()));
        }
        let access = self.quick.get_or_init(|| self.access.with_patience(PATIENCE));
        let answer = present(&[place], access);
        let error = match answer.map(|mut answers| answers.pop()) {
            Ok(Some(Ok(())) | None) => return Ok(()),
            Ok(Some(Err(LoadError::Registry { source, .. }))) => *source,
            Ok(Some(Err(error))) => return Err(unreadable(error.into())),
            Err(error) => error,
        };
        match error {
            RegistryError::NotFound { .. } => Err(ContentError::NotFound { reference: image.to_owned() }),
            RegistryError::Interrupted => Err(ContentError::Interrupted),
            error => {
                if let RegistryError::Unreachable { .. } | RegistryError::Silent { .. } = &error {
                    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                    silent.insert(host, format!("{error}{cause}"));
                }
                Err(unreadable(error.into()))
            }
        }
    }

    pub(super) fn offer_from(&self, name: &str, input: &Input) -> Result<Arc<Offer>, Failure> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offer) = read.get(name) {
            return Ok(Arc::clone(offer));
        }
        let files = input.catalog(&self.access)?;
        let offer = Arc::new(Offer::of(&Catalog::parse(&files)));
        read.insert(name.to_owned(), Arc::clone(&offer));
        Ok(offer)
    }

    /// Takes a catalog at hand for that of an image.
    pub(super) fn keep(&self, image: &str, catalog: &str) -> Arc<Offer> {
        let files = CatalogFiles::from_text(image, catalog);
        let offer = Arc::new(Offer::of(&Catalog::parse(&files)));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(image.to_owned(), Arc::clone(&offer));
        offer
    }
}

impl Catalogs for Sources {
    fn offer(&self, source: &Object<CatalogSource>) -> Result<Arc<Offer>, Box<dyn Error + Send + Sync>> {
        if let Some(input) = &self.instead {
            return Ok(self.offer_from(&input.to_string(), input).map_err(Because)?);
        }
        if source.spec.image.is_empty() {
            return Err(Box::new(NoImage(source.source().to_owned())));
        }
        let input: Input = source.spec.image.parse()?;
        Ok(self.offer_from(&source.spec.image, &input).map_err(Because)?)
    }

    fn manifests(&self, name: &str, bundle: &OfferedBundle) -> Result<Vec<Value>, ContentError> {
        if !bundle.manifests.is_empty() {
            return Ok(bundle.manifests.clone());
        }
        if let Some(found) = self.bundles.get(name) {
            return Ok(found.clone());
        }
        if self.simulated {
            return Err(ContentError::Unreadable { reference: name.to_owned(), source: Box::new(NoBundle) });
        }
        self.present(&bundle.image)?;
        let unreadable = |source: Box<dyn Error + Send + Sync>| ContentError::Unreadable {
            reference: bundle.image.clone(),
            source,
        };
        let input: Input = bundle.image.parse().map_err(|error: PlaceError| unreadable(error.into()))?;
        manifests(&input, &self.access).map_err(|failure| match failure.exit {
            Exit::Interrupted => ContentError::Interrupted,
            _ => unreadable(failure.error),
        })
    }

    fn image(&self, reference: &str) -> Result<(), ContentError> {
        let is_new = self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(reference.to_owned());
        if self.simulated || !is_new { Ok(()) } else { self.present(reference) }
    }
}

/// The manifests of a bundle.
pub(super) fn manifests(input: &Input, access: &Access) -> Result<Vec<Value>, Failure> {
    let files = input.bundle(access)?;
    Ok(Bundle::parse(&files).objects().map(|object| object.root.to_json()).collect())
}

/// Where a rollback keeps custom resources.
pub(super) struct Backup<'b> {
    pub(super) directory: &'b Path,
    pub(super) dry_run: bool,
}

impl Archive for Backup<'_> {
    fn keep(&self, name: &str, objects: &[Value]) -> Result<String, Box<dyn Error + Send + Sync>> {
        let mut text = String::new();
        for object in objects {
            text += "---\n";
            text += &olmkit_bundle::yaml::write::to_string(object)?;
        }
        // An earlier copy may be the only one of something.
        let numbered = (2..1_000).map(|number| format!("{name}-{number}.yaml"));
        let mut paths =
            std::iter::once(format!("{name}.yaml")).chain(numbered).map(|name| self.directory.join(name));
        let is_free = |path: &PathBuf| match std::fs::read(path) {
            Ok(found) => found == text.as_bytes(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        let path = paths.find(is_free).ok_or("too many backups in the directory")?;
        if !self.dry_run {
            std::fs::create_dir_all(self.directory)?;
            files::write(&path, text.as_bytes())?;
        }
        Ok(path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_second_backup_leaves_the_first_alone() {
        let directory = tempfile::tempdir().unwrap();
        let backup = Backup { directory: directory.path(), dry_run: false };
        let keep = |size: u64| {
            let place = backup.keep("ns-demo", &[json!({"kind": "Demo", "size": size})]).unwrap();
            Path::new(&place).file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(
            [keep(1), keep(2), keep(2), keep(1), keep(3)],
            ["ns-demo.yaml", "ns-demo-2.yaml", "ns-demo-2.yaml", "ns-demo.yaml", "ns-demo-3.yaml"]
        );
        let first = std::fs::read_to_string(directory.path().join("ns-demo.yaml")).unwrap();
        assert!(first.contains("size: 1"), "{first}");
    }
}
