//! `bundle validate` against what operator-sdk said of every bundle, suite by suite.
//!
//! operator-sdk's messages have no codes: [`CLASSES`] says by a part of the text which rule is meant. What is compared are
//! sets of (level, code, subject), the subject where the message names one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use olmkit_bundle::load::BundleFiles;
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{
    CAPABILITIES, CATEGORIES, COMMUNITY, GOOD_PRACTICES, OLM, OPERATORHUB, REMOVED_APIS, validate,
};
use serde_json::Value;

use crate::catalogs::rows;

/// operator-sdk's selection, and our suites.
const SUITES: [(&str, &[&str]); 3] = [
    ("none", &[OLM]),
    ("operatorframework", &[OLM, OPERATORHUB, CAPABILITIES, CATEGORIES, GOOD_PRACTICES, REMOVED_APIS]),
    ("community", &[OLM, COMMUNITY]),
];

/// A part of a message, and the rule. The first that fits counts.
const CLASSES: &[(&str, &str)] = &[
    ("index image file via", "openshift-label-unchecked"),
    ("csv.Annotations not specified olm.maxOpenShiftVersion", "openshift-max-version-missing"),
    ("and a value with an OCP version which is <", "openshift-max-version-missing"),
    ("csv.Annotations has an invalid value specified", "openshift-max-version-invalid"),
    ("has the OCP version value", "openshift-max-version-too-high"),
    ("must specify only major.minor", "openshift-max-version-patch"),
    ("Unable to parse (", "openshift-max-version-invalid"),
    ("Icon not specified", "csv-icon-missing"),
    ("Icon should only have one", "csv-icon-count"),
    ("Icon elements should contain", "csv-icon-incomplete"),
    ("does not have a valid mediatype", "csv-icon-media-type"),
    ("Spec.Provider.Name not", "csv-provider-missing"),
    ("Maintainers elements", "csv-maintainer-incomplete"),
    ("Maintainers email", "csv-maintainer-email-invalid"),
    ("Links elements", "csv-link-incomplete"),
    ("Links url", "csv-link-url-invalid"),
    ("Spec.Version must", "csv-version-missing"),
    ("Annotations.Capabilities", "csv-capability-unknown"),
    ("Annotations[\"categories\"] value", "csv-category-unknown"),
    ("unable to find a deployment", "csv-deployments-missing"),
    ("resource requests for the container", "container-without-requests"),
    ("has an empty description", "csv-crd-description-missing"),
    ("CSV contains permissions to create CRD", "csv-manages-crds"),
    ("not following the versioning", "csv-name-version"),
    ("recommended naming convention: <operator", "csv-name-convention"),
    ("unable to use csv.Spec.MinKubeVersion", "removed-api-version-unreadable"),
    ("couldn't parse dependency", "dependency-unreadable"),
    ("API Group is empty", "dependency-gvk-incomplete"),
    ("API Version is empty", "dependency-gvk-incomplete"),
    ("API Kind is empty", "dependency-gvk-incomplete"),
    ("Package name is empty", "dependency-package-invalid"),
    ("Package version is empty", "dependency-package-invalid"),
    ("Invalid semver", "dependency-package-invalid"),
    ("Label information", "dependency-label-missing"),
    ("CEL", "dependency-constraint-invalid"),
    ("Could not find annotations", "annotations-missing"),
    ("Unable to locate metadata", "metadata-missing"),
    ("metadata.name \"", "csv-name-invalid"),
    ("spec.replaces \"", "csv-replaces-invalid"),
    (") annotations not found", "csv-annotations-missing"),
    ("example annotations not found", "csv-examples-missing"),
    ("both `alm-examples` and", "csv-examples-ambiguous"),
    ("invalid example", "csv-examples-not-json"),
    ("error decoding example", "csv-examples-not-objects"),
    ("example must have a provided API", "csv-example-without-api"),
    ("couldn't parse plural.group", "csv-owned-crd-name-invalid"),
    ("provided API should have an example", "csv-api-without-example"),
    ("install modes not found", "csv-install-modes-missing"),
    ("none of InstallModeTypes", "csv-install-modes-unsupported"),
    ("only AllNamespaces", "csv-conversion-install-modes"),
    ("minKubeVersion is not informed", "csv-min-kube-version-missing"),
    ("MinKubeVersion has an invalid", "csv-min-kube-version-invalid"),
    ("required field missing", "csv-field-missing"),
    ("uses wrong case", "csv-annotation-case"),
    ("found olm.properties", "csv-properties-annotation"),
    ("'apiVersion' is missing", "csv-api-version-missing"),
    ("duplicate CRD", "crd-duplicate"),
    ("not defined in CSV", "crd-not-owned"),
    ("present in bundle", "crd-not-owned"),
    ("owned CRD", "csv-owned-crd-missing"),
    ("invalid service account", "service-account-conflict"),
    ("nearing maximum", "bundle-nearly-too-large"),
    ("maximum bundle", "bundle-too-large"),
    ("unsupported media type", "manifest-kind-unsupported"),
    ("error validating object", "manifest-metadata-invalid"),
    ("Missing annotation", "annotation-missing"),
    ("to have non-empty value", "annotation-empty"),
    ("to have value", "annotation-mediatype-unexpected"),
    ("contains no yaml files", "manifests-missing"),
    ("multiple CSVs", "csv-multiple"),
    ("Object 'Kind' is missing", "manifest-kind-missing"),
    ("unable to decode object", "yaml-syntax"),
    ("unable to parse CSV", "csv-type-mismatch"),
    ("unable to parse CRD", "crd-type-mismatch"),
    ("unsupported CRD version", "crd-api-version-unsupported"),
    ("contains directory", "manifests-subdirectory"),
    ("hidden file", "manifests-hidden-file"),
];

/// The start of the field that a fault of a CRD is in, and the rule.
const CRD_FIELDS: &[(&str, &str)] = &[
    ("spec.preserveUnknownFields", "crd-preserve-unknown-fields"),
    ("metadata.annotations[api-approved", "crd-group-not-approved"),
    ("metadata.name", "crd-name-invalid"),
    ("metadata.generateName", "crd-name-invalid"),
    ("metadata", "crd-metadata-invalid"),
    ("spec.group", "crd-group-invalid"),
    ("spec.scope", "crd-scope-invalid"),
    ("spec.names", "crd-names-invalid"),
    ("spec.conversion", "crd-conversion-invalid"),
    ("spec.version", "crd-versions-invalid"),
];

/// Codes whose messages name a group, version and kind.
const ABOUT_A_KIND: [&str; 5] = [
    "csv-api-without-example",
    "csv-example-without-api",
    "crd-not-owned",
    "csv-owned-crd-missing",
    "crd-duplicate",
];

/// (level, code, subject)
type Row = (String, String, String);

/// Whose row it is alone, `ours` or `theirs`, and the row.
type OneSided = (&'static str, Row);

pub(crate) fn trials(corpus: &Path) -> Vec<Trial> {
    let trial = |suite: &'static str| {
        let corpus = corpus.to_owned();
        Trial::test(format!("validate::{suite}"), move || compare(&corpus, suite))
    };
    let stale = corpus.to_owned();
    let suites = SUITES.iter().map(|(suite, _)| trial(suite));
    suites.chain([Trial::test("validate::known_differences", move || known_differences(&stale))]).collect()
}

fn compare(corpus: &Path, suite: &str) -> Result<(), Failed> {
    let known = Difference::all()?;
    let found = differences(corpus, suite)?;
    let (mut agree, mut explained, mut report) = (0, 0, String::new());
    for (bundle, differences) in &found {
        agree += usize::from(differences.is_empty());
        for (only, row) in differences {
            match known.iter().any(|known| known.explains(only, row)) {
                true => explained += 1,
                false => report += &format!("{bundle}: only {only}: {row:?}\n"),
            }
        }
    }
    let unexplained = report.lines().count();
    eprintln!(
        "validate, suite {suite}: {agree} of {} bundles agree, {explained} recorded differences, {unexplained} unexplained",
        found.len()
    );
    if report.is_empty() && found.len() > 200 { Ok(()) } else { Err(report.into()) }
}

/// Every entry explains something.
fn known_differences(corpus: &Path) -> Result<(), Failed> {
    let mut rows = Vec::new();
    for (suite, _) in SUITES {
        rows.extend(differences(corpus, suite)?.into_values().flatten());
    }
    let explains = |known: &Difference| rows.iter().any(|(only, row)| known.explains(only, row));
    let stale: Vec<_> =
        Difference::all()?.into_iter().filter(|known| known.corpus && !explains(known)).collect();
    if stale.is_empty() { Ok(()) } else { Err(format!("these explain nothing: {stale:?}").into()) }
}

/// For each bundle what only one side says.
fn differences(corpus: &Path, suite: &str) -> Result<BTreeMap<String, Vec<OneSided>>, Failed> {
    let (_, suites) = SUITES.iter().find(|(name, _)| *name == suite).ok_or("no such suite")?;
    let mut found = BTreeMap::new();
    for answer in rows(corpus, "operator-sdk-validate.jsonl")? {
        if answer["suite"] != suite {
            continue;
        }
        let bundle = answer["bundle"].as_str().unwrap_or_default();
        let (theirs, ours) = (theirs(&answer), ours(&corpus.join("bundles").join(bundle), suites)?);
        // Where it ends without a result there is the one error that ended it.
        let ended = answer["passed"].is_null();
        let only_ours = ours.iter().filter(|row| !ended && !theirs.contains(*row));
        let only_theirs = theirs.iter().filter(|row| !ours.contains(*row));
        let only_theirs = only_theirs.map(|row| ("theirs", row.clone()));
        let all = only_theirs.chain(only_ours.map(|row| ("ours", row.clone())));
        found.insert(bundle.to_owned(), all.collect());
    }
    Ok(found)
}

fn ours(directory: &Path, suites: &[&str]) -> Result<BTreeSet<Row>, Failed> {
    let files = BundleFiles::load(directory)?;
    let findings = validate(&Bundle::parse(&files), suites);
    let row = |finding: &olmkit_bundle::finding::Finding| {
        let code = finding.code.name;
        let named = ABOUT_A_KIND.contains(&code)
            || code.starts_with("removed-api")
            || matches!(
                code,
                "container-without-requests" | "csv-crd-description-missing" | "service-account-conflict"
            );
        let named = named && code != "removed-api-version-unreadable";
        let subject = finding.subject.clone().filter(|_| named).unwrap_or_default();
        (finding.level.to_string(), code.to_owned(), subject)
    };
    Ok(findings.iter().map(row).collect())
}

fn theirs(answer: &Value) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    for output in answer["outputs"].as_array().into_iter().flatten() {
        let level = output["type"].as_str().unwrap_or_default();
        rows.extend(read(level, output["message"].as_str().unwrap_or_default()));
    }
    if answer["passed"].is_null() {
        let end = answer["stderr"].as_str().unwrap_or_default();
        rows.extend(read("error", end.rsplit("level=fatal").next().unwrap_or_default()));
    }
    rows
}

/// What one message says.
fn read(level: &str, message: &str) -> Vec<Row> {
    let row = |code: &str, subject: &str| (level.to_owned(), code.to_owned(), subject.to_owned());
    if message.contains("this bundle is using APIs") && !message.contains("index-path") {
        return removed_apis(message).iter().map(|(code, subject)| row(code, subject)).collect();
    }
    let field = message.strip_prefix("Error: Field ").filter(|_| !message.contains("required field missing"));
    let code = match field.filter(|_| !message.contains("uses wrong case")) {
        Some(field) if field.contains("identical") || field.starts_with("spec.validation") => {
            "crd-version-fields-mixed"
        }
        Some(field) if field.contains("additionalPrinterColumns[") => "crd-printer-columns-invalid",
        Some(field) if field.contains("subresources.scale") => "crd-scale-invalid",
        Some(field) if field.contains("selectableFields") => "crd-selectable-fields-invalid",
        Some(field) => {
            CRD_FIELDS.iter().find(|(start, _)| field.starts_with(start)).map_or("unknown", |(_, code)| code)
        }
        None => CLASSES.iter().find(|(part, _)| message.contains(part)).map_or("unknown", |(_, code)| code),
    };
    let between = |from: &str, to: &str| {
        message.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or("")
    };
    let subject = match code {
        "unknown" => message.to_owned(),
        "container-without-requests" => format!("container {}", between("container: (", ")")),
        "csv-crd-description-missing" => between("CRD \"", "\"").to_owned(),
        "service-account-conflict" => format!("ServiceAccount/{}", between("Value ", ":")),
        code if ABOUT_A_KIND.contains(&code) => kind_version_group(between("Value ", ": ")),
        _ => String::new(),
    };
    vec![row(code, &subject)]
}

/// `GROUP/VERSION, Kind=KIND` as we write it.
fn kind_version_group(text: &str) -> String {
    let (api, kind) = text.split_once(", Kind=").unwrap_or((text, ""));
    let (group, version) = api.rsplit_once('/').unwrap_or(("", api));
    [kind, version, group].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

/// `… Migrate the API(s) for KIND: (["NAME" "NAME"]),KIND: (["NAME"])`: (code, subject) of each.
fn removed_apis(message: &str) -> Vec<(&'static str, String)> {
    let list = message.split("Migrate the API(s) for ").nth(1).unwrap_or_default();
    let mut found = Vec::new();
    for part in list.split("])") {
        let Some((kind, names)) = part.split_once(": ([") else { continue };
        let kind = kind.trim_start_matches(',');
        for name in names.split('"').skip(1).step_by(2) {
            let crds = name.strip_prefix("ClusterServiceVersion.Spec.CustomResourceDefinitions.");
            let strategy = name.strip_prefix("ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.");
            found.push(match (crds, strategy) {
                (_, Some(path)) => {
                    let path = path.replace("Permissions[", "permissions[").replace(".Rules", ".rules");
                    let path = path.replace("Clusterp", "clusterP");
                    ("removed-api-permission", format!("{kind} in {path}"))
                }
                (Some(path), _) => {
                    let path = path.replace("Owned", "owned").replace("Required", "required");
                    ("removed-api", format!("{kind} in {}", path.replace(".Resource[", ".resources[")))
                }
                _ if kind == "CRD" => ("removed-api", format!("CustomResourceDefinition/{name}")),
                _ => ("removed-api", format!("{kind}/{name}")),
            });
        }
    }
    found
}

/// An entry of `known-differences.toml`.
#[derive(Debug)]
struct Difference {
    only: String,
    level: Option<String>,
    code: String,
    corpus: bool,
}

impl Difference {
    fn all() -> Result<Vec<Self>, Failed> {
        let document: toml_edit::DocumentMut = include_str!("known-differences.toml").parse()?;
        let entries = document["difference"].as_array_of_tables().ok_or("no differences")?;
        let read = |table: &toml_edit::Table| {
            let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
            text("reason").filter(|reason| !reason.is_empty())?;
            Some(Self {
                only: text("only").filter(|side| side == "ours" || side == "theirs")?,
                level: text("level"),
                code: text("code")?,
                corpus: table.get("corpus").is_none_or(|corpus| corpus.as_bool() != Some(false)),
            })
        };
        entries
            .iter()
            .map(|table| read(table).ok_or_else(|| format!("not a difference: {table}").into()))
            .collect()
    }

    fn explains(&self, only: &str, row: &Row) -> bool {
        self.only == only && self.code == row.1 && self.level.as_ref().is_none_or(|level| *level == row.0)
    }
}
