//! Small changes of a bundle, one at a time, and what is found.

use super::policy::PolicySettings;
use super::{Beside, bundles, bundles_with, files};
use crate::load::{BundleFile, BundleFiles, Content};
use crate::parse::Bundle;
use crate::yaml::{Step, decode, first_document};

const CSV: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: foo.v0.1.0}
spec:
  version: 0.1.0
  customresourcedefinitions:
    owned:
    - {name: foos.example.com, kind: Foo, version: v1}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: foo
        spec:
          selector: {matchLabels: {app: foo}}
          template:
            metadata: {labels: {app: foo}}
            spec:
              serviceAccountName: foo
              containers:
              - {name: manager, image: 'example.com/foo:1'}
";
const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec:
  group: example.com
  names: {kind: Foo, plural: foos, singular: foo, listKind: FooList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

type Files<'a> = &'a [(&'a str, &'a str)];

fn bundle(name: &str, others: Files<'_>) -> BundleFiles {
    let all = [("manifests/csv.yaml", CSV), ("manifests/crd.yaml", CRD)];
    let all = all.iter().filter(|(path, _)| !others.iter().any(|(other, _)| other == path)).chain(others);
    let files =
        all.map(|(path, text)| BundleFile { path: (*path).into(), content: Content::Text((*text).into()) });
    BundleFiles { name: name.into(), files: files.collect() }
}

/// `level[code]: message` of every finding.
fn found(old: Files<'_>, new: Files<'_>) -> Vec<String> {
    let (old, new) = (bundle("old", old), bundle("new", new));
    let comparison = bundles(&Bundle::parse(&old), &Bundle::parse(&new)).unwrap();
    let line = |finding: crate::finding::Finding| {
        format!("{}[{}]: {}", finding.level, finding.code.name, finding.message)
    };
    comparison.findings.into_iter().map(line).collect()
}

#[track_caller]
fn check(old: Files<'_>, new: Files<'_>, expected: &[&str]) {
    assert_eq!(found(old, new), expected);
}

const NEXT: (&str, &str) = ("foo.v0.1.0", "foo.v0.2.0");

/// The ClusterServiceVersion as version 0.2.0, with a change.
fn next(before: &str, after: &str) -> String {
    assert!(CSV.contains(before), "{before}");
    CSV.replace(before, after).replace(NEXT.0, NEXT.1).replace("version: 0.1.0", "version: 0.2.0")
}

#[test]
fn nothing_changes_but_the_version() {
    check(&[], &[("manifests/csv.yaml", &next("foo", "foo"))], &[]);
}

#[test]
fn rights_that_objects_of_the_bundle_grant() {
    let binding = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: x}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: foo, namespace: foo}]
";
    let lines = found(&[], &[("manifests/csv.yaml", &next("foo", "foo")), ("manifests/x.yaml", binding)]);
    assert!(
        lines.iter().any(|line| line.starts_with("warning[permission-escalates]: `foo` can now")),
        "{lines:?}"
    );
    let user = "{kind: User, name: 'system:serviceaccount:foo:foo'}";
    let of_user = binding.replace("{kind: ServiceAccount, name: foo, namespace: foo}", user);
    let files = [("manifests/csv.yaml", &*next("foo", "foo")), ("manifests/x.yaml", &*of_user)];
    assert_eq!(found(&[], &files), lines);

    let role = |rules: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: r}}\nrules: [{rules}]\n"
        )
    };
    let all = role("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}");
    let csv = next("foo", "foo");
    let lines = found(
        &[("manifests/r.yaml", &role(""))],
        &[("manifests/csv.yaml", &csv), ("manifests/r.yaml", &all)],
    );
    assert!(
        lines.iter().any(|line| line.starts_with("warning[permission-escalates]: `ClusterRole/r`")),
        "{lines:?}"
    );
}

#[test]
fn objects_that_change() {
    let map = |value: &str, more: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\n{more}data: {{a: '{value}'}}\n")
    };
    let csv = next("foo", "foo");
    let change = |more: &str, expected: &str| {
        check(
            &[("manifests/c.yaml", &map("1", more))],
            &[("manifests/csv.yaml", &csv), ("manifests/c.yaml", &map("2", more))],
            &[expected],
        );
    };
    change("", "info[object-changed]: `ConfigMap/c` changes");
    change(
        "immutable: true\n",
        "error[object-update-refused]: the data of `ConfigMap/c` changes, which Kubernetes refuses for existing objects",
    );
    let service =
        |spec: &str| format!("apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{{spec}}}\n");
    check(
        &[("manifests/s.yaml", &service("ports: [{port: 1}]"))],
        &[
            ("manifests/csv.yaml", &csv),
            ("manifests/s.yaml", &service("ports: [{port: 1}], clusterIP: None")),
        ],
        &[
            "error[object-update-refused]: `clusterIP` of `Service/s` changes, which Kubernetes refuses for existing objects",
        ],
    );
}

#[test]
fn updates_of_objects_that_kubernetes_refuses() {
    let change = |old: &str, new: &str| {
        let found = found(&[("manifests/o.yaml", old)], &[("manifests/o.yaml", new)]);
        let code = |line: &String| line.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
        found.iter().map(code).filter(|code| code.starts_with("object-")).collect::<Vec<_>>().join(" ")
    };
    let secret = |rest: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{rest}\n");
    assert_eq!(change(&secret("type: Opaque"), &secret("type: kubernetes.io/tls")), "object-update-refused");
    assert_eq!(change(&secret(""), &secret("type: Opaque")), "object-changed");
    let kept = |data: &str| secret(&format!("immutable: true\n{data}"));
    assert_eq!(change(&kept("data: {a: MQ==}"), &kept("stringData: {a: '1'}")), "object-changed");
    assert_eq!(change(&kept("data: {a: MQ==}"), &kept("stringData: {a: '2'}")), "object-update-refused");
    let class = |rest: &str| {
        format!("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: a}}\n{rest}\n")
    };
    assert_eq!(change(&class("value: 1"), &class("value: 2")), "object-update-refused");
    let never = class("value: 1\npreemptionPolicy: Never");
    assert_eq!(change(&class("value: 1"), &never), "object-update-refused");
    let service = |rest: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec: {{ports: [{{port: 1}}]{rest}}}\n"
        )
    };
    assert_eq!(change(&service(", clusterIP: None"), &service("")), "object-changed");
    assert_eq!(change(&service(""), &service(", clusterIP: None")), "object-update-refused");
}

/// Neither what Kubernetes fills in, nor the order of lists that have none.
#[test]
fn a_webhook_changes_where_it_does_something_else() {
    let webhook = |rest: &str, operations: &str| {
        CSV.replacen(
            "  install:\n",
            &format!(
                "  webhookdefinitions:\n  - {{type: ValidatingAdmissionWebhook, generateName: v.example.com, deploymentName: foo, \
                 sideEffects: None, admissionReviewVersions: [v1]{rest}, rules: [{{operations: [{operations}], \
                 apiGroups: [''], apiVersions: [v1], resources: [pods]}}]}}\n  install:\n"
            ),
            1,
        )
    };
    let said = |old: &str, new: &str| {
        let found = found(&[("manifests/csv.yaml", old)], &[("manifests/csv.yaml", new)]);
        found.into_iter().find(|line| line.contains("webhook-changed")).unwrap_or_default()
    };
    let old = webhook("", "CREATE, UPDATE");
    let spelled = webhook(", timeoutSeconds: 10, matchPolicy: Equivalent, targetPort: 443", "UPDATE, CREATE");
    assert_eq!(said(&old, &spelled), "");
    let other = said(&old, &webhook(", failurePolicy: Ignore", "CREATE, UPDATE"));
    assert!(other.ends_with("changes: `failurePolicy` from `Fail` to `Ignore`"), "{other}");
}

/// Only the rights that do so are called so.
#[test]
fn what_escalates_is_named_alone() {
    let role = |rules: &str| {
        CSV.replacen(
            "      deployments:\n",
            &format!("      clusterPermissions: [{{serviceAccountName: foo, rules: [{rules}]}}]\n      deployments:\n"),
            1,
        )
    };
    let new = role("{apiGroups: [''], resources: [bindings, configmaps, secrets], verbs: [list]}");
    let found = found(&[], &[("manifests/csv.yaml", &new)]);
    let of = |code: &str| found.iter().find(|line| line.contains(code)).cloned().unwrap_or_default();
    assert!(of("permission-escalates").ends_with(": `secrets` (list)"), "{found:?}");
    assert!(of("permission-gained").ends_with(": `bindings` (list), `configmaps` (list)"), "{found:?}");
}

/// OLM writes `strategy: {}` and `resources: {}` into the ClusterServiceVersions that it stores.
#[test]
fn what_is_left_out_is_what_is_empty() {
    let csv = next(
        "              containers:\n",
        "              securityContext: {}\n              affinity: {}\n              containers:\n",
    );
    check(&[], &[("manifests/csv.yaml", &csv)], &[]);
}

#[test]
fn privileges_of_new_containers_and_access_to_nodes() {
    let containers = "              containers:\n";
    let more = "              shareProcessNamespace: true
              nodeSelector: {no: such}
              volumes: [{name: h, hostPath: {path: /}}]
              containers:
              - {name: side, image: 's:1', securityContext: {privileged: true}, ports: [{containerPort: 80, hostPort: 80}]}
";
    check(
        &[],
        &[("manifests/csv.yaml", &next(containers, more))],
        &[
            "warning[security-context-changed]: the pods of `foo` now have `shareProcessNamespace`",
            "info[deployment-changed]: the node selector of the pods of `foo` changes",
            "info[deployment-changed]: the list of volumes of the pods of `foo` changes",
            "warning[security-context-changed]: the pods of `foo` now mount `/` of their node",
            "warning[security-context-changed]: the pods of `foo` now use the port 80 of their node",
            "info[deployment-changed]: the container `side` is new",
            "warning[security-context-changed]: the new container `side` is privileged",
        ],
    );
}

/// A file that cannot be read is not a file that is gone.
#[test]
fn unreadable_files_are_errors_on_either_side() {
    let csv = next("foo", "foo");
    let broken = [("manifests/crd.yaml", "a: [")];
    let lines = |old: Files<'_>, new: Files<'_>| -> Vec<String> {
        let code = |line: String| line.split(':').next().unwrap_or_default().to_owned();
        found(old, new).into_iter().map(code).collect()
    };
    assert_eq!(lines(&[], &[("manifests/csv.yaml", &csv), broken[0]]), ["error[yaml-syntax]"]);
    assert_eq!(lines(&broken, &[("manifests/csv.yaml", &csv), broken[0]]), ["error[yaml-syntax]"; 2]);
    let dependencies = ("metadata/dependencies.yaml", "dependencies: [\n");
    assert_eq!(lines(&[], &[("manifests/csv.yaml", &csv), dependencies]), ["error[yaml-syntax]"]);
}

#[test]
fn names_and_versions_that_olm_cannot_upgrade_to() {
    let version = |before: &str, after: &str| CSV.replacen(before, after, 1);
    for (csv, expected) in [
        (
            version("version: 0.1.0", "version: 0.2.0"),
            "both ClusterServiceVersions are named `foo.v0.1.0`, and they differ",
        ),
        (
            next("foo", "foo").replace("version: 0.2.0", "version: abc"),
            "the new version `abc` is not a semantic version",
        ),
        (
            next("foo", "foo").replace("  version: 0.2.0\n", ""),
            "the old version is `0.1.0`, and the new bundle has no version",
        ),
    ] {
        check(&[], &[("manifests/csv.yaml", &csv)], &[&format!("error[version-not-higher]: {expected}")]);
    }
}

#[test]
fn apis_that_are_no_longer_owned() {
    let owned = "    owned:\n    - {name: foos.example.com, kind: Foo, version: v1}\n";
    check(
        &[],
        &[("manifests/csv.yaml", &next(owned, "    owned: []\n"))],
        &["error[owned-api-removed]: the operator no longer owns the API `Foo.v1.example.com`"],
    );
    let service = "  apiservicedefinitions:\n    owned: [{group: a.b, version: v1, kind: X, name: xs, deploymentName: foo}]\n  install:";
    check(
        &[],
        &[("manifests/csv.yaml", &next("  install:", service))],
        &["warning[api-service-added]: the operator now serves the API `X.v1.a.b` itself"],
    );
}

#[test]
fn another_range_of_a_dependency_is_one_finding() {
    let needs = |range: &str| {
        format!("dependencies: [{{type: olm.package, value: {{packageName: bar, version: '{range}'}}}}]\n")
    };
    let csv = next("foo", "foo");
    let change = |range: &str, expected: &[&str]| {
        check(
            &[("metadata/dependencies.yaml", &needs(">=1.0.0"))],
            &[("manifests/csv.yaml", &csv), ("metadata/dependencies.yaml", &needs(range))],
            expected,
        );
    };
    change(">= 1.0.0", &[]);
    change(
        ">=2.0.0",
        &[
            "warning[dependency-changed]: the bundle depended on the package `bar` in `>=1.0.0`, and now in `>=2.0.0`",
        ],
    );
}

/// As `kubectl get` prints them and as people break them.
#[test]
fn crds_that_no_api_server_takes_are_errors() {
    let file = |text: String| BundleFiles {
        name: ".".into(),
        files: vec![BundleFile { path: "crd.yaml".into(), content: Content::Text(text) }],
    };
    let without = |before: &str, after: &str| file(CRD.replace(before, after));
    for new in [
        without("storage: true", "storage: false"),
        without(", schema: {openAPIV3Schema: {type: object}}", ""),
    ] {
        let findings = files(&file(CRD.into()), &new).unwrap().findings;
        let is_invalid = |name: &str| matches!(name, "crd-versions-invalid" | "schema-not-structural");
        let invalid = findings.iter().find(|finding| is_invalid(finding.code.name));
        let place = invalid.and_then(|finding| finding.place.as_ref()).map(|place| place.path.as_str());
        assert_eq!(place, Some("crd.yaml"), "{findings:?}");
        assert_eq!(files(&new, &new).unwrap().findings, []);
    }
}

/// The findings of two bundles under a policy, with others of the package beside them.
fn under(policy: &str, old: Files<'_>, new: Files<'_>, earlier: &[Files<'_>]) -> Vec<String> {
    let document = first_document(policy).unwrap();
    let settings: PolicySettings = decode::decode(&document.root).unwrap();
    let policy = settings.parse().unwrap();
    let (old, new) = (bundle("old", old), bundle("new", new));
    let earlier: Vec<_> = earlier.iter().map(|files| bundle("earlier", files)).collect();
    let (old, new) = (Bundle::parse(&old), Bundle::parse(&new));
    let earlier: Vec<_> = earlier.iter().map(Bundle::parse).collect();
    let history: Vec<_> = earlier.iter().collect();
    let beside = Beside { policy: Some(&policy), history: &history, ..Beside::default() };
    let found = bundles_with(&old, &new, &beside).unwrap().findings.into_iter();
    let of_policy = found.filter(|one| one.code.name.starts_with("policy-"));
    of_policy.map(|one| format!("{}: {}", one.code.name, one.message)).collect()
}

#[test]
fn a_promised_kubernetes_has_to_do() {
    let policy = "{kubernetes: '>=1.29.0 <1.33.0'}";
    let needs =
        |version: &str| next("spec:\n  version", &format!("spec:\n  minKubeVersion: {version}\n  version"));
    for (needed, expected) in [
        ("1.28.0", None),
        ("1.29.0", None),
        (
            "1.30.0",
            Some("the package file promises to support Kubernetes 1.29.0, and the bundle needs 1.30.0"),
        ),
        (
            "1.29.1",
            Some("the package file promises to support Kubernetes 1.29.0, and the bundle needs 1.29.1"),
        ),
    ] {
        let found = under(policy, &[], &[("manifests/csv.yaml", &needs(needed))], &[]);
        let expected: Vec<_> =
            expected.iter().map(|text| format!("policy-kubernetes-broken: {text}")).collect();
        assert_eq!(found, expected, "{needed}");
    }
    let gone = "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nmetadata: {name: f}\n";
    let csv = next("foo", "foo");
    let found = under(policy, &[], &[("manifests/csv.yaml", &csv), ("manifests/f.yaml", gone)], &[]);
    assert_eq!(
        found,
        [
            "policy-kubernetes-broken: the package file promises to support Kubernetes 1.32, which has no `FlowSchema` of \
          `flowcontrol.apiserver.k8s.io/v1beta3`"
        ]
    );
}

#[test]
fn images_of_operands_are_of_supported_versions() {
    let policy = "{operands: [{name: Redis, image: library/redis, versions: '>=7.0.0 <9.0.0'}]}";
    let crd = CRD.replace(
        "{type: object}",
        "{type: object, properties: {spec: {type: object, properties: {image: {type: string, default: 'docker.io/library/redis:6.2'}}}}}",
    );
    let examples = r#"'[{"apiVersion": "example.com/v1", "kind": "Foo", "spec": {"image": "library/redis:9.1-alpine"}}]'"#;
    let csv = next("metadata: {name: foo.v0.1.0}", &format!("metadata:\n  name: foo.v0.1.0\n  annotations:\n    alm-examples: {examples}"))
        .replace("image: 'example.com/foo:1'}", "image: 'example.com/foo:1', env: [{name: A, value: 'my/library/redis:8.0.1'}, {name: B, value: 'library/redis-exporter:1.0'}, {name: C, value: 'library/redis:latest'}, {name: D, value: 'redis:6379'}, {name: E, value: 'redis:6.0'}]}");
    let found = under(policy, &[], &[("manifests/csv.yaml", &csv), ("manifests/crd.yaml", &crd)], &[]);
    let line = |image: &str| {
        format!(
            "policy-operand-unsupported: the package file promises to support Redis `>=7.0.0 <9.0.0`, and the bundle names `{image}`"
        )
    };
    // `redis:6379` is a host and a port.
    assert_eq!(
        found,
        [line("docker.io/library/redis:6.2"), line("library/redis:9.1-alpine"), line("redis:6.0")]
    );
}

#[test]
fn what_is_removed_was_deprecated_for_as_long_as_promised() {
    let csv = |version: &str| {
        CSV.replace("foo.v0.1.0", &format!("foo.v{version}"))
            .replace("version: 0.1.0", &format!("version: {version}"))
    };
    let with = |field: &str| {
        CRD.replace(
            "{type: object}",
            &format!("{{type: object, properties: {{spec: {{type: object, properties: {{{field}}}}}}}}}"),
        )
    };
    let (plain, deprecated) =
        (with("a: {type: string}"), with("a: {type: string, description: 'Deprecated: use b.'}"));
    let gone = with("b: {type: string}");
    let policy = "{deprecationNotice: 2}";
    let (one, two, three, four) = (csv("1.0.0"), csv("1.1.0"), csv("1.2.0"), csv("2.0.0"));
    fn at<'t>(csv: &'t str, crd: &'t str) -> [(&'t str, &'t str); 2] {
        [("manifests/csv.yaml", csv), ("manifests/crd.yaml", crd)]
    }
    let found =
        |old: &str, earlier: &[Files<'_>]| under(policy, &at(&three, old), &at(&four, &gone), earlier);
    let message = |rest: &str| {
        vec![format!(
            "policy-notice-too-short: `spec.a` of `foos.example.com`, version `v1`, is removed {rest}"
        )]
    };
    let never = message("without being deprecated for 2 minor versions before");
    assert_eq!(found(&plain, &[]), never);
    assert_eq!(found(&plain, &[&at(&one, &deprecated), &at(&two, &deprecated)]), never);
    // Of two bundles alone it cannot be known for how long.
    assert_eq!(found(&deprecated, &[]), [""; 0]);
    let short = message("after it was deprecated for 1 minor version, not for 2 minor versions");
    assert_eq!(found(&deprecated, &[&at(&two, &plain)]), short);
    // It says so, and does not only use the word.
    let not = with("a: {type: string, description: 'This is not deprecated.'}");
    assert_eq!(found(&not, &[&at(&one, &not), &at(&two, &not)]), never);
    // A patch is no minor version.
    let patch = csv("1.2.1");
    let patched = under(
        policy,
        &at(&patch, &deprecated),
        &at(&four, &gone),
        &[&at(&three, &deprecated), &at(&two, &plain)],
    );
    assert_eq!(patched, short);
    assert_eq!(found(&deprecated, &[&at(&two, &deprecated), &at(&one, &plain)]), [""; 0]);

    // The same for a version of an API.
    let versions = |first: &str| {
        format!(
            "{CRD}{}",
            CRD.lines()
                .last()
                .unwrap()
                .replace("v1", "v1alpha1")
                .replace("storage: true", &format!("storage: false{first}"))
        ) + "\n"
    };
    let (served, deprecated) = (versions(""), versions(", deprecated: true"));
    let found = |old: &str| under(policy, &at(&three, old), &at(&four, CRD), &[&at(&two, &deprecated)]);
    assert_eq!(
        found(&served),
        [
            "policy-notice-too-short: the version `v1alpha1` of `foos.example.com` is removed without being deprecated for 2 minor \
          versions before"
        ]
    );
    assert_eq!(found(&deprecated), [""; 0]);
}

#[test]
fn policies_that_cannot_be_meant() {
    for (policy, expected) in [
        ("{kubernetes: new}", "policy.kubernetes"),
        (
            "{operands: [{image: a, versions: '>=1.0.0'}, {image: b, versions: x}]}",
            "policy.operands[1].versions",
        ),
        ("{operands: [{name: a, versions: '>=1.0.0'}]}", "policy.operands[0].image"),
    ] {
        let document = first_document(policy).unwrap();
        let settings: PolicySettings = decode::decode(&document.root).unwrap();
        let error = settings.parse().unwrap_err();
        let path = error.path.iter().fold(String::new(), |path, step| match step {
            Step::Key(key) if path.is_empty() => (*key).to_owned(),
            Step::Key(key) => format!("{path}.{key}"),
            Step::Index(at) => format!("{path}[{at}]"),
        });
        assert_eq!(path, expected, "{}", error.message);
    }
}

#[test]
fn a_version_goes_up_by_what_its_changes_ask_for() {
    let csv = |version: &str, image: &str| {
        CSV.replace("foo.v0.1.0", &format!("foo.v{version}"))
            .replace("version: 0.1.0", &format!("version: {version}"))
            .replace("foo:1", &format!("foo:{image}"))
    };
    let schema = |text: &str| CRD.replace("{type: object}", text);
    let (narrow, wide) = (
        schema("{type: object, properties: {a: {type: integer, maximum: 5}}}"),
        schema("{type: object, properties: {a: {type: integer, maximum: 9}}}"),
    );
    let bump = |from: &str, to: &str, (before, after): (&str, &str)| {
        let (old, new) = (csv(from, "1"), csv(to, "2"));
        let lines = found(
            &[("manifests/csv.yaml", &old), ("manifests/crd.yaml", before)],
            &[("manifests/csv.yaml", &new), ("manifests/crd.yaml", after)],
        );
        let mut lines = lines.into_iter().filter(|line| line.contains("version-bump-too-small"));
        lines
            .next()
            .and_then(|line| Some(line.split_once("require a ")?.1.split_whitespace().next()?.to_owned()))
    };
    let (breaks, adds, neither) = ((&*wide, &*narrow), (&*narrow, &*wide), (&*wide, &*wide));
    for (from, to, change, expected) in [
        ("1.0.0", "1.0.1", neither, None),
        ("1.0.0", "1.0.1", adds, Some("minor")),
        ("1.0.0", "1.1.0", adds, None),
        ("1.0.0", "1.1.0", breaks, Some("major")),
        ("1.0.0", "1.0.1", breaks, Some("major")),
        ("1.0.0", "2.0.0", breaks, None),
        // Below 1.0.0, a break raises the minor version, and everything else the patch version.
        ("0.1.0", "0.1.1", adds, None),
        ("0.1.0", "0.1.1", breaks, Some("minor")),
        ("0.1.0", "0.2.0", breaks, None),
        ("0.9.0", "1.0.0", breaks, None),
        // A pre-release may become anything.
        ("1.0.0-rc.1", "1.0.0", breaks, None),
        // What is not higher is another finding.
        ("1.0.0", "0.9.0", breaks, None),
    ] {
        assert_eq!(bump(from, to, change).as_deref(), expected, "{from} -> {to}");
    }
}

#[test]
fn what_becomes_too_large_is_an_error_once() {
    // Hardly to be compressed, and the same in every run.
    let mut seed = 7u64;
    let mut noise = |bytes: usize| -> String {
        (0..bytes)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b' ' + ((seed >> 33) % 90) as u8)
            })
            .filter(|c| !matches!(c, '\\' | '\'' | '"' | '#'))
            .collect()
    };
    let mut map = |bytes| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{text: '{}'}}\n",
            noise(bytes)
        )
    };
    let (small, nearly, large) = (map(1000), map(860_000), map(1_200_000));
    let csv = next("foo", "foo");
    let codes = |old: &str, new: &str| -> Vec<String> {
        let lines =
            found(&[("manifests/m.yaml", old)], &[("manifests/csv.yaml", &csv), ("manifests/m.yaml", new)]);
        let code = |line: String| line.split(':').next().unwrap_or_default().to_owned();
        lines.into_iter().map(code).filter(|code| !code.contains("object-changed")).collect()
    };
    assert_eq!(codes(&small, &small), [""; 0]);
    assert!(codes(&small, &nearly).contains(&"warning[bundle-nearly-too-large]".to_owned()));
    assert_eq!(codes(&nearly, &nearly), [""; 0]);
    assert!(codes(&nearly, &large).contains(&"error[bundle-too-large]".to_owned()));
    assert_eq!(codes(&large, &large), [""; 0]);
}

/// As the API server does it: unknown fields go, defaults come, then rules in CEL are run.
#[cfg(feature = "cel")]
#[test]
fn samples_are_defaulted_and_held_against_rules() {
    let with = |spec: &str| {
        CRD.replace(
            "{type: object}",
            &format!("{{type: object, properties: {{spec: {{type: object, {spec}}}}}}}"),
        )
    };
    let old = with("properties: {low: {type: integer}, high: {type: integer}}");
    let new = with(
        "required: [pots], properties: {low: {type: integer}, high: {type: integer, default: 5}, pots: {type: integer, default: 1}}, \
         x-kubernetes-validations: [{rule: self.low < self.high, message: low first}]",
    );
    let sample = |spec: &str| {
        let text = format!("{{apiVersion: example.com/v1, kind: Foo, metadata: {{name: a}}, spec: {spec}}}");
        let (csv, (old, new)) = (next("foo", "foo"), (bundle("old", &[("manifests/crd.yaml", &old)]), &new));
        let new = bundle("new", &[("manifests/csv.yaml", &csv), ("manifests/crd.yaml", new)]);
        let samples = [crate::source::Source::new("a.yaml", &text)];
        let beside = Beside { samples: &samples, ..Beside::default() };
        let found = bundles_with(&Bundle::parse(&old), &Bundle::parse(&new), &beside).unwrap().findings;
        let of_samples = found.into_iter().filter(|one| one.code.name.starts_with("sample-"));
        of_samples.map(|one| format!("{}: {}", one.code.name, one.message)).collect::<Vec<_>>()
    };
    assert_eq!(sample("{low: 4}"), [""; 0]);
    assert_eq!(sample("{low: 4, high: ~}"), [""; 0]);
    let broken = "sample-refused: `Foo/a` is no longer valid: `spec`: low first";
    assert_eq!(sample("{low: 5}"), [broken]);
    assert_eq!(sample("{low: 5, high: 3, more: 1}"), [broken]);
}
