//! The programs of two adjacent minor versions of etcd, which `tests/cluster/build etcd-3.5` and `etcd-3.6` keep in the user's
//! cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The minor versions.
const MINORS: [&str; 2] = ["3.5", "3.6"];
const PROGRAMS: [&str; 3] = ["etcd", "etcdctl", "etcdutl"];

/// Where each minor version is.
static PLACES: LazyLock<[Option<PathBuf>; 2]> = LazyLock::new(|| MINORS.map(place));

fn place(minor: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let kept = fs::read_dir(cache.join("olmkit/cluster")).ok()?;
    // What is being built has another name until it is complete.
    let complete =
        |place: &Path| place.extension().is_none() && PROGRAMS.iter().all(|name| place.join(name).is_file());
    let version = format!("etcd Version: {minor}.");
    let is_minor = |place: &Path| {
        let said = Command::new(place.join("etcd")).arg("--version").output();
        said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(&version))
    };
    kept.flatten().map(|entry| entry.path()).find(|place| complete(place) && is_minor(place))
}

/// Where a program of a minor version is, if it was built.
pub(crate) fn program(minor: &str, name: &str) -> Option<PathBuf> {
    let which = MINORS.iter().position(|known| *known == minor)?;
    Some(PLACES[which].as_ref()?.join(name))
}

/// Why tests cannot have both minor versions, if they cannot.
pub(crate) fn missing() -> Option<String> {
    let minor = MINORS.iter().find(|minor| program(minor, "etcd").is_none())?;
    Some(format!("etcd {minor} is not built (`tests/cluster/build etcd-{minor}` builds it)"))
}
