//! `olmkit operator …`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use super::registry::duration;
use crate::actions::operator::{self, NewBundle, Target};
use crate::exit::Failure;
use crate::files;
use crate::image::Access;
use crate::input::Input;
use crate::lifecycle::api;
use crate::lifecycle::engine::Options;
use crate::lifecycle::install;
use crate::lifecycle::rollback;
use crate::lifecycle::uninstall;
use crate::lifecycle::upgrade;
use crate::report::{self, Answer};

/// What to do with operators on a cluster.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Install an operator from a catalog and wait until it is up
    Install(Box<Install>),
    /// Upgrade an operator hop by hop along its channel
    Upgrade(Box<Upgrade>),
    /// Approve the plan that waits, if it carries what is expected
    Approve(Approve),
    /// List operators with their versions, phases and channels
    List(List),
    /// Show everything about an operator
    Describe(Named),
    /// Show how an operator is; exit code 1 when it is not well
    Status(Named),
    /// Remove an operator, and say what is kept and why
    Uninstall(Uninstall),
    /// Go back to an older version by installing it anew
    Rollback(Rollback),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let (verb, cluster, waiting) = match self {
            Self::Install(flags) => {
                let Install { cluster, waiting, .. } = &*flags;
                let parts = (cluster.clone(), waiting.clone());
                let (request, bundle) = flags.request()?;
                (operator::Verb::Install { request: Box::new(request), bundle }, parts.0, parts.1)
            }
            Self::Upgrade(flags) => {
                let Upgrade { name, to, channel, approval, accept, cluster, waiting } = *flags;
                let request = upgrade::Upgrade {
                    name,
                    namespace: cluster.namespace.clone(),
                    to,
                    channel,
                    approval: approval.map(Into::into),
                    accept: accept.into_iter().collect(),
                };
                (operator::Verb::Upgrade(request), cluster, waiting)
            }
            Self::Approve(Approve { name, accept, cluster, waiting }) => {
                let accept: BTreeSet<String> = accept.into_iter().collect();
                let namespace = cluster.namespace.clone();
                (operator::Verb::Approve { name, namespace, accept }, cluster, waiting)
            }
            Self::List(List { all_namespaces, cluster }) => {
                let namespace = cluster.namespace.clone().filter(|_| !all_namespaces);
                (operator::Verb::List { namespace }, cluster, Waiting::default())
            }
            Self::Describe(Named { name, cluster }) => {
                let namespace = cluster.namespace.clone();
                (operator::Verb::Describe { name, namespace }, cluster, Waiting::default())
            }
            Self::Status(Named { name, cluster }) => {
                let namespace = cluster.namespace.clone();
                (operator::Verb::Status { name, namespace }, cluster, Waiting::default())
            }
            Self::Uninstall(Uninstall { name, delete_crds, accept_conversion_gap, cluster, waiting }) => {
                let namespace = cluster.namespace.clone();
                let request = uninstall::Uninstall { name, namespace, delete_crds, accept_conversion_gap };
                (operator::Verb::Uninstall(request), cluster, waiting)
            }
            Self::Rollback(flags) => {
                let Rollback {
                    name,
                    to,
                    backup_dir,
                    accept_conversion_gap,
                    accept_unchecked,
                    cluster,
                    waiting,
                } = flags;
                let namespace = cluster.namespace.clone();
                let request =
                    rollback::Rollback { name, namespace, to, accept_conversion_gap, accept_unchecked };
                (operator::Verb::Rollback { request, backup: backup_dir }, cluster, waiting)
            }
        };
        let options = waiting.options();
        let progress = report::operators();
        Ok(Box::new(operator::run(
            &cluster.target(),
            &verb,
            &options,
            &Access::default(),
            progress.as_ref(),
        )?))
    }
}

/// Which cluster it is about.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterFlags {
    /// The operator's namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Contexts of the kubeconfig, each a cluster; the current one when absent
    #[arg(long, value_name = "CONTEXT", value_delimiter = ',', conflicts_with = "simulate")]
    context: Vec<String>,
    /// The kubeconfig; `KUBECONFIG` or `~/.kube/config` when absent
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    kubeconfig: Option<PathBuf>,
    /// OLM in memory instead of a cluster; the file keeps its state between two commands. Several are several clusters
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    simulate: Vec<PathBuf>,
    /// Where the catalog is read, when that is another place than the CatalogSource names: a directory, or an image. A
    /// simulated cluster gets a CatalogSource for it
    #[arg(long, value_name = "CATALOG")]
    catalog_from: Option<Input>,
    /// The directory with the bundles of a simulated registry, each in a directory of its own
    #[arg(long, value_name = "DIR", requires = "simulate")]
    bundles_from: Option<PathBuf>,
}

impl ClusterFlags {
    fn target(self) -> Target {
        Target {
            contexts: self.context,
            kubeconfig: self.kubeconfig,
            simulate: self.simulate,
            catalog_from: self.catalog_from,
            bundles_from: self.bundles_from,
        }
    }
}

/// How long to wait, and whether anything is written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Waiting")]
struct Waiting {
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait until the operator is where it should be; `--wait=false` does what is to be done now and leaves the rest to OLM
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait at most: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    timeout: Duration,
    /// How long the last version has to stay well
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    settle: Duration,
}

impl Default for Waiting {
    fn default() -> Self {
        let Options { timeout, settle, wait, dry_run } = Options::default();
        Self { dry_run, wait, timeout, settle }
    }
}

impl Waiting {
    fn options(self) -> Options {
        Options { timeout: self.timeout, settle: self.settle, wait: self.wait, dry_run: self.dry_run }
    }
}

/// Who says yes to plans.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ApprovalFlag {
    /// OLM does, at once
    #[value(name = "Automatic", alias = "automatic")]
    Automatic,
    /// Somebody has to
    #[value(name = "Manual", alias = "manual")]
    Manual,
}

impl From<ApprovalFlag> for api::Approval {
    fn from(flag: ApprovalFlag) -> Self {
        match flag {
            ApprovalFlag::Automatic => Self::Automatic,
            ApprovalFlag::Manual => Self::Manual,
        }
    }
}

/// Flags of `operator install`.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct Install {
    /// The package
    #[arg(value_name = "PACKAGE", required_unless_present = "bundle", conflicts_with = "bundle")]
    package: Option<String>,
    /// A bundle that no catalog has yet: a catalog of it alone is made, with the edges that it names itself, and served until
    /// `uninstall`. Over an older version that came the same way it is an upgrade
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["catalog", "catalog_from", "version"])]
    bundle: Option<Input>,
    /// The repository that the bundle's catalog is pushed to, and the bundle itself if it is in no registry. The cluster has to
    /// reach it under the same name
    #[arg(long, value_name = "REPOSITORY", requires = "bundle")]
    push_to: Option<String>,
    /// The Subscription's name; the package's when absent
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The CatalogSource; needed when several offer the package
    #[arg(long, value_name = "NAME[/NAMESPACE]")]
    catalog: Option<String>,
    /// The channel; the package's default when absent
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// The version to install; the channel's head when absent. With a version the approval is Manual unless said otherwise
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Who says yes to upgrades
    #[arg(long, value_enum, value_name = "WHO")]
    approval: Option<ApprovalFlag>,
    /// The namespaces that the operator is to watch, `*` for all; used when the namespace has no OperatorGroup yet
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    watch: Vec<String>,
    /// A YAML file with what is changed in the operator's pods, as `spec.config` of a Subscription
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// ClusterServiceVersions of other Subscriptions that the plan may carry too
    #[arg(long, value_name = "CSV", value_delimiter = ',')]
    accept: Vec<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  olmkit operator install redis-operator -n redis
  olmkit operator install redis-operator -n redis --channel stable --version 0.1.0
  olmkit operator install --bundle bundle -n redis --push-to registry.example.com/me/try
  olmkit operator install redis-operator -n redis --simulate cluster.json --catalog-from catalog --bundles-from bundles";

impl Install {
    fn request(&self) -> Result<(install::Install, Option<NewBundle>), Failure> {
        let namespace = self.cluster.namespace.clone().ok_or_else(|| {
            Failure::misuse("it is not said where the operator is to run").help("name the namespace with -n")
        })?;
        let catalog = self.catalog.as_ref().map(|text| match text.split_once('/') {
            Some((name, namespace)) => (name.to_owned(), Some(namespace.to_owned())),
            None => (text.clone(), None),
        });
        let watch = (!self.watch.is_empty())
            .then(|| if self.watch == ["*"] { Vec::new() } else { self.watch.clone() });
        let bundle = self.bundle.clone().map(|input| NewBundle { input, push_to: self.push_to.clone() });
        let request = install::Install {
            throw_away: None,
            package: self.package.clone().unwrap_or_default(),
            namespace,
            name: self.name.clone(),
            catalog,
            channel: self.channel.clone(),
            version: self.version.clone(),
            approval: self.approval.map(Into::into),
            watch,
            config: self.config.as_deref().map(config).transpose()?,
            accept: self.accept.iter().cloned().collect(),
        };
        Ok((request, bundle))
    }
}

/// What a file says of the operator's pods.
fn config(path: &std::path::Path) -> Result<Value, Failure> {
    let text = files::read_text(path)?;
    let document = olmkit_bundle::yaml::first_document(&text).map_err(Failure::unknown)?;
    let value = document.root.to_json();
    if value.is_object() {
        return Ok(value);
    }
    Err(Failure::misuse(format!("`{}` is not a map", path.display()))
        .help("write it as `spec.config` of a Subscription"))
}

/// Flags of `operator upgrade`.
#[derive(Debug, Args)]
#[command(after_help = UPGRADE_EXAMPLES)]
pub struct Upgrade {
    /// The Subscription, or the package when just one has it
    #[arg(value_name = "NAME")]
    name: String,
    /// The version to stop at; the channel's head when absent
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// The channel to switch to
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Change who says yes to plans; alone it changes nothing else
    #[arg(long, value_enum, value_name = "WHO")]
    approval: Option<ApprovalFlag>,
    /// ClusterServiceVersions of other Subscriptions that a plan may carry too
    #[arg(long, value_name = "CSV", value_delimiter = ',')]
    accept: Vec<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

const UPGRADE_EXAMPLES: &str = "\
Examples:
  olmkit operator upgrade redis-operator -n redis
  olmkit operator upgrade redis-operator -n redis --to 0.2.1
  olmkit operator upgrade redis-operator -n redis --channel fast";

/// Flags of `operator approve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit operator approve redis-operator -n redis")]
pub struct Approve {
    /// The Subscription, or the package when just one has it
    #[arg(value_name = "NAME")]
    name: String,
    /// ClusterServiceVersions of other Subscriptions that the plan may carry too
    #[arg(long, value_name = "CSV", value_delimiter = ',')]
    accept: Vec<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

/// Flags of `operator list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit operator list -A")]
pub struct List {
    /// Of all namespaces, which is also so when none is named
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Flags of `operator status` and `operator describe`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  olmkit operator status redis-operator -n redis\n  olmkit operator describe redis-operator -n redis"
)]
pub struct Named {
    /// The Subscription, or the package when just one has it
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Flags of `operator uninstall`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  olmkit operator uninstall redis-operator -n redis --dry-run\n  olmkit operator uninstall redis-operator -n redis --delete-crds"
)]
pub struct Uninstall {
    /// The Subscription, or the package when just one has it
    #[arg(value_name = "NAME")]
    name: String,
    /// Remove the custom resources and the CRDs that the operator owns as well
    #[arg(long)]
    delete_crds: bool,
    /// Leave custom resources though the webhook that converts them goes
    #[arg(long)]
    accept_conversion_gap: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

/// Flags of `operator rollback`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit operator rollback redis-operator -n redis --to 0.2.1")]
pub struct Rollback {
    /// The Subscription, or the package when just one has it
    #[arg(value_name = "NAME")]
    name: String,
    /// The version to go back to
    #[arg(long, value_name = "VERSION")]
    to: String,
    /// Where the custom resources are kept before anything is changed
    #[arg(long, value_name = "DIR", default_value = "olmkit-backup")]
    backup_dir: PathBuf,
    /// Go on though custom resources are without the webhook that converts them meanwhile
    #[arg(long)]
    accept_conversion_gap: bool,
    /// Go on though the old schema has rules that are not evaluated here
    #[arg(long)]
    accept_unchecked: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}
