//! `olmkit bundle …`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use olmkit_bundle::generate::Overrides;
use olmkit_bundle::names::{ChannelName, PackageName};
use olmkit_bundle::version::Version;
use olmkit_catalog::add::Policy;

use crate::actions::{build, generate, validate};
use crate::exit::Failure;
use crate::image::Place;
use crate::report::Answer;

/// What to do with bundles.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a bundle from an operator's manifests and its package file
    Generate(Generate),
    /// Check bundles against OLM's rules
    Validate(Validate),
    /// Put a bundle into an image
    Build(Build),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        match self {
            Self::Generate(flags) => {
                generate::run(flags.into()).map(|answer| Box::new(answer) as Box<dyn Answer>)
            }
            Self::Build(flags) => {
                build::bundle(&flags.into()).map(|answer| Box::new(answer) as Box<dyn Answer>)
            }
            Self::Validate(flags) => {
                validate::run(&flags.bundles).map(|answer| Box::new(answer) as Box<dyn Answer>)
            }
        }
    }
}

/// Flags of `bundle generate`.
#[derive(Debug, Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub struct Generate {
    /// Files and directories with manifests, YAML or JSON; those of the package file when none are given
    #[arg(value_name = "FILE|DIR")]
    manifests: Vec<PathBuf>,
    /// The package file; `olmkit.yaml` here when there is one
    #[arg(long, value_name = "FILE")]
    package_file: Option<PathBuf>,
    /// The package's name, instead of the package file's
    #[arg(long, value_name = "NAME")]
    package: Option<PackageName>,
    /// The version, a semantic one, instead of the package file's
    #[arg(long, value_name = "X.Y.Z", value_parser = super::version)]
    version: Option<Version>,
    /// The channels, instead of the package file's
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    channels: Vec<ChannelName>,
    /// The channel to subscribe to, instead of the package file's
    #[arg(long, value_name = "NAME")]
    default_channel: Option<ChannelName>,
    /// A catalog: the bundle gets the edges that it will have there
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
    /// The channel of the catalog that decides on the edges; the default channel when absent
    #[arg(long, value_name = "NAME", requires = "catalog")]
    channel: Option<ChannelName>,
    /// How its place there is chosen, instead of the package file's: replaces, semver, semver-skippatch or skip-range
    #[arg(long, value_name = "POLICY", requires = "catalog")]
    policy: Option<Policy>,
    /// The bundle's directory; files in it that olmkit did not write are kept
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output_dir: PathBuf,
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  olmkit bundle generate                                    from ./olmkit.yaml to ./bundle
  olmkit bundle generate deploy/ --package redis-operator --version 0.1.0
  olmkit bundle generate --version 0.2.0 --catalog catalog   with spec.replaces, as 0.2.0 will stand in the catalog";

impl From<Generate> for generate::Request {
    fn from(flags: Generate) -> Self {
        let Generate { manifests, package_file, package, version, channels, default_channel, .. } = flags;
        let overrides = Overrides { package, version, channels, default_channel };
        let Generate { catalog, channel, policy, output_dir, .. } = flags;
        Self { manifests, package_file, overrides, catalog, channel, policy, output_dir }
    }
}

/// Flags of `bundle validate`.
#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// Bundle directories
    #[arg(value_name = "DIR", required = true)]
    bundles: Vec<PathBuf>,
}

const VALIDATE_EXAMPLES: &str = "\
Examples:
  olmkit bundle validate bundle
  olmkit bundle validate operators/*/* --output json";

/// Flags of `bundle build`.
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct Build {
    /// The bundle's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the image goes: an OCI layout directory, `oci:DIR[:TAG]`
    #[arg(long, value_name = "PLACE")]
    to: Place,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  olmkit bundle build bundle --to oci:images/redis-operator-bundle:v0.1.0";

impl From<Build> for build::Request {
    fn from(Build { directory, to }: Build) -> Self {
        Self { directory, to }
    }
}
