use crate::finding::Findings;
use crate::validate::access::AccessRule;
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule, rule};

rule!("csv-manages-crds", Warning, GOOD_PRACTICES, "csv_manages_crds.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let creates = |rule: &&AccessRule<'_, '_>| {
        rule.is_in_csv()
            && rule.groups().any(|group| group == "apiextensions.k8s.io")
            && rule
                .resources()
                .any(|resource| matches!(resource.as_ref(), "customresourcedefinitions" | "*" | "[*]"))
            && rule.verbs().any(|verb| matches!(verb.as_ref(), "create" | "patch" | "*" | "[*]"))
    };
    // Once, however many rules allow it.
    if let Some(rule) = facts.access_rules().iter().find(creates) {
        findings.push(
            rule.finding(&RULE.code, "the operator may create CustomResourceDefinitions")
                .help("put the CRDs into the bundle, and other operators into `metadata/dependencies.yaml`"),
        );
    }
}
