//! What an operator may do: the rules of its permissions in the ClusterServiceVersion and of Roles beside it.

use std::borrow::Cow;

use crate::finding::{Code, Finding};
use crate::parse::{Bundle, Object};
use crate::yaml::{Node, Step, steps};

/// A rule of access, with its place.
pub(super) struct AccessRule<'b, 'a> {
    object: Object<'b, 'a>,
    node: &'b Node<'a>,
    path: Vec<Step<'static>>,
    /// Whether it holds in every namespace.
    pub(super) cluster_wide: bool,
}

/// Every rule: those of the ClusterServiceVersion first, then those of Roles and ClusterRoles.
pub(super) fn read<'b, 'a>(bundle: &'b Bundle<'a>) -> Vec<AccessRule<'b, 'a>> {
    let mut rules = Vec::new();
    let mut add = |object: Object<'b, 'a>, path: &[Step<'static>], cluster_wide| {
        for (index, node) in list(object.root, path).iter().enumerate() {
            let path = path.iter().copied().chain([Step::Index(index)]).collect();
            rules.push(AccessRule { object, node, path, cluster_wide });
        }
    };
    if let Some(csv) = bundle.csv() {
        for (field, cluster_wide) in [("permissions", false), ("clusterPermissions", true)] {
            let permissions = steps!("spec", "install", "spec", field);
            for index in 0..list(csv.object.root, permissions).len() {
                let path: Vec<_> = permissions.iter().chain(steps!(index, "rules")).copied().collect();
                add(csv.object, &path, cluster_wide);
            }
        }
    }
    for object in bundle.objects() {
        if let "Role" | "ClusterRole" = object.kind() {
            add(object, steps!("rules"), object.kind() == "ClusterRole");
        }
    }
    rules
}

fn list<'b, 'a>(root: &'b Node<'a>, path: &[Step<'_>]) -> &'b [Node<'a>] {
    root.at_folded(path).and_then(Node::as_sequence).unwrap_or(&[])
}

impl<'b> AccessRule<'b, '_> {
    /// Whether it is a permission of the ClusterServiceVersion.
    pub(super) fn is_in_csv(&self) -> bool {
        self.path.len() > 2
    }

    /// The rule as people name it, such as `clusterPermissions[0].rules[2]`.
    pub(super) fn name(&self) -> String {
        crate::yaml::fit::path(
            self.path.strip_prefix(steps!("spec", "install", "spec")).unwrap_or(&self.path),
        )
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = Cow<'b, str>> {
        self.texts("apiGroups")
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = Cow<'b, str>> {
        self.texts("nonResourceURLs")
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = Cow<'b, str>> {
        self.texts("resources")
    }

    pub(super) fn verbs(&self) -> impl Iterator<Item = Cow<'b, str>> {
        self.texts("verbs")
    }

    /// Whether it holds for certain objects alone.
    pub(super) fn is_limited_to_names(&self) -> bool {
        self.texts("resourceNames").next().is_some()
    }

    fn texts(&self, field: &'static str) -> impl Iterator<Item = Cow<'b, str>> {
        list(self.node, steps!(field)).iter().filter_map(Node::to_text)
    }

    pub(super) fn finding(&self, code: &'static Code, message: impl Into<String>) -> Finding {
        self.object.finding(code, message, &self.path)
    }
}
