//! OLM v0's order of a channel's entries (operator-lifecycle-manager `pkg/controller/registry/resolver`).

use std::collections::{HashMap, HashSet};

use super::GraphError;

/// The edges of an entry that make the order.
pub(crate) struct Links<'e> {
    pub(crate) name: &'e str,
    /// Empty when it replaces nothing.
    pub(crate) replaces: &'e str,
    pub(crate) skips: &'e [&'e str],
}

/// The entries from the head along `replaces`, through skipped ones, which are left out.
///
/// This is looser than what opm demands: entries beside the chain are ignored, not refused.
///
/// # Errors
/// [`GraphError::NoHead`], without the cycle, [`GraphError::SeveralHeads`] or [`GraphError::Cycle`].
pub(crate) fn chain(entries: &[Links<'_>]) -> Result<Vec<usize>, GraphError> {
    let mut by_name = HashMap::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        by_name.entry(entry.name).or_insert(at);
    }
    let skipped: HashSet<&str> = entries.iter().flat_map(|entry| entry.skips).copied().collect();
    let replaced: HashSet<&str> =
        entries.iter().map(|entry| entry.replaces).filter(|name| !name.is_empty()).collect();
    let is_head = |entry: &Links<'_>| !skipped.contains(entry.name) && !replaced.contains(entry.name);
    let heads: Vec<usize> = (0..entries.len()).filter(|at| is_head(&entries[*at])).collect();
    let head = match heads[..] {
        [head] => head,
        [] => return Err(GraphError::NoHead { cycle: Vec::new() }),
        _ => return Err(GraphError::SeveralHeads { heads }),
    };
    let mut passed = HashMap::new();
    let mut chain = Vec::new();
    let mut next = Some(head);
    while let Some(at) = next {
        if let Some(start) = passed.insert(at, chain.len()) {
            return Err(GraphError::Cycle { cycle: chain.split_off(start) });
        }
        chain.push(at);
        next = by_name.get(entries[at].replaces).copied();
    }
    chain.retain(|at| !skipped.contains(entries[*at].name));
    Ok(chain)
}
