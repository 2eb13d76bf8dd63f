//! Which files with manifests make the operator, where several make the same one: `deploy/` and `dist/install.yaml`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::parse::Object;

/// Directories of what tools make out of the other manifests.
const BUILT: [&str; 6] = ["dist", "build", "out", "release", "releases", "generated"];
/// Objects that an operator has once.
const ONCE: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "CustomResourceDefinition"];

/// A file with manifests.
pub(super) struct ManifestFile {
    path: String,
    /// Kind and name of the objects that an operator has once.
    once: BTreeSet<(String, String)>,
    has_workload: bool,
    objects: usize,
}

/// What to read, and what says the same again.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sources {
    pub(super) paths: BTreeSet<String>,
    pub(super) again: BTreeSet<String>,
}

impl ManifestFile {
    pub(super) fn new<'o>(path: &str, objects: impl Iterator<Item = &'o Object<'o, 'o>>) -> Self {
        let mut file = Self { path: path.to_owned(), once: BTreeSet::new(), has_workload: false, objects: 0 };
        for object in objects {
            file.objects += 1;
            if ONCE.contains(&object.kind()) {
                file.has_workload |= object.kind() != ONCE[3];
                file.once.insert((object.kind().to_owned(), object.name().to_owned()));
            }
        }
        file
    }
}

/// Files that are read or left together.
struct Group {
    files: Vec<ManifestFile>,
    once: BTreeSet<(String, String)>,
    /// What is better comes first: something that runs, not made by a tool, many objects, a short path.
    rank: (bool, bool, Reverse<usize>, usize, String),
}

impl Group {
    fn new(path: &str, files: Vec<ManifestFile>) -> Self {
        let has_workload = files.iter().any(|file| file.has_workload);
        let is_built = path.split('/').any(|part| BUILT.contains(&part));
        let objects = files.iter().map(|file| file.objects).sum();
        let depth = path.matches('/').count();
        let rank = (!has_workload, is_built, Reverse(objects), depth, path.to_owned());
        Self { once: files.iter().flat_map(|file| file.once.iter().cloned()).collect(), files, rank }
    }
}

/// The directories and files that make one operator. A directory is named as such where all below it is read.
pub(super) fn choose(files: Vec<ManifestFile>) -> Sources {
    let parents: BTreeSet<String> = files.iter().map(|file| parent(&file.path)).collect();
    let is_below = |path: &str, directory: &str| path.starts_with(&format!("{directory}/"));
    let top = |path: &str| -> String {
        let own = parents.iter().find(|parent| *parent != "." && is_below(path, parent));
        own.cloned().unwrap_or_else(|| path.to_owned())
    };
    let mut groups = BTreeMap::<String, Vec<ManifestFile>>::new();
    for file in files {
        groups.entry(top(&file.path)).or_default().push(file);
    }
    let groups = groups.into_iter().map(|(path, files)| Group::new(&path, files)).collect();
    let (kept, again) = first_of_each(groups);
    let mut sources = Sources::default();
    sources.again.extend(again.into_iter().map(|group| group.rank.4));
    for group in kept {
        let path = group.rank.4;
        let alone = |file: ManifestFile| Group::new(&file.path.clone(), vec![file]);
        let (kept, again) = first_of_each(group.files.into_iter().map(alone).collect());
        if again.is_empty() {
            sources.paths.insert(path);
        } else {
            sources.paths.extend(kept.into_iter().map(|file| file.rank.4));
            sources.again.extend(again.into_iter().map(|file| file.rank.4));
        }
    }
    sources
}

/// The best groups of which no two have the same object, and the others.
fn first_of_each(mut groups: Vec<Group>) -> (Vec<Group>, Vec<Group>) {
    groups.sort_by(|a, b| a.rank.cmp(&b.rank));
    let mut seen = BTreeSet::new();
    groups.into_iter().partition(|group| {
        let is_new = group.once.is_disjoint(&seen);
        if is_new {
            seen.extend(group.once.iter().cloned());
        }
        is_new
    })
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or(".", |(parent, _)| parent).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines `PATH: KIND/NAME …`, and what is chosen of them: `PATH …; again PATH …`.
    #[track_caller]
    fn check(files: &[&str], expected: &str) {
        let file = |line: &&str| {
            let (path, objects) = line.split_once(": ").unwrap();
            let objects: Vec<_> = objects.split(' ').map(|own| own.split_once('/').unwrap()).collect();
            let once = objects.iter().filter(|(kind, _)| ONCE.contains(kind));
            ManifestFile {
                path: path.to_owned(),
                has_workload: objects.iter().any(|(kind, _)| *kind == "Deployment"),
                objects: objects.len(),
                once: once.map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())).collect(),
            }
        };
        let Sources { paths, again } = choose(files.iter().map(file).collect());
        let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(format!("{}; {}", list(paths), list(again)), expected);
    }

    #[test]
    fn one_source_of_each_operator() {
        let parts = [
            "deploy/crd.yaml: CustomResourceDefinition/a",
            "deploy/op.yaml: Deployment/op ServiceAccount/op",
        ];
        let whole =
            "dist/install.yaml: CustomResourceDefinition/a Deployment/op ServiceAccount/op Namespace/op";
        check(&[parts[0], parts[1], whole], "deploy; dist");
        check(&[parts[0], whole], "dist; deploy");
        check(
            &[parts[0], parts[1], "deploy/all.yaml: CustomResourceDefinition/a Deployment/op Role/x"],
            "deploy/all.yaml; deploy/crd.yaml deploy/op.yaml",
        );
        check(&["all.yaml: Deployment/op Role/x", "dev/op.yaml: Deployment/op"], "all.yaml; dev");
        check(
            &[
                "deploy/op.yaml: Deployment/op",
                "crds/a.yaml: CustomResourceDefinition/a",
                "crds/more/b.yaml: CustomResourceDefinition/b",
            ],
            "crds deploy; ",
        );
        check(&["a/op.yaml: Deployment/one", "b/op.yaml: Deployment/two"], "a b; ");
    }
}
