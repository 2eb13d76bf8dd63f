//! `olmkit operator …`

mod channel_test;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use olmkit_bundle::names::{check_label, check_subdomain};
use serde_json::Value;

use super::impersonation::ImpersonationFlags;
use super::registry::{ConnectionFlags, duration, duration_or_zero};
use crate::actions::doctor;
use crate::actions::operator::{self, NewBundle, Target};
use crate::exit::Failure;
use crate::files;
use crate::image::Place;
use crate::input::Input;
use crate::lifecycle::api;
use crate::lifecycle::api::pod_config::{self, PodConfig, PodConfigError};
use crate::lifecycle::decide::Accept;
use crate::lifecycle::doctor::Scope;
use crate::lifecycle::engine::Options;
use crate::lifecycle::install;
use crate::lifecycle::policy::Policy;
use crate::lifecycle::rollback;
use crate::lifecycle::uninstall;
use crate::lifecycle::upgrade;
use crate::limits::Limits;
use crate::report::{self, Answer, Format};

/// What to do with operators on a cluster.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Install an operator from a catalog and wait until it is ready
    Install(Box<Install>),
    /// Upgrade an operator hop by hop along its channel
    Upgrade(Box<Upgrade>),
    /// Approve the pending InstallPlan if it contains what is expected
    Approve(Approve),
    /// Show what the pending InstallPlan will change on this cluster
    Plan(Plan),
    /// List operators with their versions, phases and channels
    List(List),
    /// Show details of an operator
    Describe(Named),
    /// Show the health of an operator; exit code 1 if it is unhealthy
    Status(Named),
    /// Show a live table of operators, and why each stuck one is stuck
    Watch(Watch),
    /// Explain why operators are stuck, and how to repair them
    Doctor(Doctor),
    /// Remove an operator; lists what is kept and why
    Uninstall(Uninstall),
    /// Return to an older version by reinstalling it
    Rollback(Rollback),
    /// Test the upgrades of a channel: install every version, walk every edge, compare custom resources
    Test(Box<channel_test::Test>),
}

impl Verb {
    /// Whether it changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::Plan(_)
                | Self::List(_)
                | Self::Describe(_)
                | Self::Status(_)
                | Self::Watch(_)
                | Self::Doctor(_)
        )
    }

    /// Whether it computes from files alone, in place of a cluster, and ends by itself. Tests have a bound of their own, by installs.
    pub(super) fn only_computes(&self) -> bool {
        let cluster = match self {
            Self::Watch(_) | Self::Test(_) => return false,
            Self::Doctor(flags) if !flags.from.is_empty() => return true,
            Self::Doctor(flags) => &flags.cluster,
            Self::Plan(flags) => &flags.cluster,
            Self::List(flags) => &flags.cluster,
            Self::Describe(flags) | Self::Status(flags) => &flags.cluster,
            Self::Install(flags) => &flags.cluster,
            Self::Upgrade(flags) => &flags.cluster,
            Self::Approve(flags) => &flags.cluster,
            Self::Uninstall(flags) => &flags.cluster,
            Self::Rollback(flags) => &flags.cluster,
        };
        cluster.simulate.is_some()
    }

    /// Whether it tests, and its answer can be a report of tests.
    pub(super) fn is_test(&self) -> bool {
        matches!(self, Self::Test(_))
    }

    pub(super) fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
        let mut all_namespaces = false;
        let mut watched = None;
        let (verb, cluster, waiting) = match self {
            Self::Test(flags) => return flags.run(),
            Self::Install(flags) => {
                let Install { cluster, waiting, .. } = &*flags;
                let parts = (cluster.clone(), waiting.clone());
                let (request, bundle) = flags.request()?;
                (operator::Verb::Install { request: Box::new(request), bundle }, parts.0, parts.1)
            }
            Self::Upgrade(flags) => {
                let Upgrade { name, to, channel, approval, accept, images, cluster, waiting } = *flags;
                let (name, cluster) = cluster.placed(name)?;
                let request = upgrade::Upgrade {
                    name,
                    namespace: cluster.namespace.clone(),
                    to,
                    channel,
                    approval: approval.map(Into::into),
                    accept: accept.into(),
                    accept_missing_images: images.accept_missing_images,
                };
                (operator::Verb::Upgrade(request), cluster, waiting)
            }
            Self::Approve(Approve { name, policy, accept, cluster, waiting }) => {
                let (name, cluster) = cluster.placed(name)?;
                let namespace = cluster.namespace.clone();
                let policy = policy.as_deref().map(read_policy).transpose()?;
                (operator::Verb::Approve { name, namespace, accept: accept.into(), policy }, cluster, waiting)
            }
            Self::Plan(Plan { name, policy, reading, cluster }) => {
                let (name, cluster) = reading.placed(name, cluster)?;
                let namespace = reading.namespace(&cluster);
                all_namespaces = reading.all_namespaces;
                let policy = policy.as_deref().map(read_policy).transpose()?;
                (operator::Verb::Plan { name, namespace, policy }, cluster, reading.waiting())
            }
            Self::List(List { reading, cluster }) => {
                let namespace = reading.namespace(&cluster);
                all_namespaces = reading.all_namespaces;
                (operator::Verb::List { namespace }, cluster, reading.waiting())
            }
            Self::Watch(Watch { all_namespaces: all, interval, cluster }) => {
                let namespace = cluster.namespace.clone().filter(|_| !all);
                all_namespaces = all;
                watched = Some(output);
                // It ends when somebody ends it.
                let waiting = Waiting { timeout: FOREVER, ..Waiting::default() };
                (operator::Verb::Watch { namespace, interval }, cluster, waiting)
            }
            Self::Describe(Named { name, reading, cluster }) => {
                let (name, cluster) = reading.placed(name, cluster)?;
                let namespace = reading.namespace(&cluster);
                all_namespaces = reading.all_namespaces;
                (operator::Verb::Describe { name, namespace }, cluster, reading.waiting())
            }
            Self::Status(Named { name, reading, cluster }) => {
                let (name, cluster) = reading.placed(name, cluster)?;
                let namespace = reading.namespace(&cluster);
                all_namespaces = reading.all_namespaces;
                (operator::Verb::Status { name, namespace }, cluster, reading.waiting())
            }
            Self::Doctor(Doctor { name, from, at, fix, dry_run, reading, cluster }) => {
                let (name, from) = name_after_files(name, from);
                let (name, cluster) = match name {
                    Some(name) => {
                        reading.placed(name, cluster).map(|(name, cluster)| (Some(name), cluster))?
                    }
                    None => (None, cluster),
                };
                let namespace = reading.namespace(&cluster);
                if !from.is_empty() {
                    let limits = Limits::begin(reading.timeout);
                    let diagnosis = doctor::from_files(&from, at, &Scope { name, namespace }, limits)?;
                    return Ok(Box::new(diagnosis));
                }
                all_namespaces = reading.all_namespaces;
                let waiting = Waiting { dry_run, ..reading.waiting() };
                (operator::Verb::Doctor { name, namespace, fix }, cluster, waiting)
            }
            Self::Uninstall(flags) => {
                let (name, cluster) = flags.cluster.clone().placed(flags.name.clone())?;
                let request = flags.request(name, cluster.namespace.clone());
                (operator::Verb::Uninstall(request), cluster, flags.waiting)
            }
            Self::Rollback(flags) => {
                let Rollback {
                    name,
                    to,
                    backup_dir,
                    accept_conversion_gap,
                    accept_unchecked,
                    accept,
                    cluster,
                    waiting,
                } = flags;
                let (name, cluster) = cluster.placed(name)?;
                let request = rollback::Rollback {
                    name,
                    namespace: cluster.namespace.clone(),
                    to,
                    accept_conversion_gap,
                    accept_unchecked,
                    accept: accept.into(),
                };
                (operator::Verb::Rollback { request, backup: backup_dir }, cluster, waiting)
            }
        };
        let options = waiting.options()?;
        let access = cluster.registry.clone().access(Some(options.timeout), false)?;
        let progress = match watched {
            Some(output) => report::watched(output),
            None => report::operators(),
        };
        let target = Target { all_namespaces, ..cluster.target() };
        Ok(Box::new(operator::run(&target, &verb, &options, &access, progress.as_ref())?))
    }
}

/// The cluster to work on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct ClusterFlags {
    /// Namespace of the operator [default: that of the context; without one, verbs other than `install` search all]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = namespace)]
    pub(super) namespace: Option<String>,
    /// Kubeconfig context [default: the current one]
    #[arg(long, value_name = "CONTEXT", conflicts_with = "simulate", value_parser = NonEmptyStringValueParser::new())]
    context: Option<String>,
    /// Kubeconfig file [default: `KUBECONFIG`, else `~/.kube/config`]
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    impersonation: ImpersonationFlags,
    /// Simulate OLM in memory instead of using a cluster; the file keeps the state between commands
    #[arg(long, value_name = "FILE", conflicts_with = "as_user")]
    pub(super) simulate: Option<PathBuf>,
    /// Directory or image to read the catalog from, if not the image of the CatalogSource. A simulated cluster gets a
    /// CatalogSource for it
    #[arg(long, value_name = "CATALOG", value_parser = input)]
    pub(super) catalog_from: Option<Input>,
    /// Bundles of the simulated registry: a directory with a subdirectory for each
    #[arg(long, value_name = "DIR", requires = "simulate", conflicts_with_all = ["context", "kubeconfig"])]
    bundles_from: Option<PathBuf>,
    #[command(flatten)]
    pub(super) registry: ConnectionFlags,
}

impl ClusterFlags {
    /// The name of an object, and the flags with the namespace that stands before it: `NAMESPACE/NAME`, as `list` prints it. A kind, as in
    /// `subscription/NAME`, says nothing new.
    pub(super) fn placed(mut self, text: String) -> Result<(String, Self), Failure> {
        const KINDS: [&str; 6] =
            ["subscription", "subscriptions", "sub", "clusterserviceversion", "csv", "catalogsource"];
        let Some((before, name)) = text.split_once('/') else { return Ok((text, self)) };
        let wrong = |what: String| Failure::usage(what).help("name it as NAME or as NAMESPACE/NAME");
        if name.is_empty() || name.contains('/') {
            return Err(wrong(format!("`{text}` is not a name")));
        }
        if KINDS.contains(&before.split('.').next().unwrap_or_default()) {
            return Ok((name.to_owned(), self));
        }
        let before =
            namespace(before).map_err(|why| wrong(format!("`{before}` is not a namespace: {why}")))?;
        if let Some(other) = self.namespace.as_ref().filter(|other| **other != before) {
            return Err(Failure::usage(format!(
                "`{text}` is in the namespace `{before}`, and -n names `{other}`"
            ))
            .help("leave -n out"));
        }
        self.namespace = Some(before);
        Ok((name.to_owned(), self))
    }

    pub(super) fn target(self) -> Target {
        Target {
            context: self.context,
            all_namespaces: false,
            kubeconfig: self.kubeconfig,
            impersonation: self.impersonation.into(),
            simulate: self.simulate,
            catalog_from: self.catalog_from,
            bundles_from: self.bundles_from,
        }
    }
}

/// Flags of verbs that only read.
#[derive(Debug, Clone, Args)]
pub(super) struct Reading {
    /// Search all namespaces
    #[arg(short = 'A', long, help_heading = "Cluster", conflicts_with = "namespace")]
    pub(super) all_namespaces: bool,
    /// Timeout for the cluster and its registries: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1m", help_heading = "Waiting")]
    timeout: Duration,
}

impl Reading {
    /// As [`ClusterFlags::placed`]; a namespace that is named is not all of them.
    fn placed(&self, text: String, cluster: ClusterFlags) -> Result<(String, ClusterFlags), Failure> {
        let (name, cluster) = cluster.placed(text)?;
        if let Some(namespace) = cluster.namespace.as_ref().filter(|_| self.all_namespaces) {
            return Err(Failure::usage(format!(
                "-A searches all namespaces, and `{namespace}/{name}` names one"
            ))
            .help("leave -A out"));
        }
        Ok((name, cluster))
    }

    pub(super) fn namespace(&self, cluster: &ClusterFlags) -> Option<String> {
        cluster.namespace.clone().filter(|_| !self.all_namespaces)
    }

    pub(super) fn waiting(&self) -> Waiting {
        Waiting { timeout: self.timeout, ..Waiting::default() }
    }
}

/// Waiting and dry runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Waiting")]
pub(super) struct Waiting {
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Wait until the command has reached its goal; `--wait=false` returns after submitting the changes
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// Timeout for the whole command: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    timeout: Duration,
    /// How long a version that the command leads to must stay healthy; 0 to return as soon as it is up [default: 10s, or half of a shorter --timeout]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    settle: Option<Duration>,
}

impl Default for Waiting {
    fn default() -> Self {
        let Options { timeout, wait, dry_run, .. } = Options::default();
        Self { dry_run, wait, timeout, settle: None }
    }
}

impl Waiting {
    pub(super) fn options(self) -> Result<Options, Failure> {
        let Self { dry_run, wait, timeout, settle } = self;
        let settle = match settle {
            Some(settle) if wait && settle >= timeout => {
                let error = format!(
                    "--settle ({} s) must be shorter than --timeout ({} s)",
                    settle.as_secs(),
                    timeout.as_secs()
                );
                return Err(Failure::usage(error).help("pass a shorter --settle or a longer --timeout"));
            }
            Some(settle) => settle,
            None => Options::default().settle.min(timeout / 2),
        };
        Ok(Options { timeout, settle, wait, dry_run, ..Options::default() })
    }
}

/// What an InstallPlan may contain besides the bundle.
#[derive(Debug, Clone, Default, Args)]
struct AcceptFlags {
    /// ClusterServiceVersions that the InstallPlan may also contain: dependencies, or those of other Subscriptions; or the code of a
    /// blocker to go on nevertheless, such as `kubernetes-too-old`
    #[arg(long, value_name = "CSV|CODE", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    accept: Vec<String>,
    /// Approve the InstallPlan with all dependencies that OLM adds to it
    #[arg(long)]
    accept_dependencies: bool,
}

impl From<AcceptFlags> for Accept {
    fn from(flags: AcceptFlags) -> Self {
        Self { dependencies: flags.accept_dependencies, ..Self::named(flags.accept) }
    }
}

/// Checks of images.
#[derive(Debug, Clone, Args)]
struct ImageFlags {
    /// Continue even if an image is not in its registry, such as when nodes pull it from a mirror
    #[arg(long)]
    accept_missing_images: bool,
}

/// Approval mode for InstallPlans.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ApprovalFlag {
    /// OLM approves upgrades itself
    #[value(name = "Automatic", alias = "automatic")]
    Automatic,
    /// Wait for explicit approval
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
    /// Package to install
    #[arg(value_name = "PACKAGE", required_unless_present = "bundle", conflicts_with = "bundle", value_parser = NonEmptyStringValueParser::new())]
    package: Option<String>,
    /// Bundle that is in no catalog yet: creates a temporary catalog with just this bundle, which is served until
    /// `uninstall`. Upgrades an older version that was installed the same way
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["catalog", "catalog_from", "version"], value_parser = input)]
    bundle: Option<Input>,
    /// Repository to push the temporary catalog to, and the bundle if it is in no registry yet. The cluster must be
    /// able to pull from it under the same name
    #[arg(long, value_name = "REPOSITORY", requires = "bundle", conflicts_with = "package", value_parser = repository)]
    push_to: Option<String>,
    /// Name of the Subscription [default: the package's name]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    name: Option<String>,
    /// CatalogSource to install from; required if several offer the package
    #[arg(long, value_name = "[NAMESPACE/]NAME", value_parser = catalog_source)]
    catalog: Option<(String, Option<String>)>,
    /// Channel to subscribe to [default: the package's default channel]
    #[arg(long, value_name = "CHANNEL", value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    /// Version to install [default: the channel's head]. Below the head the approval mode is Manual, so that OLM stays there
    #[arg(long, value_name = "VERSION", value_parser = NonEmptyStringValueParser::new())]
    version: Option<String>,
    /// Approval mode for upgrades
    #[arg(long, value_enum, value_name = "WHO")]
    approval: Option<ApprovalFlag>,
    /// Namespaces for the operator to watch, `*` for all; used if the namespace has no OperatorGroup yet
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', value_parser = watched)]
    watch: Vec<String>,
    /// YAML file with settings of the operator's pods, as `spec.config` of a Subscription
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Continue even if the bundle's CRD is older than the one that other operators or custom resources use
    #[arg(long)]
    accept_crd_downgrade: bool,
    #[command(flatten)]
    accept: AcceptFlags,
    #[command(flatten)]
    images: ImageFlags,
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
        let namespace = self.cluster.namespace.clone().unwrap_or_default();
        if self.watch.len() > 1 && self.watch.iter().any(|namespace| namespace == "*") {
            return Err(Failure::usage("`*` cannot be combined with other namespaces")
                .help("pass only `--watch '*'`, or name the namespaces"));
        }
        let watch = (!self.watch.is_empty())
            .then(|| if self.watch == ["*"] { Vec::new() } else { self.watch.clone() });
        if self.push_to.is_some() && self.cluster.simulate.is_some() {
            return Err(Failure::usage(
                "a simulated cluster pulls from no registry, so --push-to cannot be used",
            )
            .help("omit --push-to"));
        }
        let bundle = self.bundle.clone().map(|input| NewBundle { input, push_to: self.push_to.clone() });
        let request = install::Install {
            throw_away: None,
            package: self.package.clone().unwrap_or_default(),
            namespace,
            name: self.name.clone(),
            catalog: self.catalog.clone(),
            channel: self.channel.clone(),
            version: self.version.clone(),
            approval: self.approval.map(Into::into),
            watch,
            config: self.config.as_deref().map(|path| config(path, pod_config::SUBSCRIPTION)).transpose()?,
            accept: self.accept.clone().into(),
            accept_missing_images: self.images.accept_missing_images,
            accept_crd_downgrade: self.accept_crd_downgrade,
        };
        Ok((request, bundle))
    }
}

/// Name of a namespace.
fn namespace(text: &str) -> Result<String, String> {
    check_label(text).map(|()| text.to_owned()).map_err(str::to_owned)
}

/// Name of a namespace, or `*` for all.
fn watched(text: &str) -> Result<String, String> {
    if text == "*" { Ok(text.to_owned()) } else { namespace(text) }
}

/// An image as a cluster pulls it: of a registry, which is Docker Hub where none is named.
pub(super) fn image_reference(text: &str) -> Result<String, String> {
    let place = format!("docker://{}", text.trim_start_matches("docker://")).parse::<Place>();
    place.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A bundle or a catalog; an empty text would be a directory without a name.
pub(super) fn input(text: &str) -> Result<Input, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    text.parse::<Input>().map_err(|error| error.to_string())
}

/// Name of an object.
pub(super) fn object_name(text: &str) -> Result<String, String> {
    check_subdomain(text).map(|()| text.to_owned()).map_err(str::to_owned)
}

/// Name of a CatalogSource, with its namespace if given.
fn catalog_source(text: &str) -> Result<(String, Option<String>), String> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [name] if !name.is_empty() => Ok((name.to_owned(), None)),
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok((name.to_owned(), Some(namespace.to_owned())))
        }
        _ => Err("expected `NAME` or `NAMESPACE/NAME`".into()),
    }
}

/// A repository of a registry: the cluster pulls from nowhere else.
fn repository(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(Place::Registry(_)) => Ok(text.to_owned()),
        _ => Err("expected a repository of a registry, such as `registry.example.com/me/try`".into()),
    }
}

/// Reads settings of pods from a file; `field` is what it stands for.
pub(super) fn config(path: &std::path::Path, known: PodConfig) -> Result<Value, Failure> {
    let text = files::read_text(path)?;
    let document = olmkit_bundle::yaml::first_document(&text).map_err(Failure::incomplete)?;
    let value = document.root.to_json();
    if !value.is_object() {
        return Err(Failure::usage(format!("`{}` is not a map", path.display()))
            .help(format!("write it as {}", known.field)));
    }
    known.check(&value).map_err(|error| {
        let help = match &error {
            PodConfigError::Unknown { help, .. } => help.clone(),
            _ => format!("write it as in {}", known.field),
        };
        Failure::usage(error).help(format!("{help} (in `{}`)", path.display()))
    })?;
    Ok(value)
}

/// Flags of `operator upgrade`.
#[derive(Debug, Args)]
#[command(after_help = UPGRADE_EXAMPLES)]
pub struct Upgrade {
    /// Subscription, or its package or installed version if only one Subscription has it; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Version to stop at [default: the channel's head]
    #[arg(long, value_name = "VERSION", value_parser = NonEmptyStringValueParser::new())]
    to: Option<String>,
    /// Channel to switch to
    #[arg(long, value_name = "CHANNEL", value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    /// Change the approval mode; without other flags, nothing else is changed
    #[arg(long, value_enum, value_name = "WHO")]
    approval: Option<ApprovalFlag>,
    #[command(flatten)]
    accept: AcceptFlags,
    #[command(flatten)]
    images: ImageFlags,
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
#[command(
    after_help = "Examples:\n  olmkit operator approve redis-operator -n redis\n  olmkit operator approve redis-operator -n redis --policy policy.yaml"
)]
pub struct Approve {
    /// Subscription, or its package or installed version if only one Subscription has it; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// YAML file that says what an InstallPlan may change; one that does not meet it is not approved
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    accept: AcceptFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

/// Flags of `operator plan`.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct Plan {
    /// Subscription, or its package or installed version if only one Subscription has it; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// YAML file that says what an InstallPlan may change; exit code 1 if the plan does not meet it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const PLAN_EXAMPLES: &str = "\
A policy has the keys `registries` (that images may come from), `upgrade` (`patch`, `minor` or `any`) and `deny` (a list of
`new-cluster-rules`, `new-webhooks`, `unpinned-images`, `other-operators`, `breaking-changes`, `new-installs`).

Examples:
  olmkit operator plan redis-operator -n redis
  olmkit operator plan redis-operator -n redis --policy policy.yaml && olmkit operator approve redis-operator -n redis";

/// Reads a policy from a file.
fn read_policy(path: &std::path::Path) -> Result<Policy, Failure> {
    let text = files::read_text(path)?;
    Policy::parse(&text).map_err(|error| {
        let help = error.help();
        let what = format!("`{}` is not a policy: {error}", path.display());
        Failure::usage(what).help(help)
    })
}

/// Flags of `operator list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit operator list -A")]
pub struct List {
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Flags of `operator watch`.
#[derive(Debug, Args)]
#[command(
    after_help = "Ends on Ctrl-C. When standard output is not a terminal, prints a line for each operator that changes.\n\nExamples:\n  olmkit operator watch -A"
)]
pub struct Watch {
    /// Watch all namespaces
    #[arg(short = 'A', long, help_heading = "Cluster", conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Refresh interval: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    interval: Duration,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Longer than any command runs.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

/// Flags of `operator status` and `operator describe`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  olmkit operator status redis-operator -n redis\n  olmkit operator describe redis-operator -n redis"
)]
pub struct Named {
    /// Subscription, or its package or installed version if only one Subscription has it; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Flags of `operator doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct Doctor {
    /// Subscription, or its package or installed version; NAMESPACE/NAME works too [default: all operators]
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Diagnose files instead of a cluster: output of `kubectl get -o yaml|json`, a directory or archive from `oc adm must-gather` or
    /// `kubectl cluster-info dump`, or a recorded trace (.jsonl); `-` for standard input; repeat for several
    #[arg(long, value_name = "FILE|DIR|ARCHIVE", num_args = 1.., conflicts_with_all = ["context", "kubeconfig", "as_user", "simulate", "catalog_from", "bundles_from"])]
    from: Vec<PathBuf>,
    /// Moment of a recorded trace, in milliseconds, inclusive [default: its end]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, requires = "from", conflicts_with_all = ["context", "kubeconfig", "simulate"])]
    at: Option<i64>,
    /// Apply the repairs that interrupt nothing and lose nothing: unpack a bundle again, retry an InstallPlan once its cause is gone,
    /// adopt an orphaned ClusterServiceVersion, recreate a stuck Subscription, carry a failed upgrade on
    #[arg(long, conflicts_with = "from")]
    fix: bool,
    /// With --fix, print what it would do and change nothing
    #[arg(long, requires = "fix", conflicts_with = "from")]
    dry_run: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Takes a name that stands after the files: the last of several, if there is no such file.
fn name_after_files(name: Option<String>, mut from: Vec<PathBuf>) -> (Option<String>, Vec<PathBuf>) {
    let is_file = |text: &str| {
        [".yaml", ".yml", ".json", ".jsonl", ".tar", ".gz", ".tgz"]
            .iter()
            .any(|ending| text.ends_with(ending))
    };
    let is_name = |path: &PathBuf| {
        let is_placed = |text: &str| {
            let (namespace, name) = text.split_once('/').unwrap_or(("x", text));
            self::namespace(namespace).is_ok() && object_name(name).is_ok()
        };
        !path.exists() && path.to_str().is_some_and(|text| is_placed(text) && !is_file(text))
    };
    match name {
        None if from.len() > 1 && from.last().is_some_and(is_name) => {
            let name = from.pop().map(|path| path.display().to_string());
            (name, from)
        }
        name => (name, from),
    }
}

const DOCTOR_EXAMPLES: &str = "\
Exit code 0 if all operators are healthy or progressing, 1 if one is waiting or broken. With --fix 0 also if every cause was repaired.

Examples:
  olmkit operator doctor -A
  olmkit operator doctor redis-operator -n redis
  olmkit operator doctor redis-operator -n redis --fix --dry-run
  olmkit operator doctor --from must-gather.tar.gz
  olmkit operator doctor --from objects.json --output json
  olmkit operator doctor --from - < objects.json";

/// Flags of `operator uninstall`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  olmkit operator uninstall redis-operator -n redis --dry-run\n  olmkit operator uninstall redis-operator -n redis --delete-crds"
)]
pub struct Uninstall {
    /// Subscription, or its package or installed version if only one Subscription has it; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Also remove the operator's CRDs and all their custom resources
    #[arg(long)]
    delete_crds: bool,
    /// Keep custom resources even though their conversion webhook is removed
    #[arg(long)]
    accept_conversion_gap: bool,
    /// Continue even if another operator requires an API of this one
    #[arg(long)]
    accept_dependents: bool,
    /// Continue even if custom resources are being deleted and wait for this operator to remove their finalizers
    #[arg(long)]
    accept_finalizers: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

impl Uninstall {
    /// The request that the flags make.
    fn request(&self, name: String, namespace: Option<String>) -> uninstall::Uninstall {
        uninstall::Uninstall {
            name,
            namespace,
            delete_crds: self.delete_crds,
            accept_conversion_gap: self.accept_conversion_gap,
            accept_dependents: self.accept_dependents,
            accept_finalizers: self.accept_finalizers,
        }
    }
}

/// Flags of `operator rollback`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit operator rollback redis-operator -n redis --to 0.2.1")]
pub struct Rollback {
    /// Subscription, or its package or installed version if only one Subscription has it; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Version to return to
    #[arg(long, value_name = "VERSION", value_parser = NonEmptyStringValueParser::new())]
    to: String,
    /// Directory for a backup of the custom resources, written before any change
    #[arg(long, value_name = "DIR", default_value = "olmkit-backup")]
    backup_dir: PathBuf,
    /// Continue even though custom resources have no conversion webhook during the rollback
    #[arg(long)]
    accept_conversion_gap: bool,
    /// Continue even if the old schema has rules that cannot be evaluated here
    #[arg(long)]
    accept_unchecked: bool,
    #[command(flatten)]
    accept: AcceptFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_a_server_takes() {
        for good in ["kg", "a-1"] {
            assert_eq!(namespace(good), Ok(good.to_owned()));
        }
        for bad in ["", "KG_2", "a.b", "-a"] {
            assert!(namespace(bad).is_err(), "{bad}");
        }
        assert!(object_name("a.b").is_ok() && object_name("BAD_name").is_err());
        assert!(watched("*").is_ok() && watched("**").is_err());
    }

    #[test]
    fn a_name_may_stand_after_the_files() {
        let take = |from: &[&str]| {
            let (name, from) = name_after_files(None, from.iter().map(PathBuf::from).collect());
            (name.unwrap_or_default(), from.len())
        };
        assert_eq!(take(&["Cargo.toml", "redis-operator"]), ("redis-operator".into(), 1));
        assert_eq!(take(&["Cargo.toml", "src"]), (String::new(), 2));
        assert_eq!(take(&["Cargo.toml", "missing.yaml"]), (String::new(), 2));
        assert_eq!(take(&["redis-operator"]), (String::new(), 1));
        assert_eq!(take(&["-", "redis-operator"]), ("redis-operator".into(), 1));
        assert_eq!(take(&["-", "redis/redis-operator"]), ("redis/redis-operator".into(), 1));
    }

    #[test]
    fn a_version_settles_within_the_timeout() {
        let seconds = Duration::from_secs;
        let waiting = |settle, timeout| Waiting { settle, timeout, ..Waiting::default() };
        let settle = |settle: Option<u64>, timeout| {
            waiting(settle.map(seconds), seconds(timeout)).options().map(|options| options.settle.as_secs())
        };
        assert_eq!(settle(None, 600).unwrap(), 10);
        assert_eq!(settle(None, 6).unwrap(), 3);
        assert_eq!(settle(Some(5), 6).unwrap(), 5);
        assert_eq!(settle(Some(6), 6).unwrap_err().exit, crate::exit::Exit::Usage);
        let unwaited = Waiting { wait: false, ..waiting(Some(seconds(6)), seconds(6)) };
        assert!(unwaited.options().is_ok());
    }

    #[test]
    fn a_catalog_is_a_name_with_or_without_a_namespace() {
        assert_eq!(catalog_source("catalog"), Ok(("catalog".into(), None)));
        assert_eq!(catalog_source("olm/catalog"), Ok(("catalog".into(), Some("olm".into()))));
        for bad in ["", "/catalog", "olm/", "/", "a/b/c"] {
            assert!(catalog_source(bad).is_err(), "{bad}");
        }
    }
}
