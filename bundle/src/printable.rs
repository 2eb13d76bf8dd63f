//! Text from input that does nothing where it is shown: in a terminal, in a log that a workflow of GitHub reads, and in JSON.
//!
//! Names come from files, registries and clusters. A terminal acts on control characters; bidirectional and zero-width characters
//! make a name look like another one; a line separator ends a line for some readers; and GitHub takes a line for a command that starts
//! with `::add-mask::` or holds `##[add-mask]`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character is not shown as itself: control characters but for line feeds and tabs, and what is invisible or changes the
/// order or the lines of other text.
pub fn is_hidden(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    is_format || c.is_control() && c != '\n' && c != '\t'
}

/// Text for people: hidden characters are written as `\u{1b}`, and no line is a command of a workflow.
///
/// ```
/// use olmkit_bundle::printable::printable;
/// assert_eq!(printable("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
/// assert_eq!(printable("x\n ::add-mask::y"), "x\n \\u{3a}:add-mask::y");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let mut shown: Cow<'_, str> = text.into();
    if text.contains(is_hidden) {
        shown = text.chars().map(|c| if is_hidden(c) { escaped(c) } else { c.to_string() }).collect();
    }
    if has_command(&shown) { without_commands(&shown).into() } else { shown }
}

/// The same in one line: line feeds and tabs are written as `\n` and `\t`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\t']) {
        true => printable(&text.replace('\n', "\\n").replace('\t', "\\t")).into_owned().into(),
        false => printable(text),
    }
}

/// The commands of a workflow (actions/runner, `ActionCommandManager.cs`).
const COMMANDS: [&str; 16] = [
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "internal-set-repo-path",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
];

/// Whether a workflow would take a line of the text for a command.
pub fn has_command(text: &str) -> bool {
    let bracketed = text.contains("##[") && text.split("##[").skip(1).any(|rest| is_command(rest, ']'));
    bracketed || text.contains("::") && text.lines().any(|line| after_colons(line).is_some())
}

/// What follows the colons of a line that is a command.
fn after_colons(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("::").filter(|rest| is_command(rest, ':'))
}

fn is_command(text: &str, end: char) -> bool {
    let name = text.split([' ', end]).next().unwrap_or_default();
    COMMANDS.iter().any(|command| name.eq_ignore_ascii_case(command))
}

fn without_commands(text: &str) -> String {
    let line = |line: &str| match after_colons(line) {
        Some(rest) => format!("{}\\u{{3a}}:{rest}", &line[..line.len() - rest.len() - 2]),
        None => line.to_owned(),
    };
    text.replace("##[", "#\\u{23}[").split_inclusive('\n').map(line).collect()
}

/// A hidden character as Rust writes it.
pub fn escaped(c: char) -> String {
    if c == '\r' { "\\r".to_owned() } else { c.escape_unicode().to_string() }
}

/// JSON with hidden characters and commands escaped: outside of strings there are none.
pub fn json(text: String) -> String {
    in_strings(text, "#\\u0023[", |out, c| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// YAML with hidden characters and commands escaped, where all texts that have any are double-quoted, except keys.
pub fn quoted_yaml(text: String) -> String {
    let text = if acts(&text) { text.split_inclusive('\n').map(with_quoted_key).collect() } else { text };
    in_strings(text, "#\\x23[", |out, c| {
        let _ = match c as u32 {
            code @ ..=0xff => write!(out, "\\x{code:02x}"),
            code @ ..=0xffff => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        };
    })
}

fn acts(text: &str) -> bool {
    text.contains(is_hidden) || text.contains("##[")
}

/// A line of YAML with its key in double quotes, if an escape in it has to count.
fn with_quoted_key(line: &str) -> String {
    let mut rest = line.trim_start_matches(' ');
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start_matches(' ');
    }
    let colon = || rest.find(": ").or_else(|| rest.trim_end().strip_suffix(':').map(str::len));
    let (key, value) = match rest.strip_prefix('\'') {
        Some(quoted) => match quoted.replace("''", "\0\0").find('\'') {
            Some(end) => (quoted[..end].replace("''", "'"), &quoted[end + 1..]),
            None => return line.to_owned(),
        },
        None => match colon().filter(|_| !rest.starts_with('"')) {
            Some(end) => (rest[..end].to_owned(), &rest[end..]),
            None => return line.to_owned(),
        },
    };
    if !acts(&key) {
        return line.to_owned();
    }
    let before = &line[..line.len() - rest.len()];
    format!("{before}\"{}\"{value}", key.replace('\\', "\\\\").replace('"', "\\\""))
}

fn in_strings(text: String, bracket: &str, escape: impl Fn(&mut String, char)) -> String {
    let text = if has_command(&text) { text.replace("##[", bracket) } else { text };
    if !text.contains(is_hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_hidden(c) { escape(&mut out, c) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_shown() {
        for (text, expected) in [
            ("plain: über 日本 ::", "plain: über 日本 ::"),
            ("a\tb\nc", "a\tb\nc"),
            ("\r\u{7f}\u{9b}31m", "\\r\\u{7f}\\u{9b}31m"),
            ("\u{200b}\u{2028}\u{2066}\u{feff}", "\\u{200b}\\u{2028}\\u{2066}\\u{feff}"),
            ("::error::x", "\\u{3a}:error::x"),
            ("x ##[add-mask]y", "x #\\u{23}[add-mask]y"),
            ("::1 is local", "::1 is local"),
            ("##[Title](#title)", "##[Title](#title)"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(one_line("a\n::b\tc"), "a\\n::b\\tc");
    }

    #[test]
    fn what_is_hidden_in_strings_is_escaped_and_reads_as_it_was() {
        let value = serde_json::json!({
            "a\u{202e}": "\u{7f}\u{9b}\u{2028}\u{e0041}\u{1b}##[debug]",
            "##[debug]it's": [{"x##[debug]": 1}, {"\\\"\u{200b}": {"b\u{2028}": []}}],
        });
        let text = json(value.to_string());
        assert!(!text.contains(is_hidden) && !has_command(&text), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        let text = crate::yaml::write::to_string(&value).unwrap();
        assert!(!text.contains(is_hidden) && !has_command(&text), "{text}");
    }
}
