use crate::finding::{Code, Finding, Findings, Level, MadeBy};
use crate::parse::Object;
use crate::validate::facts::Facts;
use crate::validate::{Rule, SIZE};
use crate::yaml::{Node, Step, steps};

pub(crate) static RULE: Rule = Rule {
    code: Code { name: "size-csv", level: Level::Warning, suite: SIZE, docs: include_str!("size_csv.md") },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let is_csv = |object: &Object<'_, '_>| object.kind() == crate::csv::KIND;
    for (object, bytes) in
        facts.object_sizes().iter().filter(|(object, bytes)| is_csv(object) && *bytes > MANY_BYTES)
    {
        let message = format!(
            "the ClusterServiceVersion takes {bytes} bytes in JSON, in every namespace that it is copied to"
        );
        let place = object.place(&[]).made_by(heaviest(object));
        findings.push(
            Finding::new(&RULE.code, message)
                .at(place)
                .subject(object.subject())
                .help("make the icon smaller, and the description and the examples shorter"),
        );
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
