//! Where a field of the generated ClusterServiceVersion comes from.

use std::fmt::Write as _;

use super::draft::{Draft, Value};
use crate::suggest::did_you_mean;

pub use super::draft::PathStep;

/// A field with its value and origin.
#[derive(Clone, Debug)]
pub struct Field<'d, 'a> {
    /// The path, as [`explain`] takes it.
    pub path: String,
    /// The value and its origin.
    pub draft: &'d Draft<'a>,
}

/// A path that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no `{path}` in the ClusterServiceVersion")]
pub struct PathError {
    /// The path.
    pub path: String,
    /// The way out.
    pub help: String,
}

/// The fields at and below a path: keys with dots between, positions in lists in brackets, such as
/// `spec.install.spec.deployments[0].name`. A key that has dots in it may stand in quotes, `metadata.annotations["a.b/c"]`, or
/// have them escaped, `metadata.annotations.a\\.b/c`.
///
/// # Errors
/// When there is nothing at the path.
pub fn explain<'d, 'a>(draft: &'d Draft<'a>, path: &str) -> Result<Vec<Field<'d, 'a>>, PathError> {
    let fail = |help| PathError { path: path.to_owned(), help };
    let steps = parse(path).ok_or_else(|| fail("write it as `spec.icon[0].mediatype`".into()))?;
    let (at, found) = find(draft, &steps, String::new()).map_err(fail)?;
    let mut fields = Vec::new();
    leaves(found, at, &mut fields);
    Ok(fields)
}

/// The steps of a path, if it is one.
pub(super) fn parse(path: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = match inner.chars().next()? {
                quote @ ('"' | '\'') => {
                    let (key, after) = inner[1..].split_once(quote)?;
                    (PathStep::Key(key.to_owned()), after.strip_prefix(']')?)
                }
                _ => {
                    let (index, after) = inner.split_once(']')?;
                    (PathStep::Index(index.parse().ok()?), after)
                }
            };
            steps.push(step);
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let mut escaped = false;
            let ends = |(_, c): &(usize, char)| {
                let ends = !escaped && matches!(c, '.' | '[');
                escaped = !escaped && *c == '\\';
                ends
            };
            let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
            if end == 0 {
                return None;
            }
            steps.push(PathStep::Key(rest[..end].replace("\\.", ".").replace("\\[", "[")));
            rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
        }
    }
    Some(steps)
}

/// Follows a path; keys with dots in them are found without quotes too.
fn find<'d, 'a>(
    draft: &'d Draft<'a>,
    steps: &[PathStep],
    at: String,
) -> Result<(String, &'d Draft<'a>), String> {
    let Some(step) = steps.first() else { return Ok((at, draft)) };
    match (draft.value(), step) {
        (Value::Map(map), PathStep::Key(_)) => {
            let mut joined = String::new();
            for (taken, step) in steps.iter().enumerate() {
                let PathStep::Key(key) = step else { break };
                if taken > 0 {
                    joined.push('.');
                }
                joined.push_str(key);
                if let Some(item) = map.get(&joined) {
                    return find(item, &steps[taken + 1..], with_key(at, &joined));
                }
            }
            let PathStep::Key(key) = step else { return Err(String::new()) };
            let keys = map.keys().map(String::as_str);
            Err(did_you_mean(key, keys.clone()).unwrap_or_else(|| {
                let place = if at.is_empty() { "at the top".into() } else { format!("in `{at}`") };
                format!("the keys {place} are `{}`", keys.collect::<Vec<_>>().join("`, `"))
            }))
        }
        (Value::List(items), step) => {
            let index = match step {
                PathStep::Index(index) => Some(*index),
                PathStep::Key(key) => key.parse().ok(),
            };
            match index.and_then(|index| Some((index, items.get(index)?))) {
                Some((index, item)) => find(item, &steps[1..], format!("{at}[{index}]")),
                None => Err(format!("`{at}` is a list of {}, counted from 0", items.len())),
            }
        }
        _ => Err(format!("`{at}` has nothing below it")),
    }
}

fn leaves<'d, 'a>(draft: &'d Draft<'a>, at: String, fields: &mut Vec<Field<'d, 'a>>) {
    match draft.value() {
        Value::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, format!("{at}[{index}]"), fields);
            }
        }
        Value::Map(map) if !map.is_empty() => {
            for (key, item) in map {
                leaves(item, with_key(at.clone(), key), fields);
            }
        }
        _ => fields.push(Field { path: at, draft }),
    }
}

/// A path, and a key below it.
pub(super) fn with_key(mut at: String, key: &str) -> String {
    if key.contains(['.', '[', '/']) || key.is_empty() {
        // Writing to a text cannot fail.
        let _ = write!(at, "[{key:?}]");
    } else {
        if !at.is_empty() {
            at.push('.');
        }
        at.push_str(key);
    }
    at
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::draft::{By, Origin};
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str) {
        let value = json!({"a": {"b.c/d": [1, {"e": "x"}], "f": {}}});
        let draft = Draft::new(value, Origin::unwritten(By::Cargo));
        let found = match explain(&draft, path) {
            Ok(fields) => fields.into_iter().map(|field| field.path).collect::<Vec<_>>().join(" "),
            Err(error) => error.help,
        };
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths() {
        check("a", r#"a["b.c/d"][0] a["b.c/d"][1].e a.f"#);
        check("a.b.c/d[1].e", r#"a["b.c/d"][1].e"#);
        check(r"a.b\.c/d[1]", r#"a["b.c/d"][1].e"#);
        check("a['b.c/d'].0", r#"a["b.c/d"][0]"#);
        check(r#"a["b.c/d"][1]"#, r#"a["b.c/d"][1].e"#);
        check("", r#"a["b.c/d"][0] a["b.c/d"][1].e a.f"#);
        check(".a.f", "a.f");
        check("a.g", "the keys in `a` are `b.c/d`, `f`");
        check("a.other", "the keys in `a` are `b.c/d`, `f`");
        check("zzz", "the keys at the top are `a`");
        check("a.b.c/d[2]", r#"`a["b.c/d"]` is a list of 2, counted from 0"#);
        check("a.b.c/d[1].e.x", r#"`a["b.c/d"][1].e` has nothing below it"#);
        check("a[", "write it as `spec.icon[0].mediatype`");
    }

    #[test]
    fn dots_in_keys_stand_in_quotes_or_are_escaped() {
        let expected = Some(vec!["a".into(), "b.c/d".into(), PathStep::Index(1), "e".into()]);
        for path in ["a['b.c/d'][1].e", r#"a["b.c/d"][1].e"#, r"a.b\.c/d[1].e"] {
            assert_eq!(parse(path), expected, "{path}");
        }
        assert_eq!(parse("a..b"), None);
    }
}
