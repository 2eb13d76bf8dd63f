//! Manifests as a release of OLM has them, no longer than olmkit asks for.

pub(crate) const GROUP: &str = "operators.coreos.com";

pub(crate) fn manifests(version: &str) -> String {
    let crds = [
        "catalogsources",
        "clusterserviceversions",
        "installplans",
        "olmconfigs",
        "operatorconditions",
        "operatorgroups",
        "subscriptions",
    ];
    let crd = |name| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}.{GROUP}}}\n---\n"
        )
    };
    let deployment = |name| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: olm}}\n\
             spec: {{replicas: 1, template: {{spec: {{containers: [{{image: 'olm:v{version}'}}]}}}}}}\n---\n"
        )
    };
    [
        crds.map(crd).concat(),
        ["olm-operator", "catalog-operator"].map(deployment).concat(),
        format!("apiVersion: {GROUP}/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: packageserver, namespace: olm}}\n---\n"),
        format!("apiVersion: {GROUP}/v1\nkind: OLMConfig\nmetadata: {{name: cluster}}\n---\n"),
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: olm, namespace: olm}\n---\n".into(),
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: olm}\n---\n".into(),
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: operators}\n".into(),
    ]
    .concat()
}
