//! A bundle straight from Rust types: the CRD from kube-rs, the Deployment and its rights as values, no YAML in between.
//!
//! Run `cargo run -p generate-example -- bundle`, then `olmkit bundle validate bundle`. A build script can do the same.

use std::error::Error;
use std::fs;
use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{CustomResource, CustomResourceExt as _};
use olmkit_bundle::generate::{Builder, Built};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};

/// A greeting that is said again and again.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeter", namespaced)]
#[kube(doc = "A greeting that is said again and again.")]
#[serde(rename_all = "camelCase")]
struct GreeterSpec {
    /// What is said.
    greeting: String,
    /// How many say it.
    replicas: i32,
    /// A Secret with the certificate that it is said under.
    tls_secret_name: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).unwrap_or_else(|| "bundle".into());
    write(&bundle()?, Path::new(&directory))
}

/// The bundle of this operator.
fn bundle() -> Result<Built, Box<dyn Error>> {
    let mut sample =
        Greeter::new("hello", GreeterSpec { greeting: "Hello!".into(), replicas: 2, tls_secret_name: None });
    sample.metadata.namespace = None;
    let bundle = Builder::new("greeter".parse()?, env!("CARGO_PKG_VERSION").parse()?)
        .object(&Greeter::crd())
        .object(&deployment()?)
        .object(&role()?)
        .object(&binding()?)
        .sample(&sample)
        .channels(["stable".parse()?])
        .set("spec.displayName", "Greeter")
        .set("spec.description", "Says a greeting again and again.")
        .set("spec.minKubeVersion", "1.28.0")
        .generate()?;
    Ok(bundle)
}

fn deployment() -> serde_json::Result<Deployment> {
    from_value(json!({
        "metadata": {"name": "greeter", "namespace": "greeter-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "greeter"}},
            "template": {
                "metadata": {"labels": {"app": "greeter"}},
                "spec": {
                    "serviceAccountName": "greeter",
                    "containers": [{"name": "manager", "image": "quay.io/example/greeter:v0.1.0"}],
                },
            },
        },
    }))
}

fn role() -> serde_json::Result<ClusterRole> {
    let greeters = Greeter::crd().spec.names.plural;
    from_value(json!({
        "metadata": {"name": "greeter"},
        "rules": [{"apiGroups": ["example.com"], "resources": [greeters], "verbs": ["get", "list", "watch"]}],
    }))
}

fn binding() -> serde_json::Result<ClusterRoleBinding> {
    from_value(json!({
        "metadata": {"name": "greeter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "greeter"},
        "subjects": [{"kind": "ServiceAccount", "name": "greeter", "namespace": "greeter-system"}],
    }))
}

/// Writes the files of a bundle below a directory.
fn write(bundle: &Built, directory: &Path) -> Result<(), Box<dyn Error>> {
    for (path, text) in &bundle.files {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use olmkit_bundle::load::BundleFiles;
    use olmkit_bundle::parse::Bundle;
    use olmkit_bundle::validate::{OLM, validate};

    use super::*;

    #[test]
    fn the_bundle_validates_and_shows_the_types() {
        let directory = tempfile::tempdir().unwrap();
        let built = bundle().unwrap();
        assert_eq!(built.findings, []);
        write(&built, directory.path()).unwrap();
        let files = BundleFiles::load(directory.path()).unwrap();
        let parsed = Bundle::parse(&files);
        let codes: Vec<_> = validate(&parsed, &[OLM]).iter().map(|finding| finding.code.name).collect();
        assert_eq!(codes, [""; 0]);
        let csv = parsed.csv().unwrap().typed;
        let owned = &csv.spec.custom_resource_definitions.owned[0];
        assert_eq!(owned.description, "A greeting that is said again and again.");
        let paths: Vec<_> =
            owned.spec_descriptors.iter().map(|descriptor| descriptor.path.as_str()).collect();
        assert_eq!(paths, ["greeting", "replicas", "tlsSecretName"]);
    }
}
