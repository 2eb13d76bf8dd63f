//! What holds for every catalog.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::add::tests::{catalog_of, hand_made, rendered, request};

/// The same cases in every run.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(21),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn channel_policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::Semver, Policy::SemverSkippatch, Policy::SkipRange])
}

/// Comments at random lines of a catalog, some beside values.
fn commented(places: &[(usize, usize, bool)]) -> String {
    let mut lines: Vec<String> = CATALOG.lines().map(str::to_owned).collect();
    for (number, (place, indent, is_beside)) in places.iter().enumerate() {
        let at = place % lines.len();
        let comment = format!("#{number}#");
        if *is_beside && !lines[at].contains('#') {
            lines[at] += &format!("{}{comment}", " ".repeat(indent + 1));
        } else {
            lines.insert(at, format!("{}{comment}", " ".repeat(*indent)));
        }
    }
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(config(48))]

    /// Removing any version of a channel that a policy made leaves it sound, or is refused; and what stays has the edges it
    /// would have had without it.
    #[test]
    fn removing_a_version_is_as_if_it_had_never_been(
        versions in prop::collection::btree_set((0..2u64, 0..3u64, 0..4u64), 2..8),
        pick in any::<prop::sample::Index>(),
        policy in channel_policy(),
    ) {
        let versions: Vec<String> = versions.iter().map(|(a, b, c)| format!("{a}.{b}.{c}")).collect();
        let gone = pick.get(&versions).clone();
        let catalog = |versions: &[&String]| catalog_of(versions, policy);
        let all: Vec<&String> = versions.iter().collect();
        let rest: Vec<&String> = versions.iter().filter(|version| **version != gone).collect();
        let text = catalog(&all);
        let files = CatalogFiles::from_text("catalog.yaml", text);
        let change = edit(&files, &remove("", &gone)).unwrap();
        let expected = catalog(&rest);
        prop_assert_eq!(change.files[0].new.as_deref(), Some(expected.as_str()));
    }

    /// What people wrote by hand comes back byte by byte after a version above all others was added and removed again.
    #[test]
    fn adding_then_removing_gives_the_first_bytes_back(
        minors in prop::collection::btree_set(0..12u64, 1..6),
        style in 0..8usize,
        policy in prop::sample::select(Policy::ALL.to_vec()),
    ) {
        let versions: Vec<String> = minors.iter().map(|minor| format!("0.{minor}.0")).collect();
        let text = hand_made(&versions, style);
        let files = CatalogFiles::from_text("catalog.yaml", text.as_str());
        let added = crate::add::add(&Catalog::parse(&files), &[rendered("1.0.0")], &request("stable", policy)).unwrap();
        let added = CatalogFiles::from_text("catalog.yaml", added.files[0].text.as_str());
        let change = edit(&added, &remove("", "1.0.0")).unwrap();
        prop_assert_eq!(change.files[0].new.as_deref(), Some(text.as_str()));
    }

    /// The documents of other packages stay byte by byte, wherever they stand between those of the edited one.
    #[test]
    fn an_edit_touches_the_documents_of_its_package_alone(
        order in prop::collection::vec(any::<bool>(), 14),
        kind in 0..6usize,
    ) {
        let documents = |text: &str| -> Vec<String> {
            text.split_inclusive("---\n").map(|part| part.trim_end_matches("---\n").to_owned()).collect()
        };
        let (mut ours, mut theirs) = (documents(CATALOG), documents(&CATALOG.replace("redis", "valkey")));
        let mut all = Vec::new();
        for is_ours in order {
            let from = if is_ours && !ours.is_empty() || theirs.is_empty() { &mut ours } else { &mut theirs };
            if !from.is_empty() {
                all.push(from.remove(0));
            }
        }
        let text = all.join("---\n");
        let request = match kind {
            0 => promote("1.2.0", "stable"),
            1 => remove("", "1.1.1"),
            2 => remove("fast", ""),
            3 => deprecate(Target::Package, "x"),
            4 => Request::SetDefault { package: "redis".into(), channel: "fast".into() },
            _ => remove("", ""),
        };
        let new = edited(&text, &request);
        let of_others = |text: &str| -> Vec<String> {
            // A comment without a document of its own may go to the document beside it.
            let lines = |document: String| document.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
            documents(text).into_iter().filter(|part| part.contains("valkey")).map(lines).collect()
        };
        prop_assert_eq!(of_others(&new), of_others(&text));
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// Wherever comments stand: formatting keeps all of them and every value, and changes nothing when it is done again.
    #[test]
    fn formatting_keeps_comments_and_meaning(
        places in prop::collection::vec((any::<usize>(), 0..9usize, any::<bool>()), 0..12),
    ) {
        let text = commented(&places);
        let files = CatalogFiles::from_text("catalog.yaml", text.as_str());
        let before = Catalog::parse(&files);
        prop_assert!(before.faults.is_empty(), "{text}");
        let change = edit(&files, &Request::Format).unwrap();
        prop_assert_eq!(change.summary.len(), 1, "{:?}", change.summary);
        let after = changed(&files, &change.files);
        let new = after.files[0].content.text().unwrap_or_default();
        let blobs = |catalog: &Catalog<'_>| catalog.blobs().collect::<Vec<_>>();
        prop_assert_eq!(blobs(&before), blobs(&Catalog::parse(&after)));
        for number in 0..places.len() {
            prop_assert_eq!(new.matches(&format!("#{number}#")).count(), 1, "{}\n{}", text, new);
        }
        let again = edit(&after, &Request::Format).unwrap();
        prop_assert!(again.files.is_empty(), "{}\n{}\n{}", text, new, again.files[0].new.as_deref().unwrap_or_default());
    }
}
