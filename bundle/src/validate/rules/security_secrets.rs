use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, SECURITY, rule};

rule!("security-secrets", Warning, SECURITY, "security_secrets.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for rule in facts.access_rules().iter().filter(|rule| rule.cluster_wide && !rule.is_limited_to_names()) {
        let is_secret = rule.groups().any(|group| group.is_empty())
            && rule.resources().any(|resource| resource == "secrets");
        if is_secret && rule.verbs().any(|verb| matches!(verb.as_ref(), "get" | "list" | "watch" | "*")) {
            findings.push(
                rule.finding(&RULE.code, "the operator can read every Secret of the cluster")
                    .help("move the rule to `permissions`, or name the Secrets with `resourceNames`"),
            );
        }
    }
}
