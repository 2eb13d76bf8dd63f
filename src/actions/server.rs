//! The server that a catalog's image carries: a program for each platform, found and looked at before anything is built.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::files;
use crate::image::Platform;

/// The program's name, beside `olmkit` and in the image.
const NAME: &str = "olmkit-serve";
/// How to have one.
const HELP: &str = "a static olmkit is a server: install it with `RUSTFLAGS='-C target-feature=+crt-static' cargo install --locked \
                    --path . --target x86_64-unknown-linux-gnu`; or pass `--base quay.io/operator-framework/opm:latest`, or `--data-only`";
/// What is said when there is none, and none was asked for.
pub const NO_SERVER: &str = "the image holds the catalog and no server, because this olmkit is not static: a CatalogSource needs \
                             `grpcPodConfig: {extractContent: {catalogDir: /configs}}`, OLM v1 takes it as it is. For an image that serves \
                             itself, pass `--base quay.io/operator-framework/opm:latest`, or install a static olmkit (docs/serve.md)";

/// Where the servers come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Server {
    /// There is none: OLM takes the catalog out of the image.
    #[default]
    None,
    /// They lie beside this program, or this program is one; without any, the image has none.
    Beside,
    /// They are named.
    Given(BTreeMap<Platform, PathBuf>),
}

/// A server that an image cannot carry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is none.
    #[error("there is no catalog server for {platform}")]
    Missing {
        /// The platform.
        platform: Platform,
    },
    /// The file is no program for Linux.
    #[error("`{path}` is not a program for Linux")]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// It is for another processor.
    #[error("`{path}` is not a program for {platform}")]
    Platform {
        /// The file.
        path: PathBuf,
        /// The platform that it should be for.
        platform: Platform,
    },
    /// It needs files that the image does not have.
    #[error("`{path}` is not statically linked, and the image has no shared libraries")]
    Dynamic {
        /// The file.
        path: PathBuf,
    },
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::failed(error).help(HELP)
    }
}

impl Server {
    /// The programs for the platforms; for those that are named, when no platforms are.
    ///
    /// # Errors
    /// One is missing, or cannot be one.
    pub fn programs(&self, platforms: &[Platform]) -> Result<BTreeMap<Platform, Vec<u8>>, Failure> {
        let wanted: Vec<Platform> = match self {
            Self::Given(given) if platforms.is_empty() => given.keys().cloned().collect(),
            _ if platforms.is_empty() => vec![Platform::default()],
            _ => platforms.to_vec(),
        };
        let program = |platform: Platform| {
            let path = match self {
                Self::None => None,
                Self::Given(given) => given.get(&platform).cloned(),
                Self::Beside => beside(&platform),
            };
            let path = path.ok_or_else(|| ServerError::Missing { platform: platform.clone() })?;
            let bytes = files::read(&path)?;
            check(&bytes, &path, &platform)?;
            Ok((platform, bytes))
        };
        // Not asked for, and not to be had for any platform.
        if *self == Self::Beside && wanted.iter().all(|platform| beside(platform).is_none()) {
            return Ok(BTreeMap::new());
        }
        wanted.into_iter().map(program).collect()
    }
}

/// `olmkit-serve-OS-ARCH` in the directory of this program, `olmkit-serve` when it is for the platform, or this program itself,
/// which is the server under that name.
fn beside(platform: &Platform) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let directory = program.parent()?.to_owned();
    let own = directory.join(format!("{NAME}-{}", platform.to_string().replace('/', "-")));
    let any = directory.join(NAME);
    let fits = |path: &PathBuf| head(path).is_ok_and(|bytes| check(&bytes, path, platform).is_ok());
    if own.is_file() { Some(own) } else { [any, program].into_iter().find(|path| fits(path)) }
}

/// The start of a program, with its headers.
fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(64 << 10).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Looks at the header of a program (ELF, in the order of bytes of nearly all machines that Kubernetes runs on).
fn check(bytes: &[u8], path: &Path, platform: &Platform) -> Result<(), ServerError> {
    let number = |at: usize, len: usize| {
        let bytes = at.checked_add(len).and_then(|end| bytes.get(at..end))?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let not_a_program = || ServerError::NotAProgram { path: path.to_owned() };
    // s390x has the other order of bytes: only that it is a program is seen there.
    let little = bytes.get(5) == Some(&1);
    if !bytes.starts_with(b"\x7fELF") || bytes.get(4) != Some(&2) || platform.os() != "linux" {
        return Err(not_a_program());
    }
    let machine = match platform.architecture() {
        "amd64" => 62,
        "arm64" => 183,
        "ppc64le" => 21,
        "riscv64" => 243,
        _ => {
            return if little {
                Err(ServerError::Platform { path: path.to_owned(), platform: platform.clone() })
            } else {
                Ok(())
            };
        }
    };
    if !little || number(18, 2) != Some(machine) {
        return Err(ServerError::Platform { path: path.to_owned(), platform: platform.clone() });
    }
    let (start, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let (Some(start), Some(size), Some(count)) = (start, size, count) else { return Err(not_a_program()) };
    for segment in 0..count {
        let at = usize::try_from(start.saturating_add(segment * size)).unwrap_or(usize::MAX);
        // Type 3 names the loader of libraries.
        match number(at, 4) {
            None => return Err(not_a_program()),
            Some(3) => return Err(ServerError::Dynamic { path: path.to_owned() }),
            Some(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The smallest file that passes for a program with one segment of a type.
    pub(crate) fn program(machine: u8, segment: u8) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56], bytes[64]) = (machine, 64, 56, 1, segment);
        bytes
    }

    #[track_caller]
    fn verdict(bytes: &[u8], platform: &str) -> String {
        let result = check(bytes, Path::new("x"), &platform.parse().unwrap());
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn programs_are_looked_at() {
        assert_eq!(verdict(&program(62, 1), "linux/amd64"), "");
        assert_eq!(verdict(&program(183, 1), "linux/arm64"), "");
        assert_eq!(verdict(&program(183, 1), "linux/amd64"), "`x` is not a program for linux/amd64");
        assert!(verdict(&program(62, 3), "linux/amd64").starts_with("`x` is not static"));
        assert_eq!(verdict(b"#!/bin/sh", "linux/amd64"), "`x` is not a program for Linux");
        let mut cut = program(62, 1);
        for length in 0..cut.len() {
            cut.truncate(cut.len() - 1);
            let _ = verdict(&cut, "linux/amd64");
            assert!(length < 120);
        }
    }

    #[test]
    fn a_platform_without_a_program() {
        let given = Server::Given(BTreeMap::new());
        let error = given.programs(&["linux/arm64".parse().unwrap()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no catalog server for linux/arm64");
        assert!(error.help.to_string().contains("--base quay.io/operator-framework/opm:latest"));
    }
}
