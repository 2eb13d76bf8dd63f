//! Edits catalogs in place: comments, key order, quotes and everything that an edit does not change stay as they are.
//!
//! [`texts`] collects the changes to the files of a catalog, and [`document`] changes one document of YAML or JSON.

pub(crate) mod document;
pub(crate) mod texts;

pub use texts::{ChangedFile, TextError};
