use std::collections::{BTreeSet, HashMap};

use olmkit_bundle::finding::{Finding, Findings};
use olmkit_bundle::parallel::in_parallel;

use crate::fbc;
use crate::index::{Index, Package};
use crate::render;
use crate::validate::{ADVICE, Rule, rule};

rule!("edge-differs-from-csv", Warning, ADVICE, "edge_differs_from_csv.md");

/// Package by package on all processors: every ClusterServiceVersion in the catalog is looked at.
fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    let packages: Vec<_> = index.packages.values().collect();
    let found = in_parallel(&packages, |package| differences(index, package));
    found.into_iter().flatten().for_each(|finding| findings.push(finding));
}

fn differences(index: &Index<'_, '_>, package: &Package<'_, '_>) -> Vec<Finding> {
    let mut places: HashMap<&str, Vec<(usize, &fbc::Entry<'_>)>> = HashMap::new();
    for (at, channel) in package.channels.iter().enumerate() {
        for entry in &channel.blob.entries {
            places.entry(&entry.name).or_default().push((at, entry));
        }
    }
    let mut findings = Vec::new();
    for bundle in &package.bundles {
        let Some(places) = places.get(bundle.blob.name.as_str()) else { continue };
        let Some(csv) = render::edges(bundle.blob) else { continue };
        let there = said(&csv.replaces, csv.skips.iter().map(String::as_str), &csv.skip_range);
        let here = places.iter().map(|(_, entry)| {
            said(&entry.replaces, entry.skips.iter().map(|skip| skip.as_str()), &entry.skip_range)
        });
        let here: Vec<_> = here.collect();
        for (at, field) in ["replaces", "skips", "skipRange"].into_iter().enumerate() {
            if here.iter().any(|here| there[at].is_subset(&here[at])) {
                continue;
            }
            let (channel, entry) = places[0];
            let channel = &package.channels[channel];
            let own = match &here[0][at] {
                none if none.is_empty() => format!("no `{field}`"),
                names => format!("the `{field}` {}", quoted(names)),
            };
            let message = format!(
                "`{}` has {own} in the channel `{}`, and {} in its ClusterServiceVersion",
                entry.name,
                channel.blob.name,
                quoted(&there[at])
            );
            findings.push(
                index
                    .finding(&RULE.code, channel.blob.at.with(entry.name.span), message)
                    .subject(bundle.blob.name.to_string())
                    .help(
                        "the channel counts: make the ClusterServiceVersion say the same in the next version",
                    ),
            );
        }
    }
    findings
}

/// What is said of each kind of edge.
fn said<'s>(
    replaces: &'s str,
    skips: impl Iterator<Item = &'s str>,
    skip_range: &'s str,
) -> [BTreeSet<&'s str>; 3] {
    let one = |text: &'s str| Some(text).filter(|text| !text.is_empty()).into_iter().collect();
    [one(replaces), skips.filter(|name| !name.is_empty()).collect(), one(skip_range)]
}

fn quoted(names: &BTreeSet<&str>) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
