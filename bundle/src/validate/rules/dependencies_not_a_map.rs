use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::Node;

rule!("dependencies-not-a-map", Warning, INSTALL, "dependencies_not_a_map.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.metadata() {
        let Some((root, items)) = file.root().and_then(|root| Some((root, root.as_sequence()?))) else {
            continue;
        };
        let is_entry = |item: &Node<'_>| item.get("type").is_some() && item.get("value").is_some();
        if !items.iter().any(is_entry) {
            continue;
        }
        let what = if file.path.contains("properties") { "properties" } else { "dependencies" };
        let message =
            format!("`{}` is a list, and OLM ignores it: it expects `{what}` above the list", file.path);
        let finding = Finding::new(&RULE.code, message).at(file.place_at(root.span)).subject(file.path);
        findings.push(finding.help(format!("write `{what}:` in the first line")));
    }
}
