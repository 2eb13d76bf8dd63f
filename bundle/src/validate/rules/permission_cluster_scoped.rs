use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};

rule!("permission-cluster-scoped", Warning, INSTALL, "permission_cluster_scoped.md");

/// Resources of Kubernetes that are in no namespace. Of `namespaces` and `securitycontextconstraints` a Role can grant something.
const CLUSTER_SCOPED: [(&str, &[&str]); 11] = [
    ("", &["nodes", "persistentvolumes"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("authentication.k8s.io", &["tokenreviews"]),
    (
        "authorization.k8s.io",
        &["selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
    ("certificates.k8s.io", &["certificatesigningrequests"]),
    ("networking.k8s.io", &["ingressclasses"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    ("storage.k8s.io", &["csidrivers", "csinodes", "storageclasses", "volumeattachments"]),
];

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let supported = |all: bool| {
        let mut modes = csv.typed.spec.install_modes.iter();
        modes.any(|mode| mode.supported && (mode.kind == "AllNamespaces") == all)
    };
    // For all namespaces OLM makes ClusterRoles of `permissions`.
    if supported(true) && !supported(false) {
        return;
    }
    for rule in facts.access_rules().iter().filter(|rule| !rule.cluster_wide && rule.is_in_csv()) {
        let mut useless = Vec::new();
        for group in rule.groups() {
            let known = CLUSTER_SCOPED.iter().find(|(own, _)| *own == group).map_or(&[][..], |(_, all)| *all);
            let of_group =
                rule.resources().filter(|own| known.contains(&own.split('/').next().unwrap_or("")));
            useless.extend(of_group.map(|own| format!("`{own}`")));
        }
        if useless.is_empty() {
            continue;
        }
        let message = format!(
            "`{}` grants nothing on {}: they are in no namespace, and `permissions` are rights in namespaces",
            rule.name(),
            useless.join(", ")
        );
        let help = "move them to `spec.install.spec.clusterPermissions`";
        findings.push(rule.finding(&RULE.code, message).help(help));
    }
}
