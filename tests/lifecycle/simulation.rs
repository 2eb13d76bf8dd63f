//! OLM in memory does what OLM was seen to do.

use std::collections::BTreeSet;

use crate::replay::{recorded, simulated};
use crate::trace::Trace;

/// How far the simulation may go on with an object where the recording stops before OLM came to rest.
const BEYOND: usize = 2;

/// Replays a recording and compares what every object went through, and who came first.
fn check(number: &str) {
    let trace = Trace::of(number);
    let (expected, found) = (recorded(&trace), simulated(&trace));
    let objects: Vec<_> = expected.objects.keys().collect();
    assert_eq!(objects, found.objects.keys().collect::<Vec<_>>(), "{}: other objects", trace.name);
    assert!(!objects.is_empty(), "{} shows nothing", trace.name);
    for (object, lines) in &expected.objects {
        let own = &found.objects[object];
        let same = own.len() >= lines.len() && own[..lines.len()] == lines[..];
        assert!(
            same && own.len() <= lines.len() + BEYOND,
            "{}, {object}\nrecorded:\n  {}\nsimulated:\n  {}",
            trace.name,
            lines.join("\n  "),
            own.join("\n  ")
        );
    }
    // OLM sometimes resolves before it has written that the catalog is ready, so this one is not asked of recordings.
    assert_eq!(found.in_order("catalog ready", "installplan 1 created"), Some(true), "{}", trace.name);
    let mut compared = 0;
    for (first, second) in expected.orders() {
        let Some(recorded) = expected.in_order(&first, &second) else { continue };
        assert!(recorded, "{}: `{first}` is recorded after `{second}`", trace.name);
        assert_eq!(found.in_order(&first, &second), Some(true), "{}: `{first}`, `{second}`", trace.name);
        compared += 1;
    }
    assert!(compared >= 8, "{}: only {compared} orders are compared", trace.name);
}

macro_rules! recordings {
    ($($test:ident = $number:literal;)+) => {
        const RECORDINGS: &[&str] = &[$($number),+];

        $(
            #[test]
            fn $test() {
                check($number);
            }
        )+
    };
}

recordings! {
    fresh_install = "01";
    manual_hops = "02";
    automatic_to_the_head = "03";
    skips_jump = "04";
    skip_range_jump = "05";
    another_channel = "06a";
    another_channel_without_an_edge = "06b";
    patched_catalog_image = "07a";
    moved_catalog_tag = "07b";
    resolved_dependency = "19b";
    two_subscriptions_one_manual = "26";
    inline_bundles = "29";
    catalog_by_address = "30";
    deleted_csv = "32";
}

/// What happened, without the names of whom.
fn kind(what: &str) -> String {
    match what.split(' ').collect::<Vec<_>>()[..] {
        [object @ ("installplan" | "csv"), _, happened] => format!("{object} {happened}"),
        ["subscription", _, happened, _] => format!("subscription {happened}"),
        ["deployment", "of", _] => "deployment".into(),
        _ => panic!("`{what}` is of no kind"),
    }
}

/// An order that no recording shows, because its words are not those of the timeline, would be compared with nothing.
#[test]
fn every_kind_of_order_is_in_some_recording() {
    let (mut all, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for number in RECORDINGS {
        let recorded = recorded(&Trace::of(number));
        for (first, second) in recorded.orders() {
            let order = (kind(&first), kind(&second));
            if recorded.in_order(&first, &second).is_some() {
                seen.insert(order.clone());
            }
            all.insert(order);
        }
    }
    assert!(all.len() > 10, "{all:?}");
    assert_eq!(all.difference(&seen).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
}
