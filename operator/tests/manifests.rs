//! The manifests: fresh on disk, the same every time, and no more than the operator needs.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

use std::{collections::BTreeSet, fs, path::Path};

use redis_operator::manifests::{self, Manifest, Release};
use serde_json::{Value, json};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/", env!("CARGO_PKG_VERSION"));

fn current() -> Vec<Manifest> {
    manifests::manifests(&Release::default()).unwrap()
}

/// The object in `install/` of this kind.
fn object(kind: &str) -> Value {
    let path = format!("install/{}.yaml", kind.to_lowercase());
    let found = current().into_iter().find(|manifest| manifest.path == path).unwrap();
    let object: Value = serde_saphyr::from_str(&found.yaml).unwrap();
    assert_eq!(object["kind"], kind);
    object
}

/// Paths of the files below `dir` that the generator owns.
fn files(dir: &Path) -> BTreeSet<String> {
    ["install", "olm", "samples"]
        .iter()
        .filter_map(|name| fs::read_dir(dir.join(name)).ok().map(|entries| (name, entries)))
        .flat_map(|(name, entries)| {
            entries.map(move |entry| format!("{name}/{}", entry.unwrap().file_name().to_string_lossy()))
        })
        .collect()
}

#[test]
fn the_files_of_this_release_are_fresh() {
    let dir = Path::new(DEPLOY);
    for manifest in current() {
        let on_disk = fs::read_to_string(dir.join(manifest.path)).unwrap_or_default();
        assert!(
            on_disk == manifest.yaml,
            "{DEPLOY}/{} is stale: run `make generate`, or raise the version in operator/Cargo.toml if this release is out",
            manifest.path
        );
    }
    let expected = current().iter().map(|manifest| manifest.path.to_string()).collect();
    let left_over: Vec<_> = files(dir).difference(&expected).cloned().collect();
    assert!(
        left_over.is_empty(),
        "nothing generates these any more, delete them from {DEPLOY}: {left_over:?}"
    );
}

#[test]
fn the_directory_and_the_stream_hold_the_same() {
    let dir = tempfile::tempdir().unwrap();
    // Twice: the second time over what is there.
    for _ in 0..2 {
        manifests::write(dir.path(), &current()).unwrap();
    }
    let expected: BTreeSet<_> = current().iter().map(|manifest| manifest.path.to_string()).collect();
    assert_eq!(files(dir.path()), expected, "no temporary file stays behind");
    let read: Vec<_> = current()
        .iter()
        .filter(|manifest| !manifest.path.starts_with("olm/"))
        .map(|manifest| fs::read_to_string(dir.path().join(manifest.path)).unwrap())
        .collect();
    assert_eq!(read.join("---\n"), manifests::stream(&current()));
}

#[test]
fn a_failed_write_names_the_file_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // A directory where a file has to go.
    fs::create_dir_all(dir.path().join("install/customresourcedefinition.yaml")).unwrap();
    let error = manifests::write(dir.path(), &current()).unwrap_err().to_string();
    assert!(error.contains("install/customresourcedefinition.yaml"), "{error}");
    assert_eq!(files(dir.path()).len(), 1);
}

#[test]
fn a_release_changes_the_image_and_nothing_else() {
    let later = manifests::manifests(&"99.0.0-rc.1".parse().unwrap()).unwrap();
    let changed: Vec<_> = current().into_iter().zip(later).filter(|(old, new)| old != new).collect();
    let [(old, new)] = &changed[..] else { panic!("{changed:?}") };
    let lines: Vec<_> = old.yaml.lines().zip(new.yaml.lines()).filter(|(old, new)| old != new).collect();
    let old = format!("        image: registry.example.com/redis-operator:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(lines, [(old.as_str(), "        image: registry.example.com/redis-operator:99.0.0-rc.1")]);
}

#[test]
fn permissions_name_what_they_are_for() {
    for kind in ["ClusterRole", "Role"] {
        for rule in object(kind)["rules"].as_array().unwrap() {
            for key in ["apiGroups", "resources", "verbs"] {
                let words: Vec<_> =
                    rule[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
                assert!(!words.is_empty() && words.iter().all(|word| !word.contains('*')), "{rule}");
                assert!(words.is_sorted(), "{rule}");
            }
            for verb in ["bind", "deletecollection", "escalate", "impersonate"] {
                assert!(!rule["verbs"].as_array().unwrap().contains(&json!(verb)), "{rule}");
            }
        }
    }
}

/// The text of a file of the code.
fn source(file: &str) -> String {
    fs::read_to_string(format!("{}/src/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// What the code asks of the API server: `verb resource.group`. Every call of a controller goes through `call`, with verb
/// and kind as literals; what it watches is listed by the stores in the cache.
fn asked(source: impl Fn(&str) -> String) -> BTreeSet<String> {
    let resource = |kind: &str| match kind {
        "ConfigMap" => "configmaps",
        "Event" => "events.events.k8s.io",
        "NetworkPolicy" => "networkpolicies.networking.k8s.io",
        "Node" => "nodes",
        "PersistentVolumeClaim" => "persistentvolumeclaims",
        "Pod" => "pods",
        "Pod/status" => "pods/status",
        "PodDisruptionBudget" => "poddisruptionbudgets.policy",
        "RedisCluster" => "redisclusters.cache.example.com",
        "RedisCluster/status" => "redisclusters/status.cache.example.com",
        "Secret" => "secrets",
        "Service" => "services",
        "StatefulSet" => "statefulsets.apps",
        other => panic!("no resource is known for {other}"),
    };
    let mut asked = BTreeSet::new();
    for file in ["claims", "creation", "finalize", "mod", "reconciler"] {
        let file = &format!("controller/{file}.rs");
        // However rustfmt broke the lines.
        let text: String = source(file).split_whitespace().collect();
        for call in text.split("call(\"").skip(1) {
            let words: Vec<&str> = call.splitn(4, '"').collect();
            if let [verb, ",", kind, _] = words[..] {
                asked.insert(format!("{verb} {}", resource(kind)));
            }
        }
        for ensured in text.split("self.ensure(\"").skip(1) {
            let kind = ensured.split('"').next().unwrap();
            // Looked for where it is not watched, and applied, which makes it when it is not there.
            asked.extend(["create", "get", "patch"].map(|verb| format!("{verb} {}", resource(kind))));
        }
    }
    for store in
        source("controller/cache.rs").split("    pub ").filter_map(|field| field.split_once(": Store<"))
    {
        let kind = store.1.trim_start_matches("Packed<").split('>').next().unwrap();
        asked.extend(["list", "watch"].map(|verb| format!("{verb} {}", resource(kind))));
    }
    // Beside the controllers: events, webhooks and their certificate, the lease; and what is checked in our name when an
    // owner reference is set.
    let others = [
        ("create events.events.k8s.io", "controller/mod.rs", "recorder.publish"),
        ("patch events.events.k8s.io", "controller/mod.rs", "recorder.publish"),
        ("get statefulsets.apps", "webhook/mod.rs", "sets.get_opt"),
        ("get secrets", "webhook/tls.rs", "secrets.get_opt"),
        ("create secrets", "webhook/tls.rs", "secrets.create"),
        ("get customresourcedefinitions.apiextensions.k8s.io", "webhook/tls.rs", "definitions.get"),
        ("patch customresourcedefinitions.apiextensions.k8s.io", "webhook/tls.rs", "definitions.patch"),
        (
            "get validatingwebhookconfigurations.admissionregistration.k8s.io",
            "webhook/tls.rs",
            "configurations.get_opt",
        ),
        (
            "patch validatingwebhookconfigurations.admissionregistration.k8s.io",
            "webhook/tls.rs",
            "configurations.patch",
        ),
        ("get leases.coordination.k8s.io", "../../lease/src/lib.rs", "api.get_opt"),
        ("create leases.coordination.k8s.io", "../../lease/src/lib.rs", "api.create"),
        ("update leases.coordination.k8s.io", "../../lease/src/lib.rs", "api.replace"),
        (
            "update redisclusters/finalizers.cache.example.com",
            "controller/children.rs",
            "block_owner_deletion: Some(true)",
        ),
    ];
    for (permission, file, evidence) in others {
        let text: String = source(file).split_whitespace().collect();
        let evidence: String = evidence.split_whitespace().collect();
        assert!(text.contains(&evidence), "{file} has no `{evidence}`: does it still {permission}?");
        asked.insert(permission.into());
    }
    asked
}

/// What the roles allow.
fn given() -> BTreeSet<String> {
    let mut given = BTreeSet::new();
    for kind in ["ClusterRole", "Role"] {
        for rule in object(kind)["rules"].as_array().unwrap() {
            let words = |key: &str| {
                rule[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned())
            };
            for group in words("apiGroups") {
                for resource in words("resources") {
                    let name = format!("{resource}.{group}");
                    given.extend(words("verbs").map(|verb| format!("{verb} {}", name.trim_end_matches('.'))));
                }
            }
        }
    }
    given
}

/// What is asked for and not allowed, and what is allowed and not asked for.
fn differences(asked: &BTreeSet<String>, given: &BTreeSet<String>) -> String {
    let missing: Vec<_> = asked.difference(given).collect();
    let unused: Vec<_> = given.difference(asked).collect();
    format!("not given: {missing:?}, not used: {unused:?}")
}

#[test]
fn permissions_are_what_the_code_asks_for_and_no_more() {
    assert_eq!(differences(&asked(source), &given()), "not given: [], not used: []");
}

#[test]
fn a_call_or_a_rule_more_is_noticed() {
    let one_more = |file: &str| {
        let call = "call(\"delete\", \"Secret\", secrets.delete(name)).await?;";
        if file == "controller/finalize.rs" { source(file) + call } else { source(file) }
    };
    assert_eq!(differences(&asked(one_more), &given()), "not given: [\"delete secrets\"], not used: []");
    let mut generous = given();
    generous.insert("delete secrets".into());
    assert_eq!(differences(&asked(source), &generous), "not given: [], not used: [\"delete secrets\"]");
}

/// No call gets past `call`, where it is named: whatever is asked of an `Api` stands in one.
#[test]
fn controllers_ask_the_api_server_by_one_door() {
    const VERBS: [&str; 9] = [
        "create",
        "delete",
        "delete_collection",
        "get",
        "get_opt",
        "list",
        "patch",
        "patch_status",
        "replace",
    ];
    let mut found = 0;
    for file in ["claims", "creation", "finalize", "reconciler"] {
        let file = &format!("controller/{file}.rs");
        let text: String = source(file).split_whitespace().collect();
        for name in ["api", "claims", "clusters", "sets"] {
            for verb in VERBS {
                for (at, _) in text.match_indices(&format!("{name}.{verb}(")) {
                    // `call("verb", "Kind", ` or `call("verb", kind, ` stands before it.
                    let before = &text[..at];
                    let stands = before.ends_with(',')
                        && before.rsplit("call(\"").next().is_some_and(|rest| rest.matches(',').count() == 2);
                    assert!(stands, "{file}: {name}.{verb} is not in a `call`");
                    found += 1;
                }
            }
        }
        // Another name for an `Api` would not be looked at.
        for (at, _) in text.match_indices(":Api<") {
            let name: String = text[..at].chars().rev().take_while(|c| c.is_ascii_lowercase()).collect();
            let name: String = name.chars().rev().collect();
            let known = ["api", "claims", "clusters", "sets"].iter().any(|known| name.ends_with(known));
            assert!(known, "{file}: an `Api` is called {name}");
        }
    }
    assert!(found > 10, "{found}");
    // Elsewhere nobody asks, but those that the list above names.
    let with_api = ["controller", "crd", "manifests", "server", "webhook", "."]
        .iter()
        .flat_map(|dir| {
            let path = format!("{}/src/{dir}", env!("CARGO_MANIFEST_DIR"));
            fs::read_dir(path)
                .unwrap()
                .map(move |entry| format!("{dir}/{}", entry.unwrap().file_name().display()))
        })
        .filter(|file| file.ends_with(".rs") && source(file).contains("Api<"))
        .collect::<BTreeSet<_>>();
    let known = ["cache", "claims", "creation", "finalize", "mod", "reconciler", "upgradeable"]
        .map(|name| format!("controller/{name}.rs"));
    let webhooks = ["mod", "tls"].map(|name| format!("webhook/{name}.rs"));
    // It has the rights of the user who runs it.
    let migration = ["./migrate.rs".to_owned()];
    let known: BTreeSet<String> = known.into_iter().chain(webhooks).chain(migration).collect();
    assert_eq!(with_api, known);
}

#[test]
fn the_bindings_give_the_roles_to_the_account_that_the_pod_uses() {
    let account = object("ServiceAccount")["metadata"].clone();
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        assert_eq!(object(binding)["roleRef"]["kind"], role);
        assert_eq!(object(binding)["roleRef"]["name"], object(role)["metadata"]["name"]);
        let subject = json!([{
            "kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"],
        }]);
        assert_eq!(object(binding)["subjects"], subject);
    }
    let deployment = object("Deployment");
    assert_eq!(deployment["metadata"]["name"], "redis-operator");
    assert_eq!(deployment["metadata"]["namespace"], account["namespace"]);
    assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], account["name"]);
}

#[test]
fn the_pod_is_small_and_locked_down() {
    let pod = object("Deployment")["spec"]["template"]["spec"].clone();
    assert_eq!(
        pod["securityContext"],
        json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } })
    );
    let [container] = &pod["containers"].as_array().unwrap()[..] else { panic!("{pod}") };
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        })
    );
    assert_eq!(
        container["resources"],
        json!({ "limits": { "memory": "128Mi" }, "requests": { "cpu": "100m", "memory": "30Mi" } })
    );
    let watched =
        container["env"].as_array().unwrap().iter().find(|env| env["name"] == "WATCH_NAMESPACE").unwrap();
    assert_eq!(watched["valueFrom"]["fieldRef"]["fieldPath"], "metadata.annotations['olm.targetNamespaces']");
}

#[test]
fn selectors_and_ports_meet() {
    let deployment = object("Deployment");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    let service = object("Service");
    assert_eq!(&service["spec"]["selector"], labels);

    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let ports: Vec<_> =
        container["ports"].as_array().unwrap().iter().map(|port| port["name"].as_str().unwrap()).collect();
    for port in [
        &service["spec"]["ports"][0]["targetPort"],
        &container["livenessProbe"]["httpGet"]["port"],
        &container["readinessProbe"]["httpGet"]["port"],
    ] {
        assert!(ports.contains(&port.as_str().unwrap()), "{port} is not among {ports:?}");
    }
}

/// The fields of a schema below this path, each with its schema; of lists, maps and resources only the whole.
fn fields(schema: &Value, above: &str, found: &mut Vec<(String, Value)>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{above}{name}");
        found.push((path.clone(), field.clone()));
        if field["properties"]["limits"].is_null() {
            fields(field, &format!("{path}."), found);
        }
    }
}

#[test]
fn consoles_show_every_field() {
    let base = current().into_iter().find(|manifest| manifest.path.starts_with("olm/")).unwrap();
    let base: Value = serde_saphyr::from_str(&base.yaml).unwrap();
    let owned = base["spec"]["customresourcedefinitions"]["owned"].as_array().unwrap();
    let versions = object("CustomResourceDefinition")["spec"]["versions"].as_array().unwrap().clone();
    assert_eq!(owned.len(), versions.len());
    for (api, version) in owned.iter().zip(&versions) {
        assert_eq!(api["version"], version["name"]);
        for (part, list) in [("spec", "specDescriptors"), ("status", "statusDescriptors")] {
            let mut all = vec![];
            fields(&version["schema"]["openAPIV3Schema"]["properties"][part], "", &mut all);
            let described = api[list].as_array().unwrap();
            assert_eq!(described.len(), all.len(), "{part}");
            for (path, field) in all {
                let of_path = |one: &&Value| one["path"] == *path;
                let found = described.iter().find(of_path).unwrap_or_else(|| panic!("{part}.{path}"));
                assert_eq!(found["description"], field["description"], "{path}");
                let hints: Vec<_> = found["x-descriptors"].as_array().into_iter().flatten().collect();
                let has = |hint: &str| {
                    let hint = json!(format!("urn:alm:descriptor:com.tectonic.ui:{hint}"));
                    hints.iter().any(|found| **found == hint)
                };
                let of_spec = part == "spec";
                let values = field["enum"].as_array().filter(|_| of_spec);
                let selects = |value: &Value| has(&format!("select:{}", value.as_str().unwrap()));
                assert!(values.into_iter().flatten().all(selects), "{path}: {hints:?}");
                assert!(!of_spec || field["type"] != "boolean" || has("booleanSwitch"), "{path}: {hints:?}");
                let group = path.rsplit_once('.').map(|(group, _)| format!("fieldGroup:{group}"));
                assert!(group.is_none_or(|group| has(&group)), "{path}: {hints:?}");
                let plain = ["integer", "string", "boolean"].contains(&field["type"].as_str().unwrap_or(""));
                assert!(!plain || !hints.is_empty(), "{path}");
            }
        }
    }
}
