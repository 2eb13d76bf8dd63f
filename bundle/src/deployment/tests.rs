//! A Deployment that Kubernetes takes, and what is refused of it after one change.

use super::*;
use crate::yaml;
use crate::yaml::fit::path;

const GOOD: &str = "\
replicas: 1
selector: {matchLabels: {app: op}}
template:
  metadata: {labels: {app: op}}
  spec:
    serviceAccountName: op
    volumes: [{name: cache, emptyDir: {}}]
    containers:
    - name: manager
      image: quay.io/example/op:v1
      ports: [{name: https, containerPort: 8443}]
      env: [{name: A, value: b}]
      volumeMounts: [{name: cache, mountPath: /cache}]
      resources: {requests: {cpu: 10m}, limits: {cpu: '1'}}
";

/// What is said after a text was replaced by another: `PATH: MESSAGE`.
#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    let document = yaml::first_document(&text).unwrap();
    let found: Vec<_> = refused(&document.root, None)
        .iter()
        .map(|own| format!("{}: {}", path(&own.path), own.message))
        .collect();
    assert_eq!(found.join("\n"), expected, "{text}");
}

#[test]
fn what_kubernetes_takes_is_not_refused() {
    check("replicas: 1", "replicas: 0", "");
    check(
        "selector: {matchLabels: {app: op}}",
        "selector: {matchExpressions: [{key: app, operator: In, values: [op]}]}",
        "",
    );
    check(
        "ports: [{name: https, containerPort: 8443}]",
        "ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]",
        "",
    );
    check("limits: {cpu: '1'}", "limits: {cpu: 10m}", "");
}

#[test]
fn fields_of_the_deployment() {
    check("replicas: 1", "replicas: -1", "replicas: `replicas` is -1, expected 0 or more");
    check(
        "replicas: 1",
        "progressDeadlineSeconds: 5\nminReadySeconds: 5",
        "progressDeadlineSeconds: the progress deadline of 5 s is not longer than `minReadySeconds`, 5 s",
    );
    check(
        "replicas: 1",
        "strategy: {type: Roll}",
        "strategy.type: `Roll` is not a value that Kubernetes accepts here",
    );
    check(
        "replicas: 1",
        "strategy: {type: Recreate, rollingUpdate: {}}",
        "strategy.rollingUpdate: `rollingUpdate` is set, and the strategy is `Recreate`",
    );
}

#[test]
fn the_selector_and_the_labels() {
    check(
        "selector: {matchLabels: {app: op}}",
        "paused: false",
        "selector: the Deployment has no selector for its pods",
    );
    check(
        "{labels: {app: op}}",
        "{labels: {app: other}}",
        "selector: the selector does not select the Deployment's own pods: they have `app: other`",
    );
    check(
        "{labels: {app: op}}",
        "{}",
        "selector: the selector does not select the Deployment's own pods: they have no label `app`",
    );
    check(
        "{labels: {app: op}}",
        "{labels: {app: op, b: 'not good'}}",
        "template.metadata.labels: `not good` does not fit into a label: only letters, digits, `-`, `_` and `.` are allowed",
    );
}

#[test]
fn pods() {
    check(
        "serviceAccountName: op",
        "restartPolicy: Never",
        "template.spec.restartPolicy: the restart policy of a Deployment's pods is always `Always`, not `Never`",
    );
    check(
        "serviceAccountName: op",
        "activeDeadlineSeconds: 5",
        "template.spec.activeDeadlineSeconds: the pods of a Deployment cannot have a deadline",
    );
    check(
        "serviceAccountName: op",
        "serviceAccountName: Op",
        "template.spec.serviceAccountName: `Op` cannot name a service account: only lower case letters, digits, `-` and `.` are allowed",
    );
    check(
        "emptyDir: {}}]",
        "emptyDir: {}}, {name: cache, emptyDir: {}}]",
        "template.spec.volumes[1].name: two volumes are named `cache`",
    );
    check(
        "    - name: manager",
        "    - name: Manager",
        "template.spec.containers[0].name: `Manager` cannot name a container: only lower case letters, digits and `-` are allowed",
    );
    check(
        "    containers:\n",
        "    initContainers: [{name: manager, image: a}]\n    containers:\n",
        "template.spec.containers[0].name: two containers are named `manager`",
    );
}

#[test]
fn containers() {
    let at = "template.spec.containers[0]";
    let says = |text: &str| format!("{at}.{text}");
    check(
        "image: quay.io/example/op:v1",
        "imagePullPolicy: Always",
        &says("image: the container `manager` has no image"),
    );
    let why = "Example:v1".parse::<ImageRef>().unwrap_err().why;
    check(
        "quay.io/example/op:v1",
        "Example:v1",
        &says(&format!("image: `Example:v1` is not an image: {why}")),
    );
    check(
        "env:",
        "imagePullPolicy: Sometimes\n      env:",
        &says("imagePullPolicy: `Sometimes` is not a value that Kubernetes accepts here"),
    );
    check(
        "value: b",
        "value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}",
        &says("env[0].valueFrom: the variable `A` has both `value` and `valueFrom`"),
    );
    check(
        "{name: cache, mountPath: /cache}",
        "{name: other, mountPath: /cache}",
        &says(
            "volumeMounts[0].name: the container `manager` mounts the volume `other`, which the pods do not have",
        ),
    );
    check(
        "mountPath: /cache}",
        "mountPath: /cache}, {name: cache, mountPath: /cache}",
        &says("volumeMounts[1].mountPath: two volumes are mounted at `/cache`"),
    );
    check(
        "containerPort: 8443",
        "containerPort: 84430",
        &says("ports[0].containerPort: 84430 is not a port"),
    );
    check(
        "name: https,",
        "name: a-very-long-name,",
        &says("ports[0].name: `a-very-long-name` cannot name a port: it is longer than 15 characters"),
    );
    check(
        "containerPort: 8443}",
        "containerPort: 8443}, {name: https, containerPort: 1}",
        &says("ports[1].name: two ports of the container are named `https`"),
    );
    check(
        "cpu: 10m",
        "cpu: '2'",
        &says("resources.requests: the container requests `2` of cpu, and its limit is `1`"),
    );
    check("cpu: 10m", "cpu: -1", &says("resources.requests: `cpu: -1` is negative"));
    check("cpu: 10m", "cpu: much", &says("resources.requests: `cpu: much` is not a quantity"));
}

/// Go's YAML takes them for text, the API server does not.
#[test]
fn scalars_that_are_no_text() {
    let at = "template.spec.containers[0]";
    let says = |path: &str, found: &str| format!("{path}: expected a string in `{path}`, found {found}");
    check("value: b", "value: 5", &says(&format!("{at}.env[0].value"), "a number"));
    check("env:", "args: [--port, 8080]\n      env:", &says(&format!("{at}.args[1]"), "a number"));
    check(
        "serviceAccountName: op",
        "nodeSelector: {dedicated: true}",
        &says("template.spec.nodeSelector.dedicated", "a boolean"),
    );
    check(
        "{labels: {app: op}}",
        "{labels: {app: op, v: 1.0}, annotations: {x: yes}}",
        &[
            says("template.metadata.labels.v", "a number"),
            says("template.metadata.annotations.x", "a boolean"),
        ]
        .join("\n"),
    );
    // Quantities and ports are numbers or text.
    check("limits: {cpu: '1'}", "limits: {cpu: 1}", "");
    check("emptyDir: {}}]", "emptyDir: {sizeLimit: 1000}}]", "");
    check("env:", "livenessProbe: {tcpSocket: {port: https}}\n      env:", "");
    check("env:", "livenessProbe: {tcpSocket: {port: 8443}}\n      env:", "");
    check("value: b", "value: null", "");
}

#[test]
fn volumes_have_one_source() {
    check(
        "emptyDir: {}}]",
        "emptyDir: {}, secret: {secretName: x}}]",
        "template.spec.volumes[0]: the volume `cache` has 2 sources, expected one: `emptyDir`, `secret`",
    );
    check(", emptyDir: {}}]", "}]", "");
}

#[test]
fn where_pods_may_run() {
    let required = |operator: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: a, operator: {operator}, values: [b]}}]}}]}}}}}}"
        )
    };
    check("serviceAccountName: op", &required("In"), "");
    check(
        "serviceAccountName: op",
        &required("Is"),
        "template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: `Is` is not a value that Kubernetes accepts here",
    );
    check("serviceAccountName: op", "tolerations: [{operator: Exists, effect: ''}, {key: a, value: b}]", "");
    check(
        "serviceAccountName: op",
        "tolerations: [{operator: Foo}, {operator: Exists, effect: Never}]",
        "template.spec.tolerations[0].operator: `Foo` is not a value that Kubernetes accepts here\n\
         template.spec.tolerations[1].effect: `Never` is not a value that Kubernetes accepts here",
    );
}

#[test]
fn probes() {
    let probe = |probe: &str, says: &str| {
        let at = "template.spec.containers[0].livenessProbe";
        let says = if says.is_empty() { String::new() } else { format!("{at}{says}") };
        check("env:", &format!("livenessProbe: {probe}\n      env:"), &says);
    };
    probe("{httpGet: {path: /, port: 8081}}", "");
    probe("{exec: {command: [a]}}", "");
    probe("{}", ": `livenessProbe` has no handler");
    probe("{periodSeconds: 5}", ": `livenessProbe` has no handler");
    probe(
        "{exec: {command: [a]}, grpc: {port: 1}}",
        ": `livenessProbe` has `exec` and `grpc`, expected one of them",
    );
    probe("{httpGet: {path: /}}", ".httpGet.port: the probe has no port");
    probe("{grpc: {port: 70000}}", ".grpc.port: 70000 is not a port");
    probe("{httpGet: {port: '80'}}", ".httpGet.port: `80` cannot name a port: it has no lower case letter");
    probe(
        "{tcpSocket: {port: http}}",
        ".tcpSocket.port: the probe uses the port `http`, which the container does not have",
    );
}

#[test]
fn nothing_to_run() {
    let document = yaml::first_document(
        "selector: {matchLabels: {a: b}}\ntemplate: {metadata: {labels: {a: b}}, spec: {}}",
    )
    .unwrap();
    assert_eq!(refused(&document.root, None)[0].message, "the pods have no containers");
}
