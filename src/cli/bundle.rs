//! `olmkit bundle …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use olmkit_bundle::generate::{Assignment, Compat, ImageOverride, Overrides};
use olmkit_bundle::names::{ChannelName, PackageName};
use olmkit_bundle::version::Version;
use olmkit_catalog::add::Policy;

use super::levels::LevelFlags;
use super::registry::{BuildFlags, RegistryFlags, WriteFlags, destination};
use crate::actions::{build, convert, generate, init, push, unpack, validate};
use crate::exit::Failure;
use crate::image::Place;
use crate::input::Input;
use crate::report::Answer;

/// What to do with bundles.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Write a package file to start from, with what is known of the operator filled in
    Init(Box<Init>),
    /// Make a bundle from an operator's manifests and its package file
    Generate(Box<Generate>),
    /// Make bundles from a directory of package manifests, the older layout
    Convert(Box<Convert>),
    /// Check bundles against OLM's rules
    Validate(Box<Validate>),
    /// Put a bundle into an image
    Build(Box<Build>),
    /// Send a bundle to a registry
    Push(Box<Push>),
    /// Write the files of a bundle's image to a directory
    Unpack(Box<Unpack>),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        match self {
            Self::Init(flags) => {
                let Init { directory, from_csv, package_file } = *flags;
                Ok(Box::new(init::run(init::Request { directory, from_csv, package_file })?))
            }
            Self::Convert(flags) => {
                let Convert { directory, output_dir } = *flags;
                Ok(Box::new(convert::run(convert::Request { directory, output_dir })?))
            }
            Self::Generate(flags) => {
                let (request, registry) = flags.request();
                generate::run(request, &registry.access()?)
            }
            Self::Build(flags) => {
                let Build { bundle, build: flags } = *flags;
                let (access, output) = flags.output(&bundle, build::BUNDLE_COMPRESSION)?;
                let answer = build::bundle(&build::Request { input: bundle, output }, &access)?;
                Ok(Box::new(answer))
            }
            Self::Push(flags) => {
                let Push { bundle, reference, write } = *flags;
                let (access, also_tag) = write.access()?;
                Ok(Box::new(push::bundle(push::Request { input: bundle, reference, also_tag }, &access)?))
            }
            Self::Unpack(flags) => {
                let Unpack { bundle, output_dir, registry } = *flags;
                let answer = unpack::bundle(&unpack::Request { bundle, output_dir }, &registry.access()?)?;
                Ok(Box::new(answer))
            }
            Self::Validate(flags) => flags.run(),
        }
    }
}

/// Flags of `bundle init`.
#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// The operator's directory; its Cargo.toml, CRDs and base are looked for
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// A ClusterServiceVersion that the package file is to say the same as
    #[arg(long, value_name = "CSV")]
    from_csv: Option<PathBuf>,
    /// The package file's name
    #[arg(long, value_name = "NAME", default_value = "olmkit.yaml")]
    package_file: String,
}

const INIT_EXAMPLES: &str = "\
Examples:
  olmkit bundle init
  olmkit bundle init --from-csv bundle/manifests/redis-operator.clusterserviceversion.yaml";

/// Flags of `bundle convert`.
#[derive(Debug, Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct Convert {
    /// The directory that holds `NAME.package.yaml` and a directory for each version
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the bundles go, a directory for each: new or empty
    #[arg(long, value_name = "DIR", default_value = "bundles")]
    output_dir: PathBuf,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  olmkit bundle convert redis-operator --output-dir bundles";

/// Flags of `bundle generate`.
#[derive(Debug, Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub struct Generate {
    /// Files and directories with manifests, YAML or JSON, and `-` for standard input; when none are given those of the
    /// package file, else of standard input
    #[arg(value_name = "FILE|DIR|-")]
    manifests: Vec<PathBuf>,
    /// A directory with a kustomization, built by kustomize or kubectl
    #[arg(long, value_name = "DIR")]
    kustomize: Vec<PathBuf>,
    /// A Helm chart, rendered by helm
    #[arg(long, value_name = "CHART")]
    helm: Vec<PathBuf>,
    /// Values for the chart
    #[arg(long, value_name = "FILE", requires = "helm")]
    helm_values: Vec<PathBuf>,
    /// Files and directories with examples of custom resources; nothing else in them counts
    #[arg(long, value_name = "FILE|DIR")]
    samples: Vec<PathBuf>,
    /// The package file, or a Cargo.toml with `[package.metadata.olmkit]`; `olmkit.yaml` here when there is one
    #[arg(long, value_name = "FILE")]
    package_file: Option<PathBuf>,
    /// A base ClusterServiceVersion, such as operator-sdk's in config/manifests/bases
    #[arg(long, value_name = "CSV")]
    base: Option<PathBuf>,
    /// The package's name, instead of the package file's
    #[arg(long, value_name = "NAME")]
    package: Option<PackageName>,
    /// The version, a semantic one, instead of the package file's
    #[arg(long, value_name = "X.Y.Z", value_parser = super::version)]
    version: Option<Version>,
    /// The release of the version, which the name ends in then
    #[arg(long, value_name = "RELEASE")]
    release: Option<String>,
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
    /// Service accounts that get their rights from OLM though no Deployment runs as them
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    extra_service_accounts: Vec<String>,
    /// A field of the ClusterServiceVersion, whatever else says otherwise; the value is YAML
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Assignment>,
    /// Another name, tag or digest for an image, as `kustomize edit set image` takes it
    #[arg(long, value_name = "OLD=NEW")]
    image: Vec<ImageOverride>,
    /// A kind of finding that is known and meant, besides those that the package file allows
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    allow: Vec<String>,
    /// The time of creation, RFC 3339; `now` changes it when the content changes
    #[arg(long, value_name = "TIME|now", value_parser = created_at)]
    created_at: Option<String>,
    /// Ask the registries for the digests of images, and name the images by them
    #[arg(long)]
    pin_digests: bool,
    /// Make what this tool would make, and none of the repairs
    #[arg(long, value_name = "TOOL")]
    compat: Option<CompatFlag>,
    /// Write nothing; exit with 1 and show the differences when the bundle's directory is stale
    #[arg(long, conflicts_with = "explain")]
    check: bool,
    /// Write nothing; say where the fields at and below a path of the ClusterServiceVersion come from
    #[arg(long, value_name = "PATH")]
    explain: Option<String>,
    /// Directory of the bundle; files that olmkit did not write are kept
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output_dir: PathBuf,
    /// Write the bundle into a directory that holds something else, such as a git checkout
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Tools whose bundles can be made.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompatFlag {
    /// `operator-sdk generate bundle`
    OperatorSdk,
}

/// RFC 3339 in UTC, or the word `now`.
fn created_at(text: &str) -> Result<String, String> {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = text.chars().map(digits).collect();
    match shape.as_str() {
        "now" | "0000-00-00T00:00:00Z" => Ok(text.to_owned()),
        _ => Err("write it as 2026-01-31T00:00:00Z, or `now`".to_owned()),
    }
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  olmkit bundle generate                                    from ./olmkit.yaml to ./bundle
  olmkit bundle generate deploy/ --package redis-operator --version 0.1.0
  kustomize build config/default | olmkit bundle generate --base config/manifests/bases/op.clusterserviceversion.yaml
  olmkit bundle generate --explain spec.installModes        where these fields come from
  olmkit bundle generate --check                            whether ./bundle is up to date
  olmkit bundle generate --version 0.2.0 --catalog catalog   with spec.replaces, as 0.2.0 will stand in the catalog";

impl Generate {
    fn request(self) -> (generate::Request, RegistryFlags) {
        let flags = self;
        let Generate { manifests, kustomize, helm, helm_values, .. } = flags;
        let inputs = generate::Inputs { paths: manifests, kustomize, helm, helm_values };
        let Generate { package, version, release, channels, default_channel, .. } = flags;
        let Generate { extra_service_accounts, set, image: images, allow, .. } = flags;
        let overrides = Overrides {
            package,
            version,
            release,
            channels,
            default_channel,
            extra_service_accounts,
            set,
            images,
            allow,
        };
        let task = match (flags.explain, flags.check) {
            (Some(path), _) => generate::Task::Explain(path),
            (None, true) => generate::Task::Check,
            (None, false) => generate::Task::Write,
        };
        let compat = flags.compat.map(|CompatFlag::OperatorSdk| Compat::OperatorSdk);
        let Generate {
            samples, package_file, base, catalog, channel, policy, created_at, output_dir, ..
        } = flags;
        let request = generate::Request {
            inputs,
            samples,
            package_file,
            base,
            overrides,
            catalog,
            channel,
            policy,
            created_at,
            compat,
            pin_digests: flags.pin_digests,
            force: flags.force,
            task,
            output_dir,
        };
        (request, flags.registry)
    }
}

/// Flags of `bundle validate`.
#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// Bundles: directories, or images as `HOST/NAME:TAG`, `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE`
    #[arg(value_name = "BUNDLE", required_unless_present_any = ["list", "explain"])]
    bundles: Vec<Input>,
    /// The suites of rules to run; `all` is every one that needs no network. `--list` shows them
    #[arg(long, value_name = "NAME,…|all", value_delimiter = ',', default_value = validate::DEFAULT_SUITE)]
    suite: Vec<String>,
    /// Say what the rules are, by suite, and check nothing
    #[arg(long, conflicts_with = "explain")]
    list: bool,
    /// Explain a kind of finding, with a bad and a good example, and check nothing
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
    #[command(flatten)]
    levels: LevelFlags,
    /// Findings that are known: what an earlier run printed with `--output json`. They are not reported again
    #[arg(long, value_name = "FILE", help_heading = "Findings")]
    baseline: Option<PathBuf>,
    /// A program with checks of your own: it gets the bundle's directory, and prints a result as operator-sdk's external
    /// validators do
    #[arg(long, value_name = "PROGRAM", help_heading = "Findings")]
    check: Vec<PathBuf>,
    /// The oldest Kubernetes that the bundles are meant for: APIs that it does not serve are errors
    #[arg(long, value_name = "X.Y", value_parser = validate::kubernetes_version)]
    kubernetes_version: Option<Version>,
    /// The Dockerfile of the bundle's image, for the suite `community`
    #[arg(long, value_name = "FILE")]
    index_path: Option<PathBuf>,
    /// A file with the categories of your catalog, `{"categories": [NAME, …]}`, instead of OperatorHub's
    #[arg(long, value_name = "FILE", env = "OPERATOR_BUNDLE_CATEGORIES")]
    categories: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

const VALIDATE_EXAMPLES: &str = "\
Examples:
  olmkit bundle validate bundle
  olmkit bundle validate bundle --suite all --deny warnings
  olmkit bundle validate quay.io/example/redis-operator-bundle:v0.1.0
  olmkit bundle validate operators/*/*/ --output sarif > findings.sarif
  olmkit bundle validate --explain csv-owned-crd-missing";

impl Validate {
    fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let Self {
            bundles,
            suite,
            list,
            explain,
            levels,
            baseline,
            check,
            kubernetes_version,
            index_path,
            categories,
            registry,
        } = self;
        let suites = validate::suites(&suite)?;
        if list {
            return Ok(Box::new(validate::list(&suites)));
        }
        if let Some(code) = explain {
            return Ok(Box::new(validate::explain(&code)?));
        }
        let levels = levels.levels()?;
        let request = validate::Request {
            bundles,
            suites,
            levels,
            baseline,
            checks: check,
            kubernetes_version,
            index_path,
            categories,
        };
        Ok(Box::new(validate::run(request, &registry.access()?)?))
    }
}

/// Flags of `bundle build`.
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct Build {
    /// The bundle: its directory, or its image
    #[arg(value_name = "BUNDLE")]
    bundle: Input,
    #[command(flatten)]
    build: BuildFlags,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  olmkit bundle build bundle --to oci:images/redis-operator-bundle:v0.1.0
  olmkit bundle build bundle --to quay.io/example/redis-operator-bundle:v0.1.0";

/// Flags of `bundle push`.
#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES)]
pub struct Push {
    /// The bundle: its directory, which is built first, or its image, which is sent as it is
    #[arg(value_name = "BUNDLE")]
    bundle: Input,
    /// Where to; the tag's own reference when it is one, as in `oci:DIR:quay.io/example/bundle:v1`
    #[arg(value_name = "HOST/NAME:TAG", value_parser = destination)]
    reference: Option<Place>,
    #[command(flatten)]
    write: WriteFlags,
}

const PUSH_EXAMPLES: &str = "\
Examples:
  olmkit bundle push bundle quay.io/example/redis-operator-bundle:v0.1.0
  olmkit bundle push oci:images:quay.io/example/redis-operator-bundle:v0.1.0";

/// Flags of `bundle unpack`.
#[derive(Debug, Args)]
#[command(after_help = UNPACK_EXAMPLES)]
pub struct Unpack {
    /// The bundle's image
    #[arg(value_name = "BUNDLE")]
    bundle: Input,
    /// The directory, new or empty
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output_dir: PathBuf,
    #[command(flatten)]
    registry: RegistryFlags,
}

const UNPACK_EXAMPLES: &str = "\
Examples:
  olmkit bundle unpack quay.io/example/redis-operator-bundle:v0.1.0 --output-dir bundle";
