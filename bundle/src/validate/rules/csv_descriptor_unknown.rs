use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, descriptors, rule};
use crate::yaml::steps;

rule!("csv-descriptor-unknown", Warning, STRICT, "csv_descriptor_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let mut found = Vec::new();
    for (index, owned) in csv.typed.spec.custom_resource_definitions.owned.iter().enumerate() {
        let crd = facts.readable_crds().find(|(_, crd)| crd.name() == owned.name);
        let Some((_, crd)) = crd.filter(|(_, crd)| !crd.preserves_unknown_fields()) else { continue };
        let version = crd.versions().into_iter().find(|version| version.name == owned.version);
        let Some(schema) = version.and_then(|version| crd.schema(&version)) else { continue };
        for (list, part) in descriptors::LISTS {
            let written = if part == "spec" { &owned.spec_descriptors } else { &owned.status_descriptors };
            for (at, descriptor) in written.iter().enumerate() {
                let of = (owned.kind.as_str(), owned.version.as_str());
                let said = descriptors::unknown(of, schema, (part, &descriptor.path), "");
                let Some((message, help)) = said else { continue };
                let path = steps!("spec", "customresourcedefinitions", "owned", index, list, at, "path");
                found.push(csv.object.finding(&RULE.code, message, path).help(help));
            }
        }
    }
    descriptors::by_field(found).into_iter().for_each(|finding| findings.push(finding));
}
