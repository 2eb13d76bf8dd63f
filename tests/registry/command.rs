//! The command as a user runs it against a registry: verbs, exit codes, what is said, what is not.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::server::{Kind, PASSWORD, Registry, USER, noise};
use crate::signal;
use crate::support::trial;

const CSV: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: echo.v0.1.0}
spec:
  displayName: Echo
  version: 0.1.0
  minKubeVersion: 1.25.0
";
const ANNOTATIONS: &str = "\
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: echo
  operators.operatorframework.io.bundle.channels.v1: stable
";

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("generate_puts_the_digests_of_tags_in", &registry, pinned),
        trial("a_bundle_goes_to_a_registry_and_comes_back", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            let reference = format!("{}/team/echo-bundle:v0.1.0", registry.host);
            let built =
                run(dir.path(), &["bundle", "build", "bundle", "--to", &reference, "--also-tag", "latest"]);
            check(&built, 0);
            assert!(
                text(&built.stdout).starts_with(&format!("{reference}@sha256:")),
                "{}",
                text(&built.stdout)
            );
            assert!(text(&built.stderr).contains(": uploaded ("), "{}", text(&built.stderr));
            assert_eq!(registry.tags("team/echo-bundle"), ["latest", "v0.1.0"]);

            check(&run(dir.path(), &["bundle", "unpack", &reference, "--output-dir", "again"]), 0);
            for file in ["manifests/csv.yaml", "metadata/annotations.yaml"] {
                let read = |root: &str| fs::read(dir.path().join(root).join(file)).unwrap();
                assert_eq!(read("again"), read("bundle"), "{file}");
            }
            let full = run(dir.path(), &["bundle", "unpack", &reference, "--output-dir", "again"]);
            check(&full, 3);
            assert!(text(&full.stderr).contains("is not empty"), "{}", text(&full.stderr));
            // What the cache has is not received again, and nothing is said to be in the new directory already.
            let cached = run(dir.path(), &["bundle", "unpack", &reference, "--output-dir", "cached"]);
            check(&cached, 0);
            assert!(count(&cached, ": already in the cache (") > 0, "{}", text(&cached.stderr));
            assert_eq!(count(&cached, "already exists"), 0, "{}", text(&cached.stderr));

            // Every place that a bundle may be at gives the same findings.
            check(&run(dir.path(), &["bundle", "build", "bundle", "--to", "oci:images:v1"]), 0);
            check(&run(dir.path(), &["image", "copy", "oci:images:v1", "oci-archive:a.tar"]), 0);
            check(&run(dir.path(), &["image", "copy", &reference, "docker-archive:d.tar"]), 0);
            let findings = |input: &str| {
                let output = run(dir.path(), &["bundle", "validate", input, "--output", "json"]);
                let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                let findings = json["findings"].as_array().unwrap().iter();
                findings.map(|finding| format!("{} {}", finding["code"], finding["line"])).collect::<Vec<_>>()
            };
            let expected = findings("bundle");
            assert!(!expected.is_empty());
            for place in [&reference, "oci:images:v1", "oci-archive:a.tar", "docker-archive:d.tar"] {
                assert_eq!(findings(place), expected, "{place}");
            }

            // A tag that is a reference says where to push; so does an image that is built anew.
            let named = format!("oci:images:{}/team/echo-bundle:v0.2.0", registry.host);
            check(&run(dir.path(), &["bundle", "build", "bundle", "--to", &named, "--push"]), 0);
            check(&run(dir.path(), &["bundle", "build", &named, "--push", "--also-tag", "v0.3.0"]), 0);
            assert_eq!(registry.tags("team/echo-bundle"), ["latest", "v0.1.0", "v0.2.0", "v0.3.0"]);
            let digest = |tag| registry.digest("team/echo-bundle", tag);
            assert_eq!([digest("v0.2.0"), digest("v0.3.0")], [digest("v0.1.0"), digest("v0.1.0")]);

            let digest = run(dir.path(), &["image", "digest", &reference]);
            assert_eq!(
                Some(text(&digest.stdout).trim().to_owned()),
                registry.digest("team/echo-bundle", "latest")
            );
            let shown = run(dir.path(), &["image", "inspect", &reference]);
            assert!(
                text(&shown.stdout).contains("label: operators.operatorframework.io.bundle.package.v1=echo")
            );
            Ok(())
        }),
        trial("a_catalog_changes_by_one_layer", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            for package in 0..40 {
                let at = dir.path().join(format!("catalog/package-{package}"));
                fs::create_dir_all(&at).unwrap();
                let noise = hex(&noise(package, 60_000));
                let text = format!("schema: olm.package\nname: package-{package}\ndescription: n{noise}\n");
                fs::write(at.join("catalog.yaml"), text).unwrap();
            }
            let reference = format!("{}/team/catalog:v1", registry.host);
            let first = run(dir.path(), &["catalog", "push", "catalog", &reference]);
            check(&first, 0);
            assert_eq!(
                count(&first, ": uploaded ("),
                9,
                "eight layers and a configuration: {}",
                text(&first.stderr)
            );
            let changed = dir.path().join("catalog/package-7/catalog.yaml");
            fs::write(changed, "schema: olm.package\nname: package-7\n").unwrap();
            let second = run(dir.path(), &["catalog", "push", "catalog", &reference]);
            check(&second, 0);
            assert_eq!(
                count(&second, ": uploaded ("),
                2,
                "one layer, one configuration: {}",
                text(&second.stderr)
            );
            assert_eq!(count(&second, ": already exists ("), 7, "{}", text(&second.stderr));
            Ok(())
        }),
        trial("a_catalog_stands_on_a_base_for_every_platform", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            let base: olmkit::image::Root = crate::server::index(&[("bin/opm", b"opm".to_vec())]);
            registry
                .place("base/opm:v1")
                .store(&base, &crate::server::access(crate::server::quick()))
                .unwrap();
            fs::create_dir(dir.path().join("catalog")).unwrap();
            fs::write(dir.path().join("catalog/catalog.yaml"), "schema: olm.package\n").unwrap();
            let reference = format!("{}/team/catalog:v1", registry.host);
            let base = format!("{}/base/opm:v1", registry.host);
            let built =
                run(dir.path(), &["catalog", "build", "catalog", "--base", &base, "--to", &reference]);
            check(&built, 0);
            assert_eq!(count(&built, "mounted from another repository"), 1, "{}", text(&built.stderr));
            let shown = run(dir.path(), &["image", "inspect", &reference, "--output", "json"]);
            let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
            let images = json["images"].as_array().unwrap();
            let platforms: Vec<_> = images.iter().map(|image| image["platform"].as_str().unwrap()).collect();
            assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
            for image in images {
                assert_eq!(image["cmd"], serde_json::json!(["serve", "/configs", "--cache-dir=/tmp/cache"]));
                assert_eq!(image["labels"]["operators.operatorframework.io.index.configs.v1"], "/configs");
                assert_eq!(image["layers"].as_array().unwrap().len(), 2);
                assert_eq!(image["layers"], images[0]["layers"], "the same data for every platform");
            }
            Ok(())
        }),
        trial("images_are_made_for_what_a_bundle_supports", &registry, platforms_of_a_bundle),
        trial("no_secret_is_ever_said", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Basic));
            let reference = format!("{}/team/echo:v1", registry.host);
            let host = &registry.host;
            fs::write(dir.path().join("password"), format!("{PASSWORD}\n")).unwrap();
            fs::write(dir.path().join("creds"), format!("# a comment\n{host}={USER}:{PASSWORD}\n")).unwrap();
            let given = [
                format!("{host}={USER}:{PASSWORD}"),
                format!("{host}={USER}:@password"),
                "@creds".to_owned(),
                "-".to_owned(),
            ];
            for creds in &given {
                let input = format!("{host}={USER}:{PASSWORD}\n");
                let output =
                    run_with(dir.path(), &["bundle", "push", "bundle", &reference, "--creds", creds], &input);
                check(&output, 0);
                says_nothing(&output);
            }
            let verbose =
                run(dir.path(), &["bundle", "push", "bundle", &reference, "--creds", &given[0], "-v"]);
            check(&verbose, 0);
            assert!(text(&verbose.stderr).contains("request: "), "{}", text(&verbose.stderr));
            says_nothing(&verbose);
            for wrong in
                [format!("{host}={USER}:x{PASSWORD}"), format!("{host}:{PASSWORD}"), PASSWORD.to_owned()]
            {
                for format in ["text", "json", "yaml"] {
                    let output = run(
                        dir.path(),
                        &["bundle", "push", "bundle", &reference, "--creds", &wrong, "--output", format],
                    );
                    assert_ne!(output.status.code(), Some(0));
                    says_nothing(&output);
                }
            }
            Ok(())
        }),
        trial("ctrl_c_says_what_is_left_behind", &[], || {
            let dir = workplace();
            for name in ["INT", "TERM"] {
                // Takes the connection and never answers. Each process has its own: a second connection of the first
                // would pass for one of the second, which does not listen to signals yet.
                let silent = TcpListener::bind("127.0.0.1:0").unwrap();
                let host = silent.local_addr().unwrap().to_string();
                let reference = format!("{host}/team/echo:v1");
                let child =
                    command(dir.path(), &["bundle", "push", "bundle", &reference, "--plain-http", &host])
                        .spawn()
                        .unwrap();
                // Somebody has asked: the transfer is on its way.
                let (_connection, _) = silent.accept().unwrap();
                signal::send(name, child.id());
                let output = child.wait_with_output().unwrap();
                check(&output, 130);
                let said = text(&output.stderr);
                assert!(said.contains("no tag was set; 0 of 2 blobs are there"), "{said}");
                assert!(said.contains("interrupted"), "{said}");
            }
            Ok(())
        }),
        trial("ctrl_c_while_reading_leaves_nothing_behind", &[], || {
            let dir = workplace();
            fs::create_dir(dir.path().join("catalog")).unwrap();
            fs::write(dir.path().join("catalog/catalog.yaml"), "schema: olm.package\nname: a\n").unwrap();
            for verb in [
                ["image", "copy", "IMAGE", "oci:to:v1"].as_slice(),
                &["image", "copy", "IMAGE", "oci-archive:to"],
                &["bundle", "unpack", "IMAGE", "--output-dir", "to"],
                &["catalog", "build", "catalog", "--base", "IMAGE", "--to", "oci:to:v1"],
                &["catalog", "add", "to", "IMAGE", "--channels", "a"],
            ] {
                let silent = TcpListener::bind("127.0.0.1:0").unwrap();
                let host = silent.local_addr().unwrap().to_string();
                let image = format!("{host}/team/echo:v1");
                let verb: Vec<&str> =
                    verb.iter().map(|word| if *word == "IMAGE" { &image } else { *word }).collect();
                let child =
                    command(dir.path(), &[&*verb, &["--plain-http", &host]].concat()).spawn().unwrap();
                let (_connection, _) = silent.accept().unwrap();
                signal::send("INT", child.id());
                let output = child.wait_with_output().unwrap();
                check(&output, 130);
                let said = text(&output.stderr);
                assert!(
                    said.contains("interrupted") && said.contains("finished transfers are kept"),
                    "{verb:?}: {said}"
                );
                assert!(!dir.path().join("to").exists(), "{verb:?}");
            }
            Ok(())
        }),
        trial("a_disk_without_room_leaves_no_parts_and_is_named", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            let root = crate::server::image("linux/amd64", &[("large", noise(1, 1 << 20))]).into();
            registry
                .place("team/app:v1")
                .store(&root, &crate::server::access(crate::server::quick()))
                .unwrap();
            let image = format!("{}/team/app:v1", registry.host);
            // Where no file may be larger than this, a write fails as on a full disk.
            let cramped = |arguments: &[&str]| {
                let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
                let mut shell = Command::new("sh");
                shell.args(["-c", script, env!("CARGO_BIN_EXE_olmkit")]).args(arguments);
                shell.current_dir(dir.path()).env_clear().env("HOME", dir.path()).output().unwrap()
            };
            let output = cramped(&["image", "copy", &image, "oci:to:v1", "--cache-dir", "cache"]);
            check(&output, 3);
            let said = text(&output.stderr);
            assert!(said.contains("cannot write to `cache/blobs/sha256`"), "{said}");
            assert!(said.contains("help: free disk space, or use another directory"), "{said}");
            let left = fs::read_dir(dir.path().join("cache/blobs/sha256")).unwrap();
            assert!(left.flatten().all(|entry| !entry.file_name().to_str().unwrap().starts_with('.')));
            check(&run(dir.path(), &["image", "copy", &image, "oci:to:v1", "--cache-dir", "cache"]), 0);
            // In the layout itself, and in an archive.
            for to in ["oci:other:v1", "oci-archive:other.tar"] {
                check(&cramped(&["image", "copy", &image, to, "--cache-dir", "cache"]), 3);
                check(&run(dir.path(), &["image", "copy", &image, to, "--cache-dir", "cache"]), 0);
                check(&run(dir.path(), &["image", "digest", to]), 0);
            }
            Ok(())
        }),
        trial("an_image_layout_given_as_the_cache_directory_keeps_its_blobs", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            let root = crate::server::image("linux/amd64", &[("large", noise(1, 2 << 20))]).into();
            registry
                .place("team/app:v1")
                .store(&root, &crate::server::access(crate::server::quick()))
                .unwrap();
            check(&run(dir.path(), &["bundle", "build", "bundle", "--to", "oci:layout:v1"]), 0);
            let blobs = || {
                let blobs = fs::read_dir(dir.path().join("layout/blobs/sha256")).unwrap().flatten();
                let mut names: Vec<_> = blobs.map(|entry| entry.file_name()).collect();
                names.sort();
                names
            };
            let before = blobs();
            let image = format!("{}/team/app:v1", registry.host);
            let copy = ["image", "copy", &image, "oci:to:v1", "--cache-limit", "1", "--cache-dir"];
            let output = run(dir.path(), &[&copy[..], &["layout"]].concat());
            check(&output, 2);
            let said = text(&output.stderr);
            assert!(
                said.contains("cannot use `layout` as the cache directory: it holds other files"),
                "{said}"
            );
            assert!(said.contains("help: pass a new or an empty directory with `--cache-dir DIR`"), "{said}");
            assert_eq!(blobs(), before);
            assert!(!dir.path().join("layout/CACHEDIR.TAG").exists() && !dir.path().join("to").exists());
            // One of ours is taken, also when it is full.
            for _ in 0..2 {
                check(&run(dir.path(), &[&copy[..], &["cache"]].concat()), 0);
            }
            Ok(())
        }),
        trial("an_answer_that_cannot_be_printed_is_an_error", &[], || {
            let dir = workplace();
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            let child = command(dir.path(), &["bundle", "build", "bundle", "--to", "oci:images:v1"])
                .stdout(full)
                .spawn()
                .unwrap();
            let output = child.wait_with_output().unwrap();
            check(&output, 3);
            let said = text(&output.stderr);
            assert!(
                said.contains("error: cannot write to standard output\n  caused by: No space left"),
                "{said}"
            );
            Ok(())
        }),
        trial("a_timeout_has_an_exit_code_of_its_own", &[], || {
            let dir = workplace();
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let host = silent.local_addr().unwrap().to_string();
            let reference = format!("{host}/team/echo:v1");
            let started = Instant::now();
            let output =
                run(dir.path(), &["image", "inspect", &reference, "--plain-http", &host, "--timeout", "1s"]);
            check(&output, 4);
            assert!(started.elapsed() < Duration::from_secs(20));
            assert!(text(&output.stderr).contains("timed out after 1 s"), "{}", text(&output.stderr));
            Ok(())
        }),
        trial("credentials_that_nobody_types_are_not_waited_for", &[], || {
            let dir = workplace();
            let started = Instant::now();
            let arguments =
                ["image", "inspect", "localhost:1/team/echo:v1", "--creds", "-", "--timeout", "1s"];
            let mut child = command(dir.path(), &arguments).spawn().unwrap();
            // Open for as long as the command runs.
            let input = child.stdin.take();
            let output = child.wait_with_output().unwrap();
            drop(input);
            check(&output, 4);
            assert!(started.elapsed() < Duration::from_secs(20));
            let said = text(&output.stderr);
            assert!(said.contains("`standard input`\n  caused by: timed out after 1 s"), "{said}");
            Ok(())
        }),
        trial("a_ca_file_is_read_where_no_certificate_is_needed", &[], || {
            let dir = workplace();
            let host = "127.0.0.1:1";
            let reference = format!("{host}/team/echo:v1");
            for flag in ["--plain-http", "--insecure-skip-tls-verify"] {
                let output = run(
                    dir.path(),
                    &["image", "inspect", &reference, flag, host, "--ca-file", "missing.pem"],
                );
                check(&output, 3);
                let said = text(&output.stderr);
                assert!(said.contains("cannot use the certificates in `missing.pem`"), "{flag}: {said}");
            }
            Ok(())
        }),
    ]
}

fn pinned() -> Result<(), Failed> {
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    let image = format!("{}/team/echo", registry.host);
    check(&run(dir.path(), &["bundle", "build", "bundle", "--to", &format!("{image}:v1")]), 0);
    let digest = registry.digest("team/echo", "v1").unwrap();
    let deployment = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: echo}}\nspec:\n  selector: {{matchLabels: {{app: echo}}}}\n  \
         template:\n    metadata: {{labels: {{app: echo}}}}\n    spec:\n      containers:\n      - name: manager\n        image: \
         {image}:v1\n        env: [{{name: RELATED_IMAGE_SAME, value: '{image}:v1'}}]\n"
    );
    fs::write(dir.path().join("deploy.yaml"), &deployment).unwrap();
    let generate =
        ["bundle", "generate", "deploy.yaml", "--package", "echo", "--version", "0.1.0", "--pin-digests"];
    let generate = [generate.as_slice(), &["--output-dir", "pinned"]].concat();
    check(&run(dir.path(), &generate), 0);
    let csv =
        fs::read_to_string(dir.path().join("pinned/manifests/echo.clusterserviceversion.yaml")).unwrap();
    // The container, the variable, the related image and the annotation.
    assert_eq!(csv.matches(&format!("{image}@{digest}")).count(), 4, "{csv}");
    assert!(!csv.contains(":v1\n"), "{csv}");
    let why = run(
        dir.path(),
        &[generate.as_slice(), &["--explain", "metadata.annotations.containerImage"]].concat(),
    );
    assert!(text(&why.stdout).contains("from the registry\n"), "{}", text(&why.stdout));

    fs::write(dir.path().join("deploy.yaml"), deployment.replace("team/echo:v1", "team/none:v1")).unwrap();
    let missing = run(dir.path(), &generate);
    check(&missing, 1);
    assert!(text(&missing.stderr).contains("error[generate-image-unresolved]"), "{}", text(&missing.stderr));
    Ok(())
}

/// The suite `multiarch` asks the registry: one image is made for both architectures that the labels name, one for one of
/// them, and one is not there.
fn platforms_of_a_bundle() -> Result<(), Failed> {
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    let access = crate::server::access(crate::server::quick());
    let files = [("bin/echo", b"echo".to_vec())];
    let both = crate::server::index(&files);
    registry.place("team/echo:both").store(&both, &access).unwrap();
    let one: olmkit::image::Root = crate::server::image("linux/amd64", &files).into();
    registry.place("team/echo:one").store(&one, &access).unwrap();
    let findings = |tag: &str| {
        let csv = format!(
            "{}  install:\n    strategy: deployment\n    spec:\n      deployments:\n      - name: echo\n        spec:\n          \
             template:\n            spec:\n              containers:\n              - {{name: manager, image: '{}/team/echo:{tag}'}}\n",
            CSV.replace(
                "{name: echo.v0.1.0}",
                "{name: echo.v0.1.0, labels: {operatorframework.io/arch.amd64: supported, \
                 operatorframework.io/arch.arm64: supported}}"
            ),
            registry.host
        );
        fs::write(dir.path().join("bundle/manifests/csv.yaml"), csv).unwrap();
        let arguments = ["bundle", "validate", "bundle", "--suite", "multiarch", "--output", "json"];
        let output = run(dir.path(), &arguments);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let shown = |found: &serde_json::Value| format!("{}: {}", found["code"], found["message"]);
        (
            output.status.code(),
            json["findings"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>().join("\n"),
        )
    };
    // The images fit; that the pod may run on either is the one thing that it does not say.
    let (exit, found) = findings("both");
    assert_eq!(exit, Some(0), "{found}");
    assert!(found.contains("node-affinity-platforms") && found.lines().count() == 1, "{found}");
    let (exit, found) = findings("one");
    assert_eq!(exit, Some(1), "{found}");
    assert!(found.contains("image-platform-missing") && found.contains("architecture `arm64`"), "{found}");
    let (_, found) = findings("none");
    assert!(found.contains("image-uninspected") && found.contains("team/echo:none"), "{found}");
    Ok(())
}

/// A directory with a bundle in it.
pub(crate) fn workplace() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in [("manifests/csv.yaml", CSV), ("metadata/annotations.yaml", ANNOTATIONS)] {
        let path = dir.path().join("bundle").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

pub(crate) fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command
        .args(arguments)
        .current_dir(dir)
        // Nobody's own credentials, cache or proxies.
        .env_clear()
        .env("HOME", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn run(dir: &Path, arguments: &[&str]) -> Output {
    run_with(dir, arguments, "")
}

fn run_with(dir: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = command(dir, arguments).spawn().unwrap();
    // A command that does not read its input is free to.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
pub(crate) fn check(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[track_caller]
pub(crate) fn says_nothing(output: &Output) {
    for said in [&output.stdout, &output.stderr] {
        assert!(!text(said).contains(PASSWORD), "{}", text(said));
        // Nor as docker writes it.
        assert!(!text(said).contains("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"), "{}", text(said));
    }
}

fn count(output: &Output, words: &str) -> usize {
    text(&output.stderr).lines().filter(|line| line.contains(words)).count()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
