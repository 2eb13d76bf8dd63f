use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, SIZE};

pub(crate) static RULE: Rule = Rule {
    code: Code { name: "size-csv", level: Level::Warning, suite: SIZE, docs: include_str!("size_csv.md") },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let is_csv = |object: &crate::parse::Object<'_, '_>| object.kind() == crate::csv::KIND;
    for (object, bytes) in
        facts.object_sizes().iter().filter(|(object, bytes)| is_csv(object) && *bytes > MANY_BYTES)
    {
        findings.push(
            object
                .finding(&RULE.code, format!("the ClusterServiceVersion takes {bytes} bytes in JSON, in every namespace that it is copied to"), &[])
                .help("make the icon smaller, and the description and the examples shorter"),
        );
    }
}

/// A third of what a cluster stores as one object: a hundred namespaces make 50 MiB of it.
const MANY_BYTES: u64 = 512 << 10;
