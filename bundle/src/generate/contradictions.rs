//! What `--set`, the package file's `csv` and other flags say against what the bundle is.

use super::draft::{By, Draft};
use super::{Compat, Request, codes};
use crate::csv::{API_VERSION, KIND, annotation};
use crate::finding::{Finding, Findings};

/// Reports what of the ClusterServiceVersion contradicts the bundle that was asked for.
pub(super) fn report(request: &Request<'_>, csv: &Draft<'_>, findings: &mut Findings) {
    let package = request.package;
    let (name, version) = (package.csv_name(), package.version.to_string());
    let help = |flag: &str| format!("pass {flag} instead, or remove it");
    for (path, expected, help) in [
        (["apiVersion"].as_slice(), API_VERSION, "remove it".to_owned()),
        (&["kind"], KIND, "remove it".to_owned()),
        (&["metadata", "name"], name.as_str(), help("`--package`, `--version` and `--release`")),
        (&["spec", "version"], version.as_str(), help("`--version`")),
        (&["spec", "release"], package.release.as_str(), help("`--release`")),
    ] {
        let Some(found) = csv.at(path).filter(|found| found.as_str() != Some(expected)) else { continue };
        if found.is_empty() && expected.is_empty() {
            continue;
        }
        let path = path.join(".");
        let message = match expected {
            "" => format!("`{path}` is `{}`, and the bundle has none", plain(found)),
            _ => format!("`{path}` is `{}`, and the bundle's is `{expected}`", plain(found)),
        };
        findings.push(said_by(found, message).help(help));
    }
    let itself = |found: &Draft<'_>| found.as_str() == Some(name.as_str());
    let spec = |key: &str| csv.at(&["spec", key]);
    if let Some(replaces) = spec("replaces").filter(|replaces| itself(replaces)) {
        let message = format!("`{name}` replaces itself");
        findings.push(said_by(replaces, message).help("name the version before it in `replaces`"));
    }
    if let Some(skipped) = spec("skips").and_then(|skips| skips.items().iter().find(|own| itself(own))) {
        findings.push(said_by(skipped, format!("`{name}` skips itself")).help("remove it from `skips`"));
    }
    created_at(request, csv, findings);
}

/// A time that a flag gives, and something else overrules.
fn created_at(request: &Request<'_>, csv: &Draft<'_>, findings: &mut Findings) {
    let given = request.created_at.as_ref().filter(|(_, origin)| matches!(origin.by, By::Flag(_)));
    let Some((given, _)) = given.filter(|_| request.compat != Some(Compat::OperatorSdk)) else { return };
    let found = csv.at(&["metadata", "annotations", annotation::CREATED_AT]);
    if let Some(found) = found.filter(|found| found.as_str() != Some(given.as_str())) {
        let message = format!("`--created-at` is `{given}`, and `createdAt` is set to `{}`", plain(found));
        findings.push(said_by(found, message).help("remove one of the two"));
    }
}

/// A finding at the place of a value, or with the flag that set it.
fn said_by(found: &Draft<'_>, message: String) -> Finding {
    match found.origin().by {
        By::Flag(flag) => found.finding(&codes::PACKAGE_VALUE_INVALID, format!("`{flag}`: {message}")),
        _ => found.finding(&codes::PACKAGE_VALUE_INVALID, message),
    }
}

fn plain(found: &Draft<'_>) -> String {
    let text = found.as_str().map_or_else(|| found.to_json().to_string(), str::to_owned);
    text.replace('`', "'")
}
