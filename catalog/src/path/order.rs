//! In which order the entries of a channel are asked whether they may follow what is installed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use olmkit_bundle::version::VersionRange;

use super::Entry;
use crate::fbc;
use crate::graph::{GraphError, VersionRelease};

/// The edges of an entry as OLM reads them: an invalid range is ignored.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    pub(super) name: String,
    pub(super) replaces: Option<String>,
    pub(super) skips: Vec<String>,
    pub(super) skip_range: Option<VersionRange>,
}

impl Edges {
    pub(super) fn of(entry: &fbc::Entry<'_>) -> Self {
        Self {
            name: entry.name.to_string(),
            replaces: (!entry.replaces.is_empty()).then(|| entry.replaces.to_string()),
            skips: entry.skips.iter().map(ToString::to_string).collect(),
            skip_range: entry.skip_range.parse().ok(),
        }
    }
}

/// OLM v0's order: from the head along `replaces`, through skipped entries, which are left out.
///
/// This is looser than what opm demands: entries beside the chain are ignored, not refused.
pub(super) fn chain(entries: &[Entry], names: &HashMap<String, usize>) -> Result<Vec<usize>, GraphError> {
    let skipped: HashSet<&str> =
        entries.iter().flat_map(|entry| &entry.wire.skips).map(String::as_str).collect();
    let replaced: HashSet<&str> = entries.iter().filter_map(|entry| entry.wire.replaces.as_deref()).collect();
    let is_head = |entry: &Entry| {
        let name = entry.wire.name.as_str();
        !skipped.contains(name) && !replaced.contains(name)
    };
    let heads: Vec<usize> = (0..entries.len()).filter(|at| is_head(&entries[*at])).collect();
    let head = match heads[..] {
        [head] => head,
        [] => return Err(GraphError::NoHead { cycle: Vec::new() }),
        _ => return Err(GraphError::SeveralHeads { heads }),
    };
    let mut passed = HashMap::new();
    let mut way = Vec::new();
    let mut at = Some(head);
    while let Some(entry) = at {
        if let Some(start) = passed.insert(entry, way.len()) {
            return Err(GraphError::Cycle { cycle: way.split_off(start) });
        }
        way.push(entry);
        at = entries[entry].wire.replaces.as_ref().and_then(|name| names.get(name)).copied();
    }
    way.retain(|entry| !skipped.contains(entries[*entry].wire.name.as_str()));
    Ok(way)
}

/// OLM v1's order: the highest version first, deprecated ones behind all others.
pub(super) fn by_version(entries: &[Entry]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_cached_key(|at| {
        let about = &entries[*at].about;
        (about.deprecated, Reverse(about.version.clone().map(VersionRelease::with_build_as_release)))
    });
    order
}

/// Which of many claimed a position first.
pub(super) struct Claims {
    by: Vec<Option<usize>>,
    /// For each position one that is not before it and may be free; the last is the end.
    free: Vec<usize>,
}

impl Claims {
    pub(super) fn new(positions: usize) -> Self {
        Self { by: vec![None; positions], free: (0..=positions).collect() }
    }

    /// Claims what of a stretch is free.
    pub(super) fn claim(&mut self, stretch: Range<usize>, claimant: usize) {
        let mut at = self.first_free(stretch.start);
        while at < stretch.end {
            self.by[at] = Some(claimant);
            self.free[at] = at + 1;
            at = self.first_free(at + 1);
        }
    }

    /// Who claimed a position.
    pub(super) fn of(&self, position: usize) -> Option<usize> {
        self.by[position]
    }

    fn first_free(&mut self, from: usize) -> usize {
        let mut end = from;
        while self.free[end] != end {
            end = self.free[end];
        }
        // Shorten the way for those who come later.
        let mut at = from;
        while self.free[at] != at {
            at = std::mem::replace(&mut self.free[at], end);
        }
        end
    }
}
