//! A file's text to the values in it: YAML documents, or JSON values one after another.
//!
//! Which of the two a file is, opm's reader (apimachinery's `YAMLOrJSONDecoder`) decides by the first character, and decides
//! again when a file that began as JSON stops being it at the first or second value: what follows is read as YAML.
//!
//! Long texts are cut into [`parts`] that are read side by side; where one of them has a fault the text is read as a whole.

use std::ops::Range;

use olmkit_bundle::source::Span;
use olmkit_bundle::yaml::{self, SyntaxError};
use serde_json::value::RawValue;

use super::value::Value;

/// Parts shorter than this are not worth the cut.
const PART: usize = 256 << 10;

/// Cuts a text between its values.
pub(super) fn parts(text: &str) -> Vec<Range<usize>> {
    let cut = if is_json(text) { cut_values } else { cut_documents };
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(behind) = text.get(text.ceil_char_boundary(from + PART)..).filter(|rest| !rest.is_empty())
    {
        let Some((end, next)) = cut(text, text.len() - behind.len()) else { break };
        parts.push(from..end);
        from = next;
    }
    parts.push(from..text.len());
    parts
}

/// The values of a part of a text, or none when there is a fault in it: then what the whole text says is what counts.
pub(super) fn part_values<'a>(text: &'a str, part: &Range<usize>) -> Option<Vec<Value<'a>>> {
    let up_to = &text[..part.end];
    if !is_json(text) {
        return documents(up_to, part.start).map(Result::ok).collect();
    }
    match json_values(up_to, part.start) {
        (values, None) => Some(values),
        (_, Some(_)) => None,
    }
}

/// The JSON values of a text from an offset on; after them what is none, and where it starts.
fn json_values(text: &str, from: usize) -> (Vec<Value<'_>>, Option<(usize, serde_json::Error)>) {
    let mut values = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(&text[from..]).into_iter::<&RawValue>();
    let mut read = from;
    while let Some(value) = stream.next() {
        match value {
            Ok(raw) => {
                read = from + stream.byte_offset();
                values.push(Value::json(raw.get(), read - raw.get().len()));
            }
            Err(error) => return (values, Some((read, error))),
        }
    }
    (values, None)
}

/// Whether a text begins with JSON.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The first place behind another where a text of JSON values can be cut: where one part ends and the next starts. A line break
/// between `}` and `{` cannot be inside a value.
fn cut_values(text: &str, behind: usize) -> Option<(usize, usize)> {
    let mut starts = text[behind..].match_indices("\n{").map(|(at, _)| behind + at + 1);
    starts.find(|start| text[..*start].trim_ascii_end().ends_with('}')).map(|start| (start, start))
}

/// The same of a text of YAML documents: at a separator that does not follow another one, which the parser would take for the start
/// of a document.
fn cut_documents(text: &str, behind: usize) -> Option<(usize, usize)> {
    let mut separators = text[behind..].match_indices("\n---").map(|(at, _)| {
        let start = behind + at + 1;
        (start, text[start..].find('\n').map_or(text.len(), |end| start + end + 1))
    });
    separators.find(|(start, end)| {
        let before = text[..*start - 1].rfind('\n').map_or(0, |at| at + 1);
        let rest = text[*start + 3..*end].trim();
        (rest.is_empty() || rest.starts_with('#')) && !text[before..].starts_with("---")
    })
}

/// The values of a text, in order; after an error in JSON there is nothing more.
pub(super) fn values(text: &str) -> Vec<Result<Value<'_>, SyntaxError>> {
    if !is_json(text) {
        return documents(text, 0).collect();
    }
    let start = text.len() - text.trim_start().len();
    let (values, error) = json_values(text, start);
    let mut values: Vec<_> = values.into_iter().map(Ok).collect();
    match error {
        None => {}
        Some((_, error)) if values.len() > 1 => values.push(Err(json_error(text, start, &error))),
        Some((read, error)) => {
            let rest = documents(text, behind_break(text, read));
            values.extend(prefer_json_error(rest, || json_error(text, start, &error)));
        }
    }
    values
}

/// Reads every part of a JSON value that stands in a file. What is no JSON has been read as YAML.
pub(super) fn check_value(text: &str, at: Span) -> Result<(), SyntaxError> {
    let value = at.slice(text);
    match serde_json::from_str::<serde_json::Value>(value) {
        Err(error) if serde_json::from_str::<&RawValue>(value).is_ok() => {
            Err(json_error(text, at.start as usize, &error))
        }
        _ => Ok(()),
    }
}

/// The first number of a JSON value that no 64-bit float holds, which Go's reader refuses. What is no JSON has been read as YAML,
/// where such a number is a text.
pub(super) fn too_large_number(text: &str, at: Span) -> Option<Span> {
    let value = at.slice(text);
    if !may_have_large_number(value.as_bytes()) {
        return None;
    }
    let (start, end) = numbers(value)
        .find(|(start, end)| value[*start..*end].parse().is_ok_and(|number: f64| number.is_infinite()))?;
    let is_json = serde_json::from_str::<&RawValue>(value).is_ok();
    is_json.then(|| Span::new(at.start as usize + start, at.start as usize + end))
}

/// Whether a text has an exponent of three digits, or digits enough to need none. A look at every third byte tells for most texts.
fn may_have_large_number(bytes: &[u8]) -> bool {
    const MANY: usize = 200;
    let mut at = 2;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 3;
            continue;
        }
        let start =
            bytes[..at].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |before| before + 1);
        let end =
            bytes[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |more| at + more);
        let before = bytes[..start].strip_suffix(b"+").unwrap_or(&bytes[..start]);
        if end - start >= MANY || end - start >= 3 && matches!(before, [.., b'0'..=b'9', b'e' | b'E']) {
            return true;
        }
        at = end + 3;
    }
    false
}

/// Where the numbers of a JSON text stand: those in strings are not among them.
fn numbers(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(byte) = bytes.get(at) {
            let start = at;
            at += 1;
            match byte {
                b'"' => {
                    while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                        at += if *byte == b'\\' { 2 } else { 1 };
                    }
                    at += 1;
                }
                b'-' | b'0'..=b'9' => {
                    let is_more = |byte: &u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    at += bytes[at..].iter().position(|byte| !is_more(byte)).unwrap_or(bytes.len() - at);
                    return Some((start, at));
                }
                _ => {}
            }
        }
        None
    })
}

fn documents(text: &str, from: usize) -> impl Iterator<Item = Result<Value<'_>, SyntaxError>> {
    yaml::documents_from(text, from).map(|document| document.map(|document| Value::yaml(document.root)))
}

/// Where the next line starts, if nothing but white space comes before.
fn behind_break(text: &str, at: usize) -> usize {
    let space = text[at..].len() - text[at..].trim_start().len();
    text[at..at + space].find('\n').map_or(at + space, |newline| at + newline + 1)
}

/// When the first document is no YAML either, the text was meant as JSON: says what JSON's reader said of it.
fn prefer_json_error<'a>(
    documents: impl Iterator<Item = Result<Value<'a>, SyntaxError>>,
    json: impl FnOnce() -> SyntaxError,
) -> Vec<Result<Value<'a>, SyntaxError>> {
    let mut documents: Vec<_> = documents.collect();
    if let Some(Err(_)) = documents.first() {
        documents = vec![Err(json())];
    }
    documents
}

/// What serde_json says, without the line and column that a span says better.
fn json_error(text: &str, start: usize, error: &serde_json::Error) -> SyntaxError {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
    // Lines count from 1 and columns are bytes; at the end of a line the column is 0 of the next.
    let mut lines = text[start..].split_inclusive('\n');
    let before: usize = lines.by_ref().take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (start + before + error.column().saturating_sub(1)).min(text.len());
    SyntaxError { message, span: Span::at(text.floor_char_boundary(at)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let line = |value: Result<Value<'_>, SyntaxError>| match value {
            Ok(value) => format!("{} at {}", value.to_json(), value.span().start),
            Err(error) => format!("{} at {}", error.message, error.span.start),
        };
        assert_eq!(values(text).into_iter().map(line).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn yaml_documents_and_json_values() {
        check("a: 1\n---\nb: 2\n", &[r#"{"a":1} at 0"#, r#"{"b":2} at 9"#]);
        check(" {\"a\": 1}{\"b\": 2}\n[]\n", &[r#"{"a":1} at 1"#, r#"{"b":2} at 9"#, "[] at 18"]);
        check("", &[]);
        check("[1]", &["[1] at 0"]);
    }

    #[test]
    fn parts_have_the_values_of_the_whole() {
        let filler = "x".repeat(PART / 2);
        let json = format!("{{\"a\":\"{filler}\",\"b\":[\n{{\n}},\n{{}}]}}\n");
        let yaml = format!("a: {filler}\nb: |\n  ---\n");
        for (text, is_cut) in [
            (json.repeat(9), true),
            (format!("  {}", json.replace('\n', "\r\n \n").repeat(9)), true),
            (json.trim_end().repeat(9), false),
            ([yaml.as_str(); 9].join("---\n"), true),
            ([yaml.as_str(); 9].join("---\n---\n"), true),
            ([yaml.as_str(); 9].join("--- # comment\r\n"), true),
            ([yaml.as_str(); 9].join("---\n--- x\n"), true),
        ] {
            let places = |values: Vec<Value<'_>>| values.iter().map(Value::span).collect::<Vec<_>>();
            let whole: Option<Vec<_>> = values(&text).into_iter().map(Result::ok).collect();
            let parts = parts(&text);
            let read = parts.iter().map(|part| part_values(&text, part)).collect::<Option<Vec<_>>>();
            assert_eq!(read.map(|read| places(read.into_iter().flatten().collect())), whole.map(places));
            assert_eq!(parts.len() > 1, is_cut, "{:?}", text.get(text.len() - 20..));
        }
    }

    #[test]
    fn json_that_goes_on_as_yaml() {
        check("{\"a\": 1}\n---\nb: 2\n", &[r#"{"a":1} at 0"#, r#"{"b":2} at 13"#]);
        check("{\"a\": 1}\nb: 2\n", &[r#"{"a":1} at 0"#, r#"{"b":2} at 9"#]);
        // A line break in a string is no JSON, but YAML.
        check("{\"a\": \"\n\"}", &[r#"{"a":" "} at 0"#]);
        check("{a: 1}\n---\n{b: 2}\n", &[r#"{"a":1} at 0"#, r#"{"b":2} at 11"#]);
    }

    #[test]
    fn a_fault_says_what_json_says_where_yaml_fails_too() {
        check("{\"a\": 1,, }\n", &["key must be a string at 8"]);
        check("{}{}{\"a\": 1} x: y\n", &["{} at 0", "{} at 2", r#"{"a":1} at 4"#, "expected value at 13"]);
        check("{\"a\": [1, 2", &["EOF while parsing a list at 10"]);
    }
}
