//! Small operators, what becomes of them, and what is said about broken ones.

use proptest::prelude::*;

use super::*;
use crate::source::Source;
use crate::validate;

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: echoes.example.com, creationTimestamp: null}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Echo, plural: echoes, singular: echo, listKind: EchoList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: Says it again.}}
status: {conditions: []}
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo-operator, namespace: echo-system, labels: {app: echo}}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      serviceAccountName: echo
      containers:
      - {name: manager, image: 'echo:1', env: [{name: WATCH_NAMESPACE, value: here}, {name: OTHER, value: 'yes'}]}
";

const RBAC: &str = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: echo, namespace: echo-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leases, namespace: echo-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leases, namespace: echo-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leases}
subjects: [{kind: ServiceAccount, name: echo, namespace: echo-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [example.com], resources: [echoes], verbs: ['*']}
- {apiGroups: [example.com], resources: [echoes], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: echo-viewer}
rules: [{apiGroups: [example.com], resources: [echoes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects:
- {kind: ServiceAccount, name: echo, namespace: echo-system}
- {kind: ServiceAccount, name: echo, namespace: elsewhere}
";

const SAMPLE: &str = "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: hello}\nspec: {text: hi}\n";

fn package(file: &str) -> Result<Package, Vec<Finding>> {
    let file = PackageFile::parse(Source::new("olmkit.yaml", file))?;
    Package::resolve(Some(&file), Overrides::default(), Attachments::default())
}

fn run(texts: &[&str]) -> Generated {
    let package = package("{package: echo, version: 0.1.0}").unwrap();
    let sources =
        texts.iter().enumerate().map(|(at, text)| Source::new(format!("{at}.yaml"), text)).collect();
    let manifests = Manifests::parse(sources);
    let request =
        Request { package: &package, manifests: &manifests, edge: Edge::default(), created_at: None };
    generate(&request)
}

/// The findings as lines, and `+ PATH` for every file.
fn outcome(texts: &[&str]) -> String {
    let generated = run(texts);
    let findings = generated.findings.iter().map(line);
    findings.chain(generated.files.keys().map(|path| format!("+ {path}"))).collect::<Vec<_>>().join("\n")
}

fn line(finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or(String::new(), |place| match place.position {
        Some(position) => format!(" {}:{}:{}", place.path, position.line, position.column),
        None => format!(" {}", place.path),
    });
    let help = finding.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
    format!("{}[{}]{place}: {}{help}", finding.level, finding.code.name, finding.message)
}

#[test]
fn an_operator_becomes_a_bundle() {
    let generated = run(&[CRD, DEPLOYMENT, RBAC, SAMPLE]);
    assert_eq!(generated.findings, []);
    let bundle: Vec<_> = generated.files.iter().map(|(path, text)| format!("=== {path}\n{text}")).collect();
    insta::assert_snapshot!(bundle.join(""));
}

#[test]
fn nothing_is_dropped_in_silence() {
    insta::assert_snapshot!(outcome(&[
        DEPLOYMENT,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: echo-system}",
        "apiVersion: example.com/v1\nkind: Ecko\nmetadata: {name: x}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n# nothing\n",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: echo.v0.0.0}",
    ]), @r"
    warning[generate-kind-left-out] 1.yaml:2:7: a bundle cannot carry a Namespace: `echo-system` is left out
    warning[generate-custom-resource-unknown] 2.yaml:2:7: no CustomResourceDefinition for example.com/v1 Ecko: `x` is left out (add the CRD to the manifests, or take the sample away)
    warning[generate-kind-left-out] 4.yaml:2:7: a bundle gets one ClusterServiceVersion: `echo.v0.0.0` is left out (say in the package file what it says)
    + manifests/echo.clusterserviceversion.yaml
    + manifests/settings_v1_configmap.yaml
    + metadata/annotations.yaml
    ");
}

#[test]
fn every_problem_in_one_run_and_no_bundle() {
    insta::assert_snapshot!(outcome(&[
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}",
        "a: [\n---\njust text\n---\nkind: Deployment\nmetadata: {name: b}\n",
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: c}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: d}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: d}\ntype: Opaque",
    ]), @r"
    error[generate-no-deployment]: no Deployment among the manifests: there would be nothing to install (add the Deployment that runs the operator)
    error[generate-workload-not-installable] 0.yaml:2:7: OLM does not install a StatefulSet: `a` would be missing (make it a Deployment, or have the operator create it)
    error[generate-yaml-syntax] 1.yaml:1:4: unclosed bracket '['
    error[generate-not-an-object] 1.yaml:3:1: expected a Kubernetes object, found a string
    error[generate-not-an-object] 1.yaml:5:1: `apiVersion` is missing: this is not a Kubernetes object
    error[generate-webhook-unsupported] 2.yaml:2:7: `ValidatingWebhookConfiguration/c` needs a webhook, and webhooks are not supported yet
    error[generate-duplicate-object] 4.yaml:3:18: `Secret/d` stands twice in the input, and the two differ (remove one of them)
    ");
}

#[test]
fn names_do_not_lead_out_of_the_bundle() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: ../../../etc/.passwd}";
    let generated = run(&[DEPLOYMENT, secret]);
    let paths: Vec<_> = generated.files.keys().filter(|path| path.contains("secret")).collect();
    assert_eq!(paths, ["manifests/etc-.passwd_v1_secret.yaml"]);
}

#[test]
fn webhook_conversion_is_refused() {
    let converting = CRD.replace("  scope:", "  conversion: {strategy: Webhook}\n  scope:");
    insta::assert_snapshot!(outcome(&[DEPLOYMENT, &converting]), @"error[generate-webhook-unsupported] 1.yaml:6:26: `CustomResourceDefinition/echoes.example.com` needs a webhook, and webhooks are not supported yet");
}

#[test]
fn a_deployment_without_a_template() {
    insta::assert_snapshot!(outcome(&["apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}"]), @"error[generate-deployment-incomplete] 0.yaml:4:1: `Deployment/a` has no `spec.template`");
}

#[test]
fn package_files_with_mistakes() {
    let check = |file: &str| package(file).unwrap_err().iter().map(line).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(check("package: echo\nversoin: 1.0.0\nprovider: {nam: me}\n"), @r"
    error[package-key-unknown] olmkit.yaml:2:1: `versoin` is not a key here (did you mean `version`?)
    error[package-key-unknown] olmkit.yaml:3:12: `nam` is not a key here (did you mean `name`?)
    ");
    insta::assert_snapshot!(check("package: Echo Operator\nversion: '1.0'\ninstallModes: [AllNamespace]\ncapabilities: Good\nminKubeVersion: 1.29\nchannels: [a b]\ndefaultChannel: c\n"), @r"
    error[package-value-invalid] olmkit.yaml:1:10: `Echo Operator` is not a package name: only lower case letters, digits and `-` are allowed
    error[package-value-invalid] olmkit.yaml:2:10: `1.0` is not a valid `version`: unexpected end of input while parsing minor version number
    error[package-value-invalid] olmkit.yaml:6:12: `a b` is not a channel name: white space, commas and control characters are not allowed
    error[package-value-invalid] olmkit.yaml:7:17: the default channel `c` is not among the channels
    error[package-value-invalid] olmkit.yaml:5:17: `1.29` is not a version such as `1.28.0`: unexpected end of input while parsing minor version number
    error[package-value-invalid] olmkit.yaml:3:16: `AllNamespace` is not an install mode (did you mean `AllNamespaces`?)
    error[package-value-invalid] olmkit.yaml:4:15: `Good` is not a capability level (one of `Basic Install`, `Seamless Upgrades`, `Full Lifecycle`, `Deep Insights`, `Auto Pilot`)
    ");
    insta::assert_snapshot!(check("{}"), @r"
    error[package-value-invalid] olmkit.yaml:1:1: `package` is missing (set `package` in the package file, or give `--package`)
    error[package-value-invalid] olmkit.yaml:1:1: `version` is missing (set `version` in the package file, or give `--version`)
    ");
    insta::assert_snapshot!(check("keywords: redis"), @"error[package-value-invalid] olmkit.yaml:1:11: `keywords`: expected a list, found a string");
    insta::assert_snapshot!(check("a: [b"), @"error[generate-yaml-syntax] olmkit.yaml:1:4: unclosed bracket '['");
}

#[test]
fn an_icon_that_is_none() {
    let file = PackageFile::parse(Source::new("olmkit.yaml", "{package: echo, version: 0.1.0, icon: a.png}"))
        .unwrap();
    let attachments = Attachments { icon: Some(b"hello".to_vec()), description: None };
    let findings = Package::resolve(Some(&file), Overrides::default(), attachments).unwrap_err();
    insta::assert_snapshot!(line(&findings[0]), @"error[generate-icon-not-an-image] olmkit.yaml:1:39: the icon is not a PNG, JPEG, GIF or SVG image");
}

#[test]
fn codes_are_sorted_and_documented() {
    assert!(codes::ALL.is_sorted_by(|a, b| a.name < b.name));
    for code in codes::ALL {
        assert!(code.docs.len() > 80, "{}", code.name);
        assert!(validate::rules().iter().all(|rule| rule.code.name != code.name), "{}", code.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The order of files, and of documents in a file, does not matter.
    #[test]
    fn any_input_order_gives_the_same_bytes(order in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle(), cut in 0..9usize) {
        let all = [CRD, DEPLOYMENT, RBAC, SAMPLE].join("---\n");
        let documents: Vec<_> = all.split("---\n").collect();
        prop_assert_eq!(documents.len(), 9);
        let shuffled: Vec<_> = order.iter().map(|at| documents[*at]).collect();
        let (first, second) = (shuffled[..cut].join("---\n"), shuffled[cut..].join("---\n"));
        prop_assert_eq!(run(&[&first, &second]).files, run(&[&all]).files);
    }
}
