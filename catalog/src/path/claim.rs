//! Which of many claims on the positions of a row came first.

use std::ops::Range;

use olmkit_bundle::version::{Version, VersionRange, position, precedence};

/// The first of many ranges that a version is in.
#[derive(Clone, Debug)]
pub(super) struct FirstRange {
    bounds: Vec<Version>,
    claims: FirstClaim,
}

impl FirstRange {
    /// Of ranges by their numbers.
    pub(super) fn new(ranges: &[(usize, VersionRange)]) -> Self {
        let mut bounds: Vec<Version> = ranges.iter().flat_map(|(_, range)| range.bounds()).cloned().collect();
        bounds.sort_by(precedence);
        bounds.dedup_by(|a, b| precedence(a, b).is_eq());
        let mut claims = FirstClaim::new(2 * bounds.len() + 1);
        for (number, range) in ranges {
            for positions in range.matching_positions(&bounds) {
                claims.claim(positions, *number);
            }
        }
        Self { bounds, claims }
    }

    /// The number of the first range that has a version.
    pub(super) fn of(&self, version: &Version) -> Option<usize> {
        self.claims.of(position(&self.bounds, version))
    }
}

/// Which of many claimed a position first.
#[derive(Clone, Debug)]
struct FirstClaim {
    by: Vec<Option<usize>>,
    /// For each position one that is not before it and may be free; the last is the end.
    free: Vec<usize>,
}

impl FirstClaim {
    fn new(positions: usize) -> Self {
        Self { by: vec![None; positions], free: (0..=positions).collect() }
    }

    /// Claims what of a stretch is free.
    fn claim(&mut self, stretch: Range<usize>, claimant: usize) {
        let mut at = self.first_free(stretch.start);
        while at < stretch.end {
            self.by[at] = Some(claimant);
            self.free[at] = at + 1;
            at = self.first_free(at + 1);
        }
    }

    /// The claimant of a position.
    fn of(&self, position: usize) -> Option<usize> {
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
