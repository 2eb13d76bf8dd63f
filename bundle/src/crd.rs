//! A CustomResourceDefinition as a view of its document: its names and versions, for v1 and v1beta1 alike.

use std::borrow::Cow;

use crate::csv::GroupVersionKind;
use crate::parse::Object;
use crate::source::Span;
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

    /// The text that Go's type gets from the value at a path.
    fn text(self, path: &[Step<'_>]) -> Cow<'b, str> {
        self.0.at_folded(path).and_then(Node::to_text).unwrap_or_default()
    }
}

impl<'b, 'a> From<Object<'b, 'a>> for Crd<'b, 'a> {
    fn from(object: Object<'b, 'a>) -> Self {
        Self(object.root)
    }
}
