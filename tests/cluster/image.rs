//! Makes images of single programs with their libraries, and pushes them:
//! `cluster-image REGISTRY NAME PROGRAM [ARGUMENT…] [-- NAME PROGRAM [ARGUMENT…]]…`.
//!
//! The cluster's own images are made with it, before anything runs that they could be pulled from.

#[path = "../support/program.rs"]
mod program;

use std::env;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (registry, images) = arguments.split_first().ok_or("no registry is named")?;
    for image in images.split(|argument| argument == "--") {
        let [name, path, rest @ ..] = image else {
            return Err("an image is written as NAME PROGRAM [ARGUMENT…]".into());
        };
        program::push(&format!("{registry}/{name}:latest"), Path::new(path), rest)?;
    }
    Ok(())
}
