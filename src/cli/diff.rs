//! `olmkit bundle diff`

use std::path::PathBuf;

use clap::Args;

use super::levels::LevelFlags;
use super::registry::RegistryFlags;
use crate::actions::diff::{self, Side};
use crate::exit::Failure;
use crate::report::Answer;

/// Flags of `bundle diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// The old version: a bundle (its directory or image), a file with a CRD, or `git:REV:PATH` for either
    #[arg(value_name = "OLD")]
    old: Side,
    /// The new version, in any of these forms
    #[arg(value_name = "NEW")]
    new: Side,
    /// Files and directories with custom resources of the old version: the new schemas must take them. Examples of the old
    /// bundle are always checked
    #[arg(long, value_name = "FILE|DIR")]
    samples: Vec<PathBuf>,
    #[command(flatten)]
    levels: LevelFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

const EXAMPLES: &str = "\
Examples:
  olmkit bundle diff quay.io/example/redis-operator-bundle:v0.1.0 bundle
  olmkit bundle diff git:main:bundle bundle --output github
  olmkit bundle diff git:v0.1.0:config/crd/redisclusters.yaml config/crd/redisclusters.yaml";

impl Diff {
    pub(super) fn run(self) -> Result<Box<dyn Answer>, Failure> {
        let Self { old, new, samples, levels, registry } = self;
        let request = diff::Request { old, new, samples, levels: levels.levels()? };
        Ok(Box::new(diff::run(&request, &registry.access()?)?))
    }
}
