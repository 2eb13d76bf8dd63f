//! What holds for every catalog and policy.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(21), ..ProptestConfig::default() })]

    /// Whatever the style: the result is sound, and every line with a comment or of another document is still there.
    #[test]
    fn adding_keeps_what_others_wrote(
        minors in prop::collection::btree_set(0..12u64, 1..6),
        new in 0..12u64,
        style in 0..8usize,
        policy in prop::sample::select(Policy::ALL.to_vec()),
    ) {
        let versions: Vec<String> = minors.iter().map(|minor| format!("0.{minor}.0")).collect();
        let text = hand_made(&versions, style);
        let files = one_file(&text);
        let catalog = Catalog::parse(&files);
        prop_assert!(catalog.faults.is_empty(), "{:?}\n{}", catalog.faults, text);
        let new = format!("0.{new}.0");
        match add(&catalog, &[rendered(&new)], &request("stable", policy)) {
            Err(AddError::NotHigher { .. }) => prop_assert!(policy == Policy::Replaces),
            Err(other) => prop_assert!(false, "{other}\n{text}"),
            Ok(change) if versions.contains(&new) => prop_assert!(change.files.is_empty(), "{text}"),
            Ok(change) => {
                let result = &change.files[0].text;
                sound(result);
                let files = one_file(result);
                let after = Catalog::parse(&files);
                prop_assert_eq!(after.bundles.len(), versions.len() + 1);
                prop_assert_eq!(after.channels[0].entries.len(), versions.len() + 1);
                let mut lines = result.lines();
                // Of entries on one line the comment counts.
                let kept = |line: &str| line[if line.contains('{') { line.find('#') } else { None }.unwrap_or(0)..].to_owned();
                for line in text.lines().filter(|line| line.contains('#') && !line.contains("replaces")) {
                    prop_assert!(lines.any(|other| kept(other) == kept(line)), "lost {line:?} of\n{text}\nin\n{result}");
                }
            }
        }
    }
}
