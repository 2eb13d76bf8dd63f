//! ConfigMaps and Secrets: keys, values, and how large they are together.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

use crate::refused::{Check, plain};
use crate::yaml::{Mapping, Node, Step, Value, steps};

/// What the values of a ConfigMap or Secret may take together.
const MAX_BYTES: usize = 1 << 20;
/// As Go decodes it, which does not care about the last bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// A ConfigMap.
pub(super) fn config_map<'n>(check: &mut Check<'n>, root: &'n Node<'_>) {
    let data = texts(check, root, "data");
    let binary = bytes(check, root, "binaryData");
    for key in data.keys().copied().filter(|key| binary.contains_key(key)) {
        let message = format!("`{}` is a key of `data` and of `binaryData`", plain(key));
        check.push(&[Step::Key("binaryData"), Step::Key(key)], message, "keep one of the two");
    }
    size(check, "ConfigMap", data.values().map(|text| text.len()).chain(binary.values().map(Vec::len)));
}

/// A Secret.
pub(super) fn secret<'n>(check: &mut Check<'n>, root: &'n Node<'_>) {
    let mut data = bytes(check, root, "data");
    let texts = texts(check, root, "stringData");
    data.extend(texts.into_iter().map(|(key, text)| (key, text.as_bytes().to_vec())));
    size(check, "Secret", data.values().map(Vec::len));
    let kind = root.get("type").and_then(Node::as_str).unwrap_or("");
    let has = |key: &str| data.contains_key(key);
    let path = steps!("type");
    let mut lacks = |keys: &str| {
        let message = format!("a Secret of the type `{}` has {keys}", plain(kind));
        check.push(path, message, "add it, or remove `type`");
    };
    match kind {
        "kubernetes.io/service-account-token" => {
            let account = root.at(steps!("metadata", "annotations", "kubernetes.io/service-account.name"));
            if account.and_then(Node::as_str).is_none_or(str::is_empty) {
                lacks("the annotation `kubernetes.io/service-account.name`");
            }
        }
        "kubernetes.io/dockercfg" if !is_json_map(data.get(".dockercfg")) => {
            lacks("the key `.dockercfg` with a map in JSON");
        }
        "kubernetes.io/dockerconfigjson" if !is_json_map(data.get(".dockerconfigjson")) => {
            lacks("the key `.dockerconfigjson` with a map in JSON");
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            lacks("the key `username` or `password`");
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_none_or(Vec::is_empty) => {
            lacks("the key `ssh-privatekey`, which is not empty");
        }
        "kubernetes.io/tls" if !has("tls.crt") || !has("tls.key") => {
            lacks("the keys `tls.crt` and `tls.key`");
        }
        _ => {}
    }
}

/// A map of texts; what is not text counts as an empty one.
fn texts<'n>(check: &mut Check<'n>, root: &'n Node<'_>, field: &'static str) -> BTreeMap<&'n str, &'n str> {
    let mut found = BTreeMap::new();
    for entry in map(check, root, field).into_iter().flatten() {
        let key: &'n str = &entry.key;
        check.below(&[Step::Key(field), Step::Key(key)], |check| {
            self::key(check, key);
            match &entry.value.value {
                Value::String(text) => drop(found.insert(key, text.as_ref())),
                Value::Null => drop(found.insert(key, "")),
                _ => {
                    check.not_text(&entry.value);
                    found.insert(key, "");
                }
            }
        });
    }
    found
}

/// A map of bytes in base64; what is not counts as it stands.
fn bytes<'n>(check: &mut Check<'n>, root: &'n Node<'_>, field: &'static str) -> BTreeMap<&'n str, Vec<u8>> {
    let mut found = BTreeMap::new();
    for (key, text) in texts(check, root, field) {
        // Go's decoder ignores line breaks.
        let packed: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
        match BASE64.decode(packed) {
            Ok(bytes) => drop(found.insert(key, bytes)),
            Err(_) => {
                let message = format!("the value of `{}` in `{field}` is not base64", plain(key));
                let help = match field {
                    "data" => "encode it, or move it to `stringData` as it is",
                    _ => "encode it, or move it to `data` as it is",
                };
                check.push(&[Step::Key(field), Step::Key(key)], message, help);
                found.insert(key, text.as_bytes().to_vec());
            }
        }
    }
    found
}

fn map<'n, 'a>(check: &mut Check<'n>, root: &'n Node<'a>, field: &'static str) -> Option<&'n Mapping<'a>> {
    let node = root.get(field).filter(|node| !node.is_null())?;
    let map = node.as_mapping();
    if map.is_none() {
        let message = format!("expected a map in `{field}`, found {}", node.value);
        check.push(&[Step::Key(field)], message, "write `KEY: VALUE` below it");
    }
    map
}

/// A key that is the name of a file where the object is mounted.
fn key(check: &mut Check<'_>, key: &str) {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let why = if key.is_empty() {
        "it is empty"
    } else if key.len() > 253 {
        "it is longer than 253 characters"
    } else if !key.bytes().all(is_allowed) {
        "only letters, digits, `-`, `_` and `.` are allowed"
    } else if key == "." || key.starts_with("..") {
        "it is `.` or starts with `..`"
    } else {
        return;
    };
    let message = format!("`{}` cannot be a key: {why}", plain(key));
    check.push(&[], message, "rename the key, and set `items` with `key` and `path` where it is mounted");
}

fn size(check: &mut Check<'_>, kind: &str, sizes: impl Iterator<Item = usize>) {
    let bytes: usize = sizes.sum();
    if bytes > MAX_BYTES {
        let message = format!("the values take {bytes} bytes, and a {kind} holds {MAX_BYTES}");
        check.push(&[], message, format!("split the {kind} into several, or make its values smaller"));
    }
}

fn is_json_map(bytes: Option<&Vec<u8>>) -> bool {
    bytes.is_some_and(|bytes| {
        serde_json::from_slice::<serde_json::Value>(bytes)
            .is_ok_and(|json| json.is_object() || json.is_null())
    })
}
