//! What catalogs and bundles hold: read where the cluster reads it, or where the command line says.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use olmkit_bundle::parse::Bundle;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::Value;

use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Input;
use crate::lifecycle::api::{CatalogSource, Object};
use crate::lifecycle::engine::Catalogs;
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
}

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
        Self { instead, access, bundles: BTreeMap::new(), read: Mutex::default() }
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
}

/// The manifests of a bundle.
pub(super) fn manifests(input: &Input, access: &Access) -> Result<Vec<Value>, Failure> {
    let files = input.bundle(access)?;
    Ok(Bundle::parse(&files).objects().map(|object| object.root.to_json()).collect())
}

/// Where a rollback reads old bundles, and keeps custom resources.
pub(super) struct Backup<'b> {
    pub(super) sources: &'b Sources,
    pub(super) access: &'b Access,
    pub(super) directory: &'b Path,
    pub(super) dry_run: bool,
}

impl Archive for Backup<'_> {
    fn manifests(
        &self,
        name: &str,
        bundle: &OfferedBundle,
    ) -> Result<Vec<Value>, Box<dyn Error + Send + Sync>> {
        if !bundle.manifests.is_empty() {
            return Ok(bundle.manifests.clone());
        }
        if let Some(found) = self.sources.bundles.get(name) {
            return Ok(found.clone());
        }
        let input: Input = bundle.image.parse()?;
        Ok(manifests(&input, self.access).map_err(Because)?)
    }

    fn keep(&self, name: &str, objects: &[Value]) -> Result<String, Box<dyn Error + Send + Sync>> {
        let mut text = String::new();
        for object in objects {
            text += "---\n";
            text += &olmkit_bundle::yaml::write::to_string(object)?;
        }
        let path = self.directory.join(format!("{name}.yaml"));
        if !self.dry_run {
            std::fs::create_dir_all(self.directory)?;
            files::write(&path, text.as_bytes())?;
        }
        Ok(path.display().to_string())
    }
}
