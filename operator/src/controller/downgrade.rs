//! Whether an update would start an older Redis than the one that runs: a lower major cannot read the data of a higher one.

use crate::plan::{Observed, Pod};

/// An update that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downgrade {
    /// The major version that runs.
    pub from: u32,
    /// The major version of the new image.
    pub to: u32,
}

/// Compares the new image with the pods that are still to be updated. Its tag counts where the tags of the pods' images are the
/// versions of their Redis; otherwise the version is known once the first updated pod responds.
pub fn downgrade(image: &str, observed: &Observed) -> Option<Downgrade> {
    let (outdated, updated): (Vec<&Pod>, Vec<&Pod>) = observed.pods.iter().partition(|pod| pod.outdated);
    let runs = |pod: &&Pod| major(&pod.redis.as_ref()?.version);
    let from = outdated.iter().filter_map(runs).max()?;
    let by_tag = outdated.iter().any(|pod| {
        let tag = pod.image.as_deref().and_then(tag_major);
        tag.is_some() && tag == runs(pod)
    });
    let named = tag_major(image).filter(|_| by_tag);
    let to = named.or_else(|| updated.iter().filter_map(runs).min())?;
    (to < from).then_some(Downgrade { from, to })
}

fn major(version: &str) -> Option<u32> {
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..digits].parse().ok()
}

/// The major version of an image's tag: 7 for `library/redis:7.2.5-alpine`.
fn tag_major(image: &str) -> Option<u32> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
    let rest = tag.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.is_empty() || rest.starts_with(['.', '-']) { major(tag) } else { None }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::{Link, Node, NodeId};

    /// A pod: `image version`, and whether it is outdated.
    fn pod(words: &str, outdated: bool) -> Pod {
        let (image, version) = words.split_once(' ').unwrap();
        let id: NodeId = "0".repeat(40).parse().unwrap();
        let redis = Node {
            id,
            hostname: None,
            table: vec![],
            ok: true,
            current_epoch: 1,
            keys: 0,
            memory: (0, 0),
            link: Link::None,
            bound: None,
            offset: 0,
            silence: None,
            attached: Default::default(),
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            held: false,
            libraries: 0,
            settings: Default::default(),
            persistence: Default::default(),
            version: version.into(),
            run_id: String::new(),
        };
        Pod { image: Some(image.into()), outdated, redis: Some(redis), ..Pod::default() }
    }

    #[track_caller]
    fn check(image: &str, outdated: &str, updated: Option<&str>, expected: Option<(u32, u32)>) {
        let mut pods = vec![pod(outdated, true)];
        pods.extend(updated.map(|updated| pod(updated, false)));
        let observed = Observed { pods, ..Observed::default() };
        let found = downgrade(image, &observed).map(|found| (found.from, found.to));
        assert_eq!(found, expected, "{image}");
    }

    #[test]
    fn a_lower_major_by_its_tag() {
        check("redis:6.2.14", "redis:7.2.5 7.2.5", None, Some((7, 6)));
        check("docker.io/library/redis:6-alpine", "reg:5000/redis:7 7.0.15", None, Some((7, 6)));
        check("redis:6.2@sha256:00", "redis:7.2.5 7.2.5", None, Some((7, 6)));
        check("redis:7.0.15", "redis:7.2.5 7.2.5", None, None);
        check("redis:8.0.1", "redis:7.2.5 7.2.5", None, None);
    }

    /// Images with version numbers of their own, or none.
    #[test]
    fn a_lower_major_by_the_first_pod() {
        for image in ["own/cache:1.4", "own/cache:latest", "own/cache", "own/cache@sha256:00"] {
            check(image, "own/cache:1.3 7.0.15", None, None);
            check(image, "own/cache:1.3 7.0.15", Some("own/cache:1.4 6.2.0"), Some((7, 6)));
            check(image, "own/cache:1.3 7.0.15", Some("own/cache:1.4 7.2.0"), None);
        }
    }
}
