//! The table of what opm has no rule for: what it accepts and yet will surprise somebody.

use super::Rule;
use crate::index::{Channel, Index, Package};
use crate::path::{About, NextHops, Rules};

mod channel_edge_backwards;
mod channel_edges_differ;
mod channel_entry_without_way;
mod channel_head_deprecated;
mod channel_head_left;
mod channel_replaces_absent;
mod channel_skip_range_odd;
mod default_channel_prerelease;
mod dependency_unsatisfied;
mod edge_differs_from_csv;
mod package_large;

/// Every piece of advice, sorted by code.
pub(super) static ALL: &[&Rule] = &[
    &channel_edge_backwards::RULE,
    &channel_edges_differ::RULE,
    &channel_entry_without_way::RULE,
    &channel_head_deprecated::RULE,
    &channel_head_left::RULE,
    &channel_replaces_absent::RULE,
    &channel_skip_range_odd::RULE,
    &default_channel_prerelease::RULE,
    &dependency_unsatisfied::RULE,
    &edge_differs_from_csv::RULE,
    &package_large::RULE,
];

/// The channels that have a head, each with what OLM v0 installs after each of its entries.
fn walked<'i, 'c, 'a>(
    index: &'i Index<'c, 'a>,
) -> impl Iterator<Item = (&'i Package<'c, 'a>, &'i Channel<'c, 'a>, NextHops)> {
    let channels = index.packages.values().flat_map(|package| {
        let linked = package.channels.iter().filter(|channel| channel.linked.is_ok());
        linked.map(move |channel| (package, channel))
    });
    channels.filter_map(|(package, channel)| {
        let about = |name: &str| About { version: package.version(name).cloned(), deprecated: false };
        let ways = NextHops::of(&channel.blob.entries, about, Rules::V0).ok()?;
        Some((package, channel, ways))
    })
}
