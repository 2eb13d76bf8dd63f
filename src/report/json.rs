//! What `--output json` prints: the types whose JSON Schemas stand in `docs/schemas/`.
//!
//! Scripts build on these: fields are added, never renamed or removed while a schema's version stands.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

/// Findings about some inputs: `bundle validate`, `catalog validate`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Findings {
    /// `olmkit.findings/v1`
    pub schema: &'static str,
    /// How many of each.
    pub summary: Summary,
    /// All of them, sorted by input, file and place.
    pub findings: Vec<Finding>,
}

/// How many inputs were checked and what was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// How many inputs were checked.
    pub checked: usize,
    /// How many findings are errors.
    pub errors: usize,
    /// How many findings are warnings.
    pub warnings: usize,
}

/// Something to say about an input.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// The kind of finding; see `docs/findings.md`.
    pub code: &'static str,
    /// `error`, `warning` or `info`.
    pub level: String,
    /// One sentence.
    pub message: String,
    /// The input as it was named: a bundle's or catalog's directory or reference.
    pub bundle: String,
    /// The object it speaks of.
    pub subject: Option<String>,
    /// The file.
    pub path: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column in characters, from 1.
    pub column: Option<u32>,
    /// The other place, when two contradict each other.
    pub old: Option<Old>,
    /// The way out.
    pub help: Option<String>,
    /// Where the kind of finding is explained.
    pub docs: String,
}

/// The other of two places.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Old {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// A bundle that was generated: `bundle generate`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Generated {
    /// `olmkit.generated/v1`
    pub schema: &'static str,
    /// The name of the ClusterServiceVersion; empty when there is none.
    pub csv: String,
    /// The files that were written, below the output directory; none when a finding is an error.
    pub files: Vec<String>,
    /// What there is to say about the input.
    pub findings: Vec<Finding>,
}

/// An image that was written: `bundle build`, `catalog build`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Image {
    /// `olmkit.image/v1`
    pub schema: &'static str,
    /// Where it is.
    pub reference: String,
    /// The digest of its manifest or index.
    pub digest: String,
    /// Its layers, lowest first.
    pub layers: Vec<Layer>,
}

/// A layer of an image.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    /// The digest of the compressed bytes.
    pub digest: String,
    /// The digest of the bytes before compression.
    pub diff_id: String,
    /// The number of compressed bytes.
    pub size: u64,
}

/// Each version's way to the head of its channel: `catalog path`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Paths {
    /// `olmkit.path/v1`
    pub schema: &'static str,
    /// The ways, sorted by package, channel and version.
    pub paths: Vec<Path>,
}

/// A version's way to the head of a channel.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The installed ClusterServiceVersion.
    pub from: String,
    /// Those that are installed one after another.
    pub hops: Vec<String>,
    /// The channel's head.
    pub head: String,
    /// Whether the way ends there.
    pub reaches_head: bool,
}

/// What was added to a catalog: `catalog add`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    /// `olmkit.added/v1`
    pub schema: &'static str,
    /// The package.
    pub package: String,
    /// Its default channel.
    pub default_channel: String,
    /// The bundles that were asked for, by version.
    pub bundles: Vec<AddedBundle>,
    /// The channels they went into.
    pub channels: Vec<ChangedChannel>,
    /// The files that changed.
    pub files: Vec<ChangedFile>,
}

/// A bundle that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AddedBundle {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its image; empty when it has none.
    pub image: String,
    /// Whether it is new to the catalog.
    pub added: bool,
}

/// A channel with what is new in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedChannel {
    /// Its name.
    pub name: String,
    /// Whether it is new.
    pub added: bool,
    /// The bundle that new installations get now.
    pub head: String,
    /// The entries that are new or have new edges.
    pub entries: Vec<ChangedEntry>,
}

/// An entry that is new or has new edges.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedEntry {
    /// The bundle.
    pub name: String,
    /// Whether it is new.
    pub added: bool,
    /// The bundle it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The bundles it skips.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skips: Vec<String>,
    /// The versions that may jump to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// A file that changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// The path below the catalog's directory.
    pub path: String,
    /// Whether it is new.
    pub added: bool,
}

/// Why something could not be done; any command.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Error {
    /// `olmkit.error/v1`
    pub schema: &'static str,
    /// What failed.
    pub error: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// The way out.
    pub help: Option<String>,
    /// Where in a file the trouble is, when it is in a file.
    #[serde(flatten)]
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Place {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column in characters, from 1.
    pub column: Option<u32>,
}

impl Place {
    pub(super) fn of(place: &olmkit_bundle::finding::Place) -> Self {
        Self {
            path: place.path.clone(),
            line: place.position.map(|position| position.line),
            column: place.position.map(|position| position.column),
        }
    }
}

/// Every schema by the name of its file in `docs/schemas/`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("added-v1", schema_for!(Added)),
        ("error-v1", schema_for!(Error)),
        ("findings-v1", schema_for!(Findings)),
        ("generated-v1", schema_for!(Generated)),
        ("image-v1", schema_for!(Image)),
        ("path-v1", schema_for!(Paths)),
    ]
}

#[cfg(test)]
mod tests {
    use olmkit_catalog::fbc::Catalog;
    use olmkit_catalog::load::CatalogFiles;
    use olmkit_catalog::path::{Query, paths};

    use super::*;

    #[test]
    fn paths_are_printed_as_their_schema_says() {
        let text = "{schema: olm.channel, package: p, name: c, entries: [{name: a}, {name: b, replaces: a}]}";
        let files = CatalogFiles::from_text("catalog.yaml", text);
        let printed =
            serde_json::to_value(paths(&Catalog::parse(&files), &Query::default()).unwrap()).unwrap();
        let path = |from: &str, hops: &[&str]| Path {
            package: "p".into(),
            channel: "c".into(),
            from: from.into(),
            hops: hops.iter().map(|hop| (*hop).to_owned()).collect(),
            head: "b".into(),
            reaches_head: true,
        };
        let expected = Paths { schema: "olmkit.path/v1", paths: vec![path("a", &["b"]), path("b", &[])] };
        assert_eq!(printed, serde_json::to_value(expected).unwrap());
    }
}
