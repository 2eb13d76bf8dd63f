//! Names that a shell offers behind TAB: of contexts, and of what a cluster or a catalog has.
//!
//! Nobody waits for a shell: what does not answer at once, or fails, has no names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;
use serde_json::Value;

use crate::lifecycle::api::{Resource, known};
use crate::lifecycle::cluster::Cluster as _;
use crate::lifecycle::kubernetes::{self, Choice, Kubernetes};
use crate::limits::Limits;

/// How long a cluster may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The words of a command line that is not finished.
#[derive(Debug)]
pub struct Line {
    words: Vec<String>,
}

impl Line {
    /// A line of words; what shells put before a `--` is not part of it.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Self {
        let mut words: Vec<String> =
            words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if words.get(1).is_some_and(|word| word == "--") {
            words.drain(..2);
        }
        Self { words }
    }

    /// The value of a flag.
    fn flag(&self, names: &[&str]) -> Option<&str> {
        self.words.iter().enumerate().find_map(|(at, word)| {
            let (name, value) = word.split_once('=').unzip();
            match name {
                Some(name) if names.contains(&name) => value,
                _ if names.contains(&word.as_str()) => self.words.get(at + 1).map(String::as_str),
                _ => None,
            }
        })
    }

    fn kubeconfig(&self) -> Option<PathBuf> {
        self.flag(&["--kubeconfig"]).map(PathBuf::from)
    }

    /// The catalog that the line names: its first word after the verb that is a file or directory.
    fn catalog(&self) -> Option<CatalogFiles> {
        let named = self.words.iter().skip(3).map(PathBuf::from).find(|path| path.exists())?;
        CatalogFiles::load(&named).ok()
    }

    /// The names of a kind of object on the cluster of the line.
    fn objects(&self, kind: &Resource, namespace: Option<&str>) -> Vec<String> {
        let context = self.flag(&["--context"]).map(str::to_owned);
        let choice =
            Choice { kubeconfig: self.kubeconfig(), context, is_unattended: true, ..Choice::default() };
        let cluster = Kubernetes::connect_within(&choice, Limits::begin(PATIENCE));
        let Ok(mut cluster) = cluster else { return Vec::new() };
        let found = cluster.list(kind, namespace).unwrap_or_default();
        let name = |object: &Value| Some(object["metadata"]["name"].as_str()?.to_owned());
        found.iter().filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The contexts of the kubeconfig.
pub fn contexts(line: &Line) -> Vec<String> {
    kubernetes::contexts(line.kubeconfig().as_deref(), Limits::begin(PATIENCE)).unwrap_or_default()
}

/// The namespaces of the cluster.
pub fn namespaces(line: &Line) -> Vec<String> {
    line.objects(&known::NAMESPACE, None)
}

/// The operators of the cluster, by their Subscriptions.
pub fn subscriptions(line: &Line) -> Vec<String> {
    line.objects(&known::SUBSCRIPTION, line.flag(&["-n", "--namespace"]))
}

/// The CatalogSources of the cluster.
pub fn catalog_sources(line: &Line) -> Vec<String> {
    line.objects(&known::CATALOG_SOURCE, line.flag(&["-n", "--namespace"]))
}

/// The packages of the catalog.
pub fn packages(line: &Line) -> Vec<String> {
    let Some(files) = line.catalog() else { return Vec::new() };
    let catalog = Catalog::parse(&files);
    let names: BTreeSet<String> = catalog.packages.iter().map(|package| package.name.to_string()).collect();
    names.into_iter().collect()
}

/// The channels of the catalog, of the package that the line names.
pub fn channels(line: &Line) -> Vec<String> {
    let Some(files) = line.catalog() else { return Vec::new() };
    let catalog = Catalog::parse(&files);
    let is_named = |package: &str| line.words.iter().any(|word| word == package);
    let one_is = catalog.packages.iter().any(|package| is_named(&package.name));
    let of = catalog.channels.iter().filter(|channel| !one_is || is_named(&channel.package));
    of.map(|channel| channel.name.to_string()).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_knows_its_flags() {
        let line = Line::of(
            ["olmkit", "--", "olmkit", "operator", "status", "-n", "olm", "--context=a", ""].map(Into::into),
        );
        assert_eq!(line.flag(&["-n", "--namespace"]), Some("olm"));
        assert_eq!(line.flag(&["--context"]), Some("a"));
        assert_eq!(line.flag(&["--kubeconfig"]), None);
    }

    #[test]
    fn packages_and_channels_are_those_of_the_catalog() {
        let dir = tempfile::tempdir().unwrap();
        let text = "{schema: olm.package, name: redis, defaultChannel: stable}\n---\n\
                    {schema: olm.channel, package: redis, name: stable}\n---\n\
                    {schema: olm.package, name: etcd, defaultChannel: alpha}\n---\n\
                    {schema: olm.channel, package: etcd, name: alpha}\n";
        std::fs::write(dir.path().join("catalog.yaml"), text).unwrap();
        let line = |words: &[&str]| {
            let catalog = dir.path().as_os_str().to_owned();
            let head = ["olmkit", "catalog", "promote"].map(OsString::from);
            Line::of(head.into_iter().chain([catalog]).chain(words.iter().map(OsString::from)))
        };
        assert_eq!(packages(&line(&[])), ["etcd", "redis"]);
        assert_eq!(channels(&line(&[])), ["alpha", "stable"]);
        assert_eq!(channels(&line(&["redis", "--channel"])), ["stable"]);
    }
}
