//! Work on many things side by side.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does the same with every item, so many at a time; what comes of them stands in the order of the items.
///
/// The work waits for registries as often as it computes, so the caller says how many are useful.
pub(super) fn in_parallel<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator + Send>,
    at_once: usize,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = items.into_iter();
    let count = items.len();
    let queue = Mutex::new(items.enumerate());
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..at_once.min(count) {
            scope.spawn(|| {
                // A worker that panicked has taken the program down with it.
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some((at, item)) = next() {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        assert_eq!(in_parallel(0..100, 8, |item| item * 2), (0..200).step_by(2).collect::<Vec<_>>());
        assert!(in_parallel(Vec::<usize>::new(), 8, |item| item).is_empty());
    }
}
