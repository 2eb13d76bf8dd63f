//! A server that has nowhere to write its index.

use crate::client::{Server, arg};
use crate::fixture::Catalog;

#[test]
fn a_server_without_room_for_its_index_says_so_and_serves() {
    let catalog = Catalog::new(&[("alpha", 300)]);
    // A directory that cannot be written is one without any room; the temporary one has some.
    let path = catalog.path();
    let server = Server::start(&[arg(&path), "--index", "/proc/none/catalog.olmkit", "--port", "0"]);
    let log = server.log.lock().unwrap();
    let warned = log.iter().find(|line| line.contains("compiling to a temporary file"));
    assert!(warned.is_some_and(|line| line.contains("/proc/none")), "{log:?}");
}
