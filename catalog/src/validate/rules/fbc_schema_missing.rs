use olmkit_bundle::finding::Findings;

use crate::fbc::{At, Catalog, FaultKind};
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-schema-missing", Error, OPM, "fbc_schema_missing.md");

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
    let source = &catalog.files.get(at.file as usize)?.source;
    let (before, after) = source.text().split_at_checked(at.span.start as usize)?;
    // The rest of a line that has begun is no line of its own.
    let begun = usize::from(!before.is_empty() && !before.ends_with('\n'));
    let ends = after.lines().skip(begun).position(|line| line.starts_with("---"));
    if let Some(lines) = ends {
        return Some(source.position(at.span.start).line as usize + begun + lines);
    }
    let starts = before.rfind("\n---").map(|newline| newline + 1);
    let starts = starts.or_else(|| before.starts_with("---").then_some(0))?;
    Some(source.position(starts as u32).line as usize)
}
