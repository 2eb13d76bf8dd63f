use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, SECURITY, rule};

rule!("security-escalation", Warning, SECURITY, "security_escalation.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for rule in facts.access_rules().iter().filter(|rule| !rule.is_limited_to_names()) {
        let creates = |resource: &str| {
            rule.resources().any(|other| other == resource) && rule.verbs().any(|verb| verb == "create")
        };
        let mut ways: Vec<String> = Vec::new();
        for verb in ["escalate", "bind", "impersonate"] {
            if rule.verbs().any(|other| other == verb) {
                ways.push(format!("`{verb}`"));
            }
        }
        if creates("serviceaccounts/token") {
            ways.push("tokens of service accounts".into());
        }
        if rule.resources().any(|resource| resource == "certificatesigningrequests/approval") {
            ways.push("the approval of certificates".into());
        }
        if !ways.is_empty() {
            findings.push(
                rule.finding(
                    &RULE.code,
                    format!("the operator can get more rights than it has, by {}", ways.join(", ")),
                )
                .help("limit the rule to names with `resourceNames`, or leave it to an administrator"),
            );
        }
    }
}
