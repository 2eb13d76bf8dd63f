//! Makes images of programs with their libraries, and pushes them:
//! `cluster-image REGISTRY NAME[:TAG] PROGRAM [ARGUMENT…] [-- NAME[:TAG] PROGRAM [ARGUMENT…]]…`.
//! An image of several programs is written as `NAME[:TAG] PATH=PROGRAM…`: the first is what it runs, as user 1001.
//!
//! The cluster's own images are made with it, before anything runs that they could be pulled from.

#[path = "../support/program.rs"]
mod program;

use std::env;
use std::error::Error;
use std::path::Path;

use olmkit::image::Config;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (registry, images) = arguments.split_first().ok_or("no registry is named")?;
    for image in images.split(|argument| argument == "--") {
        let [name, path, rest @ ..] = image else {
            return Err("an image is written as NAME PROGRAM [ARGUMENT…]".into());
        };
        let tag = if name.contains(':') { "" } else { ":latest" };
        let reference = format!("{registry}/{name}{tag}");
        if !path.contains('=') {
            program::push(&reference, Path::new(path), rest)?;
            continue;
        }
        let pairs = image[1..].iter().map(|pair| pair.split_once('=').ok_or("expected PATH=PROGRAM"));
        let programs = pairs.map(|pair| pair.map(|(to, from)| (to, Path::new(from))));
        let programs = programs.collect::<Result<Vec<_>, _>>()?;
        let entrypoint = programs.iter().take(1).map(|(to, _)| format!("/{to}")).collect();
        let config = Config { entrypoint, user: Some("1001".into()), ..Config::default() };
        program::push_several(&reference, &programs, &config)?;
    }
    Ok(())
}
