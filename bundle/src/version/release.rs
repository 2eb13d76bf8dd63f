//! A version with the release of its packaging.

use std::cmp::Ordering;
use std::fmt;

use semver::Prerelease;

use super::{Version, precedence};

/// A bundle's version, and its release where it has one.
///
/// Ordered as OLM orders them: by the version without its build metadata, then by release, none before any.
#[derive(Clone, Debug)]
pub struct VersionRelease {
    /// The version of the operator.
    pub version: Version,
    /// The release of its packaging.
    pub release: Option<Release>,
}

/// Tells packagings of one version apart: identifiers with dots between, as in a pre-release, at most 20 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(Prerelease);

/// A text that is no release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{release}` is not a release: {why}")]
pub struct ReleaseError {
    /// The text.
    pub release: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Release {
    /// Reads a release; an empty text is none.
    ///
    /// # Errors
    /// When it is too long, or no list of identifiers.
    pub fn parse(text: &str) -> Result<Option<Self>, ReleaseError> {
        let fail = |why| ReleaseError { release: text.to_owned(), why };
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.is_empty() {
            return Ok(None);
        }
        if text.len() > 20 {
            return Err(fail("it is longer than 20 characters"));
        }
        if text.split('.').any(|part| part.is_empty() || !part.chars().all(is_inner)) {
            return Err(fail("its parts between dots are letters, digits and `-`"));
        }
        let release = Prerelease::new(text).map_err(|_| fail("a number in it starts with zero"))?;
        Ok(Some(Self(release)))
    }
}

impl VersionRelease {
    /// How OLM v1 reads it: build metadata that could be a release is one, as in `1.0.0+2`.
    ///
    /// ```
    /// use olmkit_bundle::version::VersionRelease;
    /// let v1 = |text: &str| VersionRelease::from(text.parse::<semver::Version>().unwrap()).with_build_as_release();
    /// assert!(v1("1.0.0") < v1("1.0.0+1") && v1("1.0.0+2") < v1("1.0.0+10"));
    /// // Other build metadata does not count.
    /// assert_eq!(v1("1.0.0"), v1("1.0.0+001"));
    /// ```
    pub fn with_build_as_release(mut self) -> Self {
        let build = self.version.build.as_str();
        let is_number = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
        let fits = build.split('.').all(|part| !is_number(part) || part.parse::<u64>().is_ok());
        if self.release.is_none() && !build.is_empty() && fits {
            self.release = Prerelease::new(build).ok().map(Release);
        }
        self
    }
}

impl From<Version> for VersionRelease {
    fn from(version: Version) -> Self {
        Self { version, release: None }
    }
}

impl fmt::Display for VersionRelease {
    /// `VERSION`, or `VERSION-RELEASE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version.fmt(f)?;
        self.release.as_ref().map_or(Ok(()), |release| write!(f, "-{}", release.0))
    }
}

impl Ord for VersionRelease {
    fn cmp(&self, other: &Self) -> Ordering {
        precedence(&self.version, &other.version).then_with(|| self.release.cmp(&other.release))
    }
}

impl PartialOrd for VersionRelease {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VersionRelease {
    /// Of the same precedence: build metadata does not count.
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for VersionRelease {}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str, release: &str) -> VersionRelease {
        VersionRelease { version: text.parse().unwrap(), release: Release::parse(release).unwrap() }
    }

    #[test]
    fn ordered_by_version_then_release() {
        let sorted = [
            version("1.0.0-rc.1", "5"),
            version("1.0.0", ""),
            version("1.0.0", "alpha"),
            version("1.0.0", "alpha.2"),
            version("1.0.0", "alpha.10"),
            version("1.0.1", ""),
        ];
        // Numbers come before words.
        assert!(version("1.0.0", "2") < version("1.0.0", "alpha"));
        assert!(sorted.is_sorted_by(|a, b| a < b));
        assert_eq!(version("1.0.0+a", ""), version("1.0.0+b", ""));
        assert_eq!(version("1.0.0", "2").to_string(), "1.0.0-2");
    }

    #[test]
    fn releases() {
        for bad in ["01", "a..b", "a_b", "a.", "123456789012345678901", "ü"] {
            assert!(Release::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Release::parse(""), Ok(None));
    }
}
