//! Values to YAML text that Kubernetes reads back unchanged: sorted keys, block style, YAML 1.1 words quoted.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::Value as Json;

use super::{Entry, Node, Value};
use crate::printable;

/// A value that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The serializer refused.
    #[error("no YAML form")]
    Serialize(#[source] serde_saphyr::ser::Error),
    /// What was written does not read back as the same value: a fault of ours, found before it does harm.
    #[error("the YAML that was written reads back as something else")]
    Unfaithful,
}

/// The YAML of a value, keys sorted, with a final line break. Same value, same bytes.
///
/// ```
/// let text = olmkit_bundle::yaml::write::to_string(&serde_json::json!({"b": "yes", "a": [1, "1.10"]})).unwrap();
/// assert_eq!(text, "a:\n- 1\n- \"1.10\"\nb: \"yes\"\n");
/// ```
///
/// # Guarantees
/// [`super::first_document`] of the text is the value again.
///
/// # Errors
/// [`WriteError::Unfaithful`] rather than text that would be read otherwise.
pub fn to_string(value: &Json) -> Result<String, WriteError> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(&Plain(value), options).map_err(WriteError::Serialize)?;
    let text = printable::quoted_yaml(text);
    let back = super::first_document(&text).map_err(|_| WriteError::Unfaithful)?;
    if reads_as(&back.root, value) { Ok(text) } else { Err(WriteError::Unfaithful) }
}

/// A JSON value with its keys in order, whatever order the map keeps, and with the strings quoted that the
/// block style would spoil.
struct Plain<'a>(&'a Json);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Array(items) => {
                let mut out = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| out.serialize_element(&Plain(item)))?;
                out.end()
            }
            Json::Object(map) => {
                let mut keys: Vec<_> = map.keys().collect();
                keys.sort();
                let mut out = serializer.serialize_map(Some(map.len()))?;
                keys.into_iter().try_for_each(|key| out.serialize_entry(&Text(key), &Plain(&map[key])))?;
                out.end()
            }
            Json::String(text) => Text(text).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

struct Text<'a>(&'a str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if needs_quotes(self.0) {
            serde_saphyr::DoubleQuoted(self.0).serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

/// Texts that a block or plain scalar does not carry to libyaml: a tab where it counts indentation, carriage
/// returns and other breaks that it normalises, characters it refuses or nobody sees, lines that a workflow would act on,
/// `<<` as a key, and white space at the end of lines, which editors eat.
fn needs_quotes(text: &str) -> bool {
    let multi_line = text.contains('\n');
    text == "<<"
        || text.contains(printable::is_hidden)
        || printable::has_command(text)
        || multi_line && (text.starts_with(['\t', ' ', '\n']) || text.contains(" \n") || text.contains("\t"))
}

/// Whether a node that was read is the value, as Kubernetes compares: `1.0` is `1`.
fn reads_as(node: &Node<'_>, value: &Json) -> bool {
    match (&node.value, value) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(a), Json::Bool(b)) => a == b,
        (Value::String(a), Json::String(b)) => a == b,
        (Value::Sequence(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| reads_as(a, b))
        }
        (Value::Mapping(a), Json::Object(b)) => {
            let is_in = |entry: &Entry<'_>| b.get(&*entry.key).is_some_and(|b| reads_as(&entry.value, b));
            a.len() == b.len() && a.iter().all(is_in)
        }
        (Value::Int(_) | Value::UInt(_) | Value::Float(_), Json::Number(b)) => {
            matches!(node.to_json(), Json::Number(a) if a == *b || a.as_f64() == b.as_f64())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_yaml_1_1_reads_otherwise_are_quoted() {
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "~",
            "null",
            "1_000",
            "0x1F",
            "1.10",
            "010",
            ".5",
            "<<",
            "=",
            "",
            "2020-01-01",
            "1e3",
            ".inf",
            "0o7",
            "+1",
        ] {
            let value = json!({ text: text });
            assert!(to_string(&value).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_text_that_starts_with_a_tab_survives() {
        insta::assert_snapshot!(to_string(&json!({"a": "\ttab\nx", "b": "line\nline\n", "c": "x\r\ny"})).unwrap(), @r#"
        a: "\ttab\nx"
        b: |
          line
          line
        c: "x\r\ny"
        "#);
    }

    fn value() -> impl Strategy<Value = Json> {
        let text = prop_oneof!["[ -~\n\t]{0,40}", "\\PC{0,12}", "[yYnN~0-9._:#{}\\[\\]<&*!|>'\"%@` -]{0,6}"];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Json::from),
            text.clone().prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
                prop::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_can_be_written(value in value()) {
            prop_assert!(to_string(&value).is_ok(), "{value}");
        }
    }
}
