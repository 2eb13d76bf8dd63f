//! The identity of a blob: what tells it from all others of a catalog.

use serde_json::Value as Json;

use crate::fbc::schema;
use crate::json::Tree;

/// Schema, package and name.
pub(super) type BlobId = (String, String, String);

/// The identity of a blob; empty texts for members that it does not have.
pub(super) fn id(tree: &Tree<'_>) -> BlobId {
    let text = |wanted: &str| -> String {
        let Tree::Map(members) = tree else { return String::new() };
        match members.iter().find(|(key, _)| key == wanted) {
            Some((_, Tree::Leaf(Json::String(text)))) => text.clone(),
            _ => String::new(),
        }
    };
    (text("schema"), text("package"), text("name"))
}

/// The package that a blob belongs to.
pub(super) fn package((schema, package, name): &BlobId) -> &str {
    if schema == schema::PACKAGE { name } else { package }
}

/// Whether a catalog can have only one blob of this id.
pub(super) fn is_unique((schema, ..): &BlobId) -> bool {
    [schema::PACKAGE, schema::CHANNEL, schema::BUNDLE, schema::DEPRECATIONS].contains(&schema.as_str())
}

/// A blob as messages name it.
pub(super) fn describe((schema, package, name): &BlobId) -> String {
    match schema.as_str() {
        schema::PACKAGE => format!("the package `{name}`"),
        schema::CHANNEL => format!("the channel `{name}` of `{package}`"),
        schema::BUNDLE => format!("the bundle `{name}` of `{package}`"),
        _ => format!("the deprecations of `{package}`"),
    }
}
