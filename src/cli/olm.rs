//! `olmkit olm …`

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use olmkit_bundle::version::Version;

use super::impersonation::ImpersonationFlags;
use super::registry::duration;
use crate::actions::olm::{self, Download, RELEASES, Request, Source};
use crate::exit::Failure;
use crate::lifecycle::engine::Options;
use crate::lifecycle::kubernetes::Choice;
use crate::lifecycle::olm::manifests::Override;
use crate::lifecycle::olm::uninstall;
use crate::report::{self, Answer};

/// What to do with OLM on a cluster.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Install OLM and wait until it resolves Subscriptions
    Install(Box<Install>),
    /// Show OLM's components, CRDs and catalogs; exit code 1 if something is unhealthy
    Status(Status),
    /// Remove an OLM that olmkit installed
    Uninstall(Uninstall),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let (verb, cluster, options) = match self {
            Self::Install(flags) => {
                let (cluster, options) = (flags.cluster.clone(), flags.waiting.options());
                (olm::Verb::Install(flags.request()), cluster, options)
            }
            Self::Status(Status { timeout, cluster }) => {
                (olm::Verb::Status, cluster, Options { timeout, ..Options::default() })
            }
            Self::Uninstall(Uninstall { with_operators, dry_run, timeout, cluster }) => {
                let options = Options { timeout, dry_run, ..Options::default() };
                (olm::Verb::Uninstall(uninstall::Uninstall { with_operators }), cluster, options)
            }
        };
        let choice = Choice {
            kubeconfig: cluster.kubeconfig,
            context: cluster.context,
            impersonation: cluster.impersonation.into(),
            ..Choice::default()
        };
        let progress = report::operators();
        let outcome = olm::run(&choice, &verb, &options, progress.as_ref())?;
        Ok(Box::new(outcome))
    }
}

/// The cluster to work on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterFlags {
    /// Kubeconfig context [default: the current one]
    #[arg(long, value_name = "CONTEXT", value_parser = NonEmptyStringValueParser::new())]
    context: Option<String>,
    /// Kubeconfig file [default: `KUBECONFIG`, else `~/.kube/config`]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    impersonation: ImpersonationFlags,
}

/// Waiting and dry runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Waiting")]
struct Waiting {
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Wait until OLM works; `--wait=false` returns after submitting the manifests
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// Timeout for the whole command: seconds, or a number with `s`, `m` or `h`. Removing what a failed installation created takes
    /// up to 90 s more
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    timeout: Duration,
}

impl Waiting {
    fn options(&self) -> Options {
        let Self { dry_run, wait, timeout } = *self;
        Options { timeout, wait, dry_run, ..Options::default() }
    }
}

/// Flags of `olm install`.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["manifests", "version"]))]
pub struct Install {
    /// Manifests of an OLM release: files, or directories with files; `-` reads standard input
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    manifests: Vec<PathBuf>,
    /// OLM release to download, such as 0.46.0
    #[arg(long, value_name = "VERSION", value_parser = release)]
    version: Option<String>,
    /// Address of the releases
    #[arg(long, value_name = "URL", default_value = RELEASES, conflicts_with = "manifests")]
    release_url: String,
    /// SHA-256 of a downloaded file, if the release has no `checksums.txt` that lists it; repeat for several
    #[arg(long, value_name = "FILE=SHA256", value_parser = checksum, conflicts_with = "manifests")]
    checksum: Vec<(String, String)>,
    /// Pull an image from elsewhere: IMAGE is a repository, or an image with its tag or digest; repeat for several
    #[arg(long, value_name = "IMAGE=REPLACEMENT", value_parser = replacement)]
    image: Vec<Override>,
    /// Leave out the CatalogSources of the manifests, such as that of OperatorHub.io
    #[arg(long)]
    without_catalogs: bool,
    /// Take over objects that olmkit did not create
    #[arg(long)]
    adopt: bool,
    /// Keep what was created if the installation fails
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: Waiting,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  olmkit olm install --version 0.46.0
  olmkit olm install --manifests olm --image quay.io/operator-framework/olm=registry.example.com/olm:v0.46.0 --without-catalogs
  olmkit olm install --manifests crds.yaml olm.yaml --dry-run";

impl Install {
    fn request(self) -> Request {
        let source = match self.version {
            Some(version) => Source::Release(Download {
                version,
                address: self.release_url,
                checksums: self.checksum.into_iter().collect(),
            }),
            None => Source::Disk(self.manifests),
        };
        Request {
            source,
            images: self.image,
            without_catalogs: self.without_catalogs,
            adopt: self.adopt,
            keep: self.keep,
        }
    }
}

/// A version of OLM, with or without a `v`.
pub(super) fn release(text: &str) -> Result<String, String> {
    let version = text.strip_prefix('v').unwrap_or(text);
    Version::parse(version)
        .map(|_| version.to_owned())
        .map_err(|error| format!("expected a version such as 0.46.0: {error}"))
}

/// The SHA-256 of a file.
fn checksum(text: &str) -> Result<(String, String), String> {
    let (file, sum) = text.split_once('=').ok_or("expected `FILE=SHA256`")?;
    let sum = sum.strip_prefix("sha256:").unwrap_or(sum).to_ascii_lowercase();
    let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_sum { Ok((file.to_owned(), sum)) } else { Err("a SHA-256 has 64 hexadecimal digits".into()) }
}

/// An image, and what is pulled instead.
fn replacement(text: &str) -> Result<Override, String> {
    match text.split_once('=') {
        Some((image, with)) if !image.is_empty() && !with.is_empty() => {
            Ok(Override { image: image.to_owned(), with: with.to_owned() })
        }
        _ => Err("expected `IMAGE=REPLACEMENT`".into()),
    }
}

/// Flags of `olm status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit olm status\n  olmkit olm status --output json")]
pub struct Status {
    /// Timeout for the cluster: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1m", help_heading = "Waiting")]
    timeout: Duration,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Flags of `olm uninstall`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  olmkit olm uninstall --dry-run\n  olmkit olm uninstall --with-operators"
)]
pub struct Uninstall {
    /// Also remove installed operators: Subscriptions and ClusterServiceVersions. Their CRDs and custom resources stay
    #[arg(long)]
    with_operators: bool,
    /// Print what would be removed without removing it
    #[arg(long, help_heading = "Waiting")]
    dry_run: bool,
    /// Timeout for the whole command: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m", help_heading = "Waiting")]
    timeout: Duration,
    #[command(flatten)]
    cluster: ClusterFlags,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mistyped_is_refused() {
        assert_eq!(release("v0.46.0"), Ok("0.46.0".to_owned()));
        assert!(release("latest").is_err());
        assert_eq!(replacement("a/b=c:5000/d@sha256:1").map(|one| one.with), Ok("c:5000/d@sha256:1".into()));
        for bad in ["a", "a=", "=b"] {
            assert!(replacement(bad).is_err(), "{bad}");
        }
        assert!(
            checksum(&format!("olm.yaml=sha256:{}", "A".repeat(64)))
                .is_ok_and(|(_, sum)| sum.starts_with('a'))
        );
        assert!(checksum("olm.yaml=12").is_err() && checksum("12").is_err());
    }
}
