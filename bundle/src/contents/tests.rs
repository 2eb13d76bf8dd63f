//! Objects that Kubernetes takes, and what is refused of them after one change.

use super::*;
use crate::source::Source;
use crate::yaml::{first_document, fit};

/// What is refused of an object: `PATH: MESSAGE`, a line each.
fn of(text: &str) -> String {
    let source = Source::new("object.yaml", text);
    let document = first_document(text).unwrap();
    let object = Object { source: &source, root: &document.root };
    let lines = refused(object).into_iter().map(|own| format!("{}: {}", fit::path(&own.path), own.message));
    lines.collect::<Vec<_>>().join("\n")
}

/// Nothing is refused of a text, and this after a change.
#[track_caller]
fn check(good: &str, from: &str, to: &str, expected: &str) {
    assert_eq!(of(good), "");
    assert!(good.contains(from), "{from}");
    assert_eq!(of(&good.replacen(from, to, 1)), expected);
}

const CONFIG_MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a.yaml: 'b: 1', empty: }
binaryData: {logo: aGk=}
";

#[test]
fn config_maps() {
    let check = |from, to, expected| check(CONFIG_MAP, from, to, expected);
    check("'b: 1'", "8080", "data.a.yaml: expected a string in `data.a.yaml`, found a number");
    check("'b: 1'", "{b: 1}", "data.a.yaml: expected a string in `data.a.yaml`, found a map");
    check(
        "a.yaml",
        "conf/a.yaml",
        "data.conf/a.yaml: `conf/a.yaml` cannot be a key: only letters, digits, `-`, `_` and `.` are allowed",
    );
    check("a.yaml", "..a", "data...a: `..a` cannot be a key: it is `.` or starts with `..`");
    check("aGk=", "hi!", "binaryData.logo: the value of `logo` in `binaryData` is not base64");
    check("logo", "a.yaml", "binaryData.a.yaml: `a.yaml` is a key of `data` and of `binaryData`");
    check("{a.yaml: 'b: 1', empty: }", "[a]", "data: expected a map in `data`, found a list");
    let large = "x".repeat((1 << 20) - 2);
    let of_size = |text: &str| of(&CONFIG_MAP.replace("b: 1", text));
    assert_eq!(of_size(&large), "");
    assert_eq!(
        of_size(&format!("{large}x")),
        ": the values take 1048577 bytes, and a ConfigMap holds 1048576"
    );
}

const ROLE_BINDING: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: store}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: store}
subjects: [{kind: Group, name: admins}, {kind: ServiceAccount, name: store, namespace: shop}]
";

#[test]
fn subjects_of_bindings() {
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        let binding = ROLE_BINDING.replacen("RoleBinding", kind, 1);
        let check = |from, to, expected| check(&binding, from, to, expected);
        let expected = match kind {
            "RoleBinding" => "",
            _ => "subjects[1].namespace: the ServiceAccount `store` has no `namespace`",
        };
        check(", namespace: shop", "", expected);
        check("shop", "''", expected);
        check("name: admins", "name: ''", "subjects[0].name: a subject has no `name`");
        check(
            "kind: Group",
            "kind: Groups",
            "subjects[0].kind: `Groups` is not a value that Kubernetes accepts here",
        );
    }
}

const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: secret}
type: kubernetes.io/tls
data: {tls.crt: aGk=, tls.key: ''}
stringData: {plain: 'not base64!'}
";

#[test]
fn secrets() {
    let check = |from: &str, to: &str, expected: &str| check(SECRET, from, to, expected);
    check("aGk=", "hi", "data.tls.crt: the value of `tls.crt` in `data` is not base64");
    check("aGk=", "true", "data.tls.crt: expected a string in `data.tls.crt`, found a boolean");
    check(
        "tls.key: ''",
        "other: ''",
        "type: a Secret of the type `kubernetes.io/tls` has the keys `tls.crt` and `tls.key`",
    );
    let lacks = |kind: &str, what: &str| {
        let kind = format!("kubernetes.io/{kind}");
        check("kubernetes.io/tls", &kind, &format!("type: a Secret of the type `{kind}` has {what}"));
    };
    lacks("basic-auth", "the key `username` or `password`");
    lacks("ssh-auth", "the key `ssh-privatekey`, which is not empty");
    lacks("dockerconfigjson", "the key `.dockerconfigjson` with a map in JSON");
    lacks("service-account-token", "the annotation `kubernetes.io/service-account.name`");
    // Line breaks do not count, nor do the last bits.
    assert_eq!(of(&SECRET.replace("aGk=", "\"aG\\nl=\\n\"")), "");
}

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: metrics}
spec:
  selector: {app: op}
  ports:
  - {name: https, port: 443, targetPort: https}
  - {name: dns, port: 443, protocol: UDP, targetPort: 53}
";

#[test]
fn services() {
    let check = |from, to, expected| check(SERVICE, from, to, expected);
    check("metrics", "9lives", "metadata.name: `9lives` cannot name a Service: it starts with a digit");
    check(", protocol: UDP", "", "spec.ports[1].port: two ports of the Service are 443");
    check("name: https, ", "", "spec.ports[0]: a port has no name, and the Service has several");
    check("name: dns", "name: https", "spec.ports[1].name: two ports of the Service are named `https`");
    check("443, targetPort: https", "0", "spec.ports[0].port: 0 is not a port");
    check(
        "port: 443, targetPort: https",
        "port: https",
        "spec.ports[0].port: `spec.ports[0].port`: expected an integer, found a string",
    );
    check("53", "70000", "spec.ports[1].targetPort: 70000 is not a port");
    check("53", "'53'", "spec.ports[1].targetPort: `53` cannot name a port: it has no lower case letter");
    check("UDP", "udp", "spec.ports[1].protocol: `udp` is not a value that Kubernetes accepts here");
    check(
        "53",
        "53, nodePort: 30000",
        "spec.ports[1].nodePort: a Service of the type `ClusterIP` has no `nodePort`",
    );
    check(
        "app: op",
        "app: true",
        "spec.selector.app: expected a string in `spec.selector.app`, found a boolean",
    );
    check(
        "selector: {app: op}",
        "externalTrafficPolicy: Local",
        "spec.externalTrafficPolicy: `externalTrafficPolicy` is set, and the type is `ClusterIP`",
    );
    check(
        "selector: {app: op}",
        "type: ExternalName",
        "spec.externalName: `` is not a name in DNS: it is empty",
    );
    let ports = SERVICE.find("  ports:").unwrap();
    let without = SERVICE[..ports].to_owned();
    assert_eq!(of(&without), "spec.ports: the Service has no ports");
    assert_eq!(of(&without.replace("selector:", "clusterIP: None\n  selector:")), "");
    assert_eq!(
        of("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"),
        "spec.ports: the Service has no ports"
    );
}

const BUDGET: &str = "\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: op}
spec: {minAvailable: 1, selector: {matchLabels: {app: op}}}
";

#[test]
fn budgets() {
    let check = |from, to, expected| check(BUDGET, from, to, expected);
    check(
        "minAvailable: 1",
        "minAvailable: 1, maxUnavailable: 1",
        "spec.maxUnavailable: both `minAvailable` and `maxUnavailable` are set, expected one of them",
    );
    check("Available: 1", "Available: -1", "spec.minAvailable: `minAvailable` is -1, expected 0 or more");
    check(
        "Available: 1",
        "Available: '1'",
        "spec.minAvailable: `minAvailable` is `1`, expected a number or a percentage",
    );
    check(
        "Available: 1",
        "Available: 101%",
        "spec.minAvailable: `minAvailable` is `101%`, expected a number or a percentage",
    );
    check(
        "matchLabels: {app: op}",
        "matchExpressions: [{key: app, operator: In}]",
        "spec.selector.matchExpressions[0].values: `In` has no `values`",
    );
    assert_eq!(of(&BUDGET.replace("Available: 1", "Available: 50%")), "");
}

#[test]
fn priorities() {
    let good =
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: op}\nvalue: 1000000000\n";
    check(
        good,
        "1000000000",
        "1000000001",
        "value: the priority is 1000000001, and 1000000000 is the highest allowed",
    );
    check(
        good,
        "name: op",
        "name: system-op",
        "metadata.name: `system-op`: names that start with `system-` are the cluster's own",
    );
    check(
        good,
        "value",
        "preemptionPolicy: Always\nvalue",
        "preemptionPolicy: `Always` is not a value that Kubernetes accepts here",
    );
}

#[test]
fn network_policies() {
    let good = "\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: op}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: ['10.1.0.0/16']}}], ports: [{port: 80, endPort: 90}]}]
  egress: [{}]
";
    let check = |from, to, expected| check(good, from, to, expected);
    check("{podSelector: {}}", "{}", "spec.ingress[0].from[0]: a peer of the NetworkPolicy is empty");
    check(
        "{ipBlock",
        "{podSelector: {}, ipBlock",
        "spec.ingress[0].from[1]: a peer has both `ipBlock` and a selector",
    );
    check(
        "10.0.0.0/8",
        "10.0.0.0",
        "spec.ingress[0].from[1].ipBlock.cidr: `10.0.0.0` is not a block of addresses",
    );
    check("90", "70", "spec.ingress[0].ports[0].endPort: `endPort` 70 is before `port` 80");
    check(
        "port: 80",
        "port: http",
        "spec.ingress[0].ports[0].endPort: `endPort` is set, and `port` is not a number",
    );
    check("Egress]", "egress]", "spec.policyTypes[1]: `egress` is not a value that Kubernetes accepts here");
}
