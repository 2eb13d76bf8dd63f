use crate::finding::Findings;
use crate::names::check_subdomain;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("crd-name-invalid", Error, OLM, "crd_name_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        let expected = format!("{}.{}", crd.text(steps!("spec", "names", "plural")), crd.group());
        for field in ["name", "generateName"] {
            let path = steps!("metadata", field);
            let name = crd.text(path);
            let message = match name.as_ref() {
                "" if field == "name" => "the CustomResourceDefinition has no name".into(),
                "" => continue,
                name if name != expected => format!("the name is `{name}`, expected `{expected}`"),
                name => match check_subdomain(name) {
                    Err(why) => format!("`{name}` cannot be the name of a CustomResourceDefinition: {why}"),
                    Ok(()) => continue,
                },
            };
            let finding = object.finding(&RULE.code, message, path);
            findings.push(finding.help("the name is `spec.names.plural`, a dot, and `spec.group`"));
        }
    }
}
