//! The images that the operator uses, for mirrors to copy along.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{By, Draft, Origin};
use super::input::Objects;
use super::pins::{self, VARIABLE};
use super::{Compat, codes};
use crate::finding::{Finding, Findings};
use crate::names::ImageRef;
use crate::parse::Object;
use crate::yaml::{Node, Step, steps};

/// More variables than this are counted in messages instead of listed.
const LISTED: usize = 4;

/// The host in the image names that operator-sdk's scaffold writes: it is reserved, and no registry.
const SCAFFOLD_HOST: &str = "example.com";
/// The repository of kubebuilder's `controller:latest`, which Docker Hub does not have.
const SCAFFOLD_REPOSITORY: (&str, &str) = ("docker.io", "library/controller");

/// An image, and what it is for.
struct Use<'m> {
    name: String,
    /// What to put before the name when another image has the same.
    prefix: String,
    image: Draft<'m>,
    origin: Origin<'m>,
}

/// The entries of `spec.relatedImages`, over those that somebody wrote down.
pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    written: Vec<Draft<'m>>,
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Vec<Draft<'m>> {
    let mut uses = Vec::new();
    for deployment in &objects.deployments {
        collect(deployment, compat, &mut uses, findings);
    }
    match compat {
        Some(Compat::OperatorSdk) => as_operator_sdk(uses),
        None => merge(uses, written),
    }
}

fn collect<'m>(
    deployment: &Object<'m, 'm>,
    compat: Option<Compat>,
    uses: &mut Vec<Use<'m>>,
    findings: &mut Findings,
) {
    let pod = steps!("spec", "template", "spec");
    let list = |key: &str| deployment.root.at(pod).and_then(|pod| pod.get(key)?.as_sequence()).unwrap_or(&[]);
    let containers: Vec<_> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|key| list(key).iter().enumerate().map(move |(at, container)| (key, at, container)))
        .collect();
    for (key, at, container) in &containers {
        let name = container.get("name").and_then(Node::as_str).unwrap_or("");
        let prefix = match compat {
            Some(_) if containers.len() == 1 => deployment.name().to_owned(),
            _ => format!("{}-{name}", deployment.name()),
        };
        let written = |node: &Node<'_>| Origin::written(By::Manifest, deployment.source, node.span);
        if let (Some(image), None) = (container.get("image"), compat) {
            let text = image.as_str().unwrap_or("");
            uses.push(Use {
                name: if name.is_empty() { deployment.name() } else { name }.to_owned(),
                prefix: deployment.name().to_owned(),
                image: Draft::new(text, written(image)),
                origin: written(container),
            });
        }
        let env = container.get("env").and_then(Node::as_sequence).unwrap_or(&[]);
        if compat.is_none() {
            report_others(deployment, env, findings);
        }
        for (index, variable) in env.iter().enumerate() {
            let variable_name = variable.get("name").and_then(Node::as_str).unwrap_or("");
            let Some(image_name) = variable_name.strip_prefix(VARIABLE) else { continue };
            let Some(value) = variable.get("value").filter(|node| node.as_str().is_some()) else {
                let path: Vec<Step<'_>> =
                    [pod as &[_], &[(*key).into(), (*at).into(), "env".into(), index.into()]].concat();
                let message = format!(
                    "`{variable_name}` names an image elsewhere, which `relatedImages` cannot follow"
                );
                let finding = deployment.finding(&codes::RELATED_IMAGE_UNKNOWN, message, &path);
                findings.push(finding.help("give the variable a `value`, or list the image under `relatedImages` in the package file"));
                continue;
            };
            uses.push(Use {
                name: image_name.to_lowercase().replace('_', "-"),
                prefix: prefix.clone(),
                image: Draft::new(value.as_str().unwrap_or(""), written(value)),
                origin: written(variable),
            });
        }
    }
}

/// Reports the variables of a container that name images and are not known to, in one finding.
fn report_others(deployment: &Object<'_, '_>, env: &[Node<'_>], findings: &mut Findings) {
    let text = |variable: &Node<'_>, key| variable.get(key).and_then(Node::as_str).unwrap_or("").to_owned();
    let others: Vec<_> = env
        .iter()
        .filter(|variable| !text(variable, "name").starts_with(VARIABLE))
        .filter(|variable| text(variable, "value").split_whitespace().any(is_image))
        .collect();
    let Some(first) = others.first() else { return };
    let names: Vec<_> = others.iter().map(|variable| format!("`{}`", text(variable, "name"))).collect();
    let listed = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = match names.len() {
        1 => format!("{listed} of `{}` names an image that is not among `relatedImages`", deployment.id()),
        count if count > LISTED => format!(
            "{count} variables of `{}` name images that are not among `relatedImages`: {listed}, …",
            deployment.id()
        ),
        _ => format!("{listed} of `{}` name images that are not among `relatedImages`", deployment.id()),
    };
    let finding = Finding::new(&codes::RELATED_IMAGE_UNKNOWN, message);
    let finding = finding.at(deployment.place_at(first.span)).subject(deployment.subject());
    findings.push(finding.help("list the images under `relatedImages` in the package file, or name the variables `RELATED_IMAGE_…`, so that mirrors copy them"));
}

/// Reports each image once that a scaffold wrote and nobody replaced.
pub(super) fn report_placeholders(csv: &Draft<'_>, compat: Option<Compat>, findings: &mut Findings) {
    // operator-sdk takes any image.
    if compat.is_some() {
        return;
    }
    let mut said = BTreeSet::new();
    let mut csv = csv.clone();
    pins::each(&mut csv, &mut |image| {
        let text = image.as_str().filter(|text| is_placeholder(text)).unwrap_or("");
        if text.is_empty() || !said.insert(text.to_owned()) {
            return;
        }
        let message = format!("`{text}` is the placeholder of a scaffold: no cluster can pull this image");
        let finding = image.finding(&codes::IMAGE_PLACEHOLDER, message);
        findings.push(finding.help(format!("pass `--image {text}=REGISTRY/NAME:TAG`")));
    });
}

/// Whether kubebuilder or operator-sdk writes an image like this into new projects.
fn is_placeholder(image: &str) -> bool {
    let Ok(image) = image.parse::<ImageRef>() else { return false };
    let is_latest = image.digest().is_none() && matches!(image.tag(), None | Some("latest"));
    let host = image.registry().split(':').next().unwrap_or("");
    host.eq_ignore_ascii_case(SCAFFOLD_HOST)
        || is_latest && (image.registry(), image.repository()) == SCAFFOLD_REPOSITORY
}

/// Whether a word is, or ends in (`KEY=IMAGE`), a reference with a registry's host and a tag or digest.
fn is_image(word: &str) -> bool {
    let word = word.rsplit_once('=').map_or(word, |(_, image)| image);
    let Some((host, rest)) = word.split_once('/') else { return false };
    let is_host = host.contains('.') || host.contains(':') || host == "localhost";
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | ':' | '@');
    let last = rest.rsplit('/').next().unwrap_or("");
    is_host
        && !host.is_empty()
        && !host.ends_with(':')
        && word.chars().all(plain)
        && (last.contains(':') && !last.ends_with(':'))
}

/// Each image once; what somebody wrote comes first and keeps its name.
fn merge<'m>(uses: Vec<Use<'m>>, written: Vec<Draft<'m>>) -> Vec<Draft<'m>> {
    let mut all: Vec<Draft<'m>> = Vec::new();
    let mut known = BTreeMap::<String, usize>::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for entry in written {
        let image = entry.text("image").to_owned();
        match known.get(&image) {
            Some(at) => all[*at].add_origin(entry.origin()),
            None => {
                names.insert(entry.text("name").to_owned(), image.clone());
                known.insert(image, all.len());
                all.push(entry);
            }
        }
    }
    for Use { name, prefix, image, origin } in uses {
        let reference = image.as_str().unwrap_or("").to_owned();
        if reference.is_empty() {
            continue;
        }
        if let Some(at) = known.get(&reference) {
            all[*at].add_origin(image.origin());
            continue;
        }
        let taken = names.get(&name).is_some_and(|other| *other != reference);
        let name = if taken { format!("{prefix}-{name}") } else { name };
        names.insert(name.clone(), reference.clone());
        known.insert(reference, all.len());
        let mut entry = Draft::map(origin);
        entry.set(&["name"], Draft::new(name, origin.by_rule("the container's or variable's name")));
        entry.set(&["image"], image);
        all.push(entry);
    }
    all
}

/// operator-sdk's way: variables alone, an image that stands under two names gets none.
fn as_operator_sdk<'m>(mut uses: Vec<Use<'m>>) -> Vec<Draft<'m>> {
    let mut seen = BTreeSet::new();
    uses.retain(|own| seen.insert((own.name.clone(), own.image.as_str().unwrap_or("").to_owned())));
    let (mut by_name, mut by_image) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, Vec<String>>::new());
    for own in &uses {
        *by_name.entry(own.name.clone()).or_default() += 1;
        by_image.entry(own.image.as_str().unwrap_or("").to_owned()).or_default().push(own.name.clone());
    }
    let mut all = Vec::new();
    for Use { name, prefix, image, origin } in uses {
        let names = by_image.get(image.as_str().unwrap_or("")).map(Vec::as_slice).unwrap_or_default();
        let shown = match names {
            [first, _, ..] if *first != name => continue,
            [_, _, ..] => String::new(),
            _ if by_name.get(&name).is_some_and(|count| *count > 1) => format!("{prefix}-{name}"),
            _ => name,
        };
        let mut entry = Draft::map(origin);
        entry.set(&["name"], Draft::new(shown, origin.by_rule("the variable's name")));
        entry.set(&["image"], image);
        all.push(entry);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_what_scaffolds_write() {
        for image in [
            "controller",
            "controller:latest",
            "example.com/memcached-operator:v0.0.1",
            "Example.com:5000/a/b",
            "example.com/op@sha256:0000000000000000000000000000000000000000000000000000000000000000",
        ] {
            assert!(is_placeholder(image), "{image}");
        }
        for image in [
            "controller:v1",
            "controller@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "quay.io/metallb/controller:latest",
            "library/controllers",
            "registry.example.com/op:v1",
            "example.community/op:v1",
            "quay.io/example.com/op",
            "CONTROLLER",
            "",
        ] {
            assert!(!is_placeholder(image), "{image}");
        }
    }
}
