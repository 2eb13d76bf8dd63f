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
    /// A custom resource whose definition is not among the manifests.
    CUSTOM_RESOURCE_UNKNOWN "generate-custom-resource-unknown" Warning "custom_resource_unknown"
    /// A Deployment without a name or a pod template.
    DEPLOYMENT_INCOMPLETE "generate-deployment-incomplete" Error "deployment_incomplete"
    /// One object stands twice in the input, with different content.
    DUPLICATE_OBJECT "generate-duplicate-object" Error "duplicate_object"
    /// The icon is not an image.
    ICON_NOT_AN_IMAGE "generate-icon-not-an-image" Error "icon_not_an_image"
    /// An object of a kind that a bundle cannot carry.
    KIND_LEFT_OUT "generate-kind-left-out" Warning "kind_left_out"
    /// No Deployment, hence nothing to install.
    NO_DEPLOYMENT "generate-no-deployment" Error "no_deployment"
    /// A document that is not a Kubernetes object.
    NOT_AN_OBJECT "generate-not-an-object" Error "not_an_object"
    /// Webhooks are not supported yet.
    WEBHOOK_UNSUPPORTED "generate-webhook-unsupported" Error "webhook_unsupported"
    /// A workload that OLM does not install.
    WORKLOAD_NOT_INSTALLABLE "generate-workload-not-installable" Error "workload_not_installable"
    /// A manifest or package file that is not YAML.
    SYNTAX "generate-yaml-syntax" Error "yaml_syntax"
    /// A key of the package file that does not exist.
    PACKAGE_KEY_UNKNOWN "package-key-unknown" Error "package_key_unknown"
    /// A value of the package file that does not fit.
    PACKAGE_VALUE_INVALID "package-value-invalid" Error "package_value_invalid"
}
