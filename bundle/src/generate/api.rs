//! The custom resources that the operator brings, and examples of them.

use serde_json::{Value, json};

use super::input::{self, Objects};
use crate::crd::Crd;
use crate::finding::Findings;
use crate::yaml::Node;

/// What the operator brings.
pub(super) struct Api {
    /// The entries of `spec.customresourcedefinitions.owned`.
    pub(super) owned: Vec<Value>,
    /// The custom resources of `alm-examples`.
    pub(super) examples: Vec<Value>,
}

pub(super) fn derive(objects: &Objects<'_, '_>, findings: &mut Findings) -> Api {
    let mut owned = Vec::new();
    for object in &objects.crds {
        let strategy = ["spec".into(), "conversion".into(), "strategy".into()];
        if object.text(&strategy) == "Webhook" {
            findings.push(input::webhook(object, &strategy));
        }
        let crd = Crd::from(*object);
        for version in crd.versions() {
            let mut entry = json!({
                "name": crd.name(),
                "version": version.name,
                "kind": crd.kind(),
                "displayName": spaced(&crd.kind()),
            });
            let description =
                version.node.at(&["schema".into(), "openAPIV3Schema".into(), "description".into()]);
            if let Some(description) = description.and_then(Node::as_str) {
                entry["description"] = description.into();
            }
            owned.push(entry);
        }
    }
    let examples = objects.samples.iter().map(|sample| sample.root.to_json()).collect();
    Api { owned, examples }
}

/// `RedisCluster` as `Redis Cluster`; runs of capitals stay together.
fn spaced(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut words = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let starts_word = at > 0
            && letter.is_uppercase()
            && (letters[at - 1].is_lowercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if starts_word {
            words.push(' ');
        }
        words.push(*letter);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_as_words() {
        for (kind, words) in [
            ("RedisCluster", "Redis Cluster"),
            ("HTTPRoute", "HTTP Route"),
            ("Etcd", "Etcd"),
            ("DNSName", "DNS Name"),
        ] {
            assert_eq!(spaced(kind), words);
        }
    }
}
