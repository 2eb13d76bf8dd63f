//! Images that olmkit built and pushed, as a node's container runtime takes them: pulled by digest, unpacked, run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::cluster::{Namespace, finished};
use crate::harness::{Company, trial, trial_with};
use crate::support::{Part, find};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_bundle_is_pulled_and_unpacked", Company::Any, |namespace| {
            let dir = tempfile::tempdir()?;
            bundle(dir.path())?;
            let image = pushed(
                dir.path(),
                &["bundle", "build", "bundle", "--to", &namespace.image("bundle:v0.1.0")],
            )?;
            let found = unpacked(namespace, &image, &["/manifests", "/metadata"])?;
            let expected =
                [listed(&dir.path().join("bundle/manifests")), listed(&dir.path().join("bundle/metadata"))];
            assert_eq!(found, expected.concat());
            assert!(
                found.contains("kind: ClusterServiceVersion")
                    && found.contains("kind: CustomResourceDefinition")
            );
            Ok(())
        }),
        trial("a_data_only_catalog_is_pulled_and_unpacked", Company::Any, |namespace| {
            let dir = tempfile::tempdir()?;
            bundle(dir.path())?;
            let bundle = namespace.image("bundle:v0.1.0");
            pushed(dir.path(), &["bundle", "push", "bundle", &bundle])?;
            olmkit(dir.path(), &["catalog", "add", "catalog", &bundle, "--channels", "stable"])?;
            let image = pushed(dir.path(), &["catalog", "push", "catalog", &namespace.image("catalog:v1")])?;
            let found = unpacked(namespace, &image, &["/configs"])?;
            let catalog = listed(&dir.path().join("catalog"));
            assert_eq!(found, catalog.replace(" /catalog", " /configs"));
            assert!(found.contains("schema: olm.channel"), "{found}");
            Ok(())
        }),
        trial("a_scratch_image_runs_without_any_rights", Company::Any, |namespace| {
            let said = namespace.run(
                "scratch",
                "securityContext: {runAsUser: 65532, runAsGroup: 65532, runAsNonRoot: true, \
                 seccompProfile: {type: RuntimeDefault}}, \
                 containers: [{name: main, image: '{probe}', command: [/probe, tree, /etc], \
                 securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, \
                 capabilities: {drop: [ALL]}}}]",
            )?;
            // The image has no /etc: what is there is the cluster's.
            assert!(said.contains("/etc/resolv.conf") && said.contains("nameserver "), "{said}");
            Ok(())
        }),
        memcached(),
    ]
}

/// Debian's memcached with the libraries it needs, in an image of its own, behind a Service.
fn memcached() -> Trial {
    let needed = Part::program("memcached");
    trial_with("memcached_of_debian_serves", Company::Any, Some(needed), |namespace| {
        let program = find("memcached").ok_or("memcached is not installed")?;
        let image = namespace.image("memcached:latest");
        crate::program::push(&image, &program, &[]).map_err(|error| Failed::from(error.to_string()))?;
        namespace.apply(
            &r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: cache}
spec:
  replicas: 2
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsUser: 1000, runAsNonRoot: true}
      containers:
        - {name: memcached, image: "{image}", args: [-m, "16"], readinessProbe: {tcpSocket: {port: 11211}}}
---
apiVersion: v1
kind: Service
metadata: {name: cache}
spec: {selector: {app: cache}, sessionAffinity: ClientIP, ports: [{port: 11211}]}
"#
            .replace("{image}", &image),
        )?;
        namespace.wait("deployment/cache", "condition=Available")?;
        let said = namespace.ask(
            &format!("cache.{}.svc:11211", namespace.name),
            "set greeting 0 60 5\\r\\nhello\\r\\nget greeting\\r\\nquit\\r\\n",
        )?;
        assert_eq!(said.trim_end(), "STORED\r\nVALUE greeting 0 5\r\nhello\r\nEND");
        Ok(())
    })
}

/// A release of the RedisCluster operator as a bundle, in `bundle`.
pub(crate) fn bundle(dir: &Path) -> Result<(), Failed> {
    let operator = Path::new(env!("CARGO_MANIFEST_DIR")).join("operator");
    let (manifests, package) = (operator.join("deploy/0.1.0"), operator.join("olmkit.yaml"));
    let (manifests, package) = (manifests.to_str().unwrap(), package.to_str().unwrap());
    olmkit(
        dir,
        &[
            "bundle",
            "generate",
            manifests,
            "--package-file",
            package,
            "--version",
            "0.1.0",
            "--output-dir",
            "bundle",
        ],
    )?;
    Ok(())
}

/// Runs olmkit in a directory and gives back what it printed.
pub(crate) fn olmkit(dir: &Path, arguments: &[&str]) -> Result<String, Failed> {
    finished(
        arguments,
        &Command::new(env!("CARGO_BIN_EXE_olmkit")).args(arguments).current_dir(dir).output()?,
    )
}

/// Runs a verb that pushes, and gives back the image by its digest, as catalogs and OLM name images.
pub(crate) fn pushed(dir: &Path, arguments: &[&str]) -> Result<String, Failed> {
    let json: Value = serde_json::from_str(&olmkit(dir, &[arguments, &["--output", "json"]].concat())?)?;
    let text = |key: &str| json[key].as_str().ok_or_else(|| Failed::from(format!("no `{key}` in {json}")));
    let reference = text("reference")?.trim_start_matches("docker://");
    let (name, _) = reference.rsplit_once(':').ok_or("a reference without a tag")?;
    Ok(format!("{name}@{}", text("digest")?))
}

/// What a container of an image sees below some directories. The image has no program, so one is brought along in a
/// volume: OLM unpacks bundles and catalogs in this way.
fn unpacked(namespace: &Namespace, image: &str, dirs: &[&str]) -> Result<String, Failed> {
    namespace.run(
        "unpack",
        &format!(
            "volumes: [{{name: tools, emptyDir: {{}}}}], \
             initContainers: [{{name: tools, image: '{{probe}}', command: [/probe, install, /tools/probe], \
             volumeMounts: [{{name: tools, mountPath: /tools}}]}}], \
             containers: [{{name: image, image: '{image}', imagePullPolicy: Always, \
             command: [/tools/probe, tree, {}], volumeMounts: [{{name: tools, mountPath: /tools}}]}}]",
            dirs.join(", ")
        ),
    )
}

/// The same of a directory on this machine, with the modes that images have: what `probe tree` prints.
fn listed(dir: &Path) -> String {
    let mut files = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(path) = open.pop() {
        let content = if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            None
        } else {
            Some(fs::read_to_string(&path).unwrap())
        };
        let name = path.strip_prefix(dir.parent().unwrap()).unwrap().to_path_buf();
        files.insert(name, content);
    }
    let lines = files.iter().map(|(name, content)| match content {
        None => format!("0755 - /{}\n", name.display()),
        Some(content) => format!("0644 {} /{}\n{content}\n", content.len(), name.display()),
    });
    lines.collect()
}
