use olmkit_bundle::finding::{Code, Findings, Level};

use crate::fbc::{At, Catalog, FaultKind};
use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "fbc-schema-missing",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("fbc_schema_missing.md"),
    },
    check,
};

/// The way out of a blob that has other fields.
const ADD: &str =
    "add `schema: olm.package`, `olm.channel`, `olm.bundle` or `olm.deprecations`, or one of your own";

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if fault.kind == FaultKind::NoSchema {
            let finding = index.finding(&RULE.code, fault.at, "a blob has no `schema`");
            findings.push(match needless_separator(index.catalog, fault.at) {
                Some(line) => {
                    finding.help(format!("this document has no content: remove the `---` at line {line}"))
                }
                None => finding.help(ADD),
            });
        }
    }
}

/// The line of the `---` without which an empty document would be a part of its neighbor: the one that ends it, else the one that
/// starts it. opm takes comments, and even blank lines, before a `---` for a document (`YAMLReader` of k8s.io/apimachinery).
fn needless_separator(catalog: &Catalog<'_>, at: At) -> Option<usize> {
    if !catalog.text(at).is_empty() {
        return None;
    }
    let text = catalog.files.get(at.file as usize)?.source.text();
    let (before, after) = text.split_at_checked(at.span.start as usize)?;
    let is_separator = |line: &str| line.starts_with("---");
    let lines = before.matches('\n').count();
    // The rest of a line that has begun is no line of its own.
    let begun = usize::from(!before.is_empty() && !before.ends_with('\n'));
    let ends = after.lines().skip(begun).position(is_separator).map(|line| lines + begun + line + 1);
    ends.or_else(|| {
        before.lines().enumerate().filter(|(_, line)| is_separator(line)).last().map(|(line, _)| line + 1)
    })
}
