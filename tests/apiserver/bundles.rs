//! What `bundle generate` makes of real operators is taken by the API server with OLM's CRDs: the ClusterServiceVersion, the
//! CRDs, and the other manifests of built-in kinds; and what `bundle manifests` makes of each bundle: Deployments, roles,
//! bindings, webhooks. All of it in dry runs, with unknown fields refused.
//!
//! OLM's CRDs with their schemas are not part of the project; they are looked for beside the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use olmkit::lifecycle::api::known;
use olmkit::lifecycle::cluster::Cluster as _;
use reqwest::Client;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

use super::crds::corpus;
use super::server::{ADMIN, Server};

/// How long a new kind may take to be served.
const PATIENCE: Duration = Duration::from_secs(60);
/// API groups that the server serves without CRDs.
const BUILT_IN: [&str; 6] =
    ["", "admissionregistration.k8s.io", "apps", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"];
/// Kinds without a namespace.
const CLUSTER_WIDE: [&str; 5] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];
/// Where objects with a namespace are created.
const NAMESPACE: &str = "default";
/// What `bundle manifests` refuses, as OLM v1 does.
const NOT_OF_V1: &str = "the bundle owns APIServices, which OLM v1 does not support";

/// OLM's CRDs with their schemas, if they are anywhere.
pub(crate) fn olm_crds() -> Option<PathBuf> {
    Some(corpus()?.parent()?.join("olm/crds")).filter(|path| path.is_dir())
}

#[expect(clippy::print_stderr, reason = "the log says how much was tried")]
pub(crate) fn generated_bundles_are_taken() {
    let server = Server::start();
    let mut cluster = server.connect();
    for file in files(&olm_crds().unwrap()) {
        cluster.create(&known::CRD, &document(&file)).unwrap();
    }
    let client = Client::builder().danger_accept_invalid_certs(true).build().unwrap();
    let runtime = Runtime::new().unwrap();
    let post = |object: &Value| -> Result<(), (u16, String)> {
        let url = format!("{}/{}?dryRun=All&fieldValidation=Strict", server.address(), path_of(object));
        runtime.block_on(async {
            let request = client.post(url).bearer_auth(format!("{ADMIN}-token"));
            let request = request.header("content-type", "application/json").body(object.to_string());
            let answer = request.send().await.unwrap();
            let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            if status == 201 { Ok(()) } else { Err((status, text)) }
        })
    };
    let directory = tempfile::tempdir().unwrap();
    let (mut bundles, mut rendered, mut objects, mut refused) = (0, 0, 0, Vec::new());
    for operator in operators() {
        let bundle = directory.path().join("bundle");
        if !generate(&operator, &bundle) {
            continue;
        }
        bundles += 1;
        let files = files(&bundle.join("manifests"));
        let mut all: Vec<_> = files.iter().map(|file| (file.display().to_string(), document(file))).collect();
        match render(&bundle) {
            Ok(objects) => {
                rendered += 1;
                all.extend(objects.into_iter().map(|object| ("bundle manifests".to_owned(), object)));
            }
            Err(why) if why.contains(NOT_OF_V1) => {}
            Err(why) => refused.push(format!("{}: bundle manifests: {why}", operator.display())),
        }
        for (from, object) in all {
            let group =
                object["apiVersion"].as_str().unwrap().rsplit_once('/').map_or("", |(group, _)| group);
            let is_known = BUILT_IN.contains(&group)
                || group == "apiextensions.k8s.io"
                || group == "operators.coreos.com";
            if !is_known {
                continue;
            }
            objects += 1;
            let begun = Instant::now();
            let answer = loop {
                match post(&object) {
                    // OLM's kinds are served a moment after their CRDs were taken.
                    Err((404, _)) if begun.elapsed() < PATIENCE => {}
                    answer => break answer,
                }
            };
            if let Err((status, text)) = answer {
                let told: Value = serde_json::from_str(&text).unwrap_or_default();
                let told = told["message"].as_str().unwrap_or(&text).to_owned();
                let what = format!("{}/{}", object["kind"], object["metadata"]["name"]);
                refused.push(format!("{}: {from}: {what}: {status} {told}", operator.display()));
            }
        }
        fs::remove_dir_all(&bundle).unwrap();
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(bundles >= 18 && rendered >= 15, "{bundles} bundles, {rendered} of them rendered");
    eprintln!("{objects} objects of {bundles} bundles are taken, {rendered} of them rendered");
}

/// What OLM v1 would apply for a bundle, or why it would not.
fn render(bundle: &Path) -> Result<Vec<Value>, String> {
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.args(["bundle", "manifests", "--format", "json", "--namespace", NAMESPACE]);
        command.args(["--webhook-certs", "self-signed"]).args(more).arg(bundle);
        command.stdin(Stdio::null()).output().unwrap()
    };
    // One that does not watch every namespace watches its own.
    let mut output = run(&[]);
    if !output.status.success() && !String::from_utf8_lossy(&output.stderr).contains(NOT_OF_V1) {
        output = run(&["--watch-namespace", NAMESPACE]);
    }
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    Ok(list["items"].as_array().unwrap().clone())
}

/// The directory of each version of each operator.
fn operators() -> Vec<PathBuf> {
    let below = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries.filter(|path| path.is_dir() && !path.ends_with("mini")).collect();
        all.sort();
        all
    };
    below(&corpus().unwrap().join("operators")).iter().flat_map(|path| below(path)).collect()
}

/// Whether there is a bundle: another test looks at what is said where there is none.
fn generate(operator: &Path, bundle: &Path) -> bool {
    let there = |name: &str| Some(operator.join(name)).filter(|path| path.exists());
    let (name, version) = (operator.parent().unwrap().file_name().unwrap(), operator.file_name().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(["bundle", "generate", "--package"]).arg(name).arg("--version").arg(version);
    command.args(["manifests.yaml", "manifests", "crds.yaml"].into_iter().filter_map(there));
    for (flag, file) in [("--base", "base.yaml"), ("--samples", "samples")] {
        if let Some(path) = there(file) {
            command.arg(flag).arg(path);
        }
    }
    command.arg("--output-dir").arg(bundle).current_dir(bundle.parent().unwrap());
    command.stdin(Stdio::null()).output().unwrap().status.success()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn document(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    olmkit_bundle::yaml::first_document(&text).unwrap().root.to_json()
}

/// Where objects of this kind are created.
fn path_of(object: &Value) -> String {
    let (api, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let plural = kind.to_lowercase();
    let plural = plural.strip_suffix('y').map_or_else(|| format!("{plural}s"), |stem| format!("{stem}ies"));
    let root = if api.contains('/') { "apis" } else { "api" };
    let namespace =
        if CLUSTER_WIDE.contains(&kind) { String::new() } else { format!("namespaces/{NAMESPACE}/") };
    format!("{root}/{api}/{namespace}{plural}")
}
