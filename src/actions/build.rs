//! `bundle build` and `catalog build`: directories to images, without Docker.

use std::collections::BTreeMap;
use std::path::PathBuf;

use olmkit_bundle::annotations;
use olmkit_bundle::load::{BundleFiles, LoadError};
use olmkit_bundle::parse::Bundle;

use crate::exit::Failure;
use crate::image::{
    Config, FileTree, Image, Layer, LayerError, Place, Platform, Root, StoreError, TreeError,
};
use crate::report::ImageAnswer;

/// Where catalogs stand in their image, and the label that says so.
const CONFIGS_DIR: &str = "configs";
const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// The annotation under which operator-sdk's scorecard configuration travels in the image, and its directory.
const SCORECARD_ANNOTATION: &str = "operators.operatorframework.io.test.config.v1";
const SCORECARD_DIR: &str = "tests/scorecard";

/// What to build, and where to.
#[derive(Debug)]
pub struct Request {
    /// The directory of the bundle or catalog.
    pub directory: PathBuf,
    /// Where the image goes.
    pub to: Place,
}

/// An image that could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum BuildError {
    #[error("`{0}` is no bundle: it has no `{1}`")]
    NotABundle(PathBuf, &'static str),
    #[error("`{0}` is empty")]
    Empty(PathBuf),
}

/// Builds the image of a bundle: its manifests, its metadata, and its annotations as labels.
///
/// # Errors
/// When the directory is no bundle, or the image cannot be written.
pub fn bundle(request: &Request) -> Result<ImageAnswer, Failure> {
    let directory = &request.directory;
    let files = BundleFiles::load(directory).map_err(|error: LoadError| Failure::unknown(error))?;
    let parsed = Bundle::parse(&files);
    let missing = |what| {
        Failure::no(BuildError::NotABundle(directory.clone(), what))
            .help(format!("run `olmkit bundle validate {}`", directory.display()))
    };
    let Some(found) = parsed.annotations() else { return Err(missing("metadata/annotations.yaml")) };
    if parsed.manifests().next().is_none() {
        return Err(missing(annotations::MANIFESTS_DIR));
    }
    let labels: BTreeMap<_, _> = found
        .map
        .iter()
        .filter_map(|entry| Some((entry.key.to_string(), entry.value.to_text()?.into())))
        .collect();

    let mut tree = FileTree::new();
    let mut add = |name: &str| tree.add_dir(name, &directory.join(name)).map_err(tree_failure);
    add("manifests")?;
    add("metadata")?;
    if labels.contains_key(SCORECARD_ANNOTATION) && directory.join(SCORECARD_DIR).is_dir() {
        add(SCORECARD_DIR)?;
    }
    store(&tree, labels, &request.to)
}

/// Builds the data image of a catalog: its files at `/configs`, and the label that says where they are. Such an image
/// holds no server; a CatalogSource takes it with `grpcPodConfig.extractContent`, and OLM v1 as it is.
///
/// # Errors
/// When the directory is empty, or the image cannot be written.
pub fn catalog(request: &Request) -> Result<ImageAnswer, Failure> {
    let mut tree = FileTree::new();
    tree.add_dir(CONFIGS_DIR, &request.directory).map_err(tree_failure)?;
    if tree.iter().all(|(path, _)| path.as_str() == CONFIGS_DIR) {
        return Err(Failure::no(BuildError::Empty(request.directory.clone())));
    }
    let labels = BTreeMap::from([(CONFIGS_LABEL.to_owned(), format!("/{CONFIGS_DIR}"))]);
    store(&tree, labels, &request.to)
}

fn store(tree: &FileTree, labels: BTreeMap<String, String>, to: &Place) -> Result<ImageAnswer, Failure> {
    let layer = Layer::build(tree).map_err(|error: LayerError| {
        let help = error.help();
        Failure { help, ..Failure::unknown(error) }
    })?;
    let image = Image::new(&Platform::default(), &Config { labels, ..Config::default() }, &[layer]);
    let stored = to.store(&Root::from(image)).map_err(|error: StoreError| {
        let help = error.help();
        Failure { help, ..Failure::unknown(error) }
    })?;
    Ok(ImageAnswer { stored })
}

fn tree_failure(error: TreeError) -> Failure {
    let help = error.help();
    Failure { help, ..Failure::unknown(error) }
}
