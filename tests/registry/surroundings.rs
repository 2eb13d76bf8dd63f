//! What stands around a registry on a user's machine: proxies, files and helpers with credentials, other processes.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;

use libtest_mimic::Trial;
use olmkit::image::Root;

use crate::command::{check, command, run, says_nothing, text, workplace};
use crate::server::{Kind, PASSWORD, Registry, USER, access, free_port, image, noise, output, quick, sha256};
use crate::support::trial;

/// A name that no resolver knows: only a proxy can lead there.
const NAME: &str = "registry.test";
/// What docker and podman write for the user: "alice:correct-horse-battery".
const ENTRY: &str = "YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";

pub(crate) fn trials() -> Vec<Trial> {
    let registry = ["docker-registry"];
    vec![
        trial("plain_http_goes_through_the_proxy", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            let proxy = Forward::start(&registry.host);
            let reference = format!("{NAME}/team/echo:v1");
            let push = ["bundle", "push", "bundle", &reference, "--plain-http", NAME];
            check(&run_with(dir.path(), &push, &[("HTTP_PROXY", &proxy.url())]), 0);
            assert_eq!(registry.tags("team/echo"), ["v1"]);
            assert!(
                proxy.seen().iter().all(|line| line.contains("http://registry.test/v2/")),
                "{:?}",
                proxy.seen()
            );
            Ok(())
        }),
        trial("https_goes_through_the_proxy_unread", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Tls));
            let proxy = Forward::start(&registry.host);
            let reference = format!("{NAME}/team/echo:v1");
            let certificate = registry.certificate();
            let push = ["bundle", "push", "bundle", &reference, "--ca-file", certificate.to_str().unwrap()];
            check(&run_with(dir.path(), &push, &[("HTTPS_PROXY", &proxy.url())]), 0);
            assert_eq!(registry.tags("team/echo"), ["v1"]);
            assert!(
                proxy.seen().iter().all(|line| line.starts_with("CONNECT registry.test:443 ")),
                "{:?}",
                proxy.seen()
            );
            Ok(())
        }),
        trial("no_proxy_is_honoured_and_this_machine_needs_none", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
            let nobody = format!("http://127.0.0.1:{}", free_port());
            let proxy = ("HTTP_PROXY", nobody.as_str());
            // The same registry under an address that is not taken for this machine's.
            let elsewhere = registry.host.replace("127.0.0.1", "0.0.0.0");
            let reference = format!("{elsewhere}/team/echo:v1");
            let push = ["bundle", "push", "bundle", &reference, "--plain-http", &elsewhere];
            let refused = run_with(dir.path(), &push, &[proxy]);
            check(&refused, 3);
            assert!(text(&refused.stderr).contains("cannot reach"), "{}", text(&refused.stderr));
            check(&run_with(dir.path(), &push, &[proxy, ("NO_PROXY", "0.0.0.0")]), 0);
            let reference = format!("{}/team/echo:v2", registry.host);
            check(&run_with(dir.path(), &["bundle", "push", "bundle", &reference], &[proxy]), 0);
            assert_eq!(registry.tags("team/echo"), ["v1", "v2"]);
            Ok(())
        }),
        trial("credentials_are_found_where_others_keep_them", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Basic));
            let host = &registry.host;
            let auths = format!(r#"{{"auths":{{"{host}":{{"auth":"{ENTRY}"}}}}}}"#);
            let in_part =
                format!(r#"{{"auths":{{"{host}":{{"auth":"eDp5"}},"{host}/team":{{"auth":"{ENTRY}"}}}}}}"#);
            let store = r#"{"auths":{},"credsStore":"test"}"#;
            let helpers = format!(r#"{{"credHelpers":{{"{host}":"test"}}}}"#);
            helper(
                dir.path(),
                &format!(r#"{{"ServerURL":"{host}","Username":"{USER}","Secret":"{PASSWORD}"}}"#),
                0,
            );
            let ways = [
                ("docker's own", "DOCKER_CONFIG", "config.json", auths.as_str()),
                ("a part of a registry", "DOCKER_CONFIG", "config.json", &in_part),
                ("docker's store", "DOCKER_CONFIG", "config.json", store),
                ("docker's helpers", "DOCKER_CONFIG", "config.json", &helpers),
                ("podman's", "XDG_RUNTIME_DIR", "containers/auth.json", &auths),
                ("podman's, kept", "XDG_CONFIG_HOME", "containers/auth.json", &auths),
                ("docker's, at home", "HOME", ".docker/config.json", &auths),
            ];
            for (number, (way, variable, file, content)) in ways.into_iter().enumerate() {
                let home = dir.path().join(format!("home-{number}"));
                let file = home.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, content).unwrap();
                let reference = format!("{host}/team/echo:v{number}");
                let output = run_with(
                    dir.path(),
                    &["bundle", "push", "bundle", &reference],
                    &[(variable, home.to_str().unwrap())],
                );
                assert_eq!(output.status.code(), Some(0), "{way}: {}", text(&output.stderr));
                says_nothing(&output);
            }
            let file = dir.path().join("auth.json");
            fs::write(&file, &auths).unwrap();
            let reference = format!("{host}/team/echo:named");
            let push = ["bundle", "push", "bundle", &reference];
            check(&run_with(dir.path(), &push, &[("REGISTRY_AUTH_FILE", file.to_str().unwrap())]), 0);
            assert_eq!(registry.tags("team/echo").len(), 8);
            Ok(())
        }),
        trial("a_helper_that_fails_is_named_and_not_repeated", &registry, || {
            let (dir, registry) = (workplace(), Registry::start(Kind::Basic));
            fs::write(dir.path().join("config.json"), r#"{"credsStore":"test"}"#).unwrap();
            helper(dir.path(), PASSWORD, 1);
            let reference = format!("{}/team/echo:v1", registry.host);
            let config = [("DOCKER_CONFIG", dir.path().to_str().unwrap())];
            let output = run_with(dir.path(), &["bundle", "push", "bundle", &reference], &config);
            check(&output, 3);
            assert!(
                text(&output.stderr).contains("`docker-credential-test` failed"),
                "{}",
                text(&output.stderr)
            );
            says_nothing(&output);
            Ok(())
        }),
        trial("processes_share_a_cache_within_its_bound", &registry, processes),
        trial("skopeo_reads_behind_a_login_and_tls", &["docker-registry", "skopeo"], || {
            let dir = workplace();
            let basic = Registry::start(Kind::Basic);
            let creds = format!("{}={USER}:{PASSWORD}", basic.host);
            let reference = format!("{}/team/echo:v1", basic.host);
            let pushed = run(dir.path(), &["bundle", "push", "bundle", &reference, "--creds", &creds]);
            check(&pushed, 0);
            let login = format!("{USER}:{PASSWORD}");
            let raw = output(
                "skopeo",
                &[
                    "inspect",
                    "--raw",
                    "--tls-verify=false",
                    "--creds",
                    &login,
                    &format!("docker://{reference}"),
                ],
            );
            assert!(text(&pushed.stdout).contains(&sha256(raw.as_bytes())), "{raw}");

            let tls = Registry::start(Kind::Tls);
            let trusted = dir.path().join("certificates");
            fs::create_dir(&trusted).unwrap();
            fs::copy(tls.certificate(), trusted.join("ca.crt")).unwrap();
            let reference = format!("{}/team/echo:v1", tls.host);
            let ca = tls.certificate();
            let push = ["bundle", "push", "bundle", &reference, "--ca-file", ca.to_str().unwrap()];
            let pushed = run(dir.path(), &push);
            check(&pushed, 0);
            let from = format!("docker://{reference}");
            let raw = output("skopeo", &["inspect", "--raw", "--cert-dir", trusted.to_str().unwrap(), &from]);
            assert!(text(&pushed.stdout).contains(&sha256(raw.as_bytes())), "{raw}");
            Ok(())
        }),
    ]
}

/// Several processes copy one image through one cache that is too small for it.
fn processes() -> Result<(), libtest_mimic::Failed> {
    const LIMIT: u64 = 3 << 20;
    let (dir, registry) = (workplace(), Registry::start(Kind::Plain));
    let files: Vec<(String, Vec<u8>)> = (0..5).map(|n| (format!("f{n}"), noise(n, 1 << 20))).collect();
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let root = Root::from(image("linux/amd64", &files));
    registry.place("team/app:v1").store(&root, &access(quick())).unwrap();
    let reference = format!("{}/team/app:v1", registry.host);
    let cache = dir.path().join("cache");
    let copies: Vec<_> = (0..6)
        .map(|n| {
            let to = format!("oci:copy-{n}:v1");
            let copy = ["image", "copy", &reference, &to, "--cache-limit", "3", "--cache-dir", "cache"];
            command(dir.path(), &copy).spawn().unwrap()
        })
        .collect();
    for (n, copy) in copies.into_iter().enumerate() {
        let output = copy.wait_with_output().unwrap();
        check(&output, 0);
        assert!(text(&output.stdout).contains(&root.digest().to_string()));
        let blobs = fs::read_dir(dir.path().join(format!("copy-{n}/blobs/sha256"))).unwrap().count();
        assert_eq!(blobs, 7, "five layers, a configuration and a manifest");
    }
    let kept = fs::read_dir(cache.join("blobs/sha256"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len());
    let kept: u64 = kept.sum();
    assert!(kept > 0 && kept <= LIMIT, "{kept} bytes are kept");
    Ok(())
}

fn run_with(dir: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let path = format!("{}:/usr/bin:/bin", dir.join("programs").display());
    let mut command = command(dir, arguments);
    command.env("PATH", path).envs(variables.iter().copied());
    command.output().unwrap()
}

/// A credential helper that prints this and ends like this.
fn helper(dir: &Path, answer: &str, code: i32) {
    let programs = dir.join("programs");
    fs::create_dir_all(&programs).unwrap();
    let program = programs.join("docker-credential-test");
    fs::write(&program, format!("#!/bin/sh\ncat >/dev/null\necho '{answer}'\nexit {code}\n")).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A proxy for whose clients every host is one and the same registry.
struct Forward {
    host: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Forward {
    fn start(registry: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (registry, shared) = (registry.to_owned(), Arc::clone(&seen));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (registry, seen) = (registry.clone(), Arc::clone(&shared));
                thread::spawn(move || {
                    // A client that hangs up is done.
                    let _ = forward(client, &registry, &seen);
                });
            }
        });
        Self { host, seen }
    }

    fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    /// The first line of each connection; there is at least one.
    fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap().clone();
        assert!(!seen.is_empty());
        seen
    }
}

fn forward(mut client: TcpStream, registry: &str, seen: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    // A client may open a connection to spare, and never ask.
    if reader.read_line(&mut line)? == 0 {
        return Ok(());
    }
    seen.lock().unwrap().push(line.trim().to_owned());
    let mut server = TcpStream::connect(registry)?;
    if line.starts_with("CONNECT ") {
        let mut field = line;
        while !field.trim().is_empty() {
            field.clear();
            reader.read_line(&mut field)?;
        }
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    } else {
        // Servers take the whole address as well as its path.
        server.write_all(line.as_bytes())?;
    }
    let mut answers = server.try_clone()?;
    thread::spawn(move || io::copy(&mut answers, &mut client));
    io::copy(&mut reader, &mut server).map(drop)
}
