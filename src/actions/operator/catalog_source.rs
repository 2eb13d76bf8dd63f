//! Where the catalog of a CatalogSource comes from: an image, an address, or a directory that is built and pushed first.

use std::path::Path;
use std::time::Duration;

use crate::actions::{build, image};
use crate::exit::Failure;
use crate::image::{Access, Image, Place};
use crate::input::{CONFIGS_LABEL, Input};
use crate::lifecycle::engine::Progress;
use crate::lifecycle::sources::{Add, Origin};

use super::sources::{PATIENCE, registry_image};

/// What is done with CatalogSources.
#[derive(Clone, Debug)]
pub enum SourceVerb {
    /// `source add`
    Add {
        /// How it should be; the origin is that of `catalog`.
        wanted: Box<Add>,
        /// A catalog that is no image yet, and where it goes.
        catalog: Option<NewCatalog>,
    },
    /// `source list`
    List {
        /// The namespace; none for all.
        namespace: Option<String>,
    },
    /// `source remove`
    Remove {
        /// The CatalogSource.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
        /// Whether Subscriptions may still use it.
        force: bool,
    },
    /// `source refresh`
    Refresh {
        /// The CatalogSource.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
    },
}

/// A directory with a catalog.
#[derive(Clone, Debug)]
pub struct NewCatalog {
    /// The directory, or the file.
    pub input: Input,
    /// The reference to push it to.
    pub to: Option<String>,
}

impl NewCatalog {
    /// Builds the image of the catalog, and pushes it unless this is a dry run. Names it by its tag where OLM is to poll it, else by
    /// its digest: another catalog is another image then.
    ///
    /// # Errors
    /// It is not a catalog, or the registry does not take it.
    pub(super) fn push(
        &self,
        by_tag: bool,
        dry_run: bool,
        access: &Access,
        progress: &dyn Progress,
    ) -> Result<Origin, Failure> {
        let Some(to) = &self.to else {
            return Err(Failure::usage("a cluster can only pull catalogs from a registry").help(
                "name a reference with --to that you may push to and the cluster can pull from, as in \
                 `--to registry.example.com/team/catalog:v1`",
            ));
        };
        let place: Place = to.parse().map_err(|error| {
            Failure::usage(error)
                .help("give --to a reference, such as `registry.example.com/team/catalog:v1`")
        })?;
        let Place::Registry(reference) = &place else {
            return Err(Failure::usage(format!("`{to}` is not a reference in a registry"))
                .help("give --to a reference, such as `registry.example.com/team/catalog:v1`"));
        };
        let repository = format!("{}/{}", reference.registry(), reference.repository());
        let layout = tempfile::tempdir().map_err(Failure::incomplete)?;
        let built = format!("oci:{}:catalog", layout.path().join("images").display());
        let output = build::Output {
            to: built.parse().map_err(Failure::incomplete)?,
            also_tag: Vec::new(),
            push: false,
            // The node's runtime unpacks it, and not every one of them knows zstd.
            compression: build::BUNDLE_COMPRESSION,
        };
        let request = build::Request { input: self.input.clone(), output };
        let digest = build::catalog(&request, &build::ImageBase::default(), access)?.stored.digest;
        if !dry_run {
            let from = built.parse().map_err(Failure::incomplete)?;
            image::copy(
                &image::Copy { from, to: place.clone(), also_tag: Vec::new(), platform: None },
                access,
            )?;
            progress.said(Duration::ZERO, &format!("{place}: pushed"));
        }
        let image = if by_tag { place.to_string() } else { format!("{repository}@{digest}") };
        Ok(Origin::Data { image, directory: build::CONFIGS.to_owned() })
    }

    /// The same for a simulated registry, which reads catalogs from disk.
    pub(super) fn simulated(&self) -> Origin {
        Origin::Image(self.input.absolute().to_string())
    }
}

/// How OLM serves an image: by itself, or, if the image has no program, with OLM's server. An image that cannot be read from here is taken
/// to have one.
pub(super) fn served(image: &str, access: &Access) -> Origin {
    let directory = data_directory(image, access);
    let image = image.to_owned();
    match directory {
        Some(directory) => Origin::Data { image, directory },
        None => Origin::Image(image),
    }
}

/// Where the catalog is in an image of a registry that has no program to serve it; none for an image that has one, or that cannot be
/// read from here.
pub(super) fn data_directory(image: &str, access: &Access) -> Option<String> {
    let input = Input::Image(registry_image(image).ok()?);
    let (_, root) = input.image(&access.with_patience(PATIENCE)).ok()?;
    in_image(root.image(None).ok()?).map(str::to_owned)
}

fn in_image(image: &Image) -> Option<&str> {
    let runs = image.run().is_some_and(|run| !run.entrypoint.is_empty() || !run.cmd.is_empty());
    image.label(CONFIGS_LABEL).filter(|_| !runs)
}

/// Whether a text names a directory or file with a catalog, and not an image.
pub fn is_on_disk(text: &str) -> bool {
    Path::new(text).exists() || text.starts_with("./") || text.starts_with('/') || text.starts_with("../")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Config, Platform};

    #[test]
    fn a_catalog_is_taken_out_of_an_image_that_runs_nothing() {
        let labels = || [(CONFIGS_LABEL.to_owned(), "/configs".to_owned())].into();
        let image = |entrypoint: &[&str]| {
            let entrypoint = entrypoint.iter().map(|word| (*word).to_owned()).collect();
            let config = Config { entrypoint, labels: labels(), ..Config::default() };
            Image::new(&Platform::default(), &config, &[])
        };
        assert_eq!(in_image(&image(&[])), Some("/configs"));
        assert_eq!(in_image(&image(&["/bin/opm"])), None);
    }
}
