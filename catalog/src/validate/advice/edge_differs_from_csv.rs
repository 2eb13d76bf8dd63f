use std::collections::{BTreeSet, HashMap};

use olmkit_bundle::finding::{Code, Findings, Level};

use crate::fbc;
use crate::index::Index;
use crate::render;
use crate::validate::{ADVICE, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code { name: "edge-differs-from-csv", level: Level::Warning, suite: ADVICE, docs: include_str!("edge_differs_from_csv.md") },
    check,
};

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        let mut places: HashMap<&str, Vec<(usize, &fbc::Entry<'_>)>> = HashMap::new();
        for (at, channel) in package.channels.iter().enumerate() {
            for entry in &channel.blob.entries {
                places.entry(&entry.name).or_default().push((at, entry));
            }
        }
        for bundle in &package.bundles {
            let Some(places) = places.get(bundle.blob.name.as_str()) else { continue };
            let Some(csv) = render::edges(bundle.blob) else { continue };
            let skips: BTreeSet<&str> = csv.skips.iter().map(String::as_str).collect();
            type Says<'s> = Box<dyn Fn(&fbc::Entry<'_>) -> bool + 's>;
            let edges: [(&str, bool, Says<'_>); 3] = [
                ("spec.replaces", csv.replaces.is_empty(), Box::new(|entry| *entry.replaces == *csv.replaces)),
                ("spec.skips", skips.is_empty(), Box::new(|entry| {
                    let own: BTreeSet<&str> = entry.skips.iter().map(|skip| skip.as_str()).collect();
                    skips.is_subset(&own)
                })),
                ("olm.skipRange", csv.skip_range.is_empty(), Box::new(|entry| *entry.skip_range == *csv.skip_range)),
            ];
            for (field, is_empty, says) in edges {
                if is_empty || places.iter().any(|(_, entry)| says(entry)) {
                    continue;
                }
                let (channel, entry) = places[0];
                let channel = &package.channels[channel];
                let message = format!(
                    "the channels that have `{}` say something else than the `{field}` of its ClusterServiceVersion",
                    entry.name
                );
                findings.push(
                    index
                        .finding(&RULE.code, channel.blob.at.with(entry.name.span), message)
                        .subject(bundle.blob.name.to_string())
                        .help("the channel counts: make the ClusterServiceVersion say the same in the next version"),
                );
            }
        }
    }
}
