//! `operator doctor --from` as a command: pipes, archives, files that end too early, clocks that are wrong, names that are none.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::{olmkit, said};

/// The command with something on its standard input, which is a pipe.
fn piped(directory: &Path, words: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["operator", "doctor"])
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Who refuses what it is given does not read it to its end.
    drop(child.stdin.take().unwrap().write_all(input));
    child.wait_with_output().unwrap()
}

/// The diagnosis of a collection with these objects.
fn diagnosis(items: &[Value]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(directory.path().join("objects.json"), list.to_string()).unwrap();
    let words = ["doctor", "--from", "objects.json", "--output", "json"];
    let output = olmkit(directory.path(), &words);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
}

fn object(api_version: &str, kind: &str, name: &str, mut rest: Value) -> Value {
    let metadata = json!({"name": name, "namespace": "here", "creationTimestamp": "2026-01-01T00:00:00Z"});
    rest["apiVersion"] = api_version.into();
    rest["kind"] = kind.into();
    rest["metadata"] = metadata;
    rest
}

const OLM: &str = "operators.coreos.com/v1alpha1";

/// An operator that is being installed since a few seconds, with everything that the doctor looks at.
fn installing() -> Vec<Value> {
    let deployments = json!([{"name": "demo", "spec": {"replicas": 1}}]);
    let mut pod = object(
        "v1",
        "Pod",
        "demo-5d9-x",
        json!({
            "spec": {"nodeName": "one", "containers": [{"name": "manager", "image": "r/demo:1"}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:05Z", "containerStatuses": [{
                "name": "manager", "ready": false, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:06Z"}},
            }]},
        }),
    );
    pod["metadata"]["labels"] = json!({"pod-template-hash": "5d9"});
    pod["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet", "name": "demo-5d9"}]);
    vec![
        object(
            OLM,
            "Subscription",
            "demo",
            json!({
                "spec": {"name": "demo", "source": "catalog", "sourceNamespace": "here"},
                "status": {"currentCSV": "demo.v1", "installedCSV": "demo.v1"},
            }),
        ),
        object(
            "operators.coreos.com/v1",
            "OperatorGroup",
            "here",
            json!({"spec": {"targetNamespaces": ["here"]}}),
        ),
        object(
            OLM,
            "CatalogSource",
            "catalog",
            json!({"status": {"connectionState": {"lastObservedState": "READY"}}}),
        ),
        object(
            OLM,
            "ClusterServiceVersion",
            "demo.v1",
            json!({
                "spec": {"install": {"spec": {"deployments": deployments}}},
                "status": {"phase": "Installing", "reason": "InstallWaiting", "lastTransitionTime": "2026-01-01T00:00:04Z"},
            }),
        ),
        object("apps/v1", "Deployment", "demo", json!({"status": {"replicas": 1, "updatedReplicas": 1}})),
        pod,
        object(
            "v1",
            "Event",
            "demo.1",
            json!({
                "involvedObject": {"kind": "Pod", "name": "elsewhere"}, "type": "Warning", "reason": "BackOff",
                "message": "Back-off", "source": {"component": "kubelet", "host": "one"},
                "firstTimestamp": "2026-01-01T00:00:06Z", "lastTimestamp": "2026-01-01T00:00:06Z",
            }),
        ),
    ]
}

#[test]
fn the_clock_of_a_node_that_is_ahead_makes_nothing_late() {
    let whole = diagnosis(&installing());
    assert_eq!(whole["state"], "progressing", "{whole:#}");
    let mut objects = installing();
    objects[5]["status"]["startTime"] = json!("2026-01-01T00:12:05Z");
    objects[5]["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] =
        json!("2026-01-01T00:12:06Z");
    for (first, last) in [("00:12:06", "00:12:06"), ("00:00:06", "00:12:30"), ("00:12:06", "00:25:00")] {
        objects[6]["firstTimestamp"] = json!(format!("2026-01-01T{first}Z"));
        objects[6]["lastTimestamp"] = json!(format!("2026-01-01T{last}Z"));
        let found = diagnosis(&objects);
        assert_eq!(found["state"], "progressing", "{first} {last}: {found:#}");
    }
    // What OLM itself wrote later is believed.
    objects[2]["status"]["connectionState"]["lastConnect"] = json!("2026-01-01T00:20:00Z");
    assert_eq!(diagnosis(&objects)["state"], "broken");
}

#[test]
fn a_collection_that_was_cut_off_is_not_progressing() {
    let directory = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": installing()}).to_string();
    let mut states = Vec::new();
    for cut in (0..list.len()).step_by(97).filter(|cut| list[..*cut].contains("\"demo.v1\"")) {
        fs::write(directory.path().join("objects.json"), &list[..cut]).unwrap();
        let words = ["doctor", "--from", "objects.json", "--output", "json"];
        let output = olmkit(directory.path(), &words);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        // Not even a Subscription was read to its end.
        if found["schema"] == "olmkit.error/v1" {
            continue;
        }
        let causes = found["causes"].as_array().unwrap();
        let codes: Vec<&str> = causes.iter().filter_map(|cause| cause["code"].as_str()).collect();
        assert_eq!(codes, ["not-collected"], "{cut}: {found:#}");
        assert!(
            causes[0]["sentence"].as_str().unwrap().contains("only a part of `objects.json` could be read")
        );
        states.push(found["state"].clone());
    }
    assert!(states.len() > 10, "{states:?}");
}

/// `tail -n +40 objects.json`: the OperatorGroup may have been before that.
#[test]
fn a_collection_without_its_beginning_blames_nothing_that_is_absent() {
    let directory = tempfile::tempdir().unwrap();
    let mut objects = installing();
    let group = objects.iter().position(|object| object["kind"] == "OperatorGroup").unwrap();
    let group = objects.remove(group);
    objects.insert(0, group);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let json = serde_json::to_string_pretty(&list).unwrap();
    let yaml = olmkit_bundle::yaml::write::to_string(&list).unwrap();
    for (name, text) in [("objects.json", json), ("objects.yaml", yaml)] {
        let begins = text.find("OperatorGroup").unwrap();
        let cut = begins + text[begins..].find('\n').unwrap() + 1;
        fs::write(directory.path().join(name), &text[cut..]).unwrap();
        let output = olmkit(directory.path(), &["doctor", "--from", name, "--output", "json"]);
        let found: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
        let codes: Vec<&str> =
            found["causes"].as_array().unwrap().iter().filter_map(|cause| cause["code"].as_str()).collect();
        assert_eq!(codes, ["not-collected"], "{found:#}");
        let told = found["notSeen"].as_array().unwrap().iter();
        let mut told = told.filter(|one| one["what"] == name && one["why"] == "its beginning is missing");
        assert!(told.next().is_some(), "{found:#}");
    }
}

#[test]
fn a_recording_that_was_cut_off_is_diagnosed_up_to_there() {
    let directory = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces");
    let text = fs::read_to_string(root.join("23b-required-crd-no-provider.jsonl")).unwrap();
    let (count, last) = (text.lines().count() + 1, text.lines().last().unwrap());
    for more in [1, 20, 60] {
        let cut = format!("{}\n{}", text.trim_end(), &last[..more]);
        fs::write(directory.path().join("trace.jsonl"), cut).unwrap();
        let output = olmkit(directory.path(), &["doctor", "--from", "trace.jsonl"]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}{}", said(&output));
        assert!(told.contains("broken[dependency-missing]"), "{told}");
        assert!(
            told.contains(&format!("not seen: line {count}: the recording ends in the middle")),
            "{told}"
        );
        // What is missing comes later.
        let output = olmkit(directory.path(), &["doctor", "--from", "trace.jsonl", "--at", "1"]);
        assert!(!String::from_utf8_lossy(&output.stdout).contains("not seen"));
    }
    // A line that is broken in between is no line that was cut off.
    let broken = text.replacen("{\"t\"", "{\"t", 3);
    fs::write(directory.path().join("trace.jsonl"), broken).unwrap();
    let output = olmkit(directory.path(), &["doctor", "--from", "trace.jsonl"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn what_comes_from_a_pipe_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": installing()}).to_string();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces");
    let trace = fs::read(root.join("18b-channel-not-found.jsonl")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(list.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(list.as_bytes(), 1).unwrap();
    // A shell's `<(…)` is such a name.
    for from in ["-", "/dev/stdin", "/dev/fd/0"] {
        for (input, expected) in
            [(list.as_bytes(), "1 progressing"), (&gzip, "1 progressing"), (&zstd, "1 progressing")]
        {
            let output = piped(directory.path(), &["--from", from], input);
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(told.contains(expected), "{from}: {told}{}", said(&output));
        }
        let output = piped(directory.path(), &["--from", from, "--at", "45000"], &trace);
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("channel-not-found"),
            "{from}: {}",
            said(&output)
        );
    }
    fs::write(directory.path().join("objects.json.zst"), &zstd).unwrap();
    let output = olmkit(directory.path(), &["doctor", "--from", "objects.json.zst"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 progressing"), "{}", said(&output));
    // An archive that is a link.
    fs::write(directory.path().join("a.gz"), &gzip).unwrap();
    std::os::unix::fs::symlink("a.gz", directory.path().join("link.gz")).unwrap();
    let output = olmkit(directory.path(), &["doctor", "--from", "link.gz"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 progressing"), "{}", said(&output));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_compressed_recording_is_diagnosed_like_the_recording() {
    let directory = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces");
    let trace = fs::read(root.join("18b-channel-not-found.jsonl")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    write("trace.jsonl", &trace);
    write("trace.jsonl.gz", &gzip(&trace));
    write("trace.jsonl.zst", &zstd::encode_all(&trace[..], 1).unwrap());
    write("trace.zst", &zstd::encode_all(&trace[..], 1).unwrap());
    for at in [&["--at", "45000"][..], &["--at", "5000"], &[]] {
        let ask = |name: &str| {
            let output = olmkit(directory.path(), &[&["doctor", "--from", name], at].concat());
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), said(&output))
        };
        let whole = ask("trace.jsonl");
        assert!(whole.2.is_empty(), "{whole:?}");
        for name in ["trace.jsonl.gz", "trace.jsonl.zst", "trace.zst"] {
            assert_eq!(ask(name), whole, "{name} {at:?}");
        }
        let output = piped(directory.path(), &[&["--from", "-"], at].concat(), &gzip(&trace));
        assert_eq!(String::from_utf8_lossy(&output.stdout), whole.1);
    }
    // Of several recordings in a tar nobody knows which one is meant.
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(trace.len() as u64);
    tar.append_data(&mut header, "trace.jsonl", &trace[..]).unwrap();
    let tar = gzip(&tar.into_inner().unwrap());
    write("all traces.tar.gz", &tar);
    let output = olmkit(directory.path(), &["doctor", "--from", "all traces.tar.gz", "--at", "45000"]);
    let help =
        "unpack it with `tar -xf 'all traces.tar.gz'`, and pass --at with a recorded trace (.jsonl) from it";
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains(help), "{}", said(&output));
    let output = olmkit(directory.path(), &["doctor", "--from", "all traces.tar.gz"]);
    let help = "recorded traces (1 file): traces cannot be combined: unpack them with `tar -xf`, and pass one with --from";
    assert!(said(&output).contains(help), "{}", said(&output));
}

#[test]
fn a_moment_before_a_recording_is_refused_with_those_that_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces");
    fs::copy(root.join("18b-channel-not-found.jsonl"), directory.path().join("trace.jsonl")).unwrap();
    for words in [&["--at", "-5"][..], &["--at=-5"]] {
        let output = olmkit(directory.path(), &[&["doctor", "--from", "trace.jsonl"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let told = said(&output);
        assert!(
            told.contains("a recorded trace has no moment -5 ms: the events of `trace.jsonl` are at 94 to "),
            "{told}"
        );
        assert!(told.contains("pass --at 94 to --at "), "{told}");
    }
}

/// What the doctor says of a file, and the memory that it takes at most, in MiB.
#[cfg(target_os = "linux")]
fn measured(directory: &Path, name: &str) -> (u64, Output) {
    let mut olmkit = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(["operator", "doctor", "--from", name])
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The kernel keeps the peak while the process is there, and it only grows.
    let (status, mut peak) = (format!("/proc/{}/status", olmkit.id()), 0);
    while olmkit.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
        peak = line.map_or(peak, |kibibytes| kibibytes.trim().parse::<u64>().unwrap());
        std::thread::park_timeout(Duration::from_millis(2));
    }
    let output = olmkit.wait_with_output().unwrap();
    (peak >> 10, output)
}

/// A compressed list is read like a plain one, and no file in an archive is larger than is said.
#[test]
#[cfg(target_os = "linux")]
fn a_compressed_list_takes_no_more_memory_than_a_plain_one() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    let pod = |at| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}")}});
    let items: Vec<Value> = installing().into_iter().chain((0..60_000).map(pod)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    write("list.json", list.as_bytes());
    write("list.json.gz", &gzip(list.as_bytes()));
    let (plain, packed) =
        (measured(directory.path(), "list.json"), measured(directory.path(), "list.json.gz"));
    assert_eq!(packed.1.stdout, plain.1.stdout);
    assert!(packed.0 < plain.0 + 20, "{} and {} MiB", packed.0, plain.0);

    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, size: u64, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(size);
        tar.append_data(&mut header, name, bytes).unwrap();
    };
    let few = json!({"apiVersion": "v1", "kind": "List", "items": installing()}).to_string();
    add("few.json", few.len() as u64, few.as_bytes());
    add("large.yaml", 129 << 20, b"a: 1\n");
    write("large.tar.gz", &gzip(&tar.into_inner().unwrap()));
    let (_, output) = measured(directory.path(), "large.tar.gz");
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
    assert!(told.contains("large.yaml: it is larger than 128 MiB"), "{told}");
}

/// What is refused for its size is never held in memory as a whole.
#[test]
#[cfg(target_os = "linux")]
fn what_is_too_large_after_decompression_takes_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}).to_string();
    let text = pod.repeat((1 << 20) / pod.len());
    let write = |name: &str, says_length: bool| {
        let file = fs::File::create(directory.path().join(name)).unwrap();
        let mut encoder = zstd::Encoder::new(file, 1).unwrap();
        if says_length {
            encoder.set_pledged_src_size(Some(600 * text.len() as u64)).unwrap();
            encoder.include_contentsize(true).unwrap();
        }
        encoder.long_distance_matching(true).unwrap();
        encoder.window_log(27).unwrap();
        let mut number = 1_u64;
        for _ in 0..600 {
            encoder.write_all(text.as_bytes()).unwrap();
            // Without something that does not repeat, it would be refused for what it unpacks to.
            for _ in 0..if says_length { 0 } else { 2_000 } {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                writeln!(encoder, "{number:016x}").unwrap();
            }
        }
        encoder.finish().unwrap();
    };
    write("says.zst", true);
    write("silent.zst", false);
    for (name, mebibytes) in [("says.zst", 200), ("silent.zst", 350)] {
        let (peak, output) = measured(directory.path(), name);
        assert!(peak < mebibytes, "{name}: {peak} MiB");
        assert_eq!(output.status.code(), Some(3), "{name}: {}", said(&output));
        let expected = format!(
            "error: cannot read `{name}`\n  caused by: it is larger than 128 MiB when it is decompressed\n  help: "
        );
        assert!(said(&output).contains(&expected), "{name}: {}", said(&output));
    }
    // A larger window is refused before it is made.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(30).unwrap();
    encoder.write_all(text.as_bytes()).unwrap();
    fs::write(directory.path().join("window.zst"), encoder.finish().unwrap()).unwrap();
    let output = olmkit(directory.path(), &["doctor", "--from", "window.zst"]);
    assert!(said(&output).contains("decompress it with `zstd -d --long=31`"), "{}", said(&output));
}

#[test]
fn archives_that_are_not_read_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (start, name, format, command) in [
        (&b"\xfd7zXZ\0..."[..], "a.tar.xz", "xz", "`xz -dc a.tar.xz | olmkit operator doctor --from -`"),
        (b"BZh91AY&SY", "a b.bz2", "bzip2", "`bzip2 -dc 'a b.bz2' | olmkit operator doctor --from -`"),
        (b"PK\x03\x04....", "a.zip", "zip", "`unzip -d unpacked a.zip`, then pass `--from unpacked`"),
        (b"7z\xbc\xaf\x27\x1c..", "a.7z", "7z", "`7z x -ounpacked a.7z`, then pass `--from unpacked`"),
    ] {
        fs::write(directory.path().join(name), start).unwrap();
        let output = olmkit(directory.path(), &["doctor", "--from", name]);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(
            told.contains(&format!("`{name}` is a {format} archive")) && told.contains(command),
            "{told}"
        );
        let output = piped(directory.path(), &["--from", "-"], start);
        assert!(said(&output).contains(&format!("is a {format} archive")), "{}", said(&output));
    }
}

#[test]
fn names_that_a_shell_would_run_are_quoted_in_every_command() {
    let evil = "x'; touch /tmp/y; echo $(id) `id` '";
    let requirement = |kind: &str, message: &str| {
        let mut objects = installing();
        objects[3]["status"] = json!({
            "phase": "Pending", "reason": "RequirementsNotMet", "lastTransitionTime": "2026-01-01T00:00:04Z",
            "requirementStatus": [{"kind": kind, "name": evil, "status": "NotPresent", "message": message}],
        });
        objects[2]["status"]["connectionState"]["lastConnect"] = json!("2026-01-01T00:20:00Z");
        objects
    };
    let mut source = installing();
    source[0]["spec"]["source"] = evil.into();
    source[0]["spec"]["sourceNamespace"] = evil.into();
    source[0]["status"] = json!({"conditions": [{
        "type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable",
        "message": "no operators found from catalog x in namespace y referenced by subscription demo",
    }]});
    source[2]["status"]["connectionState"]["lastConnect"] = json!("2026-01-01T00:20:00Z");
    let mut account = installing();
    account[1]["spec"]["serviceAccountName"] = evil.into();
    account[1]["status"] = json!({"conditions": [{"type": "OperatorGroupServiceAccount", "status": "True", "reason": "ServiceAccountNotFound"}]});
    let mut container = installing();
    container[5]["status"]["containerStatuses"] = json!([{
        "name": evil, "ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1}},
    }]);
    for objects in [
        requirement("CustomResourceDefinition", "CRD is not present"),
        requirement("APIService", "APIService is not available"),
        source,
        account,
        container,
    ] {
        let found = diagnosis(&objects);
        let causes = found["causes"].as_array().unwrap();
        assert!(!causes.is_empty(), "{found:#}");
        for command in causes.iter().flat_map(|cause| cause["repair"].as_array().unwrap()) {
            let command = command["command"].as_str().unwrap();
            // Whatever a shell would make of the name, it is one of the words.
            let words = shell_words(command);
            assert!(
                !words.iter().any(|word| word == "touch" || word.contains("/tmp/y") && !word.contains(evil)),
                "{command}"
            );
        }
    }
}

/// The words of a command line as a shell has them: quotes are taken away, and what is in them stays together.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = line.chars();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => words.last_mut().unwrap().extend(letters.next()),
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    assert!(!is_quoted, "{line}");
    words
}
