//! `redis-operator migrate-storage` on a real API server: what is stored as v1alpha1 is stored as v1, and v1alpha1 can leave the CRD.

use std::{path::Path, process::Command};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use libtest_mimic::Trial;
use redis_operator::crd::{self, RedisCluster};
use serde_json::{Value, json};

use crate::{
    World,
    api::{ADMIN, ApiServer},
    client::{connect, ready},
    create, eventually,
    support::{self, Part},
};

/// On a server of its own: the versions of the API are the same for all tests on one server.
pub(crate) fn trial(parts: &[Part]) -> Trial {
    support::trial_with("what_is_stored_as_v1alpha1_is_stored_as_v1", parts, || {
        let server = ApiServer::start(&[], ready);
        let kubeconfig = server.kubeconfig(ADMIN);
        let world = World::of(&server);
        world.runtime.block_on(async {
            let client = connect(&kubeconfig).await;
            migrates(&client, &kubeconfig).await;
        });
        Ok(())
    })
}

/// Applies the CRD with these versions: `name`, and whether it is stored.
async fn define(client: &Client, wanted: &[(&str, bool)]) -> Result<(), kube::Error> {
    let mut definition = serde_json::to_value(crd::definition(Default::default())).unwrap();
    // Nobody converts here: the fields that both versions have are the same.
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    let versions = definition["spec"]["versions"].as_array().unwrap().clone();
    let version = |(name, stored): &(&str, bool)| {
        let mut version = versions.iter().find(|version| version["name"] == *name).unwrap().clone();
        version["storage"] = json!(stored);
        version
    };
    definition["spec"]["versions"] = wanted.iter().map(version).collect::<Vec<Value>>().into();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let parameters = PatchParams::apply("test").force();
    let name = "redisclusters.cache.example.com";
    definitions.patch(name, &parameters, &Patch::Apply(definition)).await.map(drop)
}

async fn migrates(client: &Client, kubeconfig: &Path) {
    let clusters: Api<RedisCluster> = Api::all(client.clone());
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let listed = async || {
        let definition = definitions.get("redisclusters.cache.example.com").await.unwrap();
        definition.status.and_then(|status| status.stored_versions).unwrap_or_default()
    };
    define(client, &[("v1", false), ("v1alpha1", true)]).await.unwrap();
    eventually("the API is served", async || {
        clusters.list(&ListParams::default()).await.is_ok().then_some(())
    })
    .await;
    for size in 1..=3 {
        create(client, "default", &format!("old-{size}"), json!({"size": size})).await;
    }
    define(client, &[("v1", true), ("v1alpha1", false)]).await.unwrap();
    eventually("v1 is stored", async || (listed().await == ["v1alpha1", "v1"]).then_some(())).await;
    create(client, "default", "new-4", json!({"size": 4})).await;
    let refused = define(client, &[("v1", true)]).await.unwrap_err().to_string();
    assert!(refused.contains("status.storedVersions"), "{refused}");

    let run = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_redis-operator"))
            .arg("migrate-storage")
            .args(flags)
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let said = run(&["--dry-run"]);
    assert!(said.contains("4 RedisClusters: would rewrite 4, 0 refused"), "{said}");
    assert_eq!(listed().await, ["v1alpha1", "v1"]);
    let said = run(&[]);
    let expected = "rewrote default/old-1\nrewrote default/old-2\nrewrote default/old-3\n4 RedisClusters: 3 rewritten as v1, 1 stored as v1 already, 0 refused\n";
    assert!(said.contains(expected), "{said}");
    assert_eq!(listed().await, ["v1"]);
    assert!(run(&[]).contains("nothing to migrate"));

    define(client, &[("v1", true)]).await.unwrap();
    let mut sizes: Vec<i32> = clusters
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(|cluster| cluster.spec.size)
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 3, 4]);
}
