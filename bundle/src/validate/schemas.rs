//! The examples of custom resources against the schemas of the CRDs beside them.

use super::examples::Examples;
use super::facts::Facts;
use crate::csv::GroupVersionKind;
use crate::parse::Csv;
use crate::schema::Schema;
use crate::schema::value::{self, Checked};
use crate::yaml::{self, Node};

/// Hands over what the schema of its version says about each example. Places are those in the annotation's text.
pub(super) fn each_example(
    facts: &Facts<'_, '_>,
    mut found: impl FnMut(Csv<'_, '_>, &Examples<'_>, &GroupVersionKind, Checked),
) {
    let (Some(csv), Some(examples)) = (facts.csv(), facts.examples()) else { return };
    if examples.list.is_err() {
        return;
    }
    let Ok(document) = yaml::first_document(examples.text()) else { return };
    for example in document.root.as_sequence().unwrap_or_default() {
        let text = |key| example.get(key).and_then(Node::as_str).unwrap_or("");
        let Some(gvk) = GroupVersionKind::parse(text("apiVersion"), text("kind")) else { continue };
        for (_, crd) in
            facts.readable_crds().filter(|(_, crd)| crd.group() == gvk.group && crd.kind() == gvk.kind)
        {
            let version = crd.versions().into_iter().find(|version| version.name == gvk.version);
            if let Some(schema) = version.and_then(|version| crd.schema(&version)) {
                found(csv, examples, &gvk, value::check(example, Schema(schema), true));
            }
        }
    }
}
