//! `operator install`: everything that can be known to go wrong is said first; then an OperatorGroup, a Subscription, and the
//! wait for its operator.

use std::collections::BTreeSet;
use std::sync::Arc;

use olmkit_bundle::suggest::{did_you_mean, some_of};
use olmkit_bundle::version::{Version, precedence};
use olmkit_catalog::graph::VersionRelease;
use serde_json::{Value, json};

use super::api::{
    Approval, CatalogSource, ClusterServiceVersion, CsvPhase, InstallModeKind, Key, Named as _, Object,
    OperatorGroup, Resource, Subscription, known, label,
};
use super::cluster::ClusterError;
use super::decide::{Accept, Goal, Stuck, remembered};
use super::doctor::{self, Scope};
use super::engine::{Engine, EngineError, GRACE, INHERITED, UNWATCHED, is_inherited};
use super::observe::Observed;
use super::offer::{Offer, OfferedChannel, OfferedPackage};
use super::operator::Operator;
use super::patch::difference;
use super::preflight::Upcoming;
use super::properties::package_of;
use super::rights::Right;
use super::throw_away::{SingleBundleOffer, way_to_bundle};
use super::upgrade::{bundle_of, channel_of, find_way, goes_on};
use crate::sentence::{Help, Sentence};
use crate::shell::command;

/// The namespaces whose catalogs every other one sees, on plain clusters and on OpenShift.
pub(super) const GLOBAL: [&str; 3] = ["olm", "openshift-marketplace", "operator-lifecycle-manager"];

/// What to install, and how.
#[derive(Clone, Debug, Default)]
pub struct Install {
    /// A catalog of one bundle that is served for this alone; none for a catalog that is there.
    pub throw_away: Option<SingleBundleOffer>,
    /// The package.
    pub package: String,
    /// Where its operator runs.
    pub namespace: String,
    /// The Subscription's name; the package's when none is given.
    pub name: Option<String>,
    /// The CatalogSource, and its namespace where that is named.
    pub catalog: Option<(String, Option<String>)>,
    /// The channel; the package's default when none is given.
    pub channel: Option<String>,
    /// The version to begin with; the channel's head when none is given.
    pub version: Option<String>,
    /// Approval mode for upgrades.
    pub approval: Option<Approval>,
    /// Which namespaces it is to watch, when an OperatorGroup has to be made: `None` for what the operator prefers, no names
    /// for all.
    pub watch: Option<Vec<String>>,
    /// What is changed in the operator's pods, as `Subscription.spec.config` has it.
    pub config: Option<Value>,
    /// What its plan may carry as well.
    pub accept: Accept,
    /// Whether images may be missing where they are looked for.
    pub accept_missing_images: bool,
    /// Whether a CRD that others use may become an older one.
    pub accept_crd_downgrade: bool,
}

/// A catalog that was chosen, and what it offers.
pub(super) struct Source {
    pub(super) catalog: Object<CatalogSource>,
    pub(super) offer: Arc<Offer>,
}

impl Engine<'_> {
    /// Installs an operator.
    ///
    /// # Errors
    /// Something is wrong, which is said before anything is changed; or the operator does not come up.
    pub fn install(&mut self, request: &Install) -> Result<Operator, EngineError> {
        let name = request.name.as_deref().unwrap_or(&request.package).to_owned();
        let namespace = request.namespace.as_str();
        let (source, served) = match &request.throw_away {
            Some(made) => {
                let (catalog, served) = self.throw_away(&request.package, namespace, made)?;
                (Source { catalog, offer: Arc::clone(&made.offer) }, served)
            }
            None => (self.source(request)?, None),
        };
        let package = source.offer.packages.get(&request.package);
        let package = package.ok_or_else(|| {
            EngineError::refused(format!("the catalog no longer has the package `{}`", request.package))
        })?;
        let channel_name = request.channel.clone().unwrap_or_else(|| package.default_channel.clone());
        let channel = channel_of(package, &request.package, &channel_name)?;
        let observed = self.look(namespace, &name)?;
        self.check(&observed)?;
        self.olm_runs()?;
        let existing = observed.subscription.as_ref();
        let begins_with = existing.map(|found| found.spec.starting_csv.as_str()).unwrap_or_default();
        let csv = match &request.version {
            Some(version) => bundle_of(package, channel, version)?,
            // An earlier run was interrupted before it had installed what it began with.
            None if observed.installed().is_none() && channel.entry(begins_with).is_some() => {
                begins_with.to_owned()
            }
            None => channel.head().unwrap_or_default().to_owned(),
        };
        let at_head = channel.head() == Some(csv.as_str());
        if request.version.is_some() && !at_head && request.approval == Some(Approval::Automatic) {
            return Err(goes_on(package, &channel_name, &csv, "--version"));
        }
        let wish = Wish {
            request,
            name: &name,
            channel: &channel_name,
            csv: &csv,
            at_head,
            source: &source.catalog,
        };
        self.no_rivals(&wish, &observed, package)?;
        let way = match (&request.throw_away, existing) {
            (Some(_), _) => {
                let changed =
                    served.as_ref().is_some_and(|served| served.spec.image != source.catalog.spec.image);
                way_to_bundle(package, channel, &csv, &observed, changed)?
            }
            (None, Some(existing)) => wish.way_of(existing, &observed, package, channel)?,
            (None, None) => vec![csv.clone()],
        };
        let (group, targets) = self.group(request, &observed, &modes(package, &csv))?;
        self.no_foreign_owner(&wish, package, &targets)?;
        let installed = observed.installed().map(|installed| installed.name().to_owned());
        let new: Vec<&str> =
            way.iter().map(String::as_str).filter(|name| Some(*name) != installed.as_deref()).collect();
        self.preflight(&Upcoming {
            offer: &source.offer,
            package,
            bundles: &new,
            observed: &observed,
            targets,
            accept: &request.accept,
            accept_missing_images: request.accept_missing_images,
        })?;
        if let Some(first) = way.first().filter(|_| installed.is_none() && !request.accept_crd_downgrade) {
            self.no_downgrade(package, first)?;
        }
        let missing = self.is_missing(namespace)?;
        let changes = existing.map(|existing| wish.changes(existing));
        let create =
            |kind: &Resource, is_new: bool| is_new.then(|| Right::new("create", kind, namespace, ""));
        let patches = changes.as_ref().is_some_and(|patch| *patch != json!({}));
        self.need(
            [
                create(&known::NAMESPACE, missing),
                create(&known::OPERATOR_GROUP, group.is_some()),
                create(&known::SUBSCRIPTION, existing.is_none()),
                patches.then(|| Right::new("patch", &known::SUBSCRIPTION, namespace, &name)),
                (existing.is_none() && wish.approves())
                    .then(|| Right::new("patch", &known::INSTALL_PLAN, namespace, "")),
            ]
            .into_iter()
            .flatten(),
        )?;
        let still = [
            missing.then(|| format!("create namespace/{namespace}")),
            group.as_ref().map(|group| format!("create {}", Key::of(group).placed())),
            existing.is_none().then(|| format!("create subscription/{name} in {namespace}")),
        ];
        self.still_to_do(still.into_iter().flatten().chain(way.iter().map(|csv| format!("install `{csv}`"))));
        if missing {
            let document = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {label::CREATED_BY: label::OLMKIT}},
            });
            self.create(&known::NAMESPACE, document)?;
            self.one_is_done();
        }
        if let Some(group) = group {
            self.create(&known::OPERATOR_GROUP, group)?;
            self.one_is_done();
        }
        if request.throw_away.is_some() {
            self.serve(&source.catalog, served.as_ref())?;
        }
        match (existing, changes) {
            (Some(existing), Some(patch)) if patches => {
                self.patch(&known::SUBSCRIPTION, &existing.key(), patch)?;
            }
            (Some(_), _) => {}
            (None, _) => {
                self.create(&known::SUBSCRIPTION, wish.subscription())?;
                self.one_is_done();
            }
        }
        let is_there =
            request.throw_away.is_none() && installed.is_some() && installed.as_deref() != Some(&*csv);
        let waits = existing.is_some_and(|found| found.spec.install_plan_approval == Approval::Manual);
        if let Some(installed) = installed.filter(|_| is_there) {
            self.say(
                Sentence::from(format!("`{installed}` is already installed: "))
                    + command!("olmkit operator upgrade {} -n {}", name, namespace)
                    + format!(" upgrades it to `{csv}`"),
            );
            if waits && request.approval == Some(Approval::Automatic) {
                // OLM continues automatically now, and not through us.
                return self.status(&name, Some(namespace));
            }
        }
        let approve = !is_there && (wish.approves() || waits);
        let at_head = way.last().map(String::as_str) == channel.head();
        let mut accept = request.accept.clone();
        if !is_there && wish.approval() == Approval::Automatic {
            // A neighbour's Manual approval makes OLM wait with this one too.
            accept.csvs.extend(way.iter().cloned());
        }
        let goal = Goal { way, approve, channel: None, accept };
        if self.options.dry_run {
            self.plan_approvals(namespace, &name, &goal)?;
            let planned = Operator {
                subscription: name,
                namespace: namespace.to_owned(),
                package: request.package.clone(),
                channel: channel_name,
                head: channel.head().unwrap_or_default().to_owned(),
                ..Operator::default()
            };
            return existing.map_or(Ok(planned), |existing| self.as_it_is(existing));
        }
        if self.options.wait {
            match self.reach(namespace, &name, &goal) {
                Err(error) if existing.is_none() && is_inherited(&error) => {
                    self.install_again(error, &wish.subscription(), &goal)?;
                }
                reached => drop(reached?),
            }
            self.restore(namespace, &name, at_head)?;
        } else if self.one_step(namespace, &name, &goal)? {
            self.restore(namespace, &name, at_head)?;
        }
        self.status(&name, Some(namespace))
    }

    /// An operator that is there already; what is wrong with it is said, since the dry run of its installation may have nothing to print.
    fn as_it_is(&mut self, existing: &Object<Subscription>) -> Result<Operator, EngineError> {
        let row = self.row(existing)?;
        if let Some(cause) = &row.cause {
            self.say(format!("{} [{}]", cause.sentence, cause.code));
        }
        Ok(row)
    }

    /// Creates a Subscription again that inherited a status, if OLM has done nothing for it yet.
    fn install_again(
        &mut self,
        inherited: EngineError,
        subscription: &Value,
        goal: &Goal,
    ) -> Result<(), EngineError> {
        let key = Key::of(subscription);
        let observed = self.look(&key.namespace, &key.name)?;
        let begun = |csv: &String| observed.csv(csv).is_some() || observed.open_plan(csv).is_some();
        if goal.way.iter().any(begun) {
            return Err(inherited);
        }
        self.say(INHERITED);
        self.delete(&known::SUBSCRIPTION, &key)?;
        self.gone(&known::SUBSCRIPTION, &key)?;
        self.create(&known::SUBSCRIPTION, subscription.clone())?;
        self.reach(&key.namespace, &key.name, goal)?;
        Ok(())
    }

    /// Whether a namespace has to be made. Who may not look works in one that somebody else has made.
    fn is_missing(&mut self, namespace: &str) -> Result<bool, EngineError> {
        match self.cluster.get(&known::NAMESPACE, "", namespace) {
            Ok(Some(found)) if found.pointer("/metadata/deletionTimestamp").is_some() => {
                Err(EngineError::refused_help(
                    format!("the namespace `{namespace}` is being deleted"),
                    "wait until it is gone, or choose another namespace",
                ))
            }
            Ok(found) => Ok(found.is_none()),
            Err(ClusterError::Forbidden { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The catalog that offers the package.
    pub(super) fn source(&mut self, request: &Install) -> Result<Source, EngineError> {
        let mut catalogs: Vec<Object<CatalogSource>> = Vec::new();
        let mut hidden = None;
        let spaces: Vec<&str> = match &request.catalog {
            // OLM's own namespace, whose catalogs all others see, may have any name.
            Some((_, Some(space))) => vec![space],
            _ => std::iter::once(request.namespace.as_str()).chain(GLOBAL).collect(),
        };
        for (at, space) in spaces.iter().enumerate() {
            if spaces[..at].contains(space) {
                continue;
            }
            match self.cluster.list(&known::CATALOG_SOURCE, Some(space)) {
                Ok(documents) => {
                    catalogs.extend(documents.into_iter().filter_map(|document| Object::read(document).ok()));
                }
                // Most of these namespaces are on no cluster at once, so a missing right matters when nothing is found.
                Err(error @ ClusterError::Forbidden { .. }) => hidden = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        if let Some((name, space)) = &request.catalog {
            let names: Vec<String> = catalogs.iter().map(|found| found.name().to_owned()).collect();
            let places: Vec<String> =
                catalogs.iter().map(|found| format!("`{}/{}`", found.namespace(), found.name())).collect();
            catalogs.retain(|found| found.name() == name);
            if catalogs.is_empty() && hidden.is_none() {
                let what = match space {
                    Some(space) => format!("there is no CatalogSource `{name}` in the namespace `{space}`"),
                    None => format!(
                        "no CatalogSource `{name}` can be seen from the namespace `{}`",
                        request.namespace
                    ),
                };
                return Err(EngineError::Refused {
                    what,
                    help: did_you_mean(name, names.iter().map(String::as_str))
                        .or_else(|| {
                            let named = some_of(&format!("`{name}`"), places.iter().map(String::as_str));
                            (!places.is_empty()).then(|| format!("there are {named}"))
                        })
                        .into(),
                });
            }
        }
        if let Some(hidden) = hidden.filter(|_| catalogs.is_empty()) {
            return Err(hidden.into());
        }
        if catalogs.is_empty() {
            return Err(EngineError::refused_help(
                format!("no CatalogSource can be seen from the namespace `{}`", request.namespace),
                "create one there or in OLM's namespace",
            ));
        }
        // One that was named is at fault; of several nobody knows which was meant.
        let named = match &catalogs[..] {
            [one] if request.catalog.is_some() => Some(format!("{}/{}", one.namespace(), one.name())),
            _ => None,
        };
        let mut offering = Vec::new();
        let mut packages = BTreeSet::new();
        let mut unread = None;
        for catalog in catalogs {
            match self.offer_of(&catalog) {
                Ok(offer) => {
                    packages.extend(offer.packages.keys().cloned());
                    if offer.packages.contains_key(&request.package) {
                        offering.push(Source { catalog, offer });
                    }
                }
                Err(error) => unread = Some(error),
            }
        }
        match (offering.len(), unread) {
            (0, Some(error)) => Err(error),
            (0, None) => Err(EngineError::Refused {
                what: match named {
                    Some(named) => {
                        format!("the catalog `{named}` does not offer a package `{}`", request.package)
                    }
                    None => format!("no catalog offers a package `{}`", request.package),
                },
                help: bundle_help(request, &packages).map(Help::from).unwrap_or_else(|| {
                    let all = || packages.iter().map(String::as_str);
                    did_you_mean(&request.package, all())
                        .unwrap_or_else(|| match packages.is_empty() {
                            true => "it has no packages".to_owned(),
                            false => format!("available packages: {}", some_of(&request.package, all())),
                        })
                        .into()
                }),
            }),
            (1, _) => self.reached(offering.remove(0)),
            (several, _) => {
                let names: Vec<String> = offering
                    .iter()
                    .map(|source| format!("{}/{}", source.catalog.namespace(), source.catalog.name()))
                    .collect();
                let named = some_of("", names.iter().map(String::as_str));
                let what = format!("{several} catalogs offer `{}`: {named}", request.package);
                Err(EngineError::refused_help(what, "name one with --catalog NAMESPACE/NAME"))
            }
        }
    }

    /// A catalog that OLM reaches, or has not tried to reach yet. One that was just made is not reached before its pod is up.
    fn reached(&mut self, mut source: Source) -> Result<Source, EngineError> {
        let deadline = (self.cluster.now() + GRACE).min(self.deadline());
        while let state @ ("TRANSIENT_FAILURE" | "SHUTDOWN") = source.catalog.connection() {
            let what = format!(
                "OLM does not reach the catalog `{}`: its connection is {state}",
                source.catalog.name()
            );
            let now = self.cluster.now();
            if !self.options.wait || self.options.dry_run {
                self.say(what);
                break;
            }
            let (name, namespace) = (source.catalog.name().to_owned(), source.catalog.namespace().to_owned());
            if now >= deadline {
                let scope = Scope { name: None, namespace: Some(namespace.clone()) };
                let today = self.cluster.time_of_day();
                let seen = doctor::observe(self.cluster, &scope, Some(today))?;
                if let Some(cause) = doctor::catalog_fault(&seen, &namespace, &name) {
                    return Err(EngineError::Stuck(Stuck::of(&cause, &namespace)));
                }
                let pods = Sentence::from("see ")
                    + command!("kubectl get pods -n {} -l olm.catalogSource={}", namespace, name);
                return Err(EngineError::refused_help(what, pods));
            }
            self.cluster.wait((deadline - now).min(UNWATCHED))?;
            let found = self.cluster.get(&known::CATALOG_SOURCE, &namespace, &name)?;
            let Some(found) = found.and_then(|found| Object::read(found).ok()) else { break };
            source.catalog = found;
        }
        Ok(source)
    }

    /// Nothing that is there keeps OLM from installing what is wished.
    fn no_rivals(
        &mut self,
        wish: &Wish<'_>,
        observed: &Observed,
        package: &OfferedPackage,
    ) -> Result<(), EngineError> {
        let request = wish.request;
        if let Some(found) = &observed.subscription {
            let spec = &found.spec;
            let same = spec.package == request.package
                && (spec.channel == wish.channel || spec.channel.is_empty())
                && (spec.source.as_str(), spec.source_namespace.as_str())
                    == (wish.source.name(), wish.source.namespace());
            if !same {
                let (name, namespace) = (found.name(), found.namespace());
                let remove = command!("olmkit operator uninstall {} -n {}", name, namespace) + " removes it";
                let same_catalog = spec.package == request.package
                    && (spec.source.as_str(), spec.source_namespace.as_str())
                        == (wish.source.name(), wish.source.namespace());
                let help = match same_catalog {
                    true => {
                        command!(
                            "olmkit operator upgrade {} -n {} --channel {}",
                            name,
                            namespace,
                            wish.channel
                        ) + " changes the channel, "
                            + remove
                    }
                    false => remove,
                };
                return Err(EngineError::refused_help(
                    format!("{} already exists, for `{}` from `{}`", found.key(), spec.package, spec.channel),
                    help,
                ));
            }
        }
        if let Some(other) = observed.others.iter().find(|other| other.spec.package == request.package) {
            return Err(EngineError::refused_help(
                format!(
                    "{} is for `{}` already; two in one namespace exclude each other",
                    other.key(),
                    request.package
                ),
                command!("olmkit operator upgrade {} -n {}", other.name(), other.namespace())
                    + " upgrades that one",
            ));
        }
        let bundle = package.bundles.get(wish.csv);
        let provides = bundle.map(|bundle| bundle.provides()).unwrap_or_default();
        let owns = |csv: &Object<ClusterServiceVersion>| {
            csv.spec
                .custom_resource_definitions
                .owned
                .iter()
                .find(|crd| provides.contains(&crd.gvk()))
                .cloned()
        };
        for csv in observed.csvs.iter().filter(|csv| !observed.is_subscribed(csv.name())) {
            let ours = package.bundles.contains_key(csv.name());
            if ours || owns(csv).is_some() {
                return Err(orphan(csv, ours));
            }
        }
        for csv in observed.csvs.iter().filter(|csv| observed.is_subscribed(csv.name())) {
            let mut own = observed.subscription.iter().flat_map(|found| observed.versions_of(found));
            let mine = own.any(|name| name == csv.name());
            if let Some(crd) = owns(csv).filter(|_| !mine) {
                return Err(EngineError::refused_help(
                    format!("the CRD `{}` belongs to `{}` in the same namespace", crd.name, csv.name()),
                    uninstall_first(csv),
                ));
            }
        }
        Ok(())
    }

    /// No operator in another namespace provides the same APIs to the same namespaces: OLM lets the first one have them.
    fn no_foreign_owner(
        &mut self,
        wish: &Wish<'_>,
        package: &OfferedPackage,
        targets: &[String],
    ) -> Result<(), EngineError> {
        let everywhere = match self.cluster.list(&known::CSV, None) {
            Ok(found) => found,
            // A user who may read only one namespace learns it from OLM.
            Err(ClusterError::Forbidden { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let provides = package.bundles.get(wish.csv).map(|bundle| bundle.provides()).unwrap_or_default();
        let everywhere = everywhere.into_iter().filter_map(|found| Object::read(found).ok());
        for csv in everywhere.filter(|csv: &Object<ClusterServiceVersion>| !csv.is_copied()) {
            let theirs = csv.annotation("olm.targetNamespaces");
            let shares = theirs.is_some_and(|theirs| {
                let mut theirs = theirs.split(',');
                targets.iter().any(String::is_empty)
                    || theirs.any(|one| one.is_empty() || targets.iter().any(|own| own == one))
            });
            if csv.namespace() == wish.request.namespace || !shares {
                continue;
            }
            let owned = &csv.spec.custom_resource_definitions.owned;
            if let Some(crd) = owned.iter().find(|crd| provides.contains(&crd.gvk())) {
                return Err(EngineError::refused_help(
                    format!(
                        "the CRD `{}` belongs to `{}/{}`, which watches the same namespaces",
                        crd.name,
                        csv.namespace(),
                        csv.name()
                    ),
                    uninstall_first(&csv) + ", or choose other namespaces with --watch",
                ));
            }
        }
        Ok(())
    }

    /// The OperatorGroup to be made, none when there is one that will do; and the namespaces that it is about.
    fn group(
        &mut self,
        request: &Install,
        observed: &Observed,
        supported: &BTreeSet<String>,
    ) -> Result<(Option<Value>, Vec<String>), EngineError> {
        let namespace = &request.namespace;
        let wanted =
            request.watch.clone().map(|names| if names.is_empty() { vec![String::new()] } else { names });
        match &observed.groups[..] {
            [] => {
                let targets = wanted.unwrap_or_else(|| preferred(namespace, supported));
                supports(namespace, &targets, supported)?;
                let spec = if targets == [""] { json!({}) } else { json!({"targetNamespaces": targets}) };
                let group = json!({
                    "apiVersion": known::OPERATOR_GROUP.api_version(), "kind": known::OPERATOR_GROUP.kind,
                    "metadata": {
                        "name": namespace, "namespace": namespace, "labels": {label::CREATED_BY: label::OLMKIT},
                    },
                    "spec": spec,
                });
                Ok((Some(group), targets))
            }
            [group] => {
                let mut found = group.target_namespaces();
                found.sort();
                if let Some(mut wanted) = wanted {
                    wanted.sort();
                    if wanted != found {
                        return Err(other_targets(group, &found));
                    }
                }
                supports(namespace, &found, supported)
                    .map_err(|_| unsupported_group(group, &found, supported))?;
                Ok((None, found))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|group| group.name()).collect();
                let what = format!(
                    "the namespace `{namespace}` has {} OperatorGroups: {}",
                    several.len(),
                    some_of(namespace, names)
                );
                Err(EngineError::refused_help(what, "delete all but one"))
            }
        }
    }
}

/// A version that no Subscription knows is in the way: what removes it, and what that costs.
fn orphan(csv: &Object<ClusterServiceVersion>, is_ours: bool) -> EngineError {
    let runs = matches!(csv.status.phase, CsvPhase::Succeeded | CsvPhase::Replacing);
    let cost = match (runs, is_ours) {
        (true, true) => "; its operator runs, and is down until `install` has installed it again",
        (true, false) => "; its operator runs, and nothing installs it again",
        (false, _) => "",
    };
    EngineError::refused_help(
        format!(
            "clusterserviceversion/{} is there without a Subscription, so OLM would resolve nothing",
            csv.name()
        ),
        Sentence::from("delete it: ")
            + command!("kubectl delete clusterserviceversion {} -n {}", csv.name(), csv.namespace())
            + cost
            + "; custom resources stay",
    )
}

/// How to get rid of an operator that is in the way.
fn uninstall_first(csv: &Object<ClusterServiceVersion>) -> Sentence {
    match package_of(csv) {
        Some(package) => {
            Sentence::from("uninstall that operator first: ")
                + command!("olmkit operator uninstall {} -n {}", package, csv.namespace())
        }
        None => "uninstall that operator first".into(),
    }
}

fn other_targets(group: &Object<OperatorGroup>, found: &[String]) -> EngineError {
    let named = if found == [""] { "all namespaces".to_owned() } else { found.join(", ") };
    EngineError::refused_help(
        format!("{} of the namespace selects {named}", group.key()),
        "choose another namespace for the operator with -n, or omit --watch if the operator supports what this OperatorGroup selects",
    )
}

/// The OperatorGroup of a namespace decides what its operators watch, and this operator cannot watch that.
fn unsupported_group(
    group: &Object<OperatorGroup>,
    found: &[String],
    supported: &BTreeSet<String>,
) -> EngineError {
    let named = if found == [""] { "all namespaces".to_owned() } else { found.join(", ") };
    let modes: Vec<&str> = supported.iter().map(String::as_str).collect();
    EngineError::refused_help(
        format!(
            "{} of the namespace selects {named}, and the operator supports only {}",
            group.key(),
            modes.join(", ")
        ),
        "choose another namespace for the operator with -n: a namespace has one OperatorGroup, which counts for all of its operators",
    )
}

/// A wish as a Subscription.
struct Wish<'w> {
    request: &'w Install,
    name: &'w str,
    channel: &'w str,
    csv: &'w str,
    at_head: bool,
    source: &'w Object<CatalogSource>,
}

impl Wish<'_> {
    /// Where a Subscription that is there already leads: nothing is installed over what is installed.
    fn way_of(
        &self,
        existing: &Object<Subscription>,
        observed: &Observed,
        package: &OfferedPackage,
        channel: &OfferedChannel,
    ) -> Result<Vec<String>, EngineError> {
        let (name, namespace) = (existing.name(), existing.namespace());
        let csv = self.csv.to_owned();
        let is_older = |one: &str, other: &str| {
            let version =
                |name: &str| package.bundles.get(name)?.version.as_ref().map(|found| &found.version);
            version(one).zip(version(other)).is_some_and(|(one, other)| precedence(one, other).is_lt())
        };
        let Some(installed) = observed.installed() else {
            let begins_with = match existing.spec.starting_csv.as_str() {
                "" => channel.head().unwrap_or_default(),
                named => named,
            };
            if self.request.version.is_some() && begins_with != csv {
                return Err(EngineError::refused_help(
                    format!("{} already exists, and starts with `{begins_with}`", existing.key()),
                    Sentence::from("run ")
                        + command!("olmkit operator uninstall {} -n {}", name, namespace)
                        + " first, then this command again",
                ));
            }
            let goes_on =
                self.request.version.is_none() && existing.spec.install_plan_approval == Approval::Automatic;
            let on = channel.way(&csv, None).into_iter().filter(|_| goes_on);
            return Ok(std::iter::once(csv.clone()).chain(on).collect());
        };
        if installed.name() == csv {
            return Ok(vec![csv]);
        }
        if self.request.version.is_some() {
            let version = package.version(&csv);
            let is_older = is_older(&csv, installed.name());
            let than = if is_older { ", which is newer than" } else { ", not" };
            let help = if is_older {
                command!("olmkit operator rollback {} -n {} --to {}", name, namespace, version)
                    + " rolls it back"
            } else {
                command!("olmkit operator upgrade {} -n {} --to {}", name, namespace, version)
                    + " upgrades it"
            };
            return Err(EngineError::refused_help(
                format!("{} already has `{}` installed{than} `{csv}`", existing.key(), installed.name()),
                help,
            ));
        }
        let version = Version::parse(&installed.spec.version).ok().map(VersionRelease::from);
        let automatic = existing.spec.install_plan_approval == Approval::Automatic;
        let way = find_way(package, channel, installed, version.as_ref(), None).ok().filter(|_| automatic);
        // OLM is on its way to the head already.
        Ok(way.map_or_else(|| vec![installed.name().to_owned()], |way| way.bundles))
    }

    /// What is to be changed of a Subscription that is there already.
    fn changes(&self, existing: &Object<Subscription>) -> Value {
        let mut patch = json!({});
        if let Some(config) = &self.request.config {
            let none = json!({});
            let old = existing.spec.config.as_ref().unwrap_or(&none);
            if old != config {
                patch["spec"]["config"] = difference(old, config);
            }
        }
        let remembered = remembered(existing);
        let current = remembered.clone().unwrap_or_else(|| existing.spec.install_plan_approval.clone());
        if let Some(wanted) = self.request.approval.as_ref().filter(|wanted| **wanted != current) {
            // Automatic comes when the version is there, or OLM would not stop at it.
            if *wanted == Approval::Automatic && !self.at_head {
                patch["metadata"]["annotations"][label::APPROVAL_BEFORE] = json!(wanted.as_str());
                patch["spec"]["installPlanApproval"] = json!(Approval::Manual.as_str());
            } else {
                patch["spec"]["installPlanApproval"] = json!(wanted.as_str());
                if remembered.is_some() {
                    patch["metadata"]["annotations"][label::APPROVAL_BEFORE] = Value::Null;
                }
            }
        }
        patch
    }

    fn approval(&self) -> Approval {
        let default = if self.request.version.is_some() { Approval::Manual } else { Approval::Automatic };
        self.request.approval.clone().unwrap_or(default)
    }

    /// Whether the first plan has to wait for us.
    fn approves(&self) -> bool {
        self.approval() == Approval::Manual
    }

    fn subscription(&self) -> Value {
        let approval = self.approval();
        let mut spec = json!({
            "name": self.request.package, "channel": self.channel, "source": self.source.name(),
            "sourceNamespace": self.source.namespace(), "installPlanApproval": approval.as_str(),
        });
        if self.request.version.is_some() {
            spec["startingCSV"] = json!(self.csv);
        }
        if let Some(config) = &self.request.config {
            spec["config"] = config.clone();
        }
        json!({
            "apiVersion": known::SUBSCRIPTION.api_version(), "kind": known::SUBSCRIPTION.kind,
            "metadata": {
                "name": self.name, "namespace": self.request.namespace, "labels": {label::CREATED_BY: label::OLMKIT},
            },
            "spec": spec,
        })
    }
}

/// What to do where a bundle was named instead of its package.
fn bundle_help(request: &Install, packages: &BTreeSet<String>) -> Option<Sentence> {
    let name = &request.package;
    let of_package = |package: &&String| {
        let rest = name.strip_prefix(package.as_str());
        rest.is_some_and(|rest| rest.strip_prefix(".v").or(rest.strip_prefix('.')).is_some())
    };
    let package = packages.iter().filter(of_package).max_by_key(|package| package.len())?;
    let version = name[package.len() + 1..].trim_start_matches('v');
    let mut install = command!("olmkit operator install {}", package);
    if !request.namespace.is_empty() {
        install = install.then(" -n {}", &[&request.namespace]);
    }
    let install = install.then(" --version {}", &[&version]);
    Some(Sentence::from(format!("`{name}` is a bundle: run ")) + install)
}

/// The install modes that a bundle supports, as far as the catalog says.
pub(super) fn modes(package: &OfferedPackage, csv: &str) -> BTreeSet<String> {
    let Some(bundle) = package.bundles.get(csv) else { return BTreeSet::new() };
    let inline = bundle.manifests.iter().find(|object| object["kind"] == olmkit_bundle::csv::KIND);
    let listed = inline
        .and_then(|csv| csv.pointer("/spec/installModes"))
        .or_else(|| bundle.csv_metadata.as_ref().and_then(|metadata| metadata.get("installModes")));
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    let supported = listed.filter(|mode| mode["supported"] == true);
    supported.filter_map(|mode| mode["type"].as_str().map(str::to_owned)).collect()
}

/// The namespaces that an operator is made to watch when nobody says: all, else its own.
fn preferred(namespace: &str, supported: &BTreeSet<String>) -> Vec<String> {
    let all = supported.contains(InstallModeKind::AllNamespaces.as_str());
    if all { vec![String::new()] } else { vec![namespace.to_owned()] }
}

fn supports(namespace: &str, targets: &[String], supported: &BTreeSet<String>) -> Result<(), EngineError> {
    if supported.is_empty() {
        // The catalog does not say; OLM will.
        return Ok(());
    }
    let needed = InstallModeKind::needed(namespace, targets);
    match needed.iter().find(|mode| !supported.contains(mode.as_str())) {
        None => Ok(()),
        Some(mode) => {
            let modes: Vec<&str> = supported.iter().map(String::as_str).collect();
            Err(EngineError::refused_help(
                format!("the operator does not support the install mode {mode}, only {}", modes.join(", ")),
                if modes == ["AllNamespaces"] {
                    "omit --watch, or pass `--watch '*'`"
                } else {
                    "choose the namespaces with --watch, or the operator's own with -n"
                },
            ))
        }
    }
}
