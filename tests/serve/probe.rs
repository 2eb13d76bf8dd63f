//! The server as the probe that OLM runs in the pod of a catalog.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::client::{Server, arg};
use crate::fixture::Catalog;

#[test]
fn under_the_name_of_the_probe_the_program_asks_the_server() {
    let catalog = Catalog::new(&[("alpha", 1)]);
    let probe = catalog.as_ref().join("grpc_health_probe");
    symlink(env!("CARGO_BIN_EXE_olmkit"), &probe).unwrap();
    let asked = |args: &[&str]| {
        let output = Command::new(&probe).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let server = Server::start(&[arg(&catalog.as_ref().join("catalog")), "--port", "0"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    // As OLM writes it.
    assert_eq!(asked(&[&format!("-addr=:{port}")]), (Some(0), "status: SERVING\n".to_owned()));
    assert_eq!(asked(&["--addr", &server.address, "-rpc-timeout", "5s"]).0, Some(0));
    drop(server);
    let (code, said) = asked(&[&format!("-addr=:{port}")]);
    assert!(
        code == Some(2) && said.starts_with(&format!("error: cannot connect to `127.0.0.1:{port}`")),
        "{said}"
    );
    // Somebody who takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, said) = asked(&["-addr", &silent.local_addr().unwrap().to_string(), "-rpc-timeout=300ms"]);
    assert!(code == Some(3) && said.starts_with("error: no answer from"), "{code:?} {said}");
    assert_eq!(asked(&["-adr=:1"]).0, Some(1));
}
