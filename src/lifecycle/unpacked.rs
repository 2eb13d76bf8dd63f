//! The ConfigMaps that OLM unpacks bundles into: each file is compressed, encoded, and encoded again by the API.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The largest file that is read, in bytes after decompression.
const MAX_FILE: u64 = 8 << 20;

/// The texts of an unpacked bundle by file name; what cannot be decoded is left out.
pub(super) fn texts(map: &Value) -> impl Iterator<Item = (&str, String)> {
    let entries = |path: &str| map.pointer(path).and_then(Value::as_object).into_iter().flatten();
    let plain = entries("/data").filter_map(|(name, text)| Some((name.as_str(), text.as_str()?.to_owned())));
    let packed =
        entries("/binaryData").filter_map(|(name, text)| Some((name.as_str(), unpack(text.as_str()?)?)));
    plain.chain(packed)
}

fn unpack(text: &str) -> Option<String> {
    let bytes = STANDARD.decode(text).ok()?;
    let bytes = STANDARD.decode(&bytes).unwrap_or(bytes);
    let mut text = String::new();
    match flate2::read::MultiGzDecoder::new(&bytes[..]).take(MAX_FILE).read_to_string(&mut text) {
        Ok(_) => Some(text),
        Err(_) => String::from_utf8(bytes).ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_read_however_they_are_encoded() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(b"kind: Role").unwrap();
        let once = STANDARD.encode(packer.finish().unwrap());
        let map = json!({
            "data": {"plain.yaml": "kind: A"},
            "binaryData": {
                "twice.yaml": STANDARD.encode(&once), "once.yaml": once,
                "text.yaml": STANDARD.encode("kind: B"), "broken.yaml": "%",
            },
        });
        let found: Vec<(&str, String)> = texts(&map).collect();
        let expected = [
            ("plain.yaml", "kind: A"),
            ("once.yaml", "kind: Role"),
            ("text.yaml", "kind: B"),
            ("twice.yaml", "kind: Role"),
        ];
        let mut found: Vec<(&str, &str)> = found.iter().map(|(name, text)| (*name, text.as_str())).collect();
        found[1..].sort_unstable();
        assert_eq!(found, expected);
    }
}
