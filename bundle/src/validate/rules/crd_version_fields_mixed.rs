use crate::crd::Crd;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Node, Step, steps};

rule!("crd-version-fields-mixed", Error, OLM, "crd_version_fields_mixed.md");

/// Of the older API only; in the newer one what belongs to a version stands in that version.
fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds().filter(|(_, crd)| !crd.is_v1()) {
        let versions = crd.list(steps!("spec", "versions"));
        for (above, field) in FIELDS {
            let of = |version| Crd(version).get(&[Step::Key(field)]).filter(|node| !is_empty_list(node));
            let own: Vec<_> = versions.iter().filter_map(of).collect();
            let whole = crd.get(steps!("spec", above)).filter(|node| !is_empty_list(node));
            let message = if whole.is_some() && !own.is_empty() {
                format!("`spec.{above}` and `{field}` of a version exclude each other")
            } else if !own.is_empty()
                && own.len() == versions.len()
                && own.iter().all(|node| node.value == own[0].value)
            {
                format!("`{field}` is the same in every version")
            } else {
                continue;
            };
            let finding = object.finding(&RULE.code, message, steps!("spec", above));
            findings.push(finding.help("move to `apiextensions.k8s.io/v1`, where every version has its own"));
        }
    }
}

fn is_empty_list(node: &Node<'_>) -> bool {
    node.as_sequence().is_some_and(<[_]>::is_empty)
}

const FIELDS: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];
