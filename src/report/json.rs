//! What `--output json` prints: the types whose JSON Schemas stand in `docs/schemas/`.
//!
//! Scripts build on these: fields are added, never renamed or removed while a schema's version stands.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_catalog::add::AddReport;
use olmkit_catalog::diff::Diff;
use olmkit_catalog::list::{BundleItem, ChannelItem, PackageItem};
use olmkit_catalog::path::UpgradePath;
use olmkit_catalog::resolve::Install;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

use crate::lifecycle::channel_test::Report;
use crate::lifecycle::look::Description;
use crate::lifecycle::olm::status::OlmStatus;
use crate::lifecycle::operator::Operator;
use crate::lifecycle::policy::Violation;
use crate::lifecycle::preview::Preview;
use crate::lifecycle::sources::Source;
use crate::lifecycle::uninstall::Removed;

/// Findings about some inputs: `bundle validate`, `catalog validate`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Findings {
    /// `olmkit.findings/v1`
    pub schema: &'static str,
    /// How many of each.
    pub summary: Summary,
    /// All of them, sorted by input, file and place.
    pub findings: Vec<Finding>,
    /// Why some inputs could not be read; empty when all could.
    pub unread: Vec<String>,
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
    /// How many findings were left out because they are known.
    pub known: usize,
    /// How many findings were left out because there are more than 10,000; only there when some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

/// Kinds of findings: `bundle validate --list`, `--explain`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Codes {
    /// `olmkit.codes/v1`
    pub schema: &'static str,
    /// The kinds, sorted by suite and name.
    pub codes: Vec<CodeEntry>,
}

/// A kind of finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CodeEntry {
    /// Its name.
    pub code: &'static str,
    /// The level unless a flag changes it: `error`, `warning` or `info`.
    pub level: String,
    /// The suite it belongs to.
    pub suite: &'static str,
    /// What it is, with a bad and a good example, in Markdown.
    pub docs: &'static str,
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
    /// For a file that `bundle generate` wrote, the key of the package file to change instead of the line.
    #[serde(rename = "packageFileKey", skip_serializing_if = "Option::is_none")]
    pub package_file_key: Option<String>,
    /// The base ClusterServiceVersion to change instead, where the line comes from that.
    #[serde(rename = "baseFile", skip_serializing_if = "Option::is_none")]
    pub base_file: Option<String>,
    /// The other place, when two contradict each other; for `bundle diff` the place in the old version.
    pub old: Option<Old>,
    /// For `bundle diff`, the place in the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Old>,
    /// The check of OLM v1's CRD upgrade safety that refuses the same; left out when none does.
    #[serde(rename = "olmV1", skip_serializing_if = "Option::is_none")]
    pub olm_v1: Option<OlmV1>,
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

/// Files that were written: `bundle manifests --kustomize`, `--helm-chart`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    /// `olmkit.written/v1`
    pub schema: &'static str,
    /// The directory.
    pub directory: String,
    /// The files below it.
    pub files: Vec<String>,
}

/// A check of OLM v1's CRD upgrade safety.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OlmV1 {
    /// The check, by crdify's name, such as `type` or `existingFieldRemoval`.
    pub check: &'static str,
    /// The version, or `OLD -> NEW` where two served versions differ; left out for checks of the whole CRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The property as crdify writes it, such as `^.spec.size`; left out for checks of the whole CRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
}

/// A bundle that was generated: `bundle generate`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Generated {
    /// `olmkit.generated/v1`
    pub schema: &'static str,
    /// The name of the ClusterServiceVersion; empty if missing.
    pub csv: String,
    /// The files of the bundle, below the output directory; none when a finding is an error.
    pub files: Vec<String>,
    /// With `--check`: those that are not on disk as they should be, and nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<Vec<String>>,
    /// What there is to say about the input.
    pub findings: Vec<Finding>,
    /// How many findings were left out because there are more than 10,000; only there when some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

/// An image that was written: `bundle build`, `bundle push`, `catalog build`, `catalog push`, `image copy`.
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

/// The upgrade path of each version to the head of its channel: `catalog path`.
// The list is printed by `olmkit_catalog::path::UpgradePaths`, one path at a time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Paths<'p> {
    /// `olmkit.path/v1`
    pub schema: &'static str,
    /// The ways, sorted by package, channel and version.
    pub paths: Vec<UpgradePath<'p>>,
}

/// What a catalog holds: `catalog list packages`, `channels` and `bundles`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct List<'i, T> {
    /// `olmkit.list/v1`
    pub schema: &'static str,
    /// The items: packages by name, channels by package and name, bundles by package, version and name.
    pub items: &'i [T],
}

/// What may be in a [`List`].
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ListItem<'c> {
    /// Of `catalog list packages`.
    Package(PackageItem<'c>),
    /// Of `catalog list channels`.
    Channel(ChannelItem<'c>),
    /// Of `catalog list bundles`.
    Bundle(BundleItem<'c>),
}

/// Which way a resolution goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResolutionResult {
    /// Something is installed.
    Install,
    /// Nothing changes.
    Stay,
    /// The constraints exclude each other.
    Unsatisfiable,
    /// OLM cannot tell.
    Error,
}

/// What OLM would install next: `catalog resolve`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Resolution {
    /// `olmkit.resolution/v1`
    pub schema: &'static str,
    /// Which way it goes.
    pub result: ResolutionResult,
    /// What is installed, sorted by name.
    pub install: Vec<Install>,
    /// One sentence.
    pub sentence: String,
    /// The constraints that exclude each other, each in a sentence, in the order in which one leads to another.
    pub constraints: Vec<String>,
}

/// A change to a catalog: `catalog promote`, `deprecate`, `remove` and the other edits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Edited {
    /// `olmkit.edit/v1`
    pub schema: &'static str,
    /// Whether there is anything to change.
    pub changed: bool,
    /// The files that change, by path.
    pub files: Vec<EditedFile>,
    /// What was done, or why there was nothing to do, in sentences.
    pub summary: Vec<String>,
}

/// A file of a catalog that changes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EditedFile {
    /// The path below the catalog's directory.
    pub path: String,
    /// The unified diff.
    pub diff: String,
}

/// A compiled catalog: `catalog build-index`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// `olmkit.index/v1`
    pub schema: &'static str,
    /// The file.
    pub path: String,
    /// The digest of the catalog's files: `sha256:…`
    pub catalog_digest: String,
    /// The file's size in bytes.
    pub size: u64,
    /// How many packages there are.
    pub packages: usize,
    /// How many bundles there are, each counted once.
    pub bundles: usize,
}

/// A bundle that was unpacked: `bundle unpack`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unpacked {
    /// `olmkit.unpacked/v1`
    pub schema: &'static str,
    /// The bundle as it was named.
    pub reference: String,
    /// The directory.
    pub output_dir: String,
    /// The files that were written, below the directory, sorted.
    pub files: Vec<String>,
}

/// The digest of an image: `image digest`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImageDigest {
    /// `olmkit.digest/v1`
    pub schema: &'static str,
    /// The digest of its manifest or index.
    pub digest: String,
    /// The image for each platform, in the image's order.
    pub platforms: Vec<PlatformDigest>,
}

/// The image for one platform.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlatformDigest {
    /// The platform, such as `linux/amd64`.
    pub platform: String,
    /// The digest of its manifest.
    pub digest: String,
}

/// Image metadata: `image inspect`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    /// `olmkit.inspected/v1`
    pub schema: &'static str,
    /// The image as it was named.
    pub reference: String,
    /// The digest of its manifest or index.
    pub digest: String,
    /// What the digest names: an image's manifest or an index.
    pub media_type: String,
    /// The images, in the image's order.
    pub images: Vec<InspectedImage>,
}

/// One image of an index, or the only one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedImage {
    /// The digest of its manifest.
    pub digest: String,
    /// The platform, such as `linux/amd64`; none for an attestation.
    pub platform: Option<String>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The command that a container runs.
    pub entrypoint: Vec<String>,
    /// Arguments of the command.
    pub cmd: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// The user that a container runs as.
    pub user: Option<String>,
    /// TCP ports that a container listens on.
    pub ports: BTreeSet<u16>,
    /// The layers, lowest first.
    pub layers: Vec<InspectedLayer>,
}

/// A layer of an image that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InspectedLayer {
    /// The digest of the bytes as they are stored.
    pub digest: String,
    /// The digest of the bytes before compression.
    pub diff_id: Option<String>,
    /// The number of bytes as they are stored.
    pub size: u64,
    /// How they are packed.
    pub media_type: String,
}

/// An operator on a cluster: `operator status`, `install`, `upgrade`, `approve`, `rollback`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OperatorReport<'o> {
    /// `olmkit.operator/v1`
    pub schema: &'static str,
    /// The operator.
    #[serde(flatten)]
    pub operator: &'o Operator,
}

/// Everything about an operator: `operator describe`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DescriptionReport<'o> {
    /// `olmkit.description/v1`
    pub schema: &'static str,
    /// The operator.
    #[serde(flatten)]
    pub description: &'o Description,
}

/// The operators of a cluster: `operator list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OperatorList<'o> {
    /// `olmkit.operators/v1`
    pub schema: &'static str,
    /// The operators, by namespace and name.
    pub operators: &'o [Operator],
}

/// What became of the parts of an operator, or of OLM: `operator uninstall` and `olm uninstall`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedReport<'o> {
    /// `olmkit.removed/v1`
    pub schema: &'static str,
    /// The parts.
    #[serde(flatten)]
    pub parts: &'o Removed,
}

/// How OLM itself is: `olm install` and `olm status`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OlmReport<'o> {
    /// `olmkit.olm/v1`
    pub schema: &'static str,
    /// How it is.
    #[serde(flatten)]
    pub olm: &'o OlmStatus,
}

/// A CatalogSource: `source add`, `source refresh`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceReport<'s> {
    /// `olmkit.source/v1`
    pub schema: &'static str,
    /// The CatalogSource.
    #[serde(flatten)]
    pub source: &'s Source,
}

/// The CatalogSources of a cluster: `source list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceList<'s> {
    /// `olmkit.sources/v1`
    pub schema: &'static str,
    /// By namespace and name.
    pub sources: &'s [Source],
}

/// What came of the tests of a package's channels: `operator test`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChannelTests<'r> {
    /// `olmkit.channel-test/v1`
    pub schema: &'static str,
    /// The tests.
    #[serde(flatten)]
    pub report: &'r Report,
    /// What ended the run early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What would be written: the operator verbs and `olm install` with `--dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DryRun {
    /// `olmkit.dry-run/v1`
    pub schema: &'static str,
    /// The writes, in their order.
    pub writes: Vec<Write>,
}

/// A write that was not done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Write {
    /// `create`, `patch` or `delete`.
    pub verb: &'static str,
    /// The object's kind.
    pub kind: String,
    /// Its namespace, empty where it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object, or what is merged into it; null for a deletion.
    pub document: serde_json::Value,
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

/// Bundles made of package manifests: `bundle convert`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Converted {
    /// `olmkit.converted/v1`
    pub schema: &'static str,
    /// The package's name.
    pub package: String,
    /// The bundles in the order of their directories; none when a finding is an error.
    pub bundles: Vec<ConvertedBundle>,
    /// What there is to say about the input.
    pub findings: Vec<Finding>,
    /// How many findings were left out because there are more than 10,000; only there when some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

/// A bundle made of one version's directory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConvertedBundle {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// Where it is.
    pub directory: String,
    /// The channels it is in.
    pub channels: Vec<String>,
    /// Its files.
    pub files: Vec<String>,
}

/// A package file to start from: `bundle init`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Initial {
    /// `olmkit.initial/v1`
    pub schema: &'static str,
    /// The directory.
    pub directory: String,
    /// The files that were written there.
    pub files: Vec<String>,
    /// Other sources of manifests that were found and are not used, as keys of the package file.
    pub unused: Vec<String>,
    /// What the package file still lacks.
    pub missing: Vec<String>,
    /// The next command.
    pub next: String,
}

/// Where fields of a ClusterServiceVersion come from: `bundle generate --explain`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// `olmkit.explained/v1`
    pub schema: &'static str,
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The fields at and below the path that was asked for.
    pub fields: Vec<ExplainedField>,
}

/// A field of a ClusterServiceVersion.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedField {
    /// Its path, such as `spec.install.spec.deployments[0].name`.
    pub path: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Where the value comes from.
    pub origin: Origin,
    /// What else it was made of.
    pub made_of: Vec<Origin>,
    /// Whose values it stands instead of.
    pub instead_of: Vec<Origin>,
}

/// Who said something, and where.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Origin {
    /// `manifest`, `base`, `packageFile`, `cargo`, `flag`, `environment`, `catalog`, `registry` or `rule`.
    pub by: &'static str,
    /// The flag, the variable, or the rule in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is written; for a rule, what it was applied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// What the doctor found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiagnosisReport<'a> {
    /// The format: `olmkit.diagnosis/v1`.
    pub schema: &'static str,
    /// The diagnosis.
    #[serde(flatten)]
    pub diagnosis: &'a crate::lifecycle::doctor::Diagnosis,
}

/// What an InstallPlan will change: `operator plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanReport<'a> {
    /// `olmkit.plan/v1`
    pub schema: &'static str,
    /// What it will change.
    #[serde(flatten)]
    pub preview: &'a Preview,
    /// Whether it meets the policy; missing without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyVerdict<'a>>,
}

/// Whether a plan meets a policy.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyVerdict<'a> {
    /// Whether it does.
    pub holds: bool,
    /// What does not.
    pub violations: &'a [Violation],
}

/// A place in a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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

/// The version of the program, and of what it is tested with: `version`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `olmkit.version/v1`
    pub schema: &'static str,
    /// Of olmkit.
    pub version: &'static str,
    /// Of OLM.
    pub olm: &'static str,
    /// Of operator-registry, whose program is opm.
    pub operator_registry: &'static str,
    /// Of Kubernetes, major and minor.
    pub kubernetes: &'static str,
    /// All of Kubernetes that upgrades are tested on, the newest last.
    pub kubernetes_versions: &'static [&'static str],
    /// The format of bundles.
    pub bundle_format: &'static str,
    /// The format of catalogs.
    pub catalog_format: &'static str,
}

/// Every schema by the name of its file in `docs/schemas/`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("added-v1", schema_for!(AddReport)),
        ("channel-test-v1", schema_for!(ChannelTests)),
        ("description-v1", schema_for!(DescriptionReport)),
        ("diagnosis-v1", schema_for!(DiagnosisReport)),
        ("codes-v1", schema_for!(Codes)),
        ("converted-v1", schema_for!(Converted)),
        ("digest-v1", schema_for!(ImageDigest)),
        ("dry-run-v1", schema_for!(DryRun)),
        ("catalog-diff-v1", schema_for!(Diff)),
        ("edit-v1", schema_for!(Edited)),
        ("error-v1", schema_for!(Error)),
        ("explained-v1", schema_for!(Explained)),
        ("findings-v1", schema_for!(Findings)),
        ("generated-v1", schema_for!(Generated)),
        ("image-v1", schema_for!(Image)),
        ("index-v1", schema_for!(Index)),
        ("list-v1", schema_for!(List<'_, ListItem<'_>>)),
        ("path-v1", schema_for!(Paths)),
        ("plan-v1", schema_for!(PlanReport)),
        ("initial-v1", schema_for!(Initial)),
        ("inspected-v1", schema_for!(Inspected)),
        ("resolution-v1", schema_for!(Resolution)),
        ("olm-v1", schema_for!(OlmReport)),
        ("operator-v1", schema_for!(OperatorReport)),
        ("operators-v1", schema_for!(OperatorList)),
        ("removed-v1", schema_for!(RemovedReport)),
        ("source-v1", schema_for!(SourceReport)),
        ("sources-v1", schema_for!(SourceList)),
        ("unpacked-v1", schema_for!(Unpacked)),
        ("version-v1", schema_for!(Version)),
        ("written-v1", schema_for!(Written)),
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
        let found = paths(&Catalog::parse(&files), &Query::default()).unwrap();
        let expected = Paths { schema: "olmkit.path/v1", paths: found.iter().collect() };
        assert_eq!(expected.paths.len(), 2);
        assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(expected).unwrap());
    }
}
