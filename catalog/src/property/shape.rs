//! The types of the values that opm knows, field by field (operator-registry `alpha/property`, operator-framework/api
//! `pkg/operators/v1alpha1`).

use olmkit_bundle::go;

/// What a value must look like. Null fits everywhere, and unknown fields do no harm.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Anything.
    Any,
    /// A string.
    Text,
    /// A boolean.
    Bool,
    /// An integer.
    Integer,
    /// A list of such values.
    List(&'static Self),
    /// A map of such values, whose keys are free.
    Map(&'static Self),
    /// A map with these fields.
    Fields(&'static [Field]),
}

/// A field of a type.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub shape: Shape,
    /// Whether Go writes it also when it is empty.
    pub always: bool,
}

const fn some(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, always: false }
}

const fn always(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, always: true }
}

/// The field that a key sets.
pub(super) fn field(fields: &'static [Field], key: &str) -> Option<&'static Field> {
    go::field(key, fields.iter().map(|field| field.name)).map(|at| &fields[at])
}

const GVK: Shape = Shape::Fields(&[
    always("group", Shape::Text),
    always("version", Shape::Text),
    always("kind", Shape::Text),
]);
pub(super) const CSV_METADATA: Shape = Shape::Fields(CSV_METADATA_FIELDS);

/// The fields of `olm.csv.metadata`.
pub const CSV_METADATA_FIELDS: &[Field] = &[
    some("annotations", Shape::Map(&Shape::Text)),
    always("apiServiceDefinitions", Shape::Fields(&[some("owned", APIS), some("required", APIS)])),
    always("crdDescriptions", Shape::Fields(&[some("owned", CRDS), some("required", CRDS)])),
    some("description", Shape::Text),
    always("displayName", Shape::Text),
    some(
        "installModes",
        Shape::List(&Shape::Fields(&[always("type", Shape::Text), always("supported", Shape::Bool)])),
    ),
    some("keywords", Shape::List(&Shape::Text)),
    some("labels", Shape::Map(&Shape::Text)),
    some("links", Shape::List(&LINK)),
    some(
        "maintainers",
        Shape::List(&Shape::Fields(&[some("name", Shape::Text), some("email", Shape::Text)])),
    ),
    some("maturity", Shape::Text),
    some("minKubeVersion", Shape::Text),
    some("nativeAPIs", Shape::List(&GVK)),
    always("provider", LINK),
];

const LINK: Shape = Shape::Fields(&[some("name", Shape::Text), some("url", Shape::Text)]);
const CRDS: Shape = Shape::List(&Shape::Fields(&[
    always("name", Shape::Text),
    always("version", Shape::Text),
    always("kind", Shape::Text),
    some("displayName", Shape::Text),
    some("description", Shape::Text),
    some("resources", RESOURCES),
    some("specDescriptors", DESCRIPTORS),
    some("statusDescriptors", DESCRIPTORS),
    some("actionDescriptors", DESCRIPTORS),
]));
const APIS: Shape = Shape::List(&Shape::Fields(&[
    always("name", Shape::Text),
    always("group", Shape::Text),
    always("version", Shape::Text),
    always("kind", Shape::Text),
    some("deploymentName", Shape::Text),
    some("containerPort", Shape::Integer),
    some("displayName", Shape::Text),
    some("description", Shape::Text),
    some("resources", RESOURCES),
    some("specDescriptors", DESCRIPTORS),
    some("statusDescriptors", DESCRIPTORS),
    some("actionDescriptors", DESCRIPTORS),
]));
const RESOURCES: Shape = Shape::List(&Shape::Fields(&[
    always("name", Shape::Text),
    always("kind", Shape::Text),
    always("version", Shape::Text),
]));
const DESCRIPTORS: Shape = Shape::List(&Shape::Fields(&[
    always("path", Shape::Text),
    some("displayName", Shape::Text),
    some("description", Shape::Text),
    some("x-descriptors", Shape::List(&Shape::Text)),
    some("value", Shape::Any),
]));
