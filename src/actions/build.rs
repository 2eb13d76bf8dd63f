//! `bundle build` and `catalog build`: directories to images, without Docker.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use olmkit_bundle::annotations::{self, MANIFESTS_DIR, METADATA_DIR};
use olmkit_bundle::finding::Level;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::suggest::did_you_mean;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use olmkit_catalog::validate;
use olmkit_serve::compiled;

use super::readable::check_readable;
use super::server::{NO_SERVER, Server};
use super::{build_index, layout, left_out, shipped, split};
use crate::actions::results::StoredImage;
use crate::exit::Failure;
use crate::files;
use crate::image::{Access, Compression, Config, FileTree, Image, Index, Layer, Node, Place, Platform, Root};
use crate::input::{CONFIGS_LABEL, Input, SCORECARD_DIR, SCORECARD_LABEL};
use crate::shell::argument;

/// Where catalogs stand in their image.
const CONFIGS_DIR: &str = "configs";
/// The same as a path of the image.
pub const CONFIGS: &str = "/configs";
/// The port that a catalog's server listens on, and what it is told: <https://github.com/operator-framework/operator-registry>,
/// `opm generate dockerfile`.
const SERVE_PORT: u16 = 50051;
const SERVE_ARGUMENTS: [&str; 3] = ["serve", CONFIGS, "--cache-dir=/tmp/cache"];

/// The program of a base that understands these.
const BASE_SERVER: &str = "opm";

/// Where the server and the compiled catalog are in an image that carries them, and its user: an arbitrary one, in the group that
/// OpenShift gives to the users that it chooses.
const SERVER_PATH: &str = "bin/olmkit-serve";
const PROBE_PATH: &str = "bin/grpc_health_probe";
const INDEX_PATH: &str = "cache/catalog.olmkit";
const SERVER_USER: &str = "1001:0";

/// What a reference without a host stands for.
const DOCKER_HUB: &str = "docker.io";

/// How bundles are packed: they are so small that nothing counts but who can read them.
pub const BUNDLE_COMPRESSION: Compression = Compression::Gzip;
/// How catalogs are packed: they are large, repeat themselves over long distances, and clusters fetch them often.
pub const CATALOG_COMPRESSION: Compression = Compression::Zstd;

/// What to build, and where to.
#[derive(Debug)]
pub struct Request {
    /// The bundle or the catalog.
    pub input: Input,
    /// How, and where to.
    pub output: Output,
}

/// How an image is packed and where it goes.
#[derive(Debug)]
pub struct Output {
    /// Where the image goes.
    pub to: Place,
    /// Other tags that it gets there.
    pub also_tag: Vec<String>,
    /// Whether it also goes to the registry that its name in `to` speaks of.
    pub push: bool,
    /// How its layers are packed.
    pub compression: Compression,
}

/// What a catalog's image is built on.
#[derive(Debug, Default)]
pub struct ImageBase {
    /// The image below; nothing when none is given.
    pub base: Option<Input>,
    /// The server that the image carries; only without a base.
    pub server: Server,
    /// The platforms; those of the base or the servers when none are given, and one when there are neither.
    pub platforms: Vec<Platform>,
    /// Labels besides those that catalogs have.
    pub labels: BTreeMap<String, String>,
    /// The command that a container runs, instead of the base's.
    pub entrypoint: Vec<String>,
    /// Arguments of the command; those that serve the catalog when there is a base and none are given.
    pub cmd: Vec<String>,
}

/// An image that could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum BuildError {
    #[error("`{0}` is not a bundle: it has no `{1}`")]
    NotABundle(String, &'static str),
    #[error("`{0}` has a directory in its manifests: `{1}`")]
    Nested(String, String),
    #[error("`{0}` is not a catalog: it has no packages, channels or bundles")]
    NotACatalog(String),
    #[error("`{to}` is inside of `{input}`, and would become part of the next image")]
    Inside { to: Place, input: String },
    #[error("unknown platform `{0}`")]
    UnknownPlatform(Platform),
    #[error("the platform `{0}` is given twice")]
    PlatformTwice(Platform),
    #[error("the base `{0}` cannot serve a catalog: {1}, and it should be opm")]
    BaseCannotServe(Place, String),
    #[error("the base `{0}` is a catalog image itself: its packages would be served too")]
    BaseIsACatalog(Place),
    #[error("the label `{CONFIGS_LABEL}` is set by olmkit, to `/{CONFIGS_DIR}`")]
    OwnLabel,
    #[error("`{0}` has no registry reference")]
    NoReference(Place),
    #[error("no registry reference given for `{0}`")]
    Nameless(String),
}

/// Builds the image of a bundle: its manifests, its metadata, and its annotations as labels.
///
/// # Errors
/// When the input is no bundle, or the image cannot be written.
pub fn bundle(request: &Request, access: &Access) -> Result<StoredImage, Failure> {
    let input = &request.input;
    check_outside(input, &[MANIFESTS_DIR, METADATA_DIR, SCORECARD_DIR], &request.output.to)?;
    let (files, left_out) = input.bundle(access)?.without_leftovers();
    let parsed = Bundle::parse(&files);
    let refuse = |error: BuildError| {
        Failure::failed(error).help(format!("run `olmkit bundle validate {}`", argument(input)))
    };
    let missing = |what| refuse(BuildError::NotABundle(input.to_string(), what));
    let Some(found) = parsed.annotations() else { return Err(missing("metadata/annotations.yaml")) };
    if parsed.manifests().next().is_none() {
        return Err(missing(annotations::MANIFESTS_DIR));
    }
    let wrong = shipped::check_bundle(&parsed, input)?;
    let labels: BTreeMap<_, _> = found
        .map
        .iter()
        .filter_map(|entry| Some((entry.key.to_string(), entry.value.to_text()?.into())))
        .collect();

    let mut tree = left_out.iter().fold(input.bundle_tree(access)?, |tree, path| tree.without(path));
    if !labels.contains_key(SCORECARD_LABEL) {
        tree = tree.without(SCORECARD_DIR);
    }
    // What takes bundles apart on a cluster reads every entry of the directory as a file, and stops at this one.
    let is_nested =
        |path: &str| path.strip_prefix(annotations::MANIFESTS_DIR).is_some_and(|rest| !rest.is_empty());
    let nested = tree.iter().find(|(path, node)| matches!(node, Node::Dir) && is_nested(path.as_str()));
    if let Some((path, _)) = nested {
        return Err(refuse(BuildError::Nested(input.to_string(), path.to_string())));
    }
    let layer = Layer::build_with(&tree, request.output.compression)?;
    let config = Config { labels, ..Config::default() };
    let image = Image::new(&Platform::default(), &config, &[layer]);
    let stored = store(&Root::from(image), &request.output, access)?;
    let note = shipped::joined([left_out::note(&left_out, "the image"), wrong]);
    Ok(StoredImage { note, ..stored })
}

/// Builds the image of a catalog: its files at `/configs`, and the label that says where they are.
///
/// With a server, it holds that and the compiled catalog too, and runs as the pod of a CatalogSource. Without one and without a base,
/// a CatalogSource takes it with `grpcPodConfig.extractContent`, and OLM v1 as it is. A base such as opm's serves it its own way.
///
/// # Errors
/// When there is nothing in the input, the base cannot be had, or the image cannot be written.
pub fn catalog(request: &Request, image_base: &ImageBase, access: &Access) -> Result<StoredImage, Failure> {
    let Request { input, output } = request;
    let mut seen = BTreeSet::new();
    if let Some(twice) = image_base.platforms.iter().find(|platform| !seen.insert(platform.to_string())) {
        return Err(Failure::usage(BuildError::PlatformTwice(twice.clone())).help("name each platform once"));
    }
    for platform in &image_base.platforms {
        check_platform(platform)?;
    }
    check_outside(input, &[""], &output.to)?;
    let wrong = check_catalog(input, access)?;
    let mut tree = input.catalog_tree(access)?;
    if layout::is_mixed(&tree)
        && let Some(parted) = layout::by_package(&input.catalog(access)?)?
    {
        tree = parted;
    }
    // Looked at before the work begins.
    let servers = match (&image_base.server, &image_base.base) {
        (Server::None, _) | (_, Some(_)) => BTreeMap::new(),
        (server, None) => server.programs(&image_base.platforms)?,
    };
    let index = if servers.is_empty() { None } else { Some(index_layer(&tree, input, output.compression)?) };
    let tree = tree.moved("", CONFIGS_DIR)?;
    let send_ahead = |layer: &Layer| output.to.send_ahead(layer, access);
    let mut layers =
        Layer::build_all(&split::by_package(&tree, CONFIGS_DIR)?, output.compression, send_ahead)?;
    let mut labels = image_base.labels.clone();
    if labels.contains_key(CONFIGS_LABEL) {
        return Err(Failure::usage(BuildError::OwnLabel).help("leave it out"));
    }
    labels.insert(CONFIGS_LABEL.to_owned(), format!("/{CONFIGS_DIR}"));
    let mut config = Config {
        labels,
        entrypoint: image_base.entrypoint.clone(),
        cmd: image_base.cmd.clone(),
        ..Config::default()
    };

    if let Some(index) = index {
        layers.push(index);
        config.user = Some(SERVER_USER.to_owned());
        config.ports.insert(SERVE_PORT);
        if config.entrypoint.is_empty() {
            config.entrypoint = vec![format!("/{SERVER_PATH}")];
        }
        if config.cmd.is_empty() {
            config.cmd = vec![format!("/{CONFIGS_DIR}"), "--index".into(), format!("/{INDEX_PATH}")];
        }
        let images = servers.into_iter().map(|(platform, program)| {
            let mut tree = FileTree::new();
            tree.add_executable(SERVER_PATH, program)?;
            // OLM's startup probe runs it in the container; the server is one under that name.
            tree.add_link(PROBE_PATH, "olmkit-serve")?;
            let mut all = layers.clone();
            // Last, so that what lies below is the same for every platform and every release.
            all.push(Layer::build_with(&tree, output.compression)?);
            Ok(Image::new(&platform, &config, &all))
        });
        return store(&root_of(images.collect::<Result<_, Failure>>()?)?, output, access);
    }
    let Some(base) = &image_base.base else {
        let one = [Platform::default()];
        let platforms = if image_base.platforms.is_empty() { &one } else { image_base.platforms.as_slice() };
        let images = platforms.iter().map(|platform| Image::new(platform, &config, &layers)).collect();
        let mut answer = store(&root_of(images)?, output, access)?;
        answer.note = wrong.or_else(|| (image_base.server == Server::Beside).then(|| NO_SERVER.to_owned()));
        return Ok(answer);
    };
    let (place, base) = base.image(access)?;
    config.ports.insert(SERVE_PORT);
    let platforms = match image_base.platforms.as_slice() {
        [] => base.platforms(),
        chosen => chosen.to_vec(),
    };
    for platform in &platforms {
        check_base(&place, base.image(Some(platform))?, &config)?;
    }
    if config.cmd.is_empty() && config.entrypoint.is_empty() {
        config.cmd = SERVE_ARGUMENTS.map(str::to_owned).into();
    }
    let over = |platform: &Platform| Image::on(base.image(Some(platform))?, &config, &layers);
    let image = root_of(platforms.iter().map(over).collect::<Result<_, _>>()?)?;
    Ok(StoredImage { note: wrong, ..store(&image, output, access)? })
}

/// Processors that Kubernetes runs on, as images name them.
const ARCHITECTURES: [&str; 8] = ["386", "amd64", "arm", "arm64", "loong64", "ppc64le", "riscv64", "s390x"];
/// Systems that it runs on.
const SYSTEMS: [&str; 2] = ["linux", "windows"];

/// Refuses a platform that no node has: its image would never be pulled.
fn check_platform(platform: &Platform) -> Result<(), Failure> {
    let (system, architecture) = (platform.os(), platform.architecture());
    let help = if !SYSTEMS.contains(&system) {
        (system, &SYSTEMS[..])
    } else if !ARCHITECTURES.contains(&architecture) {
        (architecture, &ARCHITECTURES[..])
    } else {
        return Ok(());
    };
    let (word, known) = help;
    let near = did_you_mean(word, known.iter().copied());
    let help = near.unwrap_or_else(|| format!("expected one of `{}`", known.join("`, `")));
    Err(Failure::usage(BuildError::UnknownPlatform(platform.clone())).help(help))
}

/// Refuses a base that cannot serve the catalog: one whose command is not a server, unless another one is given, and one that has
/// a catalog already, which would be served too.
fn check_base(place: &Place, base: &Image, config: &Config) -> Result<(), Failure> {
    if base.label(CONFIGS_LABEL).is_some() {
        return Err(Failure::usage(BuildError::BaseIsACatalog(place.clone()))
            .help("use the image that it was built on, such as `quay.io/operator-framework/opm:latest`"));
    }
    let own = base.run().map(|run| run.entrypoint.as_slice()).unwrap_or_default();
    let is_server = |word: &String| Path::new(word).file_name().is_some_and(|name| name == BASE_SERVER);
    if !(config.entrypoint.is_empty() && config.cmd.is_empty()) || own.iter().any(is_server) {
        return Ok(());
    }
    let entrypoint = match own {
        [] => "it has no entrypoint".to_owned(),
        own => format!("its entrypoint is `{}`", own.join(" ").escape_debug()),
    };
    Err(Failure::usage(BuildError::BaseCannotServe(place.clone(), entrypoint)).help(
        "use a base with opm, such as `quay.io/operator-framework/opm:latest`; name its server with --entrypoint and --cmd; or leave \
         out --base",
    ))
}

/// Refuses what is not a catalog, such as a bundle: its image would take the place of a catalog's. Gives back what is to be said of
/// one with errors: it may be the start of a catalog.
fn check_catalog(input: &Input, access: &Access) -> Result<Option<String>, Failure> {
    let files = input.catalog(access)?;
    let catalog = Catalog::parse(&files);
    check_readable(&catalog, input)?;
    if catalog.packages.is_empty() && catalog.channels.is_empty() && catalog.bundles.is_empty() {
        let error = BuildError::NotACatalog(input.to_string());
        return Err(Failure::failed(error).help(format!("run `olmkit catalog validate {}`", argument(input))));
    }
    Ok(note_of_errors(&catalog, input))
}

/// What is to be said of a catalog with errors, if it has some.
pub(super) fn note_of_errors(catalog: &Catalog<'_>, input: &Input) -> Option<String> {
    let errors = validate::validate(catalog).iter().filter(|finding| finding.level == Level::Error).count();
    (errors > 0).then(|| {
        let errors = if errors == 1 { "an error".to_owned() } else { format!("{errors} errors") };
        format!(
            "the catalog has {errors}, and a server refuses to serve it: run `olmkit catalog validate {}`",
            argument(input)
        )
    })
}

/// Refuses a destination among the files that the image is made of: directories of the input, or the input itself.
fn check_outside(input: &Input, directories: &[&str], to: &Place) -> Result<(), Failure> {
    let (Input::Disk(source), Some(destination)) = (input, to.path()) else { return Ok(()) };
    // What is not there yet is as inside as the directory that it will be in.
    let there = destination.ancestors().find_map(|path| {
        let path = if path == Path::new("") { Path::new(".") } else { path };
        path.canonicalize().ok()
    });
    let is_inside = directories.iter().any(|directory| {
        let directory = if directory.is_empty() { source.clone() } else { source.join(directory) };
        let real = directory.canonicalize().ok();
        there.as_ref().zip(real).is_some_and(|(there, real)| there.starts_with(real))
    });
    if !is_inside {
        return Ok(());
    }
    let error = BuildError::Inside { to: to.clone(), input: input.to_string() };
    Err(Failure::usage(error).help("choose a place outside of it"))
}

/// The compiled catalog of a tree as a layer.
fn index_layer(tree: &FileTree, input: &Input, compression: Compression) -> Result<Layer, Failure> {
    // By way of a directory: which files count is the catalog's own business.
    let dir = tempfile::tempdir().map_err(Failure::incomplete)?;
    let (catalog, index) = (dir.path().join("catalog"), dir.path().join(INDEX_PATH));
    files::fill(&catalog, &tree.clone().into_contents().map_err(Failure::incomplete)?)?;
    let mut files = CatalogFiles::load(&catalog).map_err(Failure::incomplete)?;
    files.name = input.to_string();
    compiled::build(&files, &index).map_err(|error| build_index::failure(error, input))?;
    let mut tree = FileTree::new();
    tree.add_file(INDEX_PATH, std::fs::read(&index).map_err(Failure::incomplete)?)?;
    Ok(Layer::build_with(&tree, compression)?)
}

/// A single image stands for itself; several are listed.
fn root_of(mut images: Vec<Image>) -> Result<Root, Failure> {
    match images.pop() {
        Some(only) if images.is_empty() => Ok(only.into()),
        last => {
            images.extend(last);
            Ok(Index::new(images)?.into())
        }
    }
}

fn store(root: &Root, output: &Output, access: &Access) -> Result<StoredImage, Failure> {
    let Output { to, also_tag, push, .. } = output;
    // Looked at before anything is written.
    let own = if *push { Some(own_reference(to)?) } else { None };
    let mut stored = to.store_also(root, also_tag, access)?;
    if let Some(own) = own.filter(|own| own != to) {
        stored = own.store_also(root, also_tag, access)?;
    }
    Ok(StoredImage { stored, dry_run: access.is_dry_run(), note: None })
}

/// The registry's name that what is to be pushed has itself: that of an image, for directories have none. `help` says how to give
/// one.
///
/// # Errors
/// There is no such name, or the image cannot be read.
pub fn reference_of(input: &Input, help: &str) -> Result<Place, Failure> {
    match input {
        Input::Image(place) => own_reference(&place.named()?).map_err(|failure| failure.help(help)),
        Input::Disk(_) => Err(Failure::usage(BuildError::Nameless(input.to_string())).help(help)),
    }
}

/// The registry's name that an image has in a place: itself, or that of a tag such as `quay.io/example/bundle:v1`.
///
/// # Errors
/// There is no such name.
fn own_reference(place: &Place) -> Result<Place, Failure> {
    let named = |text: &str| text.parse().ok().filter(|place| matches!(place, Place::Registry(_)));
    let own = match place {
        Place::Registry(_) => Some(place.clone()),
        Place::Layout { tag: Some(tag), .. } | Place::OciArchive { tag: Some(tag), .. } => {
            named(tag.as_str())
        }
        // A name such as `app:v1` stands for Docker Hub in docker's archives; nobody means that by `--push`.
        Place::DockerArchive { reference: Some(reference), .. } if reference.registry() != DOCKER_HUB => {
            Some(Place::Registry(reference.clone()))
        }
        _ => None,
    };
    own.ok_or_else(|| {
        Failure::usage(BuildError::NoReference(place.clone()))
            .help("name the registry's reference as the tag: `oci:DIR:quay.io/example/bundle:v1.0.0`")
    })
}
