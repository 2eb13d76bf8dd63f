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
    /// The CRD that clusters need for it, where Kubernetes does not have the kind itself.
    pub crd: Option<&'static str>,
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
    cluster("ConsoleCLIDownload").of("consoleclidownloads.console.openshift.io"),
    cluster("ConsoleLink").of("consolelinks.console.openshift.io"),
    cluster("ConsolePlugin").of("consoleplugins.console.openshift.io"),
    cluster("ConsoleQuickStart").of("consolequickstarts.console.openshift.io"),
    cluster("ConsoleYAMLSample").of("consoleyamlsamples.console.openshift.io"),
    cluster("CustomResourceDefinition"),
    namespaced("NetworkPolicy"),
    namespaced("PodDisruptionBudget"),
    Kind { installed: false, ..namespaced("PodMonitor") },
    cluster("PriorityClass"),
    namespaced("PrometheusRule").of("prometheusrules.monitoring.coreos.com"),
    namespaced("Role"),
    namespaced("RoleBinding"),
    namespaced("Secret"),
    namespaced("Service"),
    namespaced("ServiceAccount"),
    namespaced("ServiceMonitor").of("servicemonitors.monitoring.coreos.com"),
    // Namespaced in Kubernetes, cluster-wide in opm's table.
    cluster("VerticalPodAutoscaler").of("verticalpodautoscalers.autoscaling.k8s.io"),
];

const fn cluster(name: &'static str) -> Kind {
    Kind { name, namespaced: false, installed: true, crd: None }
}

const fn namespaced(name: &'static str) -> Kind {
    Kind { namespaced: true, ..cluster(name) }
}

impl Kind {
    const fn of(self, crd: &'static str) -> Self {
        Self { crd: Some(crd), ..self }
    }
}

/// The supported kind of that name.
pub fn supported(name: &str) -> Option<&'static Kind> {
    SUPPORTED.iter().find(|kind| kind.name == name)
}
