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
    annotation_empty
    annotation_manifests_unexpected
    annotation_mediatype_unexpected
    annotation_metadata_unexpected
    annotation_missing
    annotations_missing
    annotations_not_text
    api_no_longer_served
    bundle_nearly_too_large
    bundle_too_large
    container_without_requests
    crd_api_version_unsupported
    crd_conversion_invalid
    crd_duplicate
    crd_group_invalid
    crd_group_not_approved
    crd_metadata_invalid
    crd_name_invalid
    crd_names_invalid
    crd_not_owned
    crd_preserve_unknown_fields
    crd_printer_columns_invalid
    crd_scale_invalid
    crd_scope_invalid
    crd_selectable_fields_invalid
    crd_type_mismatch
    crd_version_fields_mixed
    crd_versions_invalid
    csv_annotation_case
    csv_annotations_missing
    csv_api_version_missing
    csv_api_without_example
    csv_capability_unknown
    csv_category_unknown
    csv_conversion_install_modes
    csv_crd_description_missing
    csv_deployments_missing
    csv_example_without_api
    csv_examples_ambiguous
    csv_examples_missing
    csv_examples_not_json
    csv_examples_not_objects
    csv_field_missing
    csv_icon_count
    csv_icon_incomplete
    csv_icon_media_type
    csv_icon_missing
    csv_install_modes_missing
    csv_install_modes_unsupported
    csv_link_incomplete
    csv_link_url_invalid
    csv_maintainer_email_invalid
    csv_maintainer_incomplete
    csv_manages_crds
    csv_min_kube_version_invalid
    csv_min_kube_version_missing
    csv_missing
    csv_multiple
    csv_name_convention
    csv_name_invalid
    csv_name_version
    csv_owned_crd_missing
    csv_owned_crd_name_invalid
    csv_properties_annotation
    csv_provider_missing
    csv_release_invalid
    csv_release_name_mismatch
    csv_release_with_substitutes
    csv_replaces_invalid
    csv_type_mismatch
    csv_version_invalid
    csv_version_missing
    csv_version_short
    dependency_constraint_invalid
    dependency_gvk_incomplete
    dependency_label_missing
    dependency_package_invalid
    dependency_unreadable
    file_unreadable
    manifest_kind_missing
    manifest_kind_unsupported
    manifest_metadata_invalid
    manifests_hidden_file
    manifests_missing
    manifests_subdirectory
    metadata_file_ignored
    metadata_missing
    openshift_label_invalid
    openshift_label_unchecked
    openshift_max_version_invalid
    openshift_max_version_missing
    openshift_max_version_patch
    openshift_max_version_too_high
    related_image_invalid
    removed_api
    removed_api_permission
    removed_api_version_unreadable
    service_account_conflict
    yaml_syntax
}
