//! A CustomResourceDefinition as a view of its document: its names and versions, for v1 and v1beta1 alike.

pub mod fields;
pub mod types;

use std::borrow::Cow;

use crate::csv::GroupVersionKind;
use crate::parse::Object;
use crate::source::Span;
use crate::yaml::fit::Type;
use crate::yaml::{Node, Step, steps};

/// The group of the CRD API.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The `apiVersion` of CRDs since Kubernetes 1.16.
pub const V1: &str = "apiextensions.k8s.io/v1";
/// The `apiVersion` of older CRDs, gone with Kubernetes 1.22.
pub const V1BETA1: &str = "apiextensions.k8s.io/v1beta1";

/// A CRD's document, read by what CRDs have.
#[derive(Clone, Copy, Debug)]
pub struct Crd<'b, 'a>(pub &'b Node<'a>);

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub struct CrdVersion<'b, 'a> {
    /// Its name.
    pub name: Cow<'b, str>,
    /// The entry under `spec.versions`, or the CRD itself where an old one has only `spec.version`.
    pub node: &'b Node<'a>,
    /// Where its name stands.
    pub span: Span,
}

impl CrdVersion<'_, '_> {
    /// Whether the API server serves it. A v1beta1 CRD that lists no versions serves the one it names.
    pub fn is_served(&self) -> bool {
        Crd(self.node).get(steps!("served")).and_then(Node::as_bool) != Some(false)
    }
}

impl<'b, 'a> Crd<'b, 'a> {
    /// `metadata.name`, which is `plural.group`.
    pub fn name(self) -> Cow<'b, str> {
        self.text(steps!("metadata", "name"))
    }

    /// The group of the custom resources.
    pub fn group(self) -> Cow<'b, str> {
        self.text(steps!("spec", "group"))
    }

    /// The kind of the custom resources.
    pub fn kind(self) -> Cow<'b, str> {
        self.text(steps!("spec", "names", "kind"))
    }

    /// The versions, in the order of the file. A v1beta1 CRD may name one version and list none.
    pub fn versions(self) -> Vec<CrdVersion<'b, 'a>> {
        let listed = self.0.at_folded(steps!("spec", "versions")).and_then(Node::as_sequence).unwrap_or(&[]);
        if listed.is_empty() {
            let path = steps!("spec", "version");
            let name = self.text(path);
            let version = CrdVersion { name, node: self.0, span: self.0.locate(path) };
            let none = version.name.is_empty() || self.text(steps!("apiVersion")) == V1;
            return if none { Vec::new() } else { vec![version] };
        }
        let read = |node: &'b Node<'a>| CrdVersion {
            name: Crd(node).text(steps!("name")),
            node,
            span: node.locate(steps!("name")),
        };
        listed.iter().map(read).collect()
    }

    /// Group, version and kind of every version.
    pub fn gvks(self) -> impl Iterator<Item = GroupVersionKind> {
        let (group, kind) = (self.group(), self.kind());
        self.versions().into_iter().map(move |version| GroupVersionKind {
            group: group.to_string(),
            version: version.name.into_owned(),
            kind: kind.to_string(),
        })
    }

    /// Whether this is of [`V1`]; otherwise it is taken to be of [`V1BETA1`].
    pub fn is_v1(self) -> bool {
        self.0.get("apiVersion").and_then(Node::as_str) == Some(V1)
    }

    /// The Go type that Kubernetes reads it into.
    pub fn of(self) -> &'static Type {
        if self.is_v1() { &types::V1 } else { &types::V1BETA1 }
    }

    /// Whether the cluster keeps fields that no schema knows. The older API does so unless told otherwise.
    pub fn preserves_unknown_fields(self) -> bool {
        let told = self.get(steps!("spec", "preserveUnknownFields")).and_then(Node::as_bool);
        told.unwrap_or(!self.is_v1())
    }

    /// What `field` is in a version (`schema`, `subresources`, `additionalPrinterColumns`, `selectableFields`), its own
    /// or that of the whole CRD, as the older API also has it.
    pub fn of_version(self, version: &CrdVersion<'b, 'a>, field: &str) -> Option<&'b Node<'a>> {
        let own = Crd(version.node).get(steps!(field)).filter(|_| !std::ptr::eq(version.node, self.0));
        own.or_else(|| {
            let above = if field == "schema" { "validation" } else { field };
            self.get(steps!("spec", above)).filter(|_| !self.is_v1())
        })
    }

    /// The schema of a version.
    pub fn schema(self, version: &CrdVersion<'b, 'a>) -> Option<&'b Node<'a>> {
        Crd(self.of_version(version, "schema")?).get(steps!("openAPIV3Schema"))
    }

    /// The value at a path that Go reads into a field, none when it is null.
    pub fn get(self, path: &[Step<'_>]) -> Option<&'b Node<'a>> {
        self.0.at_folded(path).filter(|node| !node.is_null())
    }

    /// The list at a path; empty if missing.
    pub fn list(self, path: &[Step<'_>]) -> &'b [Node<'a>] {
        self.get(path).and_then(Node::as_sequence).unwrap_or(&[])
    }

    /// The text that Go's type gets from the value at a path.
    pub fn text(self, path: &[Step<'_>]) -> Cow<'b, str> {
        self.0.at_folded(path).and_then(Node::to_text).unwrap_or_default()
    }
}

impl<'b, 'a> From<Object<'b, 'a>> for Crd<'b, 'a> {
    fn from(object: Object<'b, 'a>) -> Self {
        Self(object.root)
    }
}
