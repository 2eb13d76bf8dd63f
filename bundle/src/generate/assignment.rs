//! `--set`: fields of the ClusterServiceVersion that the command line gives a value.

use std::str::FromStr;

use super::codes;
use super::draft::{By, Draft, Origin};
use super::explain::{self, PathStep};
use crate::csv::ClusterServiceVersion;
use crate::finding::Finding;
use crate::suggest::did_you_mean;
use crate::yaml;

/// A field of the ClusterServiceVersion that is given a value: `spec.maturity=stable`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The way to it.
    pub path: Vec<PathStep>,
    /// The value.
    pub value: serde_json::Value,
}

/// A text that assigns nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not PATH=VALUE, such as `spec.maturity=stable`")]
pub struct AssignmentError(String);

impl FromStr for Assignment {
    type Err = AssignmentError;

    /// Reads `PATH=VALUE`: keys with dots between, positions in lists in brackets, and a value in YAML. Dots in a key are
    /// escaped, or the key stands in quotes and brackets.
    fn from_str(text: &str) -> Result<Self, AssignmentError> {
        let fail = || AssignmentError(text.to_owned());
        let (path, value) = text.split_once('=').ok_or_else(fail)?;
        let path = explain::parse(path).filter(|steps| matches!(steps.first(), Some(PathStep::Key(_))));
        let path = path.ok_or_else(fail)?;
        let value = yaml::first_document(value).map_err(|_| fail())?.root.to_json();
        Ok(Self { path, value })
    }
}

impl Assignment {
    /// What is wrong with it: a field that a ClusterServiceVersion does not have, or a value that does not fit there.
    pub(super) fn check(&self) -> Vec<Finding> {
        let nested = self.path.iter().rev().fold(self.value.clone(), |value, step| match step {
            PathStep::Key(key) => serde_json::Map::from_iter([(key.clone(), value)]).into(),
            PathStep::Index(_) => vec![value].into(),
        });
        let path = self.written();
        let finding = |message| Finding::new(&codes::PACKAGE_VALUE_INVALID, message);
        let Ok(text) = yaml::write::to_string(&nested) else { return Vec::new() };
        let Ok(document) = yaml::first_document(&text) else { return Vec::new() };
        match yaml::decode::decode_strict::<ClusterServiceVersion>(&document.root) {
            Err(error) => {
                let has_free_keys = ["labels", "annotations"]
                    .iter()
                    .any(|key| self.path.iter().any(|step| *step == PathStep::from(*key)));
                let finding = finding(format!("`--set`: {error}"));
                let help = "escape the dots of a key, `metadata.annotations.example\\.com/key=value`";
                vec![if has_free_keys { finding.help(help) } else { finding }]
            }
            Ok((_, unknown)) => {
                // Fields that OLM has and we have no use for.
                let others = ["status", "cleanup", "selector"];
                let unknown = unknown.into_iter().filter(|unknown| !others.contains(&unknown.key.as_str()));
                let finding = |unknown: yaml::decode::UnknownField| {
                    let message = format!(
                        "`--set {path}`: a ClusterServiceVersion has no field `{}` there",
                        unknown.key
                    );
                    let mut expected = unknown.expected.to_vec();
                    expected.sort_unstable();
                    let help = did_you_mean(&unknown.key, unknown.expected.iter().copied());
                    finding(message).help(
                        help.unwrap_or_else(|| format!("the fields there are `{}`", expected.join("`, `"))),
                    )
                };
                unknown.map(finding).collect()
            }
        }
    }

    /// The path as it is written, with quotes where keys need them.
    pub(super) fn written(&self) -> String {
        self.path.iter().fold(String::new(), |at, step| match step {
            PathStep::Key(key) => explain::with_key(at, key),
            PathStep::Index(index) => format!("{at}[{index}]"),
        })
    }

    /// Gives the field its value.
    ///
    /// # Errors
    /// When a position is behind the end of its list.
    pub(super) fn apply<'a>(&self, csv: &mut Draft<'a>) -> Result<(), Box<Finding>> {
        let origin = Origin::unwritten(By::Flag("--set"));
        csv.assign(&self.path, Draft::new(self.value.clone(), origin)).map_err(|length| {
            let message = format!("`--set {}`: the list has {length} items, counted from 0", self.written());
            let finding = Finding::new(&codes::PACKAGE_VALUE_INVALID, message);
            Box::new(finding.help(format!("position {length} adds an item")))
        })
    }
}
