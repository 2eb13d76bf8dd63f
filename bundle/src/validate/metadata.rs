//! What Kubernetes demands of the metadata of every object (apimachinery `pkg/api/validation/objectmeta.go`).

use crate::finding::{Code, Findings};
use crate::names::{check_label_value, check_qualified_name};
use crate::parse::Object;
use crate::yaml::{Mapping, Node, Step, Value, steps};

/// The metadata of an object. Objects in a bundle have no namespace; where an object has no type of its own, a list or map
/// with an entry of the wrong type counts as absent.
pub(super) struct Metadata<'b, 'a, 'f> {
    pub(super) object: Object<'b, 'a>,
    /// What findings are called.
    pub(super) code: &'static Code,
    /// Whether the object is read into a type of its own, where numbers become text.
    pub(super) typed: bool,
    pub(super) findings: &'f mut Findings,
}

impl<'b, 'a> Metadata<'b, 'a, '_> {
    /// Everything but the name, for which kinds have rules of their own.
    pub(super) fn check(mut self) {
        if !self.object.text(steps!("metadata", "namespace")).is_empty() {
            let help = "leave out `metadata.namespace`: OLM installs into the namespace of the Subscription";
            self.report(steps!("namespace"), "objects in a bundle have no namespace", help);
        }
        if let Some(Value::Int(generation @ ..0)) = self.get("generation").map(|node| &node.value) {
            let message = format!("the generation is {generation}, expected 0 or more");
            self.report(steps!("generation"), message, "leave it out: the cluster counts generations");
        }
        self.check_labels();
        self.check_annotations();
        self.check_owners();
        self.check_finalizers();
        self.check_managed_fields();
    }

    /// Labels and annotations alone.
    pub(super) fn check_keys(mut self) {
        self.check_labels();
        self.check_annotations();
    }

    fn check_labels(&mut self) {
        let Some(labels) = self.texts("labels") else { return };
        for entry in labels {
            if let Err(why) = check_qualified_name(&entry.key) {
                let message = format!("`{}` cannot be the key of a label: {why}", entry.key);
                self.report(steps!("labels", entry.key.as_ref()), message, KEY_HELP);
            }
            let value = entry.value.to_text().unwrap_or_default();
            if let Err(why) = check_label_value(&value) {
                let message = format!("`{value}` cannot be the value of a label: {why}");
                let help = "shorten or rewrite the value, or make it an annotation";
                self.report(steps!("labels", entry.key.as_ref()), message, help);
            }
        }
    }

    fn check_annotations(&mut self) {
        let Some(annotations) = self.texts("annotations") else { return };
        for entry in annotations {
            if let Err(why) = check_qualified_name(&entry.key.to_lowercase()) {
                let message = format!("`{}` cannot be the key of an annotation: {why}", entry.key);
                self.report(steps!("annotations", entry.key.as_ref()), message, KEY_HELP);
            }
        }
        let bytes: usize = annotations
            .iter()
            .map(|entry| entry.key.len() + entry.value.to_text().map_or(0, |text| text.len()))
            .sum();
        if bytes > MAX_ANNOTATION_BYTES {
            let message = format!("the annotations take {bytes} bytes, more than {MAX_ANNOTATION_BYTES}");
            self.report(steps!("annotations"), message, "shorten them");
        }
    }

    fn check_owners(&mut self) {
        let owners = self.list("ownerReferences");
        if owners.iter().any(|owner| owner.as_mapping().is_none()) {
            return;
        }
        let mut controller = None;
        for (index, owner) in owners.iter().enumerate() {
            for field in ["apiVersion", "kind", "name", "uid"] {
                let text = owner.get(field).and_then(Node::as_str).unwrap_or("");
                let version = text.rsplit_once('/').map_or(text, |(_, version)| version);
                if text.is_empty()
                    || field == "apiVersion" && (version.is_empty() || text.matches('/').count() > 1)
                {
                    let message = format!("an owner reference has no `{field}`");
                    self.report(steps!("ownerReferences", index, field), message, OWNER_HELP);
                }
            }
            if owner.get("controller").and_then(Node::as_bool) == Some(true)
                && controller.replace(index).is_some()
            {
                let message = "a second owner is the controller, which only one can be";
                self.report(steps!("ownerReferences", index, "controller"), message, OWNER_HELP);
            }
        }
    }

    fn check_finalizers(&mut self) {
        let finalizers = self.list("finalizers");
        let texts: Vec<_> = finalizers.iter().map_while(Node::as_str).collect();
        if texts.len() < finalizers.len() {
            return;
        }
        for (index, text) in texts.iter().enumerate() {
            if let Err(why) = check_qualified_name(text) {
                let message = format!("`{text}` cannot be a finalizer: {why}");
                self.report(steps!("finalizers", index), message, "write `DOMAIN/NAME`");
            }
        }
        if texts.contains(&"orphan") && texts.contains(&"foregroundDeletion") {
            let message = "the finalizers `orphan` and `foregroundDeletion` exclude each other";
            self.report(steps!("finalizers"), message, "leave finalizers to the cluster");
        }
    }

    fn check_managed_fields(&mut self) {
        const HELP: &str = "leave out `metadata.managedFields`: the cluster keeps it";
        let entries = self.list("managedFields");
        for (index, entry) in entries.iter().enumerate() {
            let text = |key| entry.get(key).and_then(Node::as_str).unwrap_or("");
            let unprintable =
                |text: &str| text.contains(|c: char| c.is_control() || c.is_whitespace() && c != ' ');
            if !matches!(text("operation"), "Apply" | "Update") {
                let message = format!("`{}` is not an operation on fields", text("operation"));
                self.report(steps!("managedFields", index, "operation"), message, HELP);
            }
            if !matches!(text("fieldsType"), "" | "FieldsV1") {
                let message = format!("`{}` is not a type of managed fields", text("fieldsType"));
                self.report(steps!("managedFields", index, "fieldsType"), message, HELP);
            }
            if text("manager").len() > 128 || unprintable(text("manager")) || text("subresource").len() > 256
            {
                let message = "the name of a field manager or subresource is too long or cannot be printed";
                self.report(steps!("managedFields", index), message, HELP);
            }
        }
    }

    fn report(&mut self, path: &[Step<'_>], message: impl Into<String>, help: &str) {
        let path: Vec<_> = std::iter::once(Step::from("metadata")).chain(path.iter().copied()).collect();
        self.findings.push(self.object.finding(self.code, message, &path).help(help));
    }

    fn get(&self, key: &str) -> Option<&'b Node<'a>> {
        self.object.root.at(steps!("metadata", key))
    }

    fn list(&self, key: &str) -> &'b [Node<'a>] {
        self.get(key).and_then(Node::as_sequence).unwrap_or(&[])
    }

    /// The map under a key, when all its values are text or null.
    fn texts(&self, key: &str) -> Option<&'b Mapping<'a>> {
        let mapping = self.get(key)?.as_mapping()?;
        let is_text = |node: &Node<'_>| self.typed || node.is_null() || node.as_str().is_some();
        mapping.iter().all(|entry| is_text(&entry.value)).then_some(mapping)
    }
}

const MAX_ANNOTATION_BYTES: usize = 256 << 10;
const KEY_HELP: &str = "write `NAME` or `DOMAIN/NAME`, with at most 63 characters in the name";
const OWNER_HELP: &str = "leave out `metadata.ownerReferences`: OLM owns what it installs";
