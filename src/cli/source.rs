//! `olmkit source …`

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::operator::{ClusterFlags, Reading, config, image_reference, object_name};
use super::registry::duration;
use crate::actions::operator::{self, NewCatalog, SourceVerb, Target, is_on_disk};
use crate::exit::Failure;
use crate::input::Input;
use crate::lifecycle::api::pod_config;
use crate::lifecycle::engine::Options;
use crate::lifecycle::sources::{Add as Wanted, Origin};
use crate::report::{self, Answer};

/// What to do with the catalogs of a cluster.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Add a catalog to a cluster and wait until OLM is connected to it
    Add(Box<Add>),
    /// List catalogs with their connection, pod and users
    List(List),
    /// Remove a catalog; refused while Subscriptions use it
    Remove(Remove),
    /// Have OLM pull a catalog's image again
    Refresh(Named),
}

impl Verb {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let mut all_namespaces = false;
        let (verb, cluster, options) = match self {
            Self::Add(flags) => flags.request()?,
            Self::List(List { reading, cluster }) => {
                all_namespaces = reading.all_namespaces;
                let namespace = reading.namespace(&cluster);
                (SourceVerb::List { namespace }, cluster, reading.waiting().options()?)
            }
            Self::Remove(Remove { force, named: Named { name, cluster, waiting } }) => {
                let (name, cluster) = cluster.placed(name)?;
                let namespace = cluster.namespace.clone();
                (SourceVerb::Remove { name, namespace, force }, cluster, waiting.options())
            }
            Self::Refresh(Named { name, cluster, waiting }) => {
                let (name, cluster) = cluster.placed(name)?;
                let namespace = cluster.namespace.clone();
                (SourceVerb::Refresh { name, namespace }, cluster, waiting.options())
            }
        };
        let access = cluster.registry.clone().access(Some(options.timeout), false)?;
        let progress = report::operators();
        let target = Target { all_namespaces, ..cluster.target() };
        let verb = operator::Verb::Source(verb);
        Ok(Box::new(operator::run(&target, &verb, &options, &access, progress.as_ref())?))
    }
}

/// Waiting and dry runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Waiting")]
struct SourceWaiting {
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Wait until the work is done; `--wait=false` returns after submitting the changes
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// Timeout for the whole command: seconds, or a number with `s`, `m` or `h`
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    timeout: Duration,
}

impl SourceWaiting {
    fn options(self) -> Options {
        Options {
            timeout: self.timeout,
            settle: Duration::ZERO,
            wait: self.wait,
            dry_run: self.dry_run,
            ..Options::default()
        }
    }
}

/// Flags of `source add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub struct Add {
    /// Name of the CatalogSource
    #[arg(value_name = "NAME", value_parser = object_name)]
    name: String,
    /// Catalog: an image reference, or a directory with a catalog, which is built and pushed to --to
    #[arg(value_name = "IMAGE|DIR", required_unless_present = "address", conflicts_with = "address")]
    catalog: Option<String>,
    /// Reference to push the image of a directory to. The cluster must be able to pull from it under the same name
    #[arg(long, value_name = "REFERENCE", conflicts_with = "address")]
    to: Option<String>,
    /// Address of a running catalog server, instead of an image
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    address: Option<String>,
    /// How often OLM checks the image for changes, such as 10m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = poll)]
    poll: Option<Duration>,
    /// Priority among catalogs that offer the same package; higher ones are preferred
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Pull secrets in the namespace of the CatalogSource
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = object_name)]
    secret: Vec<String>,
    /// Name that consoles show
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Publisher that consoles show
    #[arg(long, value_name = "TEXT")]
    publisher: Option<String>,
    /// YAML file with settings of the catalog's pod, as `spec.grpcPodConfig` of a CatalogSource
    #[arg(long, value_name = "FILE", conflicts_with = "address")]
    pod_config: Option<PathBuf>,
    /// Continue even if the image is not in its registry, such as when nodes pull it from a mirror
    #[arg(long)]
    accept_missing_images: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: SourceWaiting,
}

const ADD_EXAMPLES: &str = "\
Examples:
  olmkit source add redis registry.example.com/team/catalog:v1 -n olm --poll 10m
  olmkit source add redis catalog --to registry.example.com/team/catalog:v1 -n olm
  olmkit source add redis --address catalog.example.com:50051 -n olm --priority 10";

impl Add {
    fn request(self) -> Result<(SourceVerb, ClusterFlags, Options), Failure> {
        let Self { cluster, waiting, .. } = self;
        if cluster.simulate.is_some() && cluster.catalog_from.is_some() {
            return Err(Failure::usage(
                "--catalog-from is for other verbs: `source add` names the catalog itself",
            )
            .help("omit --catalog-from"));
        }
        if cluster.simulate.is_some() && self.address.is_some() {
            return Err(Failure::usage(
                "a simulated cluster reaches no servers, so --address cannot be used",
            )
            .help("name the directory or the image of the catalog instead"));
        }
        if cluster.simulate.is_some() && self.accept_missing_images {
            return Err(Failure::usage("a simulated cluster reads the catalog, so it cannot be missing")
                .help("omit --accept-missing-images"));
        }
        if cluster.simulate.is_some() && self.to.is_some() {
            return Err(Failure::usage("a simulated cluster pulls from no registry, so --to cannot be used")
                .help("omit --to"));
        }
        let (origin, catalog) = match (self.catalog, self.address) {
            (None, address) => (Origin::Address(address.unwrap_or_default()), None),
            (Some(text), _) if is_on_disk(&text) || cluster.simulate.is_some() => {
                let input: Input = text.parse().map_err(Failure::usage)?;
                (Origin::Image(String::new()), Some(NewCatalog { input, to: self.to }))
            }
            (Some(image), _) if self.to.is_some() => {
                return Err(Failure::usage(format!(
                    "`{image}` is not a directory, so nothing can be pushed to --to"
                ))
                .help("name the directory of the catalog, or omit --to"));
            }
            (Some(image), _) => (Origin::Image(image_reference(&image).map_err(Failure::usage)?), None),
        };
        let wanted = Wanted {
            name: self.name,
            namespace: cluster.namespace.clone().unwrap_or_default(),
            origin,
            poll: self.poll,
            priority: self.priority,
            secrets: self.secret,
            display_name: self.display_name,
            publisher: self.publisher,
            pod: self
                .pod_config
                .as_deref()
                .map(|path| config(path, pod_config::CATALOG_SOURCE))
                .transpose()?,
            accept_missing_image: self.accept_missing_images,
        };
        Ok((SourceVerb::Add { wanted: Box::new(wanted), catalog }, cluster, waiting.options()))
    }
}

/// An interval as OLM takes it: whole seconds.
fn poll(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        interval if interval.subsec_nanos() > 0 => {
            Err("expected a whole number of seconds, such as `10m`".into())
        }
        interval => Ok(interval),
    }
}

/// Host and port of a server.
fn address(text: &str) -> Result<String, String> {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !host.contains('/') && is_port(port) => Ok(text.to_owned()),
        _ => Err("expected `HOST:PORT`, such as `catalog.example.com:50051`".into()),
    }
}

/// Flags of `source list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit source list -A")]
pub struct List {
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Flags of `source refresh`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit source refresh redis -n olm")]
pub struct Named {
    /// Name of the CatalogSource; NAMESPACE/NAME works too
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: SourceWaiting,
}

/// Flags of `source remove`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  olmkit source remove redis -n olm")]
pub struct Remove {
    /// Remove it even though Subscriptions use it: their operators keep running, but are no longer upgraded
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    named: Named,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_is_no_whole_number_of_seconds_is_refused() {
        assert_eq!(poll("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(poll("2000ms"), Ok(Duration::from_secs(2)));
        for bad in ["1ms", "1500ms", "0", "0s"] {
            assert!(poll(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert!(address("catalog.example.com:50051").is_ok() && address("[::1]:50051").is_ok());
        for bad in ["catalog", ":50051", "catalog:", "catalog:0", "http://catalog:50051", "catalog:70000"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
