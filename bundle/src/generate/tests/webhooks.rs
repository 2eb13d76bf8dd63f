//! Webhooks, their certificates and their Services.

use super::*;

pub(super) const CONVERTING: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: echoes.example.com, annotations: {cert-manager.io/inject-ca-from: echo-system/serving}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Echo, plural: echoes, singular: echo, listKind: EchoList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: hooks, namespace: echo-system, path: /convert}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
";

pub(super) const WEBHOOKS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: echo, annotations: {cert-manager.io/inject-ca-from: echo-system/serving}}
webhooks:
- name: vecho.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: hooks, namespace: echo-system, path: /validate}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [echoes]}]
---
apiVersion: v1
kind: Service
metadata: {name: hooks, namespace: echo-system}
spec: {selector: {app: echo}, ports: [{port: 443, targetPort: hook}]}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: echo-system}
spec: {dnsNames: [hooks.echo-system.svc, hooks.echo-system.svc.cluster.local], issuerRef: {kind: Issuer, name: self}, secretName: tls}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self, namespace: echo-system}
spec: {selfSigned: {}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo-operator, namespace: echo-system}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - name: manager
        image: echo:1
        ports: [{name: metrics, containerPort: 8080}, {name: hook, containerPort: 9443}]
        volumeMounts: [{name: MOUNT, mountPath: PATH}]
      volumes: [{name: MOUNT, secret: {secretName: tls}}]
";

#[test]
fn webhooks_get_what_olm_needs_and_nothing_that_it_makes_itself() {
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/tmp/k8s-webhook-server/serving-certs");
    let generated = run(&[CONVERTING, &webhooks]);
    insta::assert_snapshot!(generated.lines(), @r"
    info[generate-replaced-by-olm] 1.yaml:14:18: `Service/hooks` is left out: it only serves webhooks, and OLM makes a Service for those itself
    info[generate-replaced-by-olm] 1.yaml:19:18: `Certificate/serving` is left out: OLM issues the certificates of webhooks itself
    info[generate-replaced-by-olm] 1.yaml:24:18: `Issuer/self` is left out: OLM issues the certificates of webhooks itself
    + manifests/echo.clusterserviceversion.yaml
    + manifests/example.com_echoes.yaml
    + metadata/annotations.yaml
    ");
    let csv = generated.csv();
    insta::assert_snapshot!(crate::yaml::write::to_string(&csv["spec"]["webhookdefinitions"]).unwrap(), @r"
    - admissionReviewVersions:
      - v1
      containerPort: 9443
      conversionCRDs:
      - echoes.example.com
      deploymentName: echo-operator
      generateName: cechoes.kb.io
      sideEffects: None
      targetPort: 9443
      type: ConversionWebhook
      webhookPath: /convert
    - admissionReviewVersions:
      - v1
      containerPort: 9443
      deploymentName: echo-operator
      failurePolicy: Fail
      generateName: vecho.example.com
      rules:
      - apiGroups:
        - example.com
        apiVersions:
        - v1
        operations:
        - CREATE
        resources:
        - echoes
      sideEffects: None
      targetPort: 9443
      type: ValidatingAdmissionWebhook
      webhookPath: /validate
    ");
    let pod = &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
    assert_eq!(pod.get("volumes").or(pod["containers"][0].get("volumeMounts")), None);
    assert!(!generated.files["manifests/example.com_echoes.yaml"].contains("inject-ca-from"));
}

#[test]
fn a_certificate_that_is_mounted_elsewhere_comes_from_olm() {
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/certs");
    let csv = run(&[CONVERTING, &webhooks]).csv();
    let pod = &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "echo-operator-service-cert");
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/certs");
}

#[test]
fn keys_that_olm_does_not_put_into_its_secret_are_a_finding() {
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/certs");
    let with = |items: &str| {
        let webhooks = webhooks.replace("secretName: tls}}", &format!("secretName: tls, {items}}}}}"));
        let lines = run(&[CONVERTING, &webhooks]).lines();
        lines.lines().filter(|line| line.contains("warning")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        with("items: [{key: tls.crt, path: a}, {key: tls.key, path: b}, {key: olmCAKey, path: c}]"),
        ""
    );
    assert_eq!(with("optional: true, items: [{key: keystore.p12, path: a}]"), "");
    insta::assert_snapshot!(with("items: [{key: keystore.p12, path: keystore.p12}]"), @"warning[generate-certificate-elsewhere] 1.yaml:40:64: the volume `cert` of `Deployment/echo-operator` takes the key `keystore.p12` of the Secret with the certificate of its webhooks, and OLM makes that Secret with `tls.crt`, `tls.key` and `olmCAKey` only: the pods never start (have the operator read `/tmp/k8s-webhook-server/serving-certs/tls.crt` and `tls.key`, and remove the item)");
    insta::assert_snapshot!(with("items: [{key: tls.crt, path: a}, {key: ca.crt, path: b}]"), @"warning[generate-certificate-elsewhere] 1.yaml:40:89: the volume `cert` of `Deployment/echo-operator` takes the key `ca.crt` of the Secret with the certificate of its webhooks, and OLM makes that Secret with `tls.crt`, `tls.key` and `olmCAKey` only: the pods never start (remove the item; where the operator reads the authority, take the key `olmCAKey`)");
}

#[test]
fn a_certificate_that_the_operator_issues_itself_is_a_finding() {
    let webhooks = WEBHOOKS
        .replace("MOUNT", "cert")
        .replace("PATH", "/certs")
        .replace("secret: {secretName: tls}", "secret: {secretName: own}");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: own, namespace: echo-system}\n";
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: echo}\n\
                rules: [{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [get, update]}]\n";
    let found =
        |role: &str| run(&[&webhooks, secret, role]).lines().contains("[generate-certificate-elsewhere]");
    assert!(found(role));
    assert!(!found(&role.replace("get, update", "get")));
}

#[test]
fn many_crds_that_one_webhook_converts() {
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/certs");
    let crds: Vec<String> =
        ["backupscertificate", "schedules", "restores", "databases", "connections", "instances"]
            .iter()
            .map(|plural| {
                let names = format!(
                    "{{kind: K{plural}, plural: {plural}, singular: s{plural}, listKind: K{plural}List}}"
                );
                CONVERTING
                    .replace("echoes.example.com", &format!("{plural}.example.com"))
                    .replace("{kind: Echo, plural: echoes, singular: echo, listKind: EchoList}", &names)
            })
            .collect();
    let all: Vec<&str> = crds.iter().map(String::as_str).chain([webhooks.as_str()]).collect();
    let generated = run(&all);
    assert_eq!(
        generated.csv()["spec"]["webhookdefinitions"][0]["generateName"],
        "cbackupscertificateconnectionsdatabasesinstancesrestoresschedules.kb.io"
    );
    assert!(!generated.lines().contains("error["), "{}", generated.lines());
}

#[test]
fn a_webhook_with_another_certificate_is_a_finding() {
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/certs");
    let with = |arguments: &str| {
        let webhooks =
            webhooks.replace("image: echo:1", &format!("image: echo:1\n        args: {arguments}"));
        let generated = run(&[CONVERTING, &webhooks]);
        let lines = generated.lines();
        lines.lines().filter(|line| line.contains("generate-certificate")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(with("[--cert-dir=/certs, --metrics-cert-path=/other]"), "");
    assert_eq!(with("[--webhook-cert-path, /tmp/k8s-webhook-server/serving-certs]"), "");
    insta::assert_snapshot!(with("[--cert-dir=/tmp/certs, --tls-private-key-file, /own/key]"), @r"
    warning[generate-certificate-elsewhere] 1.yaml:38:16: `Deployment/echo-operator` serves its webhooks with the certificate at `/tmp/certs` (`--cert-dir`), and OLM puts the one that the API server trusts at `/tmp/k8s-webhook-server/serving-certs` (set `--cert-dir=/tmp/k8s-webhook-server/serving-certs`)
    warning[generate-certificate-elsewhere] 1.yaml:38:39: `Deployment/echo-operator` serves its webhooks with the certificate at `/own/key` (`--tls-private-key-file`), and OLM puts the one that the API server trusts at `/tmp/k8s-webhook-server/serving-certs` (set `--tls-private-key-file=/tmp/k8s-webhook-server/serving-certs/tls.key`)
    ");
    insta::assert_snapshot!(with("[--dynamic-serving-ca-secret-name=ca, --dynamic-serving-ca-secret-namespace=x]"), @"warning[generate-certificate-elsewhere] 1.yaml:38:16: `Deployment/echo-operator` issues the certificate of its webhooks itself (`--dynamic-serving-ca-secret-name`), and the API server will trust only the one that OLM issues (replace the `--dynamic-serving-` flags by those that name `/tmp/k8s-webhook-server/serving-certs/tls.crt` and `/tmp/k8s-webhook-server/serving-certs/tls.key`)");
}

#[test]
fn a_service_that_an_argument_names_is_kept() {
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/certs");
    let webhooks = webhooks
        .replace("image: echo:1", "image: echo:1\n        args: ['--url=https://hooks.echo-system.svc:443']");
    assert!(run(&[CONVERTING, &webhooks]).files.contains_key("manifests/hooks_v1_service.yaml"));
}

#[test]
fn what_is_lost_of_many_webhooks_is_one_finding_that_names_them() {
    let webhook = |name: &str| {
        format!(
            "- {{name: {name}, namespaceSelector: {{matchLabels: {{a: b}}}}, clientConfig: {{service: {{name: hooks, namespace: echo-system}}}}}}\n"
        )
    };
    let run = |webhooks: &[String]| {
        let config = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: many}}\nwebhooks:\n{}",
            webhooks.concat()
        );
        said(&run(&[CRD, &config, WEBHOOKS]), "generate-webhook-field-lost")
    };
    insta::assert_snapshot!(run(&[webhook("a.example.com")]), @"warning[generate-webhook-field-lost] 1.yaml:5:25: `namespaceSelector` of the webhook `a.example.com` of `ValidatingWebhookConfiguration/many` is lost: OLM sets it to the namespaces of the OperatorGroup (have the webhook filter requests itself)");
    insta::assert_snapshot!(run(&[webhook("a.example.com"), webhook("b.example.com")]), @"warning[generate-webhook-field-lost] 1.yaml:5:25: `namespaceSelector` of 2 webhooks of `ValidatingWebhookConfiguration/many` is lost: OLM sets it to the namespaces of the OperatorGroup (have these webhooks filter requests themselves: a.example.com, b.example.com)");
}
