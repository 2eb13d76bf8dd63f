//! What every account may do before, as Kubernetes grants it from the manifests, and after, as OLM grants it from the bundle:
//! the same, or a finding says what differs.

use std::collections::BTreeSet;

use super::*;

const NAMESPACES: [&str; 3] = ["system", "other", "kube-system"];
const ACCOUNTS: [&str; 4] = ["a", "b", "default", "somebody"];
const RESOURCES: [&str; 4] = ["pods", "secrets", "leases", "nodes"];
/// What the name of a service account's user starts with.
const USER: &str = "system:serviceaccount:";
/// What aggregated roles collect.
const LABEL: &str = "example.com/part";

/// One thing that one account, user or group may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    kind: String,
    namespace: String,
    name: String,
    /// The namespace that it holds in, empty for all of them.
    scope: String,
    /// The rule, or the name of a role that is not here.
    what: String,
}

/// Numbers that a test case is made of, so that proptest can shrink them.
type Deployment = (u8, u8, u8, bool);
type Role = (bool, u8, u8, Vec<u8>, bool, bool);
type Binding = (bool, u8, bool, u8, Vec<(u8, u8)>);

fn cases() -> impl Strategy<Value = Vec<Value>> {
    let deployment = (0..4u8, 0..8u8, 0..3u8, any::<bool>());
    let rules = prop::collection::vec(0..5u8, 1..6);
    let role = (any::<bool>(), 0..5u8, 0..3u8, rules, any::<bool>(), prop::bool::weighted(0.2));
    let subjects = prop::collection::vec((0..9u8, 0..5u8), 1..4);
    let binding = (any::<bool>(), 0..6u8, any::<bool>(), 0..4u8, subjects);
    (
        prop::collection::vec(deployment, 1..4),
        prop::collection::vec(role, 0..6),
        prop::collection::vec(binding, 0..7),
    )
        .prop_map(|(deployments, roles, bindings)| manifests(&deployments, &roles, &bindings))
}

/// A namespace by number; small numbers, which shrinking looks for, and large ones are `system`.
fn namespace(number: u8) -> &'static str {
    NAMESPACES.get(usize::from(number)).unwrap_or(&NAMESPACES[0])
}

fn manifests(deployments: &[Deployment], roles: &[Role], bindings: &[Binding]) -> Vec<Value> {
    let mut all = Vec::<Value>::new();
    let mut add = |object: Value| {
        let id = |object: &Value| {
            (
                object["kind"].clone(),
                object["metadata"].pointer("/namespace").cloned(),
                object["metadata"]["name"].clone(),
            )
        };
        if all.iter().all(|own| id(own) != id(&object)) {
            all.push(object);
        }
    };
    for (name, at, account, old) in deployments {
        let mut pod = json!({"containers": [{"name": "manager", "image": "quay.io/x/y:v1"}]});
        let key = if *old { "serviceAccount" } else { "serviceAccountName" };
        if *account < 2 {
            pod[key] = json!(ACCOUNTS[usize::from(*account)]);
        }
        let at = if *at == 1 { "other" } else { "system" };
        add(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("d{name}"), "namespace": at},
            "spec": {"selector": {"matchLabels": {"app": name.to_string()}},
                     "template": {"metadata": {"labels": {"app": name.to_string()}}, "spec": pod}}}),
        );
    }
    for (cluster, at, name, rules, part, aggregates) in roles {
        let rule = |number: &u8| match RESOURCES.get(usize::from(*number)) {
            Some(resource) => json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]}),
            None if *cluster => json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
            None => json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}),
        };
        let mut metadata = json!({ "name": format!("r{name}") });
        if !cluster {
            metadata["namespace"] = json!(namespace(*at));
        }
        if *part {
            metadata["labels"] = json!({ LABEL: "yes" });
        }
        let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": if *cluster { "ClusterRole" } else { "Role" },
            "metadata": metadata, "rules": rules.iter().map(rule).collect::<Vec<_>>()});
        if *cluster && *aggregates {
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {LABEL: "yes"}}]});
            role["rules"] = json!([]);
        }
        add(role);
    }
    for (index, (cluster, at, cluster_role, role, subjects)) in bindings.iter().enumerate() {
        let mut metadata = json!({ "name": format!("b{index}") });
        if !cluster {
            metadata["namespace"] = json!(namespace(*at));
        }
        let role_kind = if *cluster || *cluster_role { "ClusterRole" } else { "Role" };
        let subject = |(account, at): &(u8, u8)| match ACCOUNTS.get(usize::from(*account)) {
            Some(name) => json!({"kind": "ServiceAccount", "name": name, "namespace": namespace(*at)}),
            None => match ACCOUNTS.get(usize::from(*account) - ACCOUNTS.len()) {
                Some(name) => json!({"kind": "User", "name": format!("{USER}{}:{name}", namespace(*at)),
                    "apiGroup": "rbac.authorization.k8s.io"}),
                None => json!({"kind": "Group", "name": "admins", "apiGroup": "rbac.authorization.k8s.io"}),
            },
        };
        add(json!({"apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": if *cluster { "ClusterRoleBinding" } else { "RoleBinding" }, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": format!("r{role}")},
            "subjects": subjects.iter().map(subject).collect::<Vec<_>>()}));
    }
    all
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What Kubernetes grants from these objects.
fn granted(objects: &[Value]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for binding in objects.iter().filter(|object| text(object, "/kind").ends_with("RoleBinding")) {
        let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let scope = text(binding, "/metadata/namespace");
        let role = objects.iter().find(|role| {
            let near = kind == "ClusterRole" || text(role, "/metadata/namespace") == scope;
            near && text(role, "/kind") == kind && text(role, "/metadata/name") == name
        });
        let rules = match role {
            None => vec![format!("{kind}/{name}")],
            Some(role) if role.get("aggregationRule").is_some() => {
                let parts = objects.iter().filter(|part| {
                    let labels = &part["metadata"]["labels"];
                    text(part, "/kind") == "ClusterRole" && labels[LABEL] == "yes"
                });
                parts.flat_map(|part| list(part, "rules")).map(Value::to_string).collect()
            }
            Some(role) => list(role, "rules").iter().map(Value::to_string).collect(),
        };
        let rules = rules.into_iter().filter(|rule| scope.is_empty() || !rule.contains("nonResourceURLs"));
        for what in rules {
            for subject in list(binding, "subjects") {
                let own = |key: &str| text(subject, key).to_owned();
                let (mut kind, mut namespace, mut name) = (own("/kind"), own("/namespace"), own("/name"));
                if let Some((of, account)) =
                    text(subject, "/name").strip_prefix(USER).and_then(|own| own.split_once(':'))
                {
                    (kind, namespace, name) =
                        ("ServiceAccount".to_owned(), of.to_owned(), account.to_owned());
                }
                rights.insert(Right { kind, namespace, name, scope: scope.to_owned(), what: what.clone() });
            }
        }
    }
    rights
}

/// What OLM makes of a bundle that it installs into a namespace: all objects there, and a role for every entry of the
/// ClusterServiceVersion.
fn installed(files: &BTreeMap<String, String>, home: &str) -> Vec<Value> {
    let read = |text: &String| crate::yaml::first_document(text).unwrap().root.to_json();
    let manifests = files.iter().filter(|(path, _)| path.starts_with("manifests/"));
    let mut objects: Vec<Value> = manifests.map(|(_, text)| read(text)).collect();
    let csv = objects.iter().find(|object| text(object, "/kind") == crate::csv::KIND).cloned().unwrap();
    for object in &mut objects {
        if !text(object, "/kind").starts_with("Cluster") {
            object["metadata"]["namespace"] = json!(home);
        }
    }
    for (key, prefix) in [("permissions", ""), ("clusterPermissions", "Cluster")] {
        for (at, entry) in list(&csv["spec"]["install"]["spec"], key).iter().enumerate() {
            let mut metadata = json!({ "name": format!("olm-{at}") });
            if prefix.is_empty() {
                metadata["namespace"] = json!(home);
            }
            objects.push(
                json!({"kind": format!("{prefix}Role"), "metadata": metadata, "rules": entry["rules"]}),
            );
            objects.push(json!({"kind": format!("{prefix}RoleBinding"), "metadata": metadata,
                "roleRef": {"kind": format!("{prefix}Role"), "name": metadata["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": entry["serviceAccountName"], "namespace": home}]}));
        }
    }
    objects
}

/// The namespace of a Deployment and the service account of its pods.
fn runs_as(deployment: &Value) -> (String, String) {
    let pod = "/spec/template/spec";
    let named = [format!("{pod}/serviceAccountName"), format!("{pod}/serviceAccount")];
    let mut named = named.iter().map(|path| text(deployment, path)).filter(|name| !name.is_empty());
    (text(deployment, "/metadata/namespace").to_owned(), named.next().unwrap_or("default").to_owned())
}

/// Whether a finding says that this right is not the same any more.
fn is_said(right: &Right, findings: &[Finding]) -> bool {
    findings.iter().filter(|finding| finding.code == &codes::RIGHTS_LOST).any(|finding| {
        let rule: Value = serde_json::from_str(&right.what).unwrap_or_default();
        let resource = rule.pointer("/resources/0").or(rule.pointer("/nonResourceURLs/0"));
        let resource = resource.and_then(Value::as_str).map(|resource| format!("`{resource}`"));
        let what = resource.is_some_and(|resource| finding.message.contains(&resource));
        let role = finding.message.contains("allows");
        finding.message.contains(&format!("`{}/{}`", right.kind, right.name)) && (what || role)
    })
}

fn check(manifests: &[Value]) -> Result<(), TestCaseError> {
    let texts: Vec<_> =
        manifests.iter().map(|object| crate::yaml::write::to_string(object).unwrap()).collect();
    let (files, findings) = bundle(&texts);
    let deployments = manifests.iter().filter(|object| object["kind"] == "Deployment");
    let accounts: BTreeSet<_> = deployments.clone().map(runs_as).collect();
    let names: BTreeSet<_> = deployments.clone().map(|own| text(own, "/metadata/name")).collect();
    if names.len() < deployments.clone().count() {
        prop_assert!(findings.iter().any(|finding| finding.code == &codes::DUPLICATE_OBJECT));
        prop_assert!(files.is_empty());
        return Ok(());
    }
    prop_assert!(!files.is_empty(), "{findings:?}");
    let count = |namespace: &&&str| {
        let here = |own: &&Value| text(own, "/metadata/namespace") == **namespace;
        deployments.clone().filter(here).count()
    };
    let homes: BTreeSet<&str> = deployments.clone().map(|own| text(own, "/metadata/namespace")).collect();
    let most = homes.iter().map(|own| count(&own)).max().unwrap();
    let home = *homes.iter().find(|own| count(own) == most).unwrap();

    // The accounts of the operator are all at home afterwards, and so is what they may do in any of its namespaces.
    let is_own = |right: &Right| {
        right.kind == "ServiceAccount" && accounts.contains(&(right.namespace.clone(), right.name.clone()))
    };
    let moved = |right: Right| {
        let (mut namespace, mut scope) = (right.namespace.clone(), right.scope.clone());
        if is_own(&right) {
            namespace = home.to_owned();
        }
        if homes.contains(scope.as_str()) {
            scope = home.to_owned();
        }
        Right { namespace, scope, ..right }
    };
    let before: BTreeSet<Right> = granted(manifests).into_iter().map(moved).collect();
    let after = granted(&installed(&files, home)).into_iter();
    // OLM makes no accounts in other namespaces than the operator's.
    let after: BTreeSet<Right> = after.filter(|right| !is_own(right) || right.namespace == home).collect();
    for right in before.symmetric_difference(&after) {
        prop_assert!(is_said(right, &findings), "{right:?}\n{findings:#?}\n{files:#?}");
    }
    for (namespace, name) in &accounts {
        let other = accounts.iter().any(|(own, same)| same == name && own != namespace);
        let said = findings.iter().any(|finding| finding.message.contains("become one"));
        prop_assert!(!other || said, "{findings:#?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn rights_stay_or_a_finding_says_what_differs(manifests in cases()) {
        check(&manifests)?;
    }
}
