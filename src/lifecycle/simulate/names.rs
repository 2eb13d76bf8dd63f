//! The names that OLM makes out of what they stand for (operator-lifecycle-manager `pkg/controller/registry/resolver/rbac.go`,
//! `pkg/controller/bundle/bundle_unpacker.go`).

use k8s_openapi::api::rbac::v1::PolicyRule;
use olmkit_bundle::csv::Permissions;
use serde::Serialize;
use sha2::{Digest as _, Sha224, Sha256};

/// The longest name that OLM makes for a role.
const MAX_NAME: usize = 63;

/// A policy rule with its fields in the order of Go's type, which the digest depends on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoRule<'r> {
    verbs: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    api_groups: Option<&'r Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<&'r Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_names: Option<&'r Vec<String>>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Option::is_none")]
    non_resource_urls: Option<&'r Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoPermission<'p> {
    service_account_name: &'p str,
    rules: Vec<GoRule<'p>>,
}

#[derive(Serialize)]
struct Hashed<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'p str>,
    permission: GoPermission<'p>,
}

/// The name of the Role and the RoleBinding for a permission.
pub(super) fn role(csv: &str, permission: &Permissions) -> String {
    let hashed = Hashed { name: csv, namespace: None, permission: GoPermission::of(permission) };
    hashed_name(&format!("{csv}-{}", permission.service_account_name), &hashed)
}

/// The name of the ClusterRole and the ClusterRoleBinding for a permission.
pub(super) fn cluster_role(csv: &str, namespace: &str, permission: &Permissions) -> String {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    hashed_name(csv, &Hashed { name: csv, namespace, permission: GoPermission::of(permission) })
}

/// The name of the Job and the ConfigMap that unpack a bundle's image.
pub(in crate::lifecycle) fn unpack(image: &str) -> String {
    let mut name: String =
        Sha256::digest(image.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    name.truncate(MAX_NAME);
    name
}

/// Something of the length and look of OLM's hashes, of a text.
pub(super) fn hash(text: &str) -> String {
    base62(&Sha224::digest(text.as_bytes()))
}

impl<'p> GoPermission<'p> {
    fn of(permission: &'p Permissions) -> Self {
        fn some(list: Option<&Vec<String>>) -> Option<&Vec<String>> {
            list.filter(|list| !list.is_empty())
        }
        let rule = |rule: &'p PolicyRule| GoRule {
            verbs: &rule.verbs,
            api_groups: some(rule.api_groups.as_ref()),
            resources: some(rule.resources.as_ref()),
            resource_names: some(rule.resource_names.as_ref()),
            non_resource_urls: some(rule.non_resource_urls.as_ref()),
        };
        Self {
            service_account_name: &permission.service_account_name,
            rules: permission.rules.iter().map(rule).collect(),
        }
    }
}

fn hashed_name(base: &str, hashed: &Hashed<'_>) -> String {
    // Go's encoder escapes for HTML and ends with a newline.
    let mut text = serde_json::to_string(hashed).unwrap_or_default();
    for (plain, escaped) in [("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")] {
        text = text.replace(plain, escaped);
    }
    let hash = hash(&(text + "\n"));
    let mut base = base.to_owned();
    if base.len() + hash.len() > MAX_NAME {
        base.truncate(base.floor_char_boundary(MAX_NAME - hash.len() - 1));
    }
    format!("{base}-{hash}")
}

/// A number in the digits of Go's `big.Int.Text(62)`.
fn base62(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = bytes.to_vec();
    let mut text = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 62) as u8;
            rest = value % 62;
        }
        text.push(char::from(DIGITS[rest as usize]));
    }
    text.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_as_olm_names_them() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let permission = Permissions {
            service_account_name: "demo-controller".into(),
            rules: vec![PolicyRule {
                verbs: words(&["get", "list", "watch"]),
                api_groups: Some(words(&[""])),
                resources: Some(words(&["pods"])),
                ..PolicyRule::default()
            }],
        };
        // As OLM 0.46 wrote it.
        assert_eq!(
            role("demo.v0.3.0", &permission),
            "demo.v0.3.0-demo-control-1WqcnrPEUwziPheA1eITnKV7tqXKzvR4VwkO9e"
        );
        assert_eq!(
            unpack("127.0.0.1:5000/t01/demo-bundle:v0.3.0"),
            "fe2a258224cb38d5e2fd6121db8e81cdeb44913a8e435cf3739dd2e792fb384"
        );
    }
}
