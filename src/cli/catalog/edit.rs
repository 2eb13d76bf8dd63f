//! `olmkit catalog promote`, `deprecate`, `remove` and the other edits in place.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use olmkit_bundle::names::ChannelName;
use olmkit_bundle::version::Version;
use olmkit_catalog::add::Policy;
use olmkit_catalog::edit::{Icon, Keep, Request, Target};

use super::FileFormat;
use crate::actions::edit::Edited;
use crate::actions::edit::{self, EditRequest};
use crate::cli::registry::RegistryFlags;
use crate::exit::Failure;
use crate::files;
use crate::input::Input;
use crate::report::{Answer, Format};

/// Edits of a catalog in place.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Add a version to another channel
    Promote(Promote),
    /// Mark a package, a channel or a version as deprecated
    Deprecate(Deprecate),
    /// Remove a deprecation
    Undeprecate(Undeprecate),
    /// Remove a package, a channel or a version, and join the edges of what stays
    Remove(Remove),
    /// Keep some packages, channels and versions, and remove everything else
    Prune(Prune),
    /// Set the default channel of a package
    SetDefault(SetDefault),
    /// Rename a channel of a package
    RenameChannel(RenameChannel),
    /// Create a package with a description, an icon and a default channel; `catalog add` adds its bundles
    Init(Box<Init>),
    /// Format the files of a catalog; comments are kept
    Fmt(Fmt),
    /// Replace the manifests in a catalog by the metadata that consoles show (olm.csv.metadata)
    Migrate(Migrate),
    /// Split a catalog into a directory for each package
    Split(Split),
    /// Merge the packages of other catalogs into a catalog
    Merge(Box<Merge>),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let (CatalogFlags { catalog, dry_run }, request) = match self {
            Self::Promote(Promote { catalog, package, version, to, policy }) => {
                (catalog, Request::Promote { package, version, to, policy })
            }
            Self::Deprecate(Deprecate { catalog, package, target, message }) => {
                (catalog, Request::Deprecate { package, target: target.target(), message })
            }
            Self::Undeprecate(Undeprecate { catalog, package, target }) => {
                (catalog, Request::Undeprecate { package, target: target.target() })
            }
            Self::Remove(Remove { catalog, package, channel, version, keep_path, strand }) => {
                (catalog, Request::Remove { package, channel, version, keep_path, strand })
            }
            Self::Prune(Prune {
                catalog,
                packages,
                channels,
                min_version,
                heads_only,
                with_dependencies,
            }) => {
                let keep = Keep { packages, channels, min_version, heads_only, with_dependencies };
                (catalog, Request::Prune(keep))
            }
            Self::SetDefault(SetDefault { catalog, package, channel }) => {
                (catalog, Request::SetDefault { package, channel })
            }
            Self::RenameChannel(RenameChannel { catalog, package, channel, to }) => {
                (catalog, Request::RenameChannel { package, channel, to })
            }
            Self::Init(flags) => flags.request()?,
            Self::Fmt(Fmt { catalog, check }) => {
                let CatalogFlags { catalog, dry_run } = catalog;
                let request = EditRequest { catalog, request: Request::Format, dry_run: dry_run || check };
                let answer = edit::edit(&request)?;
                return Ok(Box::new(Edited { must_be_unchanged: check, ..answer }));
            }
            Self::Migrate(Migrate { catalog }) => (catalog, Request::Migrate),
            Self::Split(Split { catalog }) => (catalog, Request::Split),
            Self::Merge(flags) => {
                let Merge { catalog, others, registry } = *flags;
                let CatalogFlags { catalog, dry_run } = catalog;
                return Ok(Box::new(edit::merge(&catalog, &others, dry_run, &registry.access()?)?));
            }
        };
        Ok(Box::new(edit::edit(&EditRequest { catalog, request, dry_run })?))
    }
}

/// The catalog, and whether to change it.
#[derive(Debug, Args)]
pub(super) struct CatalogFlags {
    /// Directory or file of the catalog
    #[arg(value_name = "CATALOG")]
    pub(super) catalog: PathBuf,
    /// Print the changes as a unified diff, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Flags of `catalog promote`.
#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXAMPLES)]
pub struct Promote {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    /// Version to promote, or the name of its bundle
    #[arg(long, value_name = "VERSION")]
    version: String,
    /// Channel to add it to
    #[arg(long, value_name = "CHANNEL")]
    to: ChannelName,
    /// Version policy that chooses its edges there: replaces, semver, semver-skippatch or skip-range; by default it keeps its own where they connect
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
}

const PROMOTE_EXAMPLES: &str = "\
Examples:
  olmkit catalog promote catalog --package redis-operator --version 0.3.0 --to stable
  olmkit catalog promote catalog --package redis-operator --version 0.3.0 --to stable --dry-run";

/// A part of a package.
#[derive(Debug, Args)]
pub(super) struct TargetFlags {
    /// Channel; the whole package without --channel and --version
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    channel: Option<String>,
    /// Version, or the name of its bundle
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
}

impl TargetFlags {
    fn target(self) -> Target {
        match (self.channel, self.version) {
            (_, Some(version)) => Target::Version(version),
            (Some(channel), None) => Target::Channel(channel),
            (None, None) => Target::Package,
        }
    }
}

/// Flags of `catalog deprecate`.
#[derive(Debug, Args)]
#[command(after_help = DEPRECATE_EXAMPLES)]
pub struct Deprecate {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    #[command(flatten)]
    target: TargetFlags,
    /// Message to users
    #[arg(long, value_name = "TEXT")]
    message: String,
}

const DEPRECATE_EXAMPLES: &str = "\
Examples:
  olmkit catalog deprecate catalog --package redis-operator --version 0.1.0 --message 'Upgrade to 0.2.1 or later.'
  olmkit catalog deprecate catalog --package redis-operator --channel alpha --message 'Use the channel stable.'";

/// Flags of `catalog undeprecate`.
#[derive(Debug, Args)]
#[command(after_help = UNDEPRECATE_EXAMPLES)]
pub struct Undeprecate {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    #[command(flatten)]
    target: TargetFlags,
}

const UNDEPRECATE_EXAMPLES: &str = "\
Examples:
  olmkit catalog undeprecate catalog --package redis-operator --version 0.1.0";

/// Flags of `catalog remove`.
#[derive(Debug, Args)]
#[command(after_help = REMOVE_EXAMPLES)]
pub struct Remove {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    /// Channel to remove, or to remove the version from
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Version to remove, or the name of its bundle; the whole package without --channel and --version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Let its successors skip the version, so that clusters which have it installed can still upgrade
    #[arg(long, requires = "version")]
    keep_path: bool,
    /// Remove it even if clusters which have it installed, or a version that only it upgrades, cannot upgrade any more
    #[arg(long)]
    strand: bool,
}

const REMOVE_EXAMPLES: &str = "\
Examples:
  olmkit catalog remove catalog --package redis-operator --version 0.2.0 --keep-path
  olmkit catalog remove catalog --package redis-operator --channel alpha
  olmkit catalog remove catalog --package redis-operator --dry-run";

/// Flags of `catalog prune`.
#[derive(Debug, Args)]
#[command(after_help = PRUNE_EXAMPLES)]
pub struct Prune {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Packages to keep
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', required = true, value_parser = NonEmptyStringValueParser::new())]
    packages: Vec<String>,
    /// Channels of these packages to keep, as NAME or PACKAGE/NAME [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    channels: Vec<String>,
    /// Lowest version to keep
    #[arg(long, value_name = "VERSION", value_parser = crate::cli::version)]
    min_version: Option<Version>,
    /// Keep only the head of each channel
    #[arg(long)]
    heads_only: bool,
    /// Also keep the packages that these depend on, directly or not
    #[arg(long)]
    with_dependencies: bool,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  olmkit catalog prune catalog --packages redis-operator,etcd-operator
  olmkit catalog prune catalog --packages redis-operator --channels stable --min-version 0.2.0 --with-dependencies";

/// Flags of `catalog set-default`.
#[derive(Debug, Args)]
#[command(after_help = SET_DEFAULT_EXAMPLES)]
pub struct SetDefault {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    /// Default channel for Subscriptions without a channel
    #[arg(long, value_name = "NAME")]
    channel: String,
}

const SET_DEFAULT_EXAMPLES: &str = "\
Examples:
  olmkit catalog set-default catalog --package redis-operator --channel stable";

/// Flags of `catalog rename-channel`.
#[derive(Debug, Args)]
#[command(after_help = RENAME_CHANNEL_EXAMPLES)]
pub struct RenameChannel {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    /// Channel to rename
    #[arg(long, value_name = "NAME")]
    channel: String,
    /// New name
    #[arg(long, value_name = "NAME")]
    to: ChannelName,
}

const RENAME_CHANNEL_EXAMPLES: &str = "\
Examples:
  olmkit catalog rename-channel catalog --package redis-operator --channel alpha --to candidate";

/// Flags of `catalog init`.
#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Package
    #[arg(long, value_name = "NAME")]
    package: String,
    /// Default channel for Subscriptions without a channel
    #[arg(long, value_name = "NAME")]
    default_channel: ChannelName,
    /// File with the description that consoles show, in Markdown
    #[arg(long, value_name = "FILE")]
    description: Option<PathBuf>,
    /// File with the icon that consoles show: PNG, JPEG, GIF or SVG
    #[arg(long, value_name = "FILE")]
    icon: Option<PathBuf>,
    /// Format of a new file
    #[arg(long, value_enum, default_value_t = FileFormat::Yaml)]
    format: FileFormat,
}

impl Init {
    fn request(self) -> Result<(CatalogFlags, Request), Failure> {
        let Self { catalog, package, default_channel, description, icon, format } = self;
        let description = description.map(|path| files::read_text(&path)).transpose()?;
        let icon = icon.map(|path| {
            Icon::new(files::read(&path)?).ok_or_else(|| {
                Failure::usage(format!("`{}` is not a PNG, JPEG, GIF or SVG image", path.display()))
                    .help("convert it: consoles show no other formats")
            })
        });
        let icon = icon.transpose()?;
        let format = FileFormat::or(Some(format), Format::Text);
        let init = olmkit_catalog::edit::Init { package, default_channel, description, icon, format };
        Ok((catalog, Request::Init(init)))
    }
}

const INIT_EXAMPLES: &str = "\
Examples:
  olmkit catalog init catalog --package redis-operator --default-channel stable --description README.md --icon icon.svg";

/// Flags of `catalog fmt`.
#[derive(Debug, Args)]
#[command(after_help = FMT_EXAMPLES)]
pub struct Fmt {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Write nothing, and exit with 1 if a file is not formatted
    #[arg(long)]
    check: bool,
}

const FMT_EXAMPLES: &str = "\
Examples:
  olmkit catalog fmt catalog
  olmkit catalog fmt catalog --check";

/// Flags of `catalog migrate`.
#[derive(Debug, Args)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub struct Migrate {
    #[command(flatten)]
    catalog: CatalogFlags,
}

const MIGRATE_EXAMPLES: &str = "\
Examples:
  olmkit catalog migrate catalog";

/// Flags of `catalog split`.
#[derive(Debug, Args)]
#[command(after_help = SPLIT_EXAMPLES)]
pub struct Split {
    #[command(flatten)]
    catalog: CatalogFlags,
}

const SPLIT_EXAMPLES: &str = "\
Examples:
  olmkit catalog split catalog";

/// Flags of `catalog merge`.
#[derive(Debug, Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct Merge {
    #[command(flatten)]
    catalog: CatalogFlags,
    /// Catalogs to take packages from: directories, files or images
    #[arg(value_name = "OTHER", required = true)]
    others: Vec<Input>,
    #[command(flatten)]
    registry: RegistryFlags,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  olmkit catalog merge catalog redis-catalog etcd-catalog
  olmkit catalog merge catalog quay.io/example/catalog:v1 --dry-run";
