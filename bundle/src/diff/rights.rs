//! What the operator may do in the new version and could not in the old one, and the other way round: by the permissions of
//! the ClusterServiceVersion, and by the roles and bindings that the bundle carries.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::codes;
use crate::csv::Permissions;
use crate::finding::{Finding, Findings};
use crate::parse::{Bundle, Csv, Object};
use crate::subject::ServiceAccount;
use crate::yaml::{Node, Step, steps};

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
struct Rule<'b, 'o> {
    object: Object<'o, 'o>,
    path: Vec<Step<'static>>,
    rights: Vec<Right<'b>>,
}

/// Roles and bindings that a bundle carries.
struct Grants<'o> {
    roles: Vec<Role<'o>>,
    bindings: Vec<Binding<'o>>,
}

struct Role<'o> {
    object: Object<'o, 'o>,
    /// `ClusterRole/NAME`, which rules of a role that nothing in the bundle binds are told of.
    id: String,
    rules: Vec<PolicyRule>,
}

struct Binding<'o> {
    object: Object<'o, 'o>,
    /// The role, as `KIND/NAME`.
    role: String,
    accounts: Vec<String>,
    /// The rules of a role that is not in the bundle.
    foreign: Vec<PolicyRule>,
}

impl<'o> Grants<'o> {
    fn of<'a: 'o>(bundle: &'o Bundle<'a>) -> Self {
        let objects = || bundle.objects().map(|object| Object { source: object.source, root: object.root });
        let is = |object: &Object<'_, '_>, kinds: [&str; 2]| kinds.contains(&object.kind());
        let roles: Vec<_> = objects()
            .filter(|object| is(object, ["Role", "ClusterRole"]))
            .map(|object| {
                let rules = object.root.get("rules").map(Node::to_json).unwrap_or_default();
                Role { object, id: object.id(), rules: serde_json::from_value(rules).unwrap_or_default() }
            })
            .collect();
        let bindings = objects().filter(|object| is(object, ["RoleBinding", "ClusterRoleBinding"]));
        let bindings = bindings.map(|object| {
            let text = |path: &[Step<'_>]| object.text(path);
            let (kind, name) = (text(steps!("roleRef", "kind")), text(steps!("roleRef", "name")));
            let role = format!("{kind}/{name}");
            let known = roles.iter().any(|other| other.id == role);
            let subjects = object.root.get("subjects").and_then(Node::as_sequence).unwrap_or_default();
            let accounts = subjects.iter().filter_map(ServiceAccount::of).map(|own| own.name.to_owned());
            let foreign = if known { Vec::new() } else { foreign(name) };
            Binding { object, role, accounts: accounts.collect(), foreign }
        });
        let bindings = bindings.collect();
        Self { roles, bindings }
    }

    /// The rights of service accounts by bindings, and of roles that no binding of the bundle names.
    fn rules(&self) -> Vec<Rule<'_, 'o>> {
        let mut rules = Vec::new();
        for binding in &self.bindings {
            let everywhere = binding.object.kind() == "ClusterRoleBinding";
            let role = self.roles.iter().find(|role| role.id == binding.role);
            for account in &binding.accounts {
                for rule in role.map_or(&binding.foreign, |role| &role.rules) {
                    let path = vec![Step::Key("roleRef")];
                    rules.push(Rule {
                        object: binding.object,
                        path,
                        rights: rights(account, everywhere, rule),
                    });
                }
            }
        }
        let is_bound = |role: &&Role<'_>| self.bindings.iter().any(|binding| binding.role == role.id);
        for role in self.roles.iter().filter(|role| !is_bound(role)) {
            let everywhere = role.object.kind() == "ClusterRole";
            for (at, rule) in role.rules.iter().enumerate() {
                let path = vec![Step::Key("rules"), Step::Index(at)];
                rules.push(Rule { object: role.object, path, rights: rights(&role.id, everywhere, rule) });
            }
        }
        rules
    }
}

/// The rules of a role that the bundle does not carry: those of `cluster-admin` are known, and of any other at least that it is
/// granted.
fn foreign(name: &str) -> Vec<PolicyRule> {
    let all = || Some(vec!["*".to_owned()]);
    match name {
        "cluster-admin" => vec![
            PolicyRule {
                api_groups: all(),
                resources: all(),
                verbs: vec!["*".into()],
                ..PolicyRule::default()
            },
            PolicyRule { non_resource_urls: all(), verbs: vec!["*".into()], ..PolicyRule::default() },
        ],
        name => vec![PolicyRule {
            api_groups: Some(vec!["rbac.authorization.k8s.io".into()]),
            resources: Some(vec!["clusterroles".into()]),
            resource_names: Some(vec![name.to_owned()]),
            verbs: vec!["use".into()],
            ..PolicyRule::default()
        }],
    }
}

/// Compares the permissions of two bundles.
pub(super) fn compare(
    (old, old_csv): (&Bundle<'_>, &Csv<'_, '_>),
    (new, new_csv): (&Bundle<'_>, &Csv<'_, '_>),
    findings: &mut Findings,
) {
    let (old_grants, new_grants) = (Grants::of(old), Grants::of(new));
    let (mut olds, mut news) = (old_grants.rules(), new_grants.rules());
    olds.extend(rules(old_csv));
    news.extend(rules(new_csv));
    for (rules, others, gained) in [(&news, &olds, true), (&olds, &news, false)] {
        let known = Known::of(others);
        for rule in rules {
            let differing: BTreeSet<_> = rule.rights.iter().filter(|right| !known.has(right)).collect();
            let Some(first) = differing.first() else { continue };
            let account = first.account;
            let scope = if first.everywhere { "in all namespaces" } else { "in the watched namespaces" };
            let (escalating, plain): (BTreeSet<_>, BTreeSet<_>) =
                differing.iter().copied().partition(|right| gained && escalates(right));
            let mut said = Vec::new();
            if !escalating.is_empty() {
                let rights = shown(&escalating);
                let can = "can now raise its own rights or read all secrets";
                said.push((&codes::PERMISSION_ESCALATES, format!("`{account}` {can} {scope}: {rights}")));
            }
            if !plain.is_empty() {
                let (code, may) = match gained {
                    true => (&codes::PERMISSION_GAINED, "may now do more"),
                    false => (&codes::PERMISSION_LOST, "may do less"),
                };
                said.push((code, format!("`{account}` {may} {scope}: {}", shown(&plain))));
            }
            let here = rule.object.place(&rule.path);
            // The other version has no such rule: the list of its rules is the nearest.
            let is_csv = rule.object.kind() == crate::csv::KIND;
            let list = |csv: &Csv<'_, '_>| {
                csv.object.place(rule.path.get(..4).filter(|_| is_csv).unwrap_or_default())
            };
            let (place, other) = match gained {
                true => (here, list(old_csv)),
                false => (list(new_csv), here),
            };
            for (code, message) in said {
                let finding = Finding::new(code, message).at(place.clone()).and(other.clone());
                findings.push(finding.subject(new_csv.object.subject()));
            }
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
    let line = |rule: &Rule<'_, '_>| {
        let gained: BTreeSet<_> = rule.rights.iter().filter(|right| !known.has(right)).collect();
        let account = gained.first()?.account;
        Some(format!("`{account}` may now do more in all namespaces: {}", shown(&gained)))
    };
    news.iter().filter_map(line).collect()
}

/// The rules that hold in all namespaces.
fn everywhere<'b>(csv: &Csv<'b, 'b>, watches_all: bool) -> Vec<Rule<'b, 'b>> {
    let mut rules = rules(csv);
    for rule in &mut rules {
        rule.rights.retain(|right| watches_all || right.everywhere);
        rule.rights.iter_mut().for_each(|right| right.everywhere = true);
    }
    rules
}

fn rules<'b>(csv: &Csv<'b, 'b>) -> Vec<Rule<'b, 'b>> {
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
                let rights = rights(account, everywhere, rule);
                rules.push(Rule { object: csv.object, path: path.to_vec(), rights });
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
    /// Those with a star, which give more than they name, by account.
    broad: HashMap<&'b str, Vec<&'r Right<'b>>>,
}

impl<'r, 'b> Known<'r, 'b> {
    fn of(rules: &'r [Rule<'b, '_>]) -> Self {
        let all: HashSet<_> = rules.iter().flat_map(|rule| &rule.rights).collect();
        let mut broad: HashMap<_, Vec<_>> = HashMap::new();
        for right in &all {
            if right.resource.contains('*') || right.verb == "*" || right.group == Some("*") {
                broad.entry(right.account).or_default().push(*right);
            }
        }
        Self { all, broad }
    }

    fn has(&self, right: &Right<'b>) -> bool {
        let wider =
            [(right.everywhere, right.name), (right.everywhere, None), (true, right.name), (true, None)];
        wider
            .into_iter()
            .any(|(everywhere, name)| self.all.contains(&Right { everywhere, name, ..right.clone() }))
            || self
                .broad
                .get(right.account)
                .is_some_and(|broad| broad.iter().any(|known| covers(known, right)))
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
        || on("", &["serviceaccounts/token", "*/token"]) && may(&["create"])
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
