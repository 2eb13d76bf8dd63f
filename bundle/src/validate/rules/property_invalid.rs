use crate::annotations;
use crate::finding::{Finding, Findings};
use crate::generate::HEADER;
use crate::go;
use crate::property::why_unreadable;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::Node;
use serde_json::Value;

rule!("property-invalid", Error, INSTALL, "property_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let package = facts.annotations().and_then(|own| own.get(annotations::PACKAGE));
    let of_another = |item: &Value| {
        let kind = go::value_of(item, "type").and_then(Value::as_str);
        let name = go::value_of(go::value_of(item, "value")?, "packageName")?.as_str()?;
        let own = package.as_deref().filter(|own| kind == Some("olm.package") && *own != name)?;
        Some(format!("`olm.package` names the package `{name}`, and the bundle belongs to `{own}`"))
    };
    for file in facts.metadata() {
        let list = file.root().and_then(Node::as_mapping).and_then(|map| map.get_folded("properties"));
        let Some(list) = list.filter(|list| !list.is_null()) else { continue };
        let key = file.source.text().starts_with(HEADER).then_some("properties");
        let mut push = |node: &Node<'_>, message: String| {
            let place = file.place_at(node.span).made_by(key);
            let finding = Finding::new(&RULE.code, message).at(place).subject(file.path);
            findings.push(finding.help("correct the property, or remove it: no catalog works with it"));
        };
        let Some(items) = list.as_sequence() else {
            return push(list, format!("`properties` is {}, expected a list", list.value));
        };
        for item in items {
            let json = item.to_json();
            if let Some(why) = why_unreadable(&json).or_else(|| of_another(&json)) {
                push(item, why);
            }
        }
        if !items.is_empty() {
            return;
        }
    }
}
