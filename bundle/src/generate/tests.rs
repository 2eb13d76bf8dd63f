//! Small operators, what becomes of them, and what is said about broken ones.

use proptest::prelude::*;

use super::*;
use crate::source::Source;
use crate::validate;

mod apis;
mod base;
mod carried;
mod images;
mod installs;
mod modes;
mod package;
mod pages;
mod rights;
mod webhooks;
mod workloads;

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
    schema: {openAPIV3Schema: {type: object, description: Says it again., x-kubernetes-preserve-unknown-fields: true}}
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

const BASE: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: echo.v0.0.0
  namespace: placeholder
  annotations:
    alm-examples: '[{\"apiVersion\": \"example.com/v1\", \"kind\": \"Echo\", \"metadata\": {\"name\": \"other\"}}]'
    console.example.com/own: kept
spec:
  displayName: Echo of old
  description: From the base.
  somethingNew: {kept: true}
  relatedImages: [{name: cache, image: 'cache:2'}]
  icon: [{base64data: '', mediatype: ''}]
  customresourcedefinitions:
    owned:
    - {name: echoes.example.com, version: v1, kind: Echo, description: By hand, specDescriptors: [{path: text, displayName: What to say}]}
    - {name: gone.example.com, version: v1, kind: Gone}
    required: [{name: stores.example.com, version: v1, kind: Store}]
  install: {strategy: deployment, spec: {deployments: [{name: former, spec: {}}], permissions: [{serviceAccountName: helper, rules: []}]}}
";

/// What a test starts from, as texts.
#[derive(Default)]
struct Input<'t> {
    texts: &'t [&'t str],
    samples: &'t [&'t str],
    /// The package file.
    package: Option<&'t str>,
    base: Option<&'t str>,
    /// Chart.yaml of the chart that the manifests come from.
    chart: Option<&'t str>,
    edge: Option<Edge>,
    compat: Option<Compat>,
    overrides: Overrides,
}

/// The generated bundle and its findings, without borrows from the input.
struct Outcome {
    files: BTreeMap<String, String>,
    findings: Vec<Finding>,
    /// Where each field comes from: `PATH = VALUE <- WHO PLACE`.
    origins: Vec<String>,
}

impl Input<'_> {
    fn run(self) -> Outcome {
        let refused = |findings| Outcome { files: BTreeMap::new(), findings, origins: Vec::new() };
        let text = self.package.unwrap_or("{package: echo, version: 0.1.0}");
        let file = match PackageFile::parse(Source::new("olmkit.yaml", text)) {
            Ok(file) => file,
            Err(findings) => return refused(findings),
        };
        let base = Manifests::parse(self.base.iter().map(|text| Source::new("base.yaml", text)).collect());
        let base = match self.base.map(|_| Base::of(&base)).transpose() {
            Ok(base) => base,
            Err(finding) => return refused(vec![*finding]),
        };
        let chart = self.chart.map(|text| ChartFile::parse(Source::new("Chart.yaml", text)).unwrap());
        let (base, chart) = (base.as_ref(), chart.as_ref());
        let sources = Sources { file: Some(&file), base, chart, ..Sources::default() };
        let package = match Package::resolve(sources, self.overrides, Attachments::default()) {
            Ok(package) => package,
            Err(findings) => return refused(findings),
        };
        let texts = self.texts.iter().enumerate();
        let manifests =
            Manifests::parse(texts.map(|(at, text)| Source::new(format!("{at}.yaml"), text)).collect());
        let samples = self.samples.iter().enumerate();
        let samples = samples.map(|(at, text)| Source::new(format!("samples/{at}.yaml"), text));
        let manifests = manifests.with_samples(samples.collect());
        let request = Request { edge: self.edge, compat: self.compat, ..Request::new(&package, &manifests) };
        let generated = generate(&request);
        let origins = explain(&generated.draft, "").unwrap().into_iter().map(|field| {
            let place = |origin: &Origin<'_>| origin.place().map_or(String::new(), |place| shown(&place));
            let origin = field.draft.origin();
            let mut line =
                format!("{} = {} <- {}{}", field.path, field.draft.to_json(), origin.by, place(&origin));
            for (relation, origin) in field.draft.related() {
                line += &format!(", {relation:?} {}{}", origin.by, place(origin));
            }
            line
        });
        Outcome { files: generated.files, findings: generated.findings, origins: origins.collect() }
    }
}

impl Outcome {
    /// The ClusterServiceVersion.
    fn csv(&self) -> serde_json::Value {
        let text = &self.files["manifests/echo.clusterserviceversion.yaml"];
        crate::yaml::first_document(text).unwrap().root.to_json()
    }

    /// The findings as lines, and `+ PATH` for every file.
    fn lines(&self) -> String {
        let findings = self.findings.iter().map(line);
        findings.chain(self.files.keys().map(|path| format!("+ {path}"))).collect::<Vec<_>>().join("\n")
    }

    /// Where the fields whose paths start so come from.
    fn origins_of(&self, path: &str) -> String {
        let lines = self.origins.iter().filter(|line| line.starts_with(path));
        lines.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn run(texts: &[&str]) -> Outcome {
    Input { texts, ..Input::default() }.run()
}

fn outcome(texts: &[&str]) -> String {
    run(texts).lines()
}

fn shown(place: &crate::finding::Place) -> String {
    match place.position {
        Some(position) => format!(" {}:{}:{}", place.path, position.line, position.column),
        None => format!(" {}", place.path),
    }
}

fn line(finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or(String::new(), shown);
    let help = finding.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
    format!("{}[{}]{place}: {}{help}", finding.level, finding.code.name, finding.message)
}

/// What is said with this code.
fn said(generated: &Outcome, code: &str) -> String {
    let findings = generated.findings.iter().filter(|finding| finding.code.name == code);
    findings.map(line).collect::<Vec<_>>().join("\n")
}

/// A binding of these subjects to a role.
fn bound(kind: &str, namespace: &str, role: &str, subjects: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: bound, namespace: '{namespace}'}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}}}\nsubjects: [{subjects}]\n"
    )
}

const ECHO: &str = "{kind: ServiceAccount, name: echo, namespace: echo-system}";

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
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: other.v0.0.0}",
    ]), @r"
    info[generate-kind-left-out] 1.yaml:2:7: a bundle cannot contain kind `Namespace`: `echo-system` is left out (OLM installs into a namespace that is there; consoles suggest the one of the Deployments)
    warning[generate-custom-resource-unknown] 2.yaml:2:7: no CustomResourceDefinition for example.com/v1 Ecko: `x` is left out (add the CRD if it is of this operator; what the operator needs from another one has to be created beside the bundle)
    warning[generate-kind-left-out] 4.yaml:2:7: a bundle gets one ClusterServiceVersion: `other.v0.0.0` is left out (pass it with `--base` to start from it, or put its contents in the package file)
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
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: c}\nwebhooks:\n- name: v.x.io\n  clientConfig: {service: {name: x}}",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: e}\nroleRef: {kind: ClusterRole, name: e}\nsubjects: [{kind: ServiceAccount, name: nobody}]",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: d}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: d}\ntype: Opaque",
    ]), @r"
    error[generate-workload-not-installable] 0.yaml:2:7: OLM does not install a StatefulSet: `a` would be missing (make it a Deployment, have the operator create it, or leave it out: `--allow generate-workload-not-installable`, or `allow` in the package file with a reason)
    error[generate-yaml-syntax] 1.yaml:1:4: unclosed bracket '['
    error[generate-not-an-object] 1.yaml:3:1: expected a Kubernetes object, found a string
    error[generate-not-an-object] 1.yaml:5:1: `apiVersion` is missing: this is not a Kubernetes object
    error[manifest-content-invalid] 3.yaml:5:12: the ServiceAccount `nobody` has no `namespace` (set the namespace of the ServiceAccount; rights of the operator's own ServiceAccount follow it to the namespace of the operator under `permissions` and `clusterPermissions` of the ClusterServiceVersion)
    error[generate-duplicate-object] 5.yaml:3:18: `Secret/d` is defined twice in the input, with different content (remove one of them)
    ");
}

#[test]
fn names_do_not_lead_out_of_the_bundle() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: ../../../etc/.passwd}";
    let generated = run(&[DEPLOYMENT, secret]);
    assert!(generated.files.is_empty());
    assert!(
        generated.lines().contains("`../../../etc/.passwd` cannot name a Secret"),
        "{}",
        generated.lines()
    );
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
