//! JSON documents as bytes that never differ: keys sorted, no white space.

use serde::Serialize;

/// The document's canonical bytes. The types of `oci-spec` hold labels in a `HashMap`, whose order changes from run to
/// run; the way through `Value` sorts them.
pub(super) fn canonical<T: Serialize>(document: &T) -> Vec<u8> {
    let mut value = serde_json::to_value(document)
        // Serialising fails for maps with keys that are not strings and for a `Serialize` that refuses; the documents
        // here are OCI's own structs of strings, numbers and string-keyed maps, which do neither.
        .expect("OCI documents have string keys only");
    // Without effect until some crate in the build turns on serde_json's `preserve_order`.
    value.sort_all_objects();
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let inner: HashMap<&str, u8> = [("b", 1), ("a", 2), ("c", 3)].into();
        let document: HashMap<&str, HashMap<&str, u8>> = [("y", inner.clone()), ("x", inner)].into();
        assert_eq!(canonical(&document), br#"{"x":{"a":2,"b":1,"c":3},"y":{"a":2,"b":1,"c":3}}"#);
    }
}
