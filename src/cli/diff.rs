//! `olmkit bundle diff`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use olmkit_bundle::diff::codes;
use olmkit_bundle::finding::Level;

use super::impersonation::ImpersonationFlags;
use super::levels::LevelFlags;
use super::registry::{RegistryFlags, duration};
use crate::actions::diff;
use crate::exit::Failure;
use crate::input::Input;
use crate::lifecycle::kubernetes::{Choice, Impersonation};
use crate::report::{Answer, Format, changelog};
use crate::side::Side;

/// Flags of `bundle diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// Old version: a bundle (its directory or image), a file with a CRD, or `git:REV:PATH` for either
    #[arg(value_name = "OLD", required_unless_present = "catalog")]
    old: Option<Side>,
    /// New version, in any of these forms
    #[arg(value_name = "NEW", required_unless_present = "catalog")]
    new: Option<Side>,
    /// Catalog: compare the two versions of each of its upgrades, instead of two given versions
    #[arg(long, value_name = "DIR", conflicts_with_all = ["old", "new", "samples"])]
    catalog: Option<Input>,
    /// Filter by package
    #[arg(long, value_name = "NAME", requires = "catalog")]
    package: Option<String>,
    /// Filter by channel
    #[arg(long, value_name = "NAME", requires = "catalog")]
    channel: Option<String>,
    /// Directories of bundles of the catalog, used instead of pulling them
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "catalog")]
    bundles: Vec<PathBuf>,
    /// Files and directories with custom resources of the old version, which must be valid in the new schemas. Examples of the
    /// old bundle are always checked
    #[arg(long, value_name = "FILE|DIR")]
    samples: Vec<PathBuf>,
    /// Check the custom resources of a cluster against the new schemas, and count them
    #[arg(long, conflicts_with = "catalog", help_heading = "Cluster")]
    live: bool,
    /// Kubeconfig context [default: the current one]
    #[arg(long, value_name = "CONTEXT", requires = "live", help_heading = "Cluster")]
    context: Option<String>,
    /// Kubeconfig file [default: `KUBECONFIG`, else `~/.kube/config`]
    #[arg(long, value_name = "FILE", requires = "live", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    impersonation: ImpersonationFlags,
    /// Timeout for all requests to the cluster: seconds, or a number with `s`, `m` or `h` [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "live", help_heading = "Cluster")]
    live_timeout: Option<Duration>,
    /// Package file, or Cargo.toml, with the policy of the package that new versions must follow
    #[arg(long, value_name = "FILE")]
    package_file: Option<PathBuf>,
    /// Print release notes in Markdown instead of findings, and exit with 0
    #[arg(long)]
    changelog: bool,
    #[command(flatten)]
    levels: LevelFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

const EXAMPLES: &str = "\
Examples:
  olmkit bundle diff quay.io/example/redis-operator-bundle:v0.1.0 bundle
  olmkit bundle diff git:main:bundle bundle --output github
  olmkit bundle diff git:v0.1.0:config/crd/redisclusters.yaml config/crd/redisclusters.yaml
  olmkit bundle diff --catalog catalog --channel stable --bundles bundles/* --package-file olmkit.yaml
  olmkit bundle diff git:v0.1.0:bundle bundle --live --context production
  olmkit bundle diff git:v0.1.0:bundle bundle --changelog > CHANGES.md";

/// Stands for every code of a break, where codes are denied.
const BREAKING: &str = "breaking";

impl Diff {
    /// Whether it asks a cluster.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    pub(super) fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
        let Self { old, new, catalog, package, channel, bundles, samples, .. } = self;
        if catalog.is_none() && (package.is_some() || channel.is_some() || !bundles.is_empty()) {
            let error = "--package, --channel and --bundles filter a catalog, and none is given";
            return Err(Failure::usage(error).help("pass --catalog instead of OLD and NEW"));
        }
        if self.changelog && self.levels.denies() {
            let error = "--changelog prints release notes and always exits with 0, so --deny has no effect";
            return Err(
                Failure::usage(error).help("run the command once with --changelog, and once with --deny")
            );
        }
        if self.changelog && !matches!(output, Format::Text | Format::Markdown) {
            let error = "--changelog prints Markdown, and no other --output";
            return Err(Failure::usage(error).help("omit --output or --changelog"));
        }
        let impersonation = Impersonation::from(self.impersonation);
        if impersonation.user.is_some() && !self.live {
            let error = "--as has no effect without --live: no cluster is contacted";
            return Err(Failure::usage(error).help("pass --live, or omit --as"));
        }
        let choice =
            Choice { kubeconfig: self.kubeconfig, context: self.context, impersonation, ..Choice::default() };
        let timeout = self.live_timeout.unwrap_or(diff::live::TIMEOUT);
        let live = self.live.then_some(diff::live::Request { choice, timeout });
        let breaking = codes::ALL.iter().filter(|code| code.level == Level::Error);
        let levels = self.levels.expand(BREAKING, breaking.map(|code| code.name)).levels()?;
        let access = self.registry.access()?;
        let package_file = self.package_file;
        let compared = match (old, new, catalog) {
            (_, _, Some(catalog)) => {
                let request = diff::EdgesRequest { catalog, package, channel, bundles, package_file, levels };
                diff::edges(&request, &access)?
            }
            (Some(old), Some(new), None) => {
                let request = diff::Request { old, new, samples, live, package_file, levels };
                diff::run(&request, &access)?
            }
            // The parser asks for both.
            _ => return Err(Failure::usage("two versions are needed").help("give OLD and NEW")),
        };
        match self.changelog {
            true => Ok(Box::new(changelog(&compared.answer, &compared.upgrades))),
            false => Ok(Box::new(compared.answer)),
        }
    }
}
