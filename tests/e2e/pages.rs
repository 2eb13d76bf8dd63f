//! Pages whose blocks `console` are run on a cluster, line by line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};

use crate::cluster::Namespace;
use crate::walk::{self, Walk};

/// How long a question is asked again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);
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

/// What the reader of a page has, in a directory: olmkit, kubectl, and a kubeconfig, with a namespace or without.
pub(crate) fn surroundings(
    namespace: &Namespace,
    dir: &Path,
    current: Option<&str>,
) -> Result<Vec<(&'static str, String)>, Failed> {
    let kubectl = namespace.cluster.command(&[]).get_program().to_string_lossy().into_owned();
    let kubectl = if kubectl.contains('/') { fs::canonicalize(&kubectl)? } else { kubectl.into() };
    if kubectl.is_absolute() {
        std::os::unix::fs::symlink(&kubectl, dir.join("kubectl"))?;
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_olmkit"), dir.join("olmkit"))?;
    let config = dir.join("kubeconfig");
    fs::write(&config, namespace.cluster.kubectl(&["config", "view", "--raw", "--flatten"])?)?;
    let config = config.display().to_string();
    let change = match current {
        Some(name) => ["set-context".into(), "--current".into(), format!("--namespace={name}")],
        None => {
            let context = namespace.cluster.kubectl(&["config", "current-context"])?;
            ["unset".to_owned(), format!("contexts.{}.namespace", context.trim()), String::new()]
        }
    };
    let mut words = vec!["--kubeconfig", &config, "config"];
    words.extend(change.iter().map(String::as_str).filter(|word| !word.is_empty()));
    namespace.cluster.kubectl(&words)?;
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default());
    Ok(vec![("PATH", path), ("KUBECONFIG", config), ("KUBECTL", "kubectl".into())])
}

/// Runs the commands of a page in this namespace.
pub(crate) fn walked(namespace: &Namespace, page: Page<'_>) -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join(page.path))?;
    let dir = tempfile::tempdir()?;
    let mut environment = page.environment;
    environment.extend(surroundings(namespace, dir.path(), Some(&namespace.name))?);
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
