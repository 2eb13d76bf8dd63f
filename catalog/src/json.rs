//! JSON text as Go's encoding/json writes it, since opm's is compared byte by byte: in sort orders, in base64, in files.

use std::borrow::Cow;
use std::fmt::Write as _;

use olmkit_bundle::go;
use serde_json::Value as Json;

/// A value whose maps have an order of their own.
#[derive(Clone, Debug)]
pub enum Tree<'a> {
    /// A map, in this order.
    Map(Vec<(Cow<'a, str>, Tree<'a>)>),
    /// A list.
    List(Vec<Tree<'a>>),
    /// A value whose maps are sorted by key.
    Leaf(Json),
}

impl Tree<'_> {
    /// The value without the order.
    pub fn into_json(self) -> Json {
        match self {
            Self::Map(members) => Json::Object(
                members.into_iter().map(|(key, value)| (key.into_owned(), value.into_json())).collect(),
            ),
            Self::List(items) => items.into_iter().map(Tree::into_json).collect(),
            Self::Leaf(value) => value,
        }
    }

    /// The text, as `layout` has it.
    pub fn to_text(&self, layout: &Layout<'_>) -> String {
        let mut out = Out { text: String::new(), layout, escape_html: false };
        out.tree(self, 0);
        out.text
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Tree<'a> {
    fn from(text: T) -> Self {
        Self::Leaf(Json::from(text.into().into_owned()))
    }
}

/// The white space in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout<'a> {
    /// Everything in one line.
    Line {
        /// What stands behind `:` and `,`.
        space: &'a str,
    },
    /// A line for each value.
    Lines {
        /// What indents by one level.
        unit: &'a str,
        /// What stands before every line but the first.
        margin: &'a str,
    },
}

impl Layout<'_> {
    /// As opm prints catalogs.
    pub const OPM: Layout<'static> = Layout::Lines { unit: "    ", margin: "" };
    /// Without any white space.
    pub const COMPACT: Layout<'static> = Layout::Line { space: "" };
}

/// The text of a value without white space, keys sorted, and with `<`, `>` and `&` escaped: what `json.Marshal` gives.
///
/// ```
/// let value = serde_json::json!({"b": "<", "a": 1.0});
/// assert_eq!(olmkit_catalog::json::marshal(&value), r#"{"a":1,"b":"\u003c"}"#);
/// ```
pub fn marshal(value: &Json) -> String {
    let mut out = Out { text: String::new(), layout: &Layout::COMPACT, escape_html: true };
    out.value(value, 0);
    out.text
}

/// The text of a value without white space, keys sorted: what opm stores of properties and blobs.
pub fn compact(value: &Json) -> String {
    let mut out = Out { text: String::new(), layout: &Layout::COMPACT, escape_html: false };
    out.value(value, 0);
    out.text
}

struct Out<'l> {
    text: String,
    layout: &'l Layout<'l>,
    escape_html: bool,
}

impl Out<'_> {
    fn tree(&mut self, tree: &Tree<'_>, depth: usize) {
        match tree {
            Tree::Map(members) => {
                self.block('{', '}', depth, members.iter(), |out, (key, value)| {
                    out.key(key);
                    out.tree(value, depth + 1);
                });
            }
            Tree::List(items) => {
                self.block('[', ']', depth, items.iter(), |out, item| out.tree(item, depth + 1))
            }
            Tree::Leaf(value) => self.value(value, depth),
        }
    }

    fn value(&mut self, value: &Json, depth: usize) {
        match value {
            Json::Null => self.text += "null",
            Json::Bool(true) => self.text += "true",
            Json::Bool(false) => self.text += "false",
            Json::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() => self.text += &go::float_as_json(float),
                _ => self.text += &number.to_string(),
            },
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                self.block('[', ']', depth, items.iter(), |out, item| out.value(item, depth + 1))
            }
            Json::Object(map) => {
                // Whatever order the map keeps, which depends on features of serde_json that others may turn on.
                let mut members: Vec<_> = map.iter().collect();
                members.sort_by_key(|(key, _)| *key);
                self.block('{', '}', depth, members.into_iter(), |out, (key, value)| {
                    out.key(key);
                    out.value(value, depth + 1);
                });
            }
        }
    }

    fn block<T>(
        &mut self,
        open: char,
        close: char,
        depth: usize,
        items: impl ExactSizeIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        self.text.push(open);
        let empty = items.len() == 0;
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            match self.layout {
                Layout::Line { space } if at > 0 => self.text += space,
                Layout::Line { .. } => {}
                Layout::Lines { .. } => self.line(depth + 1),
            }
            each(self, item);
        }
        if !empty && matches!(self.layout, Layout::Lines { .. }) {
            self.line(depth);
        }
        self.text.push(close);
    }

    fn line(&mut self, depth: usize) {
        if let Layout::Lines { unit, margin } = self.layout {
            self.text.push('\n');
            self.text += margin;
            self.text.extend(std::iter::repeat_n(*unit, depth));
        }
    }

    fn key(&mut self, key: &str) {
        self.string(key);
        self.text.push(':');
        self.text += match self.layout {
            Layout::Line { space } => space,
            Layout::Lines { .. } => " ",
        };
    }

    fn string(&mut self, text: &str) {
        push_text(&mut self.text, text, self.escape_html);
    }
}

/// Appends a text in quotes, with `<`, `>` and `&` escaped if they are to be.
pub fn push_text(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    let mut rest = text;
    // 0xe2 starts the two line separators.
    let special = |byte: &u8| match byte {
        b'"' | b'\\' | 0..=0x1f | 0xe2 => true,
        b'<' | b'>' | b'&' => escape_html,
        _ => false,
    };
    // Mostly there is nothing to escape: whole blocks are looked at before single bytes are.
    let next = |text: &str| {
        let (blocks, _) = text.as_bytes().as_chunks::<32>();
        let is_plain = |block: &&[u8; 32]| !block.iter().fold(false, |any, byte| any | special(byte));
        let plain = blocks.iter().take_while(is_plain).count() * 32;
        text.as_bytes()[plain..].iter().position(special).map(|at| plain + at)
    };
    while let Some(at) = next(rest) {
        out.push_str(&rest[..at]);
        let mut behind = rest[at..].chars();
        match behind.next().unwrap_or_default() {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c @ ('<' | '>' | '&' | '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}') => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
        rest = behind.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_as_go_escapes_them() {
        let text = "<a>&\"\\\n\t\r\u{8}\u{c}\u{1}\u{7f}\u{2028}ü";
        assert_eq!(
            marshal(&json!(text)),
            "\"\\u003ca\\u003e\\u0026\\\"\\\\\\n\\t\\r\\b\\f\\u0001\u{7f}\\u2028ü\""
        );
        assert_eq!(Tree::Leaf(json!("<")).to_text(&Layout::COMPACT), "\"<\"");
    }

    #[test]
    fn numbers_as_go_prints_them() {
        let text = |value: Json| marshal(&value);
        assert_eq!(text(json!([0, -1, 18446744073709551615_u64])), "[0,-1,18446744073709551615]");
        assert_eq!(
            text(json!([0.5, 1e20, 1e21, 1.5e-6, 1.5e-7, -2.5e300])),
            "[0.5,100000000000000000000,1e+21,0.0000015,1.5e-7,-2.5e+300]"
        );
    }

    #[test]
    fn layouts() {
        let tree = Tree::Map(vec![
            ("b".into(), Tree::List(vec!["x".into(), Tree::Leaf(json!({"d": {}, "c": []}))])),
            ("a".into(), Tree::Map(Vec::new())),
        ]);
        assert_eq!(tree.to_text(&Layout::COMPACT), r#"{"b":["x",{"c":[],"d":{}}],"a":{}}"#);
        assert_eq!(
            tree.to_text(&Layout::Line { space: " " }),
            r#"{"b": ["x", {"c": [], "d": {}}], "a": {}}"#
        );
        insta::assert_snapshot!(tree.to_text(&Layout::Lines { unit: "  ", margin: "> " }), @r#"
        {
        >   "b": [
        >     "x",
        >     {
        >       "c": [],
        >       "d": {}
        >     }
        >   ],
        >   "a": {}
        > }
        "#);
        assert_eq!(tree.into_json(), json!({"a": {}, "b": ["x", {"c": [], "d": {}}]}));
    }
}
