use crate::finding::{Finding, Findings};
use crate::parse::File;
use crate::source::Span;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("manifest-kind-missing", Error, OLM, "manifest_kind_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.manifests() {
        let Some((message, help, span)) = problem(file) else { continue };
        findings
            .push(Finding::new(&RULE.code, message).at(file.place_at(span)).subject(file.path).help(help));
    }
}

/// Why the first document of a file is no object with a kind, if it is none.
fn problem(file: &File<'_>) -> Option<(String, &'static str, Span)> {
    const MOVE: &str =
        "every file in `manifests/` is a Kubernetes object: remove this one, or move it elsewhere";
    const SPLIT: &str = "only the first document counts: remove the `---` in front of the object";
    // What could not be read at all is the business of other rules.
    let text = file.content.text()?;
    let root = match file.documents.first() {
        Some(document) => &document.as_ref().ok()?.root,
        None => return Some(("the file is empty".into(), MOVE, Span::at(0))),
    };
    let kind = root.get("kind");
    if root.is_null() {
        let help = if file.documents.len() > 1 { SPLIT } else { MOVE };
        let start = text.len() - text.trim_ascii_start().len();
        Some(("the first document is empty".into(), help, Span::at(start)))
    } else if root.as_mapping().is_none() {
        Some((format!("expected a Kubernetes object, found {}", root.value), MOVE, root.span))
    } else if let Some(kind) = kind.filter(|kind| !kind.is_null() && kind.as_str().is_none()) {
        Some((format!("`kind` is {}, expected a string", kind.value), MOVE, kind.span))
    } else if kind.and_then(|kind| kind.as_str()).unwrap_or("").is_empty() {
        Some(("the object has no `kind`".into(), MOVE, root.locate(steps!("kind"))))
    } else {
        // With more than one slash neither group, version nor kind can be told.
        let node = root
            .get("apiVersion")
            .filter(|node| node.as_str().is_some_and(|text| text.matches('/').count() > 1))?;
        let message = format!("`{}` is not an API version", node.as_str().unwrap_or(""));
        Some((message, "write `GROUP/VERSION`, or `v1` for the core group", node.span))
    }
}
