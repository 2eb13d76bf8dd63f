use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("package-without-channels", Error, OPM, "package_without_channels.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (name, package) in &index.packages {
        if !package.channels.is_empty() || index.incomplete {
            continue;
        }
        for blob in package.blobs.iter().filter(|blob| !blob.name.is_empty()) {
            let finding = index
                .finding(
                    &RULE.code,
                    blob.at.with(blob.name.span),
                    format!("the package `{name}` has no channel"),
                )
                .subject(*name);
            findings.push(finding.help(format!("add an `olm.channel` blob with `package: {name}`")));
        }
    }
}
