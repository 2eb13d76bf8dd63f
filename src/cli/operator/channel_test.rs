//! `olmkit operator test`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, ValueEnum};

use super::super::impersonation::ImpersonationFlags;
use super::super::olm::release;
use super::super::registry::{ConnectionFlags, duration, duration_or_zero};
use super::{catalog_source, image_reference, input, namespace};
use crate::actions::olm::{Download, RELEASES, Request, Source};
use crate::actions::operator::Target;
use crate::actions::operator::channel_test::{self, ChannelTest, TIMEOUT};
use crate::actions::operator::kind::{Kind, REGISTRY};
use crate::actions::operator::stock::Stock;
use crate::exit::Failure;
use crate::files::ReportFile;
use crate::image::Place;
use crate::input::Input;
use crate::lifecycle::channel_test::{Edges, Samples, Settings};
use crate::lifecycle::engine::Options;
use crate::report::is_junit;
use crate::report::{self, Answer};
use crate::side::Side;

/// Flags of `operator test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Test {
    /// Package to test
    #[arg(value_name = "PACKAGE", value_parser = NonEmptyStringValueParser::new())]
    package: String,
    /// Channels to test [default: the package's default channel]
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    channel: Vec<String>,
    /// Upgrades to test
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = EdgesFlag::All)]
    edges: EdgesFlag,
    /// Test only what has changed since an older catalog: a directory, an image or `git:REV:PATH`
    #[arg(long, value_name = "CATALOG", value_parser = side)]
    against: Option<Side>,
    /// Custom resources to apply instead of the bundles' examples: a YAML or JSON file, or a directory of them
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "no_samples")]
    samples: Option<PathBuf>,
    /// Apply no custom resources
    #[arg(long)]
    no_samples: bool,
    /// Test even if the cluster has CRDs or an operator of the package. Such CRDs are kept
    #[arg(long)]
    adopt: bool,
    /// Continue even if an image is not in its registry, such as when nodes pull it from a mirror
    #[arg(long, conflicts_with = "simulate")]
    accept_missing_images: bool,
    /// Write a JUnit report to a file, which may be an earlier report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    kind: KindFlags,
    #[command(flatten)]
    waiting: Waiting,
}

/// The cluster and the catalog.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterFlags {
    /// CatalogSource to test; required if several offer the package
    #[arg(long, value_name = "[NAMESPACE/]NAME", value_parser = catalog_source, conflicts_with_all = ["simulate", "catalog_image"])]
    catalog: Option<(String, Option<String>)>,
    /// Catalog image to test; creates a CatalogSource for it and removes it afterwards
    #[arg(long, value_name = "REFERENCE", value_parser = image_reference, conflicts_with = "simulate")]
    catalog_image: Option<String>,
    /// Directory or image to read the catalog from, if not the image of the CatalogSource; with --kind and without
    /// --catalog-image, it is pushed to the registry of the test
    #[arg(long, value_name = "CATALOG", value_parser = input)]
    catalog_from: Option<Input>,
    /// Test in seconds with OLM simulated in memory; needs --catalog-from
    #[arg(long, requires = "catalog_from", conflicts_with = "as_user")]
    simulate: bool,
    /// Directory with a subdirectory for each bundle: those of the simulated registry, or with --kind those that are pushed
    /// [default: pulled from their registries]
    #[arg(long, value_name = "DIR", requires = "catalog_from", requires = "at_hand")]
    bundles_from: Option<PathBuf>,
    /// Empty namespace to install into [default: `olmkit-test-PACKAGE`, which is created and removed]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = namespace)]
    namespace: Option<String>,
    /// Kubeconfig context [default: the current one]
    #[arg(long, value_name = "CONTEXT", conflicts_with = "simulate", value_parser = NonEmptyStringValueParser::new())]
    context: Option<String>,
    /// Kubeconfig file [default: `KUBECONFIG`, else `~/.kube/config`]
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    impersonation: ImpersonationFlags,
    #[command(flatten)]
    registry: ConnectionFlags,
}

/// What cannot be given with --kind. It is named for each flag that requires --kind too: a required flag that conflicts with another one
/// is not asked for.
const WITHOUT_KIND: [&str; 7] =
    ["simulate", "context", "kubeconfig", "catalog", "adopt", "dry_run", "as_user"];

/// A cluster that is made for the test.
#[derive(Debug, Args)]
#[command(next_help_heading = "Temporary kind cluster")]
#[command(group = ArgGroup::new("at_hand").args(["simulate", "kind"]))]
#[command(group = ArgGroup::new("kind_catalog").multiple(true).args(["catalog_image", "catalog_from"]))]
struct KindFlags {
    /// Test on a new cluster, which kind creates and deletes; OLM is installed on it. Needs --catalog-image or --catalog-from
    #[arg(long, requires = "kind_catalog", conflicts_with_all = WITHOUT_KIND)]
    kind: bool,
    /// Configuration file for kind, such as one that sets up a local registry
    #[arg(long, value_name = "FILE", requires = "kind", conflicts_with_all = WITHOUT_KIND)]
    kind_config: Option<PathBuf>,
    /// Image of its nodes, which determines the version of Kubernetes [default: the newest tested version, or what --kind-config names]
    #[arg(long, value_name = "IMAGE", requires = "kind", conflicts_with_all = WITHOUT_KIND, value_parser = image_reference)]
    kind_image: Option<String>,
    /// OLM release to install on it
    #[arg(long, value_name = "VERSION", requires = "kind", conflicts_with_all = WITHOUT_KIND, value_parser = release, default_value = "0.46.0")]
    olm_version: String,
    /// Manifests of OLM instead of a download: files, or directories with files
    #[arg(long, value_name = "FILE|DIR", requires = "kind", num_args = 1.., conflicts_with = "olm_version", conflicts_with_all = WITHOUT_KIND)]
    olm_manifests: Vec<PathBuf>,
    /// Push an image, such as that of an operator, to a registry of the test, where the nodes find it as REFERENCE; repeat for several
    #[arg(long, value_name = "REFERENCE=IMAGE", requires = "kind", conflicts_with_all = WITHOUT_KIND, value_parser = stocked)]
    push_image: Vec<(String, Place)>,
    /// Image of that registry
    #[arg(long, value_name = "REFERENCE", requires = "kind", conflicts_with_all = WITHOUT_KIND, default_value = REGISTRY)]
    registry_image: String,
    /// Keep the cluster and the registry; the first test that fails ends the run, and what is installed then stays, as after Ctrl-C
    #[arg(long, requires = "kind", conflicts_with_all = WITHOUT_KIND)]
    keep: bool,
}

/// A reference, and the image that is pushed for it.
fn stocked(text: &str) -> Result<(String, Place), String> {
    let Some((reference, place)) = text.split_once('=') else {
        return Err(
            "expected REFERENCE=IMAGE, such as `registry.example.com/app:v1=oci-archive:app.tar`".into()
        );
    };
    let reference = image_reference(reference)?;
    let place = place.parse::<Place>().map_err(|error| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })?;
    Ok((reference, place))
}

impl KindFlags {
    /// The cluster, and what its registry gets besides the images that are named here.
    fn kind(self, stock: Stock) -> Option<Kind> {
        let source = if self.olm_manifests.is_empty() {
            Source::Release(Download {
                version: self.olm_version,
                address: RELEASES.to_owned(),
                checksums: BTreeMap::new(),
            })
        } else {
            Source::Disk(self.olm_manifests)
        };
        // Other catalogs would only take time, and their packages would be in the way of resolution.
        let olm = Request { source, images: vec![], without_catalogs: true, adopt: false, keep: true };
        let stock = Stock { images: self.push_image, ..stock };
        let (config, image, keep) = (self.kind_config, self.kind_image, self.keep);
        let registry_image = self.registry_image;
        self.kind.then_some(Kind { config, image, olm, keep, stock, registry_image })
    }
}

/// Timeouts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Waiting")]
struct Waiting {
    /// Print the tests without running them
    #[arg(long)]
    dry_run: bool,
    /// Timeout for the whole command: seconds, or a number with `s`, `m` or `h`; with --simulate, by the simulated clock too
    /// [default: 2h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Timeout for each installation and each hop
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    step_timeout: Duration,
    /// How long custom resources may take to settle, and conditions to recover, after a hop
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero, default_value = "2m")]
    sample_timeout: Duration,
    /// How long a version must stay healthy, and custom resources unchanged [default: 5s, or half of a shorter --step-timeout]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    settle: Option<Duration>,
}

/// How long a version must stay healthy where nobody says.
const SETTLE: Duration = Duration::from_secs(5);

impl Waiting {
    fn settle(&self) -> Result<Duration, Failure> {
        match self.settle {
            Some(settle) if settle >= self.step_timeout => {
                Err(Failure::usage("--settle must be shorter than --step-timeout")
                    .help("pass a shorter --settle or a longer --step-timeout"))
            }
            Some(settle) => Ok(settle),
            None => Ok(SETTLE.min(self.step_timeout / 2)),
        }
    }
}

/// An older catalog.
fn side(text: &str) -> Result<Side, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    text.parse::<Side>().map_err(|error| error.to_string())
}

/// Which upgrades are tested.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum EdgesFlag {
    /// Every edge that OLM takes, and the upgrade path from every version to the head
    All,
    /// The head, and the edges that end at it
    Heads,
    /// One hop from every version
    Adjacent,
}

impl From<EdgesFlag> for Edges {
    fn from(flag: EdgesFlag) -> Self {
        match flag {
            EdgesFlag::All => Self::All,
            EdgesFlag::Heads => Self::Heads,
            EdgesFlag::Adjacent => Self::Adjacent,
        }
    }
}

const EXAMPLES: &str = "\
Exit code 0 if all tests passed, 1 if one failed, 2 if none was begun.

Examples:
  olmkit operator test redis-operator --simulate --catalog-from catalog --bundles-from bundles
  olmkit operator test redis-operator --catalog olm/redis-catalog --junit report.xml
  olmkit operator test redis-operator --catalog-image registry.example.com/team/catalog:v2 --channel stable,fast
  olmkit operator test redis-operator --catalog-image registry.example.com/team/catalog:v2 --kind
  olmkit operator test redis-operator --catalog-from catalog --bundles-from bundles --kind
  olmkit operator test redis-operator --simulate --catalog-from catalog --against git:main:catalog --output markdown";

/// The longest name of a namespace.
const MAX_NAMESPACE: usize = 63;

impl Test {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let Self { cluster, waiting, .. } = self;
        let settle = waiting.settle()?;
        let junit = self.junit.as_deref();
        let junit = junit.map(|path| ReportFile::check(path, "a JUnit report", is_junit)).transpose()?;
        let own: String =
            format!("olmkit-test-{}", self.package.replace('.', "-")).chars().take(MAX_NAMESPACE).collect();
        let own = own.trim_end_matches('-').to_owned();
        if let Err(why) = namespace(&own)
            && cluster.namespace.is_none()
        {
            return Err(Failure::usage(format!("`{}` is not the name of a package: {why}", self.package))
                .help("`olmkit catalog list packages CATALOG` shows those of a catalog"));
        }
        let access = cluster.registry.clone().access(Some(waiting.timeout.unwrap_or(TIMEOUT)), false)?;
        let settings = Settings {
            package: self.package,
            catalog: cluster.catalog,
            catalog_image: cluster.catalog_image.clone(),
            catalog_dir: None,
            channels: self.channel,
            namespace: cluster.namespace.unwrap_or(own),
            edges: self.edges.into(),
            against: None,
            adopt: self.adopt,
            samples: if self.no_samples { Samples::None } else { Samples::Examples },
            sample_timeout: waiting.sample_timeout,
            step: Options {
                timeout: waiting.step_timeout,
                settle,
                wait: true,
                dry_run: waiting.dry_run,
                ..Options::default()
            },
            accept_missing_images: self.accept_missing_images,
            keep_failed: false,
            simulated: cluster.simulate,
        };
        let stock = Stock {
            catalog: cluster.catalog_from.clone(),
            push_catalog: cluster.catalog_image.is_none(),
            bundles: cluster.bundles_from.clone(),
            images: Vec::new(),
        };
        let target = Target {
            context: cluster.context,
            kubeconfig: cluster.kubeconfig,
            impersonation: cluster.impersonation.into(),
            catalog_from: cluster.catalog_from,
            bundles_from: cluster.bundles_from,
            ..Target::default()
        };
        let request = ChannelTest {
            settings,
            simulate: cluster.simulate,
            target,
            kind: self.kind.kind(stock),
            against: self.against,
            samples: self.samples,
            dry_run: waiting.dry_run,
            timeout: waiting.timeout,
        };
        let spectator = report::channel_tests();
        let making = report::operators();
        let mut tested = channel_test::run(request, &access, spectator.as_ref(), making.as_ref())?;
        if let Some(file) = junit.filter(|_| !waiting.dry_run) {
            tested.unwritten = file.write(tested.junit().as_bytes()).err().map(Failure::from);
        }
        Ok(Box::new(tested))
    }
}
