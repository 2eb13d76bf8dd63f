//! A disk that is full: nothing half written, and said so.

use std::fs;
use std::process::Command;

use crate::client::{Server, arg};
use crate::fixture::Catalog;

/// Runs a shell line with a tiny disk of its own at `$DISK`; nothing where that takes rights that we do not have.
fn with_tiny_disk(catalog: &Catalog, line: &str) -> Option<String> {
    let disk = catalog.as_ref().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let tiny = |line: &str| {
        let script = format!("mount -t tmpfs -o size=16k tmpfs \"$DISK\" && {{ {line}\n}}");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        command.env("DISK", &disk).env("OLMKIT", env!("CARGO_BIN_EXE_olmkit")).env("CATALOG", catalog.path());
        command.output()
    };
    if !tiny("true").is_ok_and(|output| output.status.success()) {
        return None;
    }
    let output = tiny(line).unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some(said)
}

#[test]
fn compiling_leaves_what_was_there() {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let line = r#"echo old >"$DISK/catalog.olmkit"
        "$OLMKIT" catalog build-index "$CATALOG" --to "$DISK/catalog.olmkit"
        echo "exit code $?, left: $(ls -A "$DISK"): $(cat "$DISK/catalog.olmkit")""#;
    let Some(said) = with_tiny_disk(&catalog, line) else {
        println!("not run: a mount namespace of our own needs rights");
        return;
    };
    assert!(said.contains("exit code 3, left: catalog.olmkit: old"), "{said}");
    assert!(said.contains("No space left on device") && said.contains("cannot write"), "{said}");
}

#[test]
fn an_image_is_whole_or_not_there() {
    let catalog = Catalog::new(&[("alpha", 3000)]);
    let line = r#""$OLMKIT" catalog build "$CATALOG" --data-only --to "oci-archive:$DISK/image.tar"
        echo "exit code $?, left: $(ls -A "$DISK")""#;
    let Some(said) = with_tiny_disk(&catalog, line) else {
        println!("not run: a mount namespace of our own needs rights");
        return;
    };
    assert!(said.contains("exit code 3, left: \n") && said.contains("No space left on device"), "{said}");
}

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
