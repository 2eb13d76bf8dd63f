//! What a version reaches that its list of containers and permissions does not show: images of init containers and operands, wider
//! webhooks, and rights that come as objects of the bundle.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Change, PlannedObject};
use crate::lifecycle::api::Key;

/// The images that a ClusterServiceVersion runs or hands to its operator, besides those of its containers.
pub(super) fn images(csv: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for deployment in list(csv, "/spec/install/spec/deployments") {
        for kind in ["initContainers", "containers"] {
            for container in list(deployment, &format!("/spec/template/spec/{kind}")) {
                let operands =
                    list(container, "/env").filter(|one| text(one, "name").starts_with("RELATED_IMAGE_"));
                found.extend(operands.map(|one| text(one, "value").to_owned()));
                found.insert(text(container, "image").to_owned());
            }
        }
    }
    found.remove("");
    found
}

/// The webhooks of a version that the replaced one does not have, or that it has for less, a line each.
pub(super) fn webhooks(old: Option<&Value>, new: &Value) -> Vec<String> {
    let name = |one: &Value| format!("{} {}", text(one, "type"), text(one, "generateName"));
    let known: Vec<&Value> = old.into_iter().flat_map(|old| list(old, "/spec/webhookdefinitions")).collect();
    let mut found = BTreeSet::new();
    for webhook in list(new, "/spec/webhookdefinitions") {
        let same: Vec<&Value> = known.iter().copied().filter(|one| name(one) == name(webhook)).collect();
        let Some(before) = same.first() else {
            found.insert(name(webhook));
            continue;
        };
        let rules = || same.iter().flat_map(|one| list(one, "/rules"));
        let wider = list(webhook, "/rules").find(|rule| !is_covered(rule, rules()));
        if let Some(rule) = wider {
            found.insert(format!("{}, which now covers more: {}", name(webhook), shown(rule)));
        } else if webhook["objectSelector"] != before["objectSelector"] {
            found.insert(format!("{}, which now selects other objects", name(webhook)));
        }
    }
    found.into_iter().collect()
}

/// Whether the rules of a webhook have all that another one names.
fn is_covered<'v>(rule: &Value, known: impl Iterator<Item = &'v Value>) -> bool {
    let known: Vec<&Value> = known.collect();
    let all = |field: &str| texts(rule, field);
    let has = |one: &Value, field: &str, value: &str| {
        let any: &[&str] = if field == "resources" && value.contains('/') { &["*/*"] } else { &["*", "*/*"] };
        texts(one, field).iter().any(|known| known == value || any.contains(&known.as_str()))
    };
    let has_scope =
        |one: &Value| matches!(text(one, "scope"), "" | "*") || text(one, "scope") == text(rule, "scope");
    all("operations").iter().all(|operation| {
        all("apiGroups").iter().all(|group| {
            all("apiVersions").iter().all(|version| {
                all("resources").iter().all(|resource| {
                    known.iter().any(|one| {
                        has(one, "operations", operation)
                            && has(one, "apiGroups", group)
                            && has(one, "apiVersions", version)
                            && has(one, "resources", resource)
                            && has_scope(one)
                    })
                })
            })
        })
    })
}

/// The rights outside the namespace of a plan that its objects give, a line each, apart from those that OLM makes of the permissions of
/// the ClusterServiceVersion. Objects that the cluster has already as they are, or with more, give nothing new.
pub(super) fn rights(csv: &Value, namespace: &str, objects: &[PlannedObject]) -> Vec<String> {
    let permissions: Vec<&Value> = list(csv, "/spec/install/spec/clusterPermissions").collect();
    let of_permissions = |role: &Value| permissions.iter().find(|one| rules(one) == rules(role)).copied();
    let made: Vec<(String, &str)> = objects
        .iter()
        .filter(|(object, ..)| object["kind"] == "ClusterRole" && object["aggregationRule"].is_null())
        .filter_map(|(role, ..)| {
            Some((Key::of(role).name, text(of_permissions(role)?, "serviceAccountName")))
        })
        .collect();
    let mut found = Vec::new();
    for (object, change, live) in objects.iter().filter(|(_, change, _)| *change != Change::Keep) {
        let key = Key::of(object);
        let gained = gained(object, live.as_ref());
        if live.is_some() && gained.is_empty() && has_same_role(object, live.as_ref()) {
            continue;
        }
        let subjects = || list(object, "/subjects").map(subject).collect::<Vec<_>>().join(", ");
        let verb = if *change == Change::Create { "new" } else { "changed" };
        let role = object.pointer("/roleRef/name").and_then(Value::as_str).unwrap_or("");
        match key.kind.as_str() {
            "ClusterRole" if !made.iter().any(|(name, _)| *name == key.name) => {
                let all: Vec<String> = gained.into_iter().map(shown).collect();
                found.push(format!(
                    "the bundle has the {verb} ClusterRole `{}`: {}",
                    key.name,
                    all.join("; ")
                ));
            }
            "ClusterRoleBinding" => {
                let is_made = made.iter().any(|(name, account)| {
                    name == role
                        && list(object, "/subjects").all(|one| {
                            text(one, "kind") == "ServiceAccount"
                                && text(one, "name") == *account
                                && text(one, "namespace") == namespace
                        })
                });
                if !is_made {
                    found.push(format!(
                        "the bundle has the {verb} ClusterRoleBinding `{}`: {} may do in all namespaces what `{role}` allows",
                        key.name,
                        subjects()
                    ));
                }
            }
            "Role" | "RoleBinding" if !key.namespace.is_empty() && key.namespace != namespace => {
                found.push(format!(
                    "the bundle has the {verb} {} `{}` in the namespace `{}`",
                    key.kind, key.name, key.namespace
                ));
            }
            _ => {}
        }
    }
    found
}

/// What ClusterRoles and ClusterRoleBindings of a plan take away from those that the cluster has, a line each.
pub(super) fn lost_rights(objects: &[PlannedObject]) -> Vec<String> {
    let changed = objects.iter().filter(|(_, change, _)| *change == Change::Change);
    let lost = changed.filter_map(|(object, _, live)| {
        let live = live.as_ref()?;
        let key = Key::of(object);
        let lost = gained(live, Some(object));
        let all = || lost.iter().map(|one| shown(one)).collect::<Vec<_>>().join("; ");
        let names = || lost.iter().map(|one| subject(one)).collect::<Vec<_>>().join(", ");
        match key.kind.as_str() {
            _ if lost.is_empty() => None,
            "ClusterRole" => Some(format!("the ClusterRole `{}` no longer allows {}", key.name, all())),
            "ClusterRoleBinding" => {
                Some(format!("the ClusterRoleBinding `{}` no longer names {}", key.name, names()))
            }
            _ => None,
        }
    });
    lost.collect()
}

/// The rules of a role, or the subjects of a binding, that another state of it does not have.
fn gained<'v>(object: &'v Value, other: Option<&Value>) -> Vec<&'v Value> {
    let before = |path: &str| -> Vec<Value> {
        other.into_iter().flat_map(|other| list(other, path)).cloned().collect()
    };
    let (rules, subjects) = (before("/rules"), before("/subjects"));
    let known = |one: &Value| {
        let same = |other: &Value| {
            ["kind", "name", "namespace"].iter().all(|key| text(one, key) == text(other, key))
        };
        subjects.iter().any(same)
    };
    let new_rules = list(object, "/rules").filter(|rule| !is_allowed(rule, &rules));
    new_rules.chain(list(object, "/subjects").filter(|one| !known(one))).collect()
}

/// Whether an object binds the same role as another state of it; one that is no binding does.
fn has_same_role(object: &Value, other: Option<&Value>) -> bool {
    other.is_none_or(|other| {
        object.pointer("/roleRef/name") == other.pointer("/roleRef/name")
            && object.pointer("/roleRef/kind") == other.pointer("/roleRef/kind")
            && object["aggregationRule"] == other["aggregationRule"]
    })
}

/// Whether rules allow everything that a rule does.
fn is_allowed(rule: &Value, by: &[Value]) -> bool {
    let covers = |one: &Value, field: &str, value: &str| {
        texts(one, field).iter().any(|own| own == "*" || own == value)
    };
    let names = texts(rule, "resourceNames");
    let has_names = |one: &Value| {
        let own = texts(one, "resourceNames");
        own.is_empty() || !names.is_empty() && names.iter().all(|name| own.contains(name))
    };
    texts(rule, "verbs").iter().all(|verb| {
        let rules = || by.iter().filter(|one| covers(one, "verbs", verb) && has_names(one));
        let resources = texts(rule, "apiGroups").iter().all(|group| {
            texts(rule, "resources").iter().all(|resource| {
                rules().any(|one| covers(one, "apiGroups", group) && covers(one, "resources", resource))
            })
        });
        let urls = texts(rule, "nonResourceURLs");
        resources && urls.iter().all(|url| rules().any(|one| covers(one, "nonResourceURLs", url)))
    })
}

fn subject(one: &Value) -> String {
    format!("{} `{}`", text(one, "kind"), text(one, "name"))
}

/// Rules without what is empty, so that those of a role can be compared with those that it was made from.
fn rules(of: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = list(of, "/rules").cloned().collect();
    for rule in all.iter_mut().filter_map(Value::as_object_mut) {
        rule.retain(|_, value| value.as_array().is_some_and(|list| !list.is_empty()));
    }
    all
}

/// A rule of a role or of a webhook, in a few words.
fn shown(rule: &Value) -> String {
    let all = |field: &str| texts(rule, field).join(", ");
    let what = [all("resources"), all("nonResourceURLs")].into_iter().filter(|text| !text.is_empty());
    let groups: Vec<String> =
        texts(rule, "apiGroups").into_iter().filter(|group| !group.is_empty()).collect();
    let of = if groups.is_empty() { String::new() } else { format!(" of {}", groups.join(", ")) };
    let verbs = [all("verbs"), all("operations")].concat();
    format!("`{}`{of} ({verbs})", what.collect::<Vec<_>>().join(", "))
}

fn list<'v>(value: &'v Value, path: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or("")
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    value[field].as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn webhook(rules: Value) -> Value {
        json!({"spec": {"webhookdefinitions": [{"type": "Validating", "generateName": "v", "rules": rules}]}})
    }

    fn rule(operations: &[&str], groups: &[&str], resources: &[&str]) -> Value {
        json!({"operations": operations, "apiGroups": groups, "apiVersions": ["v1"], "resources": resources})
    }

    #[test]
    fn a_webhook_that_grows_counts_as_new() {
        let narrow = webhook(json!([rule(&["CREATE", "UPDATE"], &["a.com"], &["as"])]));
        assert_eq!(webhooks(None, &narrow), ["Validating v"]);
        assert_eq!(webhooks(Some(&narrow), &narrow), [""; 0]);
        let fewer = webhook(json!([rule(&["CREATE"], &["a.com"], &["as"])]));
        assert_eq!(webhooks(Some(&narrow), &fewer), [""; 0]);
        let split =
            webhook(json!([rule(&["CREATE"], &["a.com"], &["as"]), rule(&["UPDATE"], &["a.com"], &["as"])]));
        assert_eq!(webhooks(Some(&split), &narrow), [""; 0]);
        let wide = webhook(json!([rule(&["*"], &["*"], &["*/*"])]));
        assert_eq!(webhooks(Some(&narrow), &wide), ["Validating v, which now covers more: `*/*` of * (*)"]);
        assert_eq!(webhooks(Some(&wide), &narrow), [""; 0]);
    }

    #[test]
    fn rights_that_come_as_objects_are_found() {
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        let csv = json!({"spec": {"install": {"spec": {"clusterPermissions": [{"serviceAccountName": "echo", "rules": rules}]}}}});
        let object = |kind: &str, name: &str, rest: Value| {
            let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
            object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            object
        };
        let bound = |role: &str, account: &str| json!({"roleRef": {"name": role}, "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "ns"}]});
        // What OLM makes of the permissions is known from them.
        let own = [
            (object("ClusterRole", "echo-1", json!({"rules": rules})), Change::Create, None),
            (object("ClusterRoleBinding", "echo-1", bound("echo-1", "echo")), Change::Create, None),
        ];
        assert_eq!(rights(&csv, "ns", &own), [""; 0]);
        let every = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
        let evil = [
            (object("ClusterRole", "evil", every), Change::Create, None),
            (
                object("ClusterRoleBinding", "evil", bound("cluster-admin", "echo")),
                Change::Change,
                Some(object("ClusterRoleBinding", "evil", bound("view", "echo"))),
            ),
            (object("ClusterRoleBinding", "old", bound("cluster-admin", "echo")), Change::Keep, None),
        ];
        assert_eq!(
            rights(&csv, "ns", &[&own[..], &evil].concat()),
            [
                "the bundle has the new ClusterRole `evil`: `*` of * (*)",
                "the bundle has the changed ClusterRoleBinding `evil`: ServiceAccount `echo` may do in all namespaces what `cluster-admin` allows",
            ]
        );
        // Another account is not meant by the permissions.
        let other = [
            own[0].clone(),
            (object("ClusterRoleBinding", "x", bound("echo-1", "default")), Change::Create, None),
        ];
        assert_eq!(rights(&csv, "ns", &other).len(), 1);
    }

    #[test]
    fn only_what_a_changed_role_gains_is_new() {
        let rule = |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
        let role = |rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "viewer"}, "rules": rules});
        let both = role(json!([rule("pods", &["get", "list"]), rule("secrets", &["get"])]));
        let pods = role(json!([rule("pods", &["get"])]));
        let fewer = [(pods.clone(), Change::Change, Some(both.clone()))];
        assert_eq!(rights(&json!({}), "ns", &fewer), [""; 0]);
        assert_eq!(
            lost_rights(&fewer),
            ["the ClusterRole `viewer` no longer allows `pods` (get, list); `secrets` (get)"]
        );
        let more = [(both, Change::Change, Some(pods))];
        assert_eq!(
            rights(&json!({}), "ns", &more),
            ["the bundle has the changed ClusterRole `viewer`: `pods` (get, list); `secrets` (get)"]
        );
        assert_eq!(lost_rights(&more), [""; 0]);
    }

    #[test]
    fn images_of_init_containers_and_operands_are_found() {
        let pod = json!({
            "initContainers": [{"image": "evil/miner:2"}],
            "containers": [{"image": "r/a:1", "env": [
                {"name": "RELATED_IMAGE_X", "value": "evil.example.org/y:1"}, {"name": "OTHER", "value": "z"},
            ]}],
        });
        let csv =
            json!({"spec": {"install": {"spec": {"deployments": [{"spec": {"template": {"spec": pod}}}]}}}});
        assert_eq!(
            images(&csv).into_iter().collect::<Vec<_>>(),
            ["evil.example.org/y:1", "evil/miner:2", "r/a:1"]
        );
    }
}
