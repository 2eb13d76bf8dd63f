//! Channels as tables, what OLM makes of them, and a search that knows nothing of shortcuts.

use olmkit_bundle::version::Version;
use proptest::prelude::*;

use super::*;
use crate::load::CatalogFiles;
use crate::testing::entries;

/// The version in a name such as `v1.2.3`.
fn about(name: &str) -> About {
    let version: Option<Version> = name.trim_start_matches('v').trim_end_matches('!').parse().ok();
    About { version: version.map(Into::into), deprecated: name.ends_with('!') }
}

fn ways(table: &str, rules: Rules) -> Result<NextHops, GraphError> {
    NextHops::of(&entries(table), about, rules)
}

/// The way from a bundle through the channel of a table.
#[track_caller]
fn check_path(table: &str, rules: Rules, from: &str, expected: &str) {
    let ways = ways(table, rules).unwrap();
    let first = match ways.names.get(from) {
        Some(entry) if *entry == ways.head => None,
        Some(entry) => ways.next[*entry],
        None => ways.next_of(from, about(from).version.as_ref()),
    };
    let hops = ways.hops(ways.course_through(first), usize::MAX).into_iter().map(str::to_owned);
    let way: Vec<_> = std::iter::once(from.to_owned()).chain(hops).collect();
    assert_eq!(way.join(" -> "), expected, "{table}");
}

const CHAIN: &str = "
    v1.0.0
    v1.0.1 v1.0.0
    v1.0.2 v1.0.0  v1.0.1
    v1.1.0 v1.0.2  -       >=1.0.0_<1.1.0";

#[test]
fn skip_range_jumps_to_the_head() {
    check_path(CHAIN, Rules::V0, "v1.0.0", "v1.0.0 -> v1.1.0");
    check_path(CHAIN, Rules::V0, "v1.0.1", "v1.0.1 -> v1.1.0");
    check_path(CHAIN, Rules::V0, "v1.1.0", "v1.1.0");
    check_path(CHAIN, Rules::V0, "v0.9.0", "v0.9.0");
    check_path(CHAIN, Rules::V0, "v1.0.7", "v1.0.7 -> v1.1.0");
}

#[test]
fn skips_jump_over_a_withdrawn_entry() {
    let table = "
        v1.0.0
        v1.0.1 v1.0.0
        v1.0.2 v1.0.0 v1.0.1";
    check_path(table, Rules::V0, "v1.0.0", "v1.0.0 -> v1.0.2");
    check_path(table, Rules::V0, "v1.0.1", "v1.0.1 -> v1.0.2");
}

#[test]
fn the_entry_nearest_to_the_head_wins() {
    let table = "
        v1
        v2 v1
        v3 v2 v1";
    // v1 is skipped, so the chain leaves it out, but it may still jump.
    check_path(table, Rules::V0, "v1", "v1 -> v3");
}

#[test]
fn the_chain_goes_on_through_skipped_entries() {
    let table = "
        v1.0.0
        v1.0.1 v1.0.0
        v1.0.2 v1.0.1 v1.0.1";
    check_path(table, Rules::V0, "v1.0.0", "v1.0.0");
    check_path(table, Rules::V0, "v1.0.1", "v1.0.1 -> v1.0.2");
}

#[test]
fn entries_beside_the_chain_are_ignored() {
    let table = "
        v1.0.0
        v1.1.0 v1.0.0
        v1.2.0 v1.0.0
        v1.3.0 v1.1.0  v1.2.0";
    check_path(table, Rules::V0, "v1.0.0", "v1.0.0 -> v1.1.0 -> v1.3.0");
}

#[test]
fn who_is_in_its_own_range_stays() {
    let table = "
        v1.0.0
        v1.1.0 v1.0.0 - >=1.0.0
        v1.2.0 v1.1.0 - >=1.2.0";
    check_path(table, Rules::V0, "v1.1.0", "v1.1.0 -> v1.2.0");
    let table = "
        v1.0.0
        v1.1.0 v1.0.0 - >=1.0.0_<1.2.0
        v1.2.0 v1.0.0 v9";
    let errors = ways(table, Rules::V0).unwrap_err();
    assert!(matches!(errors, GraphError::SeveralHeads { heads } if heads == [1, 2]));
}

#[test]
fn two_ranges_that_contain_each_other_go_round_in_a_circle() {
    let table = "
        v1.0.0 -      - =2.0.0
        v2.0.0 v1.0.0 - =1.0.0";
    check_path(table, Rules::V0, "v1.0.0", "v1.0.0 -> v2.0.0");
    let table = "
        v1.0.0 -      - =2.0.0
        v2.0.0 -      - =1.0.0
        v3.0.0 v2.0.0 v1.0.0";
    check_path(table, Rules::V0, "v2.0.0", "v2.0.0 -> v3.0.0");
}

#[test]
fn without_one_head_there_is_no_way() {
    assert!(matches!(ways("", Rules::V0), Err(GraphError::Empty)));
    assert!(matches!(ways("a b\nb a", Rules::V0), Err(GraphError::NoHead { .. })));
    assert!(matches!(ways("a b\nb c\nc b", Rules::V0), Err(GraphError::Cycle { cycle }) if cycle == [1, 2]));
}

#[test]
fn v1_takes_the_highest_version() {
    check_path(CHAIN, Rules::V1, "v1.0.0", "v1.0.0 -> v1.1.0");
    // v0 stops at 1.1.0, whose edge is the first; v1 sees the higher one.
    let table = "
        v1.0.0
        v1.2.0 v1.0.0
        v1.1.0 v1.2.0 v1.0.0";
    check_path(table, Rules::V0, "v1.0.0", "v1.0.0 -> v1.1.0");
    check_path(table, Rules::V1, "v1.0.0", "v1.0.0 -> v1.2.0");
}

#[test]
fn v1_takes_deprecated_versions_last() {
    let table = "
        v1.0.0
        v1.1.0  v1.0.0
        v1.2.0! v1.1.0 v1.0.0";
    check_path(table, Rules::V1, "v1.0.0", "v1.0.0 -> v1.1.0");
    check_path(table, Rules::V1, "v1.1.0", "v1.1.0");
    assert_eq!(ways(table, Rules::V1).unwrap().head(), "v1.1.0");
}

#[test]
fn queries() {
    let text = "
{schema: olm.channel, package: b, name: x, entries: [{name: b.v1}, {name: b.v2, replaces: b.v1}]}
---
{schema: olm.channel, package: b, name: a, entries: [{name: b.v1}]}
---
{schema: olm.channel, package: a, name: a, entries: [{name: a.v2, replaces: a.v1}, {name: a.v0, skips: [a.v2]}]}";
    let files = crate::load::CatalogFiles::from_text("catalog.yaml", text);
    let catalog = Catalog::parse(&files);
    let ask = |package, channel, from| {
        let query = Query { package, channel, from, ..Query::default() };
        match paths(&catalog, &query) {
            Ok(found) => {
                assert_eq!(found.all_reach_the_head(), found.iter().all(|path| path.reaches_head));
                let line = |path: UpgradePath<'_>| {
                    let hops = path.hops.join(" ");
                    format!(
                        "{}/{} {}: {hops} ({} {})",
                        path.package, path.channel, path.from, path.head, path.reaches_head
                    )
                };
                found.iter().map(line).collect::<Vec<_>>().join("\n")
            }
            Err(error) => error.to_string(),
        }
    };
    insta::assert_snapshot!(ask(None, None, None), @r"
    a/a a.v0:  (a.v0 true)
    a/a a.v2: a.v0 (a.v0 true)
    b/a b.v1:  (b.v1 true)
    b/x b.v1: b.v2 (b.v2 true)
    b/x b.v2:  (b.v2 true)
    ");
    insta::assert_snapshot!(ask(Some("b"), None, Some("b.v1")), @r"
    b/a b.v1:  (b.v1 true)
    b/x b.v1: b.v2 (b.v2 true)
    ");
    insta::assert_snapshot!(ask(Some("b"), Some("x"), Some("b.v0")), @"b/x b.v0:  (b.v2 false)");
    insta::assert_snapshot!(ask(Some("c"), None, None), @"`catalog.yaml` has no package `c`");
    insta::assert_snapshot!(ask(Some("b"), Some("y"), None), @"`b` has no channel `y`");
    insta::assert_snapshot!(ask(None, None, Some("c.v1")), @"no channel of `catalog.yaml` has the bundle `c.v1`");
    let query = Query { package: Some("b"), channel: Some("x"), ..Query::default() };
    insta::assert_snapshot!(serde_json::to_string(&paths(&catalog, &query).unwrap()).unwrap(), @r#"{"schema":"olmkit.path/v1","paths":[{"package":"b","channel":"x","from":"b.v1","hops":["b.v2"],"head":"b.v2","reachesHead":true},{"package":"b","channel":"x","from":"b.v2","hops":[],"head":"b.v2","reachesHead":true}]}"#);
}

#[test]
fn a_long_channel_is_followed_quickly() {
    let table: String = (1..20_000_u32)
        .map(|at| format!("v1.{at}.0 v1.{}.0 - >=1.{}.0_<1.{at}.0\n", at - 1, at.saturating_sub(50)))
        .collect();
    let ways = ways(&table, Rules::V0).unwrap();
    assert!(ways.unreachable().is_empty());
    assert_eq!(ways.course_of(0).hops, 400);
}

/// The rule in its own words, asked of every entry in turn.
fn naive_next(entries: &[fbc::Entry<'_>], installed: usize, rules: Rules) -> Option<usize> {
    let version = |at: usize| about(&entries[at].name).version;
    let skipped =
        |at: usize| entries.iter().any(|entry| entry.skips.iter().any(|skip| *skip == entries[at].name));
    let qualifies = |at: usize| {
        let entry = &entries[at];
        let in_range = entry
            .skip_range
            .parse::<olmkit_bundle::version::VersionRange>()
            .is_ok_and(|range| version(installed).is_some_and(|version| range.contains(&version.version)));
        entry.replaces == entries[installed].name
            || entry.skips.iter().any(|skip| *skip == entries[installed].name)
            || in_range
            || rules == Rules::V1 && at == installed
    };
    let mut order = Vec::new();
    match rules {
        Rules::V0 => {
            let mut at = (0..entries.len())
                .find(|at| !skipped(*at) && !entries.iter().any(|entry| entry.replaces == entries[*at].name));
            while let Some(entry) = at {
                order.push(entry);
                at = entries.iter().position(|other| other.name == entries[entry].replaces);
            }
            order.retain(|at| !skipped(*at));
        }
        Rules::V1 => {
            order = (0..entries.len()).collect();
            order.sort_by_key(|at| std::cmp::Reverse(version(*at)));
        }
    }
    order.into_iter().find(|at| qualifies(*at)).filter(|next| *next != installed)
}

proptest! {
    #[test]
    fn the_way_agrees_with_a_naive_search(
        edges in prop::collection::vec((0..9usize, prop::collection::vec(0..9usize, 0..3), 0..9usize, 0..9usize), 1..9),
        v1 in any::<bool>(),
    ) {
        let entries: Vec<_> = edges.iter().enumerate().map(|(at, (replaces, skips, from, to))| fbc::Entry {
            name: format!("v1.{at}.0").into(),
            replaces: if *replaces == 8 { String::new().into() } else { format!("v1.{replaces}.0").into() },
            skips: skips.iter().map(|skip| format!("v1.{skip}.0").into()).collect(),
            skip_range: if from < to { format!(">=1.{from}.0 <1.{to}.0").into() } else { String::new().into() },
            ..fbc::Entry::default()
        }).collect();
        let rules = if v1 { Rules::V1 } else { Rules::V0 };
        if let Ok(ways) = NextHops::of(&entries, about, rules) {
            for at in 0..entries.len() {
                prop_assert_eq!(ways.next[at], naive_next(&entries, at, rules), "from {} of {:?}", at, entries);
            }
            for at in 0..entries.len() {
                let mut way = vec![at];
                while let Some(next) = ways.next[way[way.len() - 1]].filter(|next| way[way.len() - 1] != ways.head && !way.contains(next)) {
                    way.push(next);
                }
                let course = ways.course_of(at);
                prop_assert_eq!(ways.reaches_head(course), way.last() == Some(&ways.head));
                let names: Vec<&str> = way[1..].iter().map(|entry| ways.name(*entry)).collect();
                prop_assert_eq!(&ways.hops(course, 9), &names);
                if names.len() > 2 {
                    prop_assert_eq!(ways.hops(course, 2), [names[0], names[names.len() - 1]]);
                }
            }
        }
    }
}

#[test]
fn what_was_released_must_keep_its_way() {
    let bundle = |name: &str, version: &str| {
        format!(
            "{{schema: olm.bundle, package: p, name: {name}, properties: [{{type: olm.package, value: {{packageName: p, version: {version}}}}}]}}\n---\n"
        )
    };
    let channel = |name: &str, entries: &str| {
        format!("{{schema: olm.channel, package: p, name: {name}, entries: [{entries}]}}\n---\n")
    };
    let old = bundle("v1", "1.0.0")
        + &bundle("v2", "2.0.0")
        + &channel("stable", "{name: v1}, {name: v2, replaces: v1}")
        + &channel("fast", "{name: v2}");
    let check = |new: &str, expected: &[&str]| {
        let (old, new) = (CatalogFiles::from_text("old", old.as_str()), CatalogFiles::from_text("new", new));
        let (old, new) = (Catalog::parse(&old), Catalog::parse(&new));
        let found = paths(&new, &Query { since: Some(&old), ..Query::default() }).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|path| {
                format!("{} {} {} {}", path.channel, path.from, path.hops.join(","), path.reaches_head)
            })
            .collect();
        assert_eq!(shown, expected);
        assert_eq!(found.all_reach_the_head(), found.iter().all(|path| path.reaches_head));
    };
    check(
        &channel("stable", "{name: v3, skips: [v2]}"),
        &["fast v2  false", "stable v1  false", "stable v2 v3 true", "stable v3  true"],
    );
    let both =
        channel("stable", "{name: v3, skipRange: '<3.0.0'}") + &channel("fast", "{name: v3, replaces: v2}");
    check(
        &both,
        &["fast v2 v3 true", "fast v3  true", "stable v1 v3 true", "stable v2 v3 true", "stable v3  true"],
    );
}

/// OLM v1 takes build metadata for the release of a packaging, unless it cannot be one (olm-v1: `+2`, not `+001`).
#[test]
fn build_metadata_is_a_release_under_v1() {
    let table = "
        v1.0.0
        v1.0.0+2  v1.0.0
        v1.0.0+10 v1.0.0 v1.0.0+2";
    check_path(table, Rules::V1, "v1.0.0", "v1.0.0 -> v1.0.0+10");
    assert_eq!(ways(table, Rules::V1).unwrap().head(), "v1.0.0+10");
    // An installed bundle of another name, with an equal version and release.
    let table = "
        v1.1.0
        x1.1.0+3";
    let ways = NextHops::of(&entries(table), |name| about(&name.replace('x', "v")), Rules::V1).unwrap();
    let next = |text: &str| {
        let version = text.parse::<Version>().unwrap().into();
        ways.next_of("other", Some(&version)).map(|at| ways.name(at).to_owned())
    };
    assert_eq!(next("1.1.0+3").as_deref(), Some("x1.1.0+3"));
    assert_eq!(next("1.1.0").as_deref(), Some("v1.1.0"));
    assert_eq!(next("1.1.0+4"), None);
}
