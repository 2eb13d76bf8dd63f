//! Small operators under the real OLM: side by side in a namespace, one package in two namespaces, a dependency, and a
//! version that crashes.
//!
//! Each operator is the program of `tests/cluster/probe.rs` in a Deployment, without CRDs, so that they run side by side.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::cluster::{Cluster, Namespace};
use crate::harness::{Company, part, trial_with};
use crate::images::{olmkit, pushed};
use crate::olm::{Told, needed, push_catalog, serve};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial_with("operators_share_a_namespace_under_olm", Company::Any, Some(needed()), shared),
        trial_with("a_crashing_version_is_diagnosed_under_olm", Company::Any, Some(needed()), crashing),
    ]
}

/// A version of a package.
struct Version<'v> {
    package: &'v str,
    version: &'v str,
    /// What the program does: `pause`, or something that it does not know, which ends it.
    verb: &'v str,
    /// The channels; new ones are made for the first version of a package.
    channel: &'v str,
    /// More of the package file, in YAML.
    more: &'v str,
}

/// Adds versions to the catalog in a directory; everything is pushed.
fn published(namespace: &Namespace, dir: &Path, versions: &[Version<'_>]) -> Result<(), Failed> {
    let image = namespace.cluster.probe()?;
    let mut packages = Vec::new();
    for Version { package, version, verb, channel, more } in versions {
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
            ),
        )?;
        let file = dir.join(format!("{package}-{version}.yaml"));
        fs::write(
            &file,
            format!(
                "package: {package}\ndisplayName: {package}\ndescription: A small operator\n\
                 installModes: [OwnNamespace, SingleNamespace]\n{more}"
            ),
        )?;
        let (from, file) = (manifests.display().to_string(), file.display().to_string());
        let to = format!("bundles/{package}-{version}");
        let mut words = vec!["bundle", "generate", &from, "--package-file", &file, "--version", version];
        words.extend(["--catalog", "catalog", "--channels", channel, "--output-dir", &to]);
        if !packages.contains(package) {
            packages.push(*package);
            words.push("--new-channel");
        }
        olmkit(dir, &words)?;
        let bundle =
            pushed(dir, &["bundle", "push", &to, &namespace.image(&format!("{package}:v{version}"))])?;
        olmkit(dir, &["catalog", "add", "catalog", &bundle, "--policy", "semver-skippatch"])?;
    }
    Ok(())
}

/// Two Subscriptions in a namespace, one of which needs a third, and the same package in another namespace.
fn shared(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let version =
        |package, version, more| Version { package, version, verb: "pause", channel: "stable", more };
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
    let version = |version, verb, channel| Version { package: "frail", version, verb, channel, more: "" };
    published(
        namespace,
        dir,
        &[version("1.0.0", "pause", "stable"), version("1.1.0", "no-such-verb", "stable")],
    )?;
    let catalog = push_catalog(dir, &namespace.image("catalog:v1"))?;
    serve(namespace, "small", &catalog)?;
    let mut told = Told { namespace, dir, text: String::new() };
    let within = ["--watch", namespace.name.as_str()];
    told.operator(&[&["install", "frail", "--version", "1.0.0", "--settle", "1s"][..], &within].concat())?;
    let failed = told.refused(&["upgrade", "frail", "--timeout", "50s"])?;
    assert!(failed.contains("[crashing]"), "{failed}");
    let diagnosis = told.refused(&["doctor", "frail", "--output", "json"])?;
    let diagnosis: Value = serde_json::from_str(&diagnosis)?;
    assert_eq!(diagnosis["causes"][0]["code"], "crashing", "{diagnosis:#}");
    told.operator(&["rollback", "frail", "--to", "1.0.0", "--settle", "1s"])?;
    assert_eq!(succeeded(namespace)?, ["frail.v1.0.0"]);
    told.operator(&["uninstall", "frail"])?;
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
