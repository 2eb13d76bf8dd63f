//! What is made from `registry.proto` is fresh. `make generate` renews it.

use std::path::Path;

use prost::Message as _;

use crate::client::descriptors;

fn server() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/catalog/serve"))
}

#[track_caller]
fn fresh(path: &str, expected: &[u8]) {
    let path = server().join(path);
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        std::fs::write(&path, expected).expect("the checkout can be written");
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == expected, "{} is stale: run `make generate`", path.display());
}

#[test]
fn messages() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = prost_build::Config::new();
    config.out_dir(dir.path());
    // The three ways to ask for an API by its name are one type.
    for twin in ["GetLatestProvidersRequest", "GetDefaultProviderRequest"] {
        config.extern_path(format!(".api.{twin}"), "GetAllProvidersRequest");
    }
    config.compile_fds(descriptors()).unwrap();
    fresh("src/compiled/api.rs", &std::fs::read(dir.path().join("api.rs")).unwrap());
}

#[test]
fn descriptors_for_reflection() {
    fresh("proto/registry.binpb", &descriptors().encode_to_vec());
}
