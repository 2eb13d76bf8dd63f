use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, SECURITY, rule};

rule!("security-wildcard", Warning, SECURITY, "security_wildcard.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for rule in facts.access_rules() {
        let wild = [
            ("every group", rule.groups().any(|group| group == "*")),
            ("every resource", rule.resources().any(|resource| resource == "*")),
            ("every verb", rule.verbs().any(|verb| verb == "*")),
        ];
        let wild: Vec<_> = wild.iter().filter(|(_, is)| *is).map(|(what, _)| *what).collect();
        if wild.is_empty() {
            continue;
        }
        let scope =
            if rule.cluster_wide { "in the whole cluster" } else { "in the namespaces that it watches" };
        let finding =
            rule.finding(&RULE.code, format!("the operator is allowed {} {scope}", wild.join(", ")));
        findings.push(finding.help("name what the operator needs"));
    }
}
