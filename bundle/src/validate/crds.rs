//! Checks of CRDs, one by one.

use super::facts::Facts;
use crate::crd::Crd;
use crate::finding::{Finding, Findings, Level};
use crate::parse::Object;

/// A check of a CRD that Kubernetes can read.
type OfCrd = fn(Object<'_, '_>, Crd<'_, '_>, &mut Findings);

/// Asks it of every CRD of a bundle.
pub(super) fn each_crd(facts: &Facts<'_, '_>, of_crd: OfCrd, findings: &mut Findings) {
    facts.readable_crds().for_each(|(object, _)| judge(object, of_crd, findings));
}

/// Clusters refuse CRDs with such a schema. Of the older API they took them, and no cluster serves it any more: other rules
/// say that.
pub(super) fn judge(object: Object<'_, '_>, of_crd: OfCrd, findings: &mut Findings) {
    let crd = Crd::from(object);
    let mut own = Findings::new();
    of_crd(object, crd, &mut own);
    let level = |finding: &Finding| if crd.is_v1() { finding.level } else { Level::Warning };
    findings.extend(own.iter().map(|finding| Finding { level: level(finding), ..finding.clone() }));
}
