//! Install modes that the manifests speak for.

use super::*;

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
    insta::assert_snapshot!(said(&generated, "generate-install-mode-derived"), @"info[generate-install-mode-derived] 2.yaml:20:3: the operator may read its custom resources only in its own namespace: the bundle supports `OwnNamespace` and `SingleNamespace`, and not `AllNamespaces` (list the modes under `installModes` in the package file to decide otherwise)");
    let untold = DEPLOYMENT.replace("WATCH_NAMESPACE, value: here", "ECHO_NAMESPACE, value: here");
    let generated = run(&[CRD, &untold, &rbac]);
    assert_eq!(modes(&generated), ["OwnNamespace"]);
    let package = "{package: echo, version: 0.1.0, installModes: [AllNamespaces]}";
    let generated = Input { texts: &[CRD, &untold, &rbac], package: Some(package), ..Input::default() }.run();
    assert_eq!(modes(&generated), ["AllNamespaces"]);
    insta::assert_snapshot!(said(&generated, "generate-install-mode-derived"), @"warning[generate-install-mode-derived] olmkit.yaml:1:33: `AllNamespaces` is among the install modes, but the operator may read its custom resources only in its own namespace (have the operator watch the namespaces in `metadata.annotations['olm.targetNamespaces']`, and grant its rights by a ClusterRole; or support only `OwnNamespace`)");
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

/// The supported modes, and what is said of them.
fn modes_of(texts: &[&str]) -> String {
    let generated = run(texts);
    let modes = generated.csv()["spec"]["installModes"].clone();
    let supported = modes.as_array().unwrap().iter().filter(|mode| mode["supported"] == true);
    let supported: Vec<_> = supported.map(|mode| mode["type"].as_str().unwrap()).collect();
    let codes = ["generate-install-mode-derived", "generate-install-mode-impossible"];
    format!("{}\n{}", supported.join(" "), codes.map(|code| said(&generated, code)).concat())
}

/// The rights of the operator by a Role instead of a ClusterRole.
fn by_role() -> String {
    RBAC.replace("kind: ClusterRole", "kind: Role")
        .replace("name: manager}", "name: manager, namespace: echo-system}")
}

const OF_CLUSTER: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: walls.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Wall, plural: walls, singular: wall, listKind: WallList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

#[test]
fn an_operator_that_is_told_its_namespace_and_may_read_all_supports_both() {
    let own = "valueFrom: {fieldRef: {fieldPath: metadata.namespace}}";
    for value in [own, "value: echo-system"] {
        let told = DEPLOYMENT.replace("value: here", value);
        insta::allow_duplicates! {
            insta::assert_snapshot!(modes_of(&[CRD, &told, RBAC]), @r"
            OwnNamespace SingleNamespace AllNamespaces
            info[generate-install-mode-derived] 1.yaml:11:48: `WATCH_NAMESPACE` tells the operator to watch its own namespace, and its rights hold in all: the bundle supports `OwnNamespace`, `SingleNamespace` and `AllNamespaces` (list the modes under `installModes` in the package file to decide otherwise; `AllNamespaces` works if the operator watches all namespaces where `WATCH_NAMESPACE` is empty)
            ");
        }
    }
    assert_eq!(modes_of(&[CRD, DEPLOYMENT, RBAC]), "AllNamespaces\n");
}

#[test]
fn a_conversion_webhook_of_an_operator_that_watches_its_own_namespace_is_said() {
    use super::webhooks::{CONVERTING, WEBHOOKS};
    let webhooks = WEBHOOKS.replace("MOUNT", "cert").replace("PATH", "/tmp/k8s-webhook-server/serving-certs");
    let role = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: manager, namespace: echo-system}
rules: [{apiGroups: [example.com], resources: [echoes], verbs: [list, watch]}]
";
    let account = "{kind: ServiceAccount, name: default, namespace: echo-system}";
    let binding = bound("RoleBinding", "echo-system", "Role, name: manager", account);
    let found = modes_of(&[CONVERTING, &webhooks, role, &binding]);
    assert!(found.starts_with("AllNamespaces\nwarning[generate-install-mode-impossible] 2.yaml:4:9: a webhook converts custom resources, so OLM accepts only the install mode `AllNamespaces`, but the operator may read its custom resources only in its own namespace ("), "{found}");
}

#[test]
fn an_api_of_the_whole_cluster_needs_a_cluster_role() {
    let of_walls = by_role().replace("resources: [echoes]", "resources: [walls]");
    let found = modes_of(&[OF_CLUSTER, DEPLOYMENT, &of_walls]);
    assert!(found.starts_with("AllNamespaces\nwarning[generate-install-mode-derived] 2.yaml:"), "{found}");
    let message = "`walls.example.com` belongs to the whole cluster, and a Role grants nothing there: the operator cannot read it in any install mode (grant the rights on it by a ClusterRole and a ClusterRoleBinding)";
    assert!(found.ends_with(message), "{found}");
    // A ClusterRole for it says nothing about the namespaces of others.
    let echoes = by_role();
    let walls = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: walls}
rules: [{apiGroups: [example.com], resources: [walls], verbs: [list, watch]}]
";
    let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: walls", ECHO);
    let found = modes_of(&[CRD, OF_CLUSTER, DEPLOYMENT, &echoes, walls, &binding]);
    assert!(
        found.starts_with("OwnNamespace SingleNamespace\ninfo[generate-install-mode-derived]"),
        "{found}"
    );
    let doubt = "; `walls.example.com` belongs to the whole cluster, so that operators in two namespaces would both work on it)";
    assert!(found.ends_with(doubt), "{found}");
}
