//! What a bundle says about platforms, and what its images are made for (operator-framework/api
//! `pkg/validation/internal/multiarch.go`).

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PodSpec;

use super::facts::Facts;
use super::{Answers, Platform};
use crate::parse::{Bundle, Csv};

/// Labels of ClusterServiceVersions that name what is supported: `…arch.arm64: supported`.
const LABELS: [(&str, &str); 2] =
    [("operatorframework.io/os.", "linux"), ("operatorframework.io/arch.", "amd64")];

/// Every image that a bundle names: of its deployments and related images.
pub fn images(bundle: &Bundle<'_>) -> BTreeSet<String> {
    let Some(csv) = bundle.csv() else { return BTreeSet::new() };
    let related = csv.typed.spec.related_images.iter().map(|related| related.image.clone());
    let images = deployed(csv).map(|(image, ..)| image.to_owned()).chain(related);
    images.filter(|image| !image.is_empty()).collect()
}

/// The images of the deployments, whether each is that of the operator itself, and the pod it runs in.
fn deployed<'b>(csv: Csv<'b, '_>) -> impl Iterator<Item = (&'b str, bool, &'b PodSpec)> {
    let pods = csv
        .typed
        .spec
        .install
        .spec
        .deployments
        .iter()
        .filter_map(|deployment| deployment.spec.template.spec.as_ref());
    pods.flat_map(|pod| {
        let has_manager = pod.containers.iter().any(|container| container.name == "manager");
        pod.containers.iter().map(move |container| {
            let is_manager =
                if has_manager { container.name == "manager" } else { container.name != "kube-rbac-proxy" };
            (container.image.as_deref().unwrap_or_default(), is_manager, pod)
        })
    })
}

/// What is known of the platforms of a bundle.
pub(super) struct Platforms<'b> {
    /// The operating systems and the architectures that labels name, with those that hold without a label.
    pub(super) labelled: [BTreeSet<&'b str>; 2],
    /// What the operator's own images are made for.
    pub(super) of_manager: [BTreeSet<&'b str>; 2],
    /// The images of the deployments, with the pod each runs in, and whether it is the operator's own.
    pub(super) deployed: Vec<(&'b str, bool, &'b PodSpec)>,
    answers: &'b Answers,
}

/// The words for the two halves of a platform.
pub(super) const HALVES: [&str; 2] = ["operating system", "architecture"];

impl<'b> Platforms<'b> {
    /// None when registries were not asked.
    pub(super) fn of(facts: &'b Facts<'_, '_>) -> Option<Self> {
        let csv = facts.csv()?;
        let answers = facts.options.platforms.as_ref()?;
        let labels =
            csv.typed.metadata.labels.iter().flatten().filter(|(_, value)| value.as_str() == "supported");
        let labelled = LABELS.map(|(prefix, default)| {
            let named: BTreeSet<_> = labels.clone().filter_map(|(key, _)| key.strip_prefix(prefix)).collect();
            if named.is_empty() { BTreeSet::from([default]) } else { named }
        });
        let deployed: Vec<_> = deployed(csv).collect();
        let mut platforms = Self { labelled, of_manager: Default::default(), deployed, answers };
        let managers = platforms.deployed.iter().filter(|(_, manager, _)| *manager);
        let made_for: Vec<_> = managers.filter_map(|(image, ..)| platforms.of_image(image)).collect();
        for (os, arch) in made_for.into_iter().flatten() {
            platforms.of_manager[0].insert(os);
            platforms.of_manager[1].insert(arch);
        }
        Some(platforms)
    }

    /// What an image is made for; none when that is not known.
    pub(super) fn of_image(&self, image: &str) -> Option<&'b [Platform]> {
        self.answers.get(image)?.as_ref().ok().map(Vec::as_slice)
    }

    /// Every image with a known answer.
    pub(super) fn images(&self) -> Vec<(&'b str, &'b [Platform])> {
        let known = |(image, answer): (&'b String, &'b Result<Vec<Platform>, String>)| {
            Some((image.as_str(), answer.as_ref().ok()?.as_slice()))
        };
        self.answers.iter().filter_map(known).collect()
    }

    /// Of some words for a half those that an image is not made for.
    pub(super) fn lacking(&self, half: usize, words: &BTreeSet<&'b str>, of: &[Platform]) -> Vec<&'b str> {
        let has = |word: &str| of.iter().any(|(os, arch)| [os, arch][half] == word);
        words.iter().copied().filter(|word| !has(word)).collect()
    }
}

/// The platforms that a pod must run on by its node affinity.
pub(super) fn affinity(pod: &PodSpec) -> BTreeSet<Platform> {
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
    let mut platforms = BTreeSet::new();
    for term in required.into_iter().flat_map(|required| &required.node_selector_terms) {
        let values = |key: &str| {
            let mut terms = term.match_expressions.iter().flatten();
            let last = terms.rfind(|term| term.operator == "In" && term.key == key);
            last.and_then(|term| term.values.clone()).unwrap_or_default()
        };
        for os in values("kubernetes.io/os") {
            platforms.extend(values("kubernetes.io/arch").into_iter().map(|arch| (os.clone(), arch)));
        }
    }
    platforms
}
