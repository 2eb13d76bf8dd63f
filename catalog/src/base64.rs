//! Base64 as Go's encoding/json reads it: standard alphabet, padded, line breaks allowed.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};

/// The bytes of a text, or what is wrong with it.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let decoded = STANDARD.decode(text).or_else(|error| {
        // Rare, and a text is long: looked for when there is a reason.
        if text.contains(['\r', '\n']) { STANDARD.decode(text.replace(['\r', '\n'], "")) } else { Err(error) }
    });
    decoded.map_err(|error| match error {
        DecodeError::InvalidByte(at, byte) => format!("`{}` at byte {at}", byte.escape_ascii()),
        DecodeError::InvalidLength(_) => "it is cut off".to_owned(),
        DecodeError::InvalidLastSymbol(at, _) => format!("its last group, at byte {at}, has bits too many"),
        DecodeError::InvalidPadding => "its padding is wrong".to_owned(),
    })
}

/// The text of bytes.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_passed_over_and_nothing_else() {
        assert_eq!(decode("aGVs\r\nbG8=\n").unwrap(), b"hello");
        for (text, why) in
            [("aGVs bG8=", "` ` at byte 4"), ("aGVsbG8", "its padding is wrong"), ("a", "it is cut off")]
        {
            assert_eq!(decode(text).unwrap_err(), why, "{text}");
        }
        assert_eq!(encode(b"hello"), "aGVsbG8=");
    }
}
