//! Custom resources of the old version against the schemas of the new one: what the API server would refuse or drop.

use std::collections::BTreeSet;

use super::codes;
use crate::crd::Crd;
use crate::csv::{GroupVersionKind, annotation};
use crate::finding::{Code, Finding, Findings, Place};
use crate::parse::{Csv, Object};
use crate::schema::Schema;
use crate::schema::value::{Checked, check};
use crate::yaml::{Node, first_document, steps};

/// The CRDs of both versions.
pub(super) struct Crds<'c, 'b, 'a> {
    pub(super) old: &'c [Object<'b, 'a>],
    pub(super) new: &'c [Object<'b, 'a>],
}

/// Checks the examples that the old ClusterServiceVersion carries.
pub(super) fn examples(csv: &Csv<'_, '_>, crds: &Crds<'_, '_, '_>, findings: &mut Findings) {
    let keys = [annotation::ALM_EXAMPLES, annotation::OLM_EXAMPLES];
    let Some((key, text)) = keys.into_iter().find_map(|key| Some((key, csv.typed.annotation(key)?))) else {
        return;
    };
    let Ok(document) = first_document(text) else { return };
    let place = csv.object.place(steps!("metadata", "annotations", key));
    for example in document.root.as_sequence().unwrap_or_default() {
        // Examples of other kinds are the business of `bundle validate`.
        let _ = sample(example, &place, crds, findings);
    }
}

/// Checks one custom resource. Returns what it is if no CRD of the new version has its kind and version.
pub(super) fn sample(
    sample: &Node<'_>,
    place: &Place,
    crds: &Crds<'_, '_, '_>,
    findings: &mut Findings,
) -> Option<String> {
    let text = |key: &str| sample.get(key).and_then(Node::as_str).unwrap_or_default();
    let name = sample.at(steps!("metadata", "name")).and_then(Node::as_str).unwrap_or("without a name");
    let Some(gvk) = GroupVersionKind::parse(text("apiVersion"), text("kind")) else {
        return Some("a document that is no Kubernetes object".to_owned());
    };
    let Some((next, (span, schema))) =
        find(crds.new, &gvk).and_then(|next| Some((next, schema(next, &gvk)?)))
    else {
        return Some(format!("`{}/{name}` of `{}`", gvk.kind, text("apiVersion")));
    };
    let after = check(sample, Schema(schema), true);
    // What was wrong before is not the upgrade's doing.
    let before = find(crds.old, &gvk).and_then(|crd| schema_of(crd, &gvk));
    let before = before.map(|schema| check(sample, Schema(schema), true)).unwrap_or_default();
    let known = said(&before);
    let mut push = |code: &'static Code, message: String| {
        findings.push(
            Finding::new(code, message)
                .at(next.place_at(span))
                .and(place.clone().label("the sample"))
                .subject(next.id()),
        );
    };
    for problem in after
        .problems
        .iter()
        .filter(|problem| !known.contains(&(problem.path.as_str(), problem.message.as_str())))
    {
        let message =
            format!("`{}/{name}` is no longer valid: `{}`: {}", gvk.kind, problem.path, problem.message);
        push(&codes::SAMPLE_REFUSED, message);
    }
    for (problem, _) in &after.unknown {
        if !known.contains(&(problem.path.as_str(), problem.message.as_str())) {
            let message = format!("`{}/{name}` loses a field: {}", gvk.kind, problem.message);
            push(&codes::SAMPLE_PRUNED, message);
        }
    }
    None
}

fn said(checked: &Checked) -> BTreeSet<(&str, &str)> {
    let problems = checked.problems.iter().chain(checked.unknown.iter().map(|(problem, _)| problem));
    problems.map(|problem| (problem.path.as_str(), problem.message.as_str())).collect()
}

fn find<'b, 'a>(crds: &[Object<'b, 'a>], gvk: &GroupVersionKind) -> Option<Object<'b, 'a>> {
    let is_it = |object: &&Object<'b, 'a>| {
        let crd = Crd::from(**object);
        crd.group() == gvk.group && crd.kind() == gvk.kind
    };
    crds.iter().find(is_it).copied()
}

fn schema<'b, 'a>(
    crd: Object<'b, 'a>,
    gvk: &GroupVersionKind,
) -> Option<(crate::source::Span, &'b Node<'a>)> {
    let crd = Crd::from(crd);
    let version = crd.versions().into_iter().find(|version| version.name == gvk.version)?;
    Some((version.span, crd.schema(&version)?))
}

fn schema_of<'b, 'a>(crd: Object<'b, 'a>, gvk: &GroupVersionKind) -> Option<&'b Node<'a>> {
    schema(crd, gvk).map(|(_, schema)| schema)
}
