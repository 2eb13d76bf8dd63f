use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};

rule!("access-rule-invalid", Error, INSTALL, "access_rule_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for rule in facts.access_rules() {
        let has_verbs = rule.verbs().next().is_some();
        let (urls, groups) = (rule.urls().next().is_some(), rule.groups().next().is_some());
        let resources = rule.resources().next().is_some();
        let mut report = |message: String, help: &str| {
            findings.push(rule.finding(&RULE.code, message).help(help));
        };
        if !has_verbs {
            report(
                format!("`{}` has no verbs", rule.name()),
                "name what is allowed in `verbs`, such as `get`",
            );
        }
        if urls && !rule.cluster_wide {
            let message = format!("`{}` has `nonResourceURLs`, which are in no namespace", rule.name());
            report(message, "move the rule to `clusterPermissions`, or to a ClusterRole");
        } else if urls && (groups || resources || rule.is_limited_to_names()) {
            let message = format!("`{}` is about both resources and `nonResourceURLs`", rule.name());
            report(message, "split it into two rules");
        } else if !urls && !groups {
            let help = "name the API groups in `apiGroups`; the core group is `''`";
            report(format!("`{}` has no API groups", rule.name()), help);
        } else if !urls && !resources {
            report(format!("`{}` has no resources", rule.name()), "name them in `resources`, such as `pods`");
        }
    }
}
