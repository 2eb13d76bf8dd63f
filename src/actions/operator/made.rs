//! A catalog of a single bundle, for `operator install --bundle`: made here, and pushed to where a cluster can pull it from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use olmkit_bundle::annotations::{CHANNELS, DEFAULT_CHANNEL};
use olmkit_bundle::parse::Bundle;
use olmkit_catalog::fbc::write::{self, Format};
use olmkit_catalog::fbc::{self, Catalog};
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::render::{self, Form};
use serde_json::Value;
use tempfile::TempDir;

use crate::actions::{build, image};
use crate::exit::Failure;
use crate::image::{Access, Place};
use crate::input::Input;
use crate::lifecycle::engine::Progress;
use crate::lifecycle::install::Install;
use crate::lifecycle::offer::Offer;
use crate::lifecycle::simulate::Pushed;
use crate::lifecycle::throw_away::SingleBundleOffer;

/// A bundle that no catalog has yet.
#[derive(Clone, Debug)]
pub struct NewBundle {
    /// The bundle.
    pub input: Input,
    /// The repository that its catalog goes to, and the bundle too when it is in no registry.
    pub push_to: Option<String>,
}

/// The catalog of a bundle.
#[derive(Debug)]
pub(super) struct SingleBundleCatalog {
    /// Its image, by digest.
    pub(super) catalog: String,
    /// Its text.
    pub(super) text: String,
    package: String,
    manifests: (String, Vec<Value>),
    /// The images in the layout that they were built into, and where they go.
    pushes: Vec<(Input, Place)>,
    _layout: TempDir,
}

impl SingleBundleCatalog {
    /// Builds what is to be pushed, and pushes nothing yet.
    ///
    /// # Errors
    /// The bundle cannot be read, or no repository to push to was given.
    pub(super) fn of(bundle: &NewBundle, simulated: bool, access: &Access) -> Result<Self, Failure> {
        let files = bundle.input.bundle(access)?;
        let parsed = Bundle::parse(&files);
        let package = parsed.annotations().map(|found| found.package()).unwrap_or_default();
        let version = parsed.csv().map(|csv| csv.typed.spec.version.clone()).unwrap_or_default();
        let repository = match &bundle.push_to {
            Some(repository) => repository.clone(),
            None if simulated => format!("simulated.invalid/{package}"),
            None => {
                return Err(Failure::usage("a cluster can only pull catalogs from a registry").help(
                    "name a repository with --push-to that you may push to and the cluster can pull from, as in \
                     `--push-to registry.example.com/me/try`",
                ));
            }
        };
        let layout = tempfile::tempdir().map_err(Failure::incomplete)?;
        let mut workshop = Workshop { repository, layout: &layout, version, access, pushes: Vec::new() };
        let image = workshop.bundle_image(&bundle.input)?;
        let text = catalog_text(&parsed, image)?;
        let catalog = workshop.catalog_image(&text)?;
        let pushes = workshop.pushes;
        let name = parsed.csv().map(|csv| csv.typed.name().to_owned()).unwrap_or_default();
        let manifests = (name, parsed.objects().map(|object| object.root.to_json()).collect());
        Ok(Self { catalog, text, package, manifests, pushes, _layout: layout })
    }

    /// What is to be installed, from this catalog.
    pub(super) fn install(&self, request: &Install) -> Install {
        let files = CatalogFiles::from_text(&*self.catalog, &*self.text);
        let offer = Arc::new(Offer::of(&Catalog::parse(&files)));
        Install {
            throw_away: Some(SingleBundleOffer { image: self.catalog.clone(), offer }),
            package: self.package.clone(),
            ..request.clone()
        }
    }

    /// Pushes what is not in a registry yet.
    ///
    /// # Errors
    /// The registry does not take it.
    pub(super) fn push(&self, access: &Access, progress: &dyn Progress) -> Result<(), Failure> {
        for (from, to) in &self.pushes {
            let copy =
                image::Copy { from: from.clone(), to: to.clone(), also_tag: Vec::new(), platform: None };
            image::copy(&copy, access)?;
            progress.said(Duration::ZERO, &format!("{to}: pushed"));
        }
        Ok(())
    }

    /// What a simulated registry has of it.
    pub(super) fn pushed(&self) -> Pushed {
        let (name, manifests) = &self.manifests;
        Pushed { catalog: self.text.clone(), bundles: BTreeMap::from([(name.clone(), manifests.clone())]) }
    }
}

/// Where images are made before they are pushed, so that their digests are known.
struct Workshop<'w> {
    repository: String,
    layout: &'w TempDir,
    version: String,
    access: &'w Access,
    pushes: Vec<(Input, Place)>,
}

impl Workshop<'_> {
    /// The bundle's image by digest: that in a registry, or one that is made now.
    fn bundle_image(&mut self, input: &Input) -> Result<String, Failure> {
        match input {
            Input::Image(Place::Registry(reference)) => {
                let (_, root) = input.image(self.access)?;
                Ok(format!("{}/{}@{}", reference.registry(), reference.repository(), root.digest()))
            }
            Input::Image(_) => {
                let (_, root) = input.image(self.access)?;
                self.goes(input.clone(), "bundle", &root.digest().to_string())
            }
            Input::Disk(_) => {
                let (place, built) = self.place("bundle")?;
                let output = output(place, build::BUNDLE_COMPRESSION);
                let request = build::Request { input: input.clone(), output };
                let digest = build::bundle(&request, self.access)?.stored.digest;
                self.goes(built, "bundle", &digest.to_string())
            }
        }
    }

    /// The image of the catalog, by digest.
    fn catalog_image(&mut self, text: &str) -> Result<String, Failure> {
        let file = self.layout.path().join("catalog.yaml");
        crate::files::write(&file, text.as_bytes())?;
        let (place, built) = self.place("catalog")?;
        // The node's runtime unpacks it, and not every one of them knows zstd.
        let output = output(place, build::BUNDLE_COMPRESSION);
        let request = build::Request { input: Input::Disk(file), output };
        let digest = build::catalog(&request, &build::ImageBase::default(), self.access)?.stored.digest;
        self.goes(built, "catalog", &digest.to_string())
    }

    /// Where an image is built.
    fn place(&self, tag: &str) -> Result<(Place, Input), Failure> {
        let text = format!("oci:{}:{tag}", self.layout.path().join("images").display());
        Ok((text.parse().map_err(Failure::incomplete)?, text.parse().map_err(Failure::incomplete)?))
    }

    /// Notes where an image goes, and names it by its digest.
    fn goes(&mut self, from: Input, what: &str, digest: &str) -> Result<String, Failure> {
        let tag: String = format!("{what}-v{}", self.version.replace('+', "-")).chars().take(128).collect();
        let to: Place = format!("{}:{tag}", self.repository).parse().map_err(|error| {
            Failure::usage(error).help("give --push-to a repository, such as `registry.example.com/me/try`")
        })?;
        self.pushes.push((from, to));
        Ok(format!("{}@{digest}", self.repository))
    }
}

fn output(to: Place, compression: crate::image::Compression) -> build::Output {
    build::Output { to, also_tag: Vec::new(), push: false, compression }
}

/// A catalog of a bundle: its package, its channels, and in each the edges that its ClusterServiceVersion names.
fn catalog_text(bundle: &Bundle<'_>, image: String) -> Result<String, Failure> {
    let rendered = render::bundle(bundle, &render::Options::new(image, Form::Metadata)).map_err(|error| {
        let place = error.place().cloned();
        Failure::failed(error).at(place).help(format!("run `olmkit bundle validate {}`", bundle.name))
    })?;
    let channels = bundle.annotations().map(|found| found.channels()).unwrap_or_default();
    let default = bundle.annotations().and_then(|found| found.get(DEFAULT_CHANNEL));
    let default = default.filter(|name| channels.iter().any(|channel| channel == name));
    let Some(default) = default.or_else(|| channels.first().map(|name| (*name).to_string())) else {
        return Err(Failure::failed(format!("`{}` names no channel", bundle.name))
            .help(format!("metadata/annotations.yaml names them as `{CHANNELS}`")));
    };
    let package = rendered.blob.package.clone();
    let entry = || fbc::Entry {
        name: rendered.blob.name.clone(),
        replaces: rendered.csv.replaces.clone().into(),
        skips: rendered.csv.skips.iter().map(|name| name.clone().into()).collect(),
        skip_range: rendered.csv.skip_range.clone().into(),
        ..fbc::Entry::default()
    };
    let channel = |name: String| fbc::Channel {
        name: name.into(),
        package: package.clone(),
        entries: vec![entry()],
        ..fbc::Channel::default()
    };
    let catalog = Catalog {
        packages: vec![fbc::Package {
            name: package.clone(),
            default_channel: default.into(),
            ..fbc::Package::default()
        }],
        channels: channels.iter().map(|name| channel((*name).to_string())).collect(),
        bundles: vec![rendered.blob.clone()],
        ..Catalog::default()
    };
    write::to_text(&catalog, Format::Yaml).map_err(Failure::failed)
}
