//! The table of rules.

use super::Rule;

mod channel_cycle;
mod channel_duplicate;
mod channel_empty;
mod channel_entry_duplicate;
mod channel_entry_name_missing;
mod channel_entry_stranded;
mod channel_entry_without_bundle;
mod channel_name_missing;
mod channel_no_head;
mod channel_several_heads;
mod channel_skip_empty;
mod channel_skip_range_invalid;
mod default_channel_missing;
mod default_channel_unknown;
mod deprecation_duplicate;
mod deprecation_message_missing;
mod deprecation_reference_invalid;
mod deprecation_target_missing;
mod deprecations_duplicate;
mod fbc_bundle_duplicate;
mod fbc_bundle_image_invalid;
mod fbc_bundle_image_missing;
mod fbc_bundle_in_no_channel;
mod fbc_bundle_name_missing;
mod fbc_bundle_object_invalid;
mod fbc_bundle_package_property;
mod fbc_bundle_property_invalid;
mod fbc_bundle_release_invalid;
mod fbc_bundle_version_duplicate;
mod fbc_bundle_version_invalid;
mod fbc_field_type;
mod fbc_file_unreadable;
mod fbc_keys_differ_in_case;
mod fbc_not_a_map;
mod fbc_number_too_large;
mod fbc_schema_missing;
mod fbc_syntax;
mod package_duplicate;
mod package_icon_invalid;
mod package_name_invalid;
mod package_unknown;
mod package_without_channels;

/// Every rule, sorted by code.
pub(super) static ALL: &[&Rule] = &[
    &channel_cycle::RULE,
    &channel_duplicate::RULE,
    &channel_empty::RULE,
    &channel_entry_duplicate::RULE,
    &channel_entry_name_missing::RULE,
    &channel_entry_stranded::RULE,
    &channel_entry_without_bundle::RULE,
    &channel_name_missing::RULE,
    &channel_no_head::RULE,
    &channel_several_heads::RULE,
    &channel_skip_empty::RULE,
    &channel_skip_range_invalid::RULE,
    &default_channel_missing::RULE,
    &default_channel_unknown::RULE,
    &deprecation_duplicate::RULE,
    &deprecation_message_missing::RULE,
    &deprecation_reference_invalid::RULE,
    &deprecation_target_missing::RULE,
    &deprecations_duplicate::RULE,
    &fbc_bundle_duplicate::RULE,
    &fbc_bundle_image_invalid::RULE,
    &fbc_bundle_image_missing::RULE,
    &fbc_bundle_in_no_channel::RULE,
    &fbc_bundle_name_missing::RULE,
    &fbc_bundle_object_invalid::RULE,
    &fbc_bundle_package_property::RULE,
    &fbc_bundle_property_invalid::RULE,
    &fbc_bundle_release_invalid::RULE,
    &fbc_bundle_version_duplicate::RULE,
    &fbc_bundle_version_invalid::RULE,
    &fbc_field_type::RULE,
    &fbc_file_unreadable::RULE,
    &fbc_keys_differ_in_case::RULE,
    &fbc_not_a_map::RULE,
    &fbc_number_too_large::RULE,
    &fbc_schema_missing::RULE,
    &fbc_syntax::RULE,
    &package_duplicate::RULE,
    &package_icon_invalid::RULE,
    &package_name_invalid::RULE,
    &package_unknown::RULE,
    &package_without_channels::RULE,
];
