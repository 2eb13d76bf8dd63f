//! Custom resources of the old version against the schemas of the new one: what the API server would refuse or drop.

use std::collections::BTreeSet;

use super::codes;
use crate::cel::run::{Broken, NOT_RUN, Rules};
use crate::crd::Crd;
use crate::csv::{GroupVersionKind, annotation};
use crate::finding::{Code, Finding, Findings, Place};
use crate::parse::{Csv, Object};
use crate::schema::Schema;
use crate::schema::defaults::defaulted;
use crate::schema::structural::Problem;
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
        return Some("a document that is not a Kubernetes object".to_owned());
    };
    let Some((next, (span, schema))) =
        find(crds.new, &gvk).and_then(|next| Some((next, schema(next, &gvk)?)))
    else {
        return Some(format!("`{}/{name}` of `{}`", gvk.kind, text("apiVersion")));
    };
    let before = find(crds.old, &gvk).and_then(|crd| schema_of(crd, &gvk)).map(Held::new);
    let Judged { faults, unchecked } = judge(sample, before.as_ref(), &Held::new(schema));
    let mut push = |code: &'static Code, message: String| {
        findings.push(
            Finding::new(code, message)
                .at(next.place_at(span))
                .and(place.clone().label("the sample"))
                .subject(next.id()),
        );
    };
    for Fault { path, message, is_pruned } in faults {
        match is_pruned {
            true => {
                let within = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
                push(
                    &codes::SAMPLE_PRUNED,
                    format!("`{}/{name}` loses a field{within}: {message}", gvk.kind),
                );
            }
            false => push(
                &codes::SAMPLE_REFUSED,
                format!("`{}/{name}` is no longer valid: `{path}`: {message}", gvk.kind),
            ),
        }
    }
    for what in unchecked {
        push(&codes::SAMPLE_NOT_CHECKED, format!("`{}/{name}` was not fully checked: {what}", gvk.kind));
    }
    None
}

/// What a new schema makes of a custom resource that an old one may have been wrong about too.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) faults: Vec<Fault>,
    /// What is not decided here, each a sentence.
    pub(super) unchecked: BTreeSet<String>,
}

/// Something that the new schema refuses or drops, and the old one does not.
#[derive(Debug)]
pub(super) struct Fault {
    /// Such as `spec.hosts[0]`; of a field that is dropped, where it is.
    pub(super) path: String,
    pub(super) message: String,
    pub(super) is_pruned: bool,
}

/// A schema that objects are held against, and its rules.
#[derive(Debug)]
pub(super) struct Held<'b, 'a> {
    schema: &'b Node<'a>,
    rules: Rules,
}

impl<'b, 'a> Held<'b, 'a> {
    pub(super) fn new(schema: &'b Node<'a>) -> Self {
        Self { schema, rules: Rules::new(Schema(schema)) }
    }

    fn check(&self, object: &Node<'_>) -> Checked {
        let schema = Schema(self.schema);
        // Clusters drop fields before they fill in defaults: what a default brings is part of the schema.
        let unknown = check(object, schema, true).unknown;
        let whole = defaulted(object, schema);
        let mut checked = Checked { unknown, ..check(&Node::from(&whole), schema, true) };
        // Clusters run rules only on what fits the schema otherwise.
        let broken = if checked.problems.is_empty() { self.rules.check(&whole) } else { Some(Vec::new()) };
        if let Some(broken) = broken {
            checked.unchecked.retain(|problem| problem.message != NOT_RUN);
            for Broken { path, message, is_decided } in broken {
                let problem = Problem { path, message, span: object.span };
                if is_decided { &mut checked.problems } else { &mut checked.unchecked }.push(problem);
            }
        }
        checked
    }
}

/// Holds a custom resource against the new schema. What was wrong before is not the upgrade's doing.
pub(super) fn judge(object: &Node<'_>, old: Option<&Held<'_, '_>>, new: &Held<'_, '_>) -> Judged {
    let look = |held: &Held<'_, '_>| held.check(object);
    let after = look(new);
    let before = old.map(look).unwrap_or_default();
    let known = said(&before);
    let is_new = |problem: &&Problem| !known.contains(&(problem.path.as_str(), problem.message.as_str()));
    let fault = |problem: &Problem, is_pruned| Fault {
        path: problem.path.clone(),
        message: problem.message.clone(),
        is_pruned,
    };
    let refused = after.problems.iter().filter(is_new).map(|problem| fault(problem, false));
    let pruned = after.unknown.iter().map(|(problem, _)| problem).filter(is_new);
    let faults = refused.chain(pruned.map(|problem| fault(problem, true))).collect();
    let unchecked = after.unchecked.iter().filter(is_new);
    let unchecked = unchecked.map(|problem| format!("`{}`: {}", problem.path, problem.message)).collect();
    Judged { faults, unchecked }
}

fn said(checked: &Checked) -> BTreeSet<(&str, &str)> {
    let unknown = checked.unknown.iter().map(|(problem, _)| problem);
    let problems = checked.problems.iter().chain(unknown).chain(&checked.unchecked);
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
