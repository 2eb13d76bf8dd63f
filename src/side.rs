//! What users name where two versions are compared: an input, or what a revision of a git repository has.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::git::Revision;
use crate::image::PlaceError;
use crate::input::Input;

/// One of two that are compared.
#[derive(Clone, Debug)]
pub enum Side {
    /// What is on disk, or an image.
    Input(Input),
    /// What a revision of a git repository has: `git:REV:PATH`.
    Git(Revision),
}

/// A text that names neither an input nor a revision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SideError {
    /// It is no image.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// It is not a path of a revision.
    #[error("expected `git:REV:PATH`, such as `git:{}:bundle`", if .revision.is_empty() { "HEAD" } else { .revision.as_str() })]
    Revision {
        /// The revision, where there is one that git would not take for an option.
        revision: String,
    },
}

impl FromStr for Side {
    type Err = SideError;

    fn from_str(text: &str) -> Result<Self, SideError> {
        if Path::new(text).exists() {
            return Ok(Self::Input(text.parse()?));
        }
        match (Revision::parse(text), text.strip_prefix("git:")) {
            (Some(revision), _) => Ok(Self::Git(revision)),
            (None, Some(rest)) => {
                let revision = rest.split(':').next().unwrap_or_default();
                let revision = if revision.starts_with('-') { "" } else { revision };
                Err(SideError::Revision { revision: revision.to_owned() })
            }
            (None, None) => Ok(Self::Input(text.parse()?)),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            Self::Git(revision) => revision.fmt(f),
        }
    }
}
