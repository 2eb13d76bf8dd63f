//! RedisCluster's life under the real OLM: bundles and a catalog that olmkit made and pushed, installed, upgraded hop by hop,
//! switched to another channel and removed, all by `olmkit operator`.
//!
//! OLM is the cluster's own, or comes from the manifests that `OLM_MANIFESTS` names (a file or a directory), and then it stays.
//! Every command and what it said goes to `target/e2e/olm.txt`, which is what docs/e2e.md shows.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use libtest_mimic::{Failed, Trial};
use olmkit::image::Config;
use serde_json::Value;

use crate::cluster::{Cluster, Namespace, PATIENCE, finished, message, within};
use crate::harness::{Company, enabled, results, trial_with};
use crate::images::{olmkit, pushed};
use crate::support::Part;

/// The releases, oldest first; the last one is in the channel `fast` alone.
const RELEASES: [&str; 5] = ["0.1.0", "0.2.0", "0.2.1", "0.3.0", "0.4.0"];
const CRD: &str = "customresourcedefinition/redisclusters.cache.example.com";

pub(crate) fn trials() -> Vec<Trial> {
    let manifests = env::var_os("OLM_MANIFESTS").filter(|path| !path.is_empty()).map(PathBuf::from);
    let there = !enabled() || manifests.is_some() || Cluster::get().is_ok_and(has_olm);
    let missing = "no OLM: the cluster has none, and OLM_MANIFESTS does not name its manifests";
    let needed = Part::new("olm", (!there).then(|| missing.to_owned()));
    // Alone: it brings a CRD, and an operator of all namespaces.
    let name = "redis_operator_lives_its_life_under_olm";
    let test = trial_with(name, Company::Alone, Some(needed), move |namespace| {
        if let Some(manifests) = &manifests
            && !has_olm(namespace.cluster)
        {
            install_olm(namespace.cluster, manifests)?;
        }
        life(namespace)
    });
    vec![test]
}

fn has_olm(cluster: &Cluster) -> bool {
    cluster.kubectl(&["get", "customresourcedefinition", "subscriptions.operators.coreos.com"]).is_ok()
}

/// Applies OLM's manifests until the server has taken all of them: objects of new kinds are taken a moment after their CRDs.
fn install_olm(cluster: &Cluster, manifests: &Path) -> Result<(), Failed> {
    let path = manifests.display().to_string();
    let words = ["apply", "--server-side", "--force-conflicts", "--recursive", "--filename", &path];
    let mut last = String::new();
    let taken = within(PATIENCE, || match cluster.kubectl(&words) {
        Ok(_) => Ok(Some(())),
        Err(failed) => {
            last = message(&failed);
            Ok(None)
        }
    })?;
    taken.ok_or_else(|| format!("{path} cannot be applied: {last}"))?;
    for operator in ["deployment/olm-operator", "deployment/catalog-operator"] {
        let patience = format!("--timeout={}s", PATIENCE.as_secs());
        cluster.kubectl(&["wait", operator, "--namespace=olm", "--for=condition=Available", &patience])?;
    }
    Ok(())
}

fn life(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let bundles = bundles(namespace, dir)?;
    let catalog = catalog(namespace, dir, &bundles)?;
    namespace.apply(&format!(
        "{{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {{name: redis}}, \
         spec: {{sourceType: grpc, image: '{catalog}', grpcPodConfig: {{extractContent: {{catalogDir: /configs}}}}}}}}"
    ))?;
    let mut told = Told { namespace, dir, text: String::new() };
    let outcome = walk(&mut told);
    fs::create_dir_all(results())?;
    fs::write(results().join("olm.txt"), &told.text)?;
    // What others of this cluster would trip over.
    let crd = namespace.cluster.kubectl(&["delete", CRD, "--ignore-not-found", "--timeout=60s"]);
    outcome?;
    crd?;
    Ok(())
}

fn walk(told: &mut Told<'_>) -> Result<(), Failed> {
    told.operator(&["install", "redis-operator", "--version", "0.1.0"])?;
    told.expect("redis-operator.v0.1.0")?;
    let upgrade = told.operator(&["upgrade", "redis-operator"])?;
    assert!(upgrade.contains("2 hops: "), "{upgrade}");
    told.expect("redis-operator.v0.3.0")?;
    told.operator(&["upgrade", "redis-operator", "--channel", "fast"])?;
    told.expect("redis-operator.v0.4.0")?;
    told.operator(&["describe", "redis-operator"])?;
    told.operator(&["uninstall", "redis-operator", "--delete-crds"])?;
    told.nothing_left()?;

    // What is in no catalog yet: the newest release, then the one after it over it.
    let repository = told.namespace.image("try");
    let bundle = |version: &str| format!("bundles/{version}");
    let with = |version: &str| {
        vec!["install".to_owned(), "--bundle".into(), bundle(version), "--push-to".into(), repository.clone()]
    };
    for version in ["0.2.1", "0.3.0"] {
        let words = with(version);
        told.operator(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        told.expect(&format!("redis-operator.v{version}"))?;
    }
    told.operator(&["uninstall", "redis-operator", "--delete-crds"])?;
    told.nothing_left()?;
    let catalogs = told.namespace.kubectl(&["get", "catalogsources", "--output=name"])?;
    assert_eq!(catalogs.trim(), "catalogsource.operators.coreos.com/redis");
    Ok(())
}

/// What is run, and what it said.
struct Told<'t> {
    namespace: &'t Namespace,
    dir: &'t Path,
    text: String,
}

impl Told<'_> {
    /// Runs a verb of `olmkit operator`.
    fn operator(&mut self, words: &[&str]) -> Result<String, Failed> {
        let begun = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.arg("operator").args(words).args(["-n", &self.namespace.name]).current_dir(self.dir);
        let output = command.output()?;
        let said =
            [&*String::from_utf8_lossy(&output.stderr), &*String::from_utf8_lossy(&output.stdout)].concat();
        let words = words.join(" ");
        let seconds = begun.elapsed().as_secs();
        let _ = write!(
            self.text,
            "$ olmkit operator {words} -n {}\n{said}# {seconds} s\n\n",
            self.namespace.name
        );
        if output.status.success() {
            return Ok(said);
        }
        Err(format!("`olmkit operator {words}`: {}\n{said}", output.status).into())
    }

    /// What is installed is up, and the pod that runs is of its image.
    fn expect(&self, csv: &str) -> Result<(), Failed> {
        let words = ["operator", "status", "redis-operator", "-n", &self.namespace.name, "--output", "json"];
        let status: Value = serde_json::from_str(&olmkit(self.dir, &words)?)?;
        let found = |key: &str| status[key].as_str().unwrap_or_default();
        assert_eq!((found("installedCSV"), found("csvPhase")), (csv, "Succeeded"), "{status}");
        let path = "jsonpath={.items[*].spec.containers[*].image}";
        let words = ["get", "pods", "--selector=app.kubernetes.io/name=redis-operator", "--output", path];
        let image = operator_image(self.namespace, csv.trim_start_matches("redis-operator.v"));
        let running = within(PATIENCE, || {
            let images = self.namespace.kubectl(&words)?;
            Ok((images == image).then_some(()))
        })?;
        running.ok_or_else(|| format!("the only pod is not of {image}").into())
    }

    fn nothing_left(&self) -> Result<(), Failed> {
        for kind in
            ["subscriptions", "clusterserviceversions", "installplans", "operatorgroups", "deployments"]
        {
            let kind =
                if kind == "deployments" { kind.to_owned() } else { format!("{kind}.operators.coreos.com") };
            let left = self.namespace.kubectl(&["get", &kind, "--output=name"])?;
            assert_eq!(left, "", "{kind}");
        }
        let crd = self.namespace.cluster.kubectl(&["get", CRD, "--ignore-not-found", "--output=name"])?;
        assert_eq!(crd, "");
        Ok(())
    }
}

fn operator_image(namespace: &Namespace, version: &str) -> String {
    namespace.image(&format!("redis-operator:{version}"))
}

/// A bundle of each release in a directory of its own, pushed; their images, by digest.
///
/// What these releases consist of is manifests. A program that answers the kubelet stands in for each, under the image's name that
/// the release gives it: what is tried here is OLM's part, and the operator itself has tests of its own.
fn bundles(namespace: &Namespace, dir: &Path) -> Result<Vec<String>, Failed> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.join("probe");
    let output = Command::new(top.join("tests/cluster/build-probe")).arg(&program).output()?;
    finished(&["build-probe"], &output)?;
    let package = top.join("operator/olmkit.yaml").display().to_string();
    let config =
        Config { entrypoint: vec!["/probe".into()], user: Some("65532".into()), ..Config::default() };
    let mut images = Vec::new();
    for version in RELEASES {
        let image = operator_image(namespace, version);
        crate::program::push_several(&image, &[("probe", &program)], &config)
            .map_err(|error| error.to_string())?;
        let manifests = dir.join("manifests").join(version);
        copy(&top.join("operator/deploy").join(version), &manifests, &|text| {
            text.replace(&format!("registry.example.com/redis-operator:{version}"), &image)
                .replace("- args:\n        - run\n", "- args: [serve, '8081', ok]\n")
        })?;
        let (from, to) = (manifests.display().to_string(), format!("bundles/{version}"));
        let mut words = vec!["bundle", "generate", &from, "--package-file", &package, "--version", version];
        words.extend(["--catalog", "catalog", "--output-dir", &to]);
        if !dir.join("catalog").exists() || version == "0.4.0" {
            words.push("--new-channel");
        }
        if version == "0.4.0" {
            words.extend(["--channels", "fast"]);
        }
        olmkit(dir, &words)?;
        let reference = namespace.image(&format!("redis-operator-bundle:v{version}"));
        let bundle = pushed(dir, &["bundle", "push", &to, &reference])?;
        olmkit(dir, &["catalog", "add", "catalog", &bundle, "--policy", "semver-skippatch"])?;
        images.push(bundle);
    }
    Ok(images)
}

/// The catalog's image, by digest.
fn catalog(namespace: &Namespace, dir: &Path, bundles: &[String]) -> Result<String, Failed> {
    olmkit(dir, &["catalog", "validate", "catalog"])?;
    let listed = olmkit(dir, &["catalog", "render", "catalog"])?;
    for bundle in bundles {
        assert!(listed.contains(bundle), "{bundle} is not in the catalog");
    }
    pushed(dir, &["catalog", "push", "catalog", &namespace.image("redis-catalog:v1")])
}

/// Copies a tree of text files, changed.
fn copy(from: &Path, to: &Path, change: &dyn Fn(&str) -> String) -> Result<(), Failed> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_dir() {
            copy(&path, &to.join(name), change)?;
        } else {
            fs::write(to.join(name), change(&fs::read_to_string(&path)?))?;
        }
    }
    Ok(())
}
