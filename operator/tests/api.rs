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

/// What is said to a new RedisCluster with this spec: by the schema, or else by the webhook and the condition InvalidSpec.
fn refusal(spec: &str) -> String {
    let object = cluster("example", spec);
    let mut wrong = misfits("spec", &schema()["properties"]["spec"], &object["spec"]);
    if wrong.is_empty() {
        wrong.extend(Some(verdict(&object, None)).filter(|verdict| verdict != "accepted"));
    }
    if wrong.is_empty() {
        let typed: RedisCluster = serde_json::from_value(object).unwrap();
        wrong = redis_operator::crd::check::wrong_values(&typed.spec);
    }
    wrong.join("\n")
}

/// Where a value has not the type or the bounds of its schema. Rules are for [`verdict`].
fn misfits(path: &str, schema: &Value, value: &Value) -> Vec<String> {
    let wrong = |what: String| vec![format!("{path} in body {what}")];
    if value.is_null() && schema["nullable"] == json!(true) {
        return vec![];
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        _ => schema["x-kubernetes-int-or-string"] == json!(true) && (value.is_i64() || value.is_string()),
    };
    if !fits {
        return wrong(format!("must be of type {}", schema["type"]));
    }
    let outside = |low: &str, high: &str, found: f64| {
        schema[low].as_f64().is_some_and(|low| found < low)
            || schema[high].as_f64().is_some_and(|high| found > high)
    };
    if value.as_f64().is_some_and(|number| outside("minimum", "maximum", number)) {
        return wrong(format!("should be between {} and {}", schema["minimum"], schema["maximum"]));
    }
    if let Some(text) = value.as_str() {
        if outside("minLength", "maxLength", text.chars().count() as f64) {
            return wrong("has too few or too many characters".into());
        }
        if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
            return wrong(format!("should be one of {}", schema["enum"]));
        }
        let pattern = schema["pattern"].as_str();
        if pattern.is_some_and(|pattern| !regex::Regex::new(pattern).unwrap().is_match(text)) {
            return wrong(format!("should match {}", schema["pattern"]));
        }
    }
    if let Some(items) = value.as_array() {
        if outside("minItems", "maxItems", items.len() as f64) {
            return wrong("has too few or too many items".into());
        }
        let items = items.iter().enumerate();
        return items
            .flat_map(|(at, item)| misfits(&format!("{path}[{at}]"), &schema["items"], item))
            .collect();
    }
    let Some(fields) = value.as_object() else { return vec![] };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|field| !fields.contains_key(*field));
    let mut all: Vec<String> =
        missing.map(|field| format!("{path}.{field}: Required value, it is missing")).collect();
    for (name, value) in fields {
        let inner = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        match inner {
            Some(inner) => all.extend(misfits(&format!("{path}.{name}"), inner, value)),
            None => panic!("{path} has no field {name}"),
        }
    }
    all
}

/// Only the cluster's own pods reach the bus, and everybody reaches Redis: a restored copy cannot join.
#[test]
fn the_bus_is_closed_to_other_clusters() {
    let object = cluster("example", "{size: 3}");
    let typed: RedisCluster = serde_json::from_value(object).unwrap();
    let policy = redis_operator::controller::children::network_policy(&typed);
    let spec = serde_json::to_value(policy.spec.unwrap()).unwrap();
    let own = &spec["podSelector"]["matchLabels"];
    assert_eq!(own["app.kubernetes.io/instance"], "example");
    assert_eq!(spec["policyTypes"], json!(["Ingress"]));
    let port = |number: u16| json!([{"port": number, "protocol": "TCP"}]);
    let rules = json!([
        {"ports": port(6379)},
        {"ports": port(16379), "from": [{"podSelector": {"matchLabels": own}}]},
    ]);
    assert_eq!(spec["ingress"], rules);
}

/// Every field that a user writes, each with values that cannot work. Each is refused with a sentence that names the field.
#[test]
fn every_wrong_value_is_refused() {
    let long = "x".repeat(600);
    let cases: Vec<(&str, Vec<String>)> = vec![
        (
            "spec.size",
            ["0", "-1", "501", "1.5", "three", "'3'", "null", "[3]"]
                .map(|size| format!("{{size: {size}}}"))
                .into(),
        ),
        (
            "spec.replicasPerShard",
            ["-1", "6", "0.5", "one", "'1'"]
                .map(|count| format!("{{size: 6, replicasPerShard: {count}}}"))
                .into(),
        ),
        ("spec.size", vec!["{size: 5, replicasPerShard: 1}".into(), "{size: 4, replicasPerShard: 5}".into()]),
        (
            "spec.image",
            [
                "''",
                "' '",
                "'redis 7'",
                "Redis:7",
                "'redis:'",
                "'redis:7 '",
                "'redis:-7'",
                "'redis@sha256:123'",
                "'redis:7@7'",
                "'/redis'",
                "'redis/'",
                "'a//b'",
                "'https://example.com/redis'",
                "7",
                "[redis]",
                &long,
            ]
            .map(|image| format!("{{size: 3, image: {image}}}"))
            .into(),
        ),
        (
            "spec.config",
            [
                "{MaxMemory: 1gb}",
                "{'max memory': 1gb}",
                "{'': x}",
                "{cluster-enabled: 'no'}",
                "{requirepass: x}",
                "{tls-port: '1'}",
                "{dir: /tmp}",
                "{save: '1 1'}",
                "{include: /etc/passwd}",
                "{maxmemory: 1}",
                "{maxmemory: ''}",
                "{maxmemory: ' '}",
                "{maxmemory: lots}",
                "{maxmemory: -1gb}",
                "{maxmemory: 1 gb}",
                "{maxmemory: 1tb}",
                "{maxmemory-policy: lru}",
                "{appendfsync: sometimes}",
                "{maxclients: many}",
                "{databases: '0'}",
                "{databases: '-1'}",
                "{databases: many}",
                "{repl-backlog-size: 64Mi}",
                "{client-query-buffer-limit: lots}",
                "{timeout: 5s}",
                "{min-replicas-to-write: one}",
                "{min-replicas-to-write: '1'}",
                "{min-replicas-max-lag: '1.5'}",
                r#"{loglevel: "notice\nrequirepass x"}"#,
                r#"{loglevel: "notice\0"}"#,
                r#"{notify-keyspace-events: '"KEA'}"#,
                r#"{notify-keyspace-events: '"KEA"x'}"#,
                "[maxmemory]",
                "maxmemory",
            ]
            .map(|config| format!("{{size: 3, config: {config}}}"))
            .into(),
        ),
        (
            "spec.resources",
            [
                "{limits: {memory: lots}}",
                "{limits: {memory: -1Gi}}",
                "{limits: {memory: 1 Gi}}",
                "{limits: {memory: 1GiB}}",
                "{limits: {cpus: '1'}}",
                "{requests: {ram: 1Gi}}",
                "{requests: {cpu: [1]}}",
                "{limits: 1}",
                "{requests: {memory: 2Gi}, limits: {memory: 1Gi}}",
                "{requests: {cpu: '2'}, limits: {cpu: 1500m}}",
            ]
            .map(|resources| format!("{{size: 3, resources: {resources}}}"))
            .into(),
        ),
        (
            "spec.exporter",
            [
                "{image: ''}",
                "{image: 'redis exporter'}",
                "{image: 7}",
                "{resources: {limits: {ram: 1Gi}}}",
                "{resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}",
                "true",
            ]
            .map(|exporter| format!("{{size: 3, exporter: {exporter}}}"))
            .into(),
        ),
        (
            "spec.pods",
            [
                "{imagePullSecrets: registry}",
                "{imagePullSecrets: [registry]}",
                "{imagePullSecrets: [{}]}",
                "{imagePullSecrets: [{name: ''}]}",
                "{imagePullSecrets: [{name: My_Secret}]}",
                "{imagePullSecrets: [{name: a}, {name: b}, {name: a}]}",
                "{nodeSelector: {'a b': c}}",
                "{nodeSelector: {'/a': c}}",
                "{nodeSelector: {a: 'b c'}}",
                "{nodeSelector: {a: 1}}",
                "{nodeSelector: [a]}",
                "{tolerations: {key: a}}",
                "{tolerations: [{value: a}]}",
                "{tolerations: [{key: a, operator: In}]}",
                "{tolerations: [{key: a, operator: Exists, value: b}]}",
                "{tolerations: [{key: a, effect: Never}]}",
                "{tolerations: [{key: a, value: b c}]}",
                "{tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]}",
                "{tolerations: [{key: a, effect: NoExecute, tolerationSeconds: -5}]}",
                "{topologySpreadConstraints: [{}]}",
                "{topologySpreadConstraints: [{topologyKey: ''}]}",
                "{topologySpreadConstraints: [{topologyKey: zone, maxSkew: 0}]}",
                "{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: Never}]}",
                "{topologySpreadConstraints: [{topologyKey: zone}, {topologyKey: zone, maxSkew: 2}]}",
                "{priorityClassName: ''}",
                "{priorityClassName: High}",
                "high",
            ]
            .map(|pods| format!("{{size: 3, pods: {pods}}}"))
            .into(),
        ),
        (
            "spec.storage",
            [
                "{}",
                "{size: 0}",
                "{size: 0Gi}",
                "{size: -1Gi}",
                "{size: big}",
                "{size: 1GiB}",
                "{size: 1 Gi}",
                "{size: 100m}",
                "1Gi",
                "{size: 1Gi, storageClassName: ''}",
                "{size: 1Gi, storageClassName: Fast}",
                "{size: 1Gi, storageClassName: a_b}",
                "{size: 1Gi, storageClassName: -a}",
                "{size: 1Gi, storageClassName: 'a b'}",
                "{size: 1Gi, storageClassName: 7}",
                "{size: 1Gi, deletionPolicy: Keep}",
                "{size: 1Gi, deletionPolicy: retain}",
                "{size: 1Gi, deletionPolicy: ''}",
            ]
            .map(|storage| format!("{{size: 3, storage: {storage}}}"))
            .into(),
        ),
        (
            "spec.auth",
            [
                "{}",
                "{key: password}",
                "{secretName: ''}",
                "{secretName: My_Secret}",
                "{secretName: other/secret}",
                "{secretName: .a}",
                "{secretName: 7}",
                "{secretName: a, key: ''}",
                "{secretName: a, key: 'a b'}",
                "{secretName: a, key: ..}",
                "{secretName: a, key: .}",
                "{secretName: a, key: a/b}",
                "{secretName: a, users: [{name: b, secretName: c}]}",
                "{secretName: a, users: [{name: b, secretName: c, rules: ''}]}",
                "{secretName: a, users: [{name: 'b c', secretName: c, rules: +@read}]}",
                "{secretName: a, users: [{name: Default, secretName: c, rules: +@read}]}",
                "{secretName: a, users: [{name: b, secretName: C, rules: +@read}]}",
                "{secretName: a, users: [{name: b, secretName: c, key: .., rules: +@read}]}",
                "{secretName: a, users: [{name: b, secretName: c, rules: +@read >word}]}",
                "{secretName: a, users: [{name: b, secretName: c, rules: +@read NoPass}]}",
                "{secretName: a, users: [{name: b, secretName: c, rules: '~*'}, {name: b, secretName: c, rules: '~*'}]}",
                "{secretName: a, users: [{name: b, secretName: a, key: b, rules: '~*'}]}",
                "secret",
            ]
            .map(|auth| format!("{{size: 3, auth: {auth}}}"))
            .into(),
        ),
        (
            "spec.tls",
            [
                "{}",
                "{secretName: ''}",
                "{secretName: My_Secret}",
                "{secretName: other/secret}",
                "{secretName: 7}",
                "secret",
            ]
            .map(|tls| format!("{{size: 3, tls: {tls}}}"))
            .into(),
        ),
        (
            "spec.recovery",
            [
                "{quorumLoss: automatic}",
                "{quorumLoss: ''}",
                "{quorumLoss: true}",
                "{lostSlots: Accept}",
                "{lostSlots: Automatic}",
                "{lostSlots: 1}",
                "Manual",
            ]
            .map(|recovery| format!("{{size: 3, recovery: {recovery}}}"))
            .into(),
        ),
        ("spec.paused", ["'yes'", "1", "[]"].map(|paused| format!("{{size: 3, paused: {paused}}}")).into()),
        // In memory, all keys would be lost.
        ("spec.hibernated", ["'yes'", "1", "true"].map(|it| format!("{{size: 3, hibernated: {it}}}")).into()),
    ];
    let mut accepted = vec![];
    for (field, specs) in cases {
        for spec in specs {
            let said = refusal(&spec);
            if !said.contains(field) || said.len() < field.len() + 10 {
                accepted.push(format!("{spec}: {said:?}"));
            }
        }
    }
    assert_eq!(accepted, [""; 0]);
}

/// Beside each rule, what it must not refuse.
#[test]
fn values_that_work_are_accepted() {
    let digest = format!("redis@sha256:{}", "a1".repeat(32));
    for spec in [
        "{size: 1}",
        "{size: 500}",
        "{size: 6, replicasPerShard: 5}",
        "{size: 3, image: redis}",
        "{size: 3, image: 'localhost:5000/team/redis_7.2--x:v7.2_a-b'}",
        "{size: 3, image: 'registry.example.com/Team:7'}",
        &format!("{{size: 3, image: '{digest}'}}"),
        "{size: 3, config: {maxmemory: '0', timeout: '0', appendfsync: ALWAYS, maxmemory-policy: allkeys-lru}}",
        r#"{size: 3, config: {notify-keyspace-events: '""', client-output-buffer-limit: 'normal 0 0 0', proc-title-template: '"{title} \" x"'}}"#,
        "{size: 3, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: '1', memory: 1024Mi, example.com/gpu: 1, hugepages-2Mi: 2Mi}}}",
        "{size: 3, storage: {size: 1.5Gi, storageClassName: fast.example-1, deletionPolicy: Delete}}",
        "{size: 3, auth: {secretName: my.secret, key: .dot_Key-1}}",
        "{size: 3, auth: {secretName: a, users: [{name: App_1, secretName: my.secret, rules: '+@read ~app:* (+set %W~in:*)'}]}}",
        "{size: 3, tls: {secretName: my.secret}}",
        r#"{size: 3, config: {databases: '1', repl-backlog-size: '"64mb"', proto-max-bulk-len: 1GB}}"#,
        "{size: 3, exporter: {}}",
        "{size: 3, exporter: {image: 'registry.example.com/redis_exporter:v1.88.0', resources: {limits: {memory: 32Mi}}}}",
        "{size: 3, pods: {}}",
        "{size: 3, pods: {imagePullSecrets: [{name: my.registry}], priorityClassName: system-node-critical}}",
        "{size: 3, pods: {nodeSelector: {kubernetes.io/os: linux, example.com/Disk_1: '', a: b}}}",
        "{size: 3, pods: {tolerations: [{operator: Exists}, {key: a, value: b}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]}}",
        "{size: 3, pods: {topologySpreadConstraints: [{topologyKey: zone, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}}",
        "{size: 3, paused: true, recovery: {}}",
        "{size: 3, hibernated: true, storage: {size: 1Gi}}",
        "{size: 3, hibernated: false}",
    ] {
        // Path components of an image are in lower case.
        let expected = spec.contains("Team");
        assert_eq!(!refusal(spec).is_empty(), expected, "{spec}: {}", refusal(spec));
    }
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
