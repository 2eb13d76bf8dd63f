//! Whether a custom resource has a field, by its schema: what descriptors of consoles name by a path such as `pools[0].size`.

use crate::suggest::nearest;
use crate::yaml::{Node, Value, steps};

/// A field that a schema does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The path to it, from the custom resource on: `spec.pools.siez`.
    pub path: String,
    /// The path to write instead, below the same part of the custom resource, if one is near.
    pub near: Option<String>,
    /// The fields that are there.
    pub known: Vec<String>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Key(String),
    Item(String),
}

/// The field of a path below `part` of a custom resource, `spec` or `status`, if the schema does not have it. Where the schema leaves
/// open what there is, nothing is missing.
///
/// ```
/// use olmkit_bundle::crd::fields::missing;
/// let text = "properties: {spec: {properties: {size: {type: integer}}}}";
/// let schema = olmkit_bundle::yaml::first_document(text).unwrap().root;
/// assert_eq!(missing(&schema, "spec", "size"), None);
/// assert_eq!(missing(&schema, "spec", "siez").unwrap().near.as_deref(), Some("size"));
/// ```
pub fn missing(schema: &Node<'_>, part: &str, path: &str) -> Option<Missing> {
    let parts = parts(path);
    let (at, known) = walk(schema, part, &parts)?;
    let near = (at > 0).then(|| near(&parts, at - 1, part, &known)).flatten();
    Some(Missing {
        path: written(part, &parts[..at]),
        near: near.filter(|near| walk(schema, part, near).is_none()).map(|near| joined(&near)),
        known: known.into_iter().map(str::to_owned).collect(),
    })
}

/// Follows a path as far as there are fields: the number of steps up to the first that there is not, and what there is in its place.
fn walk<'n>(schema: &'n Node<'_>, part: &str, parts: &[Part]) -> Option<(usize, Vec<&'n str>)> {
    let mut node = schema;
    let all = std::iter::once(Part::Key(part.to_owned())).chain(parts.iter().cloned());
    for (at, step) in all.enumerate() {
        node = match step {
            Part::Item(_) => node.get("items").or_else(|| values(node))?,
            Part::Key(key) => match below(node, &key) {
                Ok(below) => below?,
                Err(known) => return Some((at, known)),
            },
        };
    }
    None
}

/// The schema of a field, none where the field may be anything; otherwise the fields that there are.
fn below<'n, 'a>(node: &'n Node<'a>, key: &str) -> Result<Option<&'n Node<'a>>, Vec<&'n str>> {
    let is_true = |key: &str| matches!(node.get(key).map(|node| &node.value), Some(Value::Bool(true)));
    let fields = node.get("properties").and_then(Node::as_mapping);
    if let Some(field) = fields.and_then(|fields| fields.get(key)) {
        return Ok(Some(field));
    }
    if is_true("x-kubernetes-preserve-unknown-fields") || is_true("x-kubernetes-embedded-resource") {
        return Ok(None);
    }
    if let Some(values) = values(node) {
        return Ok(Some(values));
    }
    // A path may leave out which item is meant.
    if let Some(items) = node.get("items") {
        return below(items, key);
    }
    let known: Vec<&str> =
        fields.into_iter().flat_map(|fields| fields.iter()).map(|field| &*field.key).collect();
    let kind = node.get("type").and_then(Node::as_str).unwrap_or_default();
    let has_none = matches!(kind, "boolean" | "integer" | "number" | "string");
    if known.is_empty() && !has_none || is_true("additionalProperties") { Ok(None) } else { Err(known) }
}

/// What the values of a map are.
fn values<'n, 'a>(node: &'n Node<'a>) -> Option<&'n Node<'a>> {
    node.at(steps!("additionalProperties")).filter(|values| values.as_mapping().is_some())
}

/// The path with the nearest field in place of the one that is missing.
fn near(parts: &[Part], at: usize, part: &str, known: &[&str]) -> Option<Vec<Part>> {
    let Some(Part::Key(key)) = parts.get(at) else { return None };
    let is_doubled = at == 0 && key == part && parts.len() > 1;
    if is_doubled {
        return Some(parts[1..].to_vec());
    }
    let near = nearest(key, known.iter().copied())?;
    let mut parts = parts.to_vec();
    parts[at] = Part::Key(near.to_owned());
    Some(parts)
}

/// The path from the custom resource on.
fn written(part: &str, parts: &[Part]) -> String {
    match joined(parts) {
        below if below.is_empty() => part.to_owned(),
        below => format!("{part}.{below}"),
    }
}

fn joined(parts: &[Part]) -> String {
    let mut path = String::new();
    for part in parts {
        match part {
            Part::Key(key) if path.is_empty() => path += key,
            Part::Key(key) => path += &format!(".{key}"),
            Part::Item(item) => path += &format!("[{item}]"),
        }
    }
    path
}

/// The steps of a path: keys with dots between, positions in brackets, and keys with dots in quotes and brackets.
fn parts(path: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, after) = inside.split_once(']').unwrap_or((inside, ""));
            let quoted = ['"', '\''].iter().find_map(|quote| step.strip_prefix(*quote)?.strip_suffix(*quote));
            parts.push(quoted.map_or_else(|| Part::Item(step.to_owned()), |key| Part::Key(key.to_owned())));
            rest = after.trim_start_matches('.');
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        parts.push(Part::Key(rest[..end].to_owned()));
        rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    const SCHEMA: &str = "\
properties:
  spec:
    properties:
      size: {type: integer}
      labels: {additionalProperties: {type: string}}
      open: {x-kubernetes-preserve-unknown-fields: true}
      any: {type: object}
      pools: {type: array, items: {properties: {size: {type: integer}, a.b: {type: string}}}}
";

    #[test]
    fn fields_that_a_schema_has_or_leaves_open() {
        let document = yaml::first_document(SCHEMA).unwrap();
        for path in [
            "size",
            "labels.x",
            "open.a.b",
            "any.a",
            "pools[0].size",
            "pools.size",
            "pools[0]['a.b']",
            "pools[*]",
        ] {
            assert_eq!(missing(&document.root, "spec", path), None, "{path}");
        }
    }

    #[test]
    fn fields_that_it_does_not_have_and_the_nearest() {
        let document = yaml::first_document(SCHEMA).unwrap();
        for (part, path, field, near) in [
            ("spec", "siez", "spec.siez", Some("size")),
            ("spec", "pools[0].siez", "spec.pools[0].siez", Some("pools[0].size")),
            ("spec", "pool.size", "spec.pool", Some("pools.size")),
            ("spec", "spec.size", "spec.spec", Some("size")),
            ("spec", "pool.replicas", "spec.pool", None),
            ("spec", "siez.least", "spec.siez", None),
            ("spec", "size.least", "spec.size.least", None),
            ("spec", "replicas", "spec.replicas", None),
            ("status", "phase", "status", None),
        ] {
            let found = missing(&document.root, part, path).expect(path);
            assert_eq!((found.path.as_str(), found.near.as_deref()), (field, near), "{path}");
        }
    }
}
