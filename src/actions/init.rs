//! `bundle init`: looks at a directory and writes a package file for what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use olmkit_bundle::crd::Crd;
use olmkit_bundle::generate::init::{Found, package_file};
use olmkit_bundle::generate::{Base, CargoFile, Manifests};
use olmkit_bundle::parse::Object;
use olmkit_bundle::source::Source;

use crate::exit::Failure;
use crate::files;
use crate::report::InitAnswer;

/// Where to look, and what to start from.
#[derive(Debug)]
pub struct Request {
    /// The directory of the operator.
    pub directory: PathBuf,
    /// A ClusterServiceVersion whose content becomes the package file.
    pub from_csv: Option<PathBuf>,
    /// The name of the package file, in the directory.
    pub package_file: String,
}

/// Directories whose YAML is not the operator's: what tools make and fetch, and tests.
const NOT_OURS: [&str; 6] = ["target", "node_modules", "vendor", "bundle", "tests", "testdata"];
/// More files than this are not looked at.
const MOST_FILES: usize = 10_000;

/// What the YAML files of a directory are.
#[derive(Default)]
struct Survey {
    manifests: BTreeSet<String>,
    samples: BTreeSet<String>,
    kustomize: BTreeSet<String>,
    helm: BTreeSet<String>,
    kinds: BTreeSet<String>,
    base: Option<String>,
}

/// Writes the package file, and the files that it takes out of a ClusterServiceVersion. Nothing is overwritten.
///
/// # Errors
/// When a file is there already, cannot be read, or cannot be written.
pub fn run(request: Request) -> Result<InitAnswer, Failure> {
    let directory = &request.directory;
    let cargo_path = directory.join("Cargo.toml");
    let cargo_text = if cargo_path.is_file() { Some(files::read_text(&cargo_path)?) } else { None };
    let cargo = cargo_text
        .as_deref()
        .map(|text| CargoFile::parse(Source::new(cargo_path.display().to_string(), text)));
    let cargo = cargo.and_then(Result::ok).filter(CargoFile::has_package);
    let survey = Survey::of(directory)?;
    let from_csv = request.from_csv.as_deref();
    let base_path =
        from_csv.map(Path::to_owned).or_else(|| survey.base.as_ref().map(|path| directory.join(path)));
    let base_text = base_path.as_deref().map(files::read_text).transpose()?;
    let source = base_path.as_deref().zip(base_text.as_deref());
    let source = source.map(|(path, text)| Source::new(path.display().to_string(), text));
    let manifests = Manifests::parse(source.into_iter().collect());
    let csv = match base_path.is_some().then(|| Base::of(&manifests)).transpose() {
        Ok(csv) => csv,
        Err(finding) => {
            return Err(Failure::no(finding.message.clone()).at(finding.place.clone()));
        }
    };
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    // What kustomize or Helm make is whole; the files that they make it of are not.
    let made = !survey.kustomize.is_empty() || !survey.helm.is_empty();
    let found = Found {
        cargo: cargo.as_ref(),
        csv: csv.as_ref(),
        base: survey.base.clone().filter(|_| from_csv.is_none()),
        manifests: if made { Vec::new() } else { list(&survey.manifests) },
        samples: list(&survey.samples),
        kustomize: list(&survey.kustomize),
        helm: list(&survey.helm),
        kinds: list(&survey.kinds),
    };
    let initial = package_file(&found);
    let mut all = BTreeMap::from([(request.package_file, initial.text.into_bytes())]);
    all.extend(initial.files);
    for name in all.keys() {
        let path = directory.join(name);
        if path.exists() {
            return Err(Failure::no(files::FileError::Exists { path })
                .help("remove it, or give another directory or --package-file"));
        }
    }
    for (name, bytes) in &all {
        files::write(&directory.join(name), bytes)?;
    }
    Ok(InitAnswer { directory: request.directory, files: all.into_keys().collect() })
}

impl Survey {
    fn of(directory: &Path) -> Result<Self, Failure> {
        let list = |source| files::FileError::List { path: directory.to_owned(), source };
        let all = files::below(directory).map_err(list)?;
        let name = |path: &Path| path.strip_prefix(directory).unwrap_or(path).to_string_lossy().into_owned();
        let ours = |path: &&PathBuf| !name(path).split('/').any(|part| NOT_OURS.contains(&part));
        let files: Vec<&PathBuf> = all.iter().filter(ours).take(MOST_FILES).collect();
        let mut survey = Self::default();
        let mut read = Vec::new();
        for path in files {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let parent =
                path.parent().map(name).filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".into());
            match file.as_ref() {
                "Chart.yaml" => drop(survey.helm.insert(parent)),
                "kustomization.yaml" | "kustomization.yml" if parent == "config/default" => {
                    survey.kustomize.insert(parent);
                }
                _ if path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json") => {
                    // What is not text is no manifest.
                    if let Ok(text) = files::read_text(path) {
                        read.push((name(path), parent, text));
                    }
                }
                _ => {}
            }
        }
        survey.classify(&read);
        Ok(survey)
    }

    fn classify(&mut self, files: &[(String, String, String)]) {
        let in_chart = |path: &str, charts: &BTreeSet<String>| {
            charts.iter().any(|chart| chart == "." || path.starts_with(&format!("{chart}/")))
        };
        let parsed: Vec<_> = files
            .iter()
            .filter(|(path, _, _)| !in_chart(path, &self.helm))
            .map(|(path, parent, text)| {
                (path, parent, Manifests::parse(vec![Source::new(path.as_str(), text)]))
            })
            .collect();
        let mut groups = BTreeSet::new();
        for object in parsed.iter().flat_map(|(_, _, manifests)| manifests.objects()) {
            if object.kind() == "CustomResourceDefinition" {
                let crd = Crd::from(object);
                self.kinds.insert(crd.kind().into_owned());
                groups.insert(crd.group().into_owned());
            }
        }
        for (path, parent, manifests) in &parsed {
            let is_csv = |object: &Object<'_, '_>| object.kind() == "ClusterServiceVersion";
            let is_sample = |object: &Object<'_, '_>| {
                object.api_version().split_once('/').is_some_and(|(group, _)| groups.contains(group))
            };
            let objects: Vec<_> =
                manifests.objects().filter(|object| !object.api_version().is_empty()).collect();
            let is_tool =
                |object: &Object<'_, '_>| object.api_version().starts_with("kustomize.config.k8s.io");
            if objects.is_empty() || objects.iter().any(is_tool) {
                continue;
            }
            if objects.iter().all(is_csv) {
                if parent.ends_with("bases") {
                    self.base = Some((*path).clone());
                }
            } else if objects.iter().all(is_sample) {
                self.samples.insert((*parent).clone());
            } else {
                self.manifests.insert((*parent).clone());
            }
        }
        let mine = self.manifests.clone();
        self.samples.retain(|parent| !mine.contains(parent));
    }
}
