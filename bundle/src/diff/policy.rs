//! What a package promises of its versions: which Kubernetes and which operands they support, and how long something is
//! deprecated before it is removed. A new version is held against these promises, and its number against its changes.

mod bump;
mod notice;

use schemars::JsonSchema;
use serde::Deserialize;

use super::codes;
use crate::csv::annotation;
use crate::finding::{Finding, Findings, Place};
use crate::parse::{Bundle, Csv};
use crate::validate::removed_in;
use crate::version::{Version, VersionRange, parse_tolerant};
use crate::yaml::{Node, Step, Value, first_document, steps};

pub(super) use bump::check as check_bump;

/// What every version of the package promises; `bundle diff --package-file` checks it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySettings {
    /// The versions of Kubernetes that every version supports, such as `>=1.29.0 <1.36.0`.
    pub kubernetes: String,
    /// The programs that the operator runs, and their versions that are supported.
    pub operands: Vec<OperandSettings>,
    /// For how many minor versions a field or a version of an API is deprecated before it is removed.
    pub deprecation_notice: Option<u32>,
}

/// A program that the operator runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperandSettings {
    /// What it is called.
    pub name: String,
    /// The repository of its images, such as `library/redis`, with or without the registry.
    pub image: String,
    /// Its versions that are supported, such as `>=7.0.0 <9.0.0`.
    pub versions: String,
}

/// The promises, read.
#[derive(Clone, Debug)]
pub struct Policy {
    kubernetes: Option<VersionRange>,
    operands: Vec<Operand>,
    notice: usize,
}

#[derive(Clone, Debug)]
struct Operand {
    name: String,
    image: String,
    versions: VersionRange,
}

/// A value of a policy that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// Where it stands in the package file.
    pub path: Vec<Step<'static>>,
    /// What is wrong with it.
    pub message: String,
}

impl PolicySettings {
    /// Reads the ranges.
    ///
    /// # Errors
    /// A text that is no range, or an operand without an image.
    pub fn parse(&self) -> Result<Policy, PolicyError> {
        let range = |text: &str, path: &[Step<'static>]| {
            text.parse::<VersionRange>()
                .map_err(|error| PolicyError { path: path.to_vec(), message: error.to_string() })
        };
        let kubernetes = match self.kubernetes.as_str() {
            "" => None,
            text => Some(range(text, steps!("policy", "kubernetes"))?),
        };
        let operand = |(at, operand): (usize, &OperandSettings)| {
            let path = |key| [Step::Key("policy"), Step::Key("operands"), Step::Index(at), Step::Key(key)];
            if operand.image.is_empty() {
                let message = "an operand has no `image`, by which its versions are found".to_owned();
                return Err(PolicyError { path: path("image").to_vec(), message });
            }
            let name = if operand.name.is_empty() { &operand.image } else { &operand.name };
            let versions = range(&operand.versions, &path("versions"))?;
            Ok(Operand { name: name.clone(), image: operand.image.clone(), versions })
        };
        let operands = self.operands.iter().enumerate().map(operand).collect::<Result<_, _>>()?;
        Ok(Policy { kubernetes, operands, notice: self.deprecation_notice.unwrap_or(0) as usize })
    }
}

/// Holds a new version against the policy. `history` are all known versions of the package, for how long something has been
/// deprecated; without any, that of the old version has to do.
pub(super) fn check(
    policy: &Policy,
    (old, old_csv): (&Bundle<'_>, &Csv<'_, '_>),
    (new, new_csv): (&Bundle<'_>, &Csv<'_, '_>),
    history: &[&Bundle<'_>],
    findings: &mut Findings,
) {
    if let Some(supported) = &policy.kubernetes {
        kubernetes(supported, (old_csv, new, new_csv), findings);
    }
    operands(&policy.operands, new, findings);
    if policy.notice > 0 {
        notice::check(policy.notice, (old, old_csv), (new, new_csv), history, findings);
    }
}

/// The minor versions of Kubernetes that may be meant.
const MINORS: u64 = 100;
/// A patch version that none has.
const LAST_PATCH: u64 = 999;

fn kubernetes(
    supported: &VersionRange,
    (old, new, new_csv): (&Csv<'_, '_>, &Bundle<'_>, &Csv<'_, '_>),
    findings: &mut Findings,
) {
    let path = steps!("spec", "minKubeVersion");
    if let Ok(needed) = parse_tolerant(&new_csv.typed.spec.min_kube_version) {
        let before = needed.patch.checked_sub(1).map(|patch| Version { patch, ..needed.clone() });
        let minors = (0..=needed.minor).map(|minor| Version::new(1, minor, 0));
        let left_out = minors.chain(before).find(|one| supported.contains(one) && *one < needed);
        if let Some(left_out) = left_out {
            let message = format!(
                "the package file promises to support Kubernetes {left_out}, and the bundle needs {needed}"
            );
            let before = old.object.place(path).label("before");
            let finding = Finding::new(&codes::POLICY_KUBERNETES_BROKEN, message);
            let finding =
                finding.at(new_csv.object.place(path)).and(before).subject(new_csv.object.subject());
            findings.push(finding.help(HELP_KUBERNETES));
        }
    }
    for object in new.objects() {
        let (version, kind) = (object.api_version(), object.kind());
        let Some(minor) = removed_in(version, kind) else { continue };
        let mut without =
            (minor..MINORS).flat_map(|minor| [0, LAST_PATCH].map(|patch| Version::new(1, minor, patch)));
        if without.any(|one| supported.contains(&one)) {
            let message = format!(
                "the package file promises to support Kubernetes 1.{minor}, which has no `{kind}` of `{version}`"
            );
            let finding = Finding::new(&codes::POLICY_KUBERNETES_BROKEN, message);
            let place = object.place(steps!("apiVersion"));
            let finding = finding.at(place).and(old.object.place(path)).subject(object.id());
            findings.push(finding.help(HELP_KUBERNETES));
        }
    }
}

const HELP_KUBERNETES: &str = "change the bundle, or `policy.kubernetes` in the package file";

/// The images of operands, wherever the bundle names them: defaults of fields, variables, related images, examples.
fn operands(operands: &[Operand], new: &Bundle<'_>, findings: &mut Findings) {
    if operands.is_empty() {
        return;
    }
    for object in new.objects() {
        let mut images = Vec::new();
        collect_texts(object.root, &mut |text, node| {
            images.push((text.to_owned(), object.place_at(node.span)))
        });
        for key in [annotation::ALM_EXAMPLES, annotation::OLM_EXAMPLES] {
            let path = steps!("metadata", "annotations", key);
            let Some(examples) = object.root.at(path).and_then(Node::as_str) else { continue };
            let Ok(document) = first_document(examples) else { continue };
            let place = object.place(path);
            collect_texts(&document.root, &mut |text, _| images.push((text.to_owned(), place.clone())));
        }
        let mut known: Vec<(String, Option<u32>)> = Vec::new();
        for (image, place) in images {
            let Some((operand, version)) = operands.iter().find_map(|one| Some((one, one.version(&image)?)))
            else {
                continue;
            };
            let line = place.position.map(|position| position.line);
            if operand.versions.contains(&version) || known.contains(&(image.clone(), line)) {
                continue;
            }
            known.push((image.clone(), line));
            let Operand { name, versions, .. } = operand;
            let message = format!(
                "the package file promises to support {name} `{versions}`, and the bundle names `{image}`"
            );
            let finding = Finding::new(&codes::POLICY_OPERAND_UNSUPPORTED, message);
            let help = "name a supported version, or change `policy.operands` in the package file";
            findings.push(finding.at(place).subject(object.id()).help(help));
        }
    }
}

impl Operand {
    /// The version in the tag of an image of this operand; none for other texts, and for tags that are no versions.
    fn version(&self, text: &str) -> Option<Version> {
        let image = text.split('@').next()?;
        let (repository, tag) = image.rsplit_once(':')?;
        // Without a slash it may be a host and its port.
        if !repository.contains('/') && !tag.contains('.') {
            return None;
        }
        let (repository, own) = (full(repository), full(&self.image));
        // A policy that names no registry is about every one of them.
        let has_registry = own == self.image;
        let own = if has_registry { own.as_str() } else { self.image.as_str() };
        let is_it = repository.strip_suffix(own);
        // Tags such as `7.2.5-alpine` name a variant of a version, not what comes before it.
        let tag = tag.split('-').next()?;
        is_it
            .filter(|before| before.is_empty() || before.ends_with('/'))
            .and_then(|_| parse_tolerant(tag).ok())
    }
}

/// A repository with the registry that container runtimes add, as `redis` is `docker.io/library/redis`.
fn full(repository: &str) -> String {
    match repository.split_once('/') {
        Some(("docker.io", name)) if !name.contains('/') => format!("docker.io/library/{name}"),
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => repository.to_owned(),
        Some(_) => format!("docker.io/{repository}"),
        None => format!("docker.io/library/{repository}"),
    }
}

fn collect_texts<'a>(node: &Node<'a>, take: &mut impl FnMut(&str, &Node<'a>)) {
    match &node.value {
        Value::String(text) => take(text, node),
        Value::Sequence(items) => items.iter().for_each(|item| collect_texts(item, take)),
        Value::Mapping(map) => map.into_iter().for_each(|entry| collect_texts(&entry.value, take)),
        _ => {}
    }
}

/// The place of a bundle's version.
fn version_place(csv: &Csv<'_, '_>) -> Place {
    csv.object.place(steps!("spec", "version"))
}
