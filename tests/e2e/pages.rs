//! Pages whose blocks `console` are run on a cluster, line by line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};

use crate::cluster::Namespace;
use crate::walk::{self, Walk};

/// How long a question is asked again.
const PATIENCE: Duration = Duration::from_secs(150);
/// What pages call the registry.
const REGISTRY: &str = "registry.example.com";

pub(crate) fn trials() -> Vec<Trial> {
    // Needs no cluster.
    vec![Trial::test("what_a_page_shows_and_what_a_command_says", walk::check)]
}

/// A page of the project, and what its commands need.
pub(crate) struct Page<'a> {
    /// Its path in the project.
    pub(crate) path: &'a str,
    /// What begins its blocks.
    pub(crate) fence: &'a str,
    /// Images of the page, without the registry, and what they are called here.
    pub(crate) images: &'a [(&'a str, &'a str)],
    pub(crate) environment: Vec<(&'a str, String)>,
    /// How commands begin that only ask, besides `kubectl get`.
    pub(crate) asks: &'a [&'a str],
}

/// Runs the commands of a page in this namespace.
pub(crate) fn walked(namespace: &Namespace, page: Page<'_>) -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join(page.path))?;
    // A kubectl of this name that means this namespace, as the page's reader has it.
    let dir = tempfile::tempdir()?;
    let kubectl = namespace.cluster.command(&[]).get_program().to_string_lossy().into_owned();
    let kubectl = if kubectl.contains('/') { fs::canonicalize(&kubectl)? } else { kubectl.into() };
    if kubectl.is_absolute() {
        std::os::unix::fs::symlink(&kubectl, dir.path().join("kubectl"))?;
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_olmkit"), dir.path().join("olmkit"))?;
    let config = dir.path().join("kubeconfig");
    fs::write(&config, namespace.cluster.kubectl(&["config", "view", "--raw", "--flatten"])?)?;
    namespace.cluster.kubectl(&[
        "--kubeconfig",
        &config.display().to_string(),
        "config",
        "set-context",
        "--current",
        &format!("--namespace={}", namespace.name),
    ])?;
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut environment = page.environment;
    environment.extend([
        ("PATH", path),
        ("KUBECONFIG", config.display().to_string()),
        ("KUBECTL", "kubectl".into()),
    ]);
    let registry = &namespace.cluster.registry;
    let images =
        page.images.iter().map(|(name, here)| (format!("{REGISTRY}/{name}"), format!("{registry}/{here}")));
    let walk = Walk {
        directory: root,
        environment,
        meaning: images.chain([(REGISTRY.into(), registry.clone())]).collect(),
        asks: &[&["kubectl get"], page.asks].concat(),
        patience: PATIENCE,
    };
    walk.through(&text, page.fence)
}
