use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, SIZE};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "size-object",
        level: Level::Warning,
        suite: SIZE,
        docs: include_str!("size_object.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, bytes) in facts.object_sizes().iter().filter(|(_, bytes)| *bytes > MAX_OBJECT_BYTES) {
        findings.push(
            object
                .finding(&RULE.code, format!("the object takes {bytes} bytes in JSON, and clusters store {MAX_OBJECT_BYTES} at most"), &[])
                .help("shorten the descriptions, or split the object"),
        );
    }
}

/// What etcd takes in one request unless it is told otherwise (`--max-request-bytes`).
const MAX_OBJECT_BYTES: u64 = 3 << 19;
