//! Findings that are known: what an earlier run printed with `--output json`.

use std::collections::BTreeMap;
use std::path::Path;

use olmkit_bundle::finding::Finding;
use serde::Deserialize;

use super::RequestError;
use crate::exit::Failure;
use crate::files;

/// Known findings, and how often each.
pub(super) struct Baseline(BTreeMap<Key, usize>);

/// What a finding is known by. Lines and columns are left out: they move with every edit above.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    code: String,
    bundle: String,
    subject: Option<String>,
    path: Option<String>,
    message: String,
}

#[derive(Deserialize)]
struct Findings {
    findings: Vec<Key>,
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or holds no findings.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = files::read_text(path)?;
        let Findings { findings } = serde_json::from_str(&text).map_err(|source| {
            let error = RequestError::Baseline { path: path.to_owned(), source };
            Failure::usage(error).help("make it with `olmkit bundle validate … --output json > FILE`")
        })?;
        let mut known = BTreeMap::new();
        for key in findings {
            *known.entry(key).or_default() += 1;
        }
        Ok(Self(known))
    }

    /// Whether a finding is known. Each one that was known covers one.
    pub(super) fn take(&mut self, finding: &Finding) -> bool {
        let key = Key {
            code: finding.code.name.to_owned(),
            bundle: finding.input.clone(),
            subject: finding.subject.clone(),
            path: finding.place.as_ref().map(|place| place.path.clone()),
            message: finding.message.clone(),
        };
        match self.0.get_mut(&key) {
            Some(left @ 1..) => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}
