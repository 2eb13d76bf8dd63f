//! Findings about what kustomize and helm print: they name the object, since nobody has a file whose line could be opened.

use std::collections::BTreeMap;
use std::ops::Range;

use olmkit_bundle::finding::{Finding, Place};
use olmkit_bundle::source::Source;
use olmkit_bundle::yaml::{self, Document};

use super::manifests::Named;

/// How the name of what kustomize prints begins; a directory follows.
pub(super) const KUSTOMIZE: &str = "kustomize ";
/// The same for helm.
pub(super) const HELM: &str = "helm ";

/// The objects of a text by the bytes that they take.
type Objects = Vec<(Range<u32>, String)>;

/// Puts `DIRECTORY: KIND/NAME` in place of the lines of such texts.
pub(super) fn name_objects(findings: &mut [Finding], texts: &[Named]) {
    let mut known: BTreeMap<&str, (Source<'_>, Objects)> = BTreeMap::new();
    let mut name = |place: &mut Place| {
        let Some((path, text)) = texts.iter().find(|(path, _)| *path == place.path) else { return };
        let directory = [KUSTOMIZE, HELM].iter().find_map(|program| path.strip_prefix(program));
        let Some(directory) = directory else { return };
        let Some(position) = place.position else { return };
        let read = || (Source::new(path.as_str(), text), objects(text));
        let (source, objects) = known.entry(path.as_str()).or_insert_with(read);
        let Some(start) = source.line_start(position.line) else { return };
        if let Some((_, object)) = objects.iter().find(|(range, _)| range.contains(&start)) {
            *place = Place::file(format!("{directory}: {object}"));
        }
    };
    for finding in findings {
        finding.place.iter_mut().chain(&mut finding.other).for_each(&mut name);
    }
}

fn objects(text: &str) -> Objects {
    let object = |document: Document<'_>| {
        let kind = document.root.get("kind")?.as_str()?;
        let name = document.root.get("metadata").and_then(|own| own.get("name")?.as_str()).unwrap_or("");
        Some((document.span.start..document.span.end, format!("{kind}/{name}")))
    };
    yaml::documents(text).filter_map(|document| object(document.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use olmkit_bundle::generate::codes;
    use olmkit_bundle::source::Span;

    use super::*;

    #[test]
    fn lines_of_a_stream_become_its_objects() {
        let text = "kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata:\n  name: b\nspec: 1\n---\nx\n";
        let check = |path: &str, at: &str, expected: &str| {
            let span = Span::at(text.find(at).unwrap());
            let found = Finding::new(&codes::SYNTAX, "").at(Place::new(&Source::new(path, text), span));
            let mut found = [found];
            name_objects(&mut found, &[(path.to_owned(), text.to_owned())]);
            assert_eq!(found[0].place.as_ref().unwrap().to_string(), expected);
        };
        check("kustomize config/default", "spec", "config/default: B/b");
        check("helm chart", "metadata", "chart: A/a");
        // What is no object keeps its line, and so does what stands in a file.
        check("helm chart", "x", "helm chart:9:1");
        check("deploy.yaml", "spec", "deploy.yaml:7:1");
    }
}
