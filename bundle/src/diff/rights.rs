//! What the operator may do in the new version and could not in the old one, and the other way round.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::codes;
use crate::csv::Permissions;
use crate::finding::{Finding, Findings};
use crate::parse::Csv;
use crate::yaml::Step;

/// One thing that a service account may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Right<'b> {
    account: &'b str,
    /// Whether it is so in every namespace.
    everywhere: bool,
    /// The API group, none for a path of the API server.
    group: Option<&'b str>,
    /// The resource, or the path.
    resource: &'b str,
    /// The one object that is meant.
    name: Option<&'b str>,
    verb: &'b str,
}

/// A rule with the rights that it gives, and where it stands.
struct Rule<'b> {
    path: [Step<'static>; 7],
    rights: Vec<Right<'b>>,
}

/// Compares the permissions of two ClusterServiceVersions.
pub(super) fn compare(old: &Csv<'_, '_>, new: &Csv<'_, '_>, findings: &mut Findings) {
    let (olds, news) = (rules(old), rules(new));
    for (rules, others, gained) in [(&news, &olds, true), (&olds, &news, false)] {
        let known = Known::of(others);
        for rule in rules {
            let differing: BTreeSet<_> = rule.rights.iter().filter(|right| !known.has(right)).collect();
            let Some(first) = differing.first() else { continue };
            let account = first.account;
            let scope = if first.everywhere { "in all namespaces" } else { "in the watched namespaces" };
            let shown = shown(&differing);
            let (code, message) = match gained {
                true if differing.iter().any(|right| escalates(right)) => (
                    &codes::PERMISSION_ESCALATES,
                    format!("`{account}` can now raise its own rights or read all secrets {scope}: {shown}"),
                ),
                true => (&codes::PERMISSION_GAINED, format!("`{account}` may now do more {scope}: {shown}")),
                false => (&codes::PERMISSION_LOST, format!("`{account}` may do less {scope}: {shown}")),
            };
            let above = |object: &crate::parse::Object<'_, '_>| object.place(&rule.path[..4]);
            let (place, other) = match gained {
                true => (new.object.place(&rule.path), above(&old.object)),
                false => (above(&new.object), old.object.place(&rule.path)),
            };
            findings.push(Finding::new(code, message).at(place).and(other).subject(new.object.subject()));
        }
    }
}

/// What service accounts may do in all namespaces by the new version and could not by the old one, a line for each rule. Without an
/// old version that is all of it. Where the operator watches all namespaces, so do its rules for the watched ones.
pub fn gained_in_all_namespaces(
    old: Option<&Csv<'_, '_>>,
    new: &Csv<'_, '_>,
    watches_all: bool,
) -> Vec<String> {
    let olds = old.map(|old| everywhere(old, watches_all)).unwrap_or_default();
    let news = everywhere(new, watches_all);
    let known = Known::of(&olds);
    let line = |rule: &Rule<'_>| {
        let gained: BTreeSet<_> = rule.rights.iter().filter(|right| !known.has(right)).collect();
        let account = gained.first()?.account;
        Some(format!("`{account}` may now do more in all namespaces: {}", shown(&gained)))
    };
    news.iter().filter_map(line).collect()
}

/// The rules that hold in all namespaces.
fn everywhere<'b>(csv: &Csv<'b, '_>, watches_all: bool) -> Vec<Rule<'b>> {
    let mut rules = rules(csv);
    for rule in &mut rules {
        rule.rights.retain(|right| watches_all || right.everywhere);
        rule.rights.iter_mut().for_each(|right| right.everywhere = true);
    }
    rules
}

fn rules<'b>(csv: &Csv<'b, '_>) -> Vec<Rule<'b>> {
    let spec = &csv.typed.spec.install.spec;
    let mut rules = Vec::new();
    let lists: [(&'static str, bool, &'b [Permissions]); 2] =
        [("permissions", false, &spec.permissions), ("clusterPermissions", true, &spec.cluster_permissions)];
    for (key, everywhere, list) in lists {
        for (at, permissions) in list.iter().enumerate() {
            for (number, rule) in permissions.rules.iter().enumerate() {
                let path = [
                    "spec".into(),
                    "install".into(),
                    "spec".into(),
                    key.into(),
                    at.into(),
                    "rules".into(),
                    number.into(),
                ];
                let account = match permissions.service_account_name.as_str() {
                    "" => "default",
                    name => name,
                };
                rules.push(Rule { path, rights: rights(account, everywhere, rule) });
            }
        }
    }
    rules
}

fn rights<'b>(account: &'b str, everywhere: bool, rule: &'b PolicyRule) -> Vec<Right<'b>> {
    let mut rights = Vec::new();
    let texts = |list: &'b Option<Vec<String>>| list.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    let names = match texts(&rule.resource_names) {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    for verb in &rule.verbs {
        for group in texts(&rule.api_groups) {
            for resource in texts(&rule.resources) {
                for name in &names {
                    rights.push(Right {
                        account,
                        everywhere,
                        group: Some(group),
                        resource,
                        name: *name,
                        verb,
                    });
                }
            }
        }
        for path in texts(&rule.non_resource_urls) {
            rights.push(Right { account, everywhere, group: None, resource: path, name: None, verb });
        }
    }
    rights
}

/// Rights to look others up in.
struct Known<'r, 'b> {
    all: HashSet<&'r Right<'b>>,
    /// Those that give more than one.
    broad: Vec<&'r Right<'b>>,
}

impl<'r, 'b> Known<'r, 'b> {
    fn of(rules: &'r [Rule<'b>]) -> Self {
        let all: HashSet<_> = rules.iter().flat_map(|rule| &rule.rights).collect();
        let is_broad = |right: &&&Right<'_>| {
            let has_star = right.resource.contains('*') || right.verb == "*" || right.group == Some("*");
            has_star || right.everywhere
        };
        let mut broad: Vec<_> = all.iter().filter(is_broad).copied().collect();
        broad.sort();
        Self { all, broad }
    }

    fn has(&self, right: &Right<'b>) -> bool {
        self.all.contains(right)
            || self.all.contains(&Right { name: None, ..right.clone() })
            || self.broad.iter().any(|known| covers(known, right))
    }
}

fn covers(known: &Right<'_>, right: &Right<'_>) -> bool {
    let resource = match (known.resource.split_once('/'), right.resource.split_once('/')) {
        _ if known.resource == "*" || known.resource == right.resource => true,
        // `*/scale` is that subresource of anything.
        (Some(("*", of)), Some((_, subresource))) => of == subresource,
        (None, None) if known.group.is_none() => {
            known.resource.strip_suffix('*').is_some_and(|start| right.resource.starts_with(start))
        }
        _ => false,
    };
    let path = known.group.is_none()
        && known.resource.strip_suffix('*').is_some_and(|start| right.resource.starts_with(start));
    known.account == right.account
        && (known.everywhere || !right.everywhere)
        && (known.group == right.group || (known.group == Some("*") && right.group.is_some()))
        && (resource || path)
        && (known.name.is_none() || known.name == right.name)
        && (known.verb == "*" || known.verb == right.verb)
}

/// Whether a right can be turned into more rights.
fn escalates(right: &Right<'_>) -> bool {
    let on = |group: &str, resources: &[&str]| {
        (right.group == Some(group) || right.group == Some("*"))
            && (right.resource == "*" || resources.contains(&right.resource))
    };
    let may = |verbs: &[&str]| right.verb == "*" || verbs.contains(&right.verb);
    on("rbac.authorization.k8s.io", &["roles", "clusterroles"]) && may(&["escalate", "bind"])
        || on("", &["users", "groups", "serviceaccounts"]) && may(&["impersonate"])
        || on("", &["secrets"]) && right.everywhere && right.name.is_none() && may(&["get", "list", "watch"])
        || on("", &["serviceaccounts/token"]) && may(&["create"])
}

/// `secrets` (get, list), `deployments.apps` (create)
fn shown(rights: &BTreeSet<&Right<'_>>) -> String {
    let mut by_resource: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for right in rights {
        let resource = match right.group {
            None | Some("") => right.resource.to_owned(),
            Some(group) => format!("{}.{group}", right.resource),
        };
        let resource = match right.name {
            Some(name) => format!("{resource}/{name}"),
            None => resource,
        };
        by_resource.entry(resource).or_default().insert(right.verb);
    }
    const MOST: usize = 8;
    let more = by_resource.len().saturating_sub(MOST);
    let one = |(resource, verbs): (&String, &BTreeSet<&str>)| {
        format!("`{resource}` ({})", verbs.iter().copied().collect::<Vec<_>>().join(", "))
    };
    let shown = by_resource.iter().take(MOST).map(one).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
