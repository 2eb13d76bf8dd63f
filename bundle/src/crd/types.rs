//! The Go types of CustomResourceDefinitions, as tables to hold documents against
//! (apiextensions-apiserver `pkg/apis/apiextensions/{v1,v1beta1}`).

use crate::yaml::fit::{Field, Struct, Type};

/// A CustomResourceDefinition of `apiextensions.k8s.io/v1`.
pub static V1: Type = Type::Struct(&Struct {
    fields: &[
        Field::promoted("apiVersion", Type::Text),
        Field::promoted("kind", Type::Text),
        Field::new("metadata", Type::Struct(&OBJECT_META)),
        Field::new("spec", Type::Struct(&V1_SPEC)),
        Field::new("status", Type::Struct(&STATUS)),
    ],
});

/// A CustomResourceDefinition of `apiextensions.k8s.io/v1beta1`.
pub static V1BETA1: Type = Type::Struct(&Struct {
    fields: &[
        Field::promoted("apiVersion", Type::Text),
        Field::promoted("kind", Type::Text),
        Field::new("metadata", Type::Struct(&OBJECT_META)),
        Field::new("spec", Type::Struct(&V1BETA1_SPEC)),
        Field::new("status", Type::Struct(&STATUS)),
    ],
});

const fn text(name: &'static str) -> Field {
    Field::new(name, Type::Text)
}

const fn flag(name: &'static str) -> Field {
    Field::new(name, Type::Bool)
}

const fn texts(name: &'static str) -> Field {
    Field::new(name, Type::List(&Type::Text))
}

/// `metav1.ObjectMeta`
pub(crate) static OBJECT_META: Struct = Struct {
    fields: &[
        text("name"),
        text("generateName"),
        text("namespace"),
        Field::new("annotations", Type::Map(&Type::Text)),
        Field::new("labels", Type::Map(&Type::Text)),
        Field::new("creationTimestamp", Type::Time),
        Field::new("deletionTimestamp", Type::Time),
        Field::new("deletionGracePeriodSeconds", Type::Int64),
        Field::new("generation", Type::Int64),
        text("resourceVersion"),
        text("selfLink"),
        text("uid"),
        texts("finalizers"),
        Field::new(
            "ownerReferences",
            Type::List(&Type::Struct(&Struct {
                fields: &[
                    text("apiVersion"),
                    text("kind"),
                    text("name"),
                    text("uid"),
                    flag("controller"),
                    flag("blockOwnerDeletion"),
                ],
            })),
        ),
        Field::new(
            "managedFields",
            Type::List(&Type::Struct(&Struct {
                fields: &[
                    text("manager"),
                    text("operation"),
                    text("apiVersion"),
                    Field::new("time", Type::Time),
                    text("fieldsType"),
                    Field::new("fieldsV1", Type::Any),
                    text("subresource"),
                ],
            })),
        ),
    ],
};

static NAMES: Struct = Struct {
    fields: &[
        text("kind"),
        text("listKind"),
        text("plural"),
        text("singular"),
        texts("shortNames"),
        texts("categories"),
    ],
};

static STATUS: Struct = Struct {
    fields: &[
        Field::new("acceptedNames", Type::Struct(&NAMES)),
        Field::new(
            "conditions",
            Type::List(&Type::Struct(&Struct {
                fields: &[
                    text("type"),
                    text("status"),
                    Field::new("lastTransitionTime", Type::Time),
                    text("reason"),
                    text("message"),
                ],
            })),
        ),
        texts("storedVersions"),
    ],
};

static V1_SPEC: Struct = Struct {
    fields: &[
        text("group"),
        Field::new("names", Type::Struct(&NAMES)),
        text("scope"),
        Field::new("versions", Type::List(&Type::Struct(&VERSION))),
        Field::new(
            "conversion",
            Type::Struct(&Struct {
                fields: &[
                    text("strategy"),
                    Field::new(
                        "webhook",
                        Type::Struct(&Struct {
                            fields: &[
                                Field::new("clientConfig", Type::Struct(&CLIENT_CONFIG)),
                                texts("conversionReviewVersions"),
                            ],
                        }),
                    ),
                ],
            }),
        ),
        flag("preserveUnknownFields"),
    ],
};

static V1BETA1_SPEC: Struct = Struct {
    fields: &[
        text("group"),
        text("version"),
        Field::new("names", Type::Struct(&NAMES)),
        text("scope"),
        Field::new("validation", Type::Struct(&VALIDATION)),
        Field::new("subresources", Type::Struct(&SUBRESOURCES)),
        Field::new("versions", Type::List(&Type::Struct(&VERSION))),
        Field::new("additionalPrinterColumns", Type::List(&Type::Struct(&COLUMN))),
        Field::new("selectableFields", Type::List(&Type::Struct(&SELECTABLE_FIELD))),
        Field::new(
            "conversion",
            Type::Struct(&Struct {
                fields: &[
                    text("strategy"),
                    Field::new("webhookClientConfig", Type::Struct(&CLIENT_CONFIG)),
                    texts("conversionReviewVersions"),
                ],
            }),
        ),
        flag("preserveUnknownFields"),
    ],
};

static VERSION: Struct = Struct {
    fields: &[
        text("name"),
        flag("served"),
        flag("storage"),
        Field::new("schema", Type::Struct(&VALIDATION)),
        Field::new("subresources", Type::Struct(&SUBRESOURCES)),
        Field::new("additionalPrinterColumns", Type::List(&Type::Struct(&COLUMN))),
        flag("deprecated"),
        text("deprecationWarning"),
        Field::new("selectableFields", Type::List(&Type::Struct(&SELECTABLE_FIELD))),
    ],
};

static VALIDATION: Struct = Struct { fields: &[Field::new("openAPIV3Schema", Type::Struct(&SCHEMA))] };

static SUBRESOURCES: Struct = Struct {
    fields: &[
        Field::new("status", Type::Struct(&Struct { fields: &[] })),
        Field::new(
            "scale",
            Type::Struct(&Struct {
                fields: &[text("specReplicasPath"), text("statusReplicasPath"), text("labelSelectorPath")],
            }),
        ),
    ],
};

static COLUMN: Struct = Struct {
    fields: &[
        text("name"),
        text("type"),
        text("jsonPath"),
        text("description"),
        text("format"),
        Field::new("priority", Type::Int32),
    ],
};

static SELECTABLE_FIELD: Struct = Struct { fields: &[text("jsonPath")] };

static CLIENT_CONFIG: Struct = Struct {
    fields: &[
        text("url"),
        Field::new("caBundle", Type::Bytes),
        Field::new(
            "service",
            Type::Struct(&Struct {
                fields: &[text("namespace"), text("name"), text("path"), Field::new("port", Type::Int32)],
            }),
        ),
    ],
};

/// A schema: `JSONSchemaProps`.
pub static SCHEMA: Struct = Struct {
    fields: &[
        text("description"),
        text("type"),
        Field::new("properties", Type::Map(&Type::Struct(&SCHEMA))),
        Field::new("items", Type::StructOrList(&SCHEMA)),
        text("format"),
        texts("required"),
        flag("x-kubernetes-int-or-string"),
        Field::new("anyOf", Type::List(&Type::Struct(&SCHEMA))),
        text("pattern"),
        Field::new("additionalProperties", Type::StructOrBool(&SCHEMA)),
        text("x-kubernetes-map-type"),
        text("x-kubernetes-list-type"),
        texts("x-kubernetes-list-map-keys"),
        flag("x-kubernetes-preserve-unknown-fields"),
        flag("nullable"),
        Field::new("default", Type::Any),
        Field::new("enum", Type::List(&Type::Any)),
        Field::new("maxLength", Type::Int64),
        Field::new("minLength", Type::Int64),
        Field::new("maximum", Type::Float),
        Field::new("minimum", Type::Float),
        Field::new("maxItems", Type::Int64),
        Field::new("minItems", Type::Int64),
        Field::new("oneOf", Type::List(&Type::Struct(&SCHEMA))),
        Field::new("allOf", Type::List(&Type::Struct(&SCHEMA))),
        Field::new("not", Type::Struct(&SCHEMA)),
        Field::new("x-kubernetes-validations", Type::List(&Type::Struct(&VALIDATION_RULE))),
        flag("x-kubernetes-embedded-resource"),
        text("title"),
        flag("exclusiveMaximum"),
        flag("exclusiveMinimum"),
        flag("uniqueItems"),
        Field::new("multipleOf", Type::Float),
        Field::new("maxProperties", Type::Int64),
        Field::new("minProperties", Type::Int64),
        Field::new("example", Type::Any),
        Field::new("externalDocs", Type::Struct(&Struct { fields: &[text("description"), text("url")] })),
        text("id"),
        text("$schema"),
        text("$ref"),
        Field::new("patternProperties", Type::Map(&Type::Struct(&SCHEMA))),
        Field::new("dependencies", Type::Map(&Type::StructOrTexts(&SCHEMA))),
        Field::new("additionalItems", Type::StructOrBool(&SCHEMA)),
        Field::new("definitions", Type::Map(&Type::Struct(&SCHEMA))),
    ],
};

static VALIDATION_RULE: Struct = Struct {
    fields: &[
        text("rule"),
        text("message"),
        text("messageExpression"),
        text("reason"),
        text("fieldPath"),
        flag("optionalOldSelf"),
    ],
};
