use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule};
use crate::yaml::Node;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "dependencies-not-a-map",
        level: Level::Warning,
        suite: INSTALL,
        docs: include_str!("dependencies_not_a_map.md"),
    },
    check,
};

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
