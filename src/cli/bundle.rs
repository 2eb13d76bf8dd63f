//! `olmkit bundle …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use olmkit_bundle::generate::{Assignment, Compat, Descriptors, ImageOverride, Overrides};
use olmkit_bundle::names::{ChannelName, PackageName};
use olmkit_bundle::version::Version;
use olmkit_catalog::add::Policy;

use super::diff::Diff;
use super::levels::LevelFlags;
use super::manifests::Manifests;
use super::registry::{BuildFlags, RegistryFlags, WriteFlags, destination, path_from};
use crate::actions::{build, convert, generate, init, push, unpack, validate};
use crate::exit::Failure;
use crate::image::Place;
use crate::input::Input;
use crate::moment;
use crate::report::{Answer, Format};

/// What to do with bundles.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Write a package file for an operator project
    Init(Box<Init>),
    /// Generate a bundle from an operator's manifests and its package file
    Generate(Box<Generate>),
    /// Convert package manifests, the older layout, to bundles
    Convert(Box<Convert>),
    /// Validate bundles against OLM's rules
    Validate(Box<Validate>),
    /// Compare two versions of a bundle or of a CRD: what an upgrade will break
    Diff(Box<Diff>),
    /// Print a bundle as plain manifests, for clusters without OLM
    Manifests(Box<Manifests>),
    /// Build a bundle image
    Build(Box<Build>),
    /// Push a bundle to a registry
    Push(Box<Push>),
    /// Unpack a bundle image to a directory
    Unpack(Box<Unpack>),
}

impl Verb {
    /// Whether it works on a cluster, or writes to a registry.
    pub(super) fn reaches_out(&self) -> bool {
        match self {
            Self::Build(_) | Self::Push(_) => true,
            Self::Diff(flags) => flags.is_live(),
            _ => false,
        }
    }

    pub(super) fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
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
                Ok(Box::new(generate::run(request, &registry.access()?)?))
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
            Self::Diff(flags) => flags.run(output),
            Self::Manifests(flags) => flags.run(output),
        }
    }
}

/// Flags of `bundle init`.
#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// Directory of the operator project
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// ClusterServiceVersion to take the contents of the package file from
    #[arg(long, value_name = "CSV")]
    from_csv: Option<PathBuf>,
    /// Name of the package file
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
    /// Directory with `NAME.package.yaml` and a subdirectory for each version
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Directory for the bundles, a subdirectory for each; must be new or empty
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
    /// Files and directories with manifests in YAML or JSON, or `-` for standard input [default: those of the package
    /// file, else standard input]
    #[arg(value_name = "FILE|DIR|-")]
    manifests: Vec<PathBuf>,
    /// Directory with a kustomization, built by kustomize or kubectl. `--timeout` limits how long they and helm may run
    /// [default: 10m]
    #[arg(long, value_name = "DIR")]
    kustomize: Vec<PathBuf>,
    /// Helm chart, rendered by helm
    #[arg(long, value_name = "CHART")]
    helm: Vec<PathBuf>,
    /// Values file for the chart; added to those of the package file
    #[arg(long, value_name = "FILE")]
    helm_values: Vec<PathBuf>,
    /// Value for the chart, as for `helm template --set`
    #[arg(long, value_name = "KEY=VALUE")]
    helm_set: Vec<String>,
    /// Name of the chart's release [default: the package's name]
    #[arg(long, value_name = "NAME")]
    helm_release: Option<String>,
    /// Namespace of the chart's release
    #[arg(long, value_name = "NAMESPACE")]
    helm_namespace: Option<String>,
    /// Kubernetes version to render the chart for
    #[arg(long, value_name = "VERSION")]
    helm_kube_version: Option<String>,
    /// Files and directories with sample custom resources; other files are ignored
    #[arg(long, value_name = "FILE|DIR")]
    samples: Vec<PathBuf>,
    /// Package file, or a Cargo.toml with `[package.metadata.olmkit]` [default: `olmkit.yaml` if it exists]
    #[arg(long, value_name = "FILE")]
    package_file: Option<PathBuf>,
    /// Base ClusterServiceVersion, such as operator-sdk's in config/manifests/bases
    #[arg(long, value_name = "CSV")]
    base: Option<PathBuf>,
    /// Name of the package; overrides the package file
    #[arg(long, value_name = "NAME")]
    package: Option<PackageName>,
    /// Semantic version; overrides the package file
    #[arg(long, value_name = "X.Y.Z", value_parser = super::version)]
    version: Option<Version>,
    /// Release of the version; the bundle's name ends in it
    #[arg(long, value_name = "RELEASE")]
    release: Option<String>,
    /// Channels; overrides the package file
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    channels: Vec<ChannelName>,
    /// Default channel; overrides the package file
    #[arg(long, value_name = "NAME")]
    default_channel: Option<ChannelName>,
    /// Catalog to compute the upgrade edges of the bundle from
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
    /// Channel of the catalog to compute the edges from [default: the package's default channel]
    #[arg(long, value_name = "NAME", requires = "catalog")]
    channel: Option<ChannelName>,
    /// Accept a channel or a catalog that does not exist yet
    #[arg(long, requires = "catalog")]
    new_channel: bool,
    /// Version policy: replaces, semver, semver-skippatch or skip-range; overrides the package file
    #[arg(long, value_name = "POLICY", requires = "catalog")]
    policy: Option<Policy>,
    /// Additional service accounts for OLM to grant permissions to, used by no Deployment
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    extra_service_accounts: Vec<String>,
    /// Set a field of the ClusterServiceVersion; overrides every other source. The value is YAML. Positions in lists stand in
    /// brackets, `spec.maintainers[0].name=Jo`; dots in a key are escaped, `metadata.annotations.example\.com/team=db`
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Assignment>,
    /// Replace an image's name, tag or digest, as `kustomize edit set image` does
    #[arg(long, value_name = "OLD=NEW")]
    image: Vec<ImageOverride>,
    /// Accept this kind of finding, in addition to those that the package file allows
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    allow: Vec<String>,
    /// Descriptors of custom resource fields to include
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = DescriptorsFlag::All)]
    descriptors: DescriptorsFlag,
    /// Creation time, RFC 3339; `now` updates it when the content changes
    #[arg(long, value_name = "TIME|now", value_parser = created_at)]
    created_at: Option<String>,
    /// Pin images to the digests that their registries report
    #[arg(long)]
    pin_digests: bool,
    /// Fail instead of fetching remote bases, charts and values files that the package file or a kustomization names
    #[arg(long, conflicts_with = "pin_digests")]
    offline: bool,
    /// Generate what this tool would generate, without corrections
    #[arg(long, value_name = "TOOL")]
    compat: Option<CompatFlag>,
    /// Write nothing; exit with 1 and show the differences if the bundle directory is out of date
    #[arg(long, conflicts_with = "explain")]
    check: bool,
    /// Write nothing; show where the fields at and below a path of the ClusterServiceVersion come from
    #[arg(long, value_name = "PATH")]
    explain: Option<String>,
    /// Directory of the bundle; files that olmkit did not write are kept
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output_dir: PathBuf,
    /// Write the bundle even if the directory contains something else, such as a git checkout, files that olmkit did not write, or
    /// the bundle of another package
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Descriptors of custom resource fields to include.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DescriptorsFlag {
    /// One for each field of the schema that consoles can show
    All,
    /// Those that the base or the package file names
    Annotated,
    /// None
    None,
}

/// Tools to be compatible with.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompatFlag {
    /// `operator-sdk generate bundle`
    OperatorSdk,
}

impl From<DescriptorsFlag> for Descriptors {
    fn from(flag: DescriptorsFlag) -> Self {
        match flag {
            DescriptorsFlag::All => Self::All,
            DescriptorsFlag::Annotated => Self::Annotated,
            DescriptorsFlag::None => Self::None,
        }
    }
}

/// RFC 3339 in UTC, or the word `now`.
fn created_at(text: &str) -> Result<String, String> {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = text.chars().map(digits).collect();
    match shape.as_str() {
        "now" => Ok(text.to_owned()),
        "0000-00-00T00:00:00Z" if moment::parse(text).is_some() => Ok(text.to_owned()),
        "0000-00-00T00:00:00Z" => Err("invalid date or time".to_owned()),
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
  olmkit bundle generate --version 0.2.0 --catalog catalog   with spec.replaces from the catalog's upgrade graph";

impl Generate {
    fn request(self) -> (generate::Request, RegistryFlags) {
        let flags = self;
        let Generate { manifests, kustomize, helm: charts, helm_values: values, helm_set: set, .. } = flags;
        let Generate { helm_release: release, helm_namespace: namespace, .. } = flags;
        let kube_version = flags.helm_kube_version;
        let helm = generate::Helm { charts, values, set, release, namespace, kube_version };
        let inputs = generate::Inputs { paths: manifests, kustomize, helm };
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
            samples,
            package_file,
            base,
            catalog,
            channel,
            new_channel,
            policy,
            created_at,
            output_dir,
            ..
        } = flags;
        let request = generate::Request {
            inputs,
            samples,
            package_file,
            base,
            overrides,
            catalog,
            channel,
            new_channel,
            policy,
            created_at,
            compat,
            program_limit: flags.registry.timeout.unwrap_or(generate::PROGRAM_LIMIT),
            descriptors: flags.descriptors.into(),
            offline: flags.offline,
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
    /// Bundle directories, or images as `HOST/NAME:TAG`, `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE`
    #[arg(value_name = "BUNDLE", required_unless_present_any = ["list", "explain"])]
    bundles: Vec<Input>,
    /// Suites of rules to run; `all` runs every one that needs no network. `--list` shows them
    #[arg(long, value_name = "NAME,…|all", value_delimiter = ',', default_value = validate::DEFAULT_SUITE)]
    suite: Vec<String>,
    /// List the rules by suite, without validating anything
    #[arg(long, conflicts_with = "explain")]
    list: bool,
    /// Explain a kind of finding with a bad and a good example, without validating anything
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
    #[command(flatten)]
    levels: LevelFlags,
    /// Output of an earlier run with `--output json`; its findings are not reported again
    #[arg(long, value_name = "FILE", help_heading = "Findings")]
    baseline: Option<PathBuf>,
    /// Program with additional checks: it gets the bundle directory as its argument and prints a result as operator-sdk's
    /// external validators do. `--timeout` limits how long it may run for each bundle [default: 1m]
    #[arg(long, value_name = "PROGRAM", help_heading = "Findings")]
    check: Vec<PathBuf>,
    /// Oldest Kubernetes version to support; APIs that it does not serve are errors. Adds the suite `removed-apis`
    #[arg(long, value_name = "X.Y", value_parser = validate::kubernetes_version)]
    kubernetes_version: Option<Version>,
    /// Dockerfile of the bundle image; adds the suite `community`
    #[arg(long, value_name = "FILE")]
    index_path: Option<PathBuf>,
    /// File with the categories of your catalog, `{"categories": [NAME, …]}`, instead of OperatorHub's; adds the suite `categories`
    /// [env: OPERATOR_BUNDLE_CATEGORIES]
    #[arg(long, value_name = "FILE")]
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
        // A flag for the rules of one suite asks for that suite.
        let mut suite = suite;
        let asked = [
            (kubernetes_version.is_some(), "removed-apis"),
            (categories.is_some(), "categories"),
            (index_path.is_some(), "community"),
        ];
        suite.extend(asked.into_iter().filter(|(asked, _)| *asked).map(|(_, suite)| suite.to_owned()));
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
            check_limit: registry.timeout.unwrap_or(validate::CHECK_LIMIT),
            kubernetes_version,
            index_path,
            categories: categories.or_else(|| path_from("OPERATOR_BUNDLE_CATEGORIES")),
        };
        Ok(Box::new(validate::run(request, &registry.access()?)?))
    }
}

/// Flags of `bundle build`.
#[derive(Debug, Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct Build {
    /// Bundle directory or image
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
    /// Bundle directory, which is built first, or bundle image, which is pushed as it is
    #[arg(value_name = "BUNDLE")]
    bundle: Input,
    /// Destination [default: the tag of the image if it is a reference, as in `oci:DIR:quay.io/example/bundle:v1`]
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
    /// Bundle image
    #[arg(value_name = "BUNDLE")]
    bundle: Input,
    /// Directory to write to; must be new or empty
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output_dir: PathBuf,
    #[command(flatten)]
    registry: RegistryFlags,
}

const UNPACK_EXAMPLES: &str = "\
Examples:
  olmkit bundle unpack quay.io/example/redis-operator-bundle:v0.1.0 --output-dir bundle";
