//! The table of what opm has no rule for: what it accepts and yet will surprise somebody.

use super::Rule;
use crate::index::{Channel, Index, Package};
use crate::path::{About, Rules, Ways};

macro_rules! table {
    ($($module:ident)*) => {
        $(mod $module;)*
        /// Every piece of advice, sorted by code.
        pub(super) static ALL: &[&Rule] = &[$(&$module::RULE),*];
    };
}

table! {
    channel_edge_backwards
    channel_edges_differ
    channel_entry_without_way
    channel_head_deprecated
    channel_head_left
    channel_replaces_absent
    channel_skip_range_odd
    default_channel_prerelease
    dependency_unsatisfied
    edge_differs_from_csv
    package_large
}

/// The channels that have a head, each with what OLM v0 installs after each of its entries.
fn walked<'i, 'c, 'a>(
    index: &'i Index<'c, 'a>,
) -> impl Iterator<Item = (&'i Package<'c, 'a>, &'i Channel<'c, 'a>, Ways)> {
    let channels = index.packages.values().flat_map(|package| {
        let linked = package.channels.iter().filter(|channel| channel.linked.is_ok());
        linked.map(move |channel| (package, channel))
    });
    channels.filter_map(|(package, channel)| {
        let about = |name: &str| About { version: package.version(name).cloned(), deprecated: false };
        let ways = Ways::of(&channel.blob.entries, about, Rules::V0).ok()?;
        Some((package, channel, ways))
    })
}
