//! Which of many claims on the positions of a row came first.

use std::ops::Range;

/// Which of many claimed a position first.
pub(super) struct FirstClaim {
    by: Vec<Option<usize>>,
    /// For each position one that is not before it and may be free; the last is the end.
    free: Vec<usize>,
}

impl FirstClaim {
    pub(super) fn new(positions: usize) -> Self {
        Self { by: vec![None; positions], free: (0..=positions).collect() }
    }

    /// FirstClaim what of a stretch is free.
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
