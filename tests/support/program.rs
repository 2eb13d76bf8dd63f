//! Programs as images: executables with the shared libraries that they need, and nothing else.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use olmkit::image::{Access, Compression, Config, FileTree, Image, Layer, Place, Root};

/// Makes an image of a program, which lies at `/NAME` in it, and puts it into a registry.
#[allow(dead_code, reason = "of the programs that include this file, not every one makes such images")]
pub(crate) fn push(reference: &str, program: &Path, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let name = program.file_name().and_then(|name| name.to_str()).ok_or("the program has no name")?;
    let entrypoint: Vec<String> = [format!("/{name}")].into_iter().chain(arguments.iter().cloned()).collect();
    push_several(reference, &[(name, program)], &Config { entrypoint, ..Config::default() })
}

/// Makes an image of several programs, each at a path of its own without the leading `/`, and puts it into a registry, or
/// into the archive of `oci-archive:PATH:NAME:TAG`.
pub(crate) fn push_several(
    reference: &str,
    programs: &[(&str, &Path)],
    config: &Config,
) -> Result<(), Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for (path, program) in programs {
        files.insert((*path).to_owned(), fs::read(program)?);
        for library in libraries(program)? {
            files.insert(library.trim_start_matches('/').to_owned(), fs::read(&library)?);
        }
    }
    let mut tree = FileTree::new();
    for (path, content) in files {
        // Of the libraries, only the loader is executed, but it does not hurt the others.
        tree.add_executable(&path, content)?;
    }

    // It runs on this machine or one like it.
    let platform = format!("linux/{}", env::consts::ARCH).parse()?;
    let image = Image::new(&platform, config, &[Layer::build_with(&tree, Compression::Zstd)?]);
    let is_archive = reference.starts_with("oci-archive:");
    let place: Place =
        if is_archive { reference.parse()? } else { format!("docker://{reference}").parse()? };
    place.store(&Root::from(image), &Access::default())?;
    Ok(())
}

/// The paths of the shared libraries of a program, the loader among them, as the loader of this machine finds them.
fn libraries(program: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output()?;
    let said = String::from_utf8(output.stdout)?;
    if said.contains("not found") {
        return Err(format!("{} lacks libraries:\n{said}", program.display()).into());
    }
    // `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)`; what the kernel gives has no path. A static program has none.
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(str::to_owned).collect())
}
