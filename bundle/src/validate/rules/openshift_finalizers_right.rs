use std::collections::BTreeSet;

use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPENSHIFT, Rule, rule};
use crate::yaml::steps;

rule!("openshift-finalizers-right", Warning, OPENSHIFT, "openshift_finalizers_right.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let rules = facts.access_rules();
    // An operator that creates nothing owns nothing.
    if !rules.iter().any(|rule| rule.verbs().any(|verb| matches!(&*verb, "create" | "*"))) {
        return;
    }
    let mut said = BTreeSet::new();
    for (index, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        let Some((plural, group)) = owned.name.split_once('.').filter(|_| said.insert(&owned.name)) else {
            continue;
        };
        let finalizers = format!("{plural}/finalizers");
        let may = rules.iter().any(|rule| {
            rule.groups().any(|own| own == "*" || own == group)
                && rule.resources().any(|own| own == "*" || own == "*/finalizers" || own == *finalizers)
                && rule.verbs().any(|verb| verb == "*" || verb == "update")
        });
        if may {
            continue;
        }
        let message = format!("the operator may not update `{}`", finalizers.replace('`', "'"));
        let path = steps!("spec", "customresourcedefinitions", "owned", index, "name");
        let help = format!(
            "add a rule with `apiGroups: [{group}]`, `resources: [{finalizers}]` and `verbs: [update]`, if the operator sets owner references with `blockOwnerDeletion`"
        );
        findings.push(csv.object.finding(&RULE.code, message, path).help(help));
    }
}
