//! Bundles that Kubernetes or OLM refuse at installation: one that they take, and what is said of it after one change.

use super::*;

const GOOD: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: cache.v0.2.0
  labels: {team: caches}
  annotations: {olm.skipRange: '>=0.1.0 <0.2.0'}
spec:
  version: 0.2.0
  replaces: cache.v0.1.0
  install:
    strategy: deployment
    spec:
      deployments:
      - name: cache
        spec:
          replicas: 1
          selector: {matchLabels: {app: cache}}
          template:
            metadata: {labels: {app: cache}}
            spec:
              serviceAccountName: cache
              volumes: [{name: data, emptyDir: {}}]
              containers:
              - name: manager
                image: quay.io/example/cache:v1
                ports: [{name: https, containerPort: 8443}]
                volumeMounts: [{name: data, mountPath: /data}]
                resources: {requests: {cpu: 10m}, limits: {cpu: 100m}}
      permissions:
      - {serviceAccountName: cache, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}
      clusterPermissions:
      - {serviceAccountName: cache, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}
  customresourcedefinitions: {owned: [{name: caches.example.com, version: v1, kind: Cache}]}
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: vcache.example.com
    deploymentName: cache
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    webhookPath: /validate
    rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [caches]}]
  - type: ConversionWebhook
    generateName: ccache.example.com
    deploymentName: cache
    admissionReviewVersions: [v1]
    sideEffects: None
    conversionCRDs: [caches.example.com]
# manifests/crd.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.example.com}
spec:
  group: example.com
  names: {kind: Cache, plural: caches, singular: cache, listKind: CacheList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com'}}}
# manifests/role.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [services], verbs: [list]}]
# metadata/annotations.yaml
annotations:
  operators.operatorframework.io.bundle.package.v1: cache
  operators.operatorframework.io.bundle.channels.v1: alpha,stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
";

/// The codes that the suite finds after a text of the good bundle was replaced by another.
fn codes_after(from: &str, to: &str) -> Vec<&'static str> {
    assert!(GOOD.contains(from), "{from}");
    let files = example_bundle(&GOOD.replacen(from, to, 1));
    let findings = validate(&Bundle::parse(&files), &[INSTALL]);
    findings.iter().map(|finding| finding.code.name).collect()
}

#[test]
fn a_bundle_that_installs_has_no_finding() {
    assert_eq!(codes_after("replicas: 1", "replicas: 1"), [""; 0]);
}

#[test]
fn what_olm_makes_of_a_deployment_is_judged() {
    let mount = "volumeMounts: [{name: data, mountPath: /data}]";
    let certificate = "volumeMounts: [{name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs}]";
    assert_eq!(codes_after(mount, certificate), [""; 0], "OLM replaces the mount");
    let elsewhere = "volumeMounts: [{name: cert, mountPath: /certs}]";
    assert_eq!(codes_after(mount, elsewhere), ["deployment-invalid"]);
    let containers = "              containers:\n";
    let by_init = "              initContainers: [{name: import, image: a, volumeMounts: [{name: apiservice-cert, mountPath: /in}]}]\n              containers:\n";
    assert_eq!(codes_after(containers, by_init), [""; 0], "OLM adds the volume");
    let long = "generateName: ccachesnodesshardsusersbackupsrestoresbackupschedulesreplicas.kb.io";
    assert_eq!(codes_after("generateName: ccache.example.com", long), [""; 0], "no label is made of it");
    assert_eq!(codes_after("generateName: vcache.example.com", &long.replace('c', "v")), ["webhook-invalid"]);
}

#[test]
fn what_pods_need_as_olm_makes_them() {
    let after = |volume: &str, mount: &str| {
        let text = GOOD.replacen("{name: data, emptyDir: {}}", volume, 1);
        let text = text.replacen("{name: data, mountPath: /data}", mount, 1);
        let files = example_bundle(&text);
        let findings = validate(&Bundle::parse(&files), &[OLM]);
        let of_pods = findings.iter().filter(|own| own.code.name == "pod-reference-missing");
        of_pods.map(|own| own.message.clone()).collect::<Vec<_>>().join("\n")
    };
    let tls = "{name: cert, secret: {secretName: tls}}";
    assert_eq!(after(tls, "{name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs}"), "");
    assert_eq!(after(tls, "{name: cert, mountPath: /apiserver.local.config/certificates}"), "");
    assert_eq!(
        after(tls, "{name: cert, mountPath: /certs}"),
        "the Deployment `cache` needs the Secret `tls`, which nothing in the bundle creates"
    );
    assert_eq!(
        after("{name: data, emptyDir: {}}, {name: a, configMap: {name: a}}", "{name: data, mountPath: /a}"),
        ""
    );
    assert_eq!(
        after(
            "{name: data, emptyDir: {}}, {name: a, persistentVolumeClaim: {claimName: a}}",
            "{name: data, mountPath: /a}"
        ),
        "the Deployment `cache` needs the PersistentVolumeClaim `a`, which nothing in the bundle creates"
    );
    let olms = "{name: cert, secret: {secretName: cache-service-cert, items: [{key: tls.crt, path: a}, {key: ca.crt, path: b}]}}";
    assert_eq!(
        after(olms, "{name: cert, mountPath: /certs}"),
        "the Deployment `cache` needs the key `ca.crt` of the Secret `cache-service-cert`, which has only `olmCAKey`, `tls.crt`, `tls.key`"
    );
}

#[test]
fn what_kubernetes_or_olm_refuse_at_installation() {
    for (from, to, code) in [
        // The ClusterServiceVersion.
        ("operators.coreos.com/v1alpha1", "operators.coreos.com/v1", "csv-api-version-unknown"),
        ("strategy: deployment", "strategy: helm", "csv-strategy-unknown"),
        ("team: caches", "team: 'our caches'", "csv-metadata-invalid"),
        ("{team: caches}", "{'a b': caches}", "csv-metadata-invalid"),
        ("replaces: cache.v0.1.0", "replaces: cache.v0.2.0", "csv-replaces-itself"),
        ("replaces: cache.v0.1.0", "skips: [cache.v0.2.0]", "csv-replaces-itself"),
        (">=0.1.0 <0.2.0", ">=0.1 to 0.2", "csv-skip-range-invalid"),
        // Deployments.
        ("- name: cache\n", "- name: Cache\n", "deployment-invalid"),
        ("replicas: 1", "replicas: -1", "deployment-invalid"),
        ("selector: {matchLabels: {app: cache}}", "selector: {}", "deployment-invalid"),
        ("labels: {app: cache}", "labels: {app: other}", "deployment-invalid"),
        ("labels: {app: cache}", "labels: {app: cache, 'a b': c}", "deployment-invalid"),
        ("serviceAccountName: cache\n", "serviceAccountName: Cache_1\n", "deployment-invalid"),
        ("serviceAccountName: cache\n", "restartPolicy: OnFailure\n", "deployment-invalid"),
        (
            "{name: data, emptyDir: {}}",
            "{name: data, emptyDir: {}}, {name: data, emptyDir: {}}",
            "deployment-invalid",
        ),
        ("- name: manager\n", "- name: Manager\n", "deployment-invalid"),
        (
            "              - name: manager\n",
            "              - {name: manager, image: a}\n              - name: manager\n",
            "deployment-invalid",
        ),
        ("quay.io/example/cache:v1", "''", "deployment-invalid"),
        ("quay.io/example/cache:v1", "quay.io/Example/cache:v1", "deployment-invalid"),
        ("containerPort: 8443", "containerPort: 84430", "deployment-invalid"),
        (
            "{name: https, containerPort: 8443}",
            "{name: https, containerPort: 1}, {name: https, containerPort: 2}",
            "deployment-invalid",
        ),
        ("name: https", "name: HTTPS", "deployment-invalid"),
        ("mountPath: /data", "mountPath: ''", "deployment-invalid"),
        ("volumeMounts: [{name: data", "volumeMounts: [{name: other", "deployment-invalid"),
        ("cpu: 10m", "cpu: '1'", "deployment-invalid"),
        ("labels: {app: cache}", "labels: {app: cache, version: 2}", "deployment-invalid"),
        ("serviceAccountName: cache\n", "nodeSelector: {dedicated: true}\n", "deployment-invalid"),
        ("quay.io/example/cache:v1", "a\n                args: [--port, 8080]", "deployment-invalid"),
        ("quay.io/example/cache:v1", "a\n                readinessProbe: {}", "deployment-invalid"),
        ("emptyDir: {}", "emptyDir: {}, configMap: {name: a}", "deployment-invalid"),
        // Rights.
        ("resources: [pods], verbs: [get]", "resources: [pods]", "access-rule-invalid"),
        ("apiGroups: [''], resources: [pods]", "resources: [pods]", "access-rule-invalid"),
        ("apiGroups: [''], resources: [pods]", "apiGroups: ['']", "access-rule-invalid"),
        ("apiGroups: [''], resources: [pods]", "nonResourceURLs: [/metrics]", "access-rule-invalid"),
        (
            "nonResourceURLs: [/metrics]",
            "nonResourceURLs: [/metrics], resources: [pods]",
            "access-rule-invalid",
        ),
        ("resources: [services], verbs: [list]", "resources: [services]", "access-rule-invalid"),
        (
            "{serviceAccountName: cache, rules: [{api",
            "{serviceAccountName: Cache, rules: [{api",
            "service-account-name-invalid",
        ),
        // Webhooks.
        ("type: ValidatingAdmissionWebhook", "type: Validating", "webhook-invalid"),
        ("failurePolicy: Fail", "failurePolicy: Sometimes", "webhook-invalid"),
        ("sideEffects: None\n    failure", "sideEffects: Some\n    failure", "webhook-invalid"),
        ("sideEffects: None\n    failure", "failure", "webhook-invalid"),
        ("admissionReviewVersions: [v1]\n", "admissionReviewVersions: []\n", "webhook-invalid"),
        ("admissionReviewVersions: [v1]\n", "admissionReviewVersions: [v2]\n", "webhook-invalid"),
        ("generateName: vcache.example.com", "generateName: vcache", "webhook-invalid"),
        ("generateName: vcache.example.com", "generateName: V.example.com", "webhook-invalid"),
        ("webhookPath: /validate", "webhookPath: validate", "webhook-invalid"),
        ("failurePolicy: Fail", "timeoutSeconds: 60", "webhook-invalid"),
        ("operations: [CREATE], ", "", "webhook-invalid"),
        ("apiGroups: [example.com], apiV", "apiGroups: ['*'], apiV", "webhook-invalid"),
        ("deploymentName: cache", "deploymentName: other", "webhook-invalid"),
        (
            "    conversionCRDs: [caches.example.com]\n",
            "    conversionCRDs: [others.example.com]\n",
            "crd-conversion-unmatched",
        ),
        ("{owned: [{name: caches.example.com, version: v1, kind: Cache}]}", "{}", "crd-conversion-unmatched"),
        (
            "  scope: Namespaced\n",
            "  scope: Namespaced\n  preserveUnknownFields: true\n",
            "crd-conversion-unmatched",
        ),
        // Schemas.
        ("schema: {openAPIV3Schema: {type: object}}", "schema: {}", "schema-not-structural"),
        ("{type: object}}}]", "{type: object, properties: {a: {}}}}}]", "schema-not-structural"),
        (
            "{type: object}}}]",
            "{type: object, properties: {a: {type: string, default: 1}}}}}]",
            "schema-default-invalid",
        ),
        (
            "{type: object}}}]",
            "{type: object, x-kubernetes-validations: [{rule: '1'}]}}}]",
            "schema-rule-invalid",
        ),
        // Other objects.
        (
            "# metadata/",
            "# manifests/settings.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: 1}\n# metadata/",
            "manifest-content-invalid",
        ),
        ("{team: caches}", "{team: true}", "manifest-content-invalid"),
        ("{team: caches}", "{team: 1.10}", "manifest-content-invalid"),
        (
            "{name: caches.example.com}",
            "{name: caches.example.com, annotations: {a: 1}}",
            "manifest-content-invalid",
        ),
        ("{name: reader}", "{name: a/reader}", "manifest-content-invalid"),
        ("{name: reader}", "{name: reader, labels: {x: true}}", "manifest-content-invalid"),
        (
            "# metadata/",
            "# manifests/account.yaml\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: Bad_Name}\n# metadata/",
            "manifest-content-invalid",
        ),
        (
            "# metadata/",
            "# manifests/monitor.yaml\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a, labels: {x: [b]}}\n# metadata/",
            "manifest-content-invalid",
        ),
        (
            "# metadata/",
            "# manifests/budget.yaml\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: cache}\nspec: {minAvailable: 1}\n# metadata/",
            "manifest-api-removed",
        ),
        // What is beside it.
        ("package.v1: cache", "package.v1: Cache", "package-name-invalid"),
        ("default.v1: stable", "default.v1: stabel", "default-channel-unknown"),
        (
            "# metadata/",
            "# manifests/second.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\nrules: []\n# metadata/",
            "manifest-duplicate",
        ),
    ] {
        let found = codes_after(from, to);
        assert!(found.contains(&code), "{from} -> {to}: {found:?}, not {code}");
    }
    let without = GOOD.find("  - type: ConversionWebhook").zip(GOOD.find("# manifests/crd.yaml"));
    let (start, end) = without.expect("the webhook and what follows it");
    assert_eq!(codes_after(&GOOD[start..end], ""), ["crd-conversion-unmatched"]);
}
