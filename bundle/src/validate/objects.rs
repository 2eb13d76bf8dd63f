//! What Kubernetes refuses of single objects, whatever else is in the bundle. `generate` asks the same of the manifests, so that
//! its findings are at their places there.

use super::crds::judge;
use super::rules::{
    manifest_content_invalid, manifest_needs_crd, schema_default_invalid, schema_not_structural,
    schema_rule_invalid, size_object,
};
use crate::crd::{self, Crd};
use crate::finding::{Code, Findings};
use crate::parse::Object;
use crate::yaml::fit;

/// The kinds of findings that [`refused`] can bring.
pub(crate) static CODES: [&Code; 5] = [
    &manifest_content_invalid::RULE.code,
    &schema_default_invalid::RULE.code,
    &schema_not_structural::RULE.code,
    &schema_rule_invalid::RULE.code,
    &size_object::RULE.code,
];

/// The kind of finding about objects that not every cluster can have.
pub(crate) static NEEDS_CRD: &Code = &manifest_needs_crd::RULE.code;

/// The kind of finding about objects that are larger than what a cluster stores.
pub(crate) static TOO_LARGE: &Code = &size_object::RULE.code;

/// Everything that Kubernetes refuses of an object by itself.
pub(crate) fn refused(object: Object<'_, '_>) -> Findings {
    let mut findings = Findings::new();
    manifest_content_invalid::of_object(object, &mut findings);
    size_object::of_object(object, object.root.json_bytes(), &mut findings);
    let crd = Crd::from(object);
    let is_crd = object.kind() == "CustomResourceDefinition" && object.api_version() == crd::V1;
    if is_crd && fit::fit(object.root, crd.of()).misfits.is_empty() {
        for of_crd in
            [schema_default_invalid::of_crd, schema_not_structural::of_crd, schema_rule_invalid::of_crd]
        {
            judge(object, of_crd, &mut findings);
        }
    }
    findings
}
