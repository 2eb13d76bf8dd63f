//! Deployments, other workloads and what they need.

use super::webhooks::{CONVERTING, WEBHOOKS};
use super::*;

#[test]
fn two_deployments_of_one_name_do_not_fit_into_a_bundle() {
    let other = DEPLOYMENT.replace("namespace: echo-system", "namespace: elsewhere");
    insta::assert_snapshot!(outcome(&[DEPLOYMENT, &other]), @r"
    error[generate-duplicate-object] 1.yaml:3:18: two namespaces have a `Deployment/echo-operator`, but a bundle can contain only one (give one of them another name)
    warning[generate-namespace-lost] 1.yaml:3:44: `Deployment/echo-operator` is for the namespace `elsewhere`, but OLM creates it in the operator's namespace (have the operator create it, or use the operator's namespace)
    warning[generate-namespace-lost] 1.yaml:9:27: the service accounts `echo` of the namespaces `echo-system` and `elsewhere` become one, which gets the rights of both (give the Deployments service accounts of different names)
    ");
}

#[test]
fn a_deployment_without_a_template() {
    insta::assert_snapshot!(outcome(&["apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}"]), @"error[generate-deployment-incomplete] 0.yaml:4:1: `Deployment/a` has no `spec.template`");
}

#[test]
fn a_secret_that_nothing_makes_is_a_finding() {
    let deployment = DEPLOYMENT.replace(
        "name: OTHER, value: 'yes'",
        "name: OTHER, valueFrom: {secretKeyRef: {name: token, key: a}}",
    );
    insta::assert_snapshot!(outcome(&[&deployment]), @r"
    warning[generate-reference-missing] 0.yaml:11:133: the Deployment `echo-operator` needs the Secret `token`, which nothing in the bundle creates (add the Secret to the manifests, set `optional: true` where the operator makes it, or tell users to create it before they install)
    + manifests/echo.clusterserviceversion.yaml
    + metadata/annotations.yaml
    ");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: echo-system}\n";
    assert_eq!(run(&[&deployment, secret]).findings, []);
}

#[test]
fn a_stateful_set_is_one_error() {
    let operator = DEPLOYMENT.replace("kind: Deployment", "kind: StatefulSet");
    let webhooks = WEBHOOKS.split("apiVersion: apps/v1").next().unwrap();
    insta::assert_snapshot!(outcome(&[CONVERTING, &operator, webhooks, RBAC]), @r"
    error[generate-workload-not-installable] 1.yaml:2:7: OLM does not install a StatefulSet: `echo-operator` would be missing, and `RoleBinding/leases`, `Role/leases`, `ServiceAccount/echo` of it would be left out (make it a Deployment, have the operator create it, or leave it out: `--allow generate-workload-not-installable`, or `allow` in the package file with a reason)
    info[generate-replaced-by-olm] 2.yaml:14:18: `Service/hooks` is left out: it only serves webhooks, and OLM makes a Service for those itself
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
fn a_priority_class_that_nothing_makes_is_a_finding() {
    let missing = |class: &str, manifest: &str| {
        let account = "serviceAccountName: echo";
        let deployment = DEPLOYMENT.replace(account, &format!("{account}\n      priorityClassName: {class}"));
        said(&run(&[CRD, &deployment, manifest]), "generate-reference-missing")
    };
    insta::assert_snapshot!(missing("high", ""), @"warning[generate-reference-missing] 1.yaml:10:26: the Deployment `echo-operator` needs the PriorityClass `high`, which nothing in the bundle creates (add the PriorityClass to the manifests, or remove `priorityClassName`: the cluster refuses pods without it)");
    let class =
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n";
    assert_eq!(missing("high", class), "");
    assert_eq!(missing("system-cluster-critical", ""), "");
}

#[test]
fn a_container_that_is_root_and_must_not_be_is_an_error() {
    let refused = |pod: &str, container: &str| {
        let deployment = DEPLOYMENT
            .replace("serviceAccountName: echo", &format!("securityContext: {{{pod}}}"))
            .replace("image: 'echo:1'", &format!("image: 'echo:1', securityContext: {{{container}}}"));
        said(&run(&[CRD, &deployment]), "generate-deployment-invalid")
    };
    let expected = "the container `manager` never starts: `runAsUser` is 0, and `runAsNonRoot` is true (set `runAsUser` to another number, such as 65532, or remove it)";
    for (pod, container) in [
        ("runAsNonRoot: true", "runAsUser: 0"),
        ("runAsUser: 0", "runAsNonRoot: true"),
        ("runAsNonRoot: true, runAsUser: 0", ""),
        ("", "runAsNonRoot: true, runAsUser: 0"),
    ] {
        let found = refused(pod, container);
        assert!(found.ends_with(expected), "{pod} {container}: {found}");
    }
    assert_eq!(refused("runAsNonRoot: true, runAsUser: 0", "runAsUser: 1000"), "");
    assert_eq!(refused("runAsNonRoot: true", ""), "");
    assert_eq!(refused("runAsUser: 0", "runAsNonRoot: false"), "");
}
