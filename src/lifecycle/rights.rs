//! Rights to do something with an object, as RBAC has them.

use super::api::Resource;
use super::cluster::rule;

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
