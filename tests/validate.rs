//! `bundle validate` as others meet it: on bundles that were made to hurt, by programs that read what it prints, and with
//! checks of the user's own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// What is optimised needs less than a second for each; this is for what is not, on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(30);

/// A sound bundle in a directory of its own.
fn bundle() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for part in ["manifests/echo-operator.yaml", "metadata/annotations.yaml"] {
        let to = dir.path().join("bundle").join(part);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(Path::new("tests/cli/validate.in/good").join(part), to).unwrap();
    }
    dir
}

fn validate(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command
        .args(["bundle", "validate", "bundle"])
        .args(arguments)
        .current_dir(dir)
        .env_remove("GITHUB_ACTIONS");
    command
}

/// Runs a command, which has to end in time.
#[track_caller]
fn run(mut command: Command) -> Output {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(started.elapsed() < DEADLINE, "took {:?}", started.elapsed());
    output
}

/// Puts something into a sound bundle: the finding that comes of it says `expected`, and no format passes on what a terminal
/// would obey.
#[track_caller]
fn hurts(put: impl FnOnce(&Path), code: &str, expected: &str) {
    let dir = bundle();
    put(&dir.path().join("bundle/manifests"));
    let print = |format: &str| {
        let output = run(validate(dir.path(), &["--suite", "all", "--output", format]));
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert!(!out.contains(['\x1b', '\0', '\x07']), "{format} carries what a terminal obeys");
        out
    };
    let json: Value = serde_json::from_str(&print("json")).unwrap();
    let mut findings = json["findings"].as_array().unwrap().iter();
    let found =
        findings.any(|found| found["code"] == code && found["message"].as_str().unwrap().contains(expected));
    assert!(found, "no {code} with {expected:?}: {json:#}");
    if json.to_string().contains("\\u001b") {
        for format in ["text", "sarif", "junit", "github"] {
            print(format);
        }
    }
}

fn write(name: &'static str, content: impl Into<Vec<u8>>) -> impl FnOnce(&Path) {
    let content = content.into();
    move |manifests| fs::write(manifests.join(name), content).unwrap()
}

#[test]
fn what_is_no_plain_file() {
    hurts(
        |manifests| {
            let pipe = manifests.join("pipe.yaml");
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        },
        "file-unreadable",
        "it is not a plain file",
    );
    hurts(
        |manifests| symlink("l.yaml", manifests.join("l.yaml")).unwrap(),
        "file-unreadable",
        "a symbolic link",
    );
    hurts(|manifests| symlink("..", manifests.join("up")).unwrap(), "file-unreadable", "a symbolic link");
    hurts(
        |manifests| {
            fs::create_dir(manifests.join("crd.yaml")).unwrap();
            fs::write(manifests.join("crd.yaml/a.yaml"), "a: b\n").unwrap();
        },
        "manifests-subdirectory",
        "`manifests/crd.yaml` is a directory",
    );
}

#[test]
fn a_file_that_may_not_be_read() {
    let dir = bundle();
    let file = dir.path().join("bundle/manifests/secret.yaml");
    fs::write(&file, "kind: Secret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
    let mut command = validate(dir.path(), &[]);
    if fs::read(&file).is_ok() {
        // Nothing keeps root from reading; somebody else is asked to.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = dir.path().join("olmkit");
        fs::copy(env!("CARGO_BIN_EXE_olmkit"), &program).unwrap();
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command.args(["bundle", "validate", "bundle"]).current_dir(dir.path());
    }
    let output = run(command);
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("error[file-unreadable]") && out.contains("ermission denied"), "{out}");
}

#[test]
fn what_is_no_text() {
    hurts(write("a.yaml", b"a: \xff\n"), "file-unreadable", "byte 3 of 5");
    hurts(write("a.yaml", "a: b\0c\n"), "yaml-syntax", "U+0000");
    let escapes = "kind: \"\\e[31mX\\a\"\napiVersion: v1\nmetadata: {name: \"\\e]0;t\\a\"}\n\"\\e[2J\": 1\n";
    hurts(write("a.yaml", escapes), "manifest-kind-unsupported", "`\x1b[31mX\x07`");
    hurts(
        |manifests| fs::write(manifests.join("\x1b[2J.yaml"), "a: b: c\n").unwrap(),
        "yaml-syntax",
        "mapping",
    );
}

#[test]
fn what_has_no_end() {
    hurts(
        |manifests| fs::File::create(manifests.join("a.yaml")).unwrap().set_len(129 << 20).unwrap(),
        "file-unreadable",
        "larger than 128 MiB",
    );
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    hurts(write("a.yaml", bomb), "yaml-syntax", "aliases multiply");
    hurts(write("a.yaml", "[".repeat(1_000_000)), "yaml-syntax", "");
    hurts(write("a.yaml", "- ".repeat(100_000) + "x\n"), "yaml-syntax", "");
    hurts(
        write("a.yaml", (0..300).map(|depth| " ".repeat(depth) + "a:\n").collect::<String>()),
        "yaml-syntax",
        "",
    );
    hurts(write("a.yaml", "kind: Widget\n".repeat(100_000)), "manifest-kind-unsupported", "Widget");
}

/// What the schema of SARIF 2.1.0 asks for, as far as it concerns what is printed here.
#[test]
fn sarif_has_the_shape_that_readers_want() {
    let dir = bundle();
    fs::write(dir.path().join("bundle/manifests/a b.yaml"), "a: 1\na: 2\n").unwrap();
    let output = run(validate(dir.path(), &["--suite", "all", "--output", "sarif"]));
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string() && driver["version"].is_string());
    assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()));
    let rules = driver["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(rules.len() > 3 && results.len() > 3);
    let is_level = |level: &Value| matches!(level.as_str(), Some("none" | "note" | "warning" | "error"));
    let has_text = |message: &Value| message["text"].as_str().is_some_and(|text| !text.is_empty());
    for rule in rules {
        assert!(has_text(&rule["shortDescription"]) && has_text(&rule["fullDescription"]), "{rule}");
        assert!(has_text(&rule["help"]) && rule["help"]["markdown"].is_string(), "{rule}");
        assert!(is_level(&rule["defaultConfiguration"]["level"]), "{rule}");
    }
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(result["ruleId"], rules[index]["id"]);
        assert!(has_text(&result["message"]) && is_level(&result["level"]), "{result}");
        let related = result["relatedLocations"].as_array().into_iter().flatten();
        for location in result["locations"].as_array().unwrap().iter().chain(related) {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.is_empty() && !uri.contains([' ', '\\']), "{uri}");
            if let Some(region) = place["region"].as_object() {
                let number = |key: &str| region[key].as_u64().unwrap();
                assert!(number("startLine") >= 1 && number("startColumn") >= 1);
                assert!(number("endColumn") >= number("startColumn"), "{result}");
            }
        }
    }
    assert!(
        results.iter().any(|result| result["relatedLocations"].is_array()),
        "two equal keys stand at two places"
    );
}

/// The program that docs/validate.md shows, and what becomes of its answer.
#[test]
fn a_flag_for_one_suite_asks_for_it() {
    let dir = bundle();
    let budget = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: x}\n";
    fs::write(dir.path().join("bundle/manifests/budget.yaml"), budget).unwrap();
    let check = |arguments: &[&str]| {
        let output = run(validate(dir.path(), arguments));
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (exit, out) = check(&["--kubernetes-version", "1.25"]);
    assert!(exit == Some(1) && out.contains("policy/v1beta1"), "{out}");
    assert_eq!(check(&["--kubernetes-version", "1"]).0, Some(2));
}

#[test]
fn a_check_that_does_not_end_is_ended() {
    let dir = bundle();
    let checks = [
        ("exec sleep 60", 4, "did not end"),
        ("exec yes", 3, "printed more than 8 MiB"),
        ("exec sleep 60 >&-", 4, "did not end"),
    ];
    for (script, code, why) in checks {
        let program = dir.path().join("check");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let output = run(validate(dir.path(), &["--check", "./check", "--timeout", "1"]));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {said}");
        assert!(said.contains(why), "{script}: {said}");
    }
}

#[test]
fn the_check_in_the_documentation_works() {
    let page = fs::read_to_string("docs/validate.md").unwrap();
    let script = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = bundle();
    let program = dir.path().join("check");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let check = |arguments: &[&str]| {
        let output = run(validate(dir.path(), &[&["--check", "./check"], arguments].concat()));
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (exit, out) = check(&[]);
    assert_eq!(exit, Some(0), "{out}");
    fs::remove_file(dir.path().join("bundle/metadata/annotations.yaml")).unwrap();
    fs::write(
        dir.path().join("bundle/manifests/route.yaml"),
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
    )
    .unwrap();
    let (exit, out) = check(&["--output", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    let found = json["findings"].as_array().unwrap().iter().find(|found| found["code"] == "custom-check");
    assert!(found.unwrap()["message"].as_str().unwrap().contains("route.yaml"), "{out}");
    assert_eq!(exit, Some(1));
    let (exit, _) = check(&["--no-such-flag"]);
    assert_eq!(exit, Some(2));
    fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
    let (exit, _) = check(&[]);
    assert_eq!(exit, Some(3));
}

#[test]
fn the_directory_above_bundles_is_not_one_and_names_them() {
    let dir = bundle();
    let at = dir.path();
    let said = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.args(["bundle", "validate", path]).current_dir(at).env_remove("GITHUB_ACTIONS");
        String::from_utf8(run(command).stderr).unwrap()
    };
    assert_eq!(said("."), "next: did you mean `olmkit bundle validate ./bundle`?\n");
    fs::create_dir(at.join("all")).unwrap();
    fs::rename(at.join("bundle"), at.join("all/0.1.0")).unwrap();
    fs::create_dir_all(at.join("all/0.2.0")).unwrap();
    for part in ["manifests/echo-operator.yaml", "metadata/annotations.yaml"] {
        let to = at.join("all/0.2.0").join(part);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(at.join("all/0.1.0").join(part), to).unwrap();
    }
    assert_eq!(said("all"), "next: did you mean `olmkit bundle validate all/*`?\n");
    assert!(said("all/0.1.0").starts_with("next: run `olmkit bundle build all/0.1.0 --to "));
}
