//! The kubeconfig, and the files that it names: only those are read that end. kube itself reads whatever is there.

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster};

use super::ConnectError;
use crate::files::{self, FileError};
use crate::limits::Limits;

/// The largest kubeconfig, and the largest file that one names, in bytes.
const MOST: u64 = 16 << 20;

/// The kubeconfig of a path; without one, of the environment: of several files that KUBECONFIG names those that exist, as kubectl reads
/// them.
///
/// # Errors
/// It cannot be read, or is none.
pub(super) fn read(path: Option<&Path>, limits: Limits) -> Result<Kubeconfig, ConnectError> {
    if let Some(path) = path {
        return file(path, limits);
    }
    let variable = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty());
    let named: Vec<PathBuf> = variable.iter().flat_map(std::env::split_paths).collect();
    let named: Vec<&PathBuf> = named.iter().filter(|path| !path.as_os_str().is_empty()).collect();
    let mut there = named.iter().filter(|path| path.exists()).peekable();
    match (there.peek(), named.first()) {
        (Some(_), _) => there.try_fold(Kubeconfig::default(), |all, path| {
            all.merge(file(path, limits)?).map_err(|error| ConnectError::Config(error.into()))
        }),
        (None, Some(first)) => file(first, limits),
        (None, None) => {
            let home = std::env::home_dir().ok_or(kube::config::KubeconfigError::FindPath);
            file(&home.map_err(|error| ConnectError::Config(error.into()))?.join(".kube/config"), limits)
        }
    }
}

fn file(path: &Path, limits: Limits) -> Result<Kubeconfig, ConnectError> {
    // Users who want no kubeconfig at all set it to this device.
    if path == Path::new("/dev/null") {
        return Ok(Kubeconfig::default());
    }
    let read = match files::is_pipe(path) {
        true => Kubeconfig::from_yaml(&files::read_text_or_pipe(path, limits)?),
        false => {
            files::check_plain(path, MOST)?;
            Kubeconfig::read_from(path)
        }
    };
    read.map_err(|error| invalid(path, &error))
}

/// Why a file is no kubeconfig: without the lines around the fault, which may be a secret.
fn invalid(path: &Path, error: &kube::config::KubeconfigError) -> ConnectError {
    let place = match error {
        kube::config::KubeconfigError::Parse(error) => error.location(),
        _ => None,
    };
    let why = match (error, place) {
        (kube::config::KubeconfigError::Parse(_), Some(place)) => {
            format!(
                "`{}` is not a kubeconfig, at line {}, column {}",
                path.display(),
                place.line(),
                place.column()
            )
        }
        (kube::config::KubeconfigError::Parse(_), None) => {
            format!("`{}` is not a kubeconfig", path.display())
        }
        (error, _) => error.to_string(),
    };
    ConnectError::Config(why.into())
}

/// The context of a name, or the current one.
pub(super) fn chosen<'k>(kubeconfig: &'k Kubeconfig, context: Option<&str>) -> Option<&'k Context> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let found = kubeconfig.contexts.iter().find(|found| found.name == name)?;
    found.context.as_ref()
}

/// The cluster of a context.
pub(super) fn cluster_of<'k>(kubeconfig: &'k Kubeconfig, context: &Context) -> Option<&'k Cluster> {
    let named = |cluster: &&NamedCluster| cluster.name == context.cluster;
    kubeconfig.clusters.iter().find(named)?.cluster.as_ref()
}

/// Refuses where a file with a certificate or a key cannot be read to its end.
///
/// # Errors
/// One is missing, not a plain file, or too large.
pub(super) fn check_files(kubeconfig: &Kubeconfig, context: &Context) -> Result<(), FileError> {
    let cluster = cluster_of(kubeconfig, context);
    let named = |user: &&NamedAuthInfo| Some(&user.name) == context.user.as_ref();
    let user: Option<&AuthInfo> =
        kubeconfig.auth_infos.iter().find(named).and_then(|found| found.auth_info.as_ref());
    // What is in the kubeconfig itself comes first.
    let authority = cluster
        .filter(|cluster| cluster.certificate_authority_data.is_none())
        .and_then(|cluster| cluster.certificate_authority.as_ref());
    let certificate = user
        .filter(|user| user.client_certificate_data.is_none())
        .and_then(|user| user.client_certificate.as_ref());
    let key = user.filter(|user| user.client_key_data.is_none()).and_then(|user| user.client_key.as_ref());
    let mut paths = [authority, certificate, key].into_iter().flatten();
    paths.try_for_each(|path| files::check_plain(Path::new(path), MOST).map(drop))
}
