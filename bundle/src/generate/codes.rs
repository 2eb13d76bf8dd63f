//! The kinds of findings that generating a bundle can bring.

use crate::finding::{Code, Level};

/// The suite of findings about the input of the generator.
pub const SUITE: &str = "generate";

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident $name:literal $level:ident $docs:literal)*) => {
        $(
            $(#[$doc])*
            pub static $constant: Code =
                Code { name: $name, level: Level::$level, suite: SUITE, docs: include_str!(concat!("docs/", $docs, ".md")) };
        )*
        /// Every code, sorted by name.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

codes! {
    /// A package manifest, or a version's directory, that cannot be converted.
    PACKAGE_MANIFEST_INVALID "convert-package-invalid" Error "package_manifest_invalid"
    /// A version that no channel leads to.
    VERSION_STRANDED "convert-version-stranded" Warning "version_stranded"
    /// An APIService that does not say which kind it serves.
    API_SERVICE_INCOMPLETE "generate-api-service-incomplete" Error "api_service_incomplete"
    /// A base that is not one.
    BASE_INVALID "generate-base-invalid" Error "base_invalid"
    /// Something of the base that the manifests know better.
    BASE_OVERRULED "generate-base-overruled" Warning "base_overruled"
    /// A webhook that does not use the certificate that OLM issues.
    CERTIFICATE_ELSEWHERE "generate-certificate-elsewhere" Warning "certificate_elsewhere"
    /// A custom resource that a Deployment names, and that OLM does not make.
    CUSTOM_RESOURCE_NEEDED "generate-custom-resource-needed" Warning "custom_resource_needed"
    /// A custom resource whose definition is not among the manifests.
    CUSTOM_RESOURCE_UNKNOWN "generate-custom-resource-unknown" Warning "custom_resource_unknown"
    /// A Deployment without a name or a pod template.
    DEPLOYMENT_INCOMPLETE "generate-deployment-incomplete" Error "deployment_incomplete"
    /// A Deployment that Kubernetes refuses.
    DEPLOYMENT_INVALID "generate-deployment-invalid" Error "deployment_invalid"
    /// The input has a duplicate key in a map.
    DUPLICATE_KEY "generate-duplicate-key" Warning "duplicate_key"
    /// The input has one object twice, with different content.
    DUPLICATE_OBJECT "generate-duplicate-object" Error "duplicate_object"
    /// The icon is not an image.
    ICON_NOT_AN_IMAGE "generate-icon-not-an-image" Error "icon_not_an_image"
    /// An image that a scaffold wrote and nobody replaced.
    IMAGE_PLACEHOLDER "generate-image-placeholder" Warning "image_placeholder"
    /// An image whose digest nobody knows.
    IMAGE_UNRESOLVED "generate-image-unresolved" Error "image_unresolved"
    /// Install modes that the manifests speak for.
    INSTALL_MODE_DERIVED "generate-install-mode-derived" Info "install_mode_derived"
    /// Install modes that the manifests cannot honour.
    INSTALL_MODE_IMPOSSIBLE "generate-install-mode-impossible" Warning "install_mode_impossible"
    /// An object of a kind that a bundle cannot carry.
    KIND_LEFT_OUT "generate-kind-left-out" Warning "kind_left_out"
    /// Something that works only in the namespace that the manifests name.
    NAMESPACE_FIXED "generate-namespace-fixed" Warning "namespace_fixed"
    /// An object that is to be in a namespace of its own.
    NAMESPACE_LOST "generate-namespace-lost" Warning "namespace_lost"
    /// No API, hence nothing that users of the operator create.
    NO_API "generate-no-api" Warning "no_api"
    /// No Deployment, hence nothing to install.
    NO_DEPLOYMENT "generate-no-deployment" Error "no_deployment"
    /// A document that is not a Kubernetes object.
    NOT_AN_OBJECT "generate-not-an-object" Error "not_an_object"
    /// A Secret or ConfigMap that pods need and nothing makes.
    REFERENCE_MISSING "generate-reference-missing" Warning "reference_missing"
    /// A related image that is not written down.
    RELATED_IMAGE_UNKNOWN "generate-related-image-unknown" Warning "related_image_unknown"
    /// An object that OLM makes itself.
    REPLACED_BY_OLM "generate-replaced-by-olm" Info "replaced_by_olm"
    /// Rights that the manifests grant and the bundle cannot.
    RIGHTS_LOST "generate-rights-lost" Warning "rights_lost"
    /// A binding to a role that is not there.
    ROLE_UNKNOWN "generate-role-unknown" Warning "role_unknown"
    /// An example that its CRD's schema refuses.
    SAMPLE_INVALID "generate-sample-invalid" Warning "sample_invalid"
    /// A Deployment that names no service account, where the manifests bind rights to others.
    SERVICE_ACCOUNT_MISSING "generate-service-account-missing" Warning "service_account_missing"
    /// A binding to a group of service accounts.
    SUBJECT_GROUP "generate-subject-group" Warning "subject_group"
    /// A binding to a service account that nobody makes.
    SUBJECT_UNKNOWN "generate-subject-unknown" Warning "subject_unknown"
    /// A field of a webhook that a ClusterServiceVersion does not have.
    WEBHOOK_FIELD_LOST "generate-webhook-field-lost" Warning "webhook_field_lost"
    /// A webhook that OLM cannot set up.
    WEBHOOK_LEFT_OUT "generate-webhook-left-out" Warning "webhook_left_out"
    /// A webhook's Service that leads to a port that no container has.
    WEBHOOK_PORT_UNKNOWN "generate-webhook-port-unknown" Error "webhook_port_unknown"
    /// A webhook or an API that no Deployment serves.
    WEBHOOK_WITHOUT_WORKLOAD "generate-webhook-without-workload" Error "webhook_without_workload"
    /// A workload that OLM does not install.
    WORKLOAD_NOT_INSTALLABLE "generate-workload-not-installable" Error "workload_not_installable"
    /// A manifest or package file that is not YAML.
    SYNTAX "generate-yaml-syntax" Error "yaml_syntax"
    /// A key of the package file that does not exist.
    PACKAGE_KEY_UNKNOWN "package-key-unknown" Error "package_key_unknown"
    /// A value of the package file that does not fit.
    PACKAGE_VALUE_INVALID "package-value-invalid" Error "package_value_invalid"
}
