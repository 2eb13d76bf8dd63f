//! The registry's disk: what was deleted goes, what shares it stays.

use std::env;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::cluster::{Namespace, finished};
use crate::harness::{Company, trial_with};
use crate::images::{bundle, olmkit, pushed};
use crate::support::Part;

pub(crate) fn trials() -> Vec<Trial> {
    let collect = env::var("REGISTRY_COLLECT").ok().filter(|command| !command.is_empty());
    let missing = "REGISTRY_COLLECT names no command that collects the registry's garbage";
    let needed = Part::new("registry-collect", collect.is_none().then(|| missing.to_owned()));
    let test = move |namespace: &Namespace| {
        let collect = collect.ok_or("REGISTRY_COLLECT is not set")?;
        let dir = tempfile::tempdir()?;
        bundle(dir.path())?;
        // A file that no other test's image has: layers are shared.
        let own = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {}}}}}\n", namespace.name);
        std::fs::write(dir.path().join("bundle/manifests/own.yaml"), own)?;
        olmkit(
            dir.path(),
            &[
                "catalog",
                "add",
                "catalog",
                "bundle",
                "--channels",
                "stable",
                "--image-ref-template",
                "r/{{.Package}}:v{{.Version}}",
            ],
        )?;
        let deleted = pushed(dir.path(), &["bundle", "push", "bundle", &namespace.image("images:bundle")])?;
        let kept = pushed(dir.path(), &["catalog", "push", "catalog", &namespace.image("images:catalog")])?;
        let (gone, stays) = (blobs(namespace, &deleted)?, blobs(namespace, &kept)?);

        let answer = namespace.cluster.ask_registry("DELETE", &manifest(namespace, &deleted))?;
        assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
        finished(&[&collect], &Command::new("sh").args(["-c", &collect]).output()?)?;

        for (blobs, status) in [(gone, "HTTP/1.1 404 "), (stays, "HTTP/1.1 200 ")] {
            for blob in blobs {
                let answer = namespace.cluster.ask_registry("HEAD", &blob)?;
                assert!(answer.starts_with(status), "{blob}: {answer}");
            }
        }
        // What is still there is whole.
        olmkit(dir.path(), &["image", "copy", &kept, "oci:copy:catalog"])?;
        Ok(())
    };
    // Alone: what another test is pushing has no references yet, and would be collected.
    vec![trial_with("deleted_images_leave_no_garbage", Company::Alone, Some(needed), test)]
}

/// The path of an image's manifest in the registry.
fn manifest(namespace: &Namespace, image: &str) -> String {
    let digest = image.rsplit('@').next().unwrap_or_default();
    format!("/v2/{}/images/manifests/{digest}", namespace.name)
}

/// The paths of everything that an image consists of.
fn blobs(namespace: &Namespace, image: &str) -> Result<Vec<String>, Failed> {
    let answer = namespace.cluster.ask_registry("GET", &manifest(namespace, image))?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let json: serde_json::Value = serde_json::from_str(body)?;
    let layers = json["layers"].as_array().ok_or("a manifest without layers")?;
    let digests =
        layers.iter().chain([&json["config"]]).map(|blob| blob["digest"].as_str().unwrap_or_default());
    Ok(digests.map(|digest| format!("/v2/{}/images/blobs/{digest}", namespace.name)).collect())
}
