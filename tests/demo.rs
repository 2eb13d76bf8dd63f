//! `make demo`: prints what docs/demo.md shows and the README shortens, and makes the same bytes each time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What surrounds the transcript in docs/demo.md, and its short form in the README.
const START: &str = "<!-- demo -->\n```console\n";
const END: &str = "```\n<!-- /demo -->\n";

/// Runs the demo in a directory that looks like the checkout, and gives back its output and the tree it made.
fn demo() -> (String, BTreeMap<PathBuf, Vec<u8>>) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    // The top Cargo.toml has the licence, which goes into the bundles: without it the digests would not be those of a checkout.
    for part in ["Cargo.toml", "operator", "demo"] {
        std::os::unix::fs::symlink(checkout.join(part), directory.path().join(part)).expect(part);
    }
    let output = Command::new("demo/run")
        .args([env!("CARGO_BIN_EXE_olmkit"), "target/demo"])
        .env_remove("SOURCE_DATE_EPOCH")
        .current_dir(&directory)
        .output()
        .expect("demo/run starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Nothing is said but the next command.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.lines().all(|line| line.starts_with("next: ")), "{said}");
    let mut tree = BTreeMap::new();
    read(&directory.path().join("target/demo"), Path::new(""), &mut tree);
    // The simulated cluster knows its files by their whole paths, so that it is the same one from every directory.
    let real = directory.path().canonicalize().expect("a directory");
    let state = tree.get_mut(Path::new("cluster.json")).expect("the state of the simulated cluster");
    *state = String::from_utf8_lossy(state).replace(&*real.to_string_lossy(), "").into_bytes();
    (String::from_utf8(output.stdout).expect("UTF-8"), tree)
}

fn read(root: &Path, below: &Path, tree: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(below)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            read(root, &path, tree);
        } else {
            tree.insert(path, std::fs::read(entry.path()).expect("a file"));
        }
    }
}

#[test]
fn prints_what_the_docs_show_and_makes_the_same_bytes_twice() {
    let started = Instant::now();
    let (transcript, tree) = demo();
    assert!(started.elapsed() < Duration::from_secs(120), "the demo took {:?}", started.elapsed());
    assert!(transcript.contains("0.1.0 → 0.2.1 → 0.3.0\n"), "{transcript}");
    let (again, other) = demo();
    assert_eq!(transcript, again);
    assert!(tree.len() > 20 && tree == other, "two runs made different trees");

    let page = root().join("docs/demo.md");
    let (before, shown, after) = transcript_in(&page);
    if std::env::var_os("OLMKIT_GENERATE").is_some() {
        let fresh = format!("{before}{START}{}{END}{after}", transcript.trim_start());
        std::fs::write(&page, fresh).expect("docs/demo.md can be written");
    } else {
        assert!(shown == transcript.trim_start(), "docs/demo.md shows another demo: run `make generate`");
    }
    // A line `…` in the README stands for any number of lines, other lines for themselves.
    let (_, short, _) = transcript_in(&root().join("README.md"));
    let mut rest = transcript.as_str();
    for block in short.split("…\n") {
        let found =
            rest.find(block).unwrap_or_else(|| panic!("the demo does not print, in this order:\n{block}"));
        rest = &rest[found + block.len()..];
    }
}

/// The releases of our operators, each with the directory of its package file, its manifests and its channels; oldest first.
const RELEASES: [(&str, &str, &[&str]); 11] = [
    ("operator", "0.1.0", &["stable", "fast"]),
    ("operator", "0.2.0", &["stable", "fast"]),
    ("operator", "0.2.1", &["stable", "fast"]),
    ("operator", "0.3.0", &["stable", "fast"]),
    ("operator", "0.4.0", &["fast"]),
    ("operator", "0.5.0", &["fast"]),
    ("operator", "0.6.0", &["fast"]),
    ("examples/memcached", "0.1.0", &["stable"]),
    ("examples/memcached", "0.2.0", &["stable"]),
    ("examples/etcd", "0.1.0", &["stable"]),
    ("examples/etcd", "0.2.0", &["stable"]),
];

/// docs/version-policy.md: every upgrade of every channel of every operator of ours, the next release among them. Each is
/// safe: nothing breaks, the examples of the old version stay valid, and OLM v1 refuses none of its CRDs.
#[test]
fn every_upgrade_of_every_channel_is_safe_and_keeps_to_the_version_policy() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for part in ["operator", "examples"] {
        std::os::unix::fs::symlink(root().join(part), directory.path().join(part)).expect(part);
    }
    let olmkit = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        let output = command.args(words.split(' ')).current_dir(&directory).output().expect("olmkit starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let (mut known, mut bundles) = (BTreeSet::new(), String::new());
    for (home, version, channels) in RELEASES {
        let before = known.len();
        known.extend(channels.iter().map(|channel| (home, *channel)));
        let is_new = known.len() > before;
        let new = if is_new { " --new-channel" } else { "" };
        let (bundle, channels) = (format!("bundles/{home}-{version}"), channels.join(","));
        olmkit(&format!(
            "bundle generate {home}/deploy/{version} --package-file {home}/olmkit.yaml --version {version} \
             --channels {channels} --catalog catalog{new} --output-dir {bundle}"
        ));
        olmkit(&format!(
            "catalog add catalog {bundle} --policy semver-skippatch \
             --image-ref-template registry.example.com/{{{{.Package}}}}:v{{{{.Version}}}}"
        ));
        bundles += &format!(" {bundle}");
    }
    let channels: serde_json::Value =
        serde_json::from_str(&olmkit("catalog list channels catalog --output json")).expect("JSON");
    let channels = channels["items"].as_array().expect("channels");
    let pairs = channels.iter().map(|channel| (channel["package"].as_str(), channel["name"].as_str()));
    let pairs: Vec<_> = pairs.filter_map(|(package, name)| package.zip(name)).collect();
    assert_eq!(pairs.len(), known.len(), "{pairs:?}");
    let mut upgrades = 0;
    for (package, channel) in pairs {
        let policy = if package == "redis-operator" { " --package-file operator/olmkit.yaml" } else { "" };
        let text = olmkit(&format!(
            "bundle diff --catalog catalog --package {package} --channel {channel} --bundles{bundles}{policy} \
             --deny breaking --output json"
        ));
        let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        upgrades += found["summary"]["checked"].as_u64().unwrap_or_default();
        // A level can be changed by a flag, and what OLM v1 does cannot.
        let mut findings = found["findings"].as_array().expect("findings").iter();
        let refused = findings.find(|finding| finding["level"] == "error" || finding.get("olmV1").is_some());
        assert_eq!(refused, None, "{package}, {channel}");
    }
    assert_eq!(upgrades, 3 + 6 + 1 + 1);
    // The page says what the package file says.
    let (page, file) = (root().join("docs/version-policy.md"), root().join("operator/olmkit.yaml"));
    let [page, file] = [page, file].map(|path| std::fs::read_to_string(path).expect("a file"));
    let policy = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a policy");
    assert!(file.contains(policy), "operator/olmkit.yaml states another policy");
}

/// The next release says how consoles show each field, and of no field that there is not.
#[test]
fn the_bundle_of_the_next_release_describes_every_field() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bundle = directory.path().join("bundle");
    let olmkit = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        let output = command.args(words).arg(&bundle).current_dir(root()).output().expect("olmkit starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (manifests, package) = ("operator/deploy/0.6.0", "operator/olmkit.yaml");
    let words = ["bundle", "generate", manifests, "--package-file", package, "--version", "0.6.0"];
    olmkit(&[&words[..], &["--output-dir"]].concat());
    let found = olmkit(&["bundle", "validate", "--output", "json"]);
    assert!(!found.contains("descriptor"), "{found}");
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file");
    let csv = read(bundle.join("manifests/redis-operator.clusterserviceversion.yaml"));
    let base = read(root().join(manifests).join("olm/clusterserviceversion.yaml"));
    let paths = |text: &str| {
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
        let paths = lines.filter(|line| line.starts_with("path: ")).map(str::to_owned);
        paths.collect::<BTreeSet<_>>()
    };
    assert!(paths(&base).len() > 30 && paths(&base).is_subset(&paths(&csv)), "{csv}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The transcript in a page, with the text before and after it.
fn transcript_in(page: &Path) -> (String, String, String) {
    let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (before, rest) = text.split_once(START).expect("a transcript starts");
    let (shown, after) = rest.split_once(END).expect("the transcript ends");
    (before.to_owned(), shown.to_owned(), after.to_owned())
}
