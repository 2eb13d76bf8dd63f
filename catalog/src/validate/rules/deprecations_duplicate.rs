use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("deprecations-duplicate", Error, OPM, "deprecations_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (name, package) in index.packages.iter().filter(|(name, _)| !name.is_empty()) {
        let Some((first, others)) = package.deprecations.split_first() else { continue };
        for other in others {
            let finding = index
                .finding(
                    &RULE.code,
                    other.at.with(other.package.span),
                    format!("`{name}` has deprecations already"),
                )
                .and(index.catalog.place(first.at.with(first.package.span)).label("first here"))
                .subject(*name);
            findings.push(finding.help("put the entries of both into one blob"));
        }
    }
}
