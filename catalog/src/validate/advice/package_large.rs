use std::collections::BTreeMap;

use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("package-large", Info, ADVICE, "package_large.md");

/// Smaller packages are not worth a word.
const LARGE: u64 = 4 << 20;

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut add = |package, at: crate::fbc::At| {
        *sizes.entry(package).or_default() += u64::from(at.span.end.saturating_sub(at.span.start));
    };
    let catalog = index.catalog;
    catalog.packages.iter().for_each(|blob| add(blob.name.as_str(), blob.at));
    catalog.channels.iter().for_each(|blob| add(&blob.package, blob.at));
    catalog.bundles.iter().for_each(|blob| add(&blob.package, blob.at));
    catalog.deprecations.iter().for_each(|blob| add(&blob.package, blob.at));
    catalog.others.iter().for_each(|blob| add(&blob.package, blob.at));
    for (name, size) in sizes.into_iter().filter(|(_, size)| *size >= LARGE) {
        let Some(blob) = index.packages.get(name).and_then(|package| package.blobs.first()) else { continue };
        let message =
            format!("the package `{name}` takes {:.1} MiB of the catalog", size as f64 / f64::from(1 << 20));
        findings.push(index.finding(&RULE.code, blob.at.with(blob.name.span), message).subject(name));
    }
}
