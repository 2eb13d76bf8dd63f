//! The operator itself: installed as its users do it, asked who leads and what it counts, and taken away.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use olmkit::image::Config;
use serde_json::Value;

use crate::cluster::{Cluster, finished};
use crate::program;

/// Its name, and its namespace's.
pub(super) const OPERATOR: &str = "redis-operator";
/// `cluster-node-timeout` in the tests: shorter than in production, so that they are not about waiting.
pub(super) const NODE_TIMEOUT_MS: u64 = 2000;

/// What `operator/Makefile` runs to get the manifests: by default a build, which a test has behind it.
pub(super) const MANIFESTS: &str = "MANIFESTS";

/// An operator that is installed.
pub(super) struct Operator {
    pub(super) cluster: &'static Cluster,
}

impl Operator {
    /// Makes the images and installs what was just built, by `make -C operator deploy`.
    pub(super) fn install(cluster: &'static Cluster) -> Result<Self, Failed> {
        images(cluster)?;
        let operator = Self { cluster };
        cluster.kubectl(&["create", "namespace", OPERATOR])?;
        let timeout = format!("--from-literal=REDIS_OPERATOR_NODE_TIMEOUT={NODE_TIMEOUT_MS}");
        operator.kubectl(&["create", "configmap", "redis-operator-config", &timeout])?;
        operator.make("deploy")?;
        Ok(operator)
    }

    /// Removes it, by `make -C operator undeploy`, which waits until everything is gone.
    pub(super) fn uninstall(&self) -> Result<(), Failed> {
        self.make("undeploy")
    }

    fn make(&self, target: &str) -> Result<(), Failed> {
        let image = format!("IMG={}/{}", self.cluster.registry, image());
        let kubectl = format!("KUBECTL={}", self.cluster.command(&[]).get_program().to_string_lossy());
        let words = ["--directory", "operator", target, &image, &kubectl];
        let output = Command::new("make")
            .args(words)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env(MANIFESTS, format!("{} manifests", built()?.display()))
            .output()?;
        finished(&words, &output)?;
        Ok(())
    }

    /// Runs kubectl in the operator's namespace.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> Result<String, Failed> {
        self.cluster.kubectl(&[&["--namespace", OPERATOR], arguments].concat())
    }

    pub(super) fn json(&self, object: &str) -> Result<Value, Failed> {
        Ok(serde_json::from_str(&self.kubectl(&["get", object, "--output", "json"])?)?)
    }

    /// Who holds the Lease, and when they renewed it.
    pub(super) fn lease(&self) -> Result<(String, String), Failed> {
        let lease = self.json("lease/redis-operator")?;
        let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default().to_owned();
        Ok((text("holderIdentity"), text("renewTime")))
    }

    /// What the leader counts, in the OpenMetrics text format.
    pub(super) fn metrics(&self) -> Result<String, Failed> {
        let (leader, _) = self.lease()?;
        self.cluster.kubectl(&[
            "get",
            "--raw",
            &format!("/api/v1/namespaces/{OPERATOR}/pods/{leader}:8080/proxy/metrics"),
        ])
    }

    /// The end of its logs.
    pub(super) fn log(&self) -> String {
        self.logs("--tail=80").unwrap_or_default()
    }

    /// All that the replicas that run have said.
    pub(super) fn whole_log(&self) -> Result<String, Failed> {
        self.logs("--tail=-1")
    }

    fn logs(&self, tail: &str) -> Result<String, Failed> {
        self.kubectl(&["logs", "--selector", "app.kubernetes.io/name=redis-operator", "--prefix", tail])
    }
}

/// The operator's image, of this run alone: a node that has an image of some name does not pull it again.
pub(super) fn image() -> String {
    format!("redis-operator:e2e-{}", std::process::id())
}

/// The program as it was built beside this test.
pub(super) fn built() -> Result<PathBuf, Failed> {
    let here = std::env::current_exe()?;
    let built = here.ancestors().nth(2).ok_or("no target directory")?.join("redis-operator");
    if built.is_file() {
        return Ok(built);
    }
    Err(format!("{} is not there: run `cargo build -p redis-operator`", built.display()).into())
}

/// The images of the operator and of Redis.
pub(super) fn images(cluster: &Cluster) -> Result<(), Failed> {
    push_as(cluster, &image())?;
    shell(cluster)
}

/// A Redis with nothing but a shell, also under the name that the samples of the operator have.
pub(super) fn shell(cluster: &Cluster) -> Result<(), Failed> {
    for name in ["redis-with-shell:e2e", "library/redis:7.2.5"] {
        let programs =
            ["bin/sh", "bin/sleep", "bin/rm", "bin/mv", "usr/bin/redis-server", "usr/bin/redis-cli"];
        let from: Vec<_> = programs.iter().map(|program| Path::new("/").join(program)).collect();
        let pairs: Vec<_> = programs.into_iter().zip(from.iter().map(AsRef::as_ref)).collect();
        push(cluster, name, &pairs, "/usr/bin/redis-server")?;
    }
    Ok(())
}

fn push(cluster: &Cluster, name: &str, programs: &[(&str, &Path)], entrypoint: &str) -> Result<(), Failed> {
    let reference = format!("{}/{name}", cluster.registry);
    // The pods must not run as root, and say so.
    let config =
        Config { entrypoint: vec![entrypoint.into()], user: Some("65532".into()), ..Config::default() };
    Ok(program::push_several(&reference, programs, &config).map_err(|error| error.to_string())?)
}

/// The operator as it was built, under a name in the registry.
pub(super) fn push_as(cluster: &Cluster, name: &str) -> Result<(), Failed> {
    push(cluster, name, &[("redis-operator", &built()?)], "/redis-operator")
}
