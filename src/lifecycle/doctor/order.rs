//! Which of several causes is the root, by the rules for readers of OLM's state: what comes first explains the rest.
//!
//! 1. What is broken comes before what waits for somebody.
//! 2. What is installed comes before what is to be installed next: a plan that waits for approval explains nothing about an operator
//!    that does not run, and the state of a Subscription says nothing about the health of what it has installed (rule 5).
//! 3. Otherwise OLM's own order of work decides, from the namespace and its OperatorGroup over the catalog, the resolution, the
//!    bundle and the plan to the version and its pods: that is the order of [`super::CODES`].

use super::{Cause, Level, codes};

/// Where a cause stands among others: the smallest is the root.
pub(super) fn place(cause: &Cause) -> (Level, bool, usize) {
    let is_about_next = cause.code == codes::APPROVAL_REQUIRED.name;
    (cause.level, is_about_next, codes::rank(cause.code))
}

/// Puts causes in order: the root first, and of one code by object.
pub(super) fn sort(causes: &mut [Cause]) {
    causes.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.object.cmp(&b.object)));
}

/// The root cause of one operator, with the others folded under it. Their repairs are for when the root is mended.
pub(super) fn folded(mut causes: Vec<Cause>) -> Option<Cause> {
    sort(&mut causes);
    let mut causes = causes.into_iter();
    let mut root = causes.next()?;
    for other in causes {
        root.consequences.push(format!("also [{}]: {}", other.code, other.sentence));
        root.consequences.extend(other.consequences);
    }
    Some(root)
}
