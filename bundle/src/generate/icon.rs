//! The media type of an icon, read from its bytes.

/// The media types that OLM's consoles show.
pub const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/svg+xml"];

/// The media type of an image, if it is one that consoles show.
///
/// ```
/// use olmkit_bundle::generate::icon::media_type;
/// assert_eq!(media_type(b"<?xml version='1.0'?>\n<svg/>"), Some("image/svg+xml"));
/// assert_eq!(media_type(b"hello"), None);
/// ```
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ => is_svg(bytes).then_some("image/svg+xml"),
    }
}

/// The ending of the file's name for an image that consoles show.
pub(super) fn extension(bytes: &[u8]) -> Option<&'static str> {
    let extension = media_type(bytes)?.rsplit('/').next()?;
    Some(extension.trim_end_matches("+xml"))
}

/// Whether the first element of a text is `svg`, behind declarations and comments.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<!--") => "-->",
            _ if rest.starts_with("<?") || rest.starts_with("<!") => ">",
            _ => return rest.starts_with("<svg"),
        };
        match rest.split_once(end) {
            Some((_, after)) => rest = after.trim_start(),
            None => return false,
        }
    }
}
