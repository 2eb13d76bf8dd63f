//! Where a cluster pulls images from instead of their registries: ImageDigestMirrorSet, ImageTagMirrorSet and, before them,
//! ImageContentSourcePolicy of OpenShift.

use serde_json::Value;

use super::api::Resource;
use super::cluster::{Cluster, ClusterError};

/// The kinds that say it, and the field with their rules.
fn kinds() -> [(Resource, &'static str); 3] {
    let kind = |group: &str, version: &str, kind: &str, plural: &str| Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: false,
    };
    [
        (
            kind("config.openshift.io", "v1", "ImageDigestMirrorSet", "imagedigestmirrorsets"),
            "imageDigestMirrors",
        ),
        (kind("config.openshift.io", "v1", "ImageTagMirrorSet", "imagetagmirrorsets"), "imageTagMirrors"),
        (
            kind(
                "operator.openshift.io",
                "v1alpha1",
                "ImageContentSourcePolicy",
                "imagecontentsourcepolicies",
            ),
            "repositoryDigestMirrors",
        ),
    ]
}

/// The mirror settings of a cluster; none where it does not know such kinds or does not let us read them.
///
/// # Errors
/// The cluster does not answer.
pub fn settings(cluster: &mut dyn Cluster) -> Result<Vec<Value>, ClusterError> {
    let mut found = Vec::new();
    for (kind, _) in kinds() {
        match cluster.list(&kind, None) {
            Ok(documents) => found.extend(documents),
            Err(ClusterError::NotServed { .. } | ClusterError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The references that an image may be pulled by instead, the most special rule first.
///
/// ```
/// use olmkit::lifecycle::mirrors::mirrored;
/// let settings = [serde_json::json!({"kind": "ImageTagMirrorSet", "spec": {"imageTagMirrors": [
///     {"source": "quay.io/team", "mirrors": ["mirror.example.com/team"]},
/// ]}})];
/// assert_eq!(mirrored("quay.io/team/catalog:v1", &settings), ["mirror.example.com/team/catalog:v1"]);
/// ```
pub fn mirrored(reference: &str, settings: &[Value]) -> Vec<String> {
    let by_digest = reference.contains('@');
    let mut rules: Vec<(usize, Vec<String>)> = Vec::new();
    for document in settings {
        let Some((kind, field)) =
            kinds().into_iter().find(|(kind, _)| document["kind"] == kind.kind.as_str())
        else {
            continue;
        };
        if (kind.kind == "ImageTagMirrorSet") == by_digest {
            continue;
        }
        for rule in document["spec"][field].as_array().into_iter().flatten() {
            let source = rule["source"].as_str().unwrap_or("");
            let Some(rest) = rest_of(reference, source) else { continue };
            let mirrors = rule["mirrors"].as_array().into_iter().flatten().filter_map(Value::as_str);
            rules.push((source.len(), mirrors.map(|mirror| format!("{mirror}{rest}")).collect()));
        }
    }
    rules.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    let mut all: Vec<String> = Vec::new();
    for mirror in rules.into_iter().flat_map(|(_, mirrors)| mirrors) {
        if !all.contains(&mirror) {
            all.push(mirror);
        }
    }
    all
}

/// What of a reference follows a source: a host, a host with a path, or `*.` and a domain.
fn rest_of<'r>(reference: &'r str, source: &str) -> Option<&'r str> {
    if let Some(domain) = source.strip_prefix("*.") {
        let (host, _) = reference.split_once('/')?;
        let is_below = host.strip_suffix(domain).is_some_and(|left| left.ends_with('.'));
        return is_below.then(|| &reference[host.len()..]);
    }
    let rest = reference.strip_prefix(source).filter(|_| !source.is_empty())?;
    // `quay.io/team` is no source of `quay.io/teams`.
    (rest.is_empty() || rest.starts_with(['/', ':', '@'])).then_some(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_special_rule_comes_first_and_names_are_whole() {
        let settings = [
            json!({"kind": "ImageDigestMirrorSet", "spec": {"imageDigestMirrors": [
                {"source": "quay.io", "mirrors": ["far.example.com", "near.example.com/all"]},
                {"source": "quay.io/team", "mirrors": ["near.example.com/team"]},
                {"source": "quay.io/tea", "mirrors": ["wrong.example.com"]},
            ]}}),
            json!({"kind": "ImageContentSourcePolicy", "spec": {"repositoryDigestMirrors": [
                {"source": "*.io", "mirrors": ["old.example.com"]},
            ]}}),
        ];
        assert_eq!(
            mirrored("quay.io/team/catalog@sha256:0", &settings),
            [
                "near.example.com/team/catalog@sha256:0",
                "far.example.com/team/catalog@sha256:0",
                "near.example.com/all/team/catalog@sha256:0",
                "old.example.com/team/catalog@sha256:0",
            ]
        );
    }

    #[test]
    fn rules_for_digests_are_not_for_tags() {
        let rule = json!([{"source": "quay.io", "mirrors": ["mirror.example.com"]}]);
        let digests = json!({"kind": "ImageDigestMirrorSet", "spec": {"imageDigestMirrors": rule}});
        let tags = json!({"kind": "ImageTagMirrorSet", "spec": {"imageTagMirrors": rule}});
        let both = [digests, tags];
        assert_eq!(mirrored("quay.io/a:v1", &both[..1]), Vec::<String>::new());
        assert_eq!(mirrored("quay.io/a:v1", &both), ["mirror.example.com/a:v1"]);
        assert_eq!(mirrored("quay.io/a@sha256:0", &both), ["mirror.example.com/a@sha256:0"]);
        assert_eq!(mirrored("quay.ioo/a:v1", &both), Vec::<String>::new());
    }
}
