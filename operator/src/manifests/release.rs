//! Which release the manifests are for.

use std::{fmt, str::FromStr};

use semver::{BuildMetadata, Version};

/// A release of the operator, not older than this program.
///
/// The API of the manifests is always this program's, so it has no true answer for an older release: those
/// are kept as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release(Version);

/// Why a text is not a release to make manifests for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseError {
    /// Not a semantic version.
    #[error("not a version such as 1.2.3: {0}")]
    NotSemver(String),
    /// An image tag cannot hold build metadata.
    #[error("an image tag cannot hold the build metadata `+{0}`: leave it out")]
    BuildMetadata(BuildMetadata),
    /// The manifests of older releases are history.
    #[error(
        "older than this program, which is {current}: run the program of that release, or take its files from operator/deploy/{asked}"
    )]
    Older {
        /// What was asked for.
        asked: Version,
        /// What this program is.
        current: Version,
    },
}

impl Default for Release {
    /// The release that this program is.
    fn default() -> Self {
        // Cargo builds no package whose version is not a semantic one.
        Self(Version::parse(env!("CARGO_PKG_VERSION")).expect("cargo checked the version"))
    }
}

impl FromStr for Release {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let asked = Version::parse(text).map_err(|error| ReleaseError::NotSemver(error.to_string()))?;
        let Self(current) = Self::default();
        if !asked.build.is_empty() {
            Err(ReleaseError::BuildMetadata(asked.build))
        } else if asked < current {
            Err(ReleaseError::Older { asked, current })
        } else {
            Ok(Self(asked))
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
