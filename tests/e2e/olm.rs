//! RedisCluster's life under the real OLM: bundles and a catalog that olmkit made and pushed, installed, upgraded hop by hop,
//! switched to another channel and removed, all by `olmkit operator`, while a RedisCluster is written to.
//!
//! OLM is the cluster's own, or `tests/cluster/olm/up` puts it there. Every command and what it said, with the seconds since
//! it began, goes to `target/e2e/olm.txt`, which is what docs/e2e.md shows.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::catalogs::{catalog_image, server};
use crate::cluster::{Cluster, Namespace, PATIENCE, within};
use crate::harness::{Company, Operator, enabled, results, trial_with};
use crate::images::{olmkit, pushed};
use crate::redis::{Killer, Served, push_operator};
use crate::support::Part;

/// The releases of the catalog, oldest first; the last one is in the channel `fast` alone.
const RELEASES: [&str; 5] = ["0.1.0", "0.2.0", "0.2.1", "0.3.0", "0.4.0"];
/// Releases that are in no catalog yet. The program has the rights that their own manifests give it.
const UNPUBLISHED: [&str; 2] = ["0.5.0", PROGRAM];
/// The release that the program is of.
const PROGRAM: &str = "0.6.0";
const CRD: &str = "customresourcedefinition/redisclusters.cache.example.com";

pub(crate) fn trials() -> Vec<Trial> {
    let name = "redis_operator_lives_its_life_under_olm";
    vec![trial_with(name, Company::Of(Operator::Redis), Some(needed()), life)]
}

/// OLM, on the cluster that is there.
pub(crate) fn needed() -> Part {
    let there = !enabled() || Cluster::get().is_ok_and(has_olm);
    // Why it could not be put there, by `tests/e2e/run`.
    let reason = env::var("OLMKIT_NO_OLM").unwrap_or_else(|_| "the cluster has none".to_owned());
    Part::new("olm", (!there).then(|| format!("no OLM: {reason}")))
}

fn has_olm(cluster: &Cluster) -> bool {
    cluster.kubectl(&["get", "customresourcedefinition", "subscriptions.operators.coreos.com"]).is_ok()
}

fn life(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let bundles = bundles(namespace, dir)?;
    let catalog = catalog(namespace, dir, &bundles)?;
    serve(namespace, "redis", &catalog)?;
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

/// A CatalogSource of an image that [`push_catalog`] made, READY. An image without a server gets OLM's own.
pub(crate) fn serve(namespace: &Namespace, name: &str, image: &str) -> Result<(), Failed> {
    let extract = if server().is_some() { "" } else { EXTRACT };
    serve_as(namespace, name, image, extract)
}

/// The same of an image that has no server.
pub(crate) fn serve_data(namespace: &Namespace, name: &str, image: &str) -> Result<(), Failed> {
    serve_as(namespace, name, image, EXTRACT)
}

/// OLM's own server for a catalog.
const EXTRACT: &str = "grpcPodConfig: {extractContent: {catalogDir: /configs}}";

fn serve_as(namespace: &Namespace, name: &str, image: &str, extract: &str) -> Result<(), Failed> {
    namespace.apply(&format!(
        "{{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {{name: {name}}}, \
         spec: {{sourceType: grpc, image: '{image}', {extract}}}}}"
    ))?;
    let ready = "jsonpath={.status.connectionState.lastObservedState}=READY";
    namespace.wait(&format!("catalogsource.operators.coreos.com/{name}"), ready)
}

/// Pushes a catalog with its server, or alone where there is none; the image, by digest.
pub(crate) fn push_catalog(dir: &Path, to: &str) -> Result<String, Failed> {
    match server() {
        Some(server) => catalog_image(dir, &server, to),
        None => pushed(dir, &["catalog", "push", "catalog", to]),
    }
}

fn walk(told: &mut Told<'_>) -> Result<(), Failed> {
    told.operator(&["install", "redis-operator", "--version", "0.1.0"])?;
    told.expect("redis-operator.v0.1.0")?;
    let served = Served::start(told.namespace, "served")?;
    let upgrade = told.operator(&["upgrade", "redis-operator", "--to", "0.2.1"])?;
    assert!(upgrade.contains("1 hop: "), "{upgrade}");
    told.expect("redis-operator.v0.2.1")?;
    // The leader is killed while OLM replaces the operator.
    let killer = Killer::of(told.namespace)?;
    let (upgraded, killed) = thread::scope(|scope| {
        let killing = scope.spawn(|| killer.kill_while_installing("redis-operator.v0.3.0"));
        let upgraded = told.operator(&["upgrade", "redis-operator"]);
        (upgraded, killing.join().unwrap_or_else(|_| Err("the killer panicked".into())))
    });
    upgraded?;
    let killed = killed?;
    let _ = writeln!(told.text, "# the leader {killed} was killed during this upgrade\n");
    told.expect("redis-operator.v0.3.0")?;
    told.namespace.kubectl(&["delete", "pod", "hand", "--wait=false"])?;
    told.operator(&["upgrade", "redis-operator", "--channel", "fast"])?;
    told.expect("redis-operator.v0.4.0")?;
    // There is no way back, and nothing is changed for it.
    let refused = told.refused(&["upgrade", "redis-operator", "--channel", "stable"])?;
    assert!(
        refused.contains("the channel has no edge from there to its head `redis-operator.v0.3.0`"),
        "{refused}"
    );
    told.expect("redis-operator.v0.4.0")?;
    told.operator(&["describe", "redis-operator"])?;
    told.operator(&["doctor", "redis-operator"])?;
    let writes = served.stop()?;
    let _ = writeln!(
        told.text,
        "# {writes} writes to the RedisCluster from 0.1.0 to 0.4.0: every one was acknowledged, none was lost\n"
    );
    told.operator(&["uninstall", "redis-operator", "--delete-crds"])?;
    told.nothing_left()?;

    // What is in no catalog yet: a release, then the one after it over it, while a RedisCluster is written to.
    unpublished(told, UNPUBLISHED[0])?;
    // Another name: Kubernetes may still have to remove what the one before left.
    let served = Served::start(told.namespace, "served-again")?;
    let pods = served.pods()?;
    unpublished(told, UNPUBLISHED[1])?;
    assert_eq!(served.pods()?, pods, "an upgrade of the operator alone replaces no pod");
    let writes = served.stop()?;
    let _ = writeln!(
        told.text,
        "# {writes} writes to the RedisCluster from 0.5.0 to 0.6.0: every one was acknowledged, none was lost\n"
    );
    told.operator(&["uninstall", "redis-operator", "--delete-crds"])?;
    told.nothing_left()?;
    let catalogs = told.namespace.kubectl(&["get", "catalogsources", "--output=name"])?;
    assert_eq!(catalogs.trim(), "catalogsource.operators.coreos.com/redis");
    Ok(())
}

/// Installs a bundle that no catalog has, over the release before it if that is there.
fn unpublished(told: &mut Told<'_>, version: &str) -> Result<(), Failed> {
    let (bundle, repository) = (format!("bundles/{version}"), told.namespace.image("try"));
    told.operator(&["install", "--bundle", &bundle, "--push-to", &repository])?;
    told.expect(&format!("redis-operator.v{version}"))
}

/// What is run, and what it said.
pub(crate) struct Told<'t> {
    pub(crate) namespace: &'t Namespace,
    pub(crate) dir: &'t Path,
    pub(crate) text: String,
}

impl Told<'_> {
    /// Runs a verb of `olmkit operator`.
    pub(crate) fn operator(&mut self, words: &[&str]) -> Result<String, Failed> {
        match self.run(words)? {
            (true, said) => Ok(said),
            (false, said) => Err(format!("`olmkit operator {}` failed\n{said}", words.join(" ")).into()),
        }
    }

    /// Runs a verb that has to fail, and says what it said.
    pub(crate) fn refused(&mut self, words: &[&str]) -> Result<String, Failed> {
        match self.run(words)? {
            (false, said) => Ok(said),
            (true, said) => Err(format!("`olmkit operator {}` did not fail\n{said}", words.join(" ")).into()),
        }
    }

    /// Runs a verb; whether it went well, and what it said. Each line is kept with the seconds since it began.
    pub(crate) fn run(&mut self, words: &[&str]) -> Result<(bool, String), Failed> {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .arg("operator")
            .args(words)
            .args(["-n", &self.namespace.name])
            .current_dir(self.dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let _ = writeln!(self.text, "$ olmkit operator {} -n {}", words.join(" "), self.namespace.name);
        let mut said = String::new();
        for line in BufReader::new(child.stderr.take().ok_or("no stderr")?).lines() {
            let line = line?;
            let _ = writeln!(self.text, "{:6.1}  {line}", begun.elapsed().as_secs_f64());
            let _ = writeln!(said, "{line}");
        }
        // An answer is shorter than a pipe: it was written by now.
        let mut answer = String::new();
        child.stdout.take().ok_or("no stdout")?.read_to_string(&mut answer)?;
        let status = child.wait()?;
        let seconds = begun.elapsed().as_secs_f64();
        let _ = writeln!(self.text, "{answer}# {seconds:.1} s, exit code {}\n", status.code().unwrap_or(-1));
        Ok((status.success(), said + &answer))
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
            // OLM copies what operators of all namespaces have.
            let left =
                self.namespace.kubectl(&["get", &kind, "--selector=!olm.copiedFrom", "--output=name"])?;
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

/// A bundle of each release in a directory of its own, pushed; the images of those that are in the catalog, by digest.
///
/// Every image holds the program as it was built. The manifests of the oldest releases lack rights that it needs, so each
/// release of the catalog consists of the program's own manifests, under the version and the image of the release.
fn bundles(namespace: &Namespace, dir: &Path) -> Result<Vec<String>, Failed> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = top.join("operator/olmkit.yaml").display().to_string();
    let mut images = Vec::new();
    for version in RELEASES.into_iter().chain(UNPUBLISHED) {
        let published = RELEASES.contains(&version);
        // The edges of the others are those of a catalog that nobody serves.
        let (catalog, manifests_of) = if published { ("catalog", PROGRAM) } else { ("unpublished", version) };
        let image = operator_image(namespace, version);
        if version == RELEASES[0] {
            push_operator(namespace, &format!("{}/redis-operator:{version}", namespace.name))?;
        } else {
            olmkit(dir, &["image", "copy", &operator_image(namespace, RELEASES[0]), &image])?;
        }
        let manifests = dir.join("manifests").join(version);
        copy(&top.join("operator/deploy").join(manifests_of), &manifests, &|text| {
            text.replace(manifests_of, version)
                .replace(&format!("registry.example.com/redis-operator:{version}"), &image)
                .replace("replicas: 2", "replicas: 1")
        })?;
        let (from, to) = (manifests.display().to_string(), format!("bundles/{version}"));
        let mut words = vec!["bundle", "generate", &from, "--package-file", &package, "--version", version];
        words.extend(["--catalog", catalog, "--output-dir", &to]);
        if !dir.join(catalog).exists() || version == "0.4.0" {
            words.push("--new-channel");
        }
        if version == "0.4.0" {
            words.extend(["--channels", "fast"]);
        }
        olmkit(dir, &words)?;
        let reference = namespace.image(&format!("redis-operator-bundle:v{version}"));
        let bundle = pushed(dir, &["bundle", "push", &to, &reference])?;
        olmkit(dir, &["catalog", "add", catalog, &bundle, "--policy", "semver-skippatch"])?;
        if published {
            images.push(bundle);
        }
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
    push_catalog(dir, &namespace.image("redis-catalog:v1"))
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
