//! What keeps the next version of an operator from coming, though everything of it is well: OLM stays where it is then and says nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use olmkit_bundle::version::{Version, precedence};
use olmkit_catalog::graph::VersionRelease;

use super::api::{
    InstallPlan, Named as _, Object, PackageManifest, Subscription, SubscriptionState, known, label,
};
use super::blockers::{self, Blocker};
use super::decide::Accept;
use super::doctor::{self, Diagnosis, OperatorState, State};
use super::engine::{Engine, EngineError};
use super::look::known_or_over;
use super::observe::Observed;
use super::offer::Offer;
use super::preflight::Upcoming;
use super::preview::Preview;
use crate::sentence::Sentence;
use crate::shell::command;

/// A plan that waits for approval of a version to which the channel no longer leads from what is installed.
pub(super) struct Superseded<'o> {
    pub(super) plan: &'o Object<InstallPlan>,
    installed: &'o str,
    planned: &'o str,
    /// Where the channel leads instead, if anywhere.
    next: Option<&'o str>,
}

impl Superseded<'_> {
    pub(super) fn sentence(&self) -> String {
        let Self { plan, installed, planned, next } = self;
        let now = match next {
            Some(next) => format!("it goes to `{next}` now"),
            None => "it goes nowhere now".to_owned(),
        };
        format!(
            "{} installs `{planned}`, to which the catalog no longer goes from `{installed}`: {now}",
            plan.key()
        )
    }

    pub(super) fn deletion(&self) -> &'static str {
        match self.next {
            Some(_) => {
                "deletes the plan: OLM plans the version that the catalog offers now, and nothing that runs stops"
            }
            None => doctor::DELETES,
        }
    }

    /// The command that deletes it, and what that does.
    pub(super) fn way_out(&self) -> Sentence {
        let (namespace, plan) = (self.plan.namespace(), self.plan.name());
        command!("kubectl -n {} delete installplan.operators.coreos.com {}", namespace, plan)
            + ": "
            + self.deletion()
    }
}

/// The waiting plan of a Subscription, if OLM would not make it again of what its catalog offers. OLM itself keeps it.
pub(super) fn superseded<'o>(observed: &'o Observed, offer: &'o Offer) -> Option<Superseded<'o>> {
    let subscription = observed.subscription.as_ref()?;
    let planned = subscription.status.current_csv.as_str();
    let plan = observed.open_plan(planned).filter(|plan| plan.waits_for_approval())?;
    let installed = observed.installed()?;
    let channel = offer.packages.get(&subscription.spec.package)?.channel(&subscription.spec.channel)?;
    let version = Version::parse(&installed.spec.version).ok();
    if channel.leads(installed.name(), version.as_ref(), planned) {
        return None;
    }
    let next = channel.next(installed.name(), version.map(VersionRelease::from).as_ref());
    Some(Superseded { plan, installed: installed.name(), planned, next })
}

impl Engine<'_> {
    /// Adds to a diagnosis what keeps healthy operators from being upgraded, and what OLM refuses of plans that wait for approval. What
    /// cannot be looked at, such as a catalog that is not reached from here, changes nothing.
    ///
    /// # Errors
    /// There was a signal, or the time is over.
    pub fn look_ahead(&mut self, diagnosis: &mut Diagnosis) -> Result<(), EngineError> {
        self.look_ahead_of(diagnosis, |_| true)
    }

    /// The same for some operators.
    pub(super) fn look_ahead_of(
        &mut self,
        diagnosis: &mut Diagnosis,
        is_meant: impl Fn(&OperatorState) -> bool,
    ) -> Result<(), EngineError> {
        let is_of_interest = |one: &&OperatorState| {
            let waits = one.code == Some(doctor::APPROVAL_REQUIRED);
            !one.subscription.is_empty() && (waits || one.state == State::Healthy) && is_meant(one)
        };
        let all: Vec<OperatorState> = diagnosis.operators.iter().filter(is_of_interest).cloned().collect();
        let mut offers: BTreeMap<(String, String), Option<Arc<Offer>>> = BTreeMap::new();
        for OperatorState { namespace, subscription: name, code, .. } in &all {
            let found = self.cluster.get(&known::SUBSCRIPTION, namespace, name).map_err(EngineError::from);
            let found = known_or_over(found)?.flatten().and_then(|found| Object::read(found).ok());
            let Some(subscription): Option<Object<Subscription>> = found else { continue };
            if code.is_some() {
                self.judge_plan(&subscription, diagnosis)?;
                continue;
            }
            if self.is_at_head(&subscription)? {
                continue;
            }
            let spec = &subscription.spec;
            let catalog = (spec.source_namespace.clone(), spec.source.clone());
            if !offers.contains_key(&catalog) {
                let offer = known_or_over(self.offer(&subscription))?;
                offers.insert(catalog.clone(), offer);
            }
            let Some(Some(offer)) = offers.get(&catalog).cloned() else { continue };
            if let Some(why) = known_or_over(self.stays(&subscription, &offer))?.flatten() {
                diagnosis.stays(subscription.document(), &why);
            }
        }
        Ok(())
    }

    /// Whether OLM's API of packages says that an operator is at the head of its channel: its catalog needs not be read then.
    fn is_at_head(&mut self, subscription: &Object<Subscription>) -> Result<bool, EngineError> {
        let spec = &subscription.spec;
        let found = self.cluster.get(&known::PACKAGE_MANIFEST, subscription.namespace(), &spec.package);
        let found = known_or_over(found.map_err(EngineError::from))?.flatten();
        let Some(manifest) = found.and_then(|found| Object::<PackageManifest>::read(found).ok()) else {
            return Ok(false);
        };
        let status = &manifest.status;
        let is_its_own = (&status.catalog_source, &status.catalog_source_namespace)
            == (&spec.source, &spec.source_namespace);
        let channel = if spec.channel.is_empty() { &status.default_channel } else { &spec.channel };
        let mut channels = status.channels.iter().filter(|found| found.name == *channel);
        Ok(is_its_own && channels.any(|found| found.current_csv == subscription.status.installed_csv))
    }

    /// Adds what speaks against approving the plan of a Subscription: where its catalog goes by now, and what `approve` refuses.
    fn judge_plan(
        &mut self,
        subscription: &Object<Subscription>,
        diagnosis: &mut Diagnosis,
    ) -> Result<(), EngineError> {
        let (namespace, name) = (subscription.namespace(), subscription.name());
        let observed = Observed::look(self.cluster, namespace, name).map_err(EngineError::from);
        let Some(observed) = known_or_over(observed)? else { return Ok(()) };
        let Some(plan) = observed.open_plan(&subscription.status.current_csv) else { return Ok(()) };
        if let Some(offer) = known_or_over(self.offer(subscription))?
            && let Some(old) = superseded(&observed, &offer)
        {
            diagnosis.advises_against(&plan.key(), old.sentence(), old.deletion());
        }
        let preview = known_or_over(self.preview_of(plan, &observed))?;
        for blocker in preview.into_iter().flat_map(|preview| preview.csvs).flat_map(|csv| csv.blockers) {
            diagnosis.advises_against(
                &plan.key(),
                format!("OLM cannot install it: {blocker}"),
                doctor::DELETES,
            );
        }
        Ok(())
    }

    /// What speaks against approving a plan: what OLM cannot install of it, where its catalog goes by now, and what a rollback has left.
    pub(super) fn against(
        &mut self,
        subscription: &Object<Subscription>,
        observed: &Observed,
        preview: Preview,
    ) -> Result<Vec<Blocker>, EngineError> {
        let left = subscription.annotation(label::ROLLED_BACK_FROM);
        let left = left.filter(|left| preview.csvs.iter().any(|csv| csv.name == *left)).map(|left| {
            let sentence =
                format!("installplan/{} installs `{left}`, which a rollback has left", preview.name);
            let help = "wait for a newer version, or approve it once its fault is mended";
            Blocker::new(blockers::ROLLED_BACK, sentence, help)
        });
        let mut found: Vec<Blocker> = preview.csvs.into_iter().flat_map(|csv| csv.blockers).collect();
        let offer = known_or_over(self.offer(subscription))?;
        if let Some(old) = offer.as_deref().and_then(|offer| superseded(observed, offer)) {
            found.push(Blocker::new(blockers::PLAN_SUPERSEDED, old.sentence(), old.way_out()));
        }
        Ok(found.into_iter().chain(left).collect())
    }

    /// Why OLM does not install a newer version of the channel. `None` if the channel has no newer one, or OLM is about to install it.
    fn stays(
        &mut self,
        subscription: &Object<Subscription>,
        offer: &Offer,
    ) -> Result<Option<String>, EngineError> {
        let observed = &Observed::look(self.cluster, subscription.namespace(), subscription.name())?;
        let (spec, status) = (&subscription.spec, &subscription.status);
        let settled = status.state == SubscriptionState::AtLatestKnown;
        let installed = observed.installed().filter(|csv| settled && csv.succeeded());
        let package = offer.packages.get(&spec.package);
        let channel = package.and_then(|package| package.channel(&spec.channel));
        let (Some(installed), Some(package), Some(channel)) = (installed, package, channel) else {
            return Ok(None);
        };
        let Some(head) = channel.head().filter(|head| *head != installed.name()) else { return Ok(None) };
        let version = Version::parse(&installed.spec.version).ok();
        let newest = package.bundles.get(head).and_then(|bundle| bundle.version.as_ref());
        // An installed version above the channel's head waits for nothing.
        let is_newer = |newest: &VersionRelease| {
            version.as_ref().is_none_or(|own| precedence(&newest.version, own).is_gt())
        };
        if !newest.is_some_and(is_newer) {
            return Ok(None);
        }
        let version = version.map(VersionRelease::from);
        let Some(next) = channel.next(installed.name(), version.as_ref()) else {
            return Ok(Some(format!(
                "the channel `{}` has no edge from `{}` to its head `{head}`",
                spec.channel,
                installed.name()
            )));
        };
        let bundles = [next];
        let accept = Accept::default();
        let upcoming = Upcoming {
            offer,
            package,
            bundles: &bundles,
            observed,
            targets: observed.targets(),
            accept: &accept,
            accept_missing_images: true,
        };
        Ok(self.unmet_first(&upcoming)?.map(|blocker| blocker.to_string()))
    }
}
