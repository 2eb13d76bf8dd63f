//! The steps of an InstallPlan: the ClusterServiceVersion, the other manifests of its bundle, and the accounts and rights
//! that it asks for.

use std::collections::BTreeMap;

use olmkit_bundle::csv::{ClusterServiceVersion, Permissions};
use olmkit_bundle::kinds::SUPPORTED;
use serde_json::{Value, json};

use super::scope::Chosen;
use super::{Registry, names};
use crate::lifecycle::api::{Key, label};
use crate::lifecycle::offer::optional;
use crate::lifecycle::patch::merge;

/// The steps for everything that was chosen.
pub(super) fn steps(chosen: &[Chosen], namespace: &str, registry: &Registry) -> Vec<Value> {
    let mut steps = Vec::new();
    for one in chosen {
        let (csv, others) = manifests(one, namespace, registry);
        let spared = optional(&one.bundle.properties);
        let mut step = |object: Value| {
            let mut made = as_step(&one.csv, &one.catalog, &object);
            let key = Key::of(&object);
            if spared.contains(&(key.kind, key.name)) {
                made["optional"] = json!(true);
            }
            steps.push(made);
        };
        if one.subscription.is_none() {
            step(subscription(one, namespace));
        }
        step(csv.clone());
        // A CRD before what may be an object of it.
        let (crds, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|object| object["kind"] == "CustomResourceDefinition");
        // An account that the bundle has as an object is not made once more.
        let shipped: Vec<Key> = rest.iter().map(Key::of).collect();
        crds.into_iter().chain(rest).for_each(&mut step);
        let made = rights(&csv, namespace).into_iter().filter(|object| !shipped.contains(&Key::of(object)));
        made.for_each(&mut step);
    }
    steps
}

/// A bundle's ClusterServiceVersion as OLM installs it, and its other manifests.
fn manifests(chosen: &Chosen, namespace: &str, registry: &Registry) -> (Value, Vec<Value>) {
    let inline = !chosen.bundle.manifests.is_empty();
    let all = if inline { Some(&chosen.bundle.manifests) } else { registry.bundles.get(&chosen.csv) };
    let (csv, others): (Vec<Value>, Vec<Value>) = all
        .into_iter()
        .flatten()
        .cloned()
        .map(as_typed)
        .partition(|object| object["kind"] == olmkit_bundle::csv::KIND);
    let mut csv = csv.into_iter().next().unwrap_or_else(|| stub(chosen));
    let properties = json!({"properties": chosen.bundle.properties}).to_string();
    let replaces = if chosen.replaces.is_empty() { Value::Null } else { json!(chosen.replaces) };
    merge(
        &mut csv,
        &json!({
            "metadata": {
                "annotations": {label::PROPERTIES: properties},
                "labels": {label::MANAGED: "true"},
                "finalizers": ["operators.coreos.com/csv-cleanup"],
                "namespace": namespace,
            },
            "spec": {"replaces": replaces},
        }),
    );
    let placed = others.into_iter().map(|mut object| {
        if is_namespaced(&object) {
            merge(&mut object, &json!({"metadata": {"namespace": namespace}}));
        }
        object
    });
    (csv, placed.collect())
}

/// A manifest as OLM's Go types read it: null is what is not there, and a ClusterServiceVersion gets the `apiVersion` of its type.
fn as_typed(mut object: Value) -> Value {
    fn drop_nulls(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(drop_nulls);
            }
            Value::Array(items) => items.iter_mut().for_each(drop_nulls),
            _ => {}
        }
    }
    drop_nulls(&mut object);
    if object["kind"] == olmkit_bundle::csv::KIND {
        object["apiVersion"] = json!(olmkit_bundle::csv::API_VERSION);
    }
    object
}

/// Of a bundle whose manifests are not at hand: what the catalog says of it, without deployments.
fn stub(chosen: &Chosen) -> Value {
    let metadata = chosen.bundle.csv_metadata.clone().unwrap_or_default();
    let version = chosen.bundle.version.as_ref().map(|version| version.version.to_string());
    json!({
        "apiVersion": olmkit_bundle::csv::API_VERSION,
        "kind": olmkit_bundle::csv::KIND,
        "metadata": {"name": chosen.csv, "annotations": metadata["annotations"]},
        "spec": {
            "version": version,
            "displayName": metadata["displayName"],
            "installModes": metadata["installModes"],
            "customresourcedefinitions": metadata["crdDescriptions"],
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    })
}

fn is_namespaced(object: &Value) -> bool {
    let known = SUPPORTED.iter().find(|kind| object["kind"] == kind.name);
    known.is_none_or(|kind| kind.namespaced)
}

/// The Subscription that a plan makes for a dependency.
fn subscription(chosen: &Chosen, namespace: &str) -> Value {
    let (catalog, catalog_namespace) = &chosen.catalog;
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {
            "name": format!("{}-{}-{catalog}-{catalog_namespace}", chosen.package, chosen.channel),
            "namespace": namespace,
            "labels": {label::MANAGED: "true"},
        },
        "spec": {
            "channel": chosen.channel,
            "installPlanApproval": "Automatic",
            "name": chosen.package,
            "source": catalog,
            "sourceNamespace": catalog_namespace,
            "startingCSV": chosen.csv,
        },
    })
}

/// The accounts and rights that a ClusterServiceVersion asks for, by account.
fn rights(csv: &Value, namespace: &str) -> Vec<Value> {
    let Ok(typed) = serde_json::from_value::<ClusterServiceVersion>(csv.clone()) else { return Vec::new() };
    let name = typed.name();
    let spec = &typed.spec.install.spec;
    let mut accounts: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let owned = json!({
        label::MANAGED: "true", label::OWNER: name, label::OWNER_NAMESPACE: namespace,
        label::OWNER_KIND: olmkit_bundle::csv::KIND,
    });
    let subject = |permission: &Permissions| json!([{"kind": "ServiceAccount", "name": permission.service_account_name, "namespace": namespace}]);
    for permission in &spec.permissions {
        let role = names::role(name, permission);
        let metadata = json!({"name": role, "namespace": namespace, "labels": owned});
        accounts.entry(&permission.service_account_name).or_default().extend([
            json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": permission.rules}),
            json!({
                "apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata, "subjects": subject(permission),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            }),
        ]);
    }
    for permission in &spec.cluster_permissions {
        let role = names::cluster_role(name, namespace, permission);
        let metadata = json!({"name": role, "labels": owned});
        accounts.entry(&permission.service_account_name).or_default().extend([
            json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": permission.rules}),
            json!({
                "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": metadata,
                "subjects": subject(permission),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            }),
        ]);
    }
    accounts
        .into_iter()
        .flat_map(|(account, rights)| {
            let made = (account != "default").then(|| {
                json!({
                    "apiVersion": "v1", "kind": "ServiceAccount",
                    "metadata": {"name": account, "namespace": namespace, "labels": {label::MANAGED: "true"}},
                })
            });
            made.into_iter().chain(rights)
        })
        .collect()
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn as_step(csv: &str, catalog: &(String, String), object: &Value) -> Value {
    let key = Key::of(object);
    let api_version = object["apiVersion"].as_str().unwrap_or("");
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    json!({
        "resolving": csv,
        "resource": {
            "group": key.group, "version": version, "kind": key.kind, "name": key.name,
            "manifest": object.to_string(),
            "sourceName": catalog.0, "sourceNamespace": catalog.1,
        },
        "status": "Unknown",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn olm_reads_null_as_nothing_and_any_version_as_its_own() {
        let published = json!({
            "apiVersion": "v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "store.v1.0.0", "labels": null},
            "spec": {"resources": null, "links": [{"name": "Docs", "url": null}]},
        });
        let read = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "store.v1.0.0"}, "spec": {"links": [{"name": "Docs"}]},
        });
        assert_eq!(as_typed(published), read);
    }
}
