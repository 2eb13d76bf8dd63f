//! OLM is removed, from its users to its namespaces: a controller runs until all objects with its finalizer are gone.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{CATALOG_OPERATOR, GROUP, OLM_OPERATOR, cleanup, is_own, kinds, status, text};
use crate::lifecycle::api::{ClusterServiceVersion, Key, Named as _, Object, Resource, known};
use crate::lifecycle::contents::Contents;
use crate::lifecycle::engine::{Engine, EngineError};
use crate::lifecycle::properties::package_of;
use crate::lifecycle::rights::Right;
use crate::lifecycle::uninstall::{Part, Removed};
use crate::sentence::Sentence;
use crate::shell::command;

/// What to remove.
#[derive(Clone, Debug, Default)]
pub struct Uninstall {
    /// Whether operators go as well: their Subscriptions and ClusterServiceVersions. Their CRDs and custom resources stay.
    pub with_operators: bool,
}

/// The most operators that a refusal names, and the most objects of others.
const MOST_NAMED: usize = 5;

/// What is removed, and when.
struct Plan {
    /// Custom resources of OLM that its programs clean up after: removed while these run, and waited for.
    while_running: Vec<(Resource, Key)>,
    /// OLM's programs.
    programs: Vec<(Resource, Key)>,
    /// Everything else, in the order of its removal, and why it stays where it does.
    rest: Vec<(Resource, Key, Option<String>)>,
}

impl Engine<'_> {
    /// Removes an OLM that was installed here, and says what it leaves.
    ///
    /// # Errors
    /// Operators are installed; OLM was installed by others; something does not go.
    pub fn uninstall_olm(&mut self, request: &Uninstall) -> Result<Removed, EngineError> {
        let status = status::look(self.cluster)?;
        if !status.installed && self.own()?.is_empty() {
            return Err(EngineError::refused_help("OLM is not installed", "nothing has to be removed"));
        }
        if status.installed && !status.installed_by_olmkit {
            return Err(EngineError::refused_help(
                format!("olmkit did not install the OLM in the namespace `{}`", status.namespace),
                Sentence::from("remove it as it was installed, or take it over with ")
                    + command!("olmkit olm install --adopt")
                    + " first",
            ));
        }
        let operators = self.operators()?;
        if !operators.is_empty() && !request.with_operators {
            let named: Vec<String> = operators.iter().map(|(_, key)| key.placed()).collect();
            let mut help = self.uninstall_each()?;
            help.push(
                "or pass --with-operators: then their Deployments go too, and their CRDs and custom resources stay"
                    .into(),
            );
            return Err(EngineError::refused_help(
                format!("operators are installed: {}", most_of(&named)),
                help,
            ));
        }
        let plan = self.plan(operators)?;
        let all = plan.while_running.iter().chain(&plan.programs).map(|(resource, key)| (resource, key));
        let going = plan.rest.iter().filter(|(_, _, keep)| keep.is_none());
        let all = all.chain(going.map(|(resource, key, _)| (resource, key)));
        let rights: Vec<Right> =
            all.map(|(resource, key)| Right::new("delete", resource, &key.namespace, "")).collect();
        self.need(rights)?;
        self.carry_out(plan)
    }

    fn carry_out(&mut self, plan: Plan) -> Result<Removed, EngineError> {
        let first = plan.while_running.iter().chain(&plan.programs).map(|(_, key)| key);
        let rest = plan.rest.iter().filter(|(_, _, keep)| keep.is_none()).map(|(_, key, _)| key);
        let left: Vec<String> = first.chain(rest).map(|key| format!("delete {}", key.placed())).collect();
        self.still_to_do(left);
        let mut removed = Removed { dry_run: self.options.dry_run, ..Removed::default() };
        let gone = |key: Key| part(key, String::new());
        for (resource, key) in &plan.while_running {
            self.delete(resource, key)?;
            self.one_is_done();
        }
        for (resource, key) in plan.while_running {
            self.gone_or_freed(&resource, &key)?;
            removed.removed.push(gone(key));
        }
        for (resource, key) in plan.programs {
            self.delete(&resource, &key)?;
            self.one_is_done();
            self.gone(&resource, &key)?;
            removed.removed.push(gone(key));
        }
        if !self.options.dry_run {
            // What OLM was still writing when it ended.
            let left = self.custom_resources(|_| true)?;
            for (resource, key) in left {
                self.delete(&resource, &key)?;
                self.gone_or_freed(&resource, &key)?;
            }
            for (resource, key) in self.made_by_olm()? {
                self.delete(&resource, &key)?;
                removed.removed.push(gone(key));
            }
        }
        for (resource, key, keep) in plan.rest {
            // What was put there meanwhile, while operators were removed, counts too.
            let keep = match keep {
                None if resource.kind == known::NAMESPACE.kind && !self.options.dry_run => {
                    self.used_by_others(&key.name)?
                }
                keep => keep,
            };
            if let Some(reason) = keep {
                removed.kept.push(part(key, reason));
                continue;
            }
            self.delete(&resource, &key)?;
            self.one_is_done();
            if resource.kind == known::CRD.kind {
                self.gone(&resource, &key)?;
            }
            removed.removed.push(gone(key));
        }
        // Namespaces come last, and take the longest.
        let namespaces: Vec<Key> = removed
            .removed
            .iter()
            .filter(|part| part.kind == known::NAMESPACE.kind)
            .map(|part| Key::new(&known::NAMESPACE, "", &part.name))
            .collect();
        for key in namespaces {
            self.gone(&known::NAMESPACE, &key)?;
        }
        Ok(removed)
    }

    /// Subscriptions, and ClusterServiceVersions that are operators.
    fn operators(&mut self) -> Result<Vec<(Resource, Key)>, EngineError> {
        let mut found = Vec::new();
        for resource in [&*known::SUBSCRIPTION, &*known::CSV] {
            let listed = status::served(self.cluster.list(resource, None))?;
            let operators =
                listed.iter().filter(|one| resource.kind != known::CSV.kind || status::is_operator(one));
            found.extend(operators.map(|one| (resource.clone(), Key::of(one))));
        }
        Ok(found)
    }

    /// The commands that remove installed operators, one for each: the first few, and how many more there are.
    fn uninstall_each(&mut self) -> Result<Vec<Sentence>, EngineError> {
        let subscriptions = status::served(self.cluster.list(&known::SUBSCRIPTION, None))?;
        let csvs = status::served(self.cluster.list(&known::CSV, None))?;
        let is_installed_by = |csv: &Key, subscription: &&Value| {
            let installed =
                ["/status/installedCSV", "/status/currentCSV"].map(|path| text(subscription, path));
            Key::of(subscription).namespace == csv.namespace && installed.contains(&csv.name.as_str())
        };
        let lone = csvs.iter().filter(|csv| {
            let key = Key::of(csv);
            status::is_operator(csv) && !subscriptions.iter().any(|found| is_installed_by(&key, &found))
        });
        let lone = lone.filter_map(|csv| Object::<ClusterServiceVersion>::read(csv.clone()).ok());
        let lone = lone.map(|csv| {
            let name = package_of(&csv).unwrap_or_else(|| csv.name().to_owned());
            (name, csv.namespace().to_owned())
        });
        let named = subscriptions.iter().map(Key::of).map(|key| (key.name, key.namespace));
        let all: BTreeSet<(String, String)> = named.chain(lone).collect();
        let commands = all.iter().take(MOST_NAMED).map(|(name, namespace)| {
            Sentence::from("run ") + command!("olmkit operator uninstall {} -n {}", name, namespace)
        });
        let mut help: Vec<Sentence> = commands.collect();
        if let more @ 1.. = all.len().saturating_sub(MOST_NAMED) {
            help.push(
                Sentence::from(format!("and {more} more: "))
                    + command!("olmkit operator list -A")
                    + " shows them",
            );
        }
        Ok(help)
    }

    /// What of OLM was made here, by kind.
    fn own(&mut self) -> Result<Vec<(Resource, Key)>, EngineError> {
        let mut own = Vec::new();
        for resource in kinds() {
            let listed = status::served(self.cluster.list(&resource, None))?;
            own.extend(listed.iter().filter(|one| is_own(one)).map(|one| (resource.clone(), Key::of(one))));
        }
        Ok(own)
    }

    fn plan(&mut self, operators: Vec<(Resource, Key)>) -> Result<Plan, EngineError> {
        let mut own = self.own()?;
        // Subscriptions first, or OLM installs again what goes; then what CatalogSources and OperatorGroups are needed for.
        let mut while_running = operators;
        let last = ["CatalogSource", "OperatorGroup"];
        while_running.extend(self.custom_resources(|kind| !last.contains(&kind))?);
        while_running.extend(self.custom_resources(|kind| last.contains(&kind))?);
        let mut seen = BTreeSet::new();
        while_running.retain(|(_, key)| seen.insert(key.clone()));
        own.retain(|(_, key)| key.group != GROUP);
        let is_program = |(resource, key): &(Resource, Key)| {
            resource.kind == known::DEPLOYMENT.kind
                && [OLM_OPERATOR, CATALOG_OPERATOR].contains(&key.name.as_str())
        };
        let (programs, mut own): (Vec<_>, Vec<_>) = own.into_iter().partition(is_program);
        own.sort_by_key(|(resource, _)| cleanup::rank(resource));
        let mut rest = Vec::new();
        for (resource, key) in own {
            let keep = match resource.kind == known::NAMESPACE.kind {
                true => self.used_by_others(&key.name)?,
                false => None,
            };
            rest.push((resource, key, keep));
        }
        Ok(Plan { while_running, programs, rest })
    }

    /// OLM's custom resources of all namespaces whose kind is meant. Copies go with their originals.
    fn custom_resources(
        &mut self,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<(Resource, Key)>, EngineError> {
        let kinds = [
            &known::SUBSCRIPTION,
            &known::CSV,
            &known::INSTALL_PLAN,
            &known::OPERATOR_CONDITION,
            &known::CATALOG_SOURCE,
            &known::OPERATOR_GROUP,
            &known::OLM_CONFIG,
        ];
        let mut found = Vec::new();
        for resource in kinds.into_iter().filter(|resource| is_meant(&resource.kind)) {
            let listed = status::served(self.cluster.list(resource, None))?;
            let originals =
                listed.iter().filter(|one| text(one, "/metadata/labels/olm.copiedFrom").is_empty());
            found.extend(originals.map(|one| ((**resource).clone(), Key::of(one))));
        }
        Ok(found)
    }

    /// Why a namespace stays: what is in it that is no part of OLM, and what cannot be seen.
    pub(super) fn used_by_others(&mut self, namespace: &str) -> Result<Option<String>, EngineError> {
        let Contents { objects, mut unseen } = Contents::of(self.cluster, namespace)?;
        let others: Vec<String> =
            objects.iter().filter(|one| !is_part(one)).map(|one| Key::of(one).to_string()).collect();
        Ok(match &others[..] {
            [] => unseen.pop(),
            [one] => Some(format!("{one} is in it, which is not part of OLM")),
            several => Some(format!("{} are in it, which are not part of OLM", most_of(several))),
        })
    }

    /// What OLM made that nobody cleans up any more: rights for OperatorGroups, and APIs whose server is gone.
    fn made_by_olm(&mut self) -> Result<Vec<(Resource, Key)>, EngineError> {
        let mut found = Vec::new();
        for resource in [&*known::CLUSTER_ROLE, &*known::CLUSTER_ROLE_BINDING, &*known::API_SERVICE] {
            let listed = self.cluster.list(resource, None)?;
            let made = listed.iter().filter(|one| {
                let kind = text(one, "/metadata/labels/olm.owner.kind");
                let owner = text(one, "/metadata/labels/olm.owner");
                kind == known::OPERATOR_GROUP.kind
                    || kind == known::CSV.kind && owner == super::PACKAGE_SERVER
            });
            found.extend(made.map(|one| (resource.clone(), Key::of(one))));
        }
        Ok(found)
    }
}

/// Whether an object goes with OLM, or with the operators that OLM runs.
fn is_part(object: &Value) -> bool {
    let label = |name: &str| {
        let labels = object.pointer("/metadata/labels");
        labels.and_then(|labels| labels[name].as_str()).unwrap_or_default()
    };
    let programs = [OLM_OPERATOR, CATALOG_OPERATOR, super::PACKAGE_SERVER];
    let is_program = || {
        let kind = Key::of(object).kind;
        [&known::DEPLOYMENT.kind, &known::POD.kind].contains(&&kind) && programs.contains(&label("app"))
    };
    let is_labelled =
        || ["olm.owner", "olm.managed", "olm.catalogSource"].iter().any(|name| !label(name).is_empty());
    Key::of(object).group == GROUP || is_own(object) || is_labelled() || is_program()
}

/// The first few of several names, and how many more there are.
fn most_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let named = names[..names.len() - more].join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn part(key: Key, reason: impl Into<Sentence>) -> Part {
    Part { kind: key.kind, namespace: key.namespace, name: key.name, reason: reason.into() }
}
