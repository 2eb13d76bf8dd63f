use crate::crd::Crd;
use crate::finding::Findings;
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Step, steps};

rule!("crd-scale-invalid", Error, OLM, "crd_scale_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        if !crd.is_v1() {
            check_scale(object, crd, steps!("spec", "subresources", "scale"), findings);
        }
        for index in 0..crd.list(steps!("spec", "versions")).len() {
            check_scale(object, crd, steps!("spec", "versions", index, "subresources", "scale"), findings);
        }
    }
}

fn check_scale(object: Object<'_, '_>, crd: Crd<'_, '_>, path: &[Step<'_>], findings: &mut Findings) {
    let Some(scale) = crd.get(path).map(Crd) else { return };
    for (field, optional, roots, help) in [
        ("specReplicasPath", false, &[".spec."][..], "write a path such as `.spec.replicas`"),
        ("statusReplicasPath", false, &[".status."], "write a path such as `.status.replicas`"),
        (
            "labelSelectorPath",
            true,
            &[".spec.", ".status."],
            "write a path such as `.status.selector`, or leave it out",
        ),
    ] {
        let json_path = scale.text(steps!(field));
        if json_path.is_empty() && optional || roots.iter().any(|root| json_path.starts_with(root)) {
            continue;
        }
        let message = match json_path.as_ref() {
            "" => format!("the subresource `scale` has no `{field}`"),
            other => format!("`{other}` is not a path below `{}`", roots.join("` or `")),
        };
        let path: Vec<_> = path.iter().copied().chain([Step::Key(field)]).collect();
        findings.push(object.finding(&RULE.code, message, &path).help(help));
    }
}
