//! Small changes of a bundle, one at a time, and what is found.

use super::{bundles, files};
use crate::load::{BundleFile, BundleFiles, Content};
use crate::parse::Bundle;

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
