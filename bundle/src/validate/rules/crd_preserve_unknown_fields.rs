use crate::finding::Findings;
use crate::schema::Schema;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-preserve-unknown-fields", Error, OLM, "crd_preserve_unknown_fields.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds().filter(|(_, crd)| crd.preserves_unknown_fields()) {
        let path = steps!("spec", "preserveUnknownFields");
        let message = match crd.get(path) {
            Some(_) => "`spec.preserveUnknownFields` is true, which clusters no longer accept",
            None => "`spec.preserveUnknownFields` is true by default in `apiextensions.k8s.io/v1beta1`",
        };
        const HELP: &str = "write `preserveUnknownFields: false`, and `x-kubernetes-preserve-unknown-fields: true` where \
                            the schema needs it";
        findings.push(object.finding(&RULE.code, message, path).help(HELP));
        let versions = crd.versions();
        let schemas = versions.iter().filter_map(|version| crd.schema(version)).map(Schema);
        if schemas.into_iter().any(Schema::has_defaults) {
            let message =
                "the schema has defaults, which clusters apply only where unknown fields are pruned";
            findings.push(object.finding(&RULE.code, message, path).help(HELP));
        }
    }
}
