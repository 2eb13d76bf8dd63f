use std::collections::BTreeSet;

use crate::deployment;
use crate::finding::Findings;
use crate::installed;
use crate::names::check_subdomain;
use crate::source::Span;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::{Node, Value, steps};

rule!("deployment-invalid", Error, INSTALL, "deployment_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let mut names = BTreeSet::new();
    let serving = installed::serving(&csv.typed.spec);
    let absent = Node { value: Value::Null, span: Span::default() };
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let above = steps!("spec", "install", "spec", "deployments", index);
        let name = deployment.name.as_str();
        let why = check_subdomain(name)
            .err()
            .or_else(|| (!names.insert(name)).then_some("another one has the name"));
        let shown = name.replace('`', "'");
        if let Some(why) = why {
            let path: Vec<_> = above.iter().chain(steps!("name")).copied().collect();
            let message = format!("`{shown}` cannot name a deployment: {why}");
            let finding = csv.object.finding(&RULE.code, message, &path);
            findings.push(finding.help("give every deployment a unique name, such as `redis-operator`"));
        }
        let above: Vec<_> = above.iter().chain(steps!("spec")).copied().collect();
        let certificate = serving.contains(name).then(|| installed::certificate_of(name));
        let spec = csv.object.root.at_folded(&above).unwrap_or(&absent);
        for refused in deployment::refused(spec, certificate.as_deref()) {
            let path: Vec<_> = above.iter().chain(&refused.path).copied().collect();
            let finding = csv.object.finding(&RULE.code, refused.message, &path);
            findings.push(finding.help(refused.help));
        }
    }
}
