//! Places inside a text that is itself a YAML value, such as the JSON of `alm-examples`.

use crate::source::{Source, Span};
use crate::yaml::Node;

/// Where a part of a scalar's text stands in the file, when the scalar is written in literal style (`|`): only there is
/// a line of the text a line of the file. The scalar as a whole otherwise.
pub(super) fn locate(file: &Source<'_>, scalar: &Node<'_>, text: &Source<'_>, part: Span) -> Span {
    locate_literal(file, scalar.span, text, part).unwrap_or(scalar.span)
}

fn locate_literal(file: &Source<'_>, scalar: Span, text: &Source<'_>, part: Span) -> Option<Span> {
    let before = file.text().get(..scalar.start as usize)?.trim_end();
    let header_line = file.position(before.len() as u32).line;
    let header = before.get(file.line_start(header_line)? as usize..)?;
    let header = header.split(" #").next().unwrap_or(header).trim_end();
    header.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+')).strip_suffix('|')?;

    let line = text.position(part.start).line;
    let (written, meant) = (file.line(header_line + line), text.line(line));
    let indent = written.strip_suffix(meant)?;
    if !indent.bytes().all(|byte| byte == b' ') {
        return None;
    }
    let start = file.line_start(header_line + line)? as usize + indent.len();
    let line_start = text.line_start(line)?;
    let within = |offset: u32| (offset.saturating_sub(line_start) as usize).min(meant.len());
    Some(Span::new(start + within(part.start), start + within(part.end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{first_document, steps};

    /// Where `needle` of the text at `a.b` is found in the file.
    fn find(file: &str, needle: &str) -> String {
        let document = first_document(file).unwrap();
        let node = document.root.at(steps!("a", "b")).unwrap();
        let text = node.as_str().unwrap();
        let at = text.find(needle).unwrap();
        let source = Source::new("", file);
        let span = locate(&source, node, &Source::new("", text), Span::new(at, at + needle.len()));
        let position = source.position(span.start);
        format!("{}:{} {}", position.line, position.column, span.slice(file))
    }

    #[test]
    fn lines_of_a_literal_scalar_are_lines_of_the_file() {
        assert_eq!(find("a:\n  b: |\n    [\n      {x: 1}\n    ]\n", "x: 1"), "4:8 x: 1");
        assert_eq!(find("a:\n  b: |-  # why\n\n    one\n    ünder\n", "der"), "5:7 der");
        assert_eq!(find("a:\n  b: |2+\n      one\n     two\n", "two"), "4:6 two");
        assert_eq!(find("a:\r\n  b: |\r\n    one\r\n    two\r\n", "two"), "4:5 two");
        assert_eq!(find("x: &x |\n  one\n  two\na: {b: *x}\n", "two"), "3:3 two");
    }

    #[test]
    fn other_styles_are_marked_as_a_whole() {
        assert_eq!(find("a:\n  b: '[x, y]'\n", "y"), "2:6 '[x, y]'");
        assert_eq!(find("a:\n  b: >\n    one\n    two\n", "two"), "3:5 one\n    two");
        assert_eq!(find("a:\n  b: one two\n", "two"), "2:6 one two");
    }
}
