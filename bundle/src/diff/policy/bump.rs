//! Whether a version number goes up by as much as the changes ask for, by the rules of semantic versions.

use super::version_place;
use crate::diff::codes;
use crate::finding::{Code, Finding, Findings, Level};
use crate::parse::Csv;
use crate::version::Version;

/// The part of a version number that goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Patch,
    Minor,
    Major,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }

    /// The next version in which it goes up.
    fn next(self, from: &Version) -> Version {
        match self {
            Self::Patch => Version::new(from.major, from.minor, from.patch + 1),
            Self::Minor => Version::new(from.major, from.minor + 1, 0),
            Self::Major => Version::new(from.major + 1, 0, 0),
        }
    }
}

/// What adds something that users can rely on; all other information is about how the operator works inside.
const FEATURES: [&str; 6] = [
    "crd-added",
    "crd-version-added",
    "deployment-added",
    "install-mode-added",
    "schema-field-added",
    "schema-widened",
];

/// What a finding asks for; none for findings that are not about a change.
fn asked(code: &Code) -> Option<Part> {
    if code.suite != codes::SUITE {
        return None;
    }
    match (code.name, code.level) {
        // OLM v1 refuses it, but objects and clients go on as before. What changes for them has a finding of its own.
        ("crd-upgrade-refused", _) => Some(Part::Patch),
        ("version-not-higher" | "sample-not-checked" | "crd-served-versions-not-compared", _) => None,
        (name, _) if name.starts_with("policy-") => None,
        (_, Level::Error) => Some(Part::Major),
        (_, Level::Warning) => Some(Part::Minor),
        (name, Level::Info) if FEATURES.contains(&name) => Some(Part::Minor),
        (_, Level::Info) => Some(Part::Patch),
    }
}

/// How many changes a message names.
const NAMED: usize = 3;

/// Compares two version numbers with what was found between them. `level` is that of the finding.
pub(in crate::diff) fn check(old: &Csv<'_, '_>, new: &Csv<'_, '_>, level: Level, findings: &mut Findings) {
    let version = |csv: &Csv<'_, '_>| Version::parse(&csv.typed.spec.version).ok();
    let (Some(from), Some(to)) = (version(old), version(new)) else { return };
    let numbers = |version: &Version| (version.major, version.minor, version.patch);
    // A version that is not higher has a finding already, and a pre-release may become anything.
    if to <= from || numbers(&from) == numbers(&to) {
        return;
    }
    let given = if to.major > from.major {
        Part::Major
    } else if to.minor > from.minor {
        Part::Minor
    } else {
        Part::Patch
    };
    let Some(most) = findings.iter().filter_map(|finding| asked(finding.code)).max() else { return };
    // Below 1.0.0, breaking changes raise the minor version.
    let needed = match most {
        Part::Major if from.major == 0 => Part::Minor,
        Part::Minor if from.major == 0 => Part::Patch,
        part => part,
    };
    if given >= needed {
        return;
    }
    let mut changes: Vec<_> = findings
        .iter()
        .filter(|finding| asked(finding.code) == Some(most))
        .map(|one| one.message.as_str())
        .collect();
    changes.sort_unstable();
    changes.dedup();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    changes.truncate(NAMED);
    let (given, needed_name) = (given.name(), needed.name());
    let message = format!(
        "`{to}` is a {given} version after `{from}`, but the changes require a {needed_name} version: {}{more}",
        changes.join("; ")
    );
    let mut finding = Finding::new(&codes::VERSION_BUMP_TOO_SMALL, message)
        .at(version_place(new))
        .and(version_place(old).label("before"))
        .subject(new.object.subject())
        .help(format!("release it as {}, or revert the changes", needed.next(&from)));
    finding.level = level;
    findings.push(finding);
}
