//! `docs/kind.md`: every command that does not call docker or kind, as the page shows it, and what it prints.
//!
//! The cluster, its registry and OLM are there already, so the page's first two sections are left out, but for what they ask.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::cluster::Namespace;
use crate::examples::MEMCACHED;
use crate::harness::{Company, trial_with};
use crate::olm;
use crate::pages::{PATIENCE, surroundings};
use crate::support::Part;
use crate::walk::Walk;

/// What the page calls its registry.
const REGISTRY: &str = "localhost:5001";
/// The namespace of the page's operator.
const NAMESPACE: &str = "cache";

pub(crate) fn trials() -> Vec<Trial> {
    // Alone: the page's names are those of the whole cluster.
    let needed = [Part::program("memcached"), Part::program("make"), olm::needed()];
    let name = "the_page_about_kind_leads_to_an_upgraded_operator";
    vec![trial_with(name, Company::Alone, needed, page)]
}

/// Where the page's reader is: in a clone, in which names that the page makes up may be taken.
fn checkout(root: &Path, directory: &Path) -> Result<PathBuf, Failed> {
    let clone = directory.join("checkout");
    let cloned = Command::new("git").args(["clone", "--quiet", "--shared"]).args([root, &clone]).output();
    if !cloned.is_ok_and(|output| output.status.success()) {
        // A source archive is no repository.
        fs::create_dir_all(&clone)?;
        symlink(root.join("examples"), clone.join("examples"))?;
    }
    Ok(clone)
}

fn page(namespace: &Namespace) -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/kind.md"))?;
    let (directory, programs) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let checkout = checkout(root, directory.path())?;
    let mut environment = surroundings(namespace, programs.path(), None)?;
    // `make image` would compile for minutes what is built already.
    environment.push(("STATIC", format!("echo {}", MEMCACHED.built()?.display())));
    let cargo = programs.path().join("cargo");
    let script = format!(
        "#!/bin/sh\nset -e\ncase \"$*\" in 'run --quiet --locked -p olmkit --example program-image -- '*) shift 8;; *) exit 64;; esac\n\
         cd '{}'\nprogram=$(CARGO='{}' tests/built --workspace --example program-image)\nexec \"$program\" \"$@\"\n",
        root.display(),
        env!("CARGO"),
    );
    fs::write(&cargo, script)?;
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755))?;
    environment.push(("CARGO", cargo.display().to_string()));
    let walk = Walk {
        directory: &checkout,
        environment,
        meaning: vec![(REGISTRY.into(), namespace.cluster.registry.clone())],
        asks: &["olmkit operator plan"],
        patience: PATIENCE,
    };
    let outcome = walk.through(&text, "console");
    // What others of this cluster would trip over.
    let cluster = namespace.cluster;
    let gone = ["--ignore-not-found", "--timeout=60s"];
    let of_olm = ["delete", "catalogsources.operators.coreos.com", "team", "--namespace", "olm"];
    for object in [&of_olm[..], &["delete", "namespace", NAMESPACE], &["delete", "crd", MEMCACHED.crd]] {
        cluster.kubectl(&[object, &gone].concat())?;
    }
    outcome
}
