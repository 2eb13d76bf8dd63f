//! Text from input, as a terminal may see it.

/// Text without characters that could drive a terminal: a carriage return is `\r`, others are such as `\u{1b}`.
pub(crate) fn printable(text: &str) -> std::borrow::Cow<'_, str> {
    let unsafe_char = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(unsafe_char) {
        return text.into();
    }
    text.chars().map(|c| if unsafe_char(c) { c.escape_debug().to_string() } else { c.to_string() }).collect()
}
