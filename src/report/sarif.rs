//! Findings as a log of SARIF 2.1.0, which code scanning of GitHub, GitLab and editors read
//! (docs.oasis-open.org/sarif/sarif/v2.1.0).

use std::collections::BTreeMap;

use olmkit_bundle::finding::{Code, Finding, Level, Place};
use serde::Serialize;

use super::printable;
use crate::actions::results::Checked;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    column_kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocations: Option<[Invocation; 1]>,
    results: Vec<SarifResult>,
}

/// Messages about the run itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    tool_execution_notifications: [Notification; 1],
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Text,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    short_description: Text,
    full_description: Text,
    help: Help,
    default_configuration: Configuration,
    properties: Properties,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
struct Help {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Properties {
    tags: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Text,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
    end_column: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
}

/// The whole log: the kinds of findings that were met, then every finding.
pub(super) fn log(answer: &Checked) -> String {
    let mut codes: BTreeMap<&str, &'static Code> = BTreeMap::new();
    let shown = answer.shown();
    for finding in &shown {
        codes.insert(finding.code.name, finding.code);
    }
    let index: BTreeMap<&str, usize> = codes.keys().enumerate().map(|(at, code)| (*code, at)).collect();
    let driver = Driver {
        name: "olmkit",
        version: env!("CARGO_PKG_VERSION"),
        rules: codes.values().map(|code| descriptor(code)).collect(),
    };
    let results = shown.into_iter().map(|finding| result(finding, index[finding.code.name])).collect();
    let invocations = answer.left_out_text().map(|text| {
        let notification = Notification { level: "warning", message: Text { text } };
        [Invocation { execution_successful: true, tool_execution_notifications: [notification] }]
    });
    super::pretty(&Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [Run { tool: Tool { driver }, column_kind: "unicodeCodePoints", invocations, results }],
    })
}

fn descriptor(code: &'static Code) -> Descriptor {
    let markdown = code.markdown();
    let about = code.docs.split("\n\n").next().unwrap_or_default().trim();
    let first = about.split_inclusive(". ").next().unwrap_or(about).trim();
    Descriptor {
        id: code.name,
        short_description: Text { text: first.to_owned() },
        full_description: Text { text: about.to_owned() },
        help: Help { text: about.to_owned(), markdown },
        default_configuration: Configuration { level: level(code.level) },
        properties: Properties { tags: [code.suite] },
    }
}

fn result(finding: &Finding, rule_index: usize) -> SarifResult {
    let help = finding.advice().map(|help| format!(" (help: {help})")).unwrap_or_default();
    let mut locations: Vec<_> = finding.place.iter().map(location).collect();
    if let (Some(location), Some(subject)) = (locations.first_mut(), &finding.subject) {
        location
            .logical_locations
            .push(LogicalLocation { fully_qualified_name: printable(subject).into_owned() });
    }
    SarifResult {
        rule_id: finding.code.name,
        rule_index,
        level: level(finding.level),
        message: Text { text: printable(&format!("{}{help}", finding.message)).into_owned() },
        locations,
        related_locations: finding.other.iter().map(location).collect(),
    }
}

fn location(place: &Place) -> Location {
    let region = place.position.map(|position| Region {
        start_line: position.line,
        start_column: position.column,
        end_column: position.column + place.marked_columns(),
    });
    Location {
        physical_location: PhysicalLocation {
            artifact_location: ArtifactLocation { uri: uri(&place.path) },
            region,
        },
        logical_locations: Vec::new(),
        message: place.label.as_ref().map(|label| Text { text: printable(label).into_owned() }),
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "note",
    }
}

/// A path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into())
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}
