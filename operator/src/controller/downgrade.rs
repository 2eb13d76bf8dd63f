//! Whether an update would start a server that cannot read the files of the one that runs: an older one, or one of another flavour.

use crate::plan::{Flavour, Observed, Pod, Version};

/// An update that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downgrade {
    /// The version that runs.
    pub from: Version,
    /// The version of the new image.
    pub to: Version,
}

/// Compares the new image with the pods that are still to be updated. Its tag counts where the tags of the pods' images are the
/// versions of their servers; otherwise the version is known once the first updated pod responds.
pub fn downgrade(image: &str, observed: &Observed) -> Option<Downgrade> {
    let (outdated, updated): (Vec<&Pod>, Vec<&Pod>) = observed.pods.iter().partition(|pod| pod.outdated);
    let runs = |pod: &&'_ Pod| Some(pod.redis.as_ref()?.version.clone());
    let by_tag = outdated.iter().any(|pod| {
        let tag = pod.image.as_deref().and_then(|image| tagged(image, Flavour::default()));
        tag.and_then(|tag| tag.major())
            .is_some_and(|major| runs(pod).is_some_and(|runs| runs.major() == Some(major)))
    });
    let before = || outdated.iter().filter_map(runs);
    let named = before().next().filter(|_| by_tag).and_then(|from| tagged(image, from.flavour));
    let after: Vec<Version> = named.into_iter().chain(updated.iter().filter_map(runs)).collect();
    before().find_map(|from| {
        let to = after.iter().find(|to| to.reads(&from) == Some(false))?.clone();
        Some(Downgrade { from, to })
    })
}

/// The version in an image's tag: 7.2.5 of Redis for `library/redis:7.2.5-alpine`. An image whose name has no flavour has that of
/// the pods.
fn tagged(image: &str, otherwise: Flavour) -> Option<Version> {
    let name = image.split('@').next()?;
    let (name, tag) = name.rsplit('/').next()?.split_once(':')?;
    let number = tag.split('-').next()?;
    let is_version = number.split('.').all(|part| part.parse::<u32>().is_ok());
    let flavour = match name {
        _ if name.contains("valkey") => Flavour::Valkey,
        _ if name.contains("redis") => Flavour::Redis,
        _ => otherwise,
    };
    is_version.then(|| Version { flavour, number: number.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Node;

    /// A pod: `image flavour version`, and whether it is outdated.
    fn pod(words: &str, outdated: bool) -> Pod {
        let (image, version) = words.split_once(' ').unwrap();
        let (flavour, number) = version.split_once(' ').unwrap_or(("Redis", version));
        let flavour = if flavour == "Valkey" { Flavour::Valkey } else { Flavour::Redis };
        let version = Version { flavour, number: number.into() };
        let redis = Node { version, ..Node::default() };
        Pod { image: Some(image.into()), outdated, redis: Some(redis), ..Pod::default() }
    }

    #[track_caller]
    fn check(image: &str, outdated: &str, updated: Option<&str>, expected: Option<(&str, &str)>) {
        let mut pods = vec![pod(outdated, true)];
        pods.extend(updated.map(|updated| pod(updated, false)));
        let observed = Observed { pods, ..Observed::default() };
        let found = downgrade(image, &observed).map(|found| (found.from.to_string(), found.to.to_string()));
        let found = found.as_ref().map(|(from, to)| (from.as_str(), to.as_str()));
        assert_eq!(found, expected, "{image}");
    }

    #[test]
    fn a_lower_version_by_its_tag() {
        check("redis:6.2.14", "redis:7.2.5 7.2.5", None, Some(("Redis 7.2.5", "Redis 6.2.14")));
        let private = "reg:5000/redis:7 7.0.15";
        check("docker.io/library/redis:6-alpine", private, None, Some(("Redis 7.0.15", "Redis 6")));
        check("redis:6.2@sha256:00", "redis:7.2.5 7.2.5", None, Some(("Redis 7.2.5", "Redis 6.2")));
        check("redis:7.2.5", "redis:7.4.1 7.4.1", None, Some(("Redis 7.4.1", "Redis 7.2.5")));
        check("redis:7", "redis:7.2.5 7.2.5", None, None);
        check("redis:8.0.1", "redis:7.2.5 7.2.5", None, None);
    }

    #[test]
    fn another_flavour_by_its_tag() {
        let valkey = "valkey/valkey:9.1-alpine Valkey 9.1.2";
        check("redis:7.0.15", valkey, None, Some(("Valkey 9.1.2", "Redis 7.0.15")));
        check("valkey/valkey:8.1", valkey, None, Some(("Valkey 9.1.2", "Valkey 8.1")));
        check("valkey/valkey:9.0", valkey, None, None);
        check("valkey/valkey:9.1", "redis:7.2.5 7.2.5", None, None);
        check("valkey/valkey:9.1", "redis:8.2 8.2.3", None, Some(("Redis 8.2.3", "Valkey 9.1")));
    }

    /// Images with version numbers of their own, or none.
    #[test]
    fn a_lower_version_by_the_first_pod() {
        for image in ["own/cache:1.4", "own/cache:latest", "own/cache", "own/cache@sha256:00"] {
            check(image, "own/cache:1.3 7.0.15", None, None);
            let found = Some(("Redis 7.0.15", "Redis 6.2.0"));
            check(image, "own/cache:1.3 7.0.15", Some("own/cache:1.4 6.2.0"), found);
            let found = Some(("Valkey 9.1.2", "Redis 7.2.0"));
            check(image, "own/cache:1.3 Valkey 9.1.2", Some("own/cache:1.4 7.2.0"), found);
            check(image, "own/cache:1.3 7.0.15", Some("own/cache:1.4 7.2.0"), None);
        }
    }
}
