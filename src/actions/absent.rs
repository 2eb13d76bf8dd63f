//! Names of packages, channels and bundles that a catalog does not have: which of those that it has may be meant.

use std::collections::BTreeSet;

use olmkit_bundle::suggest::did_you_mean;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::path::PathError;

use crate::exit::Failure;
use crate::shell::argument;

/// More names are not listed: the command that lists them is named instead.
const LISTED: usize = 8;

/// What a name is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A package.
    Package,
    /// A channel.
    Channel,
    /// A bundle.
    Bundle,
}

impl What {
    /// As drawings name it.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "package" => Self::Package,
            "channel" => Self::Channel,
            _ => Self::Bundle,
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Package => "packages",
            Self::Channel => "channels",
            Self::Bundle => "bundles",
        }
    }

    /// The names that a catalog has, or a package of it.
    fn names<'c>(self, catalog: &'c Catalog<'_>, package: Option<&str>) -> BTreeSet<&'c str> {
        let is_wanted = |of: &str| package.is_none_or(|package| package == of);
        match self {
            Self::Package => catalog.packages.iter().map(|blob| blob.name.as_str()).collect(),
            Self::Channel => {
                let channels = catalog.channels.iter().filter(|blob| is_wanted(&blob.package));
                channels.map(|blob| blob.name.as_str()).collect()
            }
            Self::Bundle => {
                let bundles = catalog.bundles.iter().filter(|blob| is_wanted(&blob.package));
                bundles.map(|blob| blob.name.as_str()).collect()
            }
        }
    }
}

/// Where a name was looked for.
pub(super) struct Within<'w> {
    /// The catalog.
    pub(super) catalog: &'w Catalog<'w>,
    /// As the user named it.
    pub(super) input: &'w dyn std::fmt::Display,
    /// The package, unless any would do.
    pub(super) package: Option<&'w str>,
}

impl Within<'_> {
    /// A name that may be meant, or those that there are.
    pub(super) fn help(&self, what: What, wanted: &str) -> String {
        let known = what.names(self.catalog, self.package);
        if let Some(near) = did_you_mean(wanted, known.iter().copied()) {
            return near;
        }
        let plural = what.plural();
        if known.is_empty() || known.len() > LISTED {
            return format!("run `olmkit catalog list {plural} {}`", argument(self.input));
        }
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        format!("its {plural} are {}", known.join(", "))
    }

    /// The failure that there are no ways.
    pub(super) fn failure(&self, error: PathError) -> Failure {
        let help = match &error {
            PathError::Package { package, .. } => self.help(What::Package, package),
            PathError::Channel { channel, .. } => self.help(What::Channel, channel),
            PathError::From { from, .. } => self.help(What::Bundle, from),
            _ => format!("run `olmkit catalog validate {}`", argument(self.input)),
        };
        Failure::failed(error).help(help)
    }
}
