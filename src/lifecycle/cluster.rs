//! What the engine needs of a cluster, and how requests to it fail.

use std::time::Duration;

use olmkit_bundle::version::Version;
use serde_json::Value;

use super::api::{Key, Resource};
use crate::limits::span;

/// Which objects of a kind are wanted, and how much of each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'s> {
    /// A label selector; empty for all.
    pub labels: &'s str,
    /// A field selector; empty for all.
    pub fields: &'s str,
    /// Whether names, labels, annotations and owners are enough.
    pub metadata_only: bool,
    /// How many objects are asked for at once; 0 for the usual number. Large objects need small pages.
    pub page: u32,
}

/// A cluster, real or simulated. Calls block.
pub trait Cluster {
    /// The name of the context, for messages; empty when there is only one.
    fn context(&self) -> &str;

    /// The objects of a kind, in one namespace or in all, sorted by namespace and name.
    ///
    /// # Errors
    /// [`ClusterError`]; a kind that the cluster does not serve is [`ClusterError::NotServed`].
    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError>;

    /// Hands over the objects of a kind one by one, so that no more than a page of them is in memory. A cluster may hand over more
    /// than was selected, and an object twice if the list had to begin anew.
    ///
    /// # Errors
    /// As [`Cluster::list`].
    fn each(
        &mut self,
        resource: &Resource,
        namespace: Option<&str>,
        _selection: &Selection<'_>,
        take: &mut dyn FnMut(Value),
    ) -> Result<(), ClusterError> {
        self.list(resource, namespace)?.into_iter().for_each(take);
        Ok(())
    }

    /// An object, if it is there.
    ///
    /// # Errors
    /// [`ClusterError`]
    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError>;

    /// Creates an object and returns it as it is stored.
    ///
    /// # Errors
    /// [`ClusterError::Exists`] when there is one already.
    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError>;

    /// Whether an object would be created, and nothing more; a simulated cluster creates any.
    ///
    /// # Errors
    /// [`ClusterError::Refused`], with the words of the API server.
    fn would_create(&mut self, _resource: &Resource, _object: &Value) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Merges a patch into an object. A `metadata.resourceVersion` in it must be the one stored.
    ///
    /// # Errors
    /// [`ClusterError::NotFound`], [`ClusterError::Conflict`]
    fn patch(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError>;

    /// Makes an object what a document says, whether it is there or not. Fields that others own and that the document does
    /// not have stay as they are.
    ///
    /// # Errors
    /// [`ClusterError`]
    fn apply(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        let key = Key::of(object);
        match self.get(resource, &key.namespace, &key.name)? {
            Some(_) => self.patch(resource, &key, object),
            None => self.create(resource, object),
        }
    }

    /// Deletes an object; one that is not there is no error.
    ///
    /// # Errors
    /// [`ClusterError`]
    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), ClusterError>;

    /// Merges a patch into the status of an object, which is what OLM does. A `metadata.resourceVersion` in it must be the one stored.
    ///
    /// # Errors
    /// As [`Cluster::patch`].
    fn patch_status(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<(), ClusterError> {
        self.patch(resource, key, patch).map(drop)
    }

    /// Deletes an object if it is still the very one that was looked at.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] when it was changed, or another one has its name.
    fn delete_exactly(&mut self, resource: &Resource, object: &Value) -> Result<(), ClusterError> {
        let key = Key::of(object);
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        match self.get(resource, &key.namespace, &key.name)? {
            Some(found) if version(&found) != version(object) => Err(ClusterError::Conflict { key }),
            Some(_) => self.delete(resource, &key),
            None => Ok(()),
        }
    }

    /// Whether there are pods at all: a simulated cluster has none, and that says nothing about what runs.
    fn has_pods(&self) -> bool {
        true
    }

    /// Whether a right is there, as far as the cluster tells; an empty name means any object, and a plural like `pods/status` a
    /// subresource.
    ///
    /// # Errors
    /// There was a signal, or the time is over.
    fn may(
        &mut self,
        _verb: &str,
        _resource: &Resource,
        _namespace: &str,
        _name: &str,
    ) -> Result<bool, ClusterError> {
        Ok(true)
    }

    /// Forgets what watches have told, so that it is asked for anew: a connection that was lost without a word tells nothing.
    fn look_again(&mut self) {}

    /// Blocks until something may have changed, or the time is over; says which. Spurious wake-ups are allowed.
    ///
    /// # Errors
    /// [`ClusterError`]
    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError>;

    /// The time since some moment.
    fn now(&self) -> Duration;

    /// The time of day as objects of the cluster show it, in milliseconds since 1970.
    fn time_of_day(&self) -> i64;

    /// The version of Kubernetes, without what a vendor adds to it; none when nobody knows.
    fn kubernetes_version(&mut self) -> Option<Version> {
        None
    }

    /// When the command has to be over, by the clock of [`Cluster::now`]; none when only its verbs have a limit.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// Writes the time into `data.renewed` of a ConfigMap again and again from now on, beside everything else that is done, as long as
    /// its `data.holder` is this one: others see that the program is alive. A cluster that nobody else sees needs none of it.
    fn renew(&mut self, _note: &Key, _holder: &str, _every: Duration) {}

    /// From now on neither a signal nor the old deadline ends a call, and the time is over after `limit`: what was made is
    /// removed, whatever ended the command.
    fn begin_cleanup(&mut self, _limit: Duration) {}
}

/// What a cluster said of it, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Said(pub String);

/// Why a cluster did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The object is not there.
    #[error("{key} does not exist")]
    NotFound {
        /// The object.
        key: Key,
    },
    /// There is such an object already.
    #[error("{key} already exists")]
    Exists {
        /// The object.
        key: Key,
    },
    /// Somebody else changed the object meanwhile.
    #[error("conflict: {key} was changed by someone else")]
    Conflict {
        /// The object.
        key: Key,
    },
    /// The cluster does not know the kind.
    #[error("the cluster does not serve `{resource}`")]
    NotServed {
        /// The kind, `PLURAL.GROUP`.
        resource: String,
    },
    /// The right is missing.
    #[error("not allowed to {verb} `{resource}`{}", within(.namespace))]
    Forbidden {
        /// The verb of the rule.
        verb: &'static str,
        /// The resource of the rule, `PLURAL.GROUP`.
        resource: String,
        /// The namespace; none where the right must hold everywhere.
        namespace: Option<String>,
        /// What the cluster said, which names the user.
        #[source]
        source: Option<Said>,
    },
    /// Nobody knows who is asking.
    #[error("the cluster at `{server}` rejected the credentials{}", of_context(.context))]
    Unauthorized {
        /// The address of its API server.
        server: String,
        /// The context; empty for the current one.
        context: String,
        /// What it said.
        #[source]
        source: Said,
    },
    /// There are no credentials to ask with any more.
    #[error("cannot renew the credentials for the cluster")]
    Credentials {
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The cluster could not do it.
    #[error("the cluster failed to {verb} `{resource}`")]
    Failed {
        /// The verb.
        verb: &'static str,
        /// The resource, `PLURAL.GROUP`.
        resource: String,
        /// What it said.
        #[source]
        source: Said,
    },
    /// The cluster refused what was sent.
    #[error("{key} was refused: {message}")]
    Refused {
        /// The object.
        key: Key,
        /// What it said.
        message: String,
    },
    /// The cluster did not answer.
    #[error("cannot reach the cluster at `{server}`")]
    Unreachable {
        /// The address of its API server.
        server: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What answers is not an API server: a login page, a proxy, another service.
    #[error("invalid response: `{server}` does not answer as an API server does")]
    Invalid {
        /// The address that was asked.
        server: String,
        /// What is wrong with the answer.
        #[source]
        source: Said,
    },
    /// The time for the whole command is over.
    #[error("{}", timed_out(.server, *.limit, .doing, *.is_answering || .last.is_some()))]
    TimedOut {
        /// The address of its API server.
        server: String,
        /// The time that was given.
        limit: Duration,
        /// What was tried.
        doing: String,
        /// Whether it had answered until then: the time was too short, and nothing is wrong with it.
        is_answering: bool,
        /// What was heard last, when anything was.
        #[source]
        last: Option<Said>,
    },
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

fn within(namespace: &Option<String>) -> String {
    namespace.as_ref().map(|namespace| format!(" in the namespace `{namespace}`")).unwrap_or_default()
}

fn of_context(context: &str) -> String {
    if context.is_empty() { String::new() } else { format!(" of the context `{context}`") }
}

fn timed_out(server: &str, limit: Duration, doing: &str, heard: bool) -> String {
    let limit = span(limit);
    if heard {
        format!("timed out after {limit} trying to {doing}")
    } else {
        format!("the cluster at `{server}` did not answer within {limit}")
    }
}

/// A certificate that a client does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct BadCertificate {
    /// What is wrong with it.
    pub what: String,
    /// The way out.
    pub help: &'static str,
}

/// The rule that gives a right.
pub fn rule(verb: &str, resource: &str, namespace: Option<&str>) -> String {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let role = if namespace.is_some() { "a Role there" } else { "a ClusterRole" };
    format!(
        "the rule `{{apiGroups: [\"{group}\"], resources: [\"{plural}\"], verbs: [\"{verb}\"]}}` is missing: add it to {role}"
    )
}

impl ClusterError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Forbidden { verb, resource, namespace, .. } => {
                Some(rule(verb, resource, namespace.as_deref()))
            }
            Self::Unauthorized { .. } => {
                Some("log in again, or choose another context with --context".into())
            }
            Self::Credentials { .. } => Some("log in again, then run the same command again".into()),
            Self::Conflict { .. } => Some("run the same command again".into()),
            Self::Refused { message, .. } if message.contains("because it is being terminated") => {
                Some("wait until the namespace is gone, or choose another one".into())
            }
            Self::Refused { message, .. } if message.contains("exceeded quota") => {
                Some("free some of the namespace's quota, or have it raised".into())
            }
            Self::Refused { message, .. } if message.contains("admission webhook") => {
                Some("ask the owner of the webhook for its rules".into())
            }
            Self::Failed { .. } => Some("try again later".into()),
            Self::NotServed { resource } if resource.ends_with("operators.coreos.com") => {
                Some("there is no OLM on this cluster: `olmkit olm install` installs it".into())
            }
            Self::Unreachable { source, .. } if source.is::<BadCertificate>() => {
                source.downcast_ref().map(|found: &BadCertificate| found.help.to_owned())
            }
            Self::Unreachable { .. } => Some("check the kubeconfig, the context and the network".into()),
            Self::Invalid { .. } => Some(
                "check the server's address in the kubeconfig: a login page, a proxy or another service may answer there".into(),
            ),
            Self::TimedOut { is_answering: true, last: None, .. } => Some("pass a longer --timeout".into()),
            Self::TimedOut { last: Some(_), .. } => Some("try again later, or pass a longer --timeout".into()),
            Self::TimedOut { .. } => {
                Some("check the kubeconfig, the context and the network, or pass a longer --timeout".into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named_as_a_rule() {
        let error = ClusterError::Forbidden {
            verb: "patch",
            resource: "installplans.operators.coreos.com".into(),
            namespace: Some("redis".into()),
            source: None,
        };
        assert_eq!(
            error.to_string(),
            "not allowed to patch `installplans.operators.coreos.com` in the namespace `redis`"
        );
        insta::assert_snapshot!(error.help().unwrap(), @r#"the rule `{apiGroups: ["operators.coreos.com"], resources: ["installplans"], verbs: ["patch"]}` is missing: add it to a Role there"#);
    }
}
