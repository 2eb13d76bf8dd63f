//! The rights that a verb needs later on: asked for before it begins, since what it has deleted by then cannot be undone
//! without them.

use super::super::rights::Right;
use super::{Engine, EngineError};

impl Engine<'_> {
    /// Refuses when one of several rights is missing. A dry run, which needs none of them, tells it.
    pub(in crate::lifecycle) fn need(
        &mut self,
        rights: impl IntoIterator<Item = Right>,
    ) -> Result<(), EngineError> {
        let mut asked: Vec<(Right, bool)> = Vec::new();
        let mut missing: Vec<Right> = Vec::new();
        for right in rights {
            let Right { verb, resource, namespace, name } = &right;
            let any = Right { name: String::new(), ..right.clone() };
            let allowed = match asked.iter().find(|(known, _)| *known == any) {
                Some((_, allowed)) => *allowed,
                None => {
                    let allowed = self.cluster.may(verb, resource, namespace, "")?;
                    asked.push((any.clone(), allowed));
                    allowed
                }
            };
            // A rule may be about objects by name.
            if allowed || !name.is_empty() && self.cluster.may(verb, resource, namespace, name)? {
                continue;
            }
            if !missing.contains(&any) {
                missing.push(any);
            }
        }
        if self.options.dry_run {
            missing.iter().for_each(|right| self.say(format!("not allowed to {}", right.words())));
            return Ok(());
        }
        if missing.is_empty() { Ok(()) } else { Err(EngineError::Rights { missing }) }
    }
}
