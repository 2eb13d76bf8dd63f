use std::collections::BTreeMap;

use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("crd-duplicate", Error, OLM, "crd_duplicate.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let mut first = BTreeMap::new();
    for version in facts.crd_versions() {
        let Some(earlier) = first.insert(&version.gvk, version) else { continue };
        let finding = Finding::new(&RULE.code, format!("`{}` is defined more than once", version.gvk))
            .at(version.crd.place_at(version.span))
            .and(earlier.crd.place_at(earlier.span).label("also here"))
            .subject(version.gvk.to_string());
        findings.push(finding.help("remove one of the two; a CRD of `apiextensions.k8s.io/v1` is enough"));
    }
}
