//! Sets of hash slots, as the ranges that Redis writes them in.

use std::fmt;

/// How many slots a Redis Cluster has.
pub const SLOTS: u16 = 16384;

/// A set of slots: sorted ranges, both ends included, that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots(Vec<(u16, u16)>);

impl Slots {
    /// The slots from `first` to `last`, both included; none when `last` is smaller.
    pub fn range(first: u16, last: u16) -> Self {
        if first > last { Self::default() } else { Self(vec![(first, last)]) }
    }

    /// Adds the slots from `first` to `last`, both included.
    pub fn insert(&mut self, first: u16, last: u16) {
        if first > last {
            return;
        }
        // Redis writes ranges in order, so the common case is the end.
        match self.0.last_mut() {
            Some(end) if end.1 < first => {
                if end.1 + 1 == first {
                    end.1 = last
                } else {
                    self.0.push((first, last))
                }
            }
            None => self.0.push((first, last)),
            Some(_) => {
                self.0.push((first, last));
                self.0.sort_unstable();
                let mut merged: Vec<(u16, u16)> = Vec::with_capacity(self.0.len());
                for &(first, last) in &self.0 {
                    match merged.last_mut() {
                        Some(end) if first <= end.1.saturating_add(1) => end.1 = end.1.max(last),
                        _ => merged.push((first, last)),
                    }
                }
                self.0 = merged;
            }
        }
    }

    /// Whether `slot` is in the set.
    pub fn contains(&self, slot: u16) -> bool {
        let after = self.0.partition_point(|&(first, _)| first <= slot);
        after > 0 && self.0[after - 1].1 >= slot
    }

    /// How many slots it holds.
    pub fn len(&self) -> usize {
        self.0.iter().map(|&(first, last)| usize::from(last - first) + 1).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The slots, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u16> + '_ {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// The ranges, lowest first.
    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }

    /// The slots of this set that are not in `other`.
    pub fn minus(&self, other: &Self) -> Self {
        self.iter().filter(|&slot| !other.contains(slot)).collect()
    }

    /// The `count` highest slots of the set.
    pub fn highest(&self, count: usize) -> Self {
        let skip = self.len().saturating_sub(count);
        self.iter().skip(skip).collect()
    }
}

impl FromIterator<u16> for Slots {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        let mut set = Self::default();
        for slot in slots {
            set.insert(slot, slot);
        }
        set
    }
}

/// As Redis and the status write it: `0-5460 5462`.
impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            match range {
                (first, last) if first == last => write!(f, "{space}{first}")?,
                (first, last) => write!(f, "{space}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Slots;

    proptest! {
        #[test]
        fn behaves_like_a_set(ranges in prop::collection::vec((0u16..300, 0u16..40), 0..12), probe in 0u16..400) {
            let mut set = BTreeSet::new();
            let mut slots = Slots::default();
            for (first, length) in ranges {
                slots.insert(first, first + length);
                set.extend(first..=first + length);
            }
            prop_assert_eq!(slots.iter().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(slots.len(), set.len());
            prop_assert_eq!(slots.contains(probe), set.contains(&probe));
            prop_assert_eq!(slots.iter().collect::<Slots>(), slots.clone());
            prop_assert!(slots.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            let highest: Vec<_> = set.iter().rev().take(7).rev().copied().collect();
            prop_assert_eq!(slots.highest(7).iter().collect::<Vec<_>>(), highest);
        }
    }

    #[test]
    fn written_as_redis_does() {
        let mut slots = Slots::range(0, 5460);
        slots.insert(5462, 5462);
        assert_eq!(slots.to_string(), "0-5460 5462");
    }
}
