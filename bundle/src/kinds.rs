//! The kinds of objects a bundle may carry, and what OLM does with each.

/// A kind that a registry+v1 bundle may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The kind.
    pub name: &'static str,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// Whether OLM v0 installs it; opm accepts one that it does not.
    pub installed: bool,
}

/// Every kind that `opm` and operator-sdk accept in `manifests/`
/// (operator-registry `pkg/lib/bundle/supported_resources.go`), in alphabetical order.
///
/// PodMonitor is accepted by them and refused by OLM v0's installer.
pub const SUPPORTED: &[Kind] = &[
    cluster("ClusterRole"),
    cluster("ClusterRoleBinding"),
    namespaced("ClusterServiceVersion"),
    namespaced("ConfigMap"),
    cluster("ConsoleCLIDownload"),
    cluster("ConsoleLink"),
    cluster("ConsolePlugin"),
    cluster("ConsoleQuickStart"),
    cluster("ConsoleYAMLSample"),
    cluster("CustomResourceDefinition"),
    namespaced("NetworkPolicy"),
    namespaced("PodDisruptionBudget"),
    Kind { name: "PodMonitor", namespaced: true, installed: false },
    cluster("PriorityClass"),
    namespaced("PrometheusRule"),
    namespaced("Role"),
    namespaced("RoleBinding"),
    namespaced("Secret"),
    namespaced("Service"),
    namespaced("ServiceAccount"),
    namespaced("ServiceMonitor"),
    // Namespaced in Kubernetes, cluster-wide in opm's table.
    cluster("VerticalPodAutoscaler"),
];

const fn cluster(name: &'static str) -> Kind {
    Kind { name, namespaced: false, installed: true }
}

const fn namespaced(name: &'static str) -> Kind {
    Kind { name, namespaced: true, installed: true }
}

/// The supported kind of that name.
pub fn supported(name: &str) -> Option<&'static Kind> {
    SUPPORTED.iter().find(|kind| kind.name == name)
}
