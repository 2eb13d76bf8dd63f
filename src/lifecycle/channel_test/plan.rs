//! What a test of a channel consists of. Pure: a channel in, walks out.
//!
//! A walk serves several tests: its first step is a fresh install, its second one an upgrade by one edge, its last one the way to
//! the head. So each version is installed once, however many tests it is part of.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::version::precedence;
use schemars::JsonSchema;
use serde::Serialize;

use crate::lifecycle::api::InstallModeKind;
use crate::lifecycle::offer::{OfferedChannel, OfferedEntry, OfferedPackage};

/// Which upgrades are tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edges {
    /// Every version, every edge that OLM takes, and from every version to the head.
    #[default]
    All,
    /// The head, and the edges that end at it.
    Heads,
    /// Every version, and one hop from each.
    Adjacent,
}

/// What a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A version is installed where nothing is.
    Install,
    /// One hop.
    Edge,
    /// Hop by hop to the channel's head.
    Head,
    /// One hop of an operator that is installed in a mode that the next version does not support.
    InstallMode,
    /// A version that the older catalog has and this one does not: users who have it installed still get to the head.
    Withdrawn,
}

/// How many versions at the beginning and at the end of a walk are in the name of its test.
const ENDS_NAMED: usize = 5;

/// A test of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// What it is about.
    pub kind: Kind,
    /// The place on the way at which it is decided.
    pub at: usize,
}

/// A version to install, and the way from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The channel.
    pub channel: String,
    /// The bundles: the first is installed, the others follow hop by hop.
    pub way: Vec<String>,
    /// The install mode; none when nothing says which ones the first version supports.
    pub mode: Option<InstallModeKind>,
    /// What is tested, in the order in which it is decided.
    pub tests: Vec<Test>,
    /// Why the way ends before the head, for tests that need no cluster.
    pub stranded: Option<String>,
}

/// An edge of the catalog that OLM does not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Untaken {
    /// The channel.
    pub channel: String,
    /// Where it begins.
    pub from: String,
    /// Where it would lead.
    pub to: String,
    /// What OLM does instead.
    pub reason: String,
}

/// Everything that is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are done: from the head backwards, so that a hop is tested on its own before a longer way uses it.
    pub walks: Vec<Walk>,
    /// Edges that nobody walks.
    pub untaken: Vec<Untaken>,
}

impl Plan {
    /// How many tests there are.
    pub fn count(&self) -> usize {
        self.walks.iter().map(|walk| walk.tests.len()).sum()
    }
}

impl Walk {
    /// What a test is called: `install 0.1.0`, `0.1.0 → 0.2.0`. Of a long way both ends are named.
    pub fn name(&self, test: &Test, package: &str) -> String {
        let (first, last) =
            (short(&self.way[0], package), self.way.get(test.at).map_or("", |csv| short(csv, package)));
        match (test.kind, &self.mode) {
            (Kind::Install, _) => format!("install {first}"),
            (Kind::Edge, _) => format!("{first} → {last}"),
            (Kind::Head, _) if self.stranded.is_some() => format!("{first} → head"),
            (Kind::Head, _) => {
                let hops: Vec<&str> = self.way.iter().map(|csv| short(csv, package)).collect();
                match hops.len().checked_sub(2 * ENDS_NAMED) {
                    Some(left_out @ 1..) => format!(
                        "{} → … {left_out} more … → {}",
                        hops[..ENDS_NAMED].join(" → "),
                        hops[hops.len() - ENDS_NAMED..].join(" → ")
                    ),
                    _ => hops.join(" → "),
                }
            }
            (Kind::InstallMode, Some(mode)) => format!("{first} → {last} in {mode}"),
            (Kind::InstallMode, None) => format!("{first} → {last}"),
            (Kind::Withdrawn, _) => format!("{first}, withdrawn"),
        }
    }

    /// The last place on the way that a test needs; none when no test needs a cluster.
    pub fn last(&self) -> Option<usize> {
        let needs = |test: &&Test| {
            test.kind != Kind::Withdrawn && !(test.kind == Kind::Head && self.stranded.is_some())
        };
        self.tests.iter().filter(needs).map(|test| test.at).max()
    }
}

/// A bundle's version as people read it: the name without its package.
pub(super) fn short<'c>(csv: &'c str, package: &str) -> &'c str {
    let rest = csv.strip_prefix(package).and_then(|rest| rest.strip_prefix('.').or(rest.strip_prefix("-")));
    rest.map_or(csv, |rest| rest.strip_prefix('v').unwrap_or(rest))
}

/// The most versions that the tests of a channel install, each for every version on the way to it: 200 versions one after another, where
/// all upgrades are tested.
pub(super) const MOST_INSTALLS: usize = 20_100;
/// The most versions that may be on the ways to the head of a channel, whichever are tested: one way is as long as there are versions.
const MOST_ON_WAYS: usize = 500_000;

/// A channel whose tests would have no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The channel that is tested, and what is known besides it.
#[derive(Clone, Copy)]
pub struct Subject<'s> {
    /// Its package.
    pub package: &'s OfferedPackage,
    /// Its name.
    pub name: &'s str,
    /// The channel.
    pub channel: &'s OfferedChannel,
    /// The package in an older catalog: only what has changed since is tested.
    pub against: Option<&'s OfferedPackage>,
    /// The install modes that each bundle supports, where that is known.
    pub modes: &'s BTreeMap<String, BTreeSet<InstallModeKind>>,
}

/// What a test of a channel consists of.
///
/// # Errors
/// It would install more versions than a test may.
pub fn plan(subject: Subject<'_>, edges: Edges) -> Result<Plan, TooLong> {
    let Subject { package, channel, .. } = subject;
    let head = channel.head().unwrap_or_default();
    let mut ways = ways(subject)?;
    let version = |name: &str| package.bundles.get(name)?.version.as_ref().map(|found| found.version.clone());
    ways.sort_by(|a, b| {
        let newer = match (version(&a[0]), version(&b[0])) {
            (Some(a), Some(b)) => precedence(&b, &a),
            _ => b[0].cmp(&a[0]),
        };
        a.len().cmp(&b.len()).then(newer)
    });
    let followed: BTreeSet<String> = ways.iter().filter_map(|way| way.get(1).cloned()).collect();
    let mut plan = Plan::default();
    for way in &ways {
        plan.walks.extend(walk(subject, edges, way, head, &followed));
        plan.walks.extend(mode_walks(subject, edges, way, head));
    }
    plan.walks.extend(withdrawn(subject, head));
    if plan.walks.iter().map(|walk| walk.way.len()).sum::<usize>() > MOST_INSTALLS {
        return Err(TooLong);
    }
    plan.untaken = untaken(subject, &ways);
    Ok(plan)
}

/// From each published version the way to where OLM stays.
fn ways(subject: Subject<'_>) -> Result<Vec<Vec<String>>, TooLong> {
    let Subject { package, channel, .. } = subject;
    let mut ways = Vec::new();
    let mut left = MOST_ON_WAYS;
    for entry in channel.entries.iter().filter(|entry| package.bundles.contains_key(&entry.name)) {
        let way: Vec<String> =
            std::iter::once(entry.name.clone()).chain(channel.way(&entry.name, None)).collect();
        left = left.checked_sub(way.len()).ok_or(TooLong)?;
        ways.push(way);
    }
    Ok(ways)
}

/// The walk of a version, with the tests that are wanted; none when none is.
fn walk(
    subject: Subject<'_>,
    edges: Edges,
    way: &[String],
    head: &str,
    followed: &BTreeSet<String>,
) -> Option<Walk> {
    let last = way.len() - 1;
    let ends_at_head = way[last] == head;
    let is_first_hop_to_head = way.get(1).is_some_and(|next| next == head);
    if edges == Edges::Heads && !(way[0] == head || is_first_hop_to_head) {
        return None;
    }
    let mut tests = Vec::new();
    if changed(subject, &way[0]) {
        tests.push(Test { kind: Kind::Install, at: 0 });
    }
    if last >= 1 && changed_edge(subject, &way[0], &way[1]) {
        tests.push(Test { kind: Kind::Edge, at: 1 });
    }
    let stranded = (!ends_at_head && edges != Edges::Heads).then(|| {
        format!("OLM stays at `{}`: the channel has no edge from there to its head `{head}`", way[last])
    });
    let any_changed = way.windows(2).any(|hop| changed_edge(subject, &hop[0], &hop[1]));
    // A longer walk goes by here; without an older catalog every version is a start of its own.
    let is_part = subject.against.is_some() && followed.contains(&way[0]);
    let to_head = match (&stranded, edges) {
        (Some(_), _) => subject.against.is_none() || any_changed || changed(subject, &way[0]),
        (None, Edges::All) => last >= 2 && any_changed && !is_part,
        (None, _) => false,
    };
    if to_head {
        tests.push(Test { kind: Kind::Head, at: last });
    }
    if tests.is_empty() {
        return None;
    }
    let mut walk = Walk {
        channel: subject.name.to_owned(),
        way: way.to_vec(),
        mode: preferred(subject, &way[0]),
        tests,
        stranded: stranded.filter(|_| to_head),
    };
    let keep = walk.tests.iter().map(|test| test.at).max().unwrap_or(0);
    walk.way.truncate(keep + 1);
    Some(walk)
}

/// The install modes that a hop takes away: the ordinary walk is in one mode, and users are in the others.
fn mode_walks(subject: Subject<'_>, edges: Edges, way: &[String], head: &str) -> Vec<Walk> {
    let [from, to, ..] = way else { return Vec::new() };
    if edges == Edges::Heads && to != head || !changed_edge(subject, from, to) {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (subject.modes.get(from), subject.modes.get(to)) else { return Vec::new() };
    let usual = preferred(subject, from);
    let gone = old.difference(new).filter(|mode| Some(**mode) != usual);
    gone.map(|mode| Walk {
        channel: subject.name.to_owned(),
        way: vec![from.clone(), to.clone()],
        mode: Some(*mode),
        tests: vec![Test { kind: Kind::InstallMode, at: 1 }],
        stranded: None,
    })
    .collect()
}

/// The mode that an operator is installed in: the widest that is common.
fn preferred(subject: Subject<'_>, csv: &str) -> Option<InstallModeKind> {
    use InstallModeKind::{AllNamespaces, MultiNamespace, OwnNamespace, SingleNamespace};
    let supported = subject.modes.get(csv)?;
    [AllNamespaces, OwnNamespace, SingleNamespace, MultiNamespace]
        .into_iter()
        .find(|mode| supported.contains(mode))
}

/// Whether a bundle is another one than in the older catalog.
fn changed(subject: Subject<'_>, csv: &str) -> bool {
    let Some(old) = subject.against else { return true };
    match (old.bundles.get(csv), subject.package.bundles.get(csv)) {
        (Some(old), Some(new)) => {
            old.image != new.image
                || old.manifests != new.manifests
                || old.properties != new.properties
                || old.version != new.version
        }
        (None, _) => true,
        (_, None) => false,
    }
}

/// Whether a hop is another one than in the older catalog.
fn changed_edge(subject: Subject<'_>, from: &str, to: &str) -> bool {
    let Some(old) = subject.against else { return true };
    let next = old.channels.get(subject.name).and_then(|channel| channel.next(from, None));
    next != Some(to) || changed(subject, from) || changed(subject, to)
}

/// The versions that only the older catalog has, held against this one.
fn withdrawn(subject: Subject<'_>, head: &str) -> Vec<Walk> {
    let old = subject.against.and_then(|old| Some((old, old.channels.get(subject.name)?)));
    let Some((old, channel)) = old else { return Vec::new() };
    let gone = channel.entries.iter().filter(|entry| {
        old.bundles.contains_key(&entry.name) && subject.channel.entry(&entry.name).is_none()
    });
    gone.map(|entry| {
        let version = old.bundles.get(&entry.name).and_then(|bundle| bundle.version.as_ref());
        let way = subject.channel.way(&entry.name, version);
        let stranded = way.last().is_none_or(|last| last != head).then(|| {
            let stays = way.last().unwrap_or(&entry.name);
            format!("`{}` is no longer in the channel, and OLM stays at `{stays}`: no edge leads from there to the head `{head}`", entry.name)
        });
        Walk {
            channel: subject.name.to_owned(),
            way: vec![entry.name.clone()],
            mode: None,
            tests: vec![Test { kind: Kind::Withdrawn, at: 0 }],
            stranded,
        }
    })
    .collect()
}

/// The edges by name that OLM does not take, since it goes elsewhere from where they begin.
fn untaken(subject: Subject<'_>, ways: &[Vec<String>]) -> Vec<Untaken> {
    let next: BTreeMap<&str, &str> =
        ways.iter().filter_map(|way| Some((way[0].as_str(), way.get(1)?.as_str()))).collect();
    let mut entries: BTreeMap<&str, &OfferedEntry> = BTreeMap::new();
    for entry in &subject.channel.entries {
        entries.entry(&entry.name).or_insert(entry);
    }
    let mut untaken = Vec::new();
    for entry in &subject.channel.entries {
        for from in std::iter::once(&entry.replaces).chain(&entry.skips).filter(|from| !from.is_empty()) {
            let Some(taken) = next.get(from.as_str()).filter(|taken| **taken != entry.name) else { continue };
            let edge = entries.get(taken).map(|entry| entry.edge_from(from)).unwrap_or_default();
            untaken.push(Untaken {
                channel: subject.name.to_owned(),
                from: from.clone(),
                to: entry.name.clone(),
                reason: format!("OLM goes from `{from}` to `{taken}`, since {edge}"),
            });
        }
    }
    untaken
}

#[cfg(test)]
mod tests;
