//! Each verb with the rights that docs/operator-rights.yaml gives it, and no others.

use std::fs;
use std::path::Path;
use std::process::Command;

use olmkit::lifecycle::api::{Key, known};
use olmkit::lifecycle::cluster::Cluster as _;
use serde_json::{Value, json};

use super::{command, command_from, installed, run, text};
use crate::olm::{Olm, copy, inputs, prepare};
use crate::server::{ADMIN, OF_VERBS, Server};

const NAMESPACE: &str = "rights";

pub(super) fn each_verb_needs_just_the_rights_of_its_page() {
    let server = Server::start();
    prepare(&server);
    let _olm = Olm::start(&server, "01");
    let roles = grant(&server);
    let dir = tempfile::tempdir().unwrap();
    inline_catalog(dir.path());
    let backup = dir.path().join("backup").display().to_string();

    for (user, words) in [
        ("install", &["install", "demo", "--version", "0.1.0"][..]),
        ("view", &["status", "demo"]),
        ("view", &["list"]),
        ("view", &["describe", "demo"]),
        ("view", &["plan", "demo"]),
        ("view", &["doctor", "demo"]),
        ("approve", &["approve", "demo"]),
        ("upgrade", &["upgrade", "demo"]),
        ("rollback", &["rollback", "demo", "--to", "0.1.0", "--backup-dir", &backup]),
        ("uninstall", &["uninstall", "demo"]),
    ] {
        let settle = ["--settle", "1s"];
        let waits = user != "view" && user != "uninstall";
        let words = [words, &["-n", NAMESPACE], if waits { &settle[..] } else { &[] }].concat();
        let output =
            command_from(&dir.path().join("catalog"), &server.kubeconfig(user), &words).output().unwrap();
        // What may not be seen keeps nobody from finding what can be.
        let is_diagnosed = words[0] == "doctor" && text(&output).contains("waiting[approval-required]");
        assert!(output.status.success() || is_diagnosed, "{words:?}\n{}", text(&output));
        // What may not be looked at is named, and no obstacle.
        let unchecked = "not checked: custom resources of `demos.t01.example.com`: not allowed to list";
        let looks = ["plan", "upgrade"].contains(&words[0]);
        assert_eq!(text(&output).contains(unchecked), looks, "{words:?}\n{}", text(&output));
    }

    no_pods_no_rollback(&server, &dir.path().join("catalog"), &backup);

    // Whatever is taken away is named.
    run(&server, &["install", "demo", "--version", "0.1.0", "-n", NAMESPACE, "--settle", "1s"]);
    assert_eq!(installed(&server, NAMESPACE), "demo.v0.1.0");
    let view = roles.iter().find(|role| role["metadata"]["name"] == "olmkit-view").unwrap();
    for resource in
        ["subscriptions", "installplans", "clusterserviceversions", "operatorgroups", "operatorconditions"]
    {
        a_missing_rule_is_named(&server, view, resource);
    }
}

/// The catalog with the manifests of its bundles, which a rollback reads: there is no registry to pull them from.
fn inline_catalog(dir: &Path) {
    let catalog = fs::read_to_string(inputs("01").join("catalog-1/catalog.yaml")).unwrap();
    let (head, _) = catalog.split_once("---\nschema: olm.bundle\n").unwrap();
    let bundles = ["0.1.0", "0.2.0", "0.3.0"].map(|version| {
        let bundle = dir.join(version);
        copy(&inputs("01").join(format!("bundles/demo.v{version}")), &bundle);
        let csv = bundle.join("manifests/demo.clusterserviceversion.yaml");
        let text = fs::read_to_string(&csv).unwrap();
        let needs =
            "              - name: manager\n                envFrom: [{secretRef: {name: settings}}]\n";
        fs::write(&csv, text.replace("              - name: manager\n", needs)).unwrap();
        bundle
    });
    let rendered =
        Command::new(env!("CARGO_BIN_EXE_olmkit")).args(["catalog", "render"]).args(bundles).output();
    let rendered = rendered.unwrap();
    assert!(rendered.status.success(), "{}", text(&rendered));
    fs::create_dir(dir.join("catalog")).unwrap();
    fs::write(dir.join("catalog/head.yaml"), head).unwrap();
    fs::write(dir.join("catalog/bundles.yaml"), rendered.stdout).unwrap();
}

/// A rollback is refused while pods of the old version could not start; without the rights to find out, it says so and goes on.
fn no_pods_no_rollback(server: &Server, catalog: &Path, backup: &str) {
    let mut cluster = server.connect();
    run(server, &["install", "demo", "--version", "0.2.0", "-n", NAMESPACE, "--settle", "1s"]);
    let namespace = Key::new(&known::NAMESPACE, "", NAMESPACE);
    let mut enforce = |level: Value| {
        let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
        cluster.patch(&known::NAMESPACE, &namespace, &labels).unwrap();
    };
    let rolled_back = |user: &str| {
        let words =
            ["rollback", "demo", "--to", "0.1.0", "-n", NAMESPACE, "--backup-dir", backup, "--settle", "1s"];
        command_from(catalog, &server.kubeconfig(user), &words).output().unwrap()
    };
    let refused = |expected: &str| {
        let output = rolled_back(ADMIN);
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains(expected), "{expected}\n{said}");
        assert_eq!(installed(server, NAMESPACE), "demo.v0.2.0");
    };
    enforce(json!("restricted"));
    refused("pods of `demo.v0.1.0` would not start: they need the Secret `settings`, which does not exist");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "settings", "namespace": NAMESPACE}});
    server.connect().create(&known::SECRET, &secret).unwrap();
    refused("pods of `demo.v0.1.0` would be refused: ");
    enforce(Value::Null);
    let output = rolled_back("rollback");
    let unchecked = "not checked whether the old pods can start: not allowed to create `pods`";
    assert!(output.status.success() && text(&output).contains(unchecked), "{}", text(&output));
    assert_eq!(installed(server, NAMESPACE), "demo.v0.1.0");
    run(server, &["uninstall", "demo", "-n", NAMESPACE]);
}

/// Makes the roles of the page and binds each to the user of its verb.
fn grant(server: &Server) -> Vec<Value> {
    let mut cluster = server.connect();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    cluster.create(&known::NAMESPACE, &namespace).unwrap();
    let page = include_str!("../../docs/operator-rights.yaml");
    let roles: Vec<Value> =
        olmkit_bundle::yaml::documents(page).map(|document| document.unwrap().root.to_json()).collect();
    assert_eq!(roles.len(), 2 * OF_VERBS.len());
    for role in &roles {
        cluster.create(&known::CLUSTER_ROLE, role).unwrap();
        let name = role["metadata"]["name"].as_str().unwrap();
        let verb = name.trim_start_matches("olmkit-").trim_end_matches("-cluster");
        let (kind, resource) = match name.ends_with("-cluster") {
            true => ("ClusterRoleBinding", &*known::CLUSTER_ROLE_BINDING),
            false => ("RoleBinding", &*known::ROLE_BINDING),
        };
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": (kind == "RoleBinding").then_some(NAMESPACE)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": verb}],
        });
        cluster.create(resource, &binding).unwrap();
    }
    roles
}

/// Takes one resource out of a role for a while.
fn a_missing_rule_is_named(server: &Server, role: &Value, resource: &str) {
    let mut cluster = server.connect();
    let mut less = role["rules"].clone();
    for rule in less.as_array_mut().unwrap() {
        rule["resources"].as_array_mut().unwrap().retain(|found| found != resource);
    }
    let key = Key::of(role);
    cluster.patch(&known::CLUSTER_ROLE, &key, &json!({"rules": less})).unwrap();
    let rule = format!(
        "the rule `{{apiGroups: [\"operators.coreos.com\"], resources: [\"{resource}\"], verbs: [\"list\"]}}` is missing"
    );
    // The server notices a moment later.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    loop {
        let output = command(server, "view", &["status", "demo", "-n", NAMESPACE]).output().unwrap();
        if output.status.code() == Some(3) && text(&output).contains(&rule) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{}", text(&output));
    }
    cluster.patch(&known::CLUSTER_ROLE, &key, &json!({"rules": role["rules"]})).unwrap();
}
