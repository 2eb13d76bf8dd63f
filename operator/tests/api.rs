//! The RedisCluster API as Kubernetes would take it: the schema's form, its rules, and the samples.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

use insta::assert_snapshot;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_cel::Validator;
use redis_operator::crd::{self, RedisCluster};
use serde_json::{Value, json};

fn definition() -> CustomResourceDefinition {
    crd::definition(Default::default())
}

/// The schema of v1, as it stands in the CRD.
fn schema() -> Value {
    let version = definition().spec.versions.remove(0);
    serde_json::to_value(version.schema.unwrap().open_api_v3_schema.unwrap()).unwrap()
}

/// Calls `visit` with the path of every schema below, the root included.
fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = schema.get(key) {
            walk(&format!("{path}{suffix}"), inner, visit);
        }
    }
}

/// Every schema below `path` for which `wrong` has a complaint.
fn complaints(path: &str, schema: &Value, wrong: impl Fn(&str, &Value) -> Option<String>) -> Vec<String> {
    let mut found = vec![];
    walk(path, schema, &mut |path, node| {
        found.extend(wrong(path, node).map(|what| format!("{path}: {what}")))
    });
    found
}

/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>
#[test]
fn the_schema_is_structural() {
    const LOGICAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];
    const FORBIDDEN: [&str; 7] =
        ["$ref", "definitions", "dependencies", "deprecated", "id", "patternProperties", "uniqueItems"];
    let found = complaints("", &schema(), |path, node| {
        let int_or_string = node["x-kubernetes-int-or-string"] == json!(true);
        if node["type"].is_string() == int_or_string {
            return Some("needs either a type or to be int-or-string".into());
        }
        if node.get("properties").is_some() && node.get("additionalProperties").is_some() {
            return Some("has properties and additionalProperties".into());
        }
        // None is needed so far; the rules for their use are many.
        if let Some(key) = LOGICAL.iter().chain(&FORBIDDEN).find(|key| node.get(**key).is_some()) {
            return Some(format!("uses `{key}`"));
        }
        (node["x-kubernetes-preserve-unknown-fields"] == json!(true))
            .then(|| format!("keeps unknown fields at `{path}`"))
    });
    assert_eq!(found, [""; 0]);
    assert_eq!(schema()["type"], "object");
}

#[test]
fn every_field_has_a_description() {
    let found = complaints("", &schema(), |path, node| {
        // Elements of lists and maps are described by the field that holds them.
        let element = path.ends_with(']') || path.ends_with('}');
        let text = node["description"].as_str().unwrap_or_default();
        (!element && (text.len() < 10 || text.contains("Auto-generated"))).then(|| format!("`{text}`"))
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn everything_a_user_writes_is_bounded() {
    let found = complaints("spec", &schema()["properties"]["spec"], |_, node| {
        let needs: &[&str] = match node["type"].as_str() {
            Some("integer") => &["minimum", "maximum"],
            Some("string") if node.get("enum").is_some() => &[],
            Some("string") | None => &["maxLength"],
            Some("array") => &["maxItems"],
            Some("object") if node.get("additionalProperties").is_some() => &["maxProperties"],
            _ => &[],
        };
        let missing: Vec<_> = needs.iter().filter(|key| node.get(**key).is_none()).collect();
        (!missing.is_empty()).then(|| format!("{missing:?}"))
    });
    assert_eq!(found, [""; 0]);
    let size = &schema()["properties"]["spec"]["properties"]["size"];
    assert_eq!((size["minimum"].as_f64(), size["maximum"].as_f64()), (Some(1.0), Some(500.0)));
    assert_eq!(schema()["properties"]["spec"]["required"], json!(["size"]));
}

#[test]
fn every_rule_has_a_message() {
    let mut rules = 0;
    walk("", &schema(), &mut |path, node| {
        for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
            rules += 1;
            assert!(rule["message"].as_str().is_some_and(|text| !text.is_empty()), "{path}: {rule}");
        }
    });
    assert!(rules > 0, "the walk found no rules");
}

#[test]
fn the_resource_has_the_names_and_subresources_that_users_type() {
    let definition = serde_json::to_value(definition()).unwrap();
    assert_eq!(definition["metadata"]["name"], "redisclusters.cache.example.com");
    assert_eq!(definition["spec"]["scope"], "Namespaced");
    assert_eq!(definition["spec"]["names"]["shortNames"], json!(["rdc"]));
    let version = &definition["spec"]["versions"][0];
    assert_eq!(version["name"], "v1");
    assert_eq!(
        version["subresources"],
        json!({
            "scale": {
                "labelSelectorPath": ".status.selector",
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.readyNodes",
            },
            "status": {},
        })
    );
    assert_eq!(
        version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["nodes"]["type"],
        "array"
    );
}

#[test]
fn both_versions_are_served_and_one_is_stored() {
    let definition = serde_json::to_value(definition()).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let state: Vec<_> = versions
        .iter()
        .map(|version| (&version["name"], &version["served"], &version["storage"], &version["deprecated"]))
        .map(|version| format!("{version:?}"))
        .collect();
    assert_snapshot!(state.join("\n"), @r#"
    (String("v1"), Bool(true), Bool(true), Null)
    (String("v1alpha1"), Bool(true), Bool(false), Bool(true))
    "#);
    assert_eq!(definition["spec"]["conversion"]["strategy"], "Webhook");
}

/// A RedisCluster of this name with this spec, in YAML's flow style.
fn cluster(name: &str, spec: &str) -> Value {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    json!({
        "apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": { "name": name }, "spec": spec,
    })
}

/// What the API server's rules say to an object that is created, or updated when there is an `old` one.
fn verdict(object: &Value, old: Option<&Value>) -> String {
    match Validator::new().validate_with_defaults(&schema(), object, old) {
        Ok(()) => "accepted".into(),
        Err(errors) => {
            let lines: Vec<_> = errors
                .as_slice()
                .iter()
                .map(|error| format!("{}: {}", error.field_path, error.message))
                .collect();
            lines.join("\n")
        }
    }
}

fn created(spec: &str) -> String {
    verdict(&cluster("example", spec), None)
}

fn named(name: &str) -> String {
    verdict(&cluster(name, "{size: 3}"), None)
}

#[test]
fn size_alone_makes_a_cluster_of_primaries() {
    assert_snapshot!(created("{size: 3}"), @"accepted");
}

#[test]
fn six_nodes_make_three_shards_with_a_replica_each() {
    assert_snapshot!(created("{size: 6, replicasPerShard: 1}"), @"accepted");
}

#[test]
fn five_nodes_cannot_make_shards_of_two() {
    assert_snapshot!(created("{size: 5, replicasPerShard: 1}"), @"spec.size: size must be a multiple of 1 + replicasPerShard: a shard is one primary and its replicas");
}

#[test]
fn a_name_of_52_characters_leaves_room_for_what_is_derived_from_it() {
    assert_snapshot!(named(&"a".repeat(52)), @"accepted");
}

#[test]
fn a_name_of_53_characters_does_not() {
    assert_snapshot!(named(&"a".repeat(53)), @": metadata.name must have at most 52 characters: names of pods and labels are derived from it");
}

#[test]
fn a_name_that_no_service_can_have() {
    assert_snapshot!(named("3.example"), @": metadata.name must start with a letter and hold only lower case letters, digits and `-`: a Service gets this name");
}

#[test]
fn a_directive_of_the_users() {
    assert_snapshot!(created("{size: 3, config: {maxmemory: 512mb, min-replicas-to-write: '1'}}"), @"accepted");
}

#[test]
fn a_directive_of_the_operators() {
    assert_snapshot!(created("{size: 3, config: {cluster-enabled: 'no'}}"), @"spec.config: the operator sets this directive itself: leave out `cluster-*`, `tls-*`, and directives for addresses, files, persistence, passwords, modules and replication");
}

#[test]
fn a_password_outside_a_secret() {
    for directive in
        ["appendonly", "save", "appendfilename", "appenddirname", "dbfilename", "dir", "replica-read-only"]
    {
        let refused = created(&format!("{{size: 3, config: {{{directive}: 'no'}}}}"));
        assert!(refused.contains("persistence"), "{directive}: {refused}");
    }
    assert_snapshot!(created("{size: 3, recovery: {quorumLoss: Manual, lostSlots: AcceptDataLoss}}"), @"accepted");
    assert_snapshot!(created("{size: 3, config: {requirepass: hunter2}}"), @"spec.config: the operator sets this directive itself: leave out `cluster-*`, `tls-*`, and directives for addresses, files, persistence, passwords, modules and replication");
}

#[test]
fn a_directive_of_the_operators_in_other_letters() {
    assert_snapshot!(created("{size: 3, config: {Cluster-Enabled: 'no'}}"), @"spec.config: a directive is written in lower case letters, digits and `-`");
}

fn updated(old: &str, new: &str) -> String {
    verdict(&cluster("example", new), Some(&cluster("example", old)))
}

#[test]
fn a_volume_grows() {
    assert_snapshot!(updated("{size: 3, storage: {size: 1Gi}}", "{size: 3, storage: {size: 1025Mi}}"), @"accepted");
}

#[test]
fn a_volume_does_not_shrink() {
    assert_snapshot!(updated("{size: 3, storage: {size: 1Gi}}", "{size: 3, storage: {size: 1G}}"), @"spec.storage.size: a volume can grow but not shrink");
}

#[test]
fn a_volume_keeps_its_class() {
    assert_snapshot!(
        updated(
            "{size: 3, storage: {size: 1Gi, storageClassName: fast}}",
            "{size: 3, storage: {size: 1Gi, storageClassName: slow}}"
        ),
        @"spec.storage.storageClassName: the storage class of a volume cannot be changed"
    );
}

#[test]
fn a_volume_keeps_its_class_when_it_never_named_one() {
    assert_snapshot!(
        updated("{size: 3, storage: {size: 1Gi}}", "{size: 3, storage: {size: 1Gi, storageClassName: slow}}"),
        @"spec.storage.storageClassName: the storage class of a volume cannot be changed"
    );
}

#[test]
fn volumes_are_not_added_later() {
    assert_snapshot!(updated("{size: 3}", "{size: 3, storage: {size: 1Gi}}"), @"spec: storage can be neither added to a cluster nor taken away: create another RedisCluster and move the data");
}

#[test]
fn volumes_are_not_taken_away() {
    assert_snapshot!(updated("{size: 3, storage: {size: 1Gi}}", "{size: 3}"), @"spec: storage can be neither added to a cluster nor taken away: create another RedisCluster and move the data");
}

#[test]
fn a_cluster_is_scaled_and_its_volumes_stay() {
    assert_snapshot!(updated("{size: 3, storage: {size: 1Gi}}", "{size: 5, storage: {size: 1Gi}}"), @"accepted");
}

#[test]
fn samples_are_valid_and_survive_the_types() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/samples");
    let mut names = vec![];
    for entry in std::fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let written: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(verdict(&written, None), "accepted", "{}", path.display());

        let typed: RedisCluster = serde_json::from_value(written.clone()).unwrap();
        let printed = serde_json::to_value(&typed).unwrap();
        assert_eq!(serde_json::from_value::<RedisCluster>(printed.clone()).unwrap(), typed);
        assert_eq!(lost("", &written, &printed), [""; 0], "{}", path.display());
        names.push(typed.metadata.name.unwrap());
    }
    names.sort();
    assert_eq!(names, ["example-rediscluster", "persistent-rediscluster"]);
}

/// Fields that `written` has and `printed` lacks or has otherwise.
fn lost(path: &str, written: &Value, printed: &Value) -> Vec<String> {
    match written.as_object() {
        Some(fields) => fields
            .iter()
            .flat_map(|(key, value)| lost(&format!("{path}.{key}"), value, &printed[key]))
            .collect(),
        None if written == printed => vec![],
        None => vec![path.into()],
    }
}
