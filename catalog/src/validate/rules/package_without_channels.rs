use olmkit_bundle::finding::{Code, Findings, Level};

use crate::index::Index;
use crate::validate::{OPM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "package-without-channels",
        level: Level::Error,
        suite: OPM,
        docs: include_str!("package_without_channels.md"),
    },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (name, package) in &index.packages {
        if !package.channels.is_empty() || index.incomplete {
            continue;
        }
        for blob in package.blobs.iter().filter(|blob| !blob.name.is_empty()) {
            findings.push(
                index
                    .finding(
                        &RULE.code,
                        blob.at.with(blob.name.span),
                        format!("the package `{name}` has no channel"),
                    )
                    .subject(*name)
                    .help(format!("add an `olm.channel` blob with `package: {name}`")),
            );
        }
    }
}
