use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("package-duplicate", Error, OPM, "package_duplicate.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (name, package) in &index.packages {
        let Some((first, others)) = package.blobs.split_first() else { continue };
        for other in others.iter().filter(|_| !name.is_empty()) {
            let message = format!("the package `{name}` is defined again here");
            let first = index.catalog.place(first.at.with(first.name.span)).label("first here");
            let finding = index.finding(&RULE.code, other.at.with(other.name.span), message).and(first);
            let help = "remove one of them; all files below the directory belong to the same catalog";
            findings.push(finding.subject(*name).help(help));
        }
    }
}
