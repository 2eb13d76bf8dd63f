//! What kustomize and helm would fetch: named before they do, and refused with `--offline`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use olmkit_bundle::yaml::{self, Node};

use super::manifests::Inputs;
use crate::exit::Failure;
use crate::files;
use crate::progress;

/// The names of a kustomization, in the order in which kustomize looks for them.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// More kustomizations than this are not followed; kustomize itself says what is wrong with a circle.
const MAX_KUSTOMIZATIONS: usize = 1000;

/// Something that a program would fetch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Remote {
    /// The address, as it is written.
    address: String,
    /// Where it is named.
    by: String,
}

/// Says what will be fetched, or refuses it.
///
/// # Errors
/// Something would be fetched, and nothing may be.
pub(super) fn check(inputs: &Inputs, offline: bool) -> Result<(), Failure> {
    let remotes = remotes(inputs);
    match remotes.first() {
        Some(Remote { address, by }) if offline => {
            let error = format!("`{address}` would be fetched, but --offline is given (named by {by})");
            Err(Failure::failed(error).help("download it, and name the local path instead"))
        }
        _ => {
            remotes.iter().for_each(|Remote { address, by }| {
                progress::say(&format!("fetching `{address}`, named by {by}"));
            });
            Ok(())
        }
    }
}

/// Everything that would be fetched, in order.
fn remotes(inputs: &Inputs) -> BTreeSet<Remote> {
    let mut found = BTreeSet::new();
    let mut note = |path: &Path, by: &str| {
        found.insert(Remote { address: path.display().to_string(), by: by.to_owned() });
    };
    let helm = &inputs.helm;
    // helm takes `NAME/CHART` for a chart of a configured repository, if there is no such directory.
    let is_of_repository = |chart: &Path| {
        let is_path = chart.is_absolute() || chart.as_os_str().as_encoded_bytes().starts_with(b".");
        !is_path && !chart.exists() && chart.components().count() > 1
    };
    let charts = helm.charts.iter().filter(|chart| has_scheme(chart) || is_of_repository(chart));
    charts.for_each(|chart| note(chart, "`helm`"));
    helm.values.iter().filter(|values| has_scheme(values)).for_each(|values| note(values, "`helmValues`"));
    let (remote, local): (Vec<&PathBuf>, Vec<_>) =
        inputs.kustomize.iter().partition(|directory| is_remote(&directory.display().to_string()));
    remote.iter().for_each(|directory| note(directory, "`kustomize`"));

    let mut open: Vec<PathBuf> = local.into_iter().cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(directory) = open.pop() {
        let Ok(real) = directory.canonicalize() else { continue };
        if seen.len() >= MAX_KUSTOMIZATIONS || !seen.insert(real) {
            continue;
        }
        let file = KUSTOMIZATIONS.iter().map(|name| directory.join(name)).find(|file| file.is_file());
        let Some((file, text)) = file.and_then(|file| Some((file.clone(), files::read_text(&file).ok()?)))
        else {
            continue;
        };
        // One that cannot be read is kustomize's to complain about.
        let Ok(document) = yaml::first_document(&text) else { continue };
        for value in texts(&document.root) {
            let below = directory.join(value);
            if is_remote(value) {
                let by = format!("`{}`", file.display());
                found.insert(Remote { address: value.to_owned(), by });
            } else if below.is_dir() {
                open.push(below);
            }
        }
    }
    found
}

/// Every text of a kustomization that may be a path: kustomize takes addresses wherever it takes paths. Images, labels and the like
/// are no paths, and neither are patches that stand in the file itself.
fn texts<'n>(root: &'n Node<'_>) -> Vec<&'n str> {
    const NO_PATHS: [&str; 12] = [
        "apiVersion",
        "buildMetadata",
        "commonAnnotations",
        "commonLabels",
        "images",
        "kind",
        "labels",
        "metadata",
        "namePrefix",
        "nameSuffix",
        "namespace",
        "replicas",
    ];
    let mut texts = Vec::new();
    let top = root.as_mapping().into_iter().flatten();
    let mut open: Vec<&Node<'_>> =
        top.filter(|entry| !NO_PATHS.contains(&entry.key.as_ref())).map(|entry| &entry.value).collect();
    while let Some(node) = open.pop() {
        texts.extend(node.as_str().filter(|text| !text.contains('\n')));
        open.extend(node.as_sequence().into_iter().flatten());
        let fields = node.as_mapping().into_iter().flatten();
        // Literals of generators are values, not paths.
        open.extend(fields.filter(|entry| entry.key != "literals").map(|entry| &entry.value));
    }
    texts
}

/// Whether a helm plugin or helm itself would fetch it.
fn has_scheme(path: &Path) -> bool {
    path.to_str().is_some_and(|path| {
        path.split_once("://")
            .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    })
}

/// Whether kustomize would fetch it: an address of a file or a repository (kustomize, `api/internal/git/repospec.go`).
fn is_remote(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let hosts = ["github.com/", "github.com:", "gitlab.com/", "bitbucket.org/", "gh:", "git::", "git@"];
    lower.contains("://")
        || hosts.iter().any(|host| lower.starts_with(host))
        || [".git/", ".git?", "?ref=", "?version=", "/_git/"].iter().any(|sign| lower.contains(sign))
        || lower.ends_with(".git")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::generate::Helm;

    #[test]
    fn what_would_be_fetched_is_found_in_every_kustomization() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "overlay/kustomization.yaml",
            "resources: [../base, 'https://example.com/a.yaml', all.yaml]\n\
             images: [{name: github.com/not/a/base}]\n\
             patches: [{path: 'git::ssh://git@example.com/p'}, {patch: \"a: https://example.com\\nb: c\\n\"}]\n\
             configMapGenerator: [{name: x, files: ['github.com/example/files'], literals: ['url=https://no']}]\n",
        );
        write("base/Kustomization", "components: ['example.com/org/repo.git/dir?ref=v1', ../overlay]\n");
        write("chart/Chart.yaml", "name: c\n");
        let inputs = Inputs {
            kustomize: vec![root.path().join("overlay"), "github.com/example/whole".into()],
            helm: Helm {
                charts: vec![
                    root.path().join("chart"),
                    "oci://example.com/chart".into(),
                    "repo/chart".into(),
                ],
                values: vec!["values.yaml".into(), "https://example.com/values.yaml".into()],
                ..Helm::default()
            },
            ..Inputs::default()
        };
        let found: Vec<_> = remotes(&inputs).into_iter().map(|remote| remote.address).collect();
        assert_eq!(
            found,
            [
                "example.com/org/repo.git/dir?ref=v1",
                "git::ssh://git@example.com/p",
                "github.com/example/files",
                "github.com/example/whole",
                "https://example.com/a.yaml",
                "https://example.com/values.yaml",
                "oci://example.com/chart",
                "repo/chart",
            ]
        );
        let failure = check(&inputs, true).unwrap_err().to_string();
        assert!(failure.contains("would be fetched, but --offline is given"), "{failure}");
        assert!(
            check(&Inputs { kustomize: vec![root.path().join("chart")], ..Inputs::default() }, true).is_ok()
        );
    }
}
