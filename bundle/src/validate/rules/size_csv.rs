use crate::finding::{Finding, Findings, MadeBy};
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{Rule, SIZE, rule};
use crate::yaml::{Node, Step, steps};

rule!("size-csv", Warning, SIZE, "size_csv.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let is_csv = |object: &Object<'_, '_>| object.kind() == crate::csv::KIND;
    for (object, bytes) in
        facts.object_sizes().iter().filter(|(object, bytes)| is_csv(object) && *bytes > MANY_BYTES)
    {
        let message = format!(
            "the ClusterServiceVersion takes {bytes} bytes in JSON, in every namespace that it is copied to"
        );
        let place = object.place(&[]).made_by(heaviest(object));
        let finding = Finding::new(&RULE.code, message).at(place).subject(object.subject());
        findings.push(finding.help("make the icon smaller, and the description and the examples shorter"));
    }
}

/// What the largest field is made from that a key of the package file sets.
fn heaviest(object: &Object<'_, '_>) -> MadeBy {
    let maps: [&[Step<'_>]; 2] = [steps!("spec"), steps!("metadata", "annotations")];
    let fields = maps.into_iter().flat_map(|map| {
        let entries = object.root.at(map).and_then(Node::as_mapping).into_iter().flatten();
        entries.map(move |entry| {
            let made_by = object.made_by(&[map, &[Step::Key(&entry.key)]].concat());
            (entry.value.to_json().to_string().len(), made_by)
        })
    });
    let of_keys = fields.filter(|(_, made_by)| made_by.is_known());
    of_keys.max_by_key(|(bytes, _)| *bytes).map(|(_, made_by)| made_by).unwrap_or_default()
}

/// A third of what a cluster stores as one object: a hundred namespaces make 50 MiB of it.
const MANY_BYTES: u64 = 512 << 10;
