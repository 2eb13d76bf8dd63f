//! What the operator's service accounts may do: roles joined to accounts through bindings.
//!
//! OLM makes the service accounts of the Deployments itself and grants them what `permissions` (in the watched
//! namespaces) and `clusterPermissions` (everywhere) say. Roles and bindings that serve those accounts alone
//! therefore turn into rules; all others stay manifests.
//!
//! The rights of every account are the same before and after, or a finding says what differs (`laws/rights.rs`).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::draft::{By, Draft, Origin};
use super::input::{self, Objects};
use super::namespaces::{self, Fixed, Kept};
use super::workload::{self, Account, Workload};
use super::{Compat, codes};
use crate::finding::{Finding, Findings, Level};
use crate::kinds;
use crate::parse::Object;
use crate::subject::ServiceAccount;
use crate::yaml::{Node, Step, steps};

/// What the service accounts may do, and what of the RBAC objects is left over.
pub(super) struct Rbac<'m> {
    /// The entries of `spec.install.spec.permissions`.
    pub(super) permissions: Vec<Draft<'m>>,
    /// The entries of `spec.install.spec.clusterPermissions`.
    pub(super) cluster_permissions: Vec<Draft<'m>>,
    /// Roles, bindings and service accounts that go into the bundle as manifests.
    pub(super) leftovers: Vec<Object<'m, 'm>>,
    /// The workloads that are left out, and what of the RBAC objects serves them alone and is left out with them.
    pub(super) gone: Vec<(String, Vec<String>)>,
}

/// The Role that lets a server of requests read how clients are to be authenticated; it is in `kube-system`.
const AUTH_READER: &str = "extension-apiserver-authentication-reader";
/// Roles with such labels add to roles that every cluster has.
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";
/// More rules than this are counted in messages instead of listed.
const LISTED_RULES: usize = 4;

/// `serving` are the Deployments that OLM gives a Service, a certificate and the rights to authenticate requests.
pub(super) fn derive<'m>(
    objects: &Objects<'m>,
    workload: &Workload<'m>,
    serving: &BTreeSet<String>,
    compat: Option<Compat>,
    findings: &mut Findings,
) -> Rbac<'m> {
    let mut join = Join {
        workload,
        objects,
        serving,
        compat,
        used: Vec::new(),
        needed: Vec::new(),
        lost: Vec::new(),
        leftovers: Vec::new(),
        gone: Vec::new(),
        gone_roles: Vec::new(),
        fixed: Vec::new(),
    };
    let mut permissions = join.bindings(&objects.role_bindings, findings);
    let cluster_permissions = join.bindings(&objects.cluster_role_bindings, findings);
    join.roles(findings);
    findings.extend(namespaces::of_accounts(&join.fixed, workload));
    let Join { mut leftovers, gone, .. } = join;
    let mut gone = gone;
    let granted =
        permissions.iter().chain(&cluster_permissions).map(|entry| entry.text("serviceAccountName"));
    let mut granted: BTreeSet<String> = granted.map(str::to_owned).collect();
    // OLM makes the accounts that it grants something to, and no others.
    let made =
        |account: &Account<'_>| compat.is_some() || account.is_deployed() || granted.contains(&account.name);
    let own = |object: &Object<'m, 'm>| {
        let account = workload.account(object.name(), input::namespace(object));
        account.is_some_and(made)
    };
    for account in objects.service_accounts.iter().filter(|account| !own(account)) {
        match workload_of(objects, workload, account.name(), input::namespace(account)) {
            Some(id) if compat.is_none() => add_gone(&mut gone, id, account),
            _ => leftovers.push(*account),
        }
    }
    if compat.is_none() {
        report_poorer(objects, own, findings);
        report_merged(workload, findings);
        let mut without_rules = Vec::<Draft<'m>>::new();
        for account in &workload.accounts {
            if account.is_deployed() && account.name != "default" && granted.insert(account.name.clone()) {
                let rule =
                    account.origin.by_rule("OLM creates the service accounts that it grants rights to");
                without_rules.push(entry(account, Draft::list(Vec::new(), rule)));
            }
        }
        permissions.extend(without_rules);
        report_lost_namespaces(&leftovers, objects, workload, findings);
    }
    Rbac { permissions, cluster_permissions, leftovers, gone }
}

/// The workload that is left out and alone runs as a service account.
fn workload_of(
    objects: &Objects<'_>,
    workload: &Workload<'_>,
    name: &str,
    namespace: &str,
) -> Option<String> {
    let runs = |object: &&Object<'_, '_>| {
        let own = input::namespace(object);
        let near = own.is_empty() || namespace.is_empty() || own == namespace;
        workload::account_of(object) == name && name != "default" && near
    };
    let found = objects.not_installed.iter().find(runs)?;
    workload.account(name, namespace).is_none().then(|| found.id())
}

fn add_gone(gone: &mut Vec<(String, Vec<String>)>, workload: String, object: &Object<'_, '_>) {
    let id = format!("`{}`", object.id());
    match gone.iter_mut().find(|(own, _)| *own == workload) {
        Some((_, ids)) if ids.contains(&id) => {}
        Some((_, ids)) => ids.push(id),
        None => gone.push((workload, vec![id])),
    }
}

/// OLM makes the service accounts of Deployments with a name alone.
fn report_poorer<'m>(objects: &Objects<'m>, own: impl Fn(&Object<'m, 'm>) -> bool, findings: &mut Findings) {
    for account in objects.service_accounts.iter().filter(|account| own(account)) {
        let said = |path: &[Step<'_>]| {
            let node = account.root.at(path);
            node.is_some_and(|node| match (node.as_sequence(), node.as_mapping()) {
                (Some(list), _) => !list.is_empty(),
                (_, Some(map)) => map.iter().any(|entry| !entry.key.starts_with("kubectl.")),
                _ => node.as_bool() == Some(false),
            })
        };
        let fields = [
            (steps!("metadata", "annotations") as &[_], "annotations"),
            (steps!("imagePullSecrets"), "imagePullSecrets"),
            (steps!("automountServiceAccountToken"), "automountServiceAccountToken"),
        ];
        let lost: Vec<_> = fields.iter().filter(|(path, _)| said(path)).collect();
        let Some((path, _)) = lost.first() else { continue };
        let names: Vec<_> = lost.iter().map(|(_, name)| format!("`{name}`")).collect();
        let message = format!("OLM creates `{}` itself, without its {}", account.id(), names.join(" and "));
        let finding = account.finding(&codes::REPLACED_BY_OLM, message, path);
        let help = "set what the pods need in the Deployment (`imagePullSecrets`, `automountServiceAccountToken`), or tell users to annotate the service account";
        findings.push(Finding { level: Level::Warning, ..finding.help(help) });
    }
}

fn entry<'m>(account: &Account<'m>, rules: Draft<'m>) -> Draft<'m> {
    let mut entry = Draft::map(account.origin);
    entry.set(&["serviceAccountName"], Draft::new(account.name.as_str(), account.origin));
    entry.set(&["rules"], rules);
    entry
}

/// Service accounts of one name in several namespaces are one in the operator's.
fn report_merged(workload: &Workload<'_>, findings: &mut Findings) {
    for account in &workload.accounts {
        let Some(first) = workload.named(&account.name).find(|own| own.is_deployed()) else { continue };
        if account.is_deployed() && first.namespace != account.namespace {
            let message = format!(
                "the service accounts `{}` of the namespaces `{}` and `{}` become one, which gets the rights of both",
                account.name, first.namespace, account.namespace
            );
            let mut finding = Finding::new(&codes::NAMESPACE_LOST, message);
            finding.place = account.origin.place();
            finding.other = first.origin.place();
            findings.push(finding.help("give the Deployments service accounts of different names"));
        }
    }
}

/// OLM puts every object into the operator's own namespace.
fn report_lost_namespaces(
    leftovers: &[Object<'_, '_>],
    objects: &Objects<'_>,
    workload: &Workload<'_>,
    findings: &mut Findings,
) {
    let deployments = objects.deployments.iter().filter(|_| workload.namespaces.len() > 1);
    for object in leftovers.iter().chain(&objects.others).chain(&objects.services).chain(deployments) {
        let namespace = input::namespace(object);
        let namespaced = object.kind() == "Deployment"
            || kinds::supported(object.kind()).is_some_and(|kind| kind.namespaced);
        if namespaced && !workload.is_main(namespace) {
            let message = format!(
                "`{}` is for the namespace `{namespace}`, but OLM creates it in the operator's namespace",
                object.id()
            );
            let finding = object.finding(&codes::NAMESPACE_LOST, message, steps!("metadata", "namespace"));
            findings.push(finding.help("have the operator create it, or use the operator's namespace"));
        }
    }
}

struct Join<'o, 'm> {
    workload: &'o Workload<'m>,
    objects: &'o Objects<'m>,
    serving: &'o BTreeSet<String>,
    compat: Option<Compat>,
    /// The roles that turned into rules.
    used: Vec<Object<'m, 'm>>,
    /// The roles that bindings of the bundle refer to.
    needed: Vec<Object<'m, 'm>>,
    /// The roles of bindings that are left out, with a finding for each.
    lost: Vec<Object<'m, 'm>>,
    leftovers: Vec<Object<'m, 'm>>,
    gone: Vec<(String, Vec<String>)>,
    /// The roles of bindings that serve workloads that are left out.
    gone_roles: Vec<(String, Object<'m, 'm>)>,
    /// The service accounts that bindings of the bundle grant rights in one namespace alone.
    fixed: Vec<Fixed<'m>>,
}

/// A list of roles knows objects by their place.
fn contains(list: &[Object<'_, '_>], object: &Object<'_, '_>) -> bool {
    list.iter().any(|own| std::ptr::eq(own.root, object.root))
}

impl<'o, 'm> Join<'o, 'm> {
    /// The rules that bindings give to the operator's accounts, an entry for each account.
    fn bindings(&mut self, bindings: &[Object<'m, 'm>], findings: &mut Findings) -> Vec<Draft<'m>> {
        let mut rules = BTreeMap::<&'o str, Granted<'o, 'm>>::new();
        for binding in bindings {
            let role = self.role(binding);
            let subjects = binding.root.get("subjects").and_then(Node::as_sequence).unwrap_or(&[]);
            let mine: Vec<_> = subjects.iter().filter_map(|subject| self.account(subject)).collect();
            if self.compat.is_none() {
                self.report_unknown(binding, subjects, findings);
            }
            let namespaced = binding.kind() == "RoleBinding";
            let at_home =
                !namespaced || self.compat.is_some() || self.workload.is_own(input::namespace(binding));
            if let Some(role) = role.filter(|_| at_home && !mine.is_empty()) {
                self.used.push(role);
                for account in &mine {
                    let grants = rules.entry(&account.name).or_insert_with(|| Granted::to(account));
                    for (rule, role) in self.rules(role, namespaced) {
                        let rule = Draft::node(rule, role.source, By::Manifest);
                        let bound = [Origin::manifest(binding, steps!("subjects"))];
                        grants.add(rule.made_of(bound), self.compat.is_none());
                    }
                }
            }
            if self.compat.is_some() {
                // The binding still grants rights: to accounts of others, or those of a role outside the manifests.
                if role.is_none() || mine.len() < subjects.len() {
                    self.leftovers.push(*binding);
                }
                continue;
            }
            self.keep_or_report(binding, role, subjects, at_home, findings);
        }
        let granted = rules.into_values().filter(|granted| !granted.rules.is_empty());
        granted.map(|granted| entry(granted.to, Draft::list(granted.rules, granted.to.origin))).collect()
    }

    /// Handles rights that a ClusterServiceVersion cannot grant: those of other accounts, and those of a role outside the
    /// manifests. Puts the binding into the bundle if it means the same there, and reports it otherwise.
    fn keep_or_report(
        &mut self,
        binding: &Object<'m, 'm>,
        role: Option<Object<'m, 'm>>,
        subjects: &[Node<'m>],
        at_home: bool,
        findings: &mut Findings,
    ) {
        let is_granted = |subject: &&Node<'m>| role.is_some() && at_home && self.account(subject).is_some();
        let rest: Vec<&Node<'m>> = subjects.iter().filter(|subject| !is_granted(subject)).collect();
        if let Some(workload) = self.only_for_left_out(subjects) {
            add_gone(&mut self.gone, workload.clone(), binding);
            if let Some(role) = role {
                self.lost.push(role);
                self.gone_roles.push((workload, role));
            }
            return;
        }
        let moves = binding.kind() == "RoleBinding" && !self.workload.is_main(input::namespace(binding));
        if moves {
            if !rest.is_empty() {
                findings.push(self.left_out(binding, role, &rest));
            }
            self.lost.extend(role);
            return;
        }
        let aggregates = role.is_some_and(|role| selectors(&role).is_some());
        // What nothing among the manifests is collected for, the binding alone grants.
        let is_open = role.is_some_and(|role| self.collects_elsewhere(&role));
        let is_kept = !rest.is_empty() || aggregates || subjects.is_empty();
        let rest = if is_open { subjects.iter().collect() } else { rest };
        if is_kept {
            self.leftovers.push(*binding);
            self.needed.extend(role);
            // Without a Deployment something else is the cause.
            if !self.objects.deployments.is_empty() {
                let kept = Kept {
                    binding: *binding,
                    has_role: role.is_some(),
                    is_open,
                    subjects: rest.clone(),
                    accounts: &self.objects.service_accounts,
                    serving: self.serving,
                };
                let (said, fixed) = namespaces::of_binding(&kept, self.workload);
                findings.extend(said);
                self.fixed.extend(fixed);
            }
        }
        // OLM makes the accounts of the operator in one namespace; a binding goes on naming the one that is written.
        let gone = |subject: &&&Node<'m>| {
            self.account(subject).is_some_and(|account| !self.workload.is_main(&account.namespace))
        };
        let gone: Vec<_> = rest.iter().filter(gone).copied().collect();
        if !gone.is_empty() {
            let message = format!(
                "{}: OLM makes the service accounts of the operator in one namespace, and `{}` names another",
                losses(&gone, role, binding),
                binding.id(),
            );
            let finding = binding.finding(&codes::RIGHTS_LOST, message, steps!("subjects"));
            findings.push(finding.help("run all Deployments of the operator in one namespace"));
        }
    }

    /// Whether a role collects the rules of roles that are not among the manifests.
    fn collects_elsewhere(&self, role: &Object<'m, 'm>) -> bool {
        let is_part = |selector: &Node<'_>, own: &Object<'_, '_>| {
            !std::ptr::eq(own.root, role.root) && selects(selector, own)
        };
        let is_here =
            |selector: &Node<'m>| self.objects.cluster_roles.iter().any(|own| is_part(selector, own));
        selectors(role).is_some_and(|selectors| selectors.iter().any(|selector| !is_here(selector)))
    }

    /// The finding about a binding that would grant its rights in another namespace than it is meant to.
    fn left_out(
        &self,
        binding: &Object<'m, 'm>,
        role: Option<Object<'m, 'm>>,
        subjects: &[&Node<'m>],
    ) -> Finding {
        let namespace = input::namespace(binding);
        let serves = |subject: &&Node<'m>| {
            let account = self.account(subject);
            account.is_some_and(|account| account.deployments.iter().any(|name| self.serving.contains(*name)))
        };
        let name = binding.text(steps!("roleRef", "name"));
        if name == AUTH_READER && namespace == "kube-system" && subjects.iter().all(serves) {
            let message = format!(
                "`{}` is left out: OLM makes one itself for Deployments that serve webhooks or APIs",
                binding.id()
            );
            return Finding {
                level: Level::Info,
                ..binding.finding(&codes::REPLACED_BY_OLM, message, steps!("metadata", "name"))
            };
        }
        let message = format!(
            "`{}` is left out, and {}: OLM creates bindings only in the namespace of the operator",
            binding.id(),
            losses(subjects, role, binding)
        );
        let finding = binding.finding(&codes::RIGHTS_LOST, message, steps!("metadata", "namespace"));
        let finding = match role {
            Some(role) => finding.and(role.place(steps!("rules"))),
            None => finding,
        };
        finding.help("have the operator do this in its own namespace (leader election often has a flag for it), or grant the rights everywhere with a ClusterRole and a ClusterRoleBinding")
    }

    /// The workload that is left out, if all subjects are service accounts of such.
    fn only_for_left_out(&self, subjects: &[Node<'m>]) -> Option<String> {
        let mut workloads = subjects.iter().map(|subject| {
            let ServiceAccount { name, namespace } = ServiceAccount::of(subject)?;
            workload_of(self.objects, self.workload, name, namespace)
        });
        let first = workloads.next()??;
        workloads.all(|own| own.is_some()).then_some(first)
    }

    /// The roles that go into the bundle: those that nobody has turned into rules, and those that are needed besides.
    fn roles(&mut self, findings: &mut Findings) {
        let aggregating: Vec<_> = self.objects.cluster_roles.iter().filter_map(selectors).flatten().collect();
        for role in self.objects.roles.iter().chain(&self.objects.cluster_roles) {
            let used = contains(&self.used, role);
            if self.compat.is_some() {
                self.leftovers.extend(Some(*role).filter(|_| !used));
                continue;
            }
            let gone = self.gone_roles.iter().find(|(_, own)| std::ptr::eq(own.root, role.root));
            if let Some((workload, _)) = gone.filter(|_| !used && !contains(&self.needed, role)) {
                add_gone(&mut self.gone, workload.clone(), role);
                continue;
            }
            if role.kind() == "Role" && !self.workload.is_main(input::namespace(role)) {
                if !used && !contains(&self.lost, role) {
                    let message = format!(
                        "`{}` is left out: it is for the namespace `{}`, and OLM creates Roles only in the namespace of the operator",
                        role.id(),
                        input::namespace(role)
                    );
                    let at = steps!("metadata", "namespace");
                    findings.push(role.finding(&codes::NAMESPACE_LOST, message, at));
                }
                continue;
            }
            let labels = role.root.at(steps!("metadata", "labels"));
            let adds = labels
                .and_then(Node::as_mapping)
                .is_some_and(|labels| labels.iter().any(|entry| entry.key.starts_with(AGGREGATE_TO)));
            let collected = role.kind() == "ClusterRole"
                && (adds || aggregating.iter().any(|selector| selects(selector, role)));
            if !used || collected || contains(&self.needed, role) {
                self.leftovers.push(*role);
            }
        }
    }

    /// The rules of a role. The cluster fills in those of an aggregated one; a namespaced binding grants nothing beyond
    /// resources, and a Role with such a rule is refused.
    fn rules(&self, role: Object<'m, 'm>, namespaced: bool) -> Vec<(&'m Node<'m>, Object<'m, 'm>)> {
        let (mut roles, mut at) = (vec![role], 0);
        let mut rules = Vec::new();
        while let Some(role) = roles.get(at).copied() {
            at += 1;
            if let Some(selectors) = selectors(&role).filter(|_| self.compat.is_none()) {
                for other in &self.objects.cluster_roles {
                    if selectors.iter().any(|selector| selects(selector, other)) && !contains(&roles, other) {
                        roles.push(*other);
                    }
                }
                continue;
            }
            let own = role.root.get("rules").and_then(Node::as_sequence).unwrap_or(&[]);
            let counts = |rule: &&Node<'m>| {
                let urls = rule.get("nonResourceURLs").and_then(Node::as_sequence).unwrap_or(&[]);
                self.compat.is_some() || !namespaced || urls.is_empty()
            };
            rules.extend(own.iter().filter(counts).map(|rule| (rule, role)));
        }
        rules
    }

    /// Subjects that should be accounts of this operator, and are not among its manifests.
    fn report_unknown(&self, binding: &Object<'m, 'm>, subjects: &[Node<'_>], findings: &mut Findings) {
        for (at, subject) in subjects.iter().enumerate() {
            let Some(ServiceAccount { name, namespace }) = ServiceAccount::of(subject) else { continue };
            let known = |account: &Object<'_, '_>| {
                let own = input::namespace(account);
                account.name() == name && (own.is_empty() || namespace.is_empty() || own == namespace)
            };
            if !self.workload.is_own(namespace)
                || self.objects.deployments.is_empty()
                || workload_of(self.objects, self.workload, name, namespace).is_some()
                || self.account(subject).is_some()
                || self.objects.service_accounts.iter().any(known)
            {
                continue;
            }
            let message = format!(
                "`{}` grants rights to the service account `{name}`, which no Deployment runs as and no manifest creates",
                binding.id()
            );
            let finding = binding.finding(&codes::SUBJECT_UNKNOWN, message, steps!("subjects", at, "name"));
            findings.push(finding.help("add the ServiceAccount, correct the name, or remove the subject"));
        }
    }

    fn role(&self, binding: &Object<'m, 'm>) -> Option<Object<'m, 'm>> {
        let name = binding.text(steps!("roleRef", "name"));
        let objects = self.objects;
        let (own, compat) = (input::namespace(binding), self.compat.is_some());
        let is_own = |namespace: &str| self.workload.is_own(namespace);
        let same = |role: &Object<'_, '_>| {
            let other = input::namespace(role);
            // Without a namespace an object is applied to the operator's.
            let unsaid = (own.is_empty() || other.is_empty()) && is_own(own) && is_own(other);
            compat || own == other || unsaid
        };
        let found = match binding.text(steps!("roleRef", "kind")) {
            "Role" => objects.roles.iter().find(|role| role.name() == name && same(role)),
            "ClusterRole" => objects.cluster_roles.iter().find(|role| role.name() == name),
            _ => None,
        };
        found.copied()
    }

    /// The operator's account that a subject means, if it means one.
    fn account(&self, subject: &Node<'_>) -> Option<&'o Account<'m>> {
        // operator-sdk knows service accounts by this kind alone.
        let is_read =
            self.compat.is_none() || subject.get("kind").and_then(Node::as_str) == Some("ServiceAccount");
        let ServiceAccount { name, namespace } = ServiceAccount::of(subject).filter(|_| is_read)?;
        self.workload.account(name, namespace)
    }
}

/// Which account loses which rights, in words.
fn losses(subjects: &[&Node<'_>], role: Option<Object<'_, '_>>, binding: &Object<'_, '_>) -> String {
    let text = |subject: &Node<'_>, key| subject.get(key).and_then(Node::as_str).unwrap_or("").to_owned();
    let named = |own: &&Node<'_>| match ServiceAccount::of(own) {
        Some(account) => format!("`ServiceAccount/{}`", account.name),
        None => format!("`{}/{}`", text(own, "kind"), text(own, "name")),
    };
    let who: Vec<_> = subjects.iter().map(named).collect();
    let verb = if who.len() == 1 { "loses" } else { "lose" };
    let rules = role.and_then(|role| role.root.get("rules")?.as_sequence()).unwrap_or(&[]);
    let what = if (1..=LISTED_RULES).contains(&rules.len()) {
        rules.iter().map(rule_in_words).collect::<Vec<_>>().join(", ")
    } else {
        let named = |key| binding.text(steps!("roleRef", key));
        format!("what `{}/{}` allows", named("kind"), named("name"))
    };
    let scope = match input::namespace(binding) {
        namespace if binding.kind() == "RoleBinding" && !namespace.is_empty() => {
            format!(" in the namespace `{namespace}`")
        }
        _ => String::new(),
    };
    format!("{} {verb} {what}{scope}", who.join(" and "))
}

/// A rule in words, such as "`get`, `list` on `leases.coordination.k8s.io`".
fn rule_in_words(rule: &Node<'_>) -> String {
    let list = |key: &str| -> Vec<&str> {
        rule.get(key).and_then(Node::as_sequence).unwrap_or(&[]).iter().filter_map(Node::as_str).collect()
    };
    let resources = list("resources").into_iter().chain(list("nonResourceURLs"));
    let resources: Vec<_> = resources.map(|resource| format!("`{resource}`")).collect();
    let verbs: Vec<_> = list("verbs").into_iter().map(|verb| format!("`{verb}`")).collect();
    format!("{} on {}", verbs.join("/"), resources.join("/"))
}

/// The label selectors of an aggregated ClusterRole.
fn selectors<'m>(role: &Object<'m, 'm>) -> Option<&'m [Node<'m>]> {
    role.root.at(steps!("aggregationRule", "clusterRoleSelectors"))?.as_sequence()
}

/// Whether a label selector selects an object (apimachinery `LabelSelectorAsSelector`).
fn selects(selector: &Node<'_>, object: &Object<'_, '_>) -> bool {
    let label = |key: &str| object.root.at(steps!("metadata", "labels", key)).and_then(Node::as_str);
    let same = selector.get("matchLabels").and_then(Node::as_mapping).is_none_or(|labels| {
        labels.iter().all(|entry| label(&entry.key).is_some_and(|own| Some(own) == entry.value.as_str()))
    });
    let expressions = selector.get("matchExpressions").and_then(Node::as_sequence).unwrap_or(&[]);
    same && expressions.iter().all(|expression| {
        let text = |key| expression.get(key).and_then(Node::as_str).unwrap_or("");
        let values = expression.get("values").and_then(Node::as_sequence).unwrap_or(&[]);
        let own = label(text("key"));
        let among = own.is_some_and(|own| values.iter().any(|value| value.as_str() == Some(own)));
        match text("operator") {
            "In" => among,
            "NotIn" => !among,
            "Exists" => own.is_some(),
            "DoesNotExist" => own.is_none(),
            _ => false,
        }
    })
}

/// What one account is granted.
struct Granted<'o, 'm> {
    to: &'o Account<'m>,
    rules: Vec<Draft<'m>>,
    /// The position of each rule.
    known: HashMap<String, usize>,
}

impl<'o, 'm> Granted<'o, 'm> {
    fn to(account: &'o Account<'m>) -> Self {
        Self { to: account, rules: Vec::new(), known: HashMap::new() }
    }

    /// Adds a rule; one that is there already is not added again, only remembered.
    fn add(&mut self, rule: Draft<'m>, once: bool) {
        match self.known.entry(rule.to_json().to_string()) {
            Entry::Occupied(at) if once => self.rules[*at.get()].add_origin(rule.origin()),
            Entry::Occupied(_) => self.rules.push(rule),
            Entry::Vacant(at) => {
                at.insert(self.rules.len());
                self.rules.push(rule);
            }
        }
    }
}
