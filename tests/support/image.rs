//! Puts a program into an image of its own, with its libraries and the CA roots of this machine, and pushes it:
//! `program-image REFERENCE PROGRAM [ARGUMENT…]`.

mod program;

use std::env;
use std::error::Error;
use std::path::Path;

use olmkit::image::Config;

/// Where Debian, and Go's and Rust's TLS, keep them.
const ROOTS: &str = "etc/ssl/certs/ca-certificates.crt";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [reference, path, rest @ ..] = &arguments[..] else {
        return Err("usage: program-image REFERENCE PROGRAM [ARGUMENT…]".into());
    };
    let program = Path::new(path);
    let name = program.file_name().and_then(|name| name.to_str()).ok_or("the program has no name")?;
    let roots = Path::new("/").join(ROOTS);
    let mut files = vec![(name, program)];
    if roots.is_file() {
        files.push((ROOTS, roots.as_path()));
    }
    let config = Config {
        entrypoint: vec![format!("/{name}")],
        cmd: rest.to_vec(),
        user: Some("65532:65532".into()),
        ..Config::default()
    };
    program::push_several(reference, &files, &config)
}
