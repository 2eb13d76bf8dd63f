//! JSON as compiled catalogs store it: without white space, keys sorted, of equal keys the last; written while a value is read, so that
//! no tree of it is made.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use olmkit_bundle::go;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use olmkit_catalog::fbc::{Member, Value};
use olmkit_catalog::json::push_text;

/// The text of a value.
pub(super) fn text(value: &Value<'_>) -> String {
    let mut out = String::new();
    if value.read(Canonical { out: &mut out, escape_html: false }).is_none() {
        // What nests deeper than JSON's reader goes has no meaning in a catalog.
        "null".clone_into(&mut out);
    }
    out
}

/// A map in the making.
#[derive(Default)]
pub(super) struct Object<'a>(Vec<(&'a str, String)>);

impl<'a> Object<'a> {
    /// Adds a value as JSON.
    pub(super) fn add(&mut self, key: &'a str, json: String) {
        self.0.push((key, json));
    }

    pub(super) fn text(&mut self, key: &'a str, text: &str) {
        let mut json = String::with_capacity(text.len() + 2);
        push_text(&mut json, text, false);
        self.add(key, json);
    }

    pub(super) fn members(&mut self, members: &'a [Member<'_>]) {
        self.0.extend(members.iter().map(|member| (&*member.key, text(&member.value))));
    }

    pub(super) fn end(mut self) -> String {
        self.0.sort_by_key(|(key, _)| *key);
        let mut out =
            String::with_capacity(self.0.iter().map(|(key, json)| key.len() + json.len() + 4).sum());
        out.push('{');
        for (at, (key, json)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            push_text(&mut out, key, false);
            out.push(':');
            out.push_str(json);
        }
        out.push('}');
        out
    }
}

/// A list of values that are JSON already.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<_> = items.into_iter().collect();
    format!("[{}]", items.join(","))
}

/// Appends the value that it reads.
pub(super) struct Canonical<'o> {
    pub(super) out: &'o mut String,
    /// Whether `<`, `>` and `&` are escaped, as Go does where nobody tells it not to.
    pub(super) escape_html: bool,
}

impl Canonical<'_> {
    fn again(&mut self) -> Canonical<'_> {
        Canonical { out: self.out, escape_html: self.escape_html }
    }

    fn number(self, number: impl fmt::Display) {
        // Writing to a string does not fail.
        let _ = write!(self.out, "{number}");
    }
}

impl<'de> DeserializeSeed<'de> for Canonical<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Canonical<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.out.push_str("null");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.number(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.number(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.number(go::float_as_json(value));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        push_text(self.out, text, self.escape_html);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.out.push('[');
        let start = self.out.len();
        loop {
            let end = self.out.len();
            if end > start {
                self.out.push(',');
            }
            if items.next_element_seed(self.again())?.is_none() {
                self.out.truncate(end);
                break;
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.out.push('{');
        let start = self.out.len();
        // The keys, and where the member behind each one ends.
        let mut members: Vec<(Cow<'de, str>, usize)> = Vec::new();
        let mut sorted = true;
        while let Some(key) = entries.next_key_seed(Key)? {
            if let Some((last, _)) = members.last() {
                self.out.push(',');
                sorted &= **last < *key;
            }
            push_text(self.out, &key, self.escape_html);
            self.out.push(':');
            entries.next_value_seed(self.again())?;
            members.push((key, self.out.len()));
        }
        if !sorted {
            let written = self.out.split_off(start);
            let mut from = 0;
            let ranges = members.iter().map(|(key, end)| {
                let member = &written[from..end - start];
                from = end - start + 1;
                (&**key, member)
            });
            let sorted: BTreeMap<&str, &str> = ranges.collect();
            self.out.push_str(&sorted.into_values().collect::<Vec<_>>().join(","));
        }
        self.out.push('}');
        Ok(())
    }
}

/// A key, borrowed where it can be.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use olmkit_catalog::fbc::Catalog;
    use olmkit_catalog::json::compact;
    use olmkit_catalog::load::CatalogFiles;

    /// The text is that of the tree, however the value was written.
    #[track_caller]
    fn check(file: String, expected: &str) {
        let files = CatalogFiles::from_text("c", file);
        let catalog = Catalog::parse(&files);
        assert_eq!(catalog.faults, []);
        let member = catalog.others[0].members.iter().find(|member| member.key == "value");
        let value = &member.expect("it is there").value;
        assert_eq!((text(value).as_str(), compact(&value.to_json()).as_str()), (expected, expected));
    }

    #[test]
    fn json() {
        let check =
            |value: &str, expected| check(format!(r#"{{"schema": "s", "value": {value}}}"#), expected);
        check(
            r#"{"b": [1, -2, 0.50, 1e300, true, null], "a": {}}"#,
            r#"{"a":{},"b":[1,-2,0.5,1e+300,true,null]}"#,
        );
        check(
            r#"{"b": 1, "a": 2, "b": 3, "aa": [[], {"z": 1, "y": 2}]}"#,
            r#"{"a":2,"aa":[[],{"y":2,"z":1}],"b":3}"#,
        );
        check(r#""<\u00e9\u2028\u2014\n\u0001\"""#, "\"<\u{e9}\\u2028\u{2014}\\n\\u0001\\\"\"");
    }

    #[test]
    fn yaml() {
        let check = |value: &str, expected| check(format!("schema: s\nvalue: {value}\n"), expected);
        check(
            "\n  b: 1.5\n  a: [0x10, 3.0, ~]\n  c: {w: , x: 'z'}",
            r#"{"a":[16,3,null],"b":1.5,"c":{"w":null,"x":"z"}}"#,
        );
    }
}
