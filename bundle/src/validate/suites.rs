//! The suites that rules belong to, by which checks are chosen.

/// What OLM's tools always check, with their verdicts: operator-framework/api
/// `pkg/validation/internal/{csv,crd,bundle,annotations,typecheck}.go` and `pkg/manifests/bundleloader.go`,
/// operator-registry `pkg/lib/bundle/validate.go`, Kubernetes' rules for metadata and for CRDs.
pub const OLM: &str = "olm";
/// What OperatorHub.io demands (`operatorhubv2.go`).
pub const OPERATORHUB: &str = "operatorhub";
/// The level of capabilities that OperatorHub.io shows (`standardcapabilities.go`).
pub const CAPABILITIES: &str = "capabilities";
/// The categories of OperatorHub.io (`standardcategories.go`).
pub const CATEGORIES: &str = "categories";
/// What is recommended for operators (`good_practices.go`).
pub const GOOD_PRACTICES: &str = "good-practices";
/// APIs that newer clusters do not serve (`removed_apis.go`, and what it lacks).
pub const REMOVED_APIS: &str = "removed-apis";
/// OpenShift's community catalog on old APIs (`community.go`).
pub const COMMUNITY: &str = "community";
/// Whether the images run where the bundle says (`multiarch.go`); asks registries.
pub const MULTIARCH: &str = "multiarch";
/// What Kubernetes and OLM refuse when the bundle is installed, and no tool looks at before: schemas of CRDs and contents of other
/// objects included.
pub const INSTALL: &str = "install";
/// What OLM's tools pass over in silence, or will refuse in their next releases.
pub const STRICT: &str = "strict";
/// Whether OLM v1 can install the bundle.
pub const OLM_V1: &str = "olm-v1";
/// What is too large for the places that OLM and Kubernetes put it.
pub const SIZE: &str = "size";
/// What an operator may do, and how its pods run.
pub const SECURITY: &str = "security";
/// Examples of custom resources against their schemas.
pub const SCHEMA: &str = "schema";
/// What OpenShift expects of operators.
pub const OPENSHIFT: &str = "openshift";

/// Every suite.
pub const SUITES: &[&str] = &[
    OLM,
    OPERATORHUB,
    CAPABILITIES,
    CATEGORIES,
    GOOD_PRACTICES,
    REMOVED_APIS,
    COMMUNITY,
    MULTIARCH,
    INSTALL,
    STRICT,
    OLM_V1,
    SIZE,
    SECURITY,
    SCHEMA,
    OPENSHIFT,
];

/// Whether a suite asks registries.
pub fn needs_network(suite: &str) -> bool {
    suite == MULTIARCH
}

/// What a suite is about, in a few words.
pub fn about(suite: &str) -> &'static str {
    match suite {
        OLM => "what OLM's tools always check",
        OPERATORHUB => "what OperatorHub.io demands",
        CAPABILITIES => "the capability level",
        CATEGORIES => "the categories",
        GOOD_PRACTICES => "what is recommended for operators",
        REMOVED_APIS => "APIs that newer clusters do not serve",
        COMMUNITY => "OpenShift's community catalog on old APIs",
        MULTIARCH => "whether the images support the platforms of the bundle; contacts registries",
        INSTALL => "what Kubernetes and OLM refuse at installation",
        STRICT => "what OLM's tools pass over in silence",
        OLM_V1 => "whether OLM v1 can install the bundle",
        SIZE => "what is too large for its place",
        SECURITY => "what the operator may do, and how its pods run",
        SCHEMA => "examples of custom resources against their schemas",
        OPENSHIFT => "what OpenShift expects of operators",
        crate::diff::codes::SUITE => "what an upgrade changes",
        _ => "",
    }
}
