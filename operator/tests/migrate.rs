//! `redis-operator migrate-storage` against an API server that is played: it knows at which version each object is stored, and
//! writes one as v1 for any update. `tests/apiserver` has a real one.
#![expect(clippy::unwrap_used, reason = "what the tests share is a test as well")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, patch},
};
use insta::assert_snapshot;
use kube::{Client, Config};
use redis_operator::migrate::migrate;
use serde_json::{Value, json};

/// One RedisCluster: the version that it is stored in, and its resourceVersion.
struct Stored {
    version: &'static str,
    revision: u32,
}

#[derive(Default)]
struct Server {
    objects: BTreeMap<String, Stored>,
    stored_versions: Vec<&'static str>,
    /// The version with `storage: true`.
    storage: &'static str,
    /// Revision of the CRD.
    revision: u32,
    /// Objects that are refused.
    invalid: Vec<&'static str>,
    /// How often the CRD changes before its status is written.
    crd_changes: u32,
    /// How many continued lists are too old.
    expired: u32,
    /// How many writes are answered before the server fails.
    writes: Option<u32>,
    /// Objects that are deleted once they were listed.
    gone: Vec<&'static str>,
    /// Nobody converts.
    no_converter: bool,
}

type Shared = Arc<Mutex<Server>>;

impl Server {
    fn definition(&self) -> Value {
        let version = |name: &str| {
            let schema = json!({"openAPIV3Schema": {"type": "object"}});
            json!({"name": name, "served": true, "storage": name == self.storage, "schema": schema})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "redisclusters.cache.example.com", "uid": "crd", "resourceVersion": self.revision.to_string()},
            "spec": {
                "group": "cache.example.com", "scope": "Namespaced", "versions": [version("v1"), version("v1alpha1")],
                "names": {"kind": "RedisCluster", "plural": "redisclusters"},
            },
            "status": {"storedVersions": self.stored_versions, "acceptedNames": {"kind": "", "plural": ""}, "conditions": []},
        })
    }
}

fn object(name: &str, revision: u32) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": revision.to_string()},
    })
}

fn failure(code: u16, reason: &str, message: &str) -> Response {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
    });
    (StatusCode::from_u16(code).unwrap(), Json(status)).into_response()
}

async fn definition(State(server): State<Shared>) -> Response {
    Json(server.lock().unwrap().definition()).into_response()
}

async fn patch_definition(State(server): State<Shared>, body: String) -> Response {
    let mut server = server.lock().unwrap();
    let patch: Value = serde_json::from_str(&body).unwrap();
    if server.crd_changes > 0 {
        server.crd_changes -= 1;
        server.revision += 1;
    }
    let asked = patch["metadata"]["resourceVersion"].as_str().and_then(|revision| revision.parse().ok());
    if asked != Some(server.revision) {
        return failure(409, "Conflict", "the object has been modified");
    }
    // As the real one, it would take anything: what is dropped here is lost if an object is stored so.
    assert_eq!(patch["status"], json!({"storedVersions": ["v1"]}));
    server.stored_versions = vec!["v1"];
    Json(server.definition()).into_response()
}

/// Two to a page.
async fn list(State(server): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let mut server = server.lock().unwrap();
    let old = server.objects.values().any(|object| object.version != "v1");
    if server.no_converter && old {
        return failure(500, "InternalError", "conversion webhook for cache.example.com/v1alpha1 failed");
    }
    let query = query.unwrap_or_default();
    let token = query.split('&').find_map(|pair| pair.strip_prefix("continue="));
    let after = token.unwrap_or_default().to_owned();
    if !after.is_empty() && server.expired > 0 {
        server.expired -= 1;
        return failure(410, "Expired", "The provided continue parameter is too old");
    }
    let rest: Vec<_> = server.objects.iter().filter(|(name, _)| **name > after).collect();
    let page = &rest[..rest.len().min(2)];
    let items: Vec<Value> = page.iter().map(|(name, stored)| object(name, stored.revision)).collect();
    let token = if rest.len() > 2 { page[1].0.clone() } else { String::new() };
    Json(json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": {"resourceVersion": "1", "continue": token}, "items": items,
    }))
    .into_response()
}

async fn write(
    State(server): State<Shared>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let mut server = server.lock().unwrap();
    if let Some(writes) = &mut server.writes {
        if *writes == 0 {
            return failure(500, "InternalError", "etcdserver: request timed out");
        }
        *writes -= 1;
    }
    if server.gone.contains(&name.as_str()) {
        server.objects.remove(&name);
        return failure(404, "NotFound", "not found");
    }
    if server.invalid.contains(&name.as_str()) {
        return failure(422, "Invalid", "spec.size: Invalid value: 0");
    }
    let dry_run = query.is_some_and(|query| query.contains("dryRun=All"));
    let stored = server.objects.get_mut(&name).unwrap();
    if stored.version != "v1" && !dry_run {
        *stored = Stored { version: "v1", revision: stored.revision + 10 };
    }
    let revision = stored.revision;
    Json(object(&name, revision)).into_response()
}

/// Runs the command, and says what it printed, its error, and what the CRD lists then.
fn run(server: &Shared, dry_run: bool) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        const CRD: &str =
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/redisclusters.cache.example.com";
        let router = Router::new()
            .route(CRD, get(definition))
            .route(&format!("{CRD}/status"), patch(patch_definition))
            .route("/apis/cache.example.com/v1/redisclusters", get(list))
            .route("/apis/cache.example.com/v1/namespaces/team/redisclusters/{name}", patch(write))
            .with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut config = Config::new(format!("http://{address}").parse().unwrap());
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let mut said = vec![];
        let result = migrate(&client, dry_run, &mut said).await;
        let mut text = String::from_utf8(said).unwrap();
        if let Err(error) = result {
            text += &format!("exit {}: {}\n", error.exit_code(), redis_operator::telemetry::chain(&error));
        }
        text + &format!("stored: {}", server.lock().unwrap().stored_versions.join(", "))
    })
}

/// A server with these objects: `name version`.
fn server(objects: &[(&str, &'static str)]) -> Server {
    let stored = objects.iter().map(|(name, version)| ((*name).to_owned(), Stored { version, revision: 1 }));
    Server {
        objects: stored.collect(),
        stored_versions: vec!["v1alpha1", "v1"],
        storage: "v1",
        revision: 1,
        ..Server::default()
    }
}

fn shared(server: Server) -> Shared {
    Arc::new(Mutex::new(server))
}

const MIXED: [(&str, &str); 5] =
    [("a", "v1alpha1"), ("b", "v1"), ("c", "v1alpha1"), ("d", "v1"), ("e", "v1alpha1")];

fn old(server: &Shared) -> usize {
    server.lock().unwrap().objects.values().filter(|object| object.version != "v1").count()
}

#[test]
fn what_is_stored_as_v1alpha1_is_stored_as_v1() {
    let server = shared(server(&MIXED));
    assert_snapshot!(run(&server, false), @r"
    RedisClusters may be stored as v1alpha1
    rewrote team/a
    rewrote team/c
    rewrote team/e
    5 RedisClusters: 3 rewritten as v1, 2 stored as v1 already, 0 refused
    removed v1alpha1 from status.storedVersions of customresourcedefinition/redisclusters.cache.example.com
    stored: v1
    ");
    assert_eq!(old(&server), 0);
    assert_snapshot!(run(&server, false), @r"
    every RedisCluster is stored as v1: nothing to migrate
    stored: v1
    ");
}

#[test]
fn a_dry_run_writes_nothing() {
    let server = shared(Server { invalid: vec!["c"], ..server(&MIXED) });
    assert_snapshot!(run(&server, true), @r"
    RedisClusters may be stored as v1alpha1
    cannot rewrite team/c: spec.size: Invalid value: 0
    5 RedisClusters: would rewrite 4, 1 refused
    exit 1: 1 RedisClusters could not be rewritten, and status.storedVersions stays as it is: correct them, and run the command again
    stored: v1alpha1, v1
    ");
    assert_eq!(old(&server), 3);
    server.lock().unwrap().invalid.clear();
    assert_snapshot!(run(&server, true), @r"
    RedisClusters may be stored as v1alpha1
    5 RedisClusters: would rewrite 5, 0 refused
    would remove v1alpha1 from status.storedVersions (dry run)
    stored: v1alpha1, v1
    ");
}

/// Broken off after any number of writes, nothing is dropped while an object is stored in it, and the next run finishes.
#[test]
fn a_migration_that_is_broken_off_is_resumed() {
    for writes in 0..MIXED.len() as u32 {
        let server = shared(Server { writes: Some(writes), ..server(&MIXED) });
        let said = run(&server, false);
        assert!(said.contains("exit 3: the API server refused to rewrite team/"), "{said}");
        assert!(said.ends_with("stored: v1alpha1, v1"), "{said}");
        server.lock().unwrap().writes = None;
        assert!(run(&server, false).ends_with("stored: v1"));
        assert_eq!(old(&server), 0);
    }
}

/// The others are stored as v1, and the version stays listed for the one that is not.
#[test]
fn an_object_that_is_refused_keeps_the_version_listed() {
    let server = shared(Server { invalid: vec!["c"], ..server(&MIXED) });
    assert_snapshot!(run(&server, false), @r"
    RedisClusters may be stored as v1alpha1
    rewrote team/a
    cannot rewrite team/c: spec.size: Invalid value: 0
    rewrote team/e
    5 RedisClusters: 2 rewritten as v1, 2 stored as v1 already, 1 refused
    exit 1: 1 RedisClusters could not be rewritten, and status.storedVersions stays as it is: correct them, and run the command again
    stored: v1alpha1, v1
    ");
    assert_eq!(old(&server), 1);
}

/// The storage version could have been another for a moment.
#[test]
fn a_crd_that_changes_meanwhile_begins_it_anew() {
    let server_ = shared(Server { crd_changes: 2, ..server(&MIXED[..2]) });
    assert_snapshot!(run(&server_, false), @r"
    RedisClusters may be stored as v1alpha1
    rewrote team/a
    2 RedisClusters: 1 rewritten as v1, 1 stored as v1 already, 0 refused
    the CRD changed meanwhile: starting again
    RedisClusters may be stored as v1alpha1
    2 RedisClusters: 0 rewritten as v1, 2 stored as v1 already, 0 refused
    the CRD changed meanwhile: starting again
    RedisClusters may be stored as v1alpha1
    2 RedisClusters: 0 rewritten as v1, 2 stored as v1 already, 0 refused
    removed v1alpha1 from status.storedVersions of customresourcedefinition/redisclusters.cache.example.com
    stored: v1
    ");
    let server = shared(Server { crd_changes: 99, ..server(&MIXED[..1]) });
    let said = run(&server, false);
    assert!(
        said.contains("exit 3: customresourcedefinition/redisclusters.cache.example.com changed 5 times"),
        "{said}"
    );
    assert!(said.ends_with("stored: v1alpha1, v1"), "{said}");
}

#[test]
fn a_list_that_expires_and_objects_that_go_are_no_failure() {
    let server = shared(Server { expired: 1, gone: vec!["d"], ..server(&MIXED) });
    let said = run(&server, false);
    assert!(said.contains("4 RedisClusters: 3 rewritten as v1, 1 stored as v1 already, 0 refused"), "{said}");
    assert!(said.ends_with("stored: v1"), "{said}");
}

#[test]
fn what_keeps_it_from_beginning() {
    let server_ = shared(Server { no_converter: true, ..server(&MIXED) });
    let said = run(&server_, false);
    assert!(said.contains("is it running?): ") && said.contains("conversion webhook"), "{said}");
    assert!(said.contains("exit 3") && said.ends_with("stored: v1alpha1, v1"), "{said}");
    let server = shared(Server { storage: "v1alpha1", ..server(&MIXED) });
    let said = run(&server, false);
    assert!(said.contains("exit 1: customresourcedefinition/redisclusters.cache.example.com stores objects as v1alpha1, not as v1"), "{said}");
    assert_eq!(old(&server), 3);
}
