//! Descriptors of fields that a custom resource does not have: consoles show nothing for them. `generate` asks the same of what
//! somebody wrote, so that its findings are at their places there.

use std::collections::BTreeMap;

use crate::crd::fields;
use crate::finding::Finding;
use crate::yaml::Node;

/// The lists of descriptors, with the part of a custom resource that they are about.
pub(crate) const LISTS: [(&str, &str); 2] = [("specDescriptors", "spec"), ("statusDescriptors", "status")];
/// More fields are not listed.
const LISTED: usize = 8;

/// What to say of a descriptor's path that leads to no field of a schema: the message and the help. Paths are written with `prefix`.
pub(crate) fn unknown(
    (kind, version): (&str, &str),
    schema: &Node<'_>,
    (part, path): (&str, &str),
    prefix: &str,
) -> Option<(String, String)> {
    let missing = fields::missing(schema, part, path)?;
    let message = format!("`{kind} {version}` has no field `{}`", missing.path.replace('`', "'"));
    let known: Vec<_> = missing.known.iter().map(|field| format!("`{field}`")).collect();
    let help = match missing.near {
        Some(near) => format!("did you mean `{prefix}{near}`?"),
        None if known.is_empty() => "correct the path, or remove it: nothing is below there".to_owned(),
        None if known.len() <= LISTED => format!("the fields there are {}", known.join(", ")),
        None => "correct the path, or remove it: no similar path leads to a field".to_owned(),
    };
    Some((message, help))
}

/// One finding for each field that there is not, where the first is, whatever the number of paths below it.
pub(crate) fn by_field(findings: Vec<Finding>) -> Vec<Finding> {
    let mut counts = BTreeMap::new();
    for finding in &findings {
        *counts.entry(finding.message.clone()).or_insert(0_usize) += 1;
    }
    let mut first = findings;
    first.retain_mut(|finding| match counts.remove(&finding.message) {
        Some(count) => {
            if count > 1 {
                finding.message += &format!(", which {count} paths begin with");
            }
            true
        }
        None => false,
    });
    first
}
