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

/// The first bytes of a text that is base64 from its start to its end; none where [`decode`] has to say.
pub fn start(text: &str) -> Option<Vec<u8>> {
    const PART: usize = 4096;
    let mut bytes = [0; PART / 4 * 3];
    let mut start = None;
    let mut parts = text.as_bytes().chunks(PART).peekable();
    while let Some(part) = parts.next() {
        let length = STANDARD.decode_slice(part, &mut bytes).ok()?;
        // Padding ends a text.
        if parts.peek().is_some() && length < bytes.len() {
            return None;
        }
        start.get_or_insert_with(|| bytes[..length].to_vec());
    }
    start
}

/// The text of bytes.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_that_of_the_whole() {
        for length in [1, 2, 3072, 3073, 10_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let text = encode(&bytes);
            assert_eq!(start(&text).unwrap(), bytes[..length.min(3072)]);
            for bad in [format!("{text}="), format!("{}!", &text[..text.len() - 1]), format!("{text}\n")] {
                assert_eq!((start(&bad), decode(&bad).is_ok()), (None, bad.ends_with('\n')), "{length}");
            }
        }
        let padded = encode(&[7; 3070]);
        assert_eq!((start(&format!("{padded}AAAA")), start("")), (None, None));
    }
}
