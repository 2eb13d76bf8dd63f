use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("package-unknown", Error, OPM, "package_unknown.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for (name, package) in &index.packages {
        if !package.blobs.is_empty() && !name.is_empty() {
            continue;
        }
        let channels = package.channels.iter().map(|channel| {
            ("channel", channel.blob.name.as_str(), channel.blob.at, channel.blob.package.span)
        });
        let bundles = package
            .bundles
            .iter()
            .map(|bundle| ("bundle", bundle.blob.name.as_str(), bundle.blob.at, bundle.blob.package.span));
        let deprecations =
            package.deprecations.iter().map(|blob| ("olm.deprecations", "", blob.at, blob.package.span));
        for (what, own, at, span) in channels.chain(bundles).chain(deprecations) {
            let own = if own.is_empty() { String::new() } else { format!(" `{own}`") };
            let (message, help) = match name.is_empty() {
                true => (format!("the {what}{own} names no package"), "add `package`".to_owned()),
                false => (
                    format!(
                        "the {what}{own} belongs to the package `{name}`, which the catalog does not have"
                    ),
                    format!("add the `olm.package` blob of `{name}`, or correct the name"),
                ),
            };
            let excused = if name.is_empty() { index.is_faulty(at) } else { index.incomplete };
            if !excused {
                findings.push(index.finding(&RULE.code, at.with(span), message).subject(*name).help(help));
            }
        }
    }
}
