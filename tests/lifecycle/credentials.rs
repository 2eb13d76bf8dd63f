//! Who asks: credential plugins that never end, files of the kubeconfig that never end, and what is never printed of them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::dead::{Answer, SOON, StandIn, said};
use crate::signal;

/// What no output may have.
const SECRET: &str = "s3cret";

/// A server that has nothing.
fn empty() -> StandIn {
    StandIn::start(|_| Answer::Json(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []})))
}

/// A directory with a kubeconfig for a port, and what its cluster and its user have besides.
fn place(port: u16, cluster: Value, user: Value) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let mut server = json!({"server": format!("http://127.0.0.1:{port}")});
    server.as_object_mut().unwrap().extend(cluster.as_object().unwrap().clone());
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": server}], "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    fs::write(&path, config.to_string()).unwrap();
    (dir, path)
}

/// A plugin as a kubeconfig names it: a script beside the kubeconfig that writes its process id to `pid` first.
fn plugin(dir: &Path, script: &str) {
    let path = dir.join("plugin");
    let script = format!("#!/bin/sh\necho $$ > '{}/pid'\n{script}\n", dir.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn exec() -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "IfAvailable",
        "args": [format!("--password={SECRET}")], "env": [{"name": "PASSWORD", "value": SECRET}],
        "installHint": "install it from the shelf",
    }})
}

fn olmkit(config: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(words).env("KUBECONFIG", config).env_remove("KUBERNETES_SERVICE_HOST");
    command.env("HOME", config.parent().unwrap()).current_dir(config.parent().unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The output of a command, which must end soon.
fn ended(mut command: Command) -> Output {
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            // What it has started may hold its streams open.
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "{what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn pid(dir: &Path) -> Option<u32> {
    fs::read_to_string(dir.join("pid")).ok()?.trim().parse().ok()
}

/// Whether a process is over: gone, or waiting for its parent to notice.
fn is_over(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.is_empty() || state.contains(") Z ")
}

#[test]
fn a_credential_plugin_that_never_ends_is_ended_with_the_timeout() {
    let server = empty();
    for words in
        [&["operator", "list"][..], &["source", "list"], &["olm", "status"], &["operator", "upgrade", "x"]]
    {
        let (dir, config) = place(server.port, json!({}), exec());
        plugin(dir.path(), "exec sleep 600");
        let output = ended(olmkit(&config, &[words, &["--timeout", "1s"]].concat()));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(4), "{words:?}: {told}");
        let first = format!(
            "error: timed out after 1 s: the credential plugin `{}` of the kubeconfig did not finish\n",
            dir.path().join("./plugin").display()
        );
        assert!(told.starts_with(&first) && !told.contains(SECRET), "{words:?}: {told}");
        until("the plugin still runs", || pid(dir.path()).is_none_or(is_over));
    }
    assert!(server.paths().is_empty(), "nobody was asked without credentials");
}

#[test]
fn ctrl_c_ends_a_credential_plugin() {
    let server = empty();
    let (dir, config) = place(server.port, json!({}), exec());
    plugin(dir.path(), "exec sleep 600");
    let child = olmkit(&config, &["operator", "list"]).spawn().unwrap();
    until("the plugin is not called", || pid(dir.path()).is_some());
    signal::send("INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("nothing was changed"), "{}", said(&output));
    until("the plugin still runs", || pid(dir.path()).is_none_or(is_over));
}

#[test]
fn a_shell_that_completes_names_does_not_wait_for_a_credential_plugin() {
    let server = empty();
    let (dir, config) = place(server.port, json!({}), exec());
    plugin(dir.path(), "echo 'Please visit a page' >&2; exec sleep 600");
    let mut command = olmkit(&config, &["--", "olmkit", "operator", "list", "-n", ""]);
    command.env("OLMKIT_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "4");
    let output = ended(command);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(output.stderr.is_empty(), "{}", said(&output));
    until("the plugin still runs", || pid(dir.path()).is_none_or(is_over));
}

#[test]
fn a_token_that_has_expired_is_renewed_and_that_ends_with_the_timeout_too() {
    let server = empty();
    let (dir, config) = place(server.port, json!({}), exec());
    let status = |token: &str| {
        json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": token, "expirationTimestamp": "2020-01-01T00:00:00Z"},
        })
    };
    let (first, second) = (status("first-t0ken"), status("second-t0ken"));
    let script = format!("if [ -e again ]; then echo '{second}'; else touch again; echo '{first}'; fi");
    plugin(dir.path(), &script);
    let output = ended(olmkit(&config, &["operator", "list", "-v"]));
    assert!(output.status.success(), "{}", said(&output));
    let heads = server.heads();
    let sent =
        |token: &str| heads.iter().any(|head| head.contains(&format!("authorization: Bearer {token}\r\n")));
    assert!(sent("second-t0ken"), "{heads:?}");
    assert!(!said(&output).contains("t0ken"), "{}", said(&output));
    // The first call answers, and the next one never does.
    fs::remove_file(dir.path().join("again")).unwrap();
    plugin(
        dir.path(),
        &format!("if [ -e again ]; then exec sleep 600; else touch again; echo '{first}'; fi"),
    );
    let output = ended(olmkit(&config, &["operator", "list", "--timeout", "1s"]));
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("/./plugin` of the kubeconfig did not finish"), "{}", said(&output));
    until("the plugin still runs", || pid(dir.path()).is_none_or(is_over));
}

#[test]
fn a_credential_plugin_that_fails_is_named_without_its_secrets() {
    let server = empty();
    let call = |script: &str| {
        let (dir, config) = place(server.port, json!({}), exec());
        plugin(dir.path(), script);
        let output = ended(olmkit(&config, &["operator", "list", "-v"]));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(3), "{script}: {told}");
        assert!(!told.contains(SECRET), "{script}: {told}");
        assert!(told.contains("./plugin` of the kubeconfig "), "{script}: {told}");
        told
    };
    let told = call(&format!("echo '{{\"token\": \"{SECRET}\"}}'; exit 7"));
    assert!(told.contains(" failed: exit status: 7"), "{told}");
    let told = call(&format!("echo '{SECRET}: [unclosed'"));
    assert!(told.contains("did not print an ExecCredential"), "{told}");
    let told = call(&format!("echo '{{\"status\": {{\"other\": \"{SECRET}\"}}}}'"));
    assert!(told.contains("printed no credentials"), "{told}");
    call(&format!("echo '{{\"status\": {{\"token\": \"{SECRET}\\u000a\"}}}}'"));
    call(&format!("while :; do echo {SECRET}{SECRET}{SECRET}{SECRET}{SECRET}{SECRET}{SECRET}{SECRET}; done"));
    // One that is not there is named with what the kubeconfig says of it.
    let (_dir, config) = place(server.port, json!({}), exec());
    let told = said(&ended(olmkit(&config, &["operator", "list"])));
    assert!(told.contains("cannot be run") && told.contains("install it from the shelf"), "{told}");
    assert!(!told.contains(SECRET), "{told}");
}

#[test]
fn an_invalid_kubeconfig_is_told_without_its_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    for text in [
        format!(
            "apiVersion: v1\nusers:\n- name: u\n  user:\n    token: {SECRET}\n    exec: {SECRET}\n  x: [\n"
        ),
        format!("users: {SECRET}\n"),
        format!("users:\n- user: {{token: [{SECRET}]}}\n"),
    ] {
        fs::write(&config, text).unwrap();
        let output = ended(olmkit(&config, &["operator", "list", "-v"]));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains(&format!("`{}` is not a kubeconfig", config.display())), "{told}");
        assert!(!told.contains(SECRET), "{told}");
    }
}

/// A path that would be read for ever: a pipe that nobody writes to, a device, a directory.
fn endless(dir: &Path) -> [String; 3] {
    let pipe = dir.join("pipe");
    if !pipe.exists() {
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    }
    [pipe.display().to_string(), "/dev/zero".to_owned(), dir.display().to_string()]
}

#[test]
fn a_kubeconfig_that_has_no_end_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    for path in endless(dir.path()) {
        for words in [&["--kubeconfig", &path][..], &[]] {
            for verb in [&["operator", "list"][..], &["source", "list"], &["olm", "status"]] {
                let output = ended(olmkit(Path::new(&path), &[verb, words, &["--timeout", "1s"]].concat()));
                let told = said(&output);
                assert!(matches!(output.status.code(), Some(3 | 4)), "{path}: {told}");
                assert!(told.contains(&format!("`{path}`")), "{path}: {told}");
            }
        }
        let mut command = olmkit(Path::new(&path), &["--", "olmkit", "operator", "list", "--context", ""]);
        command.env("OLMKIT_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "4");
        assert!(ended(command).stdout.is_empty());
    }
}

#[test]
fn a_kubeconfig_comes_from_a_pipe_that_somebody_writes_to() {
    let server = empty();
    let (dir, config) = place(server.port, json!({}), json!({}));
    let [pipe, ..] = endless(dir.path());
    let text = fs::read(&config).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(&text).unwrap()
    });
    let output = ended(olmkit(Path::new("/dev/null"), &["operator", "list", "--kubeconfig", &pipe]));
    assert!(output.status.success(), "{}", said(&output));
    writer.join().unwrap();
}

#[test]
fn files_that_a_kubeconfig_names_and_that_have_no_end_are_refused() {
    let server = empty();
    let dir = tempfile::tempdir().unwrap();
    for path in endless(dir.path()) {
        for (cluster, user) in [
            (json!({"certificate-authority": path}), json!({})),
            (json!({}), json!({"tokenFile": path})),
            (json!({}), json!({"client-certificate": path, "client-key": path})),
            (json!({}), json!({"client-certificate-data": "eA==", "client-key": path})),
        ] {
            let (_dir, config) = place(server.port, cluster, user);
            let output = ended(olmkit(&config, &["operator", "list", "--timeout", "1s"]));
            let told = said(&output);
            assert!(matches!(output.status.code(), Some(3 | 4)), "{path}: {told}");
            assert!(told.contains(&format!("`{path}`")), "{path}: {told}");
        }
    }
    assert!(server.paths().is_empty());
}

#[test]
fn the_token_of_a_file_is_sent() {
    let server = empty();
    let (dir, config) = place(server.port, json!({}), json!({"tokenFile": "token"}));
    fs::write(dir.path().join("token"), format!("{SECRET}\n")).unwrap();
    let output = ended(olmkit(&config, &["operator", "list", "-v"]));
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains(SECRET), "{}", said(&output));
    let heads = server.heads();
    assert!(
        heads.iter().all(|head| head.contains(&format!("authorization: Bearer {SECRET}\r\n"))),
        "{heads:?}"
    );
}

#[test]
fn files_of_flags_that_have_no_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let install = ["operator", "install", "demo", "-n", "ns"];
    for path in endless(dir.path()) {
        let creds = format!("@{path}");
        let path = path.as_str();
        let all: [&[&str]; 14] = [
            &["operator", "list", "--simulate", path],
            &["operator", "upgrade", "demo", "--simulate", path],
            &["operator", "doctor", "--from", path, "--timeout", "1s"],
            &["operator", "doctor", "--from", path, "--from", path, "--timeout", "1s"],
            &["operator", "plan", "demo", "--policy", path],
            &["operator", "test", "demo", "--samples", path],
            &["operator", "test", "demo", "--against", path],
            &["source", "add", "x", "quay.io/x/y", "-n", "olm", "--pod-config", path],
            &["operator", "list", "--authfile", path],
            &["operator", "list", "--creds", &creds],
            &["olm", "install", "--manifests", path],
            &[install[0], install[1], install[2], install[3], install[4], "--config", path],
            &[
                install[0],
                install[1],
                install[2],
                install[3],
                install[4],
                "--simulate",
                "new.json",
                "--catalog-from",
                path,
            ],
            &[install[0], install[1], "--bundle", path, install[3], install[4], "--simulate", "new.json"],
        ];
        for words in all {
            let output = ended(olmkit(&dir.path().join("config"), words));
            assert!(matches!(output.status.code(), Some(1..=4)), "{words:?}: {}", said(&output));
            assert!(said(&output).contains(path), "{words:?}: {}", said(&output));
        }
    }
}

/// What a proxy was asked for: the first line of each request.
fn proxy() -> StandIn {
    StandIn::start(|_| Answer::Closed)
}

#[test]
fn a_cluster_is_reached_through_the_proxy_of_the_environment_unless_no_proxy_names_it() {
    let (proxy, server) = (proxy(), empty());
    let (_dir, config) = place(server.port, json!({}), json!({}));
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let asked = |variables: &[(&str, &str)]| {
        let mut command = olmkit(&config, &["operator", "list", "--timeout", "2s"]);
        for name in
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY"]
        {
            command.env_remove(name);
        }
        let output = ended({
            command.envs(variables.iter().copied());
            command
        });
        (output.status.success(), !proxy.paths().is_empty(), said(&output))
    };
    let (is_reached, is_proxied, told) = asked(&[]);
    assert!(is_reached && !is_proxied, "{told}");
    for no_proxy in ["127.0.0.1", "127.0.0.0/8", "*"] {
        let (is_reached, is_proxied, told) = asked(&[("HTTPS_PROXY", &address), ("NO_PROXY", no_proxy)]);
        assert!(is_reached && !is_proxied, "{no_proxy}: {told}");
    }
    // Another host than the cluster's is named, so the proxy is asked; it is not that of the proxy that counts.
    let (_, is_proxied, told) =
        asked(&[("HTTP_PROXY", &address), ("HTTPS_PROXY", &address), ("NO_PROXY", "example.com")]);
    assert!(is_proxied, "{told}");
}

#[test]
fn the_proxy_of_a_kubeconfig_is_asked_and_its_password_is_not_printed() {
    let (proxy, server) = (proxy(), empty());
    let address = format!("http://me:{SECRET}@127.0.0.1:{}", proxy.port);
    let (_dir, config) = place(server.port, json!({"proxy-url": address}), json!({}));
    let output = ended(olmkit(&config, &["operator", "list", "--timeout", "2s", "-v"]));
    assert!(!output.status.success() && !said(&output).contains(SECRET), "{}", said(&output));
    let heads = proxy.heads();
    assert!(heads[0].starts_with(&format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", server.port)), "{heads:?}");
    assert!(heads[0].to_lowercase().contains("proxy-authorization: basic "), "{heads:?}");
}

#[test]
fn of_several_kubeconfigs_those_that_exist_are_merged_and_the_first_one_wins() {
    let (first, second) = (empty(), empty());
    let (dir, one) = place(first.port, json!({}), json!({}));
    let (_other, two) = place(second.port, json!({}), json!({}));
    let text = fs::read_to_string(&two).unwrap();
    let other = text.replace("\"c\"", "\"d\"").replace("\"u\"", "\"v\"");
    fs::write(&two, other).unwrap();
    let missing = dir.path().join("missing");
    let paths = std::env::join_paths([Path::new(""), &missing, &one, Path::new("/dev/null"), &two]).unwrap();
    let list = |words: &[&str]| ended(olmkit(&one, words)).status.code();
    let run = |words: &[&str]| {
        let mut command = olmkit(&one, words);
        command.env("KUBECONFIG", &paths);
        ended(command)
    };
    assert_eq!(list(&["operator", "list"]), Some(0));
    first.paths();
    // The current context is that of the first; that of the second can be named.
    let output = run(&["operator", "list"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!first.paths().is_empty() && second.paths().is_empty());
    let output = run(&["operator", "list", "--context", "d"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(first.paths().is_empty() && !second.paths().is_empty());
    let output = run(&["operator", "list", "--context", "nope"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    // Where none exists, the first one is named.
    let mut command = olmkit(&one, &["operator", "list"]);
    let output = ended({
        command.env("KUBECONFIG", &missing);
        command
    });
    assert!(said(&output).contains(&format!("`{}`", missing.display())), "{}", said(&output));
}
