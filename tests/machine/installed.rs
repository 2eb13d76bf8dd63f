//! `bundle generate` with the kustomize and the helm that are installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::support::{Part, find, trial_with};

pub(crate) fn trials() -> Vec<Trial> {
    let kustomize = find("kustomize").or_else(|| find("kubectl"));
    let missing = kustomize.is_none().then(|| "neither kustomize nor kubectl is installed".to_owned());
    vec![
        trial_with("installed_kustomize_builds", &[Part::new("kustomize", missing)], kustomize_builds),
        trial_with("installed_helm_renders", &[Part::program("helm")], helm_renders),
        trial_with("installed_helm_lets_all_operators_be_one_catalog", &[Part::program("helm")], one_catalog),
    ]
}

/// Every manifest of the example as one stream.
fn manifests() -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/generate.in/config");
    let file = |name| fs::read_to_string(examples.join(name)).expect(name);
    [file("crd.yaml"), file("operator.yaml"), file("webhook.yaml")].join("---\n")
}

/// The ClusterServiceVersion that `bundle generate` makes of a directory of manifests.
fn generated(directory: &Path, flag: &str, input: &str) -> Result<String, Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["bundle", "generate", "--package", "echo-operator", "--version", "0.1.0", flag, input])
        .env_remove("SOURCE_DATE_EPOCH")
        .current_dir(directory)
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = directory.join("bundle/manifests/echo-operator.clusterserviceversion.yaml");
    Ok(fs::read_to_string(csv)?)
}

fn kustomize_builds() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let overlay = directory.path().join("overlay");
    fs::create_dir(&overlay)?;
    fs::write(overlay.join("all.yaml"), manifests())?;
    let kustomization =
        "resources: [all.yaml]\nimages: [{name: quay.io/example/echo-operator, newTag: v9}]\n";
    fs::write(overlay.join("kustomization.yaml"), kustomization)?;
    let csv = generated(directory.path(), "--kustomize", "overlay")?;
    assert!(csv.contains("image: quay.io/example/echo-operator:v9\n"), "{csv}");
    Ok(())
}

fn helm_renders() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let chart = directory.path().join("chart");
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: echo\nversion: 0.1.0\n")?;
    fs::write(chart.join("templates/all.yaml"), manifests())?;
    let csv = generated(directory.path(), "--helm", "chart")?;
    assert!(csv.contains("deploymentName: echo-operator"), "{csv}");
    Ok(())
}

/// Every operator of the project is in one catalog, with an upgrade at least, and nothing is to be said about it.
fn one_catalog() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let olmkit = |words: &[&str]| -> Result<String, Failed> {
        let output =
            Command::new(env!("CARGO_BIN_EXE_olmkit")).args(words).current_dir(dir.path()).output()?;
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        if output.status.success() { Ok(said) } else { Err(format!("{words:?}: {said}").into()) }
    };
    let operators = [
        ("operator", &["0.1.0", "0.2.0", "0.2.1", "0.3.0"][..]),
        ("examples/memcached", &["0.1.0", "0.2.0"]),
        ("examples/echo", &["0.1.0", "0.2.0"]),
        ("examples/etcd", &["0.1.0", "0.2.0"]),
    ];
    for (place, releases) in operators {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
        let package = place.join("olmkit.yaml").display().to_string();
        for (number, release) in releases.iter().enumerate() {
            let manifests = place.join("deploy").join(release);
            let (tag, manifests) = (format!("image.tag={release}"), manifests.display().to_string());
            let mut words = vec!["bundle", "generate", "--package-file", &package, "--version", release];
            // A chart is in the package file.
            words.extend(if place.join("chart").exists() {
                vec!["--helm-set", tag.as_str()]
            } else {
                vec![manifests.as_str()]
            });
            words.extend(["--output-dir", release]);
            if number > 0 {
                words.extend(["--catalog", "catalog"]);
            }
            olmkit(&words)?;
            olmkit(&["bundle", "validate", release])?;
            let template = "registry.example.com/{{.Package}}-bundle:v{{.Version}}";
            let policy = ["--policy", "semver-skippatch", "--image-ref-template", template];
            olmkit(&[&["catalog", "add", "catalog", release], &policy[..]].concat())?;
            fs::remove_dir_all(dir.path().join(release))?;
        }
    }
    let said = olmkit(&["catalog", "validate", "catalog"])?;
    assert!(said.starts_with("checked 1 catalog: 0 errors, 0 warnings"), "{said}");
    let paths = olmkit(&["catalog", "path", "catalog"])?;
    for upgrade in [
        "echo-operator in stable, head 0.2.0\n  0.1.0 → 0.2.0\n",
        "etcd-operator in stable, head 0.2.0\n  0.1.0 → 0.2.0\n",
        "memcached-operator in stable, head 0.2.0\n  0.1.0 → 0.2.0\n",
        "redis-operator in stable, head 0.3.0\n  0.1.0 → 0.2.1 → 0.3.0\n",
    ] {
        assert!(paths.contains(upgrade), "{paths}");
    }
    Ok(())
}
