//! What roles and bindings grant, and who gets it.

use super::*;

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
fn a_user_that_is_a_service_account_gets_the_rights_of_it() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n";
    let user = |namespace: &str| {
        format!(
            "{{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccount:{namespace}:echo'}}"
        )
    };
    let account = |namespace: &str| format!("{{kind: ServiceAccount, name: echo, namespace: {namespace}}}");
    for (kind, of, role_name) in [
        ("ClusterRoleBinding", "", "ClusterRole, name: all"),
        ("RoleBinding", "echo-system", "ClusterRole, name: all"),
        ("RoleBinding", "kube-system", "ClusterRole, name: all"),
        ("ClusterRoleBinding", "", "ClusterRole, name: cluster-admin"),
    ] {
        for namespace in ["echo-system", "elsewhere"] {
            let generated = |subject: &str| {
                let generated = run(&[DEPLOYMENT, role, &bound(kind, of, role_name, subject)]);
                let rights = generated.csv()["spec"]["install"]["spec"].clone();
                (generated.lines(), rights)
            };
            assert_eq!(generated(&user(namespace)), generated(&account(namespace)), "{kind} {namespace}");
        }
    }
    let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: all", &user("echo-system"));
    let generated = run(&[DEPLOYMENT, role, &binding]);
    assert_eq!(generated.findings, []);
    assert_eq!(
        generated.csv()["spec"]["install"]["spec"]["clusterPermissions"][0]["serviceAccountName"],
        "echo"
    );
    // Somebody else.
    let binding = bound("ClusterRoleBinding", "", "ClusterRole, name: all", "{kind: User, name: echo}");
    let generated = run(&[DEPLOYMENT, role, &binding]);
    assert_eq!(generated.csv()["spec"]["install"]["spec"].get("clusterPermissions"), None);
}

#[test]
fn the_items_of_a_typed_list_take_what_they_are_from_it() {
    let list = |kind: &str, items: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}List\nmetadata: {{resourceVersion: '1'}}\nitems:\n{items}"
        )
    };
    let role = "- metadata: {name: all}\n  rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n";
    let binding = format!(
        "- metadata: {{name: bound}}\n  roleRef: {{kind: ClusterRole, name: all}}\n  subjects: [{ECHO}]\n"
    );
    let kinds = list("ClusterRole", role) + "---\n" + &list("ClusterRoleBinding", &binding);
    let generated = run(&[DEPLOYMENT, &kinds]);
    assert_eq!(generated.findings, []);
    let rights = &generated.csv()["spec"]["install"]["spec"]["clusterPermissions"][0];
    assert_eq!(rights["serviceAccountName"], "echo");
    assert_eq!(rights["rules"][0]["resources"][0], "pods");
    // The place of a finding is in the item; a list that does not say what it is completes nothing.
    let unknown = list("ClusterRoleBinding", &binding.replace("name: all", "name: gone"));
    let said_of = |manifests: &str, code: &str| said(&run(&[DEPLOYMENT, manifests]), code);
    let unknown = said_of(&unknown, "generate-role-unknown");
    assert!(unknown.starts_with("warning[generate-role-unknown] 1.yaml:6:38: "), "{unknown}");
    let untyped = kinds.replace("apiVersion: rbac.authorization.k8s.io/v1\n", "");
    let untyped = said_of(&untyped, "generate-not-an-object");
    assert!(untyped.contains("`apiVersion` is missing"), "{untyped}");
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
fn rules_that_a_role_cannot_have_are_not_put_into_one() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: urls}\nrules: [{nonResourceURLs: [/metrics], verbs: [get]}, {apiGroups: [''], resources: [pods], verbs: [get]}]";
    let generated =
        run(&[DEPLOYMENT, role, &bound("RoleBinding", "echo-system", "ClusterRole, name: urls", ECHO)]);
    let rules = &generated.csv()["spec"]["install"]["spec"]["permissions"][0]["rules"];
    assert_eq!(rules.as_array().unwrap().len(), 1);
}

#[test]
fn what_a_service_account_says_besides_its_name_is_lost_aloud() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: echo, namespace: echo-system, annotations: {eks.amazonaws.com/role-arn: x}}\nimagePullSecrets: [{name: pull}]\n";
    insta::assert_snapshot!(outcome(&[DEPLOYMENT, account]), @r"
    warning[generate-replaced-by-olm] 1.yaml:3:48: OLM creates `ServiceAccount/echo` itself, without its `annotations` and `imagePullSecrets` (set what the pods need in the Deployment (`imagePullSecrets`, `automountServiceAccountToken`), or tell users to annotate the service account)
    + manifests/echo.clusterserviceversion.yaml
    + metadata/annotations.yaml
    ");
}
