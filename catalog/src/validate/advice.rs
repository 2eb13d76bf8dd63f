//! The table of what opm has no rule for: what it accepts and yet will surprise somebody.

use super::Rule;

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
