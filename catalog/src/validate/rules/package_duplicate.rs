use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("package-duplicate", Error, OPM, "package_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (name, package) in &index.packages {
        let Some((first, others)) = package.blobs.split_first() else { continue };
        for other in others.iter().filter(|_| !name.is_empty()) {
            findings.push(
                index
                    .finding(
                        &RULE.code,
                        other.at.with(other.name.span),
                        format!("the package `{name}` is defined again here"),
                    )
                    .and(index.catalog.place(first.at.with(first.name.span)).label("first here"))
                    .subject(*name)
                    .help("remove one of them; all files below the directory belong to the same catalog"),
            );
        }
    }
}
