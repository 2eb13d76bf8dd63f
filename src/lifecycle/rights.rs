//! The rights that a verb needs later on: asked for before it begins, since what it has deleted by then cannot be undone
//! without them.

use super::api::Resource;
use super::cluster::rule;
use super::engine::{Engine, EngineError};

/// A right to do something with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The verb of the rule.
    pub verb: &'static str,
    /// The kind.
    pub resource: Resource,
    /// The namespace; empty for a kind that has none.
    pub namespace: String,
    /// The object; empty for any.
    pub name: String,
}

impl Right {
    pub(super) fn new(verb: &'static str, resource: &Resource, namespace: &str, name: &str) -> Self {
        let namespace = if resource.namespaced { namespace } else { "" };
        Self { verb, resource: resource.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// To change the status of an object, which is a resource of its own, `PLURAL/status`.
    pub(super) fn of_status(resource: &Resource, namespace: &str, name: &str) -> Self {
        let plural = format!("{}/status", resource.plural);
        Self::new("patch", &Resource { plural, ..resource.clone() }, namespace, name)
    }

    /// In words.
    pub fn words(&self) -> String {
        let place = match self.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" in the namespace `{namespace}`"),
        };
        format!("{} `{}`{place}", self.verb, self.resource.full_name())
    }

    /// The rule that gives it.
    pub fn rule(&self) -> String {
        let namespace = Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        rule(self.verb, &self.resource.full_name(), namespace)
    }
}

impl Engine<'_> {
    /// Refuses when one of several rights is missing. A dry run, which needs none of them, tells it.
    pub(super) fn need(&mut self, rights: impl IntoIterator<Item = Right>) -> Result<(), EngineError> {
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
