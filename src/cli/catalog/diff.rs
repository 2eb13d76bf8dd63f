//! `olmkit catalog diff`

use clap::{Args, ValueEnum};

use crate::actions::catalog_diff::{self, Denied, Request};
use crate::cli::registry::RegistryFlags;
use crate::exit::Failure;
use crate::report::{Answer, Format};
use crate::side::Side;

/// Flags of `catalog diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// Old catalog: a directory, a file, an image, or git:REV:PATH
    #[arg(value_name = "OLD")]
    old: Side,
    /// New catalog
    #[arg(value_name = "NEW")]
    new: Side,
    /// Filter by package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Exit with 1 on these differences
    #[arg(long, value_enum, value_name = "KIND,…", value_delimiter = ',')]
    deny: Vec<Denied>,
    /// Format of the text
    #[arg(long, value_enum, default_value_t = Shown::Text)]
    format: Shown,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// How differences are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shown {
    /// Lines for a terminal
    Text,
    /// Markdown for a pull request
    Markdown,
}

const EXAMPLES: &str = "\
Examples:
  olmkit catalog diff git:main:catalog catalog
  olmkit catalog diff quay.io/example/catalog:v1 catalog --deny lost-paths,changed-bundles
  olmkit catalog diff git:main:catalog catalog --format markdown > comment.md";

impl Diff {
    pub(super) fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
        if self.format == Shown::Markdown && !matches!(output, Format::Text) {
            return Err(Failure::usage("--format markdown and --output contradict each other")
                .help("leave out one of them: Markdown is a format of the text"));
        }
        let Self { old, new, package, deny, format, registry } = self;
        let request = Request { old, new, package, deny, markdown: format == Shown::Markdown };
        Ok(Box::new(catalog_diff::run(&request, &registry.access()?)?))
    }
}
