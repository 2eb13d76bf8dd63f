//! `operator install`: everything that can be known to go wrong is said first; then an OperatorGroup, a Subscription, and the
//! wait for its operator.

use std::collections::BTreeSet;
use std::sync::Arc;

use olmkit_bundle::suggest::did_you_mean;
use serde_json::{Value, json};

use super::api::{
    Approval, CatalogSource, ClusterServiceVersion, InstallModeKind, Named as _, Object, OperatorGroup,
    known, label,
};
use super::cluster::{ClusterError, merge};
use super::decide::Goal;
use super::engine::{Engine, EngineError, GRACE, UNWATCHED};
use super::look::{Operator, targets};
use super::observe::Observed;
use super::offer::{Offer, OfferedPackage};
use super::throw_away::{ThrowAway, way_to_bundle};
use super::upgrade::{bundle_of, channel_of};

/// The namespaces whose catalogs every other one sees, on plain clusters and on OpenShift.
const GLOBAL: [&str; 3] = ["olm", "openshift-marketplace", "operator-lifecycle-manager"];

/// What to install, and how.
#[derive(Clone, Debug, Default)]
pub struct Install {
    /// A catalog of one bundle that is served for this alone; none for a catalog that is there.
    pub throw_away: Option<ThrowAway>,
    /// The package.
    pub package: String,
    /// Where its operator runs.
    pub namespace: String,
    /// The Subscription's name; the package's when none is given.
    pub name: Option<String>,
    /// The CatalogSource, and its namespace.
    pub catalog: Option<(String, Option<String>)>,
    /// The channel; the package's default when none is given.
    pub channel: Option<String>,
    /// The version to begin with; the channel's head when none is given.
    pub version: Option<String>,
    /// Who says yes to upgrades.
    pub approval: Option<Approval>,
    /// Which namespaces it is to watch, when an OperatorGroup has to be made: `None` for what the operator prefers, no names
    /// for all.
    pub watch: Option<Vec<String>>,
    /// What is changed in the operator's pods, as `Subscription.spec.config` has it.
    pub config: Option<Value>,
    /// Bundles of other Subscriptions that a plan may carry as well.
    pub accept: BTreeSet<String>,
}

/// A catalog that was chosen, and what it offers.
struct Source {
    catalog: Object<CatalogSource>,
    offer: Arc<Offer>,
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
        let package = package.ok_or_else(|| EngineError::refused("the package is gone"))?;
        let channel_name = request.channel.clone().unwrap_or_else(|| package.default_channel.clone());
        let channel = channel_of(package, &request.package, &channel_name)?;
        let csv = match &request.version {
            Some(version) => bundle_of(package, channel, version)?,
            None => channel.head().unwrap_or_default().to_owned(),
        };
        let at_head = channel.head() == Some(csv.as_str());
        let observed = self.look(namespace, &name)?;
        let wish = Wish {
            request,
            name: &name,
            channel: &channel_name,
            csv: &csv,
            at_head,
            source: &source.catalog,
        };
        self.no_rivals(&wish, &observed, package)?;
        let mut way = vec![csv.clone()];
        if request.throw_away.is_some() {
            let changed =
                served.as_ref().is_some_and(|served| served.spec.image != source.catalog.spec.image);
            way = way_to_bundle(package, channel, &csv, &observed, changed)?;
        }
        let (group, targets) = self.group(request, &observed, &modes(package, &csv))?;
        self.no_foreign_owner(&wish, package, &targets)?;
        if self.is_missing(namespace)? {
            let document = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {label::CREATED_BY: label::OLMKIT}},
            });
            self.create(&known::NAMESPACE, document)?;
        }
        if let Some(group) = group {
            self.create(&known::OPERATOR_GROUP, group)?;
        }
        if request.throw_away.is_some() {
            self.serve(&source.catalog, served.as_ref())?;
        }
        if observed.subscription.is_none() {
            self.create(&known::SUBSCRIPTION, wish.subscription())?;
        }
        let waits = observed
            .subscription
            .as_ref()
            .is_some_and(|found| way.len() > 1 && found.spec.install_plan_approval == Approval::Manual);
        let goal =
            Goal { way, approve: wish.approves() || waits, channel: None, accept: request.accept.clone() };
        if self.options.dry_run {
            return Ok(Operator {
                subscription: name,
                namespace: namespace.to_owned(),
                package: request.package.clone(),
                channel: channel_name,
                head: channel.head().unwrap_or_default().to_owned(),
                ..Operator::default()
            });
        }
        if self.options.wait {
            self.reach(namespace, &name, &goal)?;
            self.restore(namespace, &name, at_head)?;
        } else {
            self.one_step(namespace, &name, &goal)?;
        }
        self.status(&name, Some(namespace))
    }

    /// Whether a namespace has to be made. Who may not look works in one that somebody else has made.
    fn is_missing(&mut self, namespace: &str) -> Result<bool, EngineError> {
        match self.cluster.get(&known::NAMESPACE, "", namespace) {
            Ok(found) => Ok(found.is_none()),
            Err(ClusterError::Forbidden { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The catalog that offers the package.
    fn source(&mut self, request: &Install) -> Result<Source, EngineError> {
        let mut catalogs: Vec<Object<CatalogSource>> = Vec::new();
        let mut hidden = None;
        let spaces: Vec<&str> = std::iter::once(request.namespace.as_str()).chain(GLOBAL).collect();
        for (at, space) in spaces.iter().enumerate() {
            let wanted = request.catalog.as_ref().and_then(|(_, space)| space.as_deref());
            if spaces[..at].contains(space) || wanted.is_some_and(|wanted| wanted != *space) {
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
        if let Some(hidden) = hidden.filter(|_| catalogs.is_empty()) {
            return Err(hidden.into());
        }
        if let Some((name, _)) = &request.catalog {
            let names: Vec<String> = catalogs.iter().map(|found| found.name().to_owned()).collect();
            catalogs.retain(|found| found.name() == name);
            if catalogs.is_empty() {
                let what = format!(
                    "no CatalogSource `{name}` can be seen from the namespace `{}`",
                    request.namespace
                );
                return Err(EngineError::Refused {
                    what,
                    help: did_you_mean(name, names.iter().map(String::as_str)),
                });
            }
        }
        if catalogs.is_empty() {
            return Err(EngineError::refused_help(
                format!("no CatalogSource can be seen from the namespace `{}`", request.namespace),
                "create one there or in OLM's namespace",
            ));
        }
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
                what: format!("no catalog offers a package `{}`", request.package),
                help: did_you_mean(&request.package, packages.iter().map(String::as_str)),
            }),
            (1, _) => self.reached(offering.remove(0)),
            (several, _) => {
                let names: Vec<String> = offering
                    .iter()
                    .map(|source| format!("{}/{}", source.catalog.name(), source.catalog.namespace()))
                    .collect();
                let what = format!("{several} catalogs offer `{}`: {}", request.package, names.join(", "));
                Err(EngineError::refused_help(what, "name one with --catalog NAME/NAMESPACE"))
            }
        }
    }

    /// A catalog that OLM reaches, or has not tried to reach yet. One that was just made is not reached before its pod is up.
    fn reached(&mut self, mut source: Source) -> Result<Source, EngineError> {
        let deadline = self.cluster.now() + GRACE;
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
                let pods = format!("see `kubectl get pods -n {namespace} -l olm.catalogSource={name}`");
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
                return Err(EngineError::refused_help(
                    format!("{} exists already, for `{}` from `{}`", found.key(), spec.package, spec.channel),
                    "`olmkit operator upgrade --channel` changes it, `olmkit operator uninstall` removes it",
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
                "`olmkit operator upgrade` drives that one",
            ));
        }
        let known_to_olm = |csv: &Object<ClusterServiceVersion>| {
            let all = observed.others.iter().chain(&observed.subscription);
            all.into_iter().any(|found| {
                [&found.status.installed_csv, &found.status.current_csv].contains(&&csv.name().to_owned())
            })
        };
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
        for csv in observed.csvs.iter().filter(|csv| !known_to_olm(csv)) {
            let ours = package.bundles.contains_key(csv.name());
            if ours || owns(csv).is_some() {
                return Err(EngineError::refused_help(
                    format!(
                        "clusterserviceversion/{} is there without a Subscription, so OLM would resolve nothing",
                        csv.name()
                    ),
                    format!(
                        "delete it: `kubectl delete clusterserviceversion {} -n {}`; custom resources stay",
                        csv.name(),
                        observed.namespace
                    ),
                ));
            }
        }
        for csv in observed.csvs.iter().filter(|csv| known_to_olm(csv)) {
            let mine = observed.subscription.as_ref().is_some_and(|found| {
                found.status.installed_csv == csv.name() || found.status.current_csv == csv.name()
            });
            if let Some(crd) = owns(csv).filter(|_| !mine) {
                return Err(EngineError::refused_help(
                    format!("the CRD `{}` belongs to `{}` in the same namespace", crd.name, csv.name()),
                    "uninstall that one first",
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
            // Who sees one namespace alone hears it from OLM.
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
                    "uninstall that one first, or choose other namespaces with --watch",
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
                let mut found = targets(group);
                found.sort();
                if let Some(mut wanted) = wanted {
                    wanted.sort();
                    if wanted != found {
                        return Err(other_targets(group, &found));
                    }
                }
                supports(namespace, &found, supported)?;
                Ok((None, found))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|group| group.name()).collect();
                let what = format!(
                    "the namespace `{namespace}` has {} OperatorGroups: {}",
                    several.len(),
                    names.join(", ")
                );
                Err(EngineError::refused_help(what, "leave one"))
            }
        }
    }
}

fn other_targets(group: &Object<OperatorGroup>, found: &[String]) -> EngineError {
    let named = if found == [""] { "all namespaces".to_owned() } else { found.join(", ") };
    EngineError::refused_help(
        format!("{} of the namespace is about {named}", group.key()),
        "leave --watch out, or take another namespace for the operator",
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
    fn approval(&self) -> Approval {
        let default = if self.request.version.is_some() { Approval::Manual } else { Approval::Automatic };
        self.request.approval.clone().unwrap_or(default)
    }

    /// Whether the first plan has to wait for us: OLM would not stop at a version below the head.
    fn approves(&self) -> bool {
        self.approval() == Approval::Manual || !self.at_head
    }

    fn subscription(&self) -> Value {
        let approval = if self.approves() { Approval::Manual } else { self.approval() };
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
        let mut document = json!({
            "apiVersion": known::SUBSCRIPTION.api_version(), "kind": known::SUBSCRIPTION.kind,
            "metadata": {
                "name": self.name, "namespace": self.request.namespace, "labels": {label::CREATED_BY: label::OLMKIT},
            },
            "spec": spec,
        });
        if approval != self.approval() {
            let before = json!({label::APPROVAL_BEFORE: self.approval().as_str()});
            merge(&mut document, &json!({"metadata": {"annotations": before}}));
        }
        document
    }
}

/// The install modes that a bundle supports, as far as the catalog says.
fn modes(package: &OfferedPackage, csv: &str) -> BTreeSet<String> {
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
                "choose the namespaces with --watch, or the operator's own with -n",
            ))
        }
    }
}
