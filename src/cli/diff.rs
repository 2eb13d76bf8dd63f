//! `olmkit bundle diff`

use std::path::PathBuf;

use clap::Args;
use olmkit_bundle::diff::codes;
use olmkit_bundle::finding::Level;

use super::levels::LevelFlags;
use super::registry::RegistryFlags;
use crate::actions::diff;
use crate::exit::Failure;
use crate::input::{Input, Side};
use crate::report::{Answer, ChangelogAnswer};

/// Flags of `bundle diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// The old version: a bundle (its directory or image), a file with a CRD, or `git:REV:PATH` for either
    #[arg(value_name = "OLD", required_unless_present = "catalog")]
    old: Option<Side>,
    /// The new version, in any of these forms
    #[arg(value_name = "NEW", required_unless_present = "catalog")]
    new: Option<Side>,
    /// A catalog: compares both ends of every upgrade that OLM makes in it, instead of two versions
    #[arg(long, value_name = "DIR", conflicts_with_all = ["old", "new", "samples"])]
    catalog: Option<Input>,
    /// Filter by package
    #[arg(long, value_name = "NAME", requires = "catalog")]
    package: Option<String>,
    /// Filter by channel
    #[arg(long, value_name = "NAME", requires = "catalog")]
    channel: Option<String>,
    /// Directories of bundles of the catalog, which are not pulled then
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "catalog")]
    bundles: Vec<PathBuf>,
    /// Files and directories with custom resources of the old version: the new schemas must take them. Examples of the old
    /// bundle are always checked
    #[arg(long, value_name = "FILE|DIR")]
    samples: Vec<PathBuf>,
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
  olmkit bundle diff --catalog catalog --channel stable --bundles bundles/*
  olmkit bundle diff git:v0.1.0:bundle bundle --changelog > CHANGES.md";

/// Stands for every code of a break, where codes are denied.
const BREAKING: &str = "breaking";

impl Diff {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let Self { old, new, catalog, package, channel, bundles, samples, changelog, levels, registry } =
            self;
        if catalog.is_none() && (package.is_some() || channel.is_some() || !bundles.is_empty()) {
            let error = "--package, --channel and --bundles filter a catalog, and none is given";
            return Err(Failure::misuse(error).help("pass --catalog instead of OLD and NEW"));
        }
        if changelog && levels.denies() {
            let error = "--changelog prints release notes and always exits with 0, so --deny has no effect";
            return Err(
                Failure::misuse(error).help("run the command once with --changelog, and once with --deny")
            );
        }
        let breaking = codes::ALL.iter().filter(|code| code.level == Level::Error);
        let levels = levels.expand(BREAKING, breaking.map(|code| code.name)).levels()?;
        let access = registry.access()?;
        let answer = match (old, new, catalog) {
            (_, _, Some(catalog)) => {
                let request = diff::EdgesRequest { catalog, package, channel, bundles, levels };
                diff::edges(&request, &access)?
            }
            (Some(old), Some(new), None) => diff::run(&diff::Request { old, new, samples, levels }, &access)?,
            // The parser asks for both.
            _ => return Err(Failure::misuse("two versions are needed").help("give OLD and NEW")),
        };
        match changelog {
            true => Ok(Box::new(ChangelogAnswer::of(&answer))),
            false => Ok(Box::new(answer)),
        }
    }
}
