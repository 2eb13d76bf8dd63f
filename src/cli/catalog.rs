//! `olmkit catalog …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use olmkit_bundle::names::ChannelName;
use olmkit_catalog::add::{self, Policy};
use olmkit_catalog::fbc::write;
use olmkit_catalog::path;

use crate::actions::{build, catalog};
use crate::exit::Failure;
use crate::image::Place;
use crate::report::Answer;

/// What to do with catalogs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Add bundles to a catalog, each in its place by a version policy
    Add(Add),
    /// Check catalogs as opm does, every problem at once
    Validate(Validate),
    /// Show each version's way to the head of its channel
    Path(Path),
    /// Put a catalog into an image
    Build(Build),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        match self {
            Self::Add(flags) => catalog::add(&flags.into()).map(|answer| Box::new(answer) as _),
            Self::Validate(flags) => catalog::validate(&flags.catalogs).map(|answer| Box::new(answer) as _),
            Self::Path(flags) => catalog::path(&flags.into()).map(|answer| Box::new(answer) as _),
            Self::Build(flags) => build::catalog(&flags.into()).map(|answer| Box::new(answer) as _),
        }
    }
}

/// Flags of `catalog add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct Add {
    /// The catalog's directory, which need not be there yet
    #[arg(value_name = "CATALOG")]
    catalog: PathBuf,
    /// The bundles' directories
    #[arg(value_name = "BUNDLE", required = true)]
    bundles: Vec<PathBuf>,
    /// The channels they go into; those that their annotations name when absent
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    channels: Vec<ChannelName>,
    /// How their places there are chosen: replaces, semver, semver-skippatch or skip-range
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Replaces)]
    policy: Policy,
    /// The channel that a Subscription without one gets; a new package has the one its bundle's annotations name, else the first
    #[arg(long, value_name = "NAME")]
    default_channel: Option<ChannelName>,
    /// The bundles' images, with {{.Package}}, {{.Name}} and {{.Version}} filled in; without it the bundles' manifests go into the catalog
    #[arg(long, value_name = "TEMPLATE")]
    image_ref_template: Option<String>,
    /// How new files are written
    #[arg(long, value_enum, default_value_t = FileFormat::Yaml)]
    format: FileFormat,
}

/// How files are written.
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
  olmkit catalog add catalog bundles/* --channels stable,fast --policy semver-skippatch";

impl From<Add> for catalog::AddRequest {
    fn from(flags: Add) -> Self {
        let format = match flags.format {
            FileFormat::Yaml => write::Format::Yaml,
            FileFormat::Json => write::Format::Json,
        };
        let Add { catalog, bundles, channels, policy, default_channel, image_ref_template, .. } = flags;
        Self {
            catalog,
            bundles,
            request: add::Request { channels, policy, default_channel, format },
            image_ref_template,
        }
    }
}

/// Flags of `catalog validate`.
#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// Catalog directories
    #[arg(value_name = "DIR", required = true)]
    catalogs: Vec<PathBuf>,
}

const VALIDATE_EXAMPLES: &str = "\
Examples:
  olmkit catalog validate catalog";

/// Flags of `catalog path`.
#[derive(Debug, Args)]
#[command(after_help = PATH_EXAMPLES)]
pub struct Path {
    /// The catalog's directory
    #[arg(value_name = "DIR")]
    catalog: PathBuf,
    /// Of this package only
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// In this channel only
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// From this ClusterServiceVersion only
    #[arg(long, value_name = "CSV")]
    from: Option<String>,
    /// Whose rules decide what comes next
    #[arg(long, value_enum, default_value_t = Rules::V0)]
    rules: Rules,
}

/// Whose rules decide what comes next.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rules {
    /// OLM v0: what is nearest to the head of the chain
    V0,
    /// OLM v1: the highest version that may follow
    V1,
}

const PATH_EXAMPLES: &str = "\
Examples:
  olmkit catalog path catalog
  olmkit catalog path catalog --channel stable --from redis-operator.v0.1.0";

impl From<Path> for catalog::PathRequest {
    fn from(Path { catalog, package, channel, from, rules }: Path) -> Self {
        let rules = match rules {
            Rules::V0 => path::Rules::V0,
            Rules::V1 => path::Rules::V1,
        };
        Self { catalog, package, channel, from, rules }
    }
}

/// Flags of `catalog build`.
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct Build {
    /// The catalog's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the image goes: an OCI layout directory, `oci:DIR[:TAG]`
    #[arg(long, value_name = "PLACE")]
    to: Place,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  olmkit catalog build catalog --to oci:images/catalog:v1";

impl From<Build> for build::Request {
    fn from(Build { directory, to }: Build) -> Self {
        Self { directory, to }
    }
}
