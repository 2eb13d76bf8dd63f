//! The releases in `deploy/`, one after the other: what each adds, and that none takes anything away.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

use std::{fs, path::PathBuf};

use insta::assert_snapshot;
use redis_operator::crd::RedisCluster;
use semver::Version;
use serde_json::Value;

/// The releases that have a directory, oldest first.
fn releases() -> Vec<(Version, PathBuf)> {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
    let mut releases: Vec<_> = fs::read_dir(deploy)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| (Version::parse(path.file_name().unwrap().to_str().unwrap()).unwrap(), path))
        .collect();
    releases.sort();
    releases
}

fn object(release: &(Version, PathBuf), kind: &str) -> Value {
    let path = release.1.join("install").join(kind.to_lowercase() + ".yaml");
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What changed from one release to the next: what users and clusters gain, and what would break them.
#[derive(Default)]
struct Changes {
    gained: Vec<String>,
    broken: Vec<String>,
}

impl Changes {
    fn between(old: &(Version, PathBuf), new: &(Version, PathBuf)) -> Self {
        let mut changes = Self::default();
        changes
            .definition(&object(old, "CustomResourceDefinition"), &object(new, "CustomResourceDefinition"));
        for kind in ["ClusterRole", "Role"] {
            let (old, new) = (permissions(&object(old, kind)), permissions(&object(new, kind)));
            changes.list(
                kind,
                &[],
                &new.iter().filter(|item| !old.contains(item)).cloned().collect::<Vec<_>>(),
            );
            // What the operator gives up breaks nobody.
            let dropped = old.iter().filter(|item| !new.contains(item));
            changes.gained.extend(dropped.map(|item| format!("{kind} gives up {item}")));
        }
        // A Deployment whose selector changes cannot be updated.
        let (old, new) = (object(old, "Deployment"), object(new, "Deployment"));
        changes.same("Deployment", &old["metadata"]["name"], &new["metadata"]["name"]);
        changes.same("Deployment", &old["spec"]["selector"], &new["spec"]["selector"]);
        changes
    }

    fn definition(&mut self, old: &Value, new: &Value) {
        for key in ["group", "names", "scope"] {
            self.same(key, &old["spec"][key], &new["spec"][key]);
        }
        let (old, new) = (&old["spec"]["versions"][0], &new["spec"]["versions"][0]);
        for key in ["name", "served", "storage", "subresources"] {
            self.same(key, &old[key], &new[key]);
        }
        self.list("column", &columns(old), &columns(new));
        self.schema("", &old["schema"]["openAPIV3Schema"], &new["schema"]["openAPIV3Schema"]);
    }

    /// Every object that the old schema takes, the new one takes and keeps.
    fn schema(&mut self, path: &str, old: &Value, new: &Value) {
        let (old, new) = (old.as_object().unwrap(), new.as_object().unwrap());
        for (key, value) in old {
            let now = new.get(key).unwrap_or(&Value::Null);
            match key.as_str() {
                "description" => {}
                "properties" => {
                    for (name, property) in value.as_object().unwrap() {
                        match now.get(name) {
                            Some(now) => self.schema(&format!("{path}.{name}"), property, now),
                            None => self.broken.push(format!("{path}.{name} is gone")),
                        }
                    }
                    for name in now.as_object().into_iter().flatten().map(|(name, _)| name) {
                        if value.get(name).is_none() {
                            self.gained.push(format!("{path}.{name}"));
                        }
                    }
                }
                "items" | "additionalProperties" => self.schema(&format!("{path}[]"), value, now),
                "enum" => self.list(path, &words(value), &words(now)),
                "x-kubernetes-validations" => {}
                _ => self.same(&format!("{path}: {key}"), value, now),
            }
        }
        for (key, value) in new {
            match key.as_str() {
                "x-kubernetes-validations" => {
                    let before = old.get(key).map(rules).unwrap_or_default();
                    for rule in rules(value) {
                        if before.contains(&rule) {
                            continue;
                        }
                        // Even one that refuses no object which is there: OLM v1 refuses every new rule.
                        self.broken.push(format!("{path}: {rule}"));
                    }
                }
                _ if !old.contains_key(key) => self.broken.push(format!("{path}: {key} is new")),
                _ => {}
            }
        }
    }

    fn same(&mut self, what: &str, old: &Value, new: &Value) {
        if old != new {
            self.broken.push(format!("{what}: {old} became {new}"));
        }
    }

    fn list(&mut self, what: &str, old: &[String], new: &[String]) {
        self.broken.extend(
            old.iter().filter(|item| !new.contains(item)).map(|item| format!("{what} {item} is gone")),
        );
        self.gained
            .extend(new.iter().filter(|item| !old.contains(item)).map(|item| format!("{what} {item}")));
    }
}

/// Each permission of a role on a line of its own.
fn permissions(role: &Value) -> Vec<String> {
    let mut lines = vec![];
    for rule in role["rules"].as_array().unwrap() {
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                let verbs = words(&rule["verbs"]).into_iter();
                lines.extend(
                    verbs.map(|verb| format!("{verb} {resource}.{group}").trim_end_matches('.').to_string()),
                );
            }
        }
    }
    lines
}

fn columns(version: &Value) -> Vec<String> {
    let columns = version["additionalPrinterColumns"].as_array().unwrap().iter();
    let text = |column: &Value, key: &str| column[key].as_str().unwrap().to_string();
    columns.map(|column| format!("{} = {}", text(column, "name"), text(column, "jsonPath"))).collect()
}

fn rules(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|rule| rule["rule"].as_str().unwrap().to_string()).collect()
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_string()).collect()
}

#[test]
fn releases_only_add() {
    let releases = releases();
    let (mut gained, mut broken) = (String::new(), vec![]);
    for pair in releases.windows(2) {
        let changes = Changes::between(&pair[0], &pair[1]);
        gained += &format!("{}\n", pair[1].0);
        gained.extend(changes.gained.iter().map(|line| format!("  {line}\n")));
        broken.extend(changes.broken.iter().map(|line| format!("{}: {line}", pair[1].0)));
    }
    assert_eq!(broken, [""; 0]);
    assert_snapshot!(gained, @r"
    0.2.0
      .spec.storage.deletionPolicy
      ClusterRole delete persistentvolumeclaims
    0.2.1
    0.3.0
      .status.members
    0.4.0
      column Slots = .status.slotsCovered
      .status.slotsCovered
    0.5.0
      .spec.recovery
      ClusterRole patch pods/status
      ClusterRole get nodes
      ClusterRole create networkpolicies.networking.k8s.io
      ClusterRole get networkpolicies.networking.k8s.io
      ClusterRole list networkpolicies.networking.k8s.io
      ClusterRole patch networkpolicies.networking.k8s.io
      ClusterRole watch networkpolicies.networking.k8s.io
      ClusterRole get customresourcedefinitions.apiextensions.k8s.io
      ClusterRole patch customresourcedefinitions.apiextensions.k8s.io
      ClusterRole get validatingwebhookconfigurations.admissionregistration.k8s.io
      ClusterRole patch validatingwebhookconfigurations.admissionregistration.k8s.io
      ClusterRole gives up get redisclusters.cache.example.com
      ClusterRole gives up patch secrets
      ClusterRole gives up get pods
      ClusterRole gives up get persistentvolumeclaims
    0.6.0
      .spec.auth.users
      .spec.recovery.replicaValidityFactor
      .spec.recovery.stoppedPods
      .spec.exporter
      .spec.hibernated
      .spec.pods
      .spec.tls
      .spec.update
      .status.members[].inSync
      .status.members[].offset
      .status.members[].primaryId
      .status.phase Hibernating
      .status.phase Hibernated
      .status.phase Waking
      .status.users
      ClusterRole list events.events.k8s.io
    ");
}

#[test]
fn the_newest_release_is_this_program() {
    assert_eq!(releases().pop().unwrap().0.to_string(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn each_release_names_its_own_image() {
    for release in releases() {
        let deployment = object(&release, "Deployment");
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
        assert_eq!(image, format!("registry.example.com/redis-operator:{}", release.0));
    }
}

#[test]
fn samples_of_old_releases_can_still_be_read() {
    for (_, dir) in releases() {
        for entry in fs::read_dir(dir.join("samples")).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            serde_saphyr::from_str::<RedisCluster>(&text).unwrap();
        }
    }
}

/// The comparison itself, on changes that must not pass.
#[test]
fn what_would_break_users_is_found() {
    let check = |old: &str, new: &str| {
        let mut changes = Changes::default();
        changes.schema("", &serde_saphyr::from_str(old).unwrap(), &serde_saphyr::from_str(new).unwrap());
        changes.broken.join("\n")
    };
    let old = "{type: object, required: [a], properties: {a: {type: string, maxLength: 9}, b: {type: string, enum: [A, B]}}}";
    assert_snapshot!(check(old, old), @"");
    assert_snapshot!(check(old, &old.replace("b: {type: string, enum: [A, B]}", "c: {type: string}")), @".b is gone");
    assert_snapshot!(check(old, &old.replace("[A, B]", "[A]")), @".b B is gone");
    assert_snapshot!(check(old, &old.replace("maxLength: 9", "maxLength: 8")), @".a: maxLength: 9 became 8");
    assert_snapshot!(check(old, &old.replace("required: [a]", "required: [a, b]")), @r#": required: ["a"] became ["a","b"]"#);
    assert_snapshot!(check(old, &old.replace("string, maxLength", "string, pattern: x, maxLength")), @".a: pattern is new");
    assert_snapshot!(check(old, &old.replace("object, ", "object, x-kubernetes-validations: [{rule: self.a != ''}], ")), @": self.a != ''");
}
