//! The table of rules.

use super::Rule;

macro_rules! table {
    ($($module:ident)*) => {
        $(mod $module;)*
        /// Every rule, sorted by code.
        pub(super) static ALL: &[&Rule] = &[$(&$module::RULE),*];
    };
}

table! {
    channel_cycle
    channel_duplicate
    channel_empty
    channel_entry_duplicate
    channel_entry_name_missing
    channel_entry_stranded
    channel_entry_without_bundle
    channel_name_missing
    channel_no_head
    channel_several_heads
    channel_skip_empty
    channel_skip_range_invalid
    default_channel_missing
    default_channel_unknown
    deprecation_duplicate
    deprecation_message_missing
    deprecation_reference_invalid
    deprecation_target_missing
    deprecations_duplicate
    fbc_bundle_duplicate
    fbc_bundle_image_invalid
    fbc_bundle_image_missing
    fbc_bundle_in_no_channel
    fbc_bundle_name_missing
    fbc_bundle_object_invalid
    fbc_bundle_package_property
    fbc_bundle_property_invalid
    fbc_bundle_release_invalid
    fbc_bundle_version_duplicate
    fbc_bundle_version_invalid
    fbc_field_type
    fbc_file_unreadable
    fbc_keys_differ_in_case
    fbc_not_a_map
    fbc_schema_missing
    fbc_syntax
    package_duplicate
    package_icon_invalid
    package_name_invalid
    package_unknown
    package_without_channels
}
