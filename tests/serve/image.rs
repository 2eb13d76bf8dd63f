//! Catalog images that carry their server: what is in them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::answers::http;
use crate::client::{Server, arg};
use crate::fixture::Catalog;

/// What passes for a static program: a header with one segment that is no loader.
fn program(machine: u8, segment: u8) -> Vec<u8> {
    let mut bytes = vec![0; 120];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (bytes[18], bytes[32], bytes[54], bytes[56], bytes[64]) = (machine, 64, 56, 1, segment);
    bytes
}

/// What `olmkit` answers in JSON, and its exit code.
fn olmkit(dir: &Path, args: &[&str]) -> (Value, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(args)
        .args(["--output", "json"])
        .current_dir(dir)
        .output();
    let output = output.unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

/// What a layer of a layout holds.
fn entries(layout: &Path, digest: &Value) -> Vec<String> {
    let blob = layout.join("blobs").join(digest.as_str().unwrap().replace(':', "/"));
    let mut tar = tar::Archive::new(zstd::Decoder::new(fs::File::open(blob).unwrap()).unwrap());
    let name = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let entry = entry.unwrap();
        let link = entry.link_name().unwrap().map(|target| format!(" -> {}", target.display()));
        format!("{}{}", entry.path().unwrap().display(), link.unwrap_or_default())
    };
    tar.entries().unwrap().map(name).collect()
}

#[test]
fn servers_for_two_platforms_over_the_same_data() {
    let catalog = Catalog::new(&[("alpha", 2), ("beta", 1)]);
    let dir = catalog.as_ref();
    fs::write(dir.join("amd64"), program(62, 1)).unwrap();
    fs::write(dir.join("arm64"), program(183, 1)).unwrap();
    let build = |to: &str| {
        let servers = ["--server-binary", "linux/amd64=amd64", "--server-binary", "linux/arm64=arm64"];
        olmkit(dir, &[&["catalog", "build", "catalog", "--to", to], servers.as_slice()].concat())
    };
    let (built, code) = build("oci:images:one");
    assert_eq!(code, Some(0), "{built}");
    assert_eq!(build("oci:images:two").0["digest"], built["digest"], "the same input gives the same image");

    let (found, _) = olmkit(dir, &["image", "inspect", "oci:images:one"]);
    let images = found["images"].as_array().unwrap();
    assert_eq!(
        images.iter().map(|image| &image["platform"]).collect::<Vec<_>>(),
        ["linux/amd64", "linux/arm64"]
    );
    for image in images {
        assert_eq!(image["entrypoint"], serde_json::json!(["/bin/olmkit-serve"]));
        assert_eq!(image["cmd"], serde_json::json!(["/configs", "--index", "/cache/catalog.olmkit"]));
        assert_eq!(image["user"], "1001:0");
        assert_eq!(image["ports"], serde_json::json!([50051]));
        assert_eq!(image["labels"]["operators.operatorframework.io.index.configs.v1"], "/configs");
    }
    let layers = |image: &Value| -> Vec<Value> {
        image["layers"].as_array().unwrap().iter().map(|layer| layer["digest"].clone()).collect()
    };
    let (first, second) = (layers(&images[0]), layers(&images[1]));
    let data = first.len() - 1;
    assert_eq!(first[..data], second[..data], "the data is the same");
    assert_ne!(first[data], second[data], "the servers are not");
    assert_eq!(
        entries(&dir.join("images"), &first[data]),
        ["bin/", "bin/grpc_health_probe -> olmkit-serve", "bin/olmkit-serve"],
        "OLM's startup probe finds its program"
    );
    // It is a catalog image like any other.
    let (listed, code) = olmkit(dir, &["catalog", "validate", "oci:images:one"]);
    assert_eq!((code, &listed["summary"]["checked"]), (Some(0), &serde_json::json!(1)));
}

/// After `cargo install` there is no static program: the image holds the catalog alone, and the talk says so.
#[test]
fn without_a_server_the_image_holds_the_catalog() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let dir = catalog.as_ref();
    // A copy elsewhere, because a server may lie beside the program that is tested.
    let alone = dir.join("olmkit");
    fs::copy(env!("CARGO_BIN_EXE_olmkit"), &alone).unwrap();
    let mut command = Command::new(&alone);
    command.args(["catalog", "build", "catalog", "--to", "oci:images:x"]).current_dir(dir);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("extractContent") && !said.contains("make "), "{said}");
    let (found, _) = olmkit(dir, &["image", "inspect", "oci:images:x"]);
    assert_eq!(found["images"][0]["entrypoint"], serde_json::json!([]));
}

#[test]
fn servers_that_would_not_run() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let dir = catalog.as_ref();
    fs::write(dir.join("dynamic"), program(62, 3)).unwrap();
    let build = |server: &str, more: &[&str]| {
        let args = ["catalog", "build", "catalog", "--to", "oci:images:x", "--server-binary", server];
        let (answer, code) = olmkit(dir, &[&args, more].concat());
        assert_eq!(code, Some(1), "{answer}");
        (answer["error"].as_str().unwrap().to_owned(), answer["help"].as_str().unwrap_or_default().to_owned())
    };
    let (error, help) = build("linux/amd64=dynamic", &[]);
    assert!(error.contains("is not static") && help.contains("--data-only"), "{error} {help}");
    let (error, _) = build("linux/arm64=dynamic", &[]);
    assert_eq!(error, "`dynamic` is not a program for linux/arm64");
    let (error, _) = build("linux/amd64=dynamic", &["--platform", "linux/s390x"]);
    assert_eq!(error, "there is no catalog server for linux/s390x");
    assert!(!dir.join("images").exists(), "nothing was written");
}

#[test]
fn a_catalog_that_nobody_could_serve_is_not_built() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let dir = catalog.as_ref();
    fs::write(catalog.file("bad"), "schema: olm.package\nname: Bad\n").unwrap();
    fs::write(dir.join("server"), program(62, 1)).unwrap();
    let index = catalog.index();
    for args in [
        ["catalog", "build", "catalog", "--to", "oci:images:x", "--server-binary", "linux/amd64=server"]
            .as_slice(),
        &["catalog", "build-index", "catalog", "--to", arg(&index)],
    ] {
        let (answer, code) = olmkit(dir, args);
        assert_eq!(code, Some(1), "{answer}");
        assert!(
            answer["error"].as_str().unwrap().contains("cannot compile `catalog`: it has 3 errors"),
            "{answer}"
        );
    }
    assert!(!index.exists() && !dir.join("images").exists());
}

/// What is in an image does not change, and its reference is no path.
#[test]
fn a_catalog_of_an_image_does_not_become_stale() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let dir = catalog.as_ref();
    let (built, code) = olmkit(dir, &["catalog", "build", "catalog", "--to", "oci:images:x", "--data-only"]);
    assert_eq!(code, Some(0), "{built}");
    let image = format!("oci:{}:x", dir.join("images").display());
    let server = Server::start(&[&image, "--port", "0"]);
    // Another one, which looks at its files as often, has looked several times by then.
    let other = Server::start(&[arg(&catalog.path()), "--port", "0"]);
    for name in ["beta", "gamma"] {
        catalog.put(name, 1);
        other.wait("reloaded");
    }
    let (_, metrics) = http(&server, "GET /metrics HTTP/1.1");
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains("olmkit_catalog_stale 0"), "{metrics}");
    let log = server.log.lock().unwrap();
    assert!(!log.iter().any(|line| line.contains("stale") || line.contains("not reloaded")), "{log:#?}");
}
