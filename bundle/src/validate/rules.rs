//! The table of rules.

use super::Rule;

mod access_rule_invalid;
mod annotation_empty;
mod annotation_manifests_unexpected;
mod annotation_mediatype_unexpected;
mod annotation_metadata_unexpected;
mod annotation_missing;
mod annotations_missing;
mod annotations_not_text;
mod api_no_longer_served;
mod api_service_without_deployment;
mod bundle_nearly_too_large;
mod bundle_too_large;
mod container_without_requests;
mod crd_api_version_unsupported;
mod crd_conversion_invalid;
mod crd_conversion_unmatched;
mod crd_duplicate;
mod crd_field_unknown;
mod crd_group_invalid;
mod crd_group_not_approved;
mod crd_metadata_invalid;
mod crd_name_invalid;
mod crd_names_invalid;
mod crd_not_owned;
mod crd_preserve_unknown_fields;
mod crd_printer_columns_invalid;
mod crd_scale_invalid;
mod crd_scope_invalid;
mod crd_selectable_fields_invalid;
mod crd_type_mismatch;
mod crd_version_fields_mixed;
mod crd_versions_invalid;
mod csv_annotation_case;
mod csv_annotations_missing;
mod csv_api_version_missing;
mod csv_api_version_unknown;
mod csv_api_without_example;
mod csv_capability_unknown;
mod csv_category_unknown;
mod csv_conversion_install_modes;
mod csv_crd_description_missing;
mod csv_deployments_missing;
pub(super) mod csv_descriptor_unknown;
mod csv_example_without_api;
mod csv_examples_ambiguous;
mod csv_examples_missing;
mod csv_examples_not_json;
mod csv_examples_not_objects;
mod csv_field_missing;
mod csv_field_unknown;
mod csv_icon_count;
mod csv_icon_data_url;
mod csv_icon_incomplete;
mod csv_icon_media_type;
mod csv_icon_missing;
mod csv_install_modes_missing;
mod csv_install_modes_unsupported;
mod csv_link_incomplete;
mod csv_link_url_invalid;
mod csv_maintainer_email_invalid;
mod csv_maintainer_incomplete;
mod csv_manages_crds;
mod csv_metadata_invalid;
mod csv_min_kube_version_invalid;
mod csv_min_kube_version_missing;
mod csv_missing;
mod csv_multiple;
mod csv_name_convention;
mod csv_name_invalid;
mod csv_name_version;
mod csv_owned_crd_missing;
mod csv_owned_crd_name_invalid;
mod csv_owned_version_unserved;
mod csv_properties_annotation;
mod csv_properties_invalid;
mod csv_provider_missing;
mod csv_release_invalid;
mod csv_release_name_mismatch;
mod csv_release_with_substitutes;
mod csv_replaces_invalid;
mod csv_replaces_itself;
mod csv_required_crd_name_invalid;
mod csv_skip_range_invalid;
mod csv_strategy_unknown;
mod csv_type_mismatch;
mod csv_version_invalid;
mod csv_version_missing;
mod csv_version_short;
mod default_channel_unknown;
mod dependencies_not_a_map;
mod dependency_constraint_invalid;
mod dependency_gvk_incomplete;
mod dependency_label_missing;
mod dependency_package_invalid;
mod dependency_unreadable;
mod deployment_invalid;
mod document_ignored;
mod document_unreadable;
mod example_against_schema;
mod example_field_unknown;
mod file_not_in_bundle;
mod file_unreadable;
mod image_platform_missing;
mod image_platform_narrower;
mod image_uninspected;
mod manifest_api_removed;
pub(super) mod manifest_content_invalid;
mod manifest_duplicate;
mod manifest_field_unknown;
mod manifest_kind_missing;
mod manifest_kind_unsupported;
mod manifest_metadata_invalid;
pub(super) mod manifest_needs_crd;
mod manifests_hidden_file;
mod manifests_missing;
mod manifests_subdirectory;
mod metadata_file_ignored;
mod metadata_missing;
mod node_affinity_platforms;
mod openshift_channel_name;
mod openshift_feature_annotation;
mod openshift_finalizers_right;
mod openshift_image_by_tag;
mod openshift_label_invalid;
mod openshift_label_unchecked;
mod openshift_max_version_invalid;
mod openshift_max_version_missing;
mod openshift_max_version_patch;
mod openshift_max_version_too_high;
mod openshift_max_version_twice;
mod openshift_versions_label;
mod package_name_invalid;
mod permission_cluster_scoped;
mod platform_label_missing;
mod pod_reference_missing;
mod property_invalid;
mod related_image_invalid;
mod removed_api;
mod removed_api_permission;
mod removed_api_version_unreadable;
pub(super) mod schema_default_invalid;
pub(super) mod schema_not_structural;
pub(super) mod schema_rule_invalid;
mod security_escalation;
mod security_privileged_pod;
mod security_secrets;
mod security_wildcard;
mod service_account_conflict;
mod service_account_name_invalid;
mod size_csv;
mod size_install_plan;
mod size_manifest;
pub(super) mod size_object;
mod size_v1_secret;
mod v1_api_service;
mod v1_dependency;
mod v1_deployment_name;
mod v1_install_mode;
mod v1_webhook;
mod value_read_otherwise;
mod webhook_invalid;
mod yaml_key_duplicate;
mod yaml_old_syntax;
mod yaml_syntax;

/// Every rule, sorted by code.
pub(super) static ALL: &[&Rule] = &[
    &access_rule_invalid::RULE,
    &annotation_empty::RULE,
    &annotation_manifests_unexpected::RULE,
    &annotation_mediatype_unexpected::RULE,
    &annotation_metadata_unexpected::RULE,
    &annotation_missing::RULE,
    &annotations_missing::RULE,
    &annotations_not_text::RULE,
    &api_no_longer_served::RULE,
    &api_service_without_deployment::RULE,
    &bundle_nearly_too_large::RULE,
    &bundle_too_large::RULE,
    &container_without_requests::RULE,
    &crd_api_version_unsupported::RULE,
    &crd_conversion_invalid::RULE,
    &crd_conversion_unmatched::RULE,
    &crd_duplicate::RULE,
    &crd_field_unknown::RULE,
    &crd_group_invalid::RULE,
    &crd_group_not_approved::RULE,
    &crd_metadata_invalid::RULE,
    &crd_name_invalid::RULE,
    &crd_names_invalid::RULE,
    &crd_not_owned::RULE,
    &crd_preserve_unknown_fields::RULE,
    &crd_printer_columns_invalid::RULE,
    &crd_scale_invalid::RULE,
    &crd_scope_invalid::RULE,
    &crd_selectable_fields_invalid::RULE,
    &crd_type_mismatch::RULE,
    &crd_version_fields_mixed::RULE,
    &crd_versions_invalid::RULE,
    &csv_annotation_case::RULE,
    &csv_annotations_missing::RULE,
    &csv_api_version_missing::RULE,
    &csv_api_version_unknown::RULE,
    &csv_api_without_example::RULE,
    &csv_capability_unknown::RULE,
    &csv_category_unknown::RULE,
    &csv_conversion_install_modes::RULE,
    &csv_crd_description_missing::RULE,
    &csv_deployments_missing::RULE,
    &csv_descriptor_unknown::RULE,
    &csv_example_without_api::RULE,
    &csv_examples_ambiguous::RULE,
    &csv_examples_missing::RULE,
    &csv_examples_not_json::RULE,
    &csv_examples_not_objects::RULE,
    &csv_field_missing::RULE,
    &csv_field_unknown::RULE,
    &csv_icon_count::RULE,
    &csv_icon_data_url::RULE,
    &csv_icon_incomplete::RULE,
    &csv_icon_media_type::RULE,
    &csv_icon_missing::RULE,
    &csv_install_modes_missing::RULE,
    &csv_install_modes_unsupported::RULE,
    &csv_link_incomplete::RULE,
    &csv_link_url_invalid::RULE,
    &csv_maintainer_email_invalid::RULE,
    &csv_maintainer_incomplete::RULE,
    &csv_manages_crds::RULE,
    &csv_metadata_invalid::RULE,
    &csv_min_kube_version_invalid::RULE,
    &csv_min_kube_version_missing::RULE,
    &csv_missing::RULE,
    &csv_multiple::RULE,
    &csv_name_convention::RULE,
    &csv_name_invalid::RULE,
    &csv_name_version::RULE,
    &csv_owned_crd_missing::RULE,
    &csv_owned_crd_name_invalid::RULE,
    &csv_owned_version_unserved::RULE,
    &csv_properties_annotation::RULE,
    &csv_properties_invalid::RULE,
    &csv_provider_missing::RULE,
    &csv_release_invalid::RULE,
    &csv_release_name_mismatch::RULE,
    &csv_release_with_substitutes::RULE,
    &csv_replaces_invalid::RULE,
    &csv_replaces_itself::RULE,
    &csv_required_crd_name_invalid::RULE,
    &csv_skip_range_invalid::RULE,
    &csv_strategy_unknown::RULE,
    &csv_type_mismatch::RULE,
    &csv_version_invalid::RULE,
    &csv_version_missing::RULE,
    &csv_version_short::RULE,
    &default_channel_unknown::RULE,
    &dependencies_not_a_map::RULE,
    &dependency_constraint_invalid::RULE,
    &dependency_gvk_incomplete::RULE,
    &dependency_label_missing::RULE,
    &dependency_package_invalid::RULE,
    &dependency_unreadable::RULE,
    &deployment_invalid::RULE,
    &document_ignored::RULE,
    &document_unreadable::RULE,
    &example_against_schema::RULE,
    &example_field_unknown::RULE,
    &file_not_in_bundle::RULE,
    &file_unreadable::RULE,
    &image_platform_missing::RULE,
    &image_platform_narrower::RULE,
    &image_uninspected::RULE,
    &manifest_api_removed::RULE,
    &manifest_content_invalid::RULE,
    &manifest_duplicate::RULE,
    &manifest_field_unknown::RULE,
    &manifest_kind_missing::RULE,
    &manifest_kind_unsupported::RULE,
    &manifest_metadata_invalid::RULE,
    &manifest_needs_crd::RULE,
    &manifests_hidden_file::RULE,
    &manifests_missing::RULE,
    &manifests_subdirectory::RULE,
    &metadata_file_ignored::RULE,
    &metadata_missing::RULE,
    &node_affinity_platforms::RULE,
    &openshift_channel_name::RULE,
    &openshift_feature_annotation::RULE,
    &openshift_finalizers_right::RULE,
    &openshift_image_by_tag::RULE,
    &openshift_label_invalid::RULE,
    &openshift_label_unchecked::RULE,
    &openshift_max_version_invalid::RULE,
    &openshift_max_version_missing::RULE,
    &openshift_max_version_patch::RULE,
    &openshift_max_version_too_high::RULE,
    &openshift_max_version_twice::RULE,
    &openshift_versions_label::RULE,
    &package_name_invalid::RULE,
    &permission_cluster_scoped::RULE,
    &platform_label_missing::RULE,
    &pod_reference_missing::RULE,
    &property_invalid::RULE,
    &related_image_invalid::RULE,
    &removed_api::RULE,
    &removed_api_permission::RULE,
    &removed_api_version_unreadable::RULE,
    &schema_default_invalid::RULE,
    &schema_not_structural::RULE,
    &schema_rule_invalid::RULE,
    &security_escalation::RULE,
    &security_privileged_pod::RULE,
    &security_secrets::RULE,
    &security_wildcard::RULE,
    &service_account_conflict::RULE,
    &service_account_name_invalid::RULE,
    &size_csv::RULE,
    &size_install_plan::RULE,
    &size_manifest::RULE,
    &size_object::RULE,
    &size_v1_secret::RULE,
    &v1_api_service::RULE,
    &v1_dependency::RULE,
    &v1_deployment_name::RULE,
    &v1_install_mode::RULE,
    &v1_webhook::RULE,
    &value_read_otherwise::RULE,
    &webhook_invalid::RULE,
    &yaml_key_duplicate::RULE,
    &yaml_old_syntax::RULE,
    &yaml_syntax::RULE,
];
