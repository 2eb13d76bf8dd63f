//! The Go types of ClusterServiceVersions, as tables to hold values against (operator-framework/api
//! `pkg/operators/v1alpha1/clusterserviceversion_types.go`), with the fields that OLM's CRD requires.
//!
//! Not below the specs of Deployments: those are Kubernetes' own types, which [`super::DeploymentDescription`] has.

use crate::crd::types::OBJECT_META;
use crate::yaml::fit::{Field, Struct, Type};

/// A ClusterServiceVersion.
pub static CSV: Type = Type::Struct(&Struct {
    fields: &[
        Field::promoted("apiVersion", Type::Text),
        Field::promoted("kind", Type::Text),
        Field::new("metadata", Type::Struct(&OBJECT_META)),
        Field::new("spec", Type::Struct(&SPEC)),
        Field::new("status", Type::Any),
    ],
});

const fn text(name: &'static str) -> Field {
    Field::new(name, Type::Text)
}

const fn needs_text(name: &'static str) -> Field {
    Field::required(name, Type::Text)
}

const fn texts(name: &'static str) -> Field {
    Field::new(name, Type::List(&Type::Text))
}

static SPEC: Struct = Struct {
    fields: &[
        text("displayName"),
        text("description"),
        text("version"),
        text("release"),
        text("maturity"),
        text("minKubeVersion"),
        text("replaces"),
        texts("skips"),
        texts("keywords"),
        Field::new("maintainers", Type::List(&Type::Struct(&MAINTAINER))),
        Field::new("provider", Type::Struct(&Struct { fields: &[text("name"), text("url")] })),
        Field::new("links", Type::List(&Type::Struct(&LINK))),
        Field::new("icon", Type::List(&Type::Struct(&ICON))),
        Field::new("installModes", Type::List(&Type::Struct(&INSTALL_MODE))),
        Field::new("install", Type::Struct(&INSTALL)),
        Field::new("customresourcedefinitions", Type::Struct(&CRDS)),
        Field::new("apiservicedefinitions", Type::Struct(&API_SERVICES)),
        Field::new("webhookdefinitions", Type::List(&Type::Struct(&WEBHOOK))),
        Field::new("nativeAPIs", Type::List(&Type::Struct(&NATIVE_API))),
        Field::new("relatedImages", Type::List(&Type::Struct(&RELATED_IMAGE))),
        Field::new("labels", Type::Map(&Type::Text)),
        Field::new("annotations", Type::Map(&Type::Text)),
        Field::new("selector", Type::Struct(&SELECTOR)),
        Field::new("cleanup", Type::Struct(&Struct { fields: &[Field::required("enabled", Type::Bool)] })),
    ],
};

/// OperatorHub.io wants both fields, the CRD neither: a maintainer without an address cannot be asked.
static MAINTAINER: Struct = Struct { fields: &[needs_text("name"), needs_text("email")] };
/// As for maintainers.
static LINK: Struct = Struct { fields: &[needs_text("name"), needs_text("url")] };
static ICON: Struct = Struct { fields: &[needs_text("base64data"), needs_text("mediatype")] };
static INSTALL_MODE: Struct =
    Struct { fields: &[needs_text("type"), Field::required("supported", Type::Bool)] };
static NATIVE_API: Struct =
    Struct { fields: &[needs_text("group"), needs_text("version"), needs_text("kind")] };
static RELATED_IMAGE: Struct = Struct { fields: &[needs_text("name"), needs_text("image")] };

static INSTALL: Struct = Struct {
    fields: &[
        needs_text("strategy"),
        Field::new(
            "spec",
            Type::Struct(&Struct {
                fields: &[
                    Field::required(
                        "deployments",
                        Type::List(&Type::Struct(&Struct {
                            fields: &[
                                needs_text("name"),
                                Field::new("label", Type::Map(&Type::Text)),
                                Field::required("spec", Type::Any),
                            ],
                        })),
                    ),
                    Field::new("permissions", Type::List(&Type::Struct(&PERMISSIONS))),
                    Field::new("clusterPermissions", Type::List(&Type::Struct(&PERMISSIONS))),
                ],
            }),
        ),
    ],
};

static PERMISSIONS: Struct = Struct {
    fields: &[
        needs_text("serviceAccountName"),
        Field::required(
            "rules",
            Type::List(&Type::Struct(&Struct {
                fields: &[
                    Field::required("verbs", Type::List(&Type::Text)),
                    texts("apiGroups"),
                    texts("resources"),
                    texts("resourceNames"),
                    texts("nonResourceURLs"),
                ],
            })),
        ),
    ],
};

static CRDS: Struct = Struct {
    fields: &[
        Field::new("owned", Type::List(&Type::Struct(&CRD))),
        Field::new("required", Type::List(&Type::Struct(&CRD))),
    ],
};

static CRD: Struct = Struct {
    fields: &[
        needs_text("name"),
        needs_text("version"),
        needs_text("kind"),
        text("displayName"),
        text("description"),
        Field::new("resources", Type::List(&Type::Struct(&RESOURCE))),
        Field::new("specDescriptors", Type::List(&Type::Struct(&DESCRIPTOR))),
        Field::new("statusDescriptors", Type::List(&Type::Struct(&DESCRIPTOR))),
        Field::new("actionDescriptors", Type::List(&Type::Struct(&DESCRIPTOR))),
    ],
};

static API_SERVICES: Struct = Struct {
    fields: &[
        Field::new("owned", Type::List(&Type::Struct(&API_SERVICE))),
        Field::new("required", Type::List(&Type::Struct(&API_SERVICE))),
    ],
};

static API_SERVICE: Struct = Struct {
    fields: &[
        needs_text("name"),
        needs_text("group"),
        needs_text("version"),
        needs_text("kind"),
        text("deploymentName"),
        Field::new("containerPort", Type::Int32),
        text("displayName"),
        text("description"),
        Field::new("resources", Type::List(&Type::Struct(&RESOURCE))),
        Field::new("specDescriptors", Type::List(&Type::Struct(&DESCRIPTOR))),
        Field::new("statusDescriptors", Type::List(&Type::Struct(&DESCRIPTOR))),
        Field::new("actionDescriptors", Type::List(&Type::Struct(&DESCRIPTOR))),
    ],
};

static RESOURCE: Struct = Struct { fields: &[needs_text("name"), needs_text("kind"), needs_text("version")] };

static DESCRIPTOR: Struct = Struct {
    fields: &[
        needs_text("path"),
        text("displayName"),
        text("description"),
        texts("x-descriptors"),
        Field::new("value", Type::Any),
    ],
};

static WEBHOOK: Struct = Struct {
    fields: &[
        needs_text("generateName"),
        needs_text("type"),
        text("deploymentName"),
        Field::new("containerPort", Type::Int32),
        // A number or a name.
        Field::new("targetPort", Type::Any),
        Field::new("rules", Type::List(&Type::Struct(&WEBHOOK_RULE))),
        text("failurePolicy"),
        text("matchPolicy"),
        Field::new("objectSelector", Type::Struct(&SELECTOR)),
        needs_text("sideEffects"),
        Field::new("timeoutSeconds", Type::Int32),
        Field::required("admissionReviewVersions", Type::List(&Type::Text)),
        text("reinvocationPolicy"),
        text("webhookPath"),
        texts("conversionCRDs"),
    ],
};

static WEBHOOK_RULE: Struct = Struct {
    fields: &[
        texts("operations"),
        texts("apiGroups"),
        texts("apiVersions"),
        texts("resources"),
        text("scope"),
    ],
};

static SELECTOR: Struct = Struct {
    fields: &[
        Field::new("matchLabels", Type::Map(&Type::Text)),
        Field::new(
            "matchExpressions",
            Type::List(&Type::Struct(&Struct {
                fields: &[needs_text("key"), needs_text("operator"), texts("values")],
            })),
        ),
    ],
};
