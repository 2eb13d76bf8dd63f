//! How consoles show the fields of a custom resource, derived from its schema.
//!
//! Every field right below `spec` and `status` gets a descriptor; deeper ones only where consoles have a special view for
//! them, such as a number of replicas. The hints are those of OpenShift's console
//! (openshift/console `packages/operator-lifecycle-manager/src/components/descriptors/reference`).

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::draft::{By, Draft, Origin};
use crate::source::Source;
use crate::yaml::{Node, Value, steps};

/// How far below `spec` and `status` fields with a special view are looked for.
const DEPTH: usize = 3;
/// More descriptors than this for one list are no help to anybody, and a ClusterServiceVersion has a size to keep.
const MOST: usize = 100;

/// Fields that hold whole objects of Kubernetes, which people know from elsewhere.
const KUBERNETES_OWN: [&str; 12] = [
    "affinity",
    "containers",
    "env",
    "envFrom",
    "initContainers",
    "metadata",
    "podSecurityContext",
    "podTemplate",
    "securityContext",
    "template",
    "tolerations",
    "volumes",
];

const UI: &str = "urn:alm:descriptor:com.tectonic.ui:";

/// Which descriptors of owned APIs a bundle gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Descriptors {
    /// One for each field of the CRDs' schemas that consoles can show.
    #[default]
    All,
    /// Those that the base or the package file names.
    Annotated,
    /// None.
    None,
}

/// The paths of the descriptors that somebody wrote.
#[derive(Debug, Default)]
pub(super) struct Written(BTreeSet<(&'static str, String)>);

impl Written {
    /// Remembers those of what is laid over an owned API.
    pub(super) fn add(&mut self, over: &Draft<'_>) {
        for key in ALL_LISTS {
            self.0.extend(
                over.items_of(key).iter().map(|descriptor| (key, descriptor.text("path").to_owned())),
            );
        }
    }
}

/// Takes away the descriptors that were not asked for.
pub(super) fn keep(entry: &mut Draft<'_>, which: Descriptors, written: &Written) {
    for key in ALL_LISTS {
        let Some(list) = entry.at_mut(&[key]).filter(|_| which != Descriptors::All) else { continue };
        list.retain(|own| {
            which == Descriptors::Annotated && written.0.contains(&(key, own.text("path").to_owned()))
        });
        if list.is_empty() {
            entry.remove(key);
        }
    }
}

/// Every list of descriptors.
const ALL_LISTS: [&str; 3] = ["specDescriptors", "statusDescriptors", "actionDescriptors"];

/// The lists of descriptors, with the field whose parts they describe.
const LISTS: [(&str, &str); 2] = [("spec", "specDescriptors"), ("status", "statusDescriptors")];

/// Adds descriptors for the fields of a schema.
pub(super) fn derive<'m>(entry: &mut Draft<'m>, schema: &'m Node<'m>, source: &'m Source<'m>) {
    for (field, key) in LISTS {
        let Some(part) = schema.at(steps!("properties", field)) else { continue };
        let mut walk = Walk { of_status: field == "status", source, found: Vec::new() };
        walk.properties(part, "", 1);
        if !walk.found.is_empty() {
            let origin = Origin::written(By::Manifest, source, part.span).by_rule("the fields of the schema");
            entry.set(&[key], Draft::list(walk.found, origin));
        }
    }
}

/// Lays what somebody wrote about an owned API over what was derived: descriptors are matched by their path.
pub(super) fn overlay<'m>(entry: &mut Draft<'m>, mut over: Draft<'m>) {
    for key in ALL_LISTS {
        let Some(list) = over.remove(key).filter(|list| !list.is_empty()) else { continue };
        let origin = list.origin();
        let mut derived = entry.remove(key).map(Draft::into_items).unwrap_or_default();
        let mut all = Vec::new();
        // Consoles show them in this order, and somebody chose it.
        for descriptor in list.into_items() {
            let same = derived.iter().position(|own| own.text("path") == descriptor.text("path"));
            match same.map(|at| derived.remove(at)) {
                Some(mut own) => {
                    own.merge(descriptor.without_empty());
                    all.push(own);
                }
                None => all.push(descriptor),
            }
        }
        all.append(&mut derived);
        entry.set(&[key], Draft::list(all, origin));
    }
    entry.merge(over.without_empty());
}

struct Walk<'m> {
    of_status: bool,
    source: &'m Source<'m>,
    found: Vec<Draft<'m>>,
}

impl<'m> Walk<'m> {
    fn properties(&mut self, schema: &'m Node<'m>, above: &str, depth: usize) {
        let Some(properties) = schema.get("properties").and_then(Node::as_mapping) else { return };
        let mut entries: Vec<_> = properties.iter().collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        for property in entries {
            if self.found.len() >= MOST {
                return;
            }
            let path =
                if above.is_empty() { property.key.to_string() } else { format!("{above}.{}", property.key) };
            let hint = hint(&property.key, &property.value, self.of_status);
            let special = hint.as_ref().is_some_and(|hint| depth <= hint.depth);
            if depth == 1 || special {
                let origin = Origin::written(By::Manifest, self.source, property.key_span);
                let mut descriptor = Draft::map(origin);
                descriptor.set(&["path"], Draft::new(path.as_str(), origin));
                let words = Draft::new(words(&property.key), origin.by_rule("the field's name, in words"));
                descriptor.set(&["displayName"], words);
                if let Some(description) =
                    property.value.get("description").filter(|node| node.as_str().is_some())
                {
                    let whole = Draft::node(description, self.source, By::Manifest);
                    let first = whole.as_str().map(first_paragraph).unwrap_or_default().to_owned();
                    descriptor.set_some(&["description"], Draft::new(first, whole.origin()));
                }
                if let Some(hint) = hint {
                    let origin = Origin::written(By::Manifest, self.source, property.value.span);
                    let origin = origin.by_rule("what consoles have a view for");
                    descriptor.set(&["x-descriptors"], Draft::new(hint.urns, origin));
                }
                self.found.push(descriptor);
            }
            if depth < DEPTH && !special && !KUBERNETES_OWN.contains(&property.key.as_ref()) {
                self.properties(&property.value, &path, depth + 1);
            }
        }
    }
}

struct Hint {
    urns: Vec<Json>,
    /// How deep it may stand to be worth showing; what is below it is part of it.
    depth: usize,
}

/// The view that consoles have for a field.
fn hint(name: &str, schema: &Node<'_>, of_status: bool) -> Option<Hint> {
    let lower = name.to_lowercase();
    let kind = schema.get("type").and_then(Node::as_str).unwrap_or("");
    let has = |key: &str| schema.at(steps!("properties", key)).is_some();
    let special = |urn: &str| Some(Hint { urns: vec![urn.into()], depth: DEPTH });
    let plain = |urn: &str| Some(Hint { urns: vec![urn.into()], depth: 0 });
    let ui = |name: &str| format!("{UI}{name}");
    let list_of_texts =
        |schema: &Node<'_>| schema.at(steps!("items", "type")).and_then(Node::as_str) == Some("string");
    match kind {
        "integer" | "number"
            if matches!(lower.as_str(), "replicas" | "size") || name.ends_with("Replicas") =>
        {
            // Consoles draw pods for one number only; the others are numbers.
            if of_status && lower != "replicas" { plain(&ui("number")) } else { special(&ui("podCount")) }
        }
        "object" if has("limits") && has("requests") => special(&ui("resourceRequirements")),
        "string" if lower.ends_with("secretname") || lower == "secret" => {
            special("urn:alm:descriptor:io.kubernetes:Secret")
        }
        "object" if (lower.ends_with("secretref") || lower.ends_with("secret")) && has("name") => {
            special("urn:alm:descriptor:io.kubernetes:Secret")
        }
        "string" if lower.ends_with("serviceaccountname") => {
            special("urn:alm:descriptor:io.kubernetes:ServiceAccount")
        }
        "array" if of_status && lower == "conditions" => {
            special("urn:alm:descriptor:io.kubernetes.conditions")
        }
        "string" if of_status && lower == "phase" => special("urn:alm:descriptor:io.kubernetes.phase"),
        "string" if of_status && lower == "reason" => plain("urn:alm:descriptor:io.kubernetes.phase:reason"),
        "string" if of_status && ["url", "uri", "endpoint"].iter().any(|end| lower.ends_with(end)) => {
            special("urn:alm:descriptor:org.w3:link")
        }
        "array" if !of_status && lower.ends_with("endpoints") && !list_of_texts(schema) => {
            special(&ui("endpointList"))
        }
        "boolean" => Some(Hint {
            urns: vec![ui(if of_status { "text" } else { "booleanSwitch" }).into()],
            depth: if of_status { 0 } else { 2 },
        }),
        "string" if lower.ends_with("password") => special(&ui("password")),
        "string" if lower.ends_with("imagepullpolicy") => special(&ui("imagePullPolicy")),
        "string" if !of_status && schema.get("enum").is_some() => {
            let values = schema.get("enum").and_then(Node::as_sequence).unwrap_or(&[]);
            let urns = values
                .iter()
                .filter_map(Node::as_str)
                .map(|value| Json::from(ui(&format!("select:{value}"))));
            Some(Hint { urns: urns.collect(), depth: 0 })
        }
        "integer" | "number" => plain(&ui("number")),
        "string" => plain(&ui("text")),
        "" if matches!(
            schema.get("x-kubernetes-int-or-string").map(|node| &node.value),
            Some(Value::Bool(true))
        ) =>
        {
            plain(&ui("text"))
        }
        _ => None,
    }
}

/// `clusterSize` as `Cluster Size`, `tlsSecretName` as `TLS Secret Name`.
fn words(name: &str) -> String {
    let spaced = spaced(name).replace(['_', '-'], " ");
    let word = |word: &str| {
        let known = ["api", "cpu", "dns", "http", "https", "id", "ip", "tls", "ttl", "uid", "uri", "url"];
        if known.contains(&word.to_lowercase().as_str()) {
            return word.to_uppercase();
        }
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        first + letters.as_str()
    };
    spaced.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// `RedisCluster` as `Redis Cluster`; runs of capitals stay together.
pub(super) fn spaced(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut words = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let starts_word = at > 0
            && letter.is_uppercase()
            && (letters[at - 1].is_lowercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if starts_word {
            words.push(' ');
        }
        words.push(*letter);
    }
    words
}

/// What stands before the first empty line.
fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn kinds_as_words() {
        for (kind, words) in [
            ("RedisCluster", "Redis Cluster"),
            ("HTTPRoute", "HTTP Route"),
            ("Etcd", "Etcd"),
            ("DNSName", "DNS Name"),
        ] {
            assert_eq!(spaced(kind), words);
        }
    }

    #[test]
    fn field_names_as_words() {
        for (name, expected) in [
            ("size", "Size"),
            ("clusterSize", "Cluster Size"),
            ("tlsSecretName", "TLS Secret Name"),
            ("image_pull-policy", "Image Pull Policy"),
            ("podIP", "Pod IP"),
        ] {
            assert_eq!(words(name), expected);
        }
    }

    #[track_caller]
    fn check(schema: &str, expected: &[&str]) {
        let source = Source::new("crd.yaml", schema);
        let document = yaml::first_document(schema).unwrap();
        let mut entry = Draft::map(Origin::written(By::Manifest, &source, document.root.span));
        derive(&mut entry, &document.root, &source);
        let mut found = Vec::new();
        for (_, key) in LISTS {
            for descriptor in entry.get(key).map(Draft::items).unwrap_or_default() {
                let urns = descriptor.get("x-descriptors").map(|urns| urns.to_json());
                let urns = urns.iter().flat_map(|urns| urns.as_array().unwrap());
                let urns: Vec<_> =
                    urns.map(|urn| urn.as_str().unwrap().rsplit_once(':').unwrap().1).collect();
                found.push(format!("{} {}", descriptor.text("path"), urns.join(",")).trim().to_owned());
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn views_of_fields() {
        check(
            "{properties: {spec: {properties: {
               size: {type: integer}, tls: {type: object, properties: {secretName: {type: string}, mode: {type: string}}},
               resources: {type: object, properties: {limits: {type: object}, requests: {type: object}}},
               enabled: {type: boolean}, level: {type: string, enum: [a, b]}, adminPassword: {type: string},
               pod: {type: object, properties: {affinity: {type: object, properties: {deep: {type: object, properties: {replicas: {type: integer}}}}}}},
             }}, status: {properties: {
               conditions: {type: array}, phase: {type: string}, consoleURL: {type: string}, readyReplicas: {type: integer}, nodes: {type: array},
             }}}}",
            &[
                "adminPassword password",
                "enabled booleanSwitch",
                "level a,b",
                "pod",
                "resources resourceRequirements",
                "size podCount",
                "tls",
                "tls.secretName Secret",
                "conditions io.kubernetes.conditions",
                "consoleURL link",
                "nodes",
                "phase io.kubernetes.phase",
                "readyReplicas number",
            ],
        );
    }
}
