//! Which files with manifests make the operator, where several make the same one: `deploy/` and `dist/install.yaml`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::parse::Object;
use olmkit_bundle::version::Version;

/// Directories of what tools make out of the other manifests.
const BUILT: [&str; 6] = ["dist", "build", "out", "release", "releases", "generated"];
/// Objects that an operator has once.
pub(super) const ONCE: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "CustomResourceDefinition"];

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

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn has_workload(&self) -> bool {
        self.has_workload
    }

    pub(super) fn has_crd(&self) -> bool {
        self.once.iter().any(|(kind, _)| kind == ONCE[3])
    }
}

/// Files that are read or left together.
struct Group {
    files: Vec<ManifestFile>,
    once: BTreeSet<(String, String)>,
    rank: Rank,
}

/// What is better comes first: something that runs, not made by a tool, of no version or of the highest, many objects, a
/// short path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_no_workload: bool,
    is_built: bool,
    is_of_version: bool,
    version: Reverse<Option<Version>>,
    objects: Reverse<usize>,
    depth: usize,
    path: String,
}

impl Group {
    fn new(path: &str, files: Vec<ManifestFile>) -> Self {
        let has_workload = files.iter().any(|file| file.has_workload);
        let is_built = path.split('/').any(|part| BUILT.contains(&part));
        let version = version_of(path);
        let rank = Rank {
            has_no_workload: !has_workload,
            is_built,
            is_of_version: version.is_some(),
            version: Reverse(version),
            objects: Reverse(files.iter().map(|file| file.objects).sum()),
            depth: path.matches('/').count(),
            path: path.to_owned(),
        };
        Self { once: files.iter().flat_map(|file| file.once.iter().cloned()).collect(), files, rank }
    }
}

/// The directories and files that make one operator. A directory is named as such where all below it is read, and none of
/// `others`: files that look like manifests by their names, and are something else.
pub(super) fn choose(files: Vec<ManifestFile>, others: &BTreeSet<String>) -> Sources {
    let parents: BTreeSet<String> = files.iter().map(|file| parent(&file.path)).collect();
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
    sources.again.extend(again.into_iter().map(|group| group.rank.path));
    for group in kept {
        let path = group.rank.path;
        let alone = |file: ManifestFile| Group::new(&file.path.clone(), vec![file]);
        let (kept, again) = first_of_each(group.files.into_iter().map(alone).collect());
        let again: Vec<_> = again.into_iter().map(|file| file.rank.path).collect();
        let mut others: BTreeSet<String> = below(others, &path).cloned().collect();
        others.extend(again.iter().cloned());
        sources.paths.extend(kept.iter().map(|file| shortest(&file.rank.path, &path, &others)));
        sources.again.extend(again);
    }
    sources
}

/// The directory to name for a file: the highest one from `top` down that holds none of `others`; else the file itself.
fn shortest(file: &str, top: &str, others: &BTreeSet<String>) -> String {
    let directories = file.match_indices('/').map(|(at, _)| &file[..at]);
    let mut inside = directories.filter(|own| *own == top || is_below(own, top));
    inside.find(|own| below(others, own).next().is_none()).unwrap_or(file).to_owned()
}

/// The version that a directory on a path is named as.
pub(super) fn version_of(path: &str) -> Option<Version> {
    path.split('/').find_map(|part| part.trim_start_matches('v').parse().ok())
}

/// Whether a path is in a directory, at any depth.
pub(super) fn is_below(path: &str, directory: &str) -> bool {
    directory == "." || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The paths that are in a directory, at any depth.
fn below<'p>(paths: &'p BTreeSet<String>, directory: &str) -> impl Iterator<Item = &'p String> {
    let start = format!("{directory}/");
    paths.range(start.clone()..).take_while(move |path| path.starts_with(&start))
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
        check_among(files, &[], expected);
    }

    #[track_caller]
    fn check_among(files: &[&str], others: &[&str], expected: &str) {
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
        let others = others.iter().map(|path| (*path).to_owned()).collect();
        let Sources { paths, again } = choose(files.iter().map(file).collect(), &others);
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
        let versions = ["v0.9.0/op.yaml: Deployment/op Role/x", "v0.10.0/op.yaml: Deployment/op"];
        check(&versions, "v0.10.0; v0.9.0");
        check(&[versions[0], versions[1], "deploy/op.yaml: Deployment/op"], "deploy; v0.10.0 v0.9.0");
    }

    #[test]
    fn a_directory_with_something_else_in_it_is_not_named() {
        let files = [
            "deploy/op.yaml: Deployment/op",
            "deploy/crds/a.yaml: CustomResourceDefinition/a",
            "deploy/crds/b.yaml: CustomResourceDefinition/b",
        ];
        check_among(&files, &["deploy.yaml", "deployed/x.yaml"], "deploy; ");
        check_among(&files, &["deploy/compose.yaml"], "deploy/crds deploy/op.yaml; ");
        check_among(&files, &["deploy/a/b/c.yaml"], "deploy/crds deploy/op.yaml; ");
        let all = "deploy/crds/a.yaml deploy/crds/b.yaml deploy/op.yaml; ";
        check_among(&files, &["deploy/crds/x.json"], all);
    }
}
