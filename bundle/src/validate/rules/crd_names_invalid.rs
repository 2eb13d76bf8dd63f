use crate::finding::Findings;
use crate::names::check_dns_1035_label;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-names-invalid", Error, OLM, "crd_names_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    const NAMES: [&str; 4] = ["plural", "singular", "kind", "listKind"];
    for (object, crd) in facts.readable_crds() {
        let mut report = |path: &[_], message: String, help: &str| {
            findings.push(object.finding(&RULE.code, message, path).help(help));
        };
        let kind = crd.kind();
        for field in NAMES {
            let path = steps!("spec", "names", field);
            let name = crd.text(path);
            // `singular` and `listKind` are made from the kind where they are left out.
            let has_default = matches!(field, "singular" | "listKind") && !kind.is_empty();
            let is_kind = matches!(field, "kind" | "listKind");
            let label = if is_kind { name.to_lowercase() } else { name.to_string() };
            if name.is_empty() {
                if !has_default {
                    report(path, format!("`spec.names.{field}` is missing"), "name the custom resources");
                }
            } else if let Err(why) = check_dns_1035_label(&label) {
                report(path, format!("`{name}` cannot be the {field}: {why}"), NAME_HELP);
            } else if field == "listKind" && name == kind {
                report(
                    path,
                    format!("`{name}` is the kind and the kind of lists too"),
                    "add `List` to the kind of lists",
                );
            }
        }
        for list in ["shortNames", "categories"] {
            for (index, node) in crd.list(steps!("spec", "names", list)).iter().enumerate() {
                let name = node.to_text().unwrap_or_default();
                if let Err(why) = check_dns_1035_label(&name) {
                    let message = format!("`{name}` cannot be one of the {list}: {why}");
                    report(steps!("spec", "names", list, index), message, NAME_HELP);
                }
            }
        }
    }
}

const NAME_HELP: &str = "use letters, digits and `-`, starting with a letter; only kinds have capitals";
