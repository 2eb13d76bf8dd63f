//! `operator rollback`: OLM does not go back, so an older version is installed anew, if nothing that is stored would be lost.

use std::collections::{BTreeMap, BTreeSet};

use olmkit_bundle::pod::{self, Available};
use serde_json::{Value, json};

use super::api::{
    Approval, ClusterServiceVersion, CsvPhase, Key, Named as _, Object, OperatorGroup, Resource,
    Subscription, known, label,
};
use super::blockers::{Blocker, CONTAINER_CONFIG, PODS_REFUSED};
use super::checks;
use super::cluster::{Cluster, ClusterError};
use super::decide::{Accept, Goal};
use super::doctor;
use super::engine::{ContentError, Engine, EngineError, INHERITED, is_inherited};
use super::observe::Observed;
use super::offer::OfferedPackage;
use super::operator::Operator;
use super::patch::merge;
use super::preflight::{Unchecked, images};
use super::properties::package_of;
use super::rights::Right;
use super::schema::{judge, lost_version, schema_of};
use super::upgrade::{bundle_of, channel_of};
use crate::sentence::Sentence;
use crate::shell::command;

/// The annotation on an OperatorGroup that remembers a Subscription while it is away. It is removed as soon as the Subscription
/// exists again.
const UNDER_WAY: &str = "olmkit.io/rollback";
/// How long an operator is away, as it was seen.
const OUTAGE: &str = "about 30 s";

/// What to roll back, and how far.
#[derive(Clone, Debug, Default)]
pub struct Rollback {
    /// The Subscription, or its package.
    pub name: String,
    /// Its namespace; none to look everywhere.
    pub namespace: Option<String>,
    /// The version to go back to.
    pub to: String,
    /// Whether custom resources may be without the webhook that converts them meanwhile.
    pub accept_conversion_gap: bool,
    /// Whether schemas may have rules that are not evaluated here.
    pub accept_unchecked: bool,
    /// What the plan may carry as well.
    pub accept: Accept,
}

/// Where custom resources are kept before a rollback.
pub trait Archive {
    /// Tries whether objects could be kept, and writes nothing.
    ///
    /// # Errors
    /// They could not.
    fn check(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Keeps objects beside those that were kept before, and says where.
    ///
    /// # Errors
    /// They cannot be written.
    fn keep(&self, name: &str, objects: &[Value])
    -> Result<String, Box<dyn std::error::Error + Send + Sync>>;
}

impl Engine<'_> {
    /// Goes back to an older version.
    ///
    /// # Errors
    /// Something stored would be lost, which is said before anything is changed; or the old version does not come up.
    pub fn rollback(&mut self, request: &Rollback, archive: &dyn Archive) -> Result<Operator, EngineError> {
        let found = self.find(&request.name, request.namespace.as_deref())?;
        let away = self.away(request, found.as_ref())?;
        let is_away = away.is_some();
        let subscription = match away.or(found) {
            Some(subscription) => subscription,
            None => self.expect(&request.name, request.namespace.as_deref())?,
        };
        archive.check().map_err(|source| EngineError::Backup { source })?;
        let (namespace, name) = (subscription.namespace().to_owned(), subscription.name().to_owned());
        let observed = self.look(&namespace, &name)?;
        if !is_away {
            match self.check(&observed) {
                // A rollback ended with this: it is begun anew.
                Err(error)
                    if is_inherited(&error) && subscription.annotation(label::ROLLED_BACK_FROM).is_some() => {
                }
                // The Subscription is made again, and with it what it records; what it went on from is still there.
                Err(EngineError::Stuck(stuck))
                    if stuck.code == doctor::CSV_DELETED
                        && csvs_of(&observed, &subscription.spec.package)
                            .any(|csv| csv.status.phase == CsvPhase::Replacing) => {}
                checked => checked?,
            }
        }
        let spec = &subscription.spec;
        let offer = self.offer(&subscription)?;
        let package = offer.packages.get(&spec.package).ok_or_else(|| {
            EngineError::refused(format!(
                "the catalog `{}` no longer has the package `{}`",
                spec.source, spec.package
            ))
        })?;
        let channel = channel_of(package, &spec.package, &spec.channel)?;
        let target = bundle_of(package, channel, &request.to)?;
        // Without its Subscription the operator may still run.
        let installed = observed.installed().or_else(|| csvs_of(&observed, &spec.package).next());
        // A rollback that was interrupted has taken it away, and noted it.
        let before = installed.map(|csv| csv.name()).or(subscription.annotation(label::ROLLED_BACK_FROM));
        let fresh = again(&subscription, &target, before);
        let begun =
            is_away || observed.installed().is_none() && is_made_again(&observed, &subscription, &target);
        if begun && spec.starting_csv == target {
            self.say(format!("continuing the rollback to `{target}`, which was interrupted"));
            self.may_reinstall(&namespace, &name)?;
            return self.reinstall(&namespace, &fresh, &request.accept);
        }
        if before.is_none() && !is_away {
            return Err(nothing_installed(&subscription, &package.version(&target)));
        }
        if let Some(before) = before {
            no_upgrade(&subscription, package, &target, before, installed.is_some())?;
        }
        // One that gave way to a version that is gone is taken up by nothing but a new Subscription.
        let is_left = |csv: &Object<ClusterServiceVersion>| {
            csv.status.phase == CsvPhase::Replacing && observed.installed().is_none()
        };
        if !is_away && installed.is_some_and(|installed| installed.name() == target && !is_left(installed)) {
            self.say(format!("`{target}` is already installed"));
            // An interrupted rollback may not have waited for it.
            return match is_made_again(&observed, &subscription, &target) {
                true => self.reinstall(&namespace, &fresh, &request.accept),
                false => self.row(&subscription),
            };
        }
        let bundle = package.bundles.get(&target).cloned().unwrap_or_default();
        let manifests = self.catalogs.manifests(&target, &bundle).map_err(|error| match error {
            ContentError::Interrupted => ClusterError::Interrupted.into(),
            source => EngineError::Bundle { name: target.clone(), source },
        })?;
        let found = self.pods_that_do_not_start(&target, &namespace, &manifests)?;
        self.refuse_blocked(found, &request.accept, None)?;
        let backup = self.nothing_is_lost(request, installed, &manifests)?;
        let group = free_group(&observed, &name)?;
        self.olm_runs()?;
        self.need([Right::new("patch", &known::OPERATOR_GROUP, &namespace, group.name())])?;
        self.may_reinstall(&namespace, &name)?;
        self.back_up(archive, &format!("{namespace}-{name}"), backup)?;
        self.remember(&group.key(), &fresh)?;
        self.reinstall(&namespace, &fresh, &request.accept)
    }

    /// Keeps custom resources, and says what comes now.
    fn back_up(&mut self, archive: &dyn Archive, name: &str, backup: Vec<Value>) -> Result<(), EngineError> {
        let backup: Vec<Value> = backup.into_iter().map(bare).collect();
        let place = archive.keep(name, &backup).map_err(|source| EngineError::Backup { source })?;
        let (backed_up, restores, is) = match self.options.dry_run {
            true => ("would back up", "would restore", "would be"),
            false => ("backed up", "restores", "is"),
        };
        let kept = Sentence::from(format!("{backed_up} {} custom resources to {place}", backup.len()));
        self.say(match backup.len() {
            0 => kept,
            _ => kept + "; " + command!("kubectl apply -f {}", place) + format!(" {restores} them"),
        });
        self.say(format!("the operator {is} down for {OUTAGE}; custom resources stay"));
        Ok(())
    }

    /// Notes a Subscription in its OperatorGroup, so that it can be created also by a command that comes after an interruption.
    fn remember(&mut self, group: &Key, fresh: &Value) -> Result<(), EngineError> {
        let note = json!({"metadata": {"annotations": {UNDER_WAY: fresh.to_string()}}});
        self.patch(&known::OPERATOR_GROUP, group, note)
    }

    /// Refuses when the rights are missing to take an operator away and to bring it back: the latter would be missed too late.
    fn may_reinstall(&mut self, namespace: &str, name: &str) -> Result<(), EngineError> {
        self.need([
            Right::new("delete", &known::SUBSCRIPTION, namespace, name),
            Right::new("delete", &known::CSV, namespace, ""),
            Right::new("create", &known::SUBSCRIPTION, namespace, ""),
            Right::new("patch", &known::INSTALL_PLAN, namespace, ""),
        ])
    }

    /// The Subscriptions that interrupted rollbacks have taken away, as they are to be made again; those that are there are not
    /// among them. Who may not look at OperatorGroups hears of none.
    pub(super) fn rolling_back(
        &mut self,
        namespace: Option<&str>,
    ) -> Result<Vec<Object<Subscription>>, EngineError> {
        let groups = match self.cluster.list(&known::OPERATOR_GROUP, namespace) {
            Err(ClusterError::Forbidden { .. } | ClusterError::NotServed { .. }) => return Ok(Vec::new()),
            groups => groups?,
        };
        let mut away = Vec::new();
        for noted in taken_away(groups.iter()) {
            if self.cluster.get(&known::SUBSCRIPTION, noted.namespace(), noted.name())?.is_none() {
                away.push(noted);
            }
        }
        Ok(away)
    }

    /// The Subscription that an interrupted rollback has deleted and not created again: as it is to be created.
    fn away(
        &mut self,
        request: &Rollback,
        found: Option<&Object<Subscription>>,
    ) -> Result<Option<Object<Subscription>>, EngineError> {
        // While something is installed, nothing is away, whatever an older version has left in the annotation.
        if found.is_some_and(|found| !found.status.installed_csv.is_empty()) {
            return Ok(None);
        }
        for group in self.cluster.list(&known::OPERATOR_GROUP, request.namespace.as_deref())? {
            let Some(noted) = noted(&group) else { continue };
            let is_it = match found {
                Some(found) => found.key() == noted.key(),
                None => [noted.name(), noted.spec.package.as_str()].contains(&request.name.as_str()),
            };
            if is_it && noted.namespace() == Key::of(&group).namespace {
                return Ok(Some(noted));
            }
        }
        Ok(None)
    }

    /// Why pods of a version would not start: those that run were made before something that they need was deleted, or before
    /// there was a rule that refuses them.
    fn pods_that_do_not_start(
        &mut self,
        csv: &str,
        namespace: &str,
        manifests: &[Value],
    ) -> Result<Vec<Blocker>, EngineError> {
        let mut unchecked = Unchecked::default();
        let mut found = self.missing_images(csv, manifests.iter().flat_map(images), &mut unchecked)?;
        for line in unchecked.lines() {
            self.say(format!("not checked: {line}"));
        }
        if !self.cluster.has_pods() {
            return Ok(found);
        }
        let specs = manifests.iter().filter(|object| object["kind"] == olmkit_bundle::csv::KIND);
        let deployments = specs.filter_map(|csv| csv.pointer("/spec/install/spec/deployments")?.as_array());
        for deployment in deployments.flatten() {
            let (name, template) = (&deployment["name"], &deployment["spec"]["template"]);
            let mut available = Available::default();
            manifests.iter().for_each(|object| available.add(object));
            available.add_certificate_of(name.as_str().unwrap_or(""));
            for needed in pod::needed(&template["spec"]) {
                let kinds = [&*known::SECRET, &*known::CONFIG_MAP];
                let Some(resource) = kinds.into_iter().find(|one| one.kind == needed.kind) else { continue };
                if available.lacks(&needed).is_some()
                    && self.tried(|cluster| cluster.get(resource, namespace, &needed.name))? == Some(None)
                {
                    let sentence = format!(
                        "pods of `{csv}` would not start: they need the {} `{}`, which does not exist",
                        needed.kind, needed.name
                    );
                    found.push(Blocker::new(CONTAINER_CONFIG, sentence, "create it first"));
                }
            }
            let mut pod = json!({"apiVersion": "v1", "kind": known::POD.kind, "metadata": template["metadata"], "spec": template["spec"]});
            let name = json!({"name": name, "namespace": namespace});
            // OLM may have deleted its account, and creates it again.
            let changes =
                json!({"metadata": name, "spec": {"serviceAccountName": null, "serviceAccount": null}});
            merge(&mut pod, &changes);
            match self.tried(|cluster| cluster.would_create(&known::POD, &pod)) {
                // What the old pods use now is free by then.
                Err(EngineError::Cluster(ClusterError::Refused { message, .. }))
                    if !message.contains("exceeded quota") && !message.contains("dry run") =>
                {
                    let sentence = format!("pods of `{csv}` would be refused: {}", doctor::refusal(&message));
                    found.push(Blocker::new(PODS_REFUSED, sentence, "change what refuses them first"));
                }
                Err(EngineError::Cluster(ClusterError::Refused { .. })) => {}
                tried => drop(tried?),
            }
        }
        Ok(found)
    }

    /// The answer of the cluster; none if the right is missing, which the user is told.
    fn tried<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn Cluster) -> Result<T, ClusterError>,
    ) -> Result<Option<T>, EngineError> {
        match ask(self.cluster) {
            Err(error @ ClusterError::Forbidden { .. }) => {
                self.say(format!("not checked whether the old pods can start: {error}"));
                Ok(None)
            }
            asked => Ok(Some(asked?)),
        }
    }

    /// Refuses when something that is stored would be lost or could not be read; gives back all custom resources of what is
    /// installed and of what is to be.
    fn nothing_is_lost(
        &mut self,
        request: &Rollback,
        installed: Option<&Object<ClusterServiceVersion>>,
        manifests: &[Value],
    ) -> Result<Vec<Value>, EngineError> {
        let installed = installed.map(|installed| &installed.spec);
        let hooks = installed.into_iter().flat_map(|spec| &spec.webhook_definitions);
        let converted = hooks.flat_map(|hook| &hook.conversion_crds).next();
        if let Some(crd) = converted.filter(|_| !request.accept_conversion_gap) {
            return Err(EngineError::refused_help(
                format!("`{crd}` uses a conversion webhook, which is down during the rollback"),
                "pass --accept-conversion-gap; meanwhile only the stored version can be read",
            ));
        }
        let old_crds: BTreeMap<String, &Value> = manifests
            .iter()
            .filter(|object| object["kind"] == known::CRD.kind.as_str())
            .map(|crd| (Key::of(crd).name, crd))
            .collect();
        let owned = installed.into_iter().flat_map(|spec| &spec.custom_resource_definitions.owned);
        let names: BTreeSet<String> =
            owned.map(|owned| owned.name.clone()).chain(old_crds.keys().cloned()).collect();
        let mut all = Vec::new();
        for name in names {
            let Some(live) = self.cluster.get(&known::CRD, "", &name)? else { continue };
            let old = old_crds.get(&name).copied();
            if let Some(lost) = old.and_then(|old| lost_version(&live, old)) {
                return Err(EngineError::refused_help(
                    format!("objects of `{name}` are stored at {lost}, which the old CRD does not have"),
                    "migrate them to a version that it has, and remove the other one from `status.storedVersions`",
                ));
            }
            all.extend(self.judge_all(request, &name, &live, old)?);
        }
        all.sort_by_key(Key::of);
        all.dedup_by_key(|object| Key::of(object));
        Ok(all)
    }

    /// Every custom resource of a CRD, judged by the old schemas at every version that both serve.
    fn judge_all(
        &mut self,
        request: &Rollback,
        crd: &str,
        live: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Value>, EngineError> {
        let mut all = Vec::new();
        let served: Vec<Resource> = checks::served(live);
        for resource in &served {
            let found = self.cluster.list(resource, None)?;
            if let Some(schema) = old.and_then(|old| schema_of(old, &resource.version)) {
                for object in &found {
                    let judgement = judge(schema, object);
                    let key = Key::of(object);
                    let name = if key.namespace.is_empty() {
                        key.name
                    } else {
                        format!("{}/{}", key.namespace, key.name)
                    };
                    if let Some(fault) = judgement.faults.first() {
                        return Err(EngineError::refused_help(
                            format!("`{name}` of `{crd}` does not fit the old schema: {fault}"),
                            "change it so that it fits both",
                        ));
                    }
                    if let Some(unknown) = judgement.unknown.first().filter(|_| !request.accept_unchecked) {
                        return Err(EngineError::refused_help(
                            format!("the old schema of `{crd}` has what is not evaluated here: {unknown}"),
                            "check it yourself, then pass --accept-unchecked",
                        ));
                    }
                }
            }
            all.extend(found);
        }
        Ok(all)
    }

    /// Installs the old version, once more where the new Subscription inherits the status of the old one.
    fn reinstall(
        &mut self,
        namespace: &str,
        fresh: &Value,
        accept: &Accept,
    ) -> Result<Operator, EngineError> {
        let inherited = match self.reinstall_once(namespace, fresh, accept) {
            Err(error) if is_inherited(&error) => error,
            done => return done,
        };
        let observed = self.look(namespace, &Key::of(fresh).name)?;
        let [group] = &observed.groups[..] else { return Err(inherited) };
        self.say(INHERITED);
        self.remember(&group.key(), fresh)?;
        self.reinstall_once(namespace, fresh, accept)
    }

    /// Takes Subscription and ClusterServiceVersions away and installs the old version; goes on where it was interrupted.
    fn reinstall_once(
        &mut self,
        namespace: &str,
        fresh: &Value,
        accept: &Accept,
    ) -> Result<Operator, EngineError> {
        let target = fresh["spec"]["startingCSV"].as_str().unwrap_or("").to_owned();
        let name = Key::of(fresh).name;
        let observed = self.look(namespace, &name)?;
        let made = observed.subscription.as_ref();
        let is_again = made.is_some_and(|found| is_made_again(&observed, found, &target));
        let install = format!("install `{target}`");
        if !is_again {
            let create = format!("create {} again", Key::of(fresh).placed());
            self.still_to_do([create, install.clone()]);
            self.take_away(&observed, fresh)?;
            self.create(&known::SUBSCRIPTION, fresh.clone())?;
        }
        self.still_to_do([install]);
        let forget = json!({"metadata": {"annotations": {UNDER_WAY: null}}});
        for group in observed
            .groups
            .iter()
            .filter(|group| noted(group.document()).is_some_and(|noted| noted.name() == name))
        {
            self.patch(&known::OPERATOR_GROUP, &group.key(), forget.clone())?;
        }
        if self.options.dry_run {
            if !is_again || observed.csv(&target).is_none() {
                let plan = format!("(for {target})");
                let key = Key::new(&known::INSTALL_PLAN, namespace, &plan);
                self.patch(&known::INSTALL_PLAN, &key, json!({"spec": {"approved": true}}))?;
            }
            return Ok(Operator {
                subscription: name,
                namespace: namespace.to_owned(),
                ..Operator::default()
            });
        }
        // What is installed already needs no plan, and keeps its approval. During a failed upgrade the old version is there as
        // well, until it is taken away.
        let approve = !is_again || observed.csv(&target).is_none();
        let goal = Goal { way: vec![target], approve, channel: None, accept: accept.clone() };
        if self.options.wait {
            self.reach(namespace, &name, &goal)?;
        } else {
            self.one_step(namespace, &name, &goal)?;
        }
        if approve {
            self.say(
                "the approval is now Manual: with Automatic, OLM would upgrade to the channel's head again",
            );
        }
        if approve && !self.options.wait {
            self.say("run the same command again: it approves the InstallPlan once OLM has created it");
        }
        self.status(&name, Some(namespace))
    }

    fn take_away(&mut self, observed: &Observed, fresh: &Value) -> Result<(), EngineError> {
        if let Some(found) = &observed.subscription {
            self.delete(&known::SUBSCRIPTION, &found.key())?;
            self.gone(&known::SUBSCRIPTION, &found.key())?;
        }
        let package = fresh["spec"]["name"].as_str().unwrap_or("");
        // One that does not name its package is known by the Subscription that installed it.
        let annotations = fresh.pointer("/metadata/annotations");
        let before = annotations.and_then(|all| all[label::ROLLED_BACK_FROM].as_str());
        let installed = observed.csvs.iter().filter(|csv| Some(csv.name()) == before);
        let all: BTreeSet<Key> = csvs_of(observed, package).chain(installed).map(|csv| csv.key()).collect();
        for csv in &all {
            self.delete(&known::CSV, csv)?;
        }
        for csv in &all {
            self.gone(&known::CSV, csv)?;
        }
        Ok(())
    }
}

/// The Subscriptions that OperatorGroups remember; some may be there again.
pub(super) fn taken_away<'g>(
    groups: impl Iterator<Item = &'g Value>,
) -> impl Iterator<Item = Object<Subscription>> {
    groups.filter_map(|group| noted(group).filter(|noted| noted.namespace() == Key::of(group).namespace))
}

/// An object without what a server writes, so that it can be applied over what is there, or created.
fn bare(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in
            ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"]
        {
            metadata.remove(field);
        }
    }
    object
}

/// The Subscription that an OperatorGroup remembers.
fn noted(group: &Value) -> Option<Object<Subscription>> {
    let text = group.pointer("/metadata/annotations")?.get(UNDER_WAY)?.as_str()?;
    Object::read(serde_json::from_str(text).ok()?).ok()
}

/// The ClusterServiceVersions of a package.
fn csvs_of<'o>(
    observed: &'o Observed,
    package: &'o str,
) -> impl Iterator<Item = &'o Object<ClusterServiceVersion>> {
    observed.csvs.iter().filter(move |csv| package_of(csv).as_deref() == Some(package))
}

/// Whether a Subscription is the one that was made again already: it begins with the old version, and has nothing newer.
fn is_made_again(observed: &Observed, found: &Subscription, target: &str) -> bool {
    let installed = found.status.installed_csv.as_str();
    found.spec.starting_csv == target
        && (installed.is_empty() && csvs_of(observed, &found.spec.package).all(|csv| csv.name() == target)
            || installed == target)
}

/// A Subscription as it is made again: it begins with the old version and goes nowhere by itself.
fn again(subscription: &Object<Subscription>, target: &str, before: Option<&str>) -> Value {
    let document = subscription.document();
    let mut spec = document["spec"].clone();
    spec["startingCSV"] = json!(target);
    spec["installPlanApproval"] = json!(Approval::Manual.as_str());
    let labels = document.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    let mut fresh = json!({
        "apiVersion": document["apiVersion"], "kind": document["kind"], "spec": spec,
        "metadata": {"name": subscription.name(), "namespace": subscription.namespace(), "labels": labels},
    });
    if let Some(before) = before {
        fresh["metadata"]["annotations"] = json!({label::ROLLED_BACK_FROM: before});
    }
    fresh
}

/// There is nothing to go back from.
fn nothing_installed(subscription: &Object<Subscription>, to: &str) -> EngineError {
    let (name, namespace) = (subscription.name(), subscription.namespace());
    EngineError::refused_help(
        format!("{} has nothing installed", subscription.key()),
        Sentence::from("run ")
            + command!("olmkit operator uninstall {} -n {}", name, namespace)
            + ", then "
            + command!(
                "olmkit operator install {} -n {} --name {} --version {}",
                subscription.spec.package,
                namespace,
                name,
                to
            ),
    )
}

/// Refuses a version that is newer than the one that is, or was, installed.
fn no_upgrade(
    subscription: &Object<Subscription>,
    package: &OfferedPackage,
    target: &str,
    now: &str,
    is_installed: bool,
) -> Result<(), EngineError> {
    let version = |name: &str| package.bundles.get(name).and_then(|bundle| bundle.version.clone());
    if version(now).is_none() || version(now) >= version(target) {
        return Ok(());
    }
    let (name, namespace, to) = (subscription.name(), subscription.namespace(), package.version(target));
    let (state, help) = match is_installed {
        true => {
            let upgrade = command!("olmkit operator upgrade {} -n {} --to {}", name, namespace, to);
            ("is", Sentence::from("run ") + upgrade)
        }
        false => ("was", format!("a rollback goes to `{now}` or an older version").into()),
    };
    Err(EngineError::refused_help(format!("`{target}` is newer than `{now}`, which {state} installed"), help))
}

/// The OperatorGroup of the namespace, unless it remembers the interrupted rollback of another operator.
fn free_group<'o>(observed: &'o Observed, name: &str) -> Result<&'o Object<OperatorGroup>, EngineError> {
    let [group] = &observed.groups[..] else {
        return Err(EngineError::refused_help(
            format!("the namespace `{}` has {} OperatorGroups", observed.namespace, observed.groups.len()),
            "OLM needs exactly one",
        ));
    };
    let is_away = |other: &Object<Subscription>| {
        other.name() != name && observed.others.iter().all(|found| found.name() != other.name())
    };
    let Some(other) = noted(group.document()).filter(is_away) else { return Ok(group) };
    let (name, namespace, to) = (other.name(), &observed.namespace, &other.spec.starting_csv);
    Err(EngineError::refused_help(
        format!("the rollback of {} was interrupted", other.key()),
        Sentence::from("finish it first: ")
            + command!("olmkit operator rollback {} -n {} --to {}", name, namespace, to),
    ))
}
