//! The metadata of an earlier bundle: its annotations, and the labels in `bundle.Dockerfile` beside it.

use std::collections::BTreeMap;
use std::path::Path;

use olmkit_bundle::annotations::{CHANNELS, DEFAULT_CHANNEL, PACKAGE, is_generated};
use olmkit_bundle::yaml;

use crate::files;

/// Where a bundle's annotations are, below its directory.
pub(super) const ANNOTATIONS_FILE: &str = "metadata/annotations.yaml";
/// Where other tools have the labels of a bundle's image: beside the bundle.
const DOCKERFILE: &str = "bundle.Dockerfile";

/// The annotations of the bundle in a directory; none where there is no bundle.
pub(super) fn annotations(bundle: &Path) -> BTreeMap<String, String> {
    parse(&files::read_text(&bundle.join(ANNOTATIONS_FILE)).unwrap_or_default())
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let Ok(document) = yaml::first_document(text) else { return BTreeMap::new() };
    let annotations = document.root.get("annotations").and_then(|node| node.as_mapping());
    let entries = annotations.into_iter().flatten();
    entries.filter_map(|entry| Some((entry.key.to_string(), entry.value.to_text()?.into()))).collect()
}

/// The labels that the Dockerfile of a bundle gives its image.
pub(super) fn labels(bundle: &Path) -> BTreeMap<String, String> {
    let text = files::read_text(&dockerfile(bundle)).unwrap_or_default();
    text.lines().filter_map(label).collect()
}

fn dockerfile(bundle: &Path) -> std::path::PathBuf {
    bundle.parent().unwrap_or(Path::new("")).join(DOCKERFILE)
}

/// The label of a line `LABEL key=value`, as other tools write them; a value may be in quotes.
fn label(line: &str) -> Option<(String, String)> {
    let (key, value) = line.trim().strip_prefix("LABEL ")?.trim().split_once('=')?;
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    Some((bare(key), bare(value)))
}

/// Where the labels in the Dockerfile beside a bundle differ from its annotations, a sentence each: which of the two an image
/// gets depends on the tool that builds it.
pub(super) fn differences(bundle: &Path, annotations: &str) -> Vec<String> {
    let annotations = parse(annotations);
    let is_compared = |key: &str| !is_generated(key) || [PACKAGE, CHANNELS, DEFAULT_CHANNEL].contains(&key);
    let labels = labels(bundle).into_iter().filter(|(key, _)| is_compared(key));
    let file = dockerfile(bundle);
    let file = file.display();
    let differences = labels.filter_map(|(key, value)| match annotations.get(&key) {
        Some(own) if *own == value => None,
        Some(own) => {
            Some(format!("`{file}` has the label `{key}={value}`, and the bundle has `{own}`: change one of them"))
        }
        None => Some(format!(
            "`{file}` has the label `{key}={value}`, which the bundle does not have: set it under `bundleAnnotations` in the package file"
        )),
    });
    differences.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_as_other_tools_write_them() {
        for (line, expected) in [
            ("LABEL a.b=v1", Some(("a.b", "v1"))),
            ("  LABEL  \"a.b\"=\"v4.12-v4.16\" ", Some(("a.b", "v4.12-v4.16"))),
            ("LABEL a.b='=v4.6'", Some(("a.b", "=v4.6"))),
            ("# LABEL a=b", None),
            ("COPY a b", None),
            ("LABEL a", None),
        ] {
            let found = label(line);
            assert_eq!(found.as_ref().map(|(key, value)| (key.as_str(), value.as_str())), expected, "{line}");
        }
    }
}
