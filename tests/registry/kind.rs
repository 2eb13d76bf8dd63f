//! `operator test --kind` with a registry of its own: kind and docker are stand-ins that write down what they are asked to do, the
//! registry is a real one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::command::{check, command, run, text, workplace};
use crate::release::manifests;
use crate::server::{self, Registry};
use crate::support::trial;

/// Makes a cluster that nobody answers for: what comes after it is OLM's installation, which fails.
const KIND: &str = r#"#!/bin/sh
echo "kind $*" >>"$HOME/asked"
case "$1 $2" in
"get nodes") echo node ;;
"create cluster")
    while [ $# -gt 0 ]; do
        [ "$1" != --config ] || cp "$2" "$HOME/config"
        [ "$1" != --kubeconfig ] || cp "$HOME/kubeconfig" "$2"
        shift
    done
    ;;
esac
"#;

/// The registry that it starts is there already; a node's files are below the home directory.
const DOCKER: &str = r#"#!/bin/sh
echo "docker $1 $2 $3" >>"$HOME/asked"
case "$1" in
run) [ ! -e "$HOME/broken" ] || { echo "docker: pull access denied" >&2; exit 125; } ;;
port) cat "$HOME/address" ;;
ps) [ ! -e "$HOME/containers" ] || cat "$HOME/containers" ;;
exec) sh -c "$(printf %s "$5" | sed "s|/etc/|$HOME/etc/|g")" ;;
esac
"#;

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: kind
clusters: [{name: kind, cluster: {server: 'http://127.0.0.1:9'}}]
users: [{name: kind, user: {}}]
contexts: [{name: kind, context: {cluster: kind, user: kind}}]
";

const CATALOG: &str = "\
schema: olm.package
name: echo
defaultChannel: stable
---
schema: olm.channel
package: echo
name: stable
entries: [{name: echo.v0.1.0}]
---
schema: olm.bundle
package: echo
name: echo.v0.1.0
image: IMAGE
properties: [{type: olm.package, value: {packageName: echo, version: 0.1.0}}]
";

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("a_test_on_kind_pushes_what_it_needs_to_a_registry_of_its_own", &registry, pushes),
        trial(
            "an_image_that_is_not_the_one_of_its_digest_is_refused_before_there_is_a_cluster",
            &registry,
            refuses,
        ),
        trial("a_registry_that_does_not_start_is_told_and_removed", &registry, fails),
        trial("registries_of_killed_runs_are_removed_and_those_of_others_are_not", &registry, removes),
    ]
}

/// A home with the stand-ins in `bin`, OLM's manifests, a catalog with this bundle, and the bundle.
fn home(registry: &Registry, image: &str) -> TempDir {
    let home = workplace();
    let at = |path: &str| home.path().join(path);
    for directory in ["bin", "catalog", "bundles", "tmp"] {
        fs::create_dir(at(directory)).unwrap();
    }
    fs::rename(at("bundle"), at("bundles/0.1.0")).unwrap();
    for (program, text) in [("bin/kind", KIND), ("bin/docker", DOCKER)] {
        fs::write(at(program), text).unwrap();
        fs::set_permissions(at(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(at("kubeconfig"), KUBECONFIG).unwrap();
    fs::write(at("address"), format!("{}\n", registry.host)).unwrap();
    fs::write(at("olm.yaml"), manifests("0.46.0")).unwrap();
    fs::write(at("catalog/catalog.yaml"), CATALOG.replace("IMAGE", image)).unwrap();
    // Any image will do for that of the operator.
    check(&run(home.path(), &["bundle", "build", "bundles/0.1.0", "--to", "oci:operator:v1"]), 0);
    home
}

fn test(home: &Path, more: &[&str]) -> Output {
    let words = [
        ["operator", "test", "echo", "--kind", "--olm-manifests", "olm.yaml"].as_slice(),
        &["--catalog-from", "catalog", "--bundles-from", "bundles"],
        &["--push-image", "registry.example.com/team/echo:v1=oci:operator:v1"],
        more,
    ];
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    command(home, &words.concat()).env("PATH", path).env("TMPDIR", home.join("tmp")).output().unwrap()
}

/// What was asked, the name of the cluster as NAME.
fn asked(home: &Path) -> Vec<String> {
    let asked = fs::read_to_string(home.join("asked")).unwrap_or_default();
    let name = |word: &str| {
        let whole = word.strip_prefix("olmkit-test-")?;
        Some(if whole.ends_with("-registry") { "NAME-registry" } else { "NAME" })
    };
    let words = |line: &str| {
        let words: Vec<&str> = line.split(' ').map(|word| name(word).unwrap_or(word)).collect();
        words.join(" ")
    };
    asked.lines().map(words).collect()
}

fn pushes() -> Result<(), Failed> {
    let registry = Registry::start(server::Kind::Plain);
    let home = home(&registry, "registry.example.com/team/echo-bundle:v0.1.0");
    let home = home.path();
    let output = test(home, &[]);
    check(&output, 3);
    let said = text(&output.stderr);
    assert!(said.contains("cannot reach the cluster"), "{said}");
    assert_eq!(registry.tags("team/echo-bundle"), ["v0.1.0"]);
    assert_eq!(registry.tags("team/echo"), ["v1"]);
    assert_eq!(registry.tags("olmkit-test/catalog"), ["latest"]);
    for image in ["registry.example.com/team/echo-bundle:v0.1.0", "registry.example.com/team/echo:v1"] {
        assert!(said.contains(&format!("{image}: pushed to the registry of the test")), "{said}");
    }
    let asked = asked(home);
    let create = asked.iter().position(|line| line.starts_with("kind create cluster --name NAME ")).unwrap();
    assert_eq!(
        [&asked[..create], &asked[create + 1..]].concat(),
        [
            "kind get clusters",
            "docker ps --all --filter",
            "docker run --detach --name",
            "docker port NAME-registry 5000/tcp",
            "docker exec NAME cat",
            "docker network connect kind",
            "kind get nodes --name NAME",
            "docker exec node sh",
            "kind delete cluster --name NAME",
            "docker rm --force --volumes",
        ]
    );
    // Nodes ask it for every image.
    let hosts = fs::read_to_string(home.join("etc/containerd/certs.d/_default/hosts.toml"))?;
    assert!(
        hosts.starts_with("[host.\"http://olmkit-test-") && hosts.ends_with("-registry:5000\"]\n"),
        "{hosts}"
    );
    let config = fs::read_to_string(home.join("config"))?;
    assert!(config.contains("config_path = \"/etc/containerd/certs.d\""), "{config}");
    // Beside the image of a catalog, only the bundles are pushed.
    let registry = Registry::start(server::Kind::Plain);
    fs::write(home.join("address"), &registry.host)?;
    check(&test(home, &["--catalog-image", "127.0.0.1:9/catalog:v1"]), 3);
    assert_eq!(registry.tags("team/echo-bundle"), ["v0.1.0"]);
    assert!(registry.tags("olmkit-test/catalog").is_empty());
    Ok(())
}

fn refuses() -> Result<(), Failed> {
    let registry = Registry::start(server::Kind::Plain);
    let digest = "a".repeat(64);
    let home = home(&registry, &format!("registry.example.com/team/echo-bundle@sha256:{digest}"));
    let output = test(home.path(), &[]);
    check(&output, 2);
    let said = text(&output.stderr);
    let what =
        format!("`bundles/0.1.0` is not the image `registry.example.com/team/echo-bundle@sha256:{digest}`");
    assert!(said.contains(&what), "{said}");
    let asked = asked(home.path());
    assert!(asked.iter().all(|line| !line.starts_with("kind create")), "{asked:?}");
    assert_eq!(asked.last().map(String::as_str), Some("docker rm --force --volumes"));
    Ok(())
}

fn fails() -> Result<(), Failed> {
    let registry = Registry::start(server::Kind::Plain);
    let home = home(&registry, "registry.example.com/team/echo-bundle:v0.1.0");
    fs::write(home.path().join("broken"), "")?;
    let output = test(home.path(), &[]);
    check(&output, 3);
    let said = text(&output.stderr);
    assert!(said.contains("pull access denied") && said.contains("--registry-image"), "{said}");
    let asked = asked(home.path());
    assert_eq!(
        asked,
        [
            "kind get clusters",
            "docker ps --all --filter",
            "docker run --detach --name",
            "docker rm --force --volumes"
        ]
    );
    // Without docker nothing is begun.
    fs::remove_file(home.path().join("bin/docker"))?;
    let path = format!("{}:/bin-of-nobody", home.path().join("bin").display());
    let words =
        ["operator", "test", "echo", "--kind", "--catalog-from", "catalog", "--olm-manifests", "olm.yaml"];
    let output = command(home.path(), &words).env("PATH", path).output()?;
    check(&output, 3);
    assert!(text(&output.stderr).contains("docker is not installed"), "{}", text(&output.stderr));
    Ok(())
}

fn removes() -> Result<(), Failed> {
    let registry = Registry::start(server::Kind::Plain);
    let home = home(&registry, "registry.example.com/team/echo-bundle:v0.1.0");
    let home = home.path();
    check(&test(home, &[]), 3);
    // A run that has ended, and left its directory as one does that was killed.
    let asked = fs::read_to_string(home.join("asked"))?;
    let of_ended = asked.split_whitespace().find(|word| word.ends_with("-registry")).unwrap();
    fs::create_dir(home.join("tmp").join(of_ended.trim_end_matches("-registry")))?;
    fs::write(home.join("containers"), format!("{of_ended}\nolmkit-test-19a-7-registry\nmine-registry\n"))?;
    fs::remove_file(home.join("asked"))?;
    let output = test(home, &[]);
    let said = text(&output.stderr);
    assert!(said.contains(&format!("deleting the registry {of_ended} of a run that was killed")), "{said}");
    let other = "if that has ended, `docker rm --force --volumes olmkit-test-19a-7-registry` removes it";
    assert!(said.contains(other) && !said.contains("mine-registry"), "{said}");
    let asked = fs::read_to_string(home.join("asked"))?;
    let removed = asked.lines().filter(|line| line.starts_with("docker rm --force --volumes")).count();
    assert_eq!(removed, 2, "{asked}");
    Ok(())
}
