//! What a server answers: catalogs over gRPC and HTTP, health, reflection; and to those who ask badly.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::client::{DEADLINE, Server, arg};
use crate::fixture::Catalog;

const REGISTRY: &str = "api.Registry";
const HEALTH: &str = "grpc.health.v1.Health";

fn serve(catalog: &Catalog, more: &[&str]) -> Server {
    let path = catalog.path();
    Server::start(&[&[arg(&path), "--port", "0"], more].concat())
}

/// An HTTP request as text, and the response's head and body.
pub(crate) fn http(server: &Server, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let request = request.trim().lines().map(str::trim).collect::<Vec<_>>().join("\r\n");
    write!(stream, "{request}\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a response has a head");
    (String::from_utf8(response[..end].to_vec()).unwrap(), response[end + 4..].to_vec())
}

#[test]
fn packages_and_bundles() {
    let catalog = Catalog::new(&[("beta", 3), ("alpha", 1)]);
    let server = serve(&catalog, &[]);
    let client = server.client();
    let packages = client.ask(REGISTRY, "ListPackages", &json!({})).unwrap();
    assert_eq!(packages, [json!({"name": "alpha"}), json!({"name": "beta"})]);
    let bundles = client.ask(REGISTRY, "ListBundles", &json!({})).unwrap();
    let names: Vec<_> = bundles.iter().map(|bundle| bundle["csvName"].as_str().unwrap()).collect();
    assert_eq!(names, ["alpha.v1.0.0", "beta.v1.0.0", "beta.v2.0.0", "beta.v3.0.0"]);
    let refused = client.ask(REGISTRY, "GetPackage", &json!({"name": "gamma"})).unwrap_err();
    assert_eq!(refused, ("Unknown".into(), "package \"gamma\" not found".into()));
}

#[test]
fn what_no_server_of_this_kind_has() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let server = serve(&catalog, &[]);
    let client = server.client();
    let says = |service, method| client.ask(service, method, &json!({})).unwrap_err();
    let unimplemented = |message: &str| ("Unimplemented".to_owned(), message.to_owned());
    assert_eq!(says(REGISTRY, "Nothing"), unimplemented("unknown method Nothing for service api.Registry"));
    assert_eq!(says("api.Nothing", "X"), unimplemented("unknown service api.Nothing"));
    // 100 kB of a name.
    let large = json!({"name": "x".repeat(100_000)});
    assert_eq!(client.ask(REGISTRY, "GetPackage", &large).unwrap_err().0, "ResourceExhausted");
    let schema = json!({"schema": "a/b"});
    let metadata = [("x-acknowledge-experimental", "true")];
    let refused = client.ask_with(
        "api.ExperimentalRegistry",
        "ExperimentalListPackageCustomSchemas",
        &schema,
        &metadata,
    );
    assert_eq!(refused.unwrap_err().0, "InvalidArgument");
}

#[test]
fn health_and_reflection() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let server = serve(&catalog, &[]);
    let client = server.client();
    for service in ["", "Registry", "anything"] {
        let status = client.ask(HEALTH, "Check", &json!({"service": service})).unwrap();
        assert_eq!(status, [json!({"status": "SERVING"})]);
    }
    for version in ["v1", "v1alpha"] {
        let service = format!("grpc.reflection.{version}.ServerReflection");
        let ask = |request| client.ask(&service, "ServerReflectionInfo", &request).unwrap();
        let answer = ask(json!({"listServices": ""}));
        let services = answer[0]["listServicesResponse"]["service"].as_array().unwrap();
        let mut names: Vec<_> = services.iter().map(|service| service["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        let reflection = service.as_str();
        assert_eq!(names, ["api.ExperimentalRegistry", REGISTRY, HEALTH, reflection]);
        let answer = ask(json!({"fileContainingSymbol": "api.Bundle"}));
        assert!(answer[0]["fileDescriptorResponse"]["fileDescriptorProto"][0].is_string(), "{answer:?}");
    }
}

#[test]
fn a_catalog_that_is_not_open_yet() {
    let catalog = Catalog::new(&[]);
    std::fs::write(catalog.file("bad"), "schema: olm.package\nname: Bad\n").unwrap();
    let path = catalog.path();
    let mut server = Server::start_unready(&[arg(&path), "--port", "0"]);
    assert!(!server.ended(), "a catalog with errors is not served");
}

#[test]
fn json_lines() {
    let catalog = Catalog::new(&[("alpha", 2), ("beta", 9)]);
    let server = serve(&catalog, &[]);
    let (head, all) = http(&server, "GET /api/v1/all HTTP/1.1");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("content-type: application/jsonl"), "{head}");
    assert!(head.contains(&format!("content-length: {}", all.len())), "{head}");
    assert_eq!(all.iter().filter(|byte| **byte == b'\n').count(), 15);
    let modified = head
        .lines()
        .find(|line| line.starts_with("last-modified: "))
        .unwrap()
        .replace("last-modified", "if-modified-since");
    let tag = head.lines().find(|line| line.starts_with("etag: ")).unwrap().replace("etag", "if-none-match");
    for condition in [&modified, &tag] {
        let (head, body) = http(&server, &format!("GET /api/v1/all HTTP/1.1\n{condition}"));
        assert!(head.starts_with("HTTP/1.1 304 ") && body.is_empty(), "{condition}: {head}");
    }
    let (head, _) =
        http(&server, "GET /api/v1/all HTTP/1.1\nif-modified-since: Sat, 01 Jan 2000 00:00:00 GMT");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");

    let (head, packed) = http(&server, "GET /api/v1/all HTTP/1.1\naccept-encoding: br, gzip");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, all);
    assert!(packed.len() < all.len() / 2);

    let (head, body) = http(&server, "HEAD /api/v1/all HTTP/1.1");
    assert!(head.contains(&format!("content-length: {}", all.len())) && body.is_empty(), "{head}");
    let lines = |query: &str| {
        let (head, body) = http(&server, &format!("GET /api/v1/metas?{query} HTTP/1.1"));
        (head.split(' ').nth(1).unwrap().to_owned(), String::from_utf8(body).unwrap().lines().count())
    };
    assert_eq!(lines("schema=olm.bundle&package=alpha"), ("200".into(), 2));
    assert_eq!(lines("schema=olm.package&name=alpha"), ("200".into(), 1));
    assert_eq!(lines("name=beta.v1%2E0.0"), ("200".into(), 1));
    assert_eq!(lines("package=nothing"), ("200".into(), 0));
    assert_eq!(lines(""), ("200".into(), 15));
    assert_eq!(lines("colour=blue").0, "400");
    let (head, _) = http(&server, "POST /api/v1/all HTTP/1.1\ncontent-length: 0");
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    let (head, _) = http(&server, "GET /else HTTP/1.1");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

#[test]
fn metrics_and_probes() {
    let catalog = Catalog::new(&[("alpha", 2)]);
    let server = serve(&catalog, &[]);
    let client = server.client();
    client.ask(REGISTRY, "ListBundles", &json!({})).unwrap();
    client.ask(REGISTRY, "GetPackage", &json!({"name": "x"})).unwrap_err();
    for probe in ["healthz", "readyz"] {
        let (head, _) = http(&server, &format!("GET /{probe} HTTP/1.1"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
    let (_, metrics) = http(&server, "GET /metrics HTTP/1.1");
    let metrics = String::from_utf8(metrics).unwrap();
    for line in [
        "olmkit_catalog_bundles 2",
        "olmkit_catalog_requests_total{method=\"ListBundles\",code=\"0\"} 1",
        "olmkit_catalog_requests_total{method=\"GetPackage\",code=\"2\"} 1",
        "olmkit_catalog_stale 0",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[test]
fn clients_that_say_nothing_or_nonsense_do_no_harm() {
    let catalog = Catalog::new(&[("alpha", 2)]);
    let server = serve(&catalog, &[]);
    let mut open = Vec::new();
    for greeting in
        ["", "PRI * HTTP", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}", "GET / HTTP/1.1\r\nhost"]
    {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(greeting.as_bytes()).unwrap();
            open.push(stream);
        }
    }
    let packages = server.client().ask(REGISTRY, "ListPackages", &json!({})).unwrap();
    assert_eq!(packages.len(), 1);
}

#[test]
fn a_thousand_clients_at_once() {
    let catalog = Catalog::new(&[("alpha", 30)]);
    let server = serve(&catalog, &[]);
    let endpoint = format!("http://{}", server.address);
    let client = server.client();
    client.runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..1000 {
            let endpoint = tonic::transport::Endpoint::from_shared(endpoint.clone()).unwrap();
            tasks.spawn(async move {
                let channel = endpoint
                    .connect()
                    .await
                    .map_err(|error| tonic::Status::unavailable(error.to_string()))?;
                let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
                let status =
                    health.check(tonic_health::pb::HealthCheckRequest::default()).await?.into_inner().status;
                // The connection stays until all have been answered.
                Ok::<_, tonic::Status>((status, health))
            });
        }
        let mut answered = Vec::new();
        let all = tokio::time::timeout(DEADLINE, async {
            while let Some(done) = tasks.join_next().await {
                answered.push(done.unwrap().unwrap());
            }
        });
        all.await.expect("all are answered in time");
        assert!(answered.iter().all(|(status, _)| *status == 1));
    });
}

#[test]
fn limits_on_connections() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let server = serve(&catalog, &["--max-connections", "2"]);
    let mut streams: Vec<_> = (0..2).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    // One above the limit is closed at once.
    let mut third = TcpStream::connect(&server.address).unwrap();
    third.set_read_timeout(Some(DEADLINE)).unwrap();
    assert!(matches!(third.read(&mut [0; 1]), Ok(0) | Err(_)));
    drop(streams.pop());
    drop(streams);
    // The places are free again, as soon as the server has seen that they are.
    let end = std::time::Instant::now() + DEADLINE;
    while server.client().ask(REGISTRY, "ListPackages", &json!({})).is_err() {
        assert!(std::time::Instant::now() < end, "no place became free");
    }
}

#[test]
fn the_port_is_taken() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let server = serve(&catalog, &[]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let path = catalog.path();
    let mut second = Server::start_unready(&[arg(&path), "--port", &port]);
    assert!(!second.ended());
}
