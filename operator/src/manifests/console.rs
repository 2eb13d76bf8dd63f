//! What consoles show of a RedisCluster: a descriptor for each field of its schema, as the base of the ClusterServiceVersion.
//!
//! `olmkit bundle generate` describes the fields right below `spec` and `status` by itself; here are all, in groups. The
//! hints are those of OpenShift's console (openshift/console
//! `packages/operator-lifecycle-manager/src/components/descriptors/reference`).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
};
use serde::Serialize;

/// The base, which has nothing but descriptors: `olmkit bundle generate` adds the rest.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Base {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
}

#[derive(Serialize)]
struct Spec {
    customresourcedefinitions: Owned,
}

#[derive(Serialize)]
struct Owned {
    owned: Vec<Api>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Api {
    name: String,
    version: String,
    kind: String,
    spec_descriptors: Vec<Descriptor>,
    status_descriptors: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    path: String,
    display_name: String,
    description: String,
    #[serde(rename = "x-descriptors", skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
}

const UI: &str = "urn:alm:descriptor:com.tectonic.ui";

/// Consoles show fields in the order of their descriptors; these come first.
const FIRST: [&str; 5] = ["size", "replicasPerShard", "image", "storage", "resources"];

/// Fields that most users never change, with all that is below them.
const ADVANCED: [&str; 7] = ["auth.key", "auth.users", "config", "exporter", "pods", "recovery", "update"];

/// Hints that a name and a type do not give.
const SPECIAL: [(&str, &str); 7] = [
    ("size", "com.tectonic.ui:podCount"),
    ("readyNodes", "com.tectonic.ui:podCount"),
    ("auth.secretName", "io.kubernetes:Secret"),
    ("tls.secretName", "io.kubernetes:Secret"),
    ("storage.storageClassName", "io.kubernetes:StorageClass"),
    ("conditions", "io.kubernetes.conditions"),
    ("phase", "io.kubernetes.phase"),
];

pub(super) fn base(definition: &CustomResourceDefinition) -> Base {
    let api = |version: &CustomResourceDefinitionVersion| {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let part = |name: &str| {
            let part = schema.and_then(|schema| schema.properties.as_ref()?.get(name));
            let mut found = vec![];
            if let Some(part) = part {
                describe(part, "", name == "spec", &mut found);
            }
            found.sort_by_key(|descriptor| {
                let top = descriptor.path.split('.').next();
                let first = FIRST.iter().position(|first| Some(*first) == top).unwrap_or(FIRST.len());
                (descriptor.hints.contains(&format!("{UI}:advanced")), first)
            });
            found
        };
        Api {
            name: definition.metadata.name.clone().unwrap_or_default(),
            version: version.name.clone(),
            kind: definition.spec.names.kind.clone(),
            spec_descriptors: part("spec"),
            status_descriptors: part("status"),
        }
    };
    Base {
        api_version: "operators.coreos.com/v1alpha1",
        kind: "ClusterServiceVersion",
        metadata: Metadata { name: "redis-operator.v0.0.0" },
        spec: Spec {
            customresourcedefinitions: Owned { owned: definition.spec.versions.iter().map(api).collect() },
        },
    }
}

/// Adds a descriptor for each field below. Lists, maps and `resources` have one for the whole.
fn describe(schema: &JSONSchemaProps, above: &str, of_spec: bool, found: &mut Vec<Descriptor>) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let is_whole = field.properties.as_ref().is_none_or(|fields| fields.contains_key("limits"));
        let mut hints = vec![];
        if !above.is_empty() {
            hints.push(format!("{UI}:fieldGroup:{above}"));
        }
        hints.extend(hints_of(&path, field, of_spec));
        let is_below = |advanced: &&str| {
            path.strip_prefix(*advanced).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if of_spec && ADVANCED.iter().any(is_below) {
            hints.push(format!("{UI}:advanced"));
        }
        found.push(Descriptor {
            path: path.clone(),
            display_name: words(name),
            description: field.description.clone().unwrap_or_default(),
            hints,
        });
        if !is_whole {
            describe(field, &path, of_spec, found);
        }
    }
}

/// How consoles show a field.
fn hints_of(path: &str, field: &JSONSchemaProps, of_spec: bool) -> Vec<String> {
    if let Some((_, hint)) = SPECIAL.iter().find(|(special, _)| *special == path) {
        return vec![format!("urn:alm:descriptor:{hint}")];
    }
    let ui = |hint: &str| vec![format!("{UI}:{hint}")];
    if field.properties.as_ref().is_some_and(|fields| fields.contains_key("limits")) {
        return ui("resourceRequirements");
    }
    if let Some(values) = field.enum_.as_ref().filter(|_| of_spec) {
        let values = values.iter().filter_map(|value| value.0.as_str());
        return values.map(|value| format!("{UI}:select:{value}")).collect();
    }
    match field.type_.as_deref() {
        Some("boolean") if of_spec => ui("booleanSwitch"),
        Some("integer") => ui("number"),
        Some("boolean" | "string") => ui("text"),
        _ => vec![],
    }
}

/// `replicasPerShard` as `Replicas Per Shard`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() {
            words.push(' ');
        }
        words.push(if at == 0 { letter.to_ascii_uppercase() } else { letter });
    }
    words
}
