//! Small operators under the real OLM: side by side in a namespace, one package in two namespaces, a dependency, a version that
//! crashes, and an upgrade that the operator holds.
//!
//! Each operator is the program of `tests/cluster/probe.rs` in a Deployment, without CRDs, so that they run side by side.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::cluster::{Cluster, Namespace, finished};
use crate::harness::{Company, part, results, trial_with};
use crate::images::{olmkit, pushed};
use crate::olm::{Told, needed, push_catalog, serve, serve_data};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial_with("operators_share_a_namespace_under_olm", Company::Any, Some(needed()), shared),
        trial_with("a_crashing_version_is_diagnosed_under_olm", Company::Any, Some(needed()), crashing),
        trial_with(
            "an_operator_from_archives_holds_its_upgrade_under_olm",
            Company::Any,
            Some(needed()),
            held,
        ),
    ]
}

/// A version of a package.
#[derive(Clone, Copy)]
pub(crate) struct Version<'v> {
    pub(crate) package: &'v str,
    pub(crate) version: &'v str,
    /// What the program does: `pause`, or something that it does not know, which ends it.
    pub(crate) verb: &'v str,
    /// The channels, with commas between.
    pub(crate) channels: &'v str,
    /// More of the package file, in YAML.
    pub(crate) more: &'v str,
    /// Text of the manifests and of the package file, and what replaces it.
    pub(crate) change: (&'v str, &'v str),
    /// An object that somebody adds to the bundle.
    pub(crate) extra: &'v str,
}

/// The first version of a package without a name, which runs.
pub(crate) const PLAIN: Version<'static> = Version {
    package: "",
    version: "1.0.0",
    verb: "pause",
    channels: "stable",
    more: "",
    change: ("no such text", ""),
    extra: "",
};

/// Adds versions to the catalog in a directory; everything is pushed.
pub(crate) fn published(namespace: &Namespace, dir: &Path, versions: &[Version<'_>]) -> Result<(), Failed> {
    published_by(namespace, dir, versions, &|bundle, to| pushed(dir, &["bundle", "push", bundle, to]))
}

/// The same by way of an archive.
fn archived(dir: &Path, bundle: &str, to: &str) -> Result<String, Failed> {
    let archive = format!("oci-archive:{}.tar", bundle.replace('/', "-"));
    olmkit(dir, &["bundle", "build", bundle, "--to", &archive])?;
    olmkit(dir, &["image", "copy", &archive, to])?;
    Ok(to.to_owned())
}

/// Adds versions to the catalog in a directory; `push` brings a bundle into the registry, and says under which name.
fn published_by(
    namespace: &Namespace,
    dir: &Path,
    versions: &[Version<'_>],
    push: &dyn Fn(&str, &str) -> Result<String, Failed>,
) -> Result<(), Failed> {
    let image = namespace.cluster.probe()?;
    for Version { package, version, verb, channels, more, change, extra } in versions {
        let manifests = dir.join("manifests").join(format!("{package}-{version}"));
        fs::create_dir_all(&manifests)?;
        fs::write(
            manifests.join("operator.yaml"),
            format!(
                r"
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {package}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {package}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {package}}}}}
  template:
    metadata: {{labels: {{app: {package}}}}}
    spec:
      serviceAccountName: {package}
      terminationGracePeriodSeconds: 0
      containers: [{{name: main, image: '{image}', command: [/probe, {verb}]}}]
"
            )
            .replace(change.0, change.1),
        )?;
        let file = dir.join(format!("{package}-{version}.yaml"));
        fs::write(
            &file,
            format!(
                "package: {package}\ndisplayName: {package}\ndescription: A small operator\n\
                 installModes: [OwnNamespace, SingleNamespace]\n{more}"
            )
            .replace(change.0, change.1),
        )?;
        let (from, file) = (manifests.display().to_string(), file.display().to_string());
        let to = format!("bundles/{package}-{version}");
        let mut words = vec!["bundle", "generate", &from, "--package-file", &file, "--version", version];
        words.extend(["--catalog", "catalog", "--new-channel", "--channels", channels, "--output-dir", &to]);
        olmkit(dir, &words)?;
        if !extra.is_empty() {
            fs::write(dir.join(&to).join("manifests/extra.yaml"), extra)?;
        }
        let bundle = push(&to, &namespace.image(&format!("{package}:v{version}")))?;
        olmkit(dir, &["catalog", "add", "catalog", &bundle, "--policy", "semver-skippatch"])?;
    }
    Ok(())
}

/// Two Subscriptions in a namespace, one of which needs a third, and the same package in another namespace.
fn shared(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let version = |package, version, more| Version { package, version, more, ..PLAIN };
    let needs = "dependencies: [{type: olm.package, value: {packageName: base, version: '>=1.0.0'}}]\n";
    published(
        namespace,
        dir,
        &[
            version("base", "1.0.0", ""),
            version("one", "1.0.0", ""),
            version("one", "1.1.0", ""),
            version("two", "1.0.0", needs),
        ],
    )?;
    let catalog = push_catalog(dir, &namespace.image("catalog:v1"))?;
    serve(namespace, "small", &catalog)?;
    let mut told = Told { namespace, dir, text: String::new() };
    let quick = ["--settle", "1s"];
    let within = ["--watch", namespace.name.as_str()];
    told.operator(&[&["install", "one", "--version", "1.0.0"][..], &within, &quick].concat())?;
    told.operator(
        &[&["install", "two", "--accept-dependencies", "--accept", "one.v1.1.0"][..], &quick].concat(),
    )?;
    let csvs = succeeded(namespace)?;
    assert!(csvs.contains(&"base.v1.0.0".to_owned()) && csvs.contains(&"two.v1.0.0".to_owned()), "{csvs:?}");

    // The same package in a namespace of its own is another operator.
    part("a_package_in_a_second_namespace_under_olm", |other| {
        serve(other, "small", &catalog)?;
        let mut told = Told { namespace: other, dir, text: String::new() };
        told.operator(&[&["install", "one", "--watch", &other.name][..], &quick].concat())?;
        assert_eq!(succeeded(other)?, ["one.v1.1.0"]);
        told.operator(&["uninstall", "one"])?;
        Ok(())
    })?;
    assert_eq!(succeeded(namespace)?, csvs);
    let listed = told.operator(&["list"])?;
    for name in ["one", "two"] {
        assert!(listed.lines().any(|line| line.contains(name) && line.contains("Succeeded")), "{listed}");
    }
    told.operator(&["uninstall", "two"])?;
    Ok(())
}

/// A version that crashes is named by the doctor, and the way back is open.
fn crashing(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let version = |version, verb| Version { package: "frail", version, verb, ..PLAIN };
    published(namespace, dir, &[version("1.0.0", "pause"), version("1.1.0", "no-such-verb")])?;
    let catalog = push_catalog(dir, &namespace.image("catalog:v1"))?;
    serve(namespace, "small", &catalog)?;
    let mut told = Told { namespace, dir, text: String::new() };
    let within = ["--watch", namespace.name.as_str()];
    told.operator(&[&["install", "frail", "--version", "1.0.0", "--settle", "1s"][..], &within].concat())?;
    let failed = told.refused(&["upgrade", "frail", "--timeout", "90s"])?;
    assert!(failed.contains("[crashing]"), "{failed}");
    let diagnosis = told.refused(&["doctor", "frail", "--output", "json"])?;
    let diagnosis: Value = serde_json::from_str(&diagnosis)?;
    assert_eq!(diagnosis["causes"][0]["code"], "crashing", "{diagnosis:#}");
    told.operator(&["rollback", "frail", "--to", "1.0.0", "--settle", "1s"])?;
    assert_eq!(succeeded(namespace)?, ["frail.v1.0.0"]);
    told.operator(&["uninstall", "frail"])?;
    Ok(())
}

/// An operator that is busy is not upgraded, which is said with the way to lift it. Everything comes from archives.
fn held(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let version = |version| Version { package: "busy", version, ..PLAIN };
    published_by(namespace, dir, &[version("1.0.0"), version("1.1.0")], &|bundle, to| {
        archived(dir, bundle, to)
    })?;
    olmkit(dir, &["catalog", "build", "catalog", "--data-only", "--to", "oci-archive:catalog.tar"])?;
    let catalog = namespace.image("catalog:v1");
    olmkit(dir, &["image", "copy", "oci-archive:catalog.tar", &catalog])?;
    serve_data(namespace, "small", &catalog)?;
    let mut told = Told { namespace, dir, text: String::new() };
    let within = ["--watch", namespace.name.as_str()];
    told.operator(&[&["install", "busy", "--version", "1.0.0", "--settle", "1s"][..], &within].concat())?;
    let condition = "operatorconditions.operators.coreos.com/busy.v1.0.0";
    let busy = r#"{"spec":{"conditions":[{"type":"Upgradeable","status":"False","reason":"Busy","message":"slots move","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#;
    namespace.kubectl(&["patch", condition, "--type=merge", "--patch", busy])?;
    let refused = told.refused(&["upgrade", "busy", "--timeout", "75s", "--settle", "1s"])?;
    assert!(refused.contains("`busy.v1.0.0` reports that it is not upgradeable: slots move"), "{refused}");
    let (_, diagnosis) = told.run(&["doctor", "busy", "--output", "json"])?;
    let diagnosis: Value = serde_json::from_str(&diagnosis)?;
    let cause = &diagnosis["causes"][0];
    assert_eq!(cause["code"], "not-upgradeable", "{diagnosis:#}");
    assert_eq!(succeeded(namespace)?, Vec::<String>::new());
    // As the doctor says it.
    let commands =
        cause["repair"].as_array().ok_or("no repair")?.iter().filter_map(|one| one["command"].as_str());
    let lift =
        commands.into_iter().find(|command| command.contains("overrides")).ok_or("nothing lifts it")?;
    let kubectl = namespace.cluster.command(&[]).get_program().to_string_lossy().into_owned();
    let lift = lift.replacen("kubectl", &kubectl, 1);
    finished(&[&lift], &Command::new("sh").args(["-c", &lift]).output()?)?;
    told.operator(&["upgrade", "busy", "--settle", "1s"])?;
    assert_eq!(succeeded(namespace)?, ["busy.v1.1.0"]);
    told.operator(&["uninstall", "busy"])?;
    fs::create_dir_all(results())?;
    fs::write(results().join("held.txt"), &told.text)?;
    Ok(())
}

/// The ClusterServiceVersions of a namespace that have succeeded. Copies of OLM's own and of others' are left out.
fn succeeded(namespace: &Namespace) -> Result<Vec<String>, Failed> {
    let cluster: &Cluster = namespace.cluster;
    let words = ["get", "clusterserviceversions", "--namespace", &namespace.name];
    let found =
        cluster.kubectl(&[&words[..], &["--selector", "!olm.copiedFrom", "--output", "json"]].concat())?;
    let found: Value = serde_json::from_str(&found)?;
    let all = found["items"].as_array().into_iter().flatten();
    let good = all.filter(|csv| csv["status"]["phase"] == "Succeeded");
    Ok(good.filter_map(|csv| Some(csv["metadata"]["name"].as_str()?.to_owned())).collect())
}
