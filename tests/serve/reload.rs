//! Catalogs that change while they are served, and servers that end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::{DEADLINE, Server, arg};
use crate::fixture::Catalog;

const REGISTRY: &str = "api.Registry";

/// Types of HTTP/2 frames.
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// The type of the next HTTP/2 frame.
fn next_frame(stream: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut payload).unwrap();
    head[3]
}

/// Asks until the packages are these.
#[track_caller]
fn wait_for_packages(server: &Server, expected: &[&str]) {
    let end = Instant::now() + DEADLINE;
    loop {
        let found = server.client().ask(REGISTRY, "ListPackages", &json!({}));
        let names: Vec<Value> = found.unwrap().iter().map(|package| package["name"].clone()).collect();
        if names == expected {
            return;
        }
        assert!(
            Instant::now() < end,
            "{names:?} instead of {expected:?}; log: {:#?}",
            server.log.lock().unwrap()
        );
    }
}

#[test]
fn new_files_are_served_and_old_connections_asked_to_go() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let (path, index) = (catalog.path(), catalog.index());
    let server = Server::start(&[arg(&path), "--port", "0", "--index", arg(&index)]);
    let mut idle = TcpStream::connect(&server.address).unwrap();
    // HTTP/2's preface and empty settings: a client that has nothing to ask for the moment.
    idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    idle.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(next_frame(&mut idle), SETTINGS);
    catalog.put("beta", 2);
    server.wait("reloaded");
    while next_frame(&mut idle) != GOAWAY {}
    wait_for_packages(&server, &["alpha", "beta"]);
    // The compiled catalog is the new one as well.
    drop(server);
    let server = Server::start(&["--index", arg(&index), "--port", "0"]);
    wait_for_packages(&server, &["alpha", "beta"]);
}

#[test]
fn answers_under_way_end_with_the_catalog_they_began_with() {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let path = catalog.path();
    let server = Server::start(&[arg(&path), "--port", "0"]);
    let client = server.client();
    client.runtime.block_on(async {
        let mut answers = client.open(REGISTRY, "ListBundles", &json!({}), &[]).await.unwrap();
        let first = answers.message().await.unwrap().expect("there are bundles");
        // More than fits into the buffers between the two is still to come when the catalog changes.
        catalog.put("alpha", 2);
        server.wait("reloaded");
        let mut count = 1;
        while let Some(message) = tokio::time::timeout(DEADLINE, answers.message()).await.unwrap().unwrap() {
            assert_ne!(message, first);
            count += 1;
        }
        assert_eq!(count, 3000);
    });
    // The same client is on a new connection by now, and has the new catalog.
    let bundles = client.ask(REGISTRY, "ListBundles", &json!({})).unwrap();
    assert_eq!(bundles.len(), 2);
}

#[test]
fn what_cannot_be_compiled_leaves_the_old_catalog_in_place() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let path = catalog.path();
    let server = Server::start(&[arg(&path), "--port", "0"]);
    fs::write(catalog.file("beta"), "schema: olm.package\nname: BETA\n").unwrap();
    let said = server.wait("not reloaded; the old catalog stays");
    assert!(said["error"].as_str().unwrap().contains("BETA"), "{said}");
    wait_for_packages(&server, &["alpha"]);
    fs::remove_file(catalog.file("beta")).unwrap();
    // All files gone is a change that nobody wants to be served.
    fs::rename(catalog.path(), catalog.as_ref().join("away")).unwrap();
    server.wait("not reloaded; the old catalog stays");
    wait_for_packages(&server, &["alpha"]);
    fs::rename(catalog.as_ref().join("away"), catalog.path()).unwrap();
    catalog.put("gamma", 1);
    server.wait("reloaded");
    wait_for_packages(&server, &["alpha", "gamma"]);
}

#[test]
fn a_stale_or_damaged_index_is_made_anew() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let (path, index) = (catalog.path(), catalog.index());
    drop(Server::start(&[arg(&path), "--port", "0", "--index", arg(&index)]));
    let good = fs::read(&index).unwrap();

    // Stale: other names or sizes.
    catalog.put("beta", 1);
    let server = Server::start(&[arg(&path), "--port", "0", "--index", arg(&index)]);
    assert!(server.log.lock().unwrap().iter().any(|line| line.contains("stale")));
    wait_for_packages(&server, &["alpha", "beta"]);
    drop(server);

    // Stale: another content of the same size, which is found out after a while.
    let text = fs::read_to_string(catalog.file("alpha")).unwrap();
    fs::write(catalog.file("alpha"), text.replace("lorem", "merol")).unwrap();
    let server = Server::start(&[arg(&path), "--port", "0", "--index", arg(&index)]);
    server.wait("reloaded");
    drop(server);

    // Something else altogether is served without, and stays; what is cut off is replaced.
    for bytes in [b"something else".as_slice(), &good[..good.len() / 2]] {
        fs::write(&index, bytes).unwrap();
        let server = Server::start(&[arg(&path), "--port", "0", "--index", arg(&index)]);
        wait_for_packages(&server, &["alpha", "beta"]);
        assert_eq!(fs::read(&index).unwrap() == bytes, bytes == b"something else");
    }

    // Damaged where only an answer reads it: said, and made anew.
    let mut bytes = fs::read(&index).unwrap();
    for byte in &mut bytes[200..] {
        if *byte == b'.' {
            *byte = b',';
            break;
        }
    }
    fs::write(&index, &bytes).unwrap();
    let server =
        Server::start(&[arg(&path), "--port", "0", "--index", arg(&index), "--reload-interval", "0"]);
    let end = Instant::now() + DEADLINE;
    loop {
        let client = server.client();
        let ask = |method| client.ask(REGISTRY, method, &json!({}));
        let blobs = client.ask(
            REGISTRY,
            "GetBundle",
            &json!({"pkgName": "alpha", "channelName": "stable", "csvName": "alpha.v1.0.0"}),
        );
        if ask("ListBundles").is_ok_and(|bundles| bundles.len() == 2) && blobs.is_ok() {
            break;
        }
        assert!(Instant::now() < end, "{:#?}", server.log.lock().unwrap());
    }
}

#[test]
fn an_index_without_its_catalog_has_to_be_sound() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let index = catalog.index();
    fs::write(&index, "olmkit catalog\r\n").unwrap();
    let mut server = Server::start_unready(&["--index", arg(&index), "--port", "0"]);
    assert!(!server.ended());
    let log = catalog.as_ref().join("termination-log");
    let absent = ["--index", "/does/not/exist", "--port", "0", "--termination-log", arg(&log)];
    assert!(!Server::start_unready(&absent).ended());
    assert!(!log.exists(), "it is written where it is, and made nowhere");
    fs::write(&log, "").unwrap();
    assert!(!Server::start_unready(&absent).ended());
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("`/does/not/exist`") && said.contains("No such file"), "{said}");
}

#[test]
fn integrity_can_be_enforced() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let (path, index) = (catalog.path(), catalog.index());
    drop(Server::start(&[arg(&path), "--port", "0", "--index", arg(&index)]));
    catalog.put("beta", 1);
    let args = [arg(&path), "--port", "0", "--index", arg(&index), "--cache-enforce-integrity"];
    assert!(!Server::start_unready(&args).ended());
}

#[test]
fn the_command_line_of_opm() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let (path, cache) = (catalog.path(), catalog.as_ref().join("cache"));
    let args = [arg(&path), "--cache-dir", arg(&cache), "--pprof-addr", "localhost:6060"];
    assert!(Server::start_unready(&[&args, ["--cache-only"].as_slice()].concat()).ended());
    let server = Server::start(&[&args, ["-p", "0", "--cache-enforce-integrity=true"].as_slice()].concat());
    wait_for_packages(&server, &["alpha"]);
}

#[test]
fn the_end_waits_for_answers_under_way() {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let path = catalog.path();
    let mut server = Server::start(&[arg(&path), "--port", "0"]);
    let client = server.client();
    client.runtime.block_on(async {
        let mut answers = client.open(REGISTRY, "ListBundles", &json!({}), &[]).await.unwrap();
        answers.message().await.unwrap().expect("there are bundles");
        server.signal("TERM");
        server.wait("ending");
        let mut count = 1;
        while tokio::time::timeout(DEADLINE, answers.message()).await.unwrap().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 3000);
    });
    drop(client);
    assert!(server.ended());
}

#[test]
fn clients_that_stop_reading_are_let_go() {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let path = catalog.path();
    let server = Server::start(&[arg(&path), "--port", "0", "--stall-timeout", "0.3"]);
    let client = server.client();
    let refused = client.runtime.block_on(async {
        let mut answers = client.open(REGISTRY, "ListBundles", &json!({}), &[]).await.unwrap();
        answers.message().await.unwrap().expect("there are bundles");
        let end = Instant::now() + DEADLINE;
        while !metrics(&server).contains("olmkit_catalog_stalled_connections_total 1") {
            assert!(Instant::now() < end, "nobody was let go");
        }
        loop {
            match answers.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    });
    assert!(refused, "the rest of the answer does not come");
}

fn metrics(server: &Server) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn health_is_watched() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let path = catalog.path();
    let mut server = Server::start(&[arg(&path), "--port", "0"]);
    let client = server.client();
    client.runtime.block_on(async {
        let mut health = client.open("grpc.health.v1.Health", "Watch", &json!({}), &[]).await.unwrap();
        let mut next = async || {
            let message = tokio::time::timeout(DEADLINE, health.message()).await.unwrap().unwrap();
            message.map(|message| serde_json::to_value(&message).unwrap())
        };
        assert_eq!(next().await, Some(json!({"status": "SERVING"})));
        server.signal("TERM");
        assert_eq!(next().await, Some(json!({"status": "NOT_SERVING"})));
        assert_eq!(next().await, None);
    });
    drop(client);
    assert!(server.ended());
}

/// A certificate for 127.0.0.1 and its key, written where a server reads them; the certificate.
fn certificate(catalog: &Catalog) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    fs::write(catalog.as_ref().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::write(catalog.as_ref().join("cert.pem"), made.cert.pem()).unwrap();
    made.cert.pem()
}

/// Whether a client that trusts one certificate alone is answered.
fn is_answered(server: &Server, certificate: &str) -> bool {
    let trusted = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tls_certs_only([trusted]).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(client.get(format!("https://{}/readyz", server.address)).send());
    answer.is_ok_and(|answer| answer.status().is_success())
}

/// It would wait for ever before it serves, and could not read the certificate again.
#[test]
fn a_certificate_in_a_pipe_is_refused() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    certificate(&catalog);
    let (key, pipe) = (catalog.as_ref().join("key.pem"), catalog.as_ref().join("pipe"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let tls = ["--tls-cert", arg(&pipe), "--tls-key", arg(&key)];
    let mut server =
        Server::start_unready(&[&[arg(&catalog.path()), "--port", "0"], tls.as_slice()].concat());
    assert!(!server.ended());
}

#[test]
fn certificates_are_read_again() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let first = certificate(&catalog);
    let (path, cert, key) =
        (catalog.path(), catalog.as_ref().join("cert.pem"), catalog.as_ref().join("key.pem"));
    let tls = ["--tls-cert", arg(&cert), "--tls-key", arg(&key)];
    let server = Server::start(&[&[arg(&path), "--port", "0"], tls.as_slice()].concat());
    assert!(is_answered(&server, &first));
    let second = certificate(&catalog);
    server.wait("certificate reloaded");
    assert!(!is_answered(&server, &first));
    assert!(is_answered(&server, &second));
    fs::write(&cert, "no certificate").unwrap();
    server.wait("certificate not reloaded; the old one stays");
    assert!(is_answered(&server, &second));
}
