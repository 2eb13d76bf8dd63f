//! `olmkit catalog …`

mod diff;
mod edit;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use olmkit_bundle::names::ChannelName;
use olmkit_catalog::add::{self, Policy};
use olmkit_catalog::fbc::write;
use olmkit_catalog::render::Form;
use olmkit_catalog::{draw, path, template};

use super::levels::LevelFlags;
use super::registry::{BuildFlags, RegistryFlags, WriteFlags, destination};
use crate::actions::server::Server;
use crate::actions::{browse, build, build_index, catalog, catalog_add, push, render, resolve, serve};
use crate::exit::Failure;
use crate::image::{Place, Platform};
use crate::input::Input;
use crate::progress;
use crate::report::ListAnswer;
use crate::report::{Answer, Format};
use crate::shell::argument;

/// What to do with catalogs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Add bundles to a catalog; a version policy chooses their upgrade edges
    Add(Box<Add>),
    /// Validate catalogs as opm does, reporting every problem at once
    Validate(Box<Validate>),
    #[command(flatten)]
    Edit(edit::Verb),
    /// Compare two catalogs: packages, channels, bundles and upgrade paths
    Diff(Box<diff::Diff>),
    /// Show each version's upgrade path to the head of its channel
    Path(Box<Path>),
    /// Render bundles and catalogs as one catalog, as opm does
    Render(Box<Render>),
    /// Expand a catalog template
    Template(Box<Template>),
    /// Convert a catalog to a template
    Convert(Box<Convert>),
    /// List the contents of a catalog
    List(Box<List>),
    /// Draw the upgrade graph, or write the catalog as web pages
    Graph(Box<Graph>),
    /// Browse a catalog in a web browser
    Browse(Box<Browse>),
    /// Show what OLM would install next, or why it cannot
    Resolve(Box<Resolve>),
    /// Build a catalog image
    Build(Box<Build>),
    /// Compile a catalog to one file that `catalog serve` opens in milliseconds
    BuildIndex(Box<BuildIndex>),
    /// Serve a catalog to OLM over gRPC and HTTP
    Serve(Box<Serve>),
    /// Push a catalog to a registry
    Push(Box<Push>),
}

impl Verb {
    pub(super) fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
        match self {
            Self::Add(flags) => {
                let (request, registry) = flags.request();
                Ok(Box::new(catalog_add::add(&request, &registry.access()?)?))
            }
            Self::Edit(verb) => verb.run(),
            Self::Diff(flags) => flags.run(output),
            Self::Validate(flags) => {
                let Validate { catalogs, levels, registry } = *flags;
                Ok(Box::new(catalog::validate(&catalogs, &levels.levels()?, &registry.access()?)?))
            }
            Self::Path(flags) => {
                let Path { catalog, package, channel, from, rules, since, registry } = *flags;
                let rules = rules.into();
                let request = catalog::PathRequest { catalog, package, channel, from, rules, since };
                Ok(Box::new(catalog::path(&request, &registry.access()?)?))
            }
            Self::Render(flags) => {
                let Render { inputs, image_ref_template, migrate_level, format, registry } = *flags;
                let (form, format) = (migrate_level.into(), FileFormat::or(format, output));
                let request = render::Request { inputs, image_ref_template, form, format };
                Ok(Box::new(render::render(&request, &registry.access()?)?))
            }
            Self::Template(flags) => {
                let Template { file, bundles, migrate_level, format, component, output_dir, registry } =
                    *flags;
                let shown = match format {
                    Some(TemplateFormat::Mermaid) => render::Shown::Mermaid,
                    Some(TemplateFormat::Yaml) => render::Shown::Catalog(write::Format::Yaml),
                    Some(TemplateFormat::Json) => render::Shown::Catalog(write::Format::Json),
                    None => render::Shown::Catalog(FileFormat::or(None, output)),
                };
                let form = migrate_level.into();
                let request = render::TemplateRequest { file, bundles, form, shown, component, output_dir };
                Ok(Box::new(render::template(&request, &registry.access()?)?))
            }
            Self::Convert(flags) => {
                let Convert { catalog, to, package, format, registry } = *flags;
                let (to, format) = (to.into(), FileFormat::or(format, output));
                let access = registry.access()?;
                Ok(Box::new(render::convert(&catalog, to, package.as_deref(), format, &access)?))
            }
            Self::List(flags) => {
                let List { what, catalog, package, registry } = *flags;
                let what = match what {
                    Listed::Packages => catalog::Listed::Packages,
                    Listed::Channels => catalog::Listed::Channels,
                    Listed::Bundles => catalog::Listed::Bundles,
                };
                Ok(Box::new(catalog::list(
                    what,
                    &catalog,
                    package.as_deref(),
                    &registry.access()?,
                    ListAnswer::of,
                )?))
            }
            Self::Browse(flags) => {
                let Browse { catalog, port, registry } = *flags;
                Ok(Box::new(browse::serve(&catalog, port, &registry.access()?, progress::say)?))
            }
            Self::Graph(flags) if flags.draw_v0_semantics && !matches!(flags.format, Picture::Mermaid) => {
                Err(Failure::usage("--draw-v0-semantics marks edges in Mermaid only")
                    .help("leave it out, or pass `--format mermaid`"))
            }
            Self::Graph(flags) if flags.output_dir.is_some() => {
                let Graph { catalog, output_dir, registry, .. } = *flags;
                Ok(Box::new(browse::write(&catalog, &output_dir.unwrap_or_default(), &registry.access()?)?))
            }
            Self::Graph(flags) => {
                if !matches!(output, Format::Text) {
                    return Err(Failure::usage("a drawing has no such output format").help(
                        "pass `--format mermaid|dot|svg`, or use `olmkit catalog list bundles --output json`",
                    ));
                }
                let Graph {
                    catalog,
                    package,
                    channel,
                    minimum_edge,
                    draw_v0_semantics,
                    format,
                    registry,
                    ..
                } = *flags;
                let format = match format {
                    Picture::Mermaid => draw::Format::Mermaid,
                    Picture::Dot => draw::Format::Dot,
                    Picture::Svg => draw::Format::Svg,
                };
                let v0_semantics = draw_v0_semantics;
                let request =
                    catalog::GraphRequest { catalog, package, channel, minimum_edge, v0_semantics, format };
                Ok(Box::new(catalog::graph(&request, &registry.access()?)?))
            }
            Self::Resolve(flags) => {
                let Resolve { catalogs, subscriptions, existing, registry } = *flags;
                let request = resolve::Request { catalogs, subscriptions, existing };
                Ok(Box::new(resolve::run(&request, &registry.access()?)?))
            }
            Self::Build(flags) => {
                let server = flags.server();
                let Build { catalog, base, platform, label, entrypoint, cmd, build: flags, .. } = *flags;
                let (access, output) = flags.output(&catalog, build::CATALOG_COMPRESSION)?;
                let image_base = build::ImageBase {
                    base,
                    server,
                    platforms: platform,
                    labels: label.into_iter().collect(),
                    entrypoint,
                    cmd,
                };
                Ok(Box::new(build::catalog(
                    &build::Request { input: catalog, output },
                    &image_base,
                    &access,
                )?))
            }
            Self::BuildIndex(flags) => {
                let BuildIndex { catalog, to, registry } = *flags;
                Ok(Box::new(build_index::build_index(&catalog, &to, &registry.access()?)?))
            }
            Self::Serve(flags) => Ok(Box::new(serve::serve(&flags.flags)?)),
            Self::Push(flags) => {
                let Push { catalog, reference, write } = *flags;
                let (access, also_tag) = write.access()?;
                Ok(Box::new(push::catalog(push::Request { input: catalog, reference, also_tag }, &access)?))
            }
        }
    }
}

/// Flags of `catalog add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct Add {
    /// Catalog directory; created if it does not exist
    #[arg(value_name = "CATALOG", value_parser = catalog_directory)]
    catalog: PathBuf,
    /// Bundle directories, or images, whose registry reference is written to the catalog
    #[arg(value_name = "BUNDLE", required = true)]
    bundles: Vec<Input>,
    /// Channels to add the bundles to [default: those of their annotations]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    channels: Vec<ChannelName>,
    /// Version policy: replaces, semver, semver-skippatch or skip-range [default: that of the package file the bundle was generated with, else the edges of its ClusterServiceVersion, else replaces]
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// Default channel of the package [default for a new package: that of the bundle's annotations, else the first channel]
    #[arg(long, value_name = "NAME")]
    default_channel: Option<ChannelName>,
    /// Template of the bundles' image references, with {{.Package}}, {{.Name}} and {{.Version}} [default: that of the package file the bundle was generated with]
    #[arg(long, value_name = "TEMPLATE", value_parser = NonEmptyStringValueParser::new())]
    image_ref_template: Option<String>,
    /// Embed the manifests of bundles without an image reference in the catalog
    #[arg(long, conflicts_with = "image_ref_template")]
    embed: bool,
    /// Format of new files
    #[arg(long, value_enum, default_value_t = FileFormat::Yaml)]
    format: FileFormat,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// A catalog that is edited: images are not.
fn catalog_directory(text: &str) -> Result<PathBuf, String> {
    match text.parse::<Input>() {
        Ok(Input::Disk(path)) => Ok(path),
        _ => Err(format!(
            "an image cannot be edited: write it to a directory, `mkdir catalog && olmkit catalog render {} > \
             catalog/catalog.yaml`, edit it there, and run `olmkit catalog push`",
            argument(text)
        )),
    }
}

/// Format of files.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FileFormat {
    /// YAML documents
    Yaml,
    /// JSON values
    Json,
}

const ADD_EXAMPLES: &str = "\
Examples:
  olmkit catalog add catalog bundle --channels stable --image-ref-template registry.example.com/redis-operator-bundle:v{{.Version}}
  olmkit catalog add catalog bundles/* --policy semver-skippatch --image-ref-template registry.example.com/{{.Package}}:v{{.Version}}
  olmkit catalog add catalog registry.example.com/redis-operator-bundle:v0.2.0 --channels stable,fast";

impl Add {
    fn request(self) -> (catalog_add::AddRequest, RegistryFlags) {
        let format = match self.format {
            FileFormat::Yaml => write::Format::Yaml,
            FileFormat::Json => write::Format::Json,
        };
        let Self {
            catalog,
            bundles,
            channels,
            policy,
            default_channel,
            image_ref_template,
            embed,
            registry,
            ..
        } = self;
        let mut request = add::Request::new(channels, policy);
        request.strict = policy.is_some();
        request.default_channel = default_channel;
        request.format = format;
        (catalog_add::AddRequest { catalog, bundles, request, image_ref_template, embed }, registry)
    }
}

/// Flags of `catalog validate`.
#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// Catalog directories, or images as `HOST/NAME:TAG`, `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE`
    #[arg(value_name = "CATALOG", required = true)]
    catalogs: Vec<Input>,
    #[command(flatten)]
    levels: LevelFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

const VALIDATE_EXAMPLES: &str = "\
Examples:
  olmkit catalog validate catalog
  olmkit catalog validate quay.io/example/catalog:v1";

/// Flags of `catalog path`.
#[derive(Debug, Args)]
#[command(after_help = PATH_EXAMPLES)]
pub struct Path {
    /// Catalog directory or image
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// Filter by package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Filter by channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Show only paths from this version, or ClusterServiceVersion
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// OLM version whose rules apply
    #[arg(long, value_enum, default_value_t = Rules::V0)]
    rules: Rules,
    /// Older state of the catalog; fails if a version released there has lost its upgrade path
    #[arg(long, value_name = "CATALOG")]
    since: Option<Input>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// OLM version whose rules apply.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rules {
    /// OLM v0: the candidate nearest to the channel head
    V0,
    /// OLM v1: the highest permitted version
    V1,
}

const PATH_EXAMPLES: &str = "\
Examples:
  olmkit catalog path catalog
  olmkit catalog path catalog --channel stable --from redis-operator.v0.1.0";

impl From<Rules> for path::Rules {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::V0 => Self::V0,
            Rules::V1 => Self::V1,
        }
    }
}

impl FileFormat {
    /// The format that was asked for, else that of other answers.
    fn or(format: Option<Self>, output: Format) -> write::Format {
        match (format, output) {
            (Some(Self::Json), _) | (None, Format::Json) => write::Format::Json,
            _ => write::Format::Yaml,
        }
    }
}

/// Flags of `catalog render`.
#[derive(Debug, Args)]
#[command(after_help = RENDER_EXAMPLES)]
pub struct Render {
    /// Directories, files or images of bundles and catalogs
    #[arg(value_name = "REF", required = true)]
    inputs: Vec<Input>,
    /// Template of the image references of bundle directories, with {{.Package}}, {{.Name}} and {{.Version}}; without it their manifests are embedded in the catalog
    #[arg(long, alias = "alpha-image-ref-template", value_name = "TEMPLATE", value_parser = NonEmptyStringValueParser::new())]
    image_ref_template: Option<String>,
    /// Metadata migrations to apply
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = MigrateLevel::None)]
    migrate_level: MigrateLevel,
    /// Format of the catalog [default: yaml, or that of --output]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Metadata migrations to apply.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MigrateLevel {
    /// None: opm's default, with every manifest of a bundle in base64
    None,
    /// Replace the manifests with the metadata that consoles show, which OpenShift 4.17 and newer read
    BundleObjectToCsvMetadata,
    /// All migrations
    All,
}

impl From<MigrateLevel> for Form {
    fn from(level: MigrateLevel) -> Self {
        match level {
            MigrateLevel::None => Self::Objects,
            MigrateLevel::BundleObjectToCsvMetadata | MigrateLevel::All => Self::Metadata,
        }
    }
}

const RENDER_EXAMPLES: &str = "\
Examples:
  olmkit catalog render quay.io/example/redis-operator-bundle:v0.1.0 quay.io/example/redis-operator-bundle:v0.2.0 > catalog/bundles.yaml
  olmkit catalog render bundles/* --image-ref-template quay.io/example/{{.Package}}-bundle:v{{.Version}} --migrate-level all
  olmkit catalog render quay.io/example/catalog:v1 --format json";

/// Flags of `catalog template`.
#[derive(Debug, Args)]
#[command(after_help = TEMPLATE_EXAMPLES)]
pub struct Template {
    /// Template: olm.template.basic, olm.semver, olm.template.substitutes or olm.composite; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File that maps bundle references to directories, one `REFERENCE<TAB>DIRECTORY` a line; nothing is fetched
    #[arg(long, value_name = "MAP")]
    bundles: Option<PathBuf>,
    /// Metadata migrations to apply
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = MigrateLevel::None)]
    migrate_level: MigrateLevel,
    /// Format of the catalog [default: yaml, or that of --output]
    #[arg(long, value_enum)]
    format: Option<TemplateFormat>,
    /// Component of a composite template to expand
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
    /// Output directory for the catalogs of a composite template: NAME/PATH/FILE below it, as the template says
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Format of an expanded template.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TemplateFormat {
    /// YAML documents
    Yaml,
    /// JSON values
    Json,
    /// The upgrade graph
    Mermaid,
}

const TEMPLATE_EXAMPLES: &str = "\
Examples:
  olmkit catalog template semver.yaml > catalog/catalog.yaml
  olmkit catalog template semver.yaml --format mermaid --bundles bundles.tsv
  olmkit catalog template composite.yaml --output-dir catalogs";

/// Flags of `catalog convert`.
#[derive(Debug, Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct Convert {
    /// Catalog directory or image
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// Kind of the template
    #[arg(long, value_enum, value_name = "KIND")]
    to: TemplateKind,
    /// Filter by package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Format of the template [default: yaml, or that of --output]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Kind of template.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TemplateKind {
    /// Packages and channels as they are, and bundles as references
    Basic,
    /// Channels that follow from versions, if they are what the catalog has
    Semver,
    /// The whole catalog, to which substitutions can be added
    Substitutes,
}

impl From<TemplateKind> for template::Target {
    fn from(kind: TemplateKind) -> Self {
        match kind {
            TemplateKind::Basic => Self::Basic,
            TemplateKind::Semver => Self::Semver,
            TemplateKind::Substitutes => Self::Substitutes,
        }
    }
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  olmkit catalog convert catalog --to basic > basic.yaml
  olmkit catalog convert catalog --to semver --package redis-operator > semver.yaml";

/// Flags of `catalog list`.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Contents to list
    #[arg(value_enum)]
    what: Listed,
    /// Catalog directory or image
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// Filter by package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// What to list.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Listed {
    /// Packages, their default channels and all channels
    Packages,
    /// Channels and their heads
    Channels,
    /// Bundles and their edges
    Bundles,
}

const LIST_EXAMPLES: &str = "\
Examples:
  olmkit catalog list packages catalog
  olmkit catalog list bundles quay.io/example/catalog:v1 --package redis-operator --output json";

/// Flags of `catalog graph`.
#[derive(Debug, Args)]
#[command(after_help = GRAPH_EXAMPLES)]
pub struct Graph {
    /// Catalog directory or image
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// Filter by package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Filter by channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Show only edges from this bundle's version on
    #[arg(long, value_name = "CSV")]
    minimum_edge: Option<String>,
    /// Mark skipped versions in Mermaid, which OLM v0 does not install
    #[arg(long)]
    draw_v0_semantics: bool,
    /// Format of the drawing
    #[arg(long, value_enum, default_value_t = Picture::Mermaid)]
    format: Picture,
    /// Write the whole catalog as web pages to this directory, which need no server: index.html and a page for each package
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["package", "channel", "minimum_edge", "draw_v0_semantics", "format"]
    )]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Format of a drawing.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Picture {
    /// Mermaid, as opm writes it
    Mermaid,
    /// Graphviz
    Dot,
    /// Self-contained SVG
    Svg,
}

const GRAPH_EXAMPLES: &str = "\
Examples:
  olmkit catalog graph catalog --package redis-operator > graph.mermaid
  olmkit catalog graph catalog --format svg > graph.svg
  olmkit catalog graph catalog --format dot | dot -Tpng > graph.png
  olmkit catalog graph catalog --output-dir pages";

/// Flags of `catalog browse`.
#[derive(Debug, Args)]
#[command(after_help = BROWSE_EXAMPLES)]
pub struct Browse {
    /// Catalog directory or image
    #[arg(value_name = "CATALOG", default_value = "catalog")]
    catalog: Input,
    /// Port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    registry: RegistryFlags,
}

const BROWSE_EXAMPLES: &str = "\
Examples:
  olmkit catalog browse catalog
  olmkit catalog browse quay.io/example/catalog:v1 --port 8080";

/// Flags of `catalog resolve`.
#[derive(Debug, Args)]
#[command(after_help = RESOLVE_EXAMPLES)]
pub struct Resolve {
    /// Catalog that the namespace can install from: its name, and its directory or image
    #[arg(long = "catalog", value_name = "NAME=CATALOG[,priority=N]", required = true)]
    catalogs: Vec<resolve::NamedCatalog>,
    /// Subscription in the namespace, with its installed ClusterServiceVersion
    #[arg(
        long = "subscription",
        value_name = "PACKAGE[,channel=NAME][,catalog=NAME][,startingCSV=CSV][,installed=CSV]",
        required = true
    )]
    subscriptions: Vec<resolve::Asked>,
    /// ClusterServiceVersions in the namespace, as `kubectl get csv -o yaml` prints them; needed for those that no Subscription installed
    #[arg(long, value_name = "FILE")]
    existing: Vec<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

const RESOLVE_EXAMPLES: &str = "\
Examples:
  olmkit catalog resolve --catalog mine=catalog --subscription redis-operator,channel=stable
  olmkit catalog resolve --catalog mine=catalog --catalog other=quay.io/example/catalog:v1,priority=10 \\
    --subscription redis-operator,catalog=mine,installed=redis-operator.v0.1.0 --existing csvs.yaml";

/// Flags of `catalog build`.
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct Build {
    /// Catalog directory or image
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// Base image that serves the catalog, such as opm's
    #[arg(long, value_name = "IMAGE")]
    base: Option<Input>,
    /// Static server for a platform of the image, an `olmkit-serve` or olmkit [default: the one beside olmkit, or olmkit itself if
    /// it is static, else none]
    #[arg(long, value_name = "OS/ARCH=FILE", value_parser = server_binary, conflicts_with = "base")]
    server_binary: Vec<(Platform, PathBuf)>,
    /// Build an image with the catalog only, for `grpcPodConfig.extractContent` and OLM v1
    #[arg(long, conflicts_with_all = ["base", "server_binary"])]
    data_only: bool,
    /// Platforms of the image [default: those of the base or of the servers, else linux/amd64]
    #[arg(long, value_name = "OS/ARCH,…", value_delimiter = ',')]
    platform: Vec<Platform>,
    /// Additional label
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Entrypoint of the image; overrides that of the base
    #[arg(long, value_name = "WORD,…", value_delimiter = ',')]
    entrypoint: Vec<String>,
    /// Arguments of the entrypoint [default: `serve,/configs,--cache-dir=/tmp/cache` with a base]
    #[arg(long, value_name = "WORD,…", value_delimiter = ',')]
    cmd: Vec<String>,
    #[command(flatten)]
    build: BuildFlags,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  olmkit catalog build catalog --server-binary linux/amd64=olmkit-serve --to quay.io/example/catalog:v1
  olmkit catalog build catalog --data-only --to quay.io/example/catalog:v1
  olmkit catalog build catalog --base quay.io/operator-framework/opm:latest --to oci:images:catalog";

impl Build {
    fn server(&self) -> Server {
        match self {
            Self { base: Some(_), .. } | Self { data_only: true, .. } => Server::None,
            Self { server_binary, .. } if server_binary.is_empty() => Server::Beside,
            Self { server_binary, .. } => Server::Given(server_binary.iter().cloned().collect()),
        }
    }
}

/// `linux/amd64=FILE`.
fn server_binary(text: &str) -> Result<(Platform, PathBuf), String> {
    let (platform, file) = text.split_once('=').ok_or("expected `OS/ARCH=FILE`")?;
    Ok((platform.parse().map_err(|error: crate::image::PlatformError| error.to_string())?, file.into()))
}

/// Flags of `catalog build-index`.
#[derive(Debug, Args)]
#[command(after_help = BUILD_INDEX_EXAMPLES)]
pub struct BuildIndex {
    /// Catalog directory or image
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// File to write, outside the catalog directory
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    registry: RegistryFlags,
}

const BUILD_INDEX_EXAMPLES: &str = "\
Examples:
  olmkit catalog build-index catalog --to catalog.olmkit
  olmkit catalog serve catalog --index catalog.olmkit";

/// Flags of `catalog serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    #[command(flatten)]
    flags: olmkit_serve::Flags,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  olmkit catalog serve catalog
  olmkit catalog serve catalog --port 0 --index /var/cache/catalog.olmkit";

/// Flags of `catalog push`.
#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES)]
pub struct Push {
    /// Catalog directory, which is built first, or catalog image, which is pushed as it is
    #[arg(value_name = "CATALOG")]
    catalog: Input,
    /// Destination [default: the tag of the image if it is a reference, as in `oci:DIR:quay.io/example/catalog:v1`]
    #[arg(value_name = "HOST/NAME:TAG", value_parser = destination)]
    reference: Option<Place>,
    #[command(flatten)]
    write: WriteFlags,
}

const PUSH_EXAMPLES: &str = "\
Examples:
  olmkit catalog push catalog quay.io/example/catalog:v1 --also-tag latest";

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected `KEY=VALUE`".into()),
    }
}
