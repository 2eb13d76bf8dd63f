//! Channels as tables, and what linking them says.

use proptest::prelude::*;

use super::*;
use crate::testing::entries;

/// Links the channel of a table (`name replaces skips skipRange`) and shows the head or the errors.
#[track_caller]
fn check(table: &str, expected: &str) {
    let entries = entries(table);
    let name = |at: &usize| entries[*at].name.as_str();
    let names = |list: &[usize]| list.iter().map(name).collect::<Vec<_>>().join(" ");
    let found = match Channel::link("stable", &entries, |_| None) {
        Ok(channel) => format!("head {}", channel.head().name),
        Err(errors) => {
            let line = |error: &GraphError| match error {
                GraphError::NoHead { cycle } => format!("no head: {}", names(cycle)),
                GraphError::SeveralHeads { heads } => format!("heads: {}", names(heads)),
                GraphError::Cycle { cycle } => format!("cycle: {}", names(cycle)),
                GraphError::Stranded { entry } => format!("stranded: {}", name(entry)),
                other => other.to_string(),
            };
            errors.iter().map(line).collect::<Vec<_>>().join("; ")
        }
    };
    assert_eq!(found, expected, "{table}");
}

#[test]
fn a_chain_has_one_head() {
    check(
        "v3 v2
         v1
         v2 v1",
        "head v3",
    );
}

#[test]
fn the_tail_may_replace_what_is_not_there() {
    check("v2 v1", "head v2");
}

#[test]
fn skipped_entries_need_no_chain() {
    check(
        "v3 v1 v2
         v2 v1
         v1",
        "head v3",
    );
    check(
        "v3 - v1,v2
         v2 v1
         v1 v2",
        "head v3",
    );
}

#[test]
fn heads() {
    check("", "it has no entries");
    check(
        "v1
         v2",
        "heads: v1 v2",
    );
    check(
        "v1 v2
         v2 v1",
        "no head: v1 v2",
    );
    check("v1 v1", "no head: v1");
    check(
        "v1 - v2
         v2 - v3
         v3 v1",
        "no head: v1 v3 v2",
    );
}

#[test]
fn a_cycle_below_the_head() {
    check(
        "v3 v2
         v2 v1
         v1 v2",
        "cycle: v2 v1",
    );
}

#[test]
fn the_chain_stops_at_what_is_skipped() {
    check(
        "v3 v2 v2
         v2 v1
         v1",
        "stranded: v1",
    );
}

#[test]
fn every_problem_is_reported() {
    check(
        "a - ,b <v1
         a
         b",
        "entry 0: `<v1` is not a version range: `<v` in `<v1` is not an operator; entry 0 skips an empty name; \
         entries 0 and 1 have the same name",
    );
    check(
        "a b
         c
         b - - 1.x.y",
        "entry 2: `1.x.y` is not a version range: `x` in `1.x.y` is not a wildcard at the end; heads: a c",
    );
}

#[test]
fn five_thousand_entries() {
    let table: String = (1..5000).rev().map(|at| format!("v{at} v{}\n", at - 1)).collect();
    check(&table, "head v4999");
    let table = table + "v0 v4999\n";
    let errors = Channel::link("stable", &entries(&table), |_| None).unwrap_err();
    assert!(matches!(&errors[..], [GraphError::NoHead { cycle }] if cycle.len() == 5000));
}

proptest! {
    /// What opm's own, simpler and slower words say of a channel.
    #[test]
    fn linking_agrees_with_the_rule(edges in prop::collection::vec((0..8usize, prop::collection::vec(0..8usize, 0..3)), 1..7)) {
        let entries: Vec<_> = edges.iter().enumerate().map(|(at, (replaces, skips))| fbc::Entry {
            name: format!("v{at}").into(),
            replaces: if *replaces == 7 { String::new().into() } else { format!("v{replaces}").into() },
            skips: skips.iter().map(|skip| format!("v{skip}").into()).collect(),
            ..fbc::Entry::default()
        }).collect();
        let skipped = |name: &str| entries.iter().any(|entry| entry.skips.iter().any(|skip| skip.as_str() == name));
        let named = |name: &str| entries.iter().find(|entry| entry.name.as_str() == name);
        let heads: Vec<_> = entries
            .iter()
            .filter(|entry| !skipped(&entry.name) && !entries.iter().any(|other| other.replaces == entry.name))
            .collect();
        let mut sound = heads.len() == 1;
        if sound {
            let mut chain: Vec<&str> = vec![&heads[0].name];
            let mut at = heads[0];
            while let Some(next) = named(&at.replaces).filter(|next| !skipped(&next.name)) {
                if chain.contains(&next.name.as_str()) {
                    sound = false;
                    break;
                }
                chain.push(&next.name);
                at = next;
            }
            sound &= entries.iter().all(|entry| chain.contains(&entry.name.as_str()) || skipped(&entry.name));
        }
        let linked = Channel::link("c", &entries, |_| None);
        prop_assert_eq!(linked.is_ok(), sound, "{:?}", linked);
    }
}
