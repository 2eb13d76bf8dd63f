//! The kube-apiserver of these tests, its users, and the client that the verbs use.

#[path = "../support/apiserver.rs"]
mod api;

use std::path::{Path, PathBuf};

use olmkit::lifecycle::api::known;
use olmkit::lifecycle::cluster::Cluster as _;
use olmkit::lifecycle::kubernetes::{Choice, Kubernetes};

use api::ApiServer;
pub(crate) use api::{ADMIN, missing};

/// Who may do nothing.
pub(crate) const WEAK: &str = "weak";
/// Who may do what docs/operator-rights.yaml gives for one verb.
pub(crate) const OF_VERBS: [&str; 6] = ["view", "approve", "install", "upgrade", "rollback", "uninstall"];

/// A server that runs. It ends with the value.
pub(crate) struct Server(ApiServer);

impl Server {
    pub(crate) fn start() -> Self {
        let users: Vec<_> = OF_VERBS.iter().copied().chain([WEAK]).collect();
        Self(ApiServer::start(&users, ready))
    }

    /// Stops the server and starts it again; its data stay.
    pub(crate) fn restart(&mut self) {
        self.0.restart(ready);
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.0.address()
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.0.kubeconfig(user)
    }

    pub(crate) fn connect(&self) -> Kubernetes {
        connect(&self.kubeconfig(ADMIN))
    }
}

fn ready(kubeconfig: &Path) -> bool {
    matches!(connect(kubeconfig).get(&known::NAMESPACE, "", "default"), Ok(Some(_)))
}

pub(crate) fn connect(kubeconfig: &Path) -> Kubernetes {
    Kubernetes::connect(&Choice { kubeconfig: Some(kubeconfig.into()), ..Choice::default() }).unwrap()
}
