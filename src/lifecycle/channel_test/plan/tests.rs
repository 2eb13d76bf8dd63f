//! What is tested of which channels.

use insta::assert_snapshot;
use olmkit_catalog::fbc::Catalog;
use olmkit_catalog::load::CatalogFiles;

use super::*;
use crate::lifecycle::offer::Offer;

/// A package `p` with a channel `c`: an entry a line, with `replaces`, `skips=`, `range=` and `modes=`.
struct Written {
    package: OfferedPackage,
    modes: BTreeMap<String, BTreeSet<InstallModeKind>>,
}

fn written(lines: &[&str]) -> Written {
    let mut entries = Vec::new();
    let mut bundles = String::new();
    let mut modes = BTreeMap::new();
    for line in lines {
        let mut words = line.split(' ');
        let version = words.next().unwrap();
        let mut entry = format!("{{name: p.v{version}");
        let mut image = version;
        for word in words {
            match word.split_once('=') {
                Some(("skips", skips)) => {
                    let skips: Vec<String> = skips.split(',').map(|skip| format!("p.v{skip}")).collect();
                    entry += &format!(", skips: [{}]", skips.join(", "));
                }
                Some(("range", range)) => entry += &format!(", skipRange: \"{range}\""),
                Some(("image", other)) => image = other,
                Some(("modes", list)) => {
                    let all = [
                        InstallModeKind::OwnNamespace,
                        InstallModeKind::SingleNamespace,
                        InstallModeKind::MultiNamespace,
                        InstallModeKind::AllNamespaces,
                    ];
                    let listed = all
                        .into_iter()
                        .filter(|mode| list.split(',').any(|one| mode.as_str().starts_with(one)));
                    modes.insert(format!("p.v{version}"), listed.collect());
                }
                _ => entry += &format!(", replaces: p.v{word}"),
            }
        }
        entries.push(entry + "}");
        bundles += &format!(
            "---\n{{schema: olm.bundle, package: p, name: p.v{version}, image: \"r/p:{image}\", properties: [{{type: olm.package, \
             value: {{packageName: p, version: {version}}}}}]}}\n"
        );
    }
    let text = format!(
        "{{schema: olm.package, name: p, defaultChannel: c}}\n---\n{{schema: olm.channel, package: p, name: c, entries: [{}]}}\n{bundles}",
        entries.join(", ")
    );
    let files = CatalogFiles::from_text("catalog.yaml", text);
    let mut offer = Offer::of(&Catalog::parse(&files));
    Written { package: offer.packages.remove("p").unwrap(), modes }
}

fn told(new: &Written, against: Option<&Written>, edges: Edges) -> String {
    let subject = Subject {
        package: &new.package,
        name: "c",
        channel: &new.package.channels["c"],
        against: against.map(|old| &old.package),
        modes: &new.modes,
    };
    let plan = plan(subject, edges).unwrap();
    let mut lines = Vec::new();
    for walk in &plan.walks {
        let names: Vec<String> = walk.tests.iter().map(|test| walk.name(test, "p")).collect();
        let stranded = walk.stranded.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        lines.push(format!("{}{stranded}", names.join(" | ")));
    }
    lines.extend(
        plan.untaken.iter().map(|one| format!("not walked: {} to {}: {}", one.from, one.to, one.reason)),
    );
    lines.join("\n")
}

const CHANNEL: [&str; 4] = ["0.1.0", "0.2.0 0.1.0", "0.2.1 0.1.0 skips=0.2.0", "0.3.0 0.2.1"];

#[test]
fn each_version_is_installed_once_and_each_hop_is_tested_alone_before_longer_ways() {
    assert_snapshot!(told(&written(&CHANNEL), None, Edges::All), @"
    install 0.3.0
    install 0.2.1 | 0.2.1 → 0.3.0
    install 0.2.0 | 0.2.0 → 0.2.1 | 0.2.0 → 0.2.1 → 0.3.0
    install 0.1.0 | 0.1.0 → 0.2.1 | 0.1.0 → 0.2.1 → 0.3.0
    not walked: p.v0.1.0 to p.v0.2.0: OLM goes from `p.v0.1.0` to `p.v0.2.1`, since `p.v0.2.1` replaces `p.v0.1.0`
    ");
}

#[test]
fn a_channel_with_very_many_versions_is_not_tested_as_a_whole() {
    let chain = |count: usize| -> Vec<String> {
        (1..=count)
            .map(|at| if at == 1 { "1.0.0".into() } else { format!("{at}.0.0 {}.0.0", at - 1) })
            .collect()
    };
    let of = |count: usize, edges: Edges| {
        let lines = chain(count);
        let new = written(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let channel = &new.package.channels["c"];
        let subject = Subject { package: &new.package, name: "c", channel, against: None, modes: &new.modes };
        plan(subject, edges).map(|plan| plan.walks.len())
    };
    assert_eq!(of(200, Edges::All), Ok(200));
    assert_eq!(of(201, Edges::All), Err(TooLong));
    assert_eq!(of(201, Edges::Adjacent), Ok(201));
    assert_eq!(of(1_000, Edges::Heads), Err(TooLong));
}

#[test]
fn heads_are_the_head_and_what_leads_to_it() {
    assert_snapshot!(told(&written(&CHANNEL), None, Edges::Heads), @"
    install 0.3.0
    install 0.2.1 | 0.2.1 → 0.3.0
    not walked: p.v0.1.0 to p.v0.2.0: OLM goes from `p.v0.1.0` to `p.v0.2.1`, since `p.v0.2.1` replaces `p.v0.1.0`
    ");
}

#[test]
fn adjacent_is_one_hop_from_each() {
    assert_snapshot!(told(&written(&CHANNEL), None, Edges::Adjacent), @"
    install 0.3.0
    install 0.2.1 | 0.2.1 → 0.3.0
    install 0.2.0 | 0.2.0 → 0.2.1
    install 0.1.0 | 0.1.0 → 0.2.1
    not walked: p.v0.1.0 to p.v0.2.0: OLM goes from `p.v0.1.0` to `p.v0.2.1`, since `p.v0.2.1` replaces `p.v0.1.0`
    ");
}

#[test]
fn one_version_is_an_install() {
    assert_snapshot!(told(&written(&["1.0.0"]), None, Edges::All), @"install 1.0.0");
}

#[test]
fn a_new_head_is_tested_from_the_oldest_versions() {
    let old = written(&["0.1.0", "0.2.0 0.1.0", "0.3.0 0.2.0"]);
    let new = written(&["0.1.0", "0.2.0 0.1.0", "0.3.0 0.2.0", "0.4.0 0.3.0"]);
    assert_snapshot!(told(&new, Some(&old), Edges::All), @"
    install 0.4.0
    0.3.0 → 0.4.0
    0.1.0 → 0.2.0 → 0.3.0 → 0.4.0
    ");
    assert_eq!(told(&new, Some(&new), Edges::All), "");
}

#[test]
fn a_bundle_that_was_built_anew_is_tested_with_its_edges() {
    let old = written(&["0.1.0", "0.2.0 0.1.0", "0.3.0 0.2.0"]);
    let new = written(&["0.1.0", "0.2.0 0.1.0 image=again", "0.3.0 0.2.0"]);
    assert_snapshot!(told(&new, Some(&old), Edges::All), @"
    install 0.2.0 | 0.2.0 → 0.3.0
    0.1.0 → 0.2.0 | 0.1.0 → 0.2.0 → 0.3.0
    ");
}

#[test]
fn users_of_a_withdrawn_version_are_not_forgotten() {
    let old = written(&["0.1.0", "0.2.0 0.1.0", "0.2.5 0.2.0", "0.3.0 0.2.5"]);
    let new = written(&["0.2.0", "0.3.0 0.2.0 range=<0.2.0"]);
    assert_snapshot!(told(&new, Some(&old), Edges::All), @"
    0.2.0 → 0.3.0
    0.1.0, withdrawn
    0.2.5, withdrawn (`p.v0.2.5` is no longer in the channel, and OLM stays at `p.v0.2.5`: no edge leads from there to the head `p.v0.3.0`)
    ");
}

#[test]
fn a_mode_that_goes_away_gets_a_walk_of_its_own() {
    let channel = written(&["1.0.0 modes=Own,Single,All", "2.0.0 1.0.0 modes=All", "3.0.0 2.0.0 modes=All"]);
    assert_snapshot!(told(&channel, None, Edges::All), @"
    install 3.0.0
    install 2.0.0 | 2.0.0 → 3.0.0
    install 1.0.0 | 1.0.0 → 2.0.0 | 1.0.0 → 2.0.0 → 3.0.0
    1.0.0 → 2.0.0 in OwnNamespace
    1.0.0 → 2.0.0 in SingleNamespace
    ");
    // The ordinary walk finds it where it is the mode that is used anyway.
    let channel = written(&["1.0.0 modes=Own,All", "2.0.0 1.0.0 modes=Own"]);
    assert_snapshot!(told(&channel, None, Edges::All), @"
    install 2.0.0
    install 1.0.0 | 1.0.0 → 2.0.0
    ");
}
