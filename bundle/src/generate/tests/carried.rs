//! Objects that the bundle carries as they are, and that Kubernetes refuses: CRDs, Services, ConfigMaps and the like.

use super::*;

/// The findings about the operator with one more manifest, which is `1.yaml`.
fn with(manifest: &str) -> String {
    outcome(&[DEPLOYMENT, manifest])
}

/// A CRD with this schema.
fn crd(schema: &str) -> String {
    CRD.replace(
        "{type: object, description: Says it again., x-kubernetes-preserve-unknown-fields: true}",
        schema,
    )
}

#[test]
fn a_schema_that_no_api_server_takes_is_an_error() {
    for (schema, code, expected) in [
        ("{properties: {spec: {type: object}}}", "schema-not-structural", "1.yaml:12"),
        (
            "{type: object, properties: {size: {type: integer, default: one}}}",
            "schema-default-invalid",
            "1.yaml:12",
        ),
        (
            "{type: object, properties: {name: {type: string, pattern: '(?=a)'}}}",
            "schema-not-structural",
            "1.yaml:12",
        ),
        (
            "{type: object, x-kubernetes-validations: [{rule: self.size > 0}]}",
            "schema-rule-invalid",
            "1.yaml:12",
        ),
    ] {
        let found = with(&crd(schema));
        assert!(found.starts_with(&format!("error[{code}] {expected}:")), "{schema}: {found}");
        assert!(!found.contains("+ manifests/"), "{schema}: {found}");
    }
    let without =
        CRD.replace("    schema: {openAPIV3Schema: {type: object, description: Says it again., x-kubernetes-preserve-unknown-fields: true}}\n", "");
    let found = with(&without);
    assert!(
        found.starts_with("error[schema-not-structural] 1.yaml:9:11: the version `v1` has no schema"),
        "{found}"
    );
}

/// YAML reads `n`, `off` and the like as booleans.
#[test]
fn a_word_that_yaml_takes_for_a_boolean_is_an_error() {
    let crd = crd("{type: object, required: [n], properties: {n: {type: integer}}}");
    let found = said(&run(&[DEPLOYMENT, &crd]), "manifest-content-invalid");
    assert!(
        found.contains("expected a string in `spec.versions[0].schema.openAPIV3Schema.required[0]`"),
        "{found}"
    );
}

#[test]
fn a_schema_that_is_refused_can_be_allowed() {
    let broken = crd("{type: object, x-kubernetes-validations: [{rule: self.size > 0}]}");
    let overrides = Overrides { allow: vec!["schema-rule-invalid".into()], ..Overrides::default() };
    let generated = Input { texts: &[DEPLOYMENT, &broken], overrides, ..Input::default() }.run();
    assert!(!generated.files.is_empty(), "{}", generated.lines());
    let compat = Some(Compat::OperatorSdk);
    let generated = Input { texts: &[DEPLOYMENT, &broken], compat, ..Input::default() }.run();
    assert!(!generated.files.is_empty(), "{}", generated.lines());
}

#[test]
fn a_crd_that_etcd_does_not_store_is_an_error() {
    let description = "x".repeat(1_800_000);
    let large = crd(&format!("{{type: object, description: {description}}}"));
    let found = said(&run(&[DEPLOYMENT, &large]), "size-object");
    assert!(found.contains("clusters store 1572864 at most"), "{found}");
    assert!(found.contains("controller-gen crd:maxDescLen=0"), "{found}");
    // What every version has is stored once.
    let half = crd(&format!("{{type: object, description: {}}}", &description[..900_000]));
    let version = half.find("  - name: v1\n").zip(half.find("status: {")).map(|(from, to)| &half[from..to]);
    let second = version.unwrap().replace("name: v1", "name: v2").replace("storage: true", "storage: false");
    let both = half.replace("status: {", &format!("{second}status: {{"));
    assert_eq!(said(&run(&[DEPLOYMENT, &both]), "size-object"), "");
}

#[test]
fn an_object_that_kubernetes_refuses_is_an_error() {
    for (manifest, expected) in [
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: metrics}\nspec: {ports: [{port: 80}, {port: 81}]}\n",
            "a port has no name, and the Service has several (set `name`, such as `https`, at each port)",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {replicas: 3}\n",
            "expected a string in `data.replicas`, found a number (quote it, so that it is a string)",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\ndata: {token: plain text}\n",
            "the value of `token` in `data` is not base64 (encode it, or move it to `stringData` as it is)",
        ),
        (
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: echo}\nspec: {minAvailable: 1, maxUnavailable: 1, selector: {}}\n",
            "both `minAvailable` and `maxUnavailable` are set, expected one of them (remove one of the two)",
        ),
    ] {
        let found = with(manifest);
        let first = found.lines().next().unwrap();
        assert!(first.starts_with("error[manifest-content-invalid] 1.yaml:4:"), "{first}");
        assert!(first.ends_with(&format!(": {expected}")), "{first}");
    }
    let blind =
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: echo}\nspec: {minAvailable: 1}\n";
    let found = with(blind);
    assert!(
        found.starts_with(
            "warning[manifest-content-invalid] 1.yaml:4:1: the PodDisruptionBudget has no selector"
        ),
        "{found}"
    );
    assert!(found.contains("+ manifests/"), "{found}");
}

#[test]
fn an_object_of_a_kind_that_clusters_may_lack_is_a_warning() {
    let monitor =
        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: echo}\nspec: {}\n";
    let monitors = format!("{monitor}---\n{}", monitor.replace("name: echo", "name: other"));
    insta::assert_snapshot!(said(&run(&[DEPLOYMENT, &monitors]), "manifest-needs-crd"), @"warning[manifest-needs-crd] 1.yaml:2:7: `ServiceMonitor/echo` and 1 more need the CRD `servicemonitors.monitoring.coreos.com`, which not every cluster has: OLM fails the InstallPlan without it (have the operator create it where the CRD exists, or list it under `olm.manifests.optional` in `metadata/properties.yaml`)");
    for package in [
        "requiredCrds: [{name: servicemonitors.monitoring.coreos.com, version: v1, kind: ServiceMonitor}]",
        "properties: [{type: olm.manifests.optional, value: {manifests: [{group: monitoring.coreos.com, kind: ServiceMonitor, name: echo}]}}]",
        "dependencies: [{type: olm.gvk, value: {group: monitoring.coreos.com, version: v1, kind: ServiceMonitor}}]",
        "allow: [{code: manifest-needs-crd, reason: it is for OpenShift alone}]",
    ] {
        let package = format!("{{package: echo, version: 0.1.0, {package}}}");
        let generated = Input { texts: &[DEPLOYMENT, monitor], package: Some(&package), ..Input::default() };
        assert_eq!(said(&generated.run(), "manifest-needs-crd"), "", "{package}");
    }
}
