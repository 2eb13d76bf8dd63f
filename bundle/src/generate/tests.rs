//! Small operators, what becomes of them, and what is said about broken ones.

use proptest::prelude::*;

use super::*;
use crate::source::Source;
use crate::validate;

mod installs;

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

/// What came of it, without borrowing from the input.
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
    info[generate-kind-left-out] 1.yaml:2:7: a bundle cannot carry kind `Namespace`: `echo-system` is left out (OLM installs into a namespace that is there; consoles suggest the one of the Deployments)
    warning[generate-custom-resource-unknown] 2.yaml:2:7: no CustomResourceDefinition for example.com/v1 Ecko: `x` is left out (add the CRD to the manifests, or take the sample away)
    warning[generate-kind-left-out] 4.yaml:2:7: a bundle gets one ClusterServiceVersion: `other.v0.0.0` is left out (give it with `--base` to start from it, or say in the package file what it says)
    + manifests/echo.clusterserviceversion.yaml
    + manifests/settings_v1_configmap.yaml
    + metadata/annotations.yaml
    ");
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
fn a_role_that_somebody_else_is_bound_to_stays() {
    let generated = run(&[CRD, DEPLOYMENT, RBAC]);
    assert!(generated.files.contains_key("manifests/manager_rbac.authorization.k8s.io_v1_clusterrole.yaml"));
    let binding = "manifests/manager_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml";
    assert!(generated.files.contains_key(binding));
    assert_eq!(
        generated.csv()["spec"]["install"]["spec"]["clusterPermissions"][0]["serviceAccountName"],
        "echo"
    );
}

#[test]
fn rights_in_kube_system_do_not_become_rights_beside_the_operator() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: leases, namespace: kube-system}\nrules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}]";
    let binding = bound("RoleBinding", "kube-system", "Role, name: leases", ECHO);
    let generated = run(&[DEPLOYMENT, role, &binding]);
    insta::assert_snapshot!(generated.lines(), @r"
    warning[generate-rights-lost] 2.yaml:3:36: `RoleBinding/bound` is left out, and `ServiceAccount/echo` loses `get`/`update` on `leases` in the namespace `kube-system`: OLM creates bindings only in the namespace of the operator (have the operator do this in its own namespace (leader election often has a flag for it), or grant the rights everywhere with a ClusterRole and a ClusterRoleBinding)
    + manifests/echo.clusterserviceversion.yaml
    + metadata/annotations.yaml
    ");
    assert_eq!(generated.csv()["spec"]["install"]["spec"]["permissions"][0]["rules"], serde_json::json!([]));
}

#[test]
fn an_aggregated_role_grants_what_it_collects() {
    let roles = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\naggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: part, operator: In, values: [x, y]}]}]}\n---\n\
                 apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: part, labels: {part: x}}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]";
    let generated =
        run(&[DEPLOYMENT, roles, &bound("ClusterRoleBinding", "", "ClusterRole, name: all", ECHO)]);
    insta::assert_snapshot!(generated.lines(), @r"
    + manifests/all_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + manifests/bound_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml
    + manifests/echo.clusterserviceversion.yaml
    + manifests/part_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + metadata/annotations.yaml
    ");
    let granted = &generated.csv()["spec"]["install"]["spec"]["clusterPermissions"][0];
    assert_eq!(
        (&granted["serviceAccountName"], &granted["rules"][0]["resources"][0]),
        (&"echo".into(), &"pods".into())
    );
}

/// A role of which nothing is among the manifests grants what the cluster has of it, through a binding that names a namespace.
#[test]
fn an_aggregated_role_that_collects_nothing_here_is_a_finding() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {part: x}}]}\nrules: []\n";
    let generated =
        run(&[DEPLOYMENT, role, &bound("ClusterRoleBinding", "", "ClusterRole, name: all", ECHO)]);
    insta::assert_snapshot!(generated.lines(), @r"
    warning[generate-namespace-fixed] 2.yaml:5:1: the service account `echo` of the namespace `echo-system` has the rights of `ClusterRoleBinding/bound` only where the operator is installed in that namespace (add the ClusterRoles that `ClusterRole/all` collects to the manifests: their rules become permissions of the bundle; or tell users to install into `echo-system`)
    + manifests/all_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + manifests/bound_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml
    + manifests/echo.clusterserviceversion.yaml
    + metadata/annotations.yaml
    ");
}

#[test]
fn an_account_of_the_operator_in_another_namespace_is_a_finding() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n";
    let lines = |subjects: &str, account: &str| {
        let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: all", subjects);
        said(&run(&[DEPLOYMENT, role, &binding, account]), "generate-namespace-fixed")
    };
    let elsewhere = "{kind: ServiceAccount, name: echo, namespace: elsewhere}";
    insta::assert_snapshot!(lines(elsewhere, ""), @"warning[generate-namespace-fixed] 2.yaml:5:1: the service account `echo` of the namespace `elsewhere` has the rights of `ClusterRoleBinding/bound` only where the operator is installed in that namespace (name the namespace of the Deployment, `echo-system`, in the subject: the rights become permissions of the bundle; or tell users to install into `elsewhere`)");
    // One that somebody makes there is meant, and one beside the operator's own may be.
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: echo, namespace: elsewhere}\n";
    assert_eq!(lines(elsewhere, account), "");
    assert_eq!(lines(&format!("{ECHO}, {elsewhere}"), ""), "");
    assert_eq!(lines("{kind: ServiceAccount, name: prometheus, namespace: elsewhere}", ""), "");
    assert_eq!(lines("{kind: ServiceAccount, name: default, namespace: elsewhere}", ""), "");
}

#[test]
fn the_old_name_of_the_service_account_is_read() {
    let deployment = DEPLOYMENT.replace("serviceAccountName", "serviceAccount");
    let generated = run(&[CRD, &deployment, RBAC]);
    let install = &generated.csv()["spec"]["install"]["spec"];
    for key in ["permissions", "clusterPermissions"] {
        assert_eq!(install[key][0]["serviceAccountName"], "echo");
    }
}

#[test]
fn two_deployments_of_one_name_do_not_fit_into_a_bundle() {
    let other = DEPLOYMENT.replace("namespace: echo-system", "namespace: elsewhere");
    insta::assert_snapshot!(outcome(&[DEPLOYMENT, &other]), @r"
    error[generate-duplicate-object] 1.yaml:3:18: two namespaces have a `Deployment/echo-operator`, and a bundle can hold one (give one of them another name)
    warning[generate-namespace-lost] 1.yaml:3:44: `Deployment/echo-operator` is to be in the namespace `elsewhere`, and OLM will put it where the operator is (have the operator create it, or make do with the operator's namespace)
    warning[generate-namespace-lost] 1.yaml:9:27: the service accounts `echo` of the namespaces `echo-system` and `elsewhere` become one, which gets the rights of both (give the Deployments service accounts of different names)
    ");
}

#[test]
fn rules_that_a_role_cannot_have_are_not_put_into_one() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: urls}\nrules: [{nonResourceURLs: [/metrics], verbs: [get]}, {apiGroups: [''], resources: [pods], verbs: [get]}]";
    let generated =
        run(&[DEPLOYMENT, role, &bound("RoleBinding", "echo-system", "ClusterRole, name: urls", ECHO)]);
    let rules = &generated.csv()["spec"]["install"]["spec"]["permissions"][0]["rules"];
    assert_eq!(rules.as_array().unwrap().len(), 1);
}

#[test]
fn a_version_that_is_not_served_is_not_owned() {
    let crd = CRD.replace("  versions:\n", "  versions:\n  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n");
    let owned = |compat| {
        let csv = Input { texts: &[&crd, DEPLOYMENT, RBAC], compat, ..Input::default() }.run().csv();
        let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array().cloned().unwrap_or_default();
        owned.iter().map(|entry| entry["version"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(owned(None), ["v1"]);
    assert_eq!(owned(Some(Compat::OperatorSdk)), ["v1"]);
    let base = BASE.replace(
        "gone.example.com, version: v1, kind: Gone",
        "echoes.example.com, version: v1alpha1, kind: Echo",
    );
    let generated = Input { texts: &[&crd, DEPLOYMENT, RBAC], base: Some(&base), ..Input::default() }.run();
    assert!(
        generated.lines().contains("a version that the CRD does not serve: it is left out"),
        "{}",
        generated.lines()
    );
}

/// The examples of a bundle, as `APIVERSION NAME TEXT`.
fn examples(generated: &Outcome) -> Vec<String> {
    let text = generated.csv()["metadata"]["annotations"]["alm-examples"].as_str().unwrap().to_owned();
    let examples: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let shown = |own: &serde_json::Value| {
        let text = |at: &str| own.pointer(at).and_then(|value| value.as_str()).unwrap_or("-").to_owned();
        format!("{} {} {}", text("/apiVersion"), text("/metadata/name"), text("/spec/text"))
    };
    examples.iter().map(shown).collect()
}

#[test]
fn samples_of_one_name_and_several_versions_are_all_kept() {
    let crd = CRD.replace("  versions:\n", "  versions:\n  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n");
    let older = SAMPLE.replace("example.com/v1", "example.com/v1beta1");
    let generated =
        Input { texts: &[&crd, DEPLOYMENT], samples: &[SAMPLE, &older], ..Input::default() }.run();
    assert_eq!(examples(&generated), ["example.com/v1 hello hi", "example.com/v1beta1 hello hi"]);
    assert_eq!(generated.findings, []);
}

#[test]
fn files_of_samples_that_are_none_do_not_fail() {
    let samples = [
        SAMPLE,
        "resources: [a.yaml]\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
        "a: [",
        "- just\n- a list\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\n",
        "apiVersion: example.com/v1\nkind: Echo\nmetadata: {name: hello}\nspec: {text: ho}\n",
    ];
    let generated = Input { texts: &[CRD, DEPLOYMENT], samples: &samples, ..Input::default() }.run();
    insta::assert_snapshot!(generated.lines(), @r"
    info[generate-kind-left-out] samples/2.yaml:1:4: 3 files among the samples hold more than custom resources, and that is left out: `samples/2.yaml`, `samples/3.yaml`, `samples/4.yaml`
    warning[generate-duplicate-object] samples/5.yaml:3:18: an example is left out, because another of the same version, kind and name is kept: `Echo/hello` (give the examples different names)
    + manifests/echo.clusterserviceversion.yaml
    + manifests/example.com_echoes.yaml
    + metadata/annotations.yaml
    ");
    assert_eq!(examples(&generated), ["example.com/v1 hello hi"]);
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
    error[generate-duplicate-object] 5.yaml:3:18: `Secret/d` stands twice in the input, and the two differ (remove one of them)
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
fn a_deployment_without_a_template() {
    insta::assert_snapshot!(outcome(&["apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}"]), @"error[generate-deployment-incomplete] 0.yaml:4:1: `Deployment/a` has no `spec.template`");
}

#[test]
fn package_files_with_mistakes() {
    let check = |file: &str| Input { package: Some(file), ..Input::default() }.run().lines();
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
    insta::assert_snapshot!(check("keywords: redis\nversoin: 1.0.0\nprovider: me\nlinks: [{nam: a}]\n"), @r"
    error[package-value-invalid] olmkit.yaml:1:11: `keywords`: expected a list, found a string
    error[package-key-unknown] olmkit.yaml:2:1: `versoin` is not a key here (did you mean `version`?)
    error[package-value-invalid] olmkit.yaml:3:11: `provider`: expected a map, found a string
    error[package-key-unknown] olmkit.yaml:4:10: `nam` is not a key here (did you mean `name`?)
    ");
    insta::assert_snapshot!(check("a: [b"), @"error[generate-yaml-syntax] olmkit.yaml:1:4: unclosed bracket '['");
}

#[test]
fn an_icon_that_is_none() {
    let file = PackageFile::parse(Source::new("olmkit.yaml", "{package: echo, version: 0.1.0, icon: a.png}"))
        .unwrap();
    let attachments = Attachments { icon: Some(b"hello".to_vec()), description: None };
    let sources = Sources { file: Some(&file), ..Sources::default() };
    let findings = Package::resolve(sources, Overrides::default(), attachments).unwrap_err();
    insta::assert_snapshot!(line(&findings[0]), @"error[generate-icon-not-an-image] olmkit.yaml:1:39: the icon is not a PNG, JPEG, GIF or SVG image");
}

const CONVERTING: &str = "\
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

const WEBHOOKS: &str = "\
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
    info[generate-replaced-by-olm] 1.yaml:14:18: `Service/hooks` is left out: it only leads to webhooks, and OLM makes a Service for those itself
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
fn a_secret_that_nothing_makes_is_a_finding() {
    let deployment = DEPLOYMENT.replace(
        "name: OTHER, value: 'yes'",
        "name: OTHER, valueFrom: {secretKeyRef: {name: token, key: a}}",
    );
    insta::assert_snapshot!(outcome(&[&deployment]), @r"
    warning[generate-reference-missing] 0.yaml:11:133: the Deployment `echo-operator` needs the Secret `token`, which nothing in the bundle makes (add the Secret to the manifests, set `optional: true` where the operator makes it, or tell users to create it before they install)
    + manifests/echo.clusterserviceversion.yaml
    + metadata/annotations.yaml
    ");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: echo-system}\n";
    assert_eq!(run(&[&deployment, secret]).findings, []);
}

/// What is said with this code.
fn said(generated: &Outcome, code: &str) -> String {
    let findings = generated.findings.iter().filter(|finding| finding.code.name == code);
    findings.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_operator_that_watches_its_own_namespace_supports_no_other() {
    let rbac = RBAC
        .replace("kind: ClusterRole", "kind: Role")
        .replace("name: manager}", "name: manager, namespace: echo-system}");
    let modes = |generated: &Outcome| {
        let modes = generated.csv()["spec"]["installModes"].clone();
        let supported = modes.as_array().unwrap().iter().filter(|mode| mode["supported"] == true);
        supported.map(|mode| mode["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let generated = run(&[CRD, DEPLOYMENT, &rbac]);
    assert_eq!(modes(&generated), ["OwnNamespace", "SingleNamespace"]);
    insta::assert_snapshot!(said(&generated, "generate-install-mode-derived"), @"info[generate-install-mode-derived] 2.yaml:20:3: the operator may read its custom resources in its own namespace alone: the bundle supports `OwnNamespace` and `SingleNamespace`, and not `AllNamespaces` (list the modes under `installModes` in the package file to decide otherwise)");
    let untold = DEPLOYMENT.replace("WATCH_NAMESPACE, value: here", "ECHO_NAMESPACE, value: here");
    let generated = run(&[CRD, &untold, &rbac]);
    assert_eq!(modes(&generated), ["OwnNamespace"]);
    let package = "{package: echo, version: 0.1.0, installModes: [AllNamespaces]}";
    let generated = Input { texts: &[CRD, &untold, &rbac], package: Some(package), ..Input::default() }.run();
    assert_eq!(modes(&generated), ["AllNamespaces"]);
    insta::assert_snapshot!(said(&generated, "generate-install-mode-derived"), @"warning[generate-install-mode-derived] olmkit.yaml:1:33: `AllNamespaces` is among the install modes, but the operator may read its custom resources in its own namespace alone (have the operator watch what `metadata.annotations['olm.targetNamespaces']` says, and grant its rights by a ClusterRole; or support `OwnNamespace` alone)");
    assert_eq!(modes(&run(&[CRD, &untold, RBAC])), ["AllNamespaces"]);
}

/// A flag, or another variable, that takes it from a variable.
#[test]
fn an_operator_that_is_told_its_own_namespace_by_a_flag_watches_that() {
    let own = "{name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}";
    let modes = |env: &str, arguments: &str| {
        let container = format!("{{name: manager, image: 'echo:1', env: [{env}], args: [{arguments}]}}");
        let deployment =
            DEPLOYMENT.split_inclusive("      - ").next().map(|text| format!("{text}{container}\n")).unwrap();
        said(&run(&[CRD, &deployment, RBAC]), "generate-install-mode-derived")
    };
    let expected = |name: &str| {
        format!(
            "`{name}` tells the operator to watch its own namespace: the bundle supports `OwnNamespace`, and not `AllNamespaces`"
        )
    };
    for arguments in ["'--watch-namespace=$(POD_NAMESPACE)'", "--watch-namespace, $(POD_NAMESPACE)"] {
        let found = modes(own, arguments);
        assert!(found.contains(&expected("--watch-namespace")), "{arguments}: {found}");
    }
    let found = modes(&format!("{own}, {{name: WATCHED_NAMESPACES, value: $(POD_NAMESPACE)}}"), "");
    assert!(found.contains(&expected("WATCHED_NAMESPACES")), "{found}");
    for arguments in
        ["'--watch-namespace='", "'--watch-namespace=$(OTHER)'", "'--namespace=$(POD_NAMESPACE)'"]
    {
        assert_eq!(modes(own, arguments), "", "{arguments}");
    }
}

#[test]
fn a_stateful_set_is_one_error() {
    let operator = DEPLOYMENT.replace("kind: Deployment", "kind: StatefulSet");
    let webhooks = WEBHOOKS.split("apiVersion: apps/v1").next().unwrap();
    insta::assert_snapshot!(outcome(&[CONVERTING, &operator, webhooks, RBAC]), @r"
    error[generate-workload-not-installable] 1.yaml:2:7: OLM does not install a StatefulSet: `echo-operator` would be missing, and `RoleBinding/leases`, `Role/leases`, `ServiceAccount/echo` of it would be left out (make it a Deployment, have the operator create it, or leave it out: `--allow generate-workload-not-installable`, or `allow` in the package file with a reason)
    info[generate-replaced-by-olm] 2.yaml:14:18: `Service/hooks` is left out: it only leads to webhooks, and OLM makes a Service for those itself
    info[generate-replaced-by-olm] 2.yaml:19:18: `Certificate/serving` is left out: OLM issues the certificates of webhooks itself
    info[generate-replaced-by-olm] 2.yaml:24:18: `Issuer/self` is left out: OLM issues the certificates of webhooks itself
    ");
}

#[test]
fn what_serves_a_job_alone_goes_with_it() {
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: check, namespace: echo-system}\nspec: {template: {spec: {serviceAccountName: checker}}}\n---\n\
               apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: checker, namespace: echo-system}\n---\n\
               apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: checks, namespace: echo-system}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]";
    let binding = bound(
        "RoleBinding",
        "echo-system",
        "Role, name: checks",
        "{kind: ServiceAccount, name: checker, namespace: echo-system}",
    );
    let package = "{package: echo, version: 0.1.0, allow: [{code: generate-workload-not-installable, reason: only checks}]}";
    insta::assert_snapshot!(outcome(&[DEPLOYMENT, job, &binding]), @r"
    error[generate-workload-not-installable] 1.yaml:2:7: OLM does not install a Job: `check` would be missing, and `RoleBinding/bound`, `Role/checks`, `ServiceAccount/checker` of it would be left out (make it a Deployment, have the operator create it, or leave it out: `--allow generate-workload-not-installable`, or `allow` in the package file with a reason)
    ");
    let generated =
        Input { texts: &[DEPLOYMENT, job, &binding], package: Some(package), ..Input::default() }.run();
    assert_eq!(generated.files.len(), 2, "{}", generated.lines());
}

#[test]
fn a_custom_resource_that_the_operator_reads_is_not_only_an_example() {
    let deployment = DEPLOYMENT.replace("name: OTHER, value: 'yes'", "name: SETTINGS, value: hello");
    insta::assert_snapshot!(said(&run(&[CRD, &deployment, SAMPLE]), "generate-custom-resource-needed"), @"warning[generate-custom-resource-needed] 2.yaml:3:18: `Deployment/echo-operator` names the custom resource `Echo/hello`, which OLM does not create (have the operator create it, or tell users to create it after they install)");
    assert_eq!(run(&[CRD, DEPLOYMENT, SAMPLE]).findings, []);
}

#[test]
fn images_in_other_variables_are_one_finding() {
    let deployment = DEPLOYMENT.replace("{name: OTHER, value: 'yes'}", "{name: A_IMAGE, value: 'quay.io/x/a:1'}, {name: B_IMAGES, value: \"1=quay.io/x/b:1\\n2=quay.io/x/b:2\"}, {name: URL, value: 'https://quay.io/x:1'}");
    insta::assert_snapshot!(said(&run(&[CRD, &deployment]), "generate-related-image-unknown"), @"warning[generate-related-image-unknown] 1.yaml:11:86: `A_IMAGE`, `B_IMAGES` of `Deployment/echo-operator` name images that are not among `relatedImages` (list the images under `relatedImages` in the package file, or name the variables `RELATED_IMAGE_…`, so that mirrors copy them)");
}

#[test]
fn what_a_service_account_says_besides_its_name_is_lost_aloud() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: echo, namespace: echo-system, annotations: {eks.amazonaws.com/role-arn: x}}\nimagePullSecrets: [{name: pull}]\n";
    insta::assert_snapshot!(outcome(&[DEPLOYMENT, account]), @r"
    warning[generate-replaced-by-olm] 1.yaml:3:48: OLM makes `ServiceAccount/echo` itself, and without its `annotations` and `imagePullSecrets` (set what the pods need in the Deployment (`imagePullSecrets`, `automountServiceAccountToken`), or tell users to annotate the service account)
    + manifests/echo.clusterserviceversion.yaml
    + metadata/annotations.yaml
    ");
}

#[test]
fn an_operator_without_crds_is_a_finding() {
    insta::assert_snapshot!(said(&run(&[DEPLOYMENT, RBAC]), "generate-no-api"), @"warning[generate-no-api] 1.yaml:20:16: the operator has rights on `example.com`, and there is no CustomResourceDefinition among the manifests: the bundle owns no API (give the CRDs of the operator too; many projects keep them in a file of their own)");
    // Most charts are no operators.
    let from_chart =
        |texts| Input { texts, chart: Some("name: echo\nversion: 0.1.0\n"), ..Input::default() }.run();
    insta::assert_snapshot!(said(&from_chart(&[DEPLOYMENT]), "generate-no-api"), @"warning[generate-no-api] 0.yaml:2:7: the chart has no CustomResourceDefinition: the bundle owns no API (give the CRDs of the operator too, which many charts leave out by default; if it has none, pass `--allow generate-no-api`)");
    assert_eq!(said(&from_chart(&[CRD, DEPLOYMENT]), "generate-no-api"), "");
    assert_eq!(said(&run(&[DEPLOYMENT]), "generate-no-api"), "");
    assert_eq!(said(&run(&[CRD, DEPLOYMENT, RBAC]), "generate-no-api"), "");
}

#[test]
fn images_are_named_as_the_command_line_says() {
    let run = |image: &str| {
        let overrides = Overrides { images: vec![image.parse().unwrap()], ..Overrides::default() };
        Input { texts: &[CRD, DEPLOYMENT], overrides, ..Input::default() }.run()
    };
    let generated = run("echo=quay.io/example/echo:v2");
    let csv = generated.csv();
    let container =
        &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "quay.io/example/echo:v2");
    assert_eq!(csv["spec"]["relatedImages"][0]["image"], "quay.io/example/echo:v2");
    assert_eq!(csv["metadata"]["annotations"]["containerImage"], "quay.io/example/echo:v2");
    insta::assert_snapshot!(said(&run("ecko=quay.io/example/echo:v2"), "package-value-invalid"), @"error[package-value-invalid]: `--image`: no image of the operator is named `ecko` (did you mean `echo`?)");
}

#[test]
fn what_is_set_is_held_against_the_type() {
    let run = |set: &str| {
        let overrides = Overrides { set: vec![set.parse().unwrap()], ..Overrides::default() };
        Input { texts: &[CRD, DEPLOYMENT], overrides, ..Input::default() }.run()
    };
    insta::assert_snapshot!(said(&run("spec.maturty=stable"), "package-value-invalid"), @"error[package-value-invalid]: `--set spec.maturty`: a ClusterServiceVersion has no field `maturty` there (did you mean `maturity`?)");
    insta::assert_snapshot!(said(&run("spec.keywords=redis"), "package-value-invalid"), @"error[package-value-invalid]: `--set`: `spec.keywords`: expected a list, found a string");
    assert_eq!(run("spec.maturity=stable").findings, []);
    assert_eq!(run("spec.cleanup={enabled: true}").findings, []);
    assert_eq!(run("metadata.annotations['a.b/c']=x").findings, []);
}

#[test]
fn findings_can_be_allowed_on_the_command_line() {
    let run = |code: &str| {
        let overrides = Overrides { allow: vec![code.to_owned()], ..Overrides::default() };
        Input { texts: &[DEPLOYMENT, RBAC], overrides, ..Input::default() }.run()
    };
    assert_eq!(run("generate-no-api").findings, []);
    insta::assert_snapshot!(said(&run("generate-no-apis"), "package-value-invalid"), @"error[package-value-invalid]: `--allow`: unknown finding code `generate-no-apis` (did you mean `generate-no-api`?)");
}

#[test]
fn a_bundle_instead_of_manifests_is_named() {
    insta::assert_snapshot!(outcome(&[CRD, BASE]), @r"
    error[generate-no-deployment] 1.yaml:4:9: no Deployment among the manifests: there would be nothing to install (`echo.v0.0.0` is a bundle already: give the manifests that it was made from, and it as `--base`)
    warning[generate-base-overruled] 1.yaml:18:7: the base owns `gone.example.com v1`, for which there is no CRD among the manifests: it is left out (add the CRD to the manifests, or move the entry to `required`)
    warning[generate-base-overruled] 1.yaml:20:56: the base has a Deployment `former`, and the manifests have none: it is left out (add it to the manifests)
    ");
}

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

#[test]
fn a_base_is_kept_where_the_manifests_do_not_know_better() {
    let input = Input { texts: &[CRD, DEPLOYMENT, RBAC, SAMPLE], base: Some(BASE), ..Input::default() };
    let generated = input.run();
    insta::assert_snapshot!(generated.lines(), @r"
    warning[generate-base-overruled] base.yaml:18:7: the base owns `gone.example.com v1`, for which there is no CRD among the manifests: it is left out (add the CRD to the manifests, or move the entry to `required`)
    warning[generate-base-overruled] base.yaml:20:56: the base has a Deployment `former`, and the manifests have none: it is left out (add it to the manifests)
    + manifests/echo-viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + manifests/echo.clusterserviceversion.yaml
    + manifests/example.com_echoes.yaml
    + manifests/manager_rbac.authorization.k8s.io_v1_clusterrole.yaml
    + manifests/manager_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml
    + metadata/annotations.yaml
    ");
    let csv = generated.csv();
    let examples: serde_json::Value =
        serde_json::from_str(csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap()).unwrap();
    let names: Vec<_> =
        examples.as_array().unwrap().iter().map(|example| &example["metadata"]["name"]).collect();
    assert_eq!(names, ["hello", "other"]);
    assert_eq!(csv["spec"]["somethingNew"]["kept"], true);
    assert_eq!(csv["metadata"].get("namespace"), None);
    let paths = [
        "metadata.name",
        "spec.displayName",
        "spec.customresourcedefinitions.owned[0].description",
        "spec.customresourcedefinitions.owned[0].displayName",
        "spec.relatedImages",
        "spec.install.spec.permissions",
        "spec.installModes[3]",
    ];
    let origins: Vec<_> = paths.iter().map(|path| generated.origins_of(path)).collect();
    insta::assert_snapshot!(origins.join("\n"), @r#"
    metadata.name = "echo.v0.1.0" <- package and version make the name olmkit.yaml:1:11, MadeOf package file olmkit.yaml:1:26, InsteadOf base base.yaml:4:9
    spec.displayName = "Echo of old" <- base base.yaml:10:16
    spec.customresourcedefinitions.owned[0].description = "By hand" <- base base.yaml:17:72, InsteadOf manifest 0.yaml:12:59
    spec.customresourcedefinitions.owned[0].displayName = "Echo" <- the kind, in words 0.yaml:7:17
    spec.relatedImages[0].image = "cache:2" <- base base.yaml:13:40
    spec.relatedImages[0].name = "cache" <- base base.yaml:13:26
    spec.relatedImages[1].image = "echo:1" <- manifest 1.yaml:11:32
    spec.relatedImages[1].name = "manager" <- the container's or variable's name 1.yaml:11:9
    spec.install.spec.permissions[0].rules[0].apiGroups[0] = "coordination.k8s.io" <- manifest 2.yaml:8:22
    spec.install.spec.permissions[0].rules[0].resources[0] = "leases" <- manifest 2.yaml:8:56
    spec.install.spec.permissions[0].rules[0].verbs[0] = "get" <- manifest 2.yaml:8:73
    spec.install.spec.permissions[0].serviceAccountName = "echo" <- manifest 1.yaml:9:27
    spec.install.spec.permissions[1].rules = [] <- base base.yaml:20:133
    spec.install.spec.permissions[1].serviceAccountName = "helper" <- base base.yaml:20:118
    spec.installModes[3].supported = true <- all namespaces, where nobody says
    spec.installModes[3].type = "AllNamespaces" <- all namespaces, where nobody says
    "#);
}

#[test]
fn the_catalog_has_the_say_over_edges() {
    let package = "{package: echo, version: 0.2.0, replaces: echo.v0.1.0, skipRange: '<0.1.0'}";
    let edges = |edge| {
        let input = Input { texts: &[DEPLOYMENT], package: Some(package), edge, ..Input::default() };
        let csv = input.run().csv();
        (csv["spec"]["replaces"].clone(), csv["metadata"]["annotations"]["olm.skipRange"].clone())
    };
    assert_eq!(edges(None), ("echo.v0.1.0".into(), "<0.1.0".into()));
    let edge = Edge { replaces: Some("echo.v0.1.5".into()), ..Edge::default() };
    assert_eq!(edges(Some(edge)), ("echo.v0.1.5".into(), serde_json::Value::Null));
}

#[test]
fn a_release_is_part_of_the_name() {
    let package = "{package: echo, version: 0.2.0, release: rc.1}";
    let csv = Input { texts: &[DEPLOYMENT], package: Some(package), ..Input::default() }.run().csv();
    assert_eq!(
        (&csv["metadata"]["name"], &csv["spec"]["release"]),
        (&"echo-v0.2.0-rc.1".into(), &"rc.1".into())
    );
}

/// A small operator without anything to complain about, for examples that show something else.
const OPERATOR: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: system}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      containers: [{name: manager, image: 'quay.io/example/operator:v1', ports: [{name: webhook, containerPort: 9443}]}]
";

/// The codes that an example of a page brings. `# olmkit.yaml`, `# base.yaml` and `# manifests.yaml` start a file; `# alone`
/// means without the small operator.
fn example_codes(example: &str) -> Vec<&'static str> {
    let (mut files, mut current) = (BTreeMap::<&str, String>::new(), "manifests.yaml");
    let mut alone = false;
    for line in example.lines() {
        match line.strip_prefix("# ") {
            Some(name) if name.ends_with(".yaml") => current = name,
            Some("alone") => alone = true,
            _ => *files.entry(current).or_default() += &format!("{line}\n"),
        }
    }
    let manifests = files.remove("manifests.yaml").unwrap_or_default();
    let texts = if alone { vec![manifests.as_str()] } else { vec![manifests.as_str(), OPERATOR] };
    let package =
        format!("package: echo\nversion: 0.1.0\n{}", files.remove("olmkit.yaml").unwrap_or_default());
    let base = files.remove("base.yaml");
    let input = Input { texts: &texts, package: Some(&package), base: base.as_deref(), ..Input::default() };
    input.run().findings.iter().map(|finding| finding.code.name).collect()
}

#[test]
fn examples_of_the_pages_are_what_they_say() {
    for code in codes::ALL {
        for block in code.docs.split("```yaml ").skip(1) {
            let (kind, rest) = block.split_once('\n').unwrap();
            let found = example_codes(rest.split_once("```").unwrap().0);
            match kind.trim() {
                "bad" => assert!(found.contains(&code.name), "{}: {found:?}", code.name),
                "good" => assert_eq!(found, [""; 0], "{}", code.name),
                other => panic!("{}: {other}", code.name),
            }
        }
    }
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
