//! The verbs, as requests.

use std::path::PathBuf;
use std::time::Duration;

use super::{NewBundle, SourceVerb};
use crate::exit::Failure;
use crate::lifecycle::decide::Accept;
use crate::lifecycle::install::Install;
use crate::lifecycle::policy::Policy;
use crate::lifecycle::rollback::Rollback;
use crate::lifecycle::uninstall::Uninstall;
use crate::lifecycle::upgrade::Upgrade;

/// What to do.
#[derive(Clone, Debug)]
pub enum Verb {
    /// `operator install`
    Install {
        /// What, and where.
        request: Box<Install>,
        /// A bundle that no catalog has yet.
        bundle: Option<NewBundle>,
    },
    /// `operator upgrade`
    Upgrade(Upgrade),
    /// `operator approve`
    Approve {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
        /// What else the plan may carry.
        accept: Accept,
        /// What it has to meet.
        policy: Option<Policy>,
    },
    /// `operator plan`
    Plan {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
        /// What it is held against.
        policy: Option<Policy>,
    },
    /// `operator status`
    Status {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
    },
    /// `operator describe`
    Describe {
        /// The Subscription, or its package.
        name: String,
        /// Its namespace.
        namespace: Option<String>,
    },
    /// `operator list`
    List {
        /// The namespace; none for all.
        namespace: Option<String>,
    },
    /// `operator watch`
    Watch {
        /// The namespace; none for all.
        namespace: Option<String>,
        /// How often to look.
        interval: Duration,
    },
    /// `operator doctor`
    Doctor {
        /// The Subscription, or its package; none for all.
        name: Option<String>,
        /// The namespace; none for all.
        namespace: Option<String>,
        /// Whether safe repairs are applied.
        fix: bool,
    },
    /// `operator uninstall`
    Uninstall(Uninstall),
    /// `source …`
    Source(SourceVerb),
    /// `operator rollback`
    Rollback {
        /// What, and how far.
        request: Rollback,
        /// Where custom resources are kept.
        backup: PathBuf,
    },
}

impl Verb {
    /// The same in a namespace, where none is named.
    pub(super) fn within(&self, default: Option<&str>) -> Self {
        let fill = |namespace: &mut String| {
            if namespace.is_empty() {
                default.unwrap_or_default().clone_into(namespace);
            }
        };
        let mut verb = self.clone();
        match &mut verb {
            Self::Install { request, .. } => fill(&mut request.namespace),
            Self::Source(SourceVerb::Add { wanted, .. }) => fill(&mut wanted.namespace),
            Self::Upgrade(Upgrade { namespace, .. })
            | Self::Uninstall(Uninstall { namespace, .. })
            | Self::Rollback { request: Rollback { namespace, .. }, .. }
            | Self::Source(
                SourceVerb::List { namespace }
                | SourceVerb::Remove { namespace, .. }
                | SourceVerb::Refresh { namespace, .. },
            )
            | Self::Approve { namespace, .. }
            | Self::Plan { namespace, .. }
            | Self::Status { namespace, .. }
            | Self::Describe { namespace, .. }
            | Self::Doctor { namespace, .. }
            | Self::Watch { namespace, .. }
            | Self::List { namespace } => {
                *namespace = namespace.take().or_else(|| default.map(str::to_owned));
            }
        }
        verb
    }

    /// Whether it changes a cluster.
    pub(super) fn writes(&self) -> bool {
        !matches!(
            self,
            Self::Status { .. }
                | Self::Describe { .. }
                | Self::List { .. }
                | Self::Watch { .. }
                | Self::Doctor { fix: false, .. }
                | Self::Plan { .. }
                | Self::Source(SourceVerb::List { .. })
        )
    }

    /// Whether a simulated cluster may begin with it.
    pub(super) fn is_first(&self) -> bool {
        matches!(self, Self::Source(SourceVerb::Add { .. }))
    }

    /// The operator that is waited for.
    pub(super) fn subject(&self) -> Option<(String, Option<String>)> {
        match self {
            Self::Install { request, .. } => {
                let name = request.name.clone().unwrap_or_else(|| request.package.clone());
                (!name.is_empty()).then(|| (name, Some(request.namespace.clone())))
            }
            Self::Upgrade(request) => Some((request.name.clone(), request.namespace.clone())),
            Self::Rollback { request, .. } => Some((request.name.clone(), request.namespace.clone())),
            Self::Approve { name, namespace, .. } => Some((name.clone(), namespace.clone())),
            _ => None,
        }
    }

    /// An operator is installed into a namespace; the other verbs find theirs.
    pub(super) fn has_namespace(&self) -> Result<(), Failure> {
        match self {
            Self::Install { request, .. } if request.namespace.is_empty() => {
                Err(Failure::usage("no namespace given")
                    .help("pass --namespace, or set one in the current context"))
            }
            Self::Source(SourceVerb::Add { wanted, .. }) if wanted.namespace.is_empty() => {
                Err(Failure::usage("no namespace given").help(
                    "pass --namespace: OLM's own, such as `olm`, to offer the catalog to every namespace, or another one",
                ))
            }
            _ => Ok(()),
        }
    }
}
